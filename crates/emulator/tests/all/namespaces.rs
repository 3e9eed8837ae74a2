//! Real TCP through the emulator, between two namespaces.
//!
//! Numbers are compared with theory only when the emulator was on time, because results of a busy machine prove
//! nothing.

use crate::lab::{EMULATOR, emulator, number, processor, report};
use penstock_linux::testing::{PATIENCE, Program, Sender, Testbed, skip, wait_until};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// TCP payload that 10 Mbit/s carry in packets of 1500 bytes, 52 of which are headers.
const FULL: f64 = 10e6 * 1448.0 / 1500.0;
/// Two ways of 10 ms and two transmissions of bare headers of 52 bytes.
const LEAST_RTT_MS: f64 = 20.083;
/// Reno halves its window at a loss. Without any queue it then sends between half and all of the rate, three quarters
/// on average; a queue only increases that.
const RENO: f64 = 0.75;
const ATTEMPTS: u32 = 3;
/// Who holds it open keeps the processors awake.
const AWAKE: &str = "/dev/cpu_dma_latency";

/// Two sides.
fn testbed() -> Option<Testbed> {
    Testbed::new(&["l", "r"], &["iperf3"])
}

fn start_emulator(bed: &Testbed, arguments: &[&str]) -> Program {
    let common = ["--rate", "10Mbit/s", "--delay", "10ms", "--realtime"];
    Program::ready(emulator(bed, &[&common, arguments].concat()), &["ready"])
}

/// The measurements of one run.
struct Run {
    goodput: f64,
    retransmits: u64,
    /// Mean round trip time as the sender's TCP measured it.
    tcp_rtt_ms: f64,
    /// Median round trip time of small datagrams beside the bulk transfer.
    rtt_ms: f64,
    report: Value,
}

impl Run {
    fn forward(&self, pointer: &str) -> u64 {
        number(&self.report, &format!("/forward{pointer}"))
    }

    fn drops(&self) -> u64 {
        ["early", "overflow", "dequeue"].map(|cause| self.forward(&format!("/dropped/{cause}"))).iter().sum()
    }
}

/// One bulk transfer of six seconds, the first two of which do not count, with datagrams going to and fro beside it.
fn transfer(bed: &Testbed, emulator: Program) -> Run {
    let stop = AtomicBool::new(false);
    let (json, rtt_ms) = std::thread::scope(|scope| {
        let probe = scope.spawn(|| median_rtt_ms(bed, &stop));
        let json = bed.transfer("l", ["r", "10.77.0.2"], "-C reno -O 2 -t 4");
        stop.store(true, Ordering::Relaxed);
        (json, probe.join().unwrap())
    });
    Run {
        goodput: json["end"]["sum_received"]["bits_per_second"].as_f64().unwrap(),
        retransmits: json["end"]["sum_sent"]["retransmits"].as_u64().unwrap(),
        tcp_rtt_ms: json["end"]["streams"][0]["sender"]["mean_rtt"].as_f64().unwrap() / 1e3,
        rtt_ms,
        report: report(emulator),
    }
}

/// An echo on the right, and a probe on the left every 20 ms that waits up to a second for its echo.
fn median_rtt_ms(bed: &Testbed, stop: &AtomicBool) -> f64 {
    let (probe, echo) = (bed.udp("l", "10.77.0.1:7007"), bed.udp("r", "10.77.0.2:7007"));
    for socket in [&probe, &echo] {
        socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut buffer = [0; 64];
            while !stop.load(Ordering::Relaxed) {
                if let Ok((len, from)) = echo.recv_from(&mut buffer) {
                    echo.send_to(&buffer[..len], from).unwrap();
                }
            }
        });
        let mut round_trips = Vec::new();
        let begin = Instant::now();
        for number in 0u64.. {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let sent = Instant::now();
            probe.send_to(&number.to_be_bytes(), "10.77.0.2:7007").unwrap();
            let mut answer = [0; 8];
            // Echoes of earlier, lost probes do not count, nor do those that arrive while the transfer is warming up.
            let mine = probe.recv(&mut answer).is_ok() && u64::from_be_bytes(answer) == number;
            if mine && begin.elapsed() > Duration::from_secs(2) {
                round_trips.push(sent.elapsed().as_secs_f64() * 1e3);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        round_trips.sort_by(f64::total_cmp);
        assert!(!round_trips.is_empty(), "no datagram came back");
        round_trips[round_trips.len() / 2]
    })
}

/// Packets came through in both directions, and no interface refused one.
fn check(report: &Value) {
    for way in ["forward", "reverse"] {
        assert!(report[way]["delivered"]["packets"].as_u64() > Some(0) && report[way]["refused"] == 0, "{report}");
    }
}

/// Returns a run that was on time, if there is one after some attempts.
fn undisturbed(arguments: &[&str]) -> Option<Run> {
    undisturbed_beside(arguments, |_| ())
}

/// The same, beside what `begin` starts when the path is there.
fn undisturbed_beside<T>(arguments: &[&str], begin: impl Fn(&Testbed) -> T) -> Option<Run> {
    for attempt in 1..=ATTEMPTS {
        let bed = testbed()?;
        let emulator = start_emulator(&bed, arguments);
        let beside = begin(&bed);
        let run = transfer(&bed, emulator);
        drop(beside);
        check(&run.report);
        if run.report["disturbed"] == Value::Bool(false) {
            let (mbps, drops) = (run.goodput / 1e6, run.drops());
            println!("{arguments:?}: {mbps:.3} Mbit/s, rtt {:.1} ms, {drops} drops", run.rtt_ms);
            return Some(run);
        }
        println!("{arguments:?}, attempt {attempt}: disturbed by {}: {}", run.report["disturbed_by"], run.report);
    }
    skip("this machine is too busy for numbers")
}

#[test]
fn codel_keeps_the_delay_short_where_a_full_buffer_does_not() {
    let (Some(codel), Some(droptail)) =
        (undisturbed(&["--aqm", "codel", "--limit", "1000p"]), undisturbed(&["--aqm", "droptail", "--limit", "100p"]))
    else {
        return;
    };
    // A full buffer of several bandwidth-delay products never empties.
    assert!((RENO..=1.01).contains(&(codel.goodput / FULL)), "{}", codel.goodput);
    assert!((0.97..=1.02).contains(&(droptail.goodput / FULL)), "{}", droptail.goodput);
    // A buffer of 100 packets is 120 ms, and between half and all of it is in use.
    assert!(droptail.rtt_ms > LEAST_RTT_MS + 40.0, "{}", droptail.rtt_ms);
    assert!(codel.rtt_ms < LEAST_RTT_MS + 20.0, "{}", codel.rtt_ms);
    assert!(codel.rtt_ms >= 2.0 * 10.0, "no packet is faster than the delay: {}", codel.rtt_ms);
    assert!(codel.forward("/dropped/dequeue") > 0 && codel.drops() == codel.forward("/dropped/dequeue"));
    assert!(droptail.forward("/dropped/overflow") > 0 && droptail.drops() == droptail.forward("/dropped/overflow"));
}

/// CAKE has a tin for the codepoint that packets carry. Without tins it is one of eleven flows.
#[test]
fn expedited_forwarding_keeps_its_rate_beside_ten_uploads() {
    for (tins, keeps) in [("diffserv4", true), ("besteffort", false)] {
        let Some(bed) = testbed() else { return };
        let set = ["--set".to_owned(), format!("tins={tins}"), "--set".to_owned(), "bandwidth=1Mbit/s".to_owned()];
        let link = ["--rate", "1Mbit/s", "--delay", "10ms", "--realtime", "--aqm", "cake"];
        let words: Vec<&str> = link.into_iter().chain(set.iter().map(String::as_str)).collect();
        let emulator = Program::ready(emulator(&bed, &words), &["ready"]);
        let kept = bed.expedited("l", ["r", "10.77.0.2"]);
        let report = report(emulator);
        if report["disturbed"] == Value::Bool(true) {
            return skip(format!("disturbed by {}", report["disturbed_by"]));
        }
        assert!(if keeps { kept >= 0.995 } else { kept < 0.9 }, "{tins}: {kept}");
    }
}

#[test]
fn red_drops_early_and_never_for_want_of_room() {
    let Some(red) = undisturbed(&["--aqm", "red", "--limit", "1000p"]) else { return };
    assert!((RENO..=1.01).contains(&(red.goodput / FULL)), "{}", red.goodput);
    assert!(red.forward("/dropped/early") > 0 && red.drops() == red.forward("/dropped/early"));
}

/// The queue has room for less than two bandwidth-delay products.
#[test]
fn pink_drops_nothing_where_tail_drop_does() {
    let pink = ["--aqm", "pink", "--limit", "30p"];
    let (Some(pink), Some(droptail)) = (undisturbed(&pink), undisturbed(&["--aqm", "droptail", "--limit", "30p"]))
    else {
        return;
    };
    assert_eq!((pink.drops(), pink.retransmits), (0, 0));
    assert!(droptail.drops() > 0 && droptail.retransmits > 0);
    // Equation 1 gives a window of c * rate * round trip, the least one and the time of 1448 bytes of data. Spent once per
    // round trip, which is longer than that by the acknowledgment of every second segment, it is the least that the flow has.
    // The mean over time, which PINK aims at, is c of the link at most.
    let (most, rtt_ms) = (0.95 * 10e6, LEAST_RTT_MS + 1448.0 * 8.0 / 10e3);
    let least = most * rtt_ms / pink.tcp_rtt_ms;
    assert!(pink.goodput >= 0.93 * least && pink.goodput <= 1.01 * most, "{} of {least} to {most}", pink.goodput);
}

/// Connections from left to right that exist as long as this value. Each sent 100 bytes, which came back; every second one
/// sends a byte each two seconds, and the others are silent.
struct Idle(Arc<AtomicBool>, Vec<std::thread::JoinHandle<()>>);

impl Idle {
    fn open(bed: &Testbed, count: usize) -> Self {
        let listener = bed.run("r", || TcpListener::bind("10.77.0.2:7100").unwrap());
        let (mut near, mut far) = (Vec::new(), Vec::new());
        while near.len() < count {
            // Not all at once: the backlog of a listener of the standard library has 128 places.
            let some = 30.min(count - near.len());
            let connect = || std::thread::spawn(|| TcpStream::connect("10.77.0.2:7100").unwrap());
            let open = || (0..some).map(|_| connect()).collect::<Vec<_>>();
            let opening = bed.run("l", open); // a thread begins where its parent is
            near.extend(opening.into_iter().map(|one| one.join().unwrap()));
            far.extend((0..some).map(|_| listener.accept().unwrap().0));
        }
        near.iter_mut().for_each(|stream| stream.write_all(&[1; 100]).unwrap());
        for stream in &mut far {
            let mut said = [0; 100];
            stream.read_exact(&mut said).unwrap();
            stream.write_all(&said).unwrap();
        }
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let alive = std::thread::spawn(move || {
            for tick in 0u32.. {
                if stopped.load(Ordering::Relaxed) {
                    break;
                }
                if tick % 20 == 0 {
                    near.iter_mut().step_by(2).for_each(|stream| stream.write_all(&[2]).unwrap());
                }
                std::thread::sleep(Duration::from_millis(100));
            }
            drop((near, far));
        });
        Self(stop, vec![alive])
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        self.1.drain(..).for_each(|thread| thread.join().unwrap());
    }
}

/// One transfer beside up to three hundred connections that say little, with the defaults of everything.
#[test]
fn idle_connections_take_nothing_from_a_transfer() {
    let mut alone = None;
    for count in [0, 1, 9, 30, 300] {
        let Some(run) = undisturbed_beside(&["--aqm", "pink"], |bed| Idle::open(bed, count)) else { return };
        let goodput = run.goodput;
        let alone = *alone.get_or_insert(goodput);
        println!("beside {count}: {:.3} of {:.3} Mbit/s", goodput / 1e6, alone / 1e6);
        assert!(goodput >= 0.9 * alone, "{goodput} of {alone} beside {count} connections");
        assert_eq!(run.drops(), 0);
        // Both connections of iperf3 and these were tracked from their SYN on, and no other.
        let tracked = |key: &str| run.report["flows"][key].as_u64().unwrap();
        assert_eq!((tracked("promoted"), tracked("promoted_unseen")), (count as u64 + 2, 0), "{}", run.report);
    }
}

/// Sends packets of 40 bytes from the right to the left as fast as it can for some seconds, and prints how many it sent: SYNs
/// of forged addresses to closed ports (6), or the same with a protocol that nobody tracks (253).
const GENERATOR: &str = r#"
import random, socket, struct, sys, time
protocol, rate, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
out = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
to, packets = socket.inet_aton("10.77.0.1"), []
for n in range(60000):
    source = struct.pack(">I", 0x0B000000 + random.randrange(1 << 24))
    tcp = struct.pack(">HHIIBBHHH", random.randrange(1024, 65536), n + 1024, random.randrange(1 << 32), 0, 80, 2, 1024, 0, 0)
    packets.append(struct.pack(">BBHHHBBH", 69, 0, 40, 0, 0, 64, protocol, 0) + source + to + tcp)
sent, begin = 0, time.monotonic()
while (now := time.monotonic() - begin) < seconds:
    while sent < now * rate:
        out.sendto(packets[sent % 60000], ("10.77.0.1", 0))
        sent += 1
    time.sleep(0.001)
print(sent)
"#;

/// A flood towards the side that is not congested, beside a transfer; `protocol` as for [`GENERATOR`]. Returns the transfer,
/// and how many packets of the flood arrived.
fn flooded(protocol: &str, rate: &str) -> Option<(Run, u64)> {
    let arguments = ["--aqm", "pink", "--reverse-rate", "1Gbit/s", "--reverse-limit", "10000p"];
    let run = undisturbed_beside(&arguments, |bed| {
        Program::start(bed.command("r", &["python3", "-c", GENERATOR, protocol, rate, "8"]))
    })?;
    let arrived = number(&run.report, "/reverse/arrived/packets");
    Some((run, arrived))
}

/// Takes a minute or more, and cores that nobody else uses: `cargo test --release -p penstock-emulator --test all --
/// --ignored --nocapture`.
#[test]
#[ignore = "takes both cores for a minute"]
fn forged_syns_on_the_wire_cost_no_more_than_their_bytes() {
    let rate = std::env::var("PENSTOCK_FLOOD").unwrap_or_else(|_| "100000".into());
    let (Some((tracked, syns)), Some((reference, others))) = (flooded("6", &rate), flooded("253", &rate)) else {
        return;
    };
    let parts = [tracked.goodput / reference.goodput, tracked.rtt_ms / reference.rtt_ms];
    println!("{syns} and {others} packets: goodput and round trip time {parts:?}, {}", tracked.report["flows"]);
    assert_eq!(tracked.drops() + reference.drops(), 0);
    assert_eq!(tracked.report["flows"]["promoted"], 2);
    assert!(parts.iter().all(|part| (part - 1.0).abs() < 0.02), "{parts:?}");
}

/// Transfers of four seconds from two addresses at once, each in so many flows, after two seconds that do not count: the
/// goodput of each.
fn goodputs(bed: &Testbed, hosts: [(&str, u32); 2]) -> [f64; 2] {
    let words = hosts.map(|(address, flows)| format!("-C reno -O 2 -t 4 -B {address} -P {flows}"));
    let senders = [0, 1].map(|at| Sender::new("l", &words[at]));
    let rates = bed
        .begin(&senders, ["r", "10.77.0.2"])
        .into_iter()
        .map(|transfer| transfer.result()["end"]["sum_received"]["bits_per_second"].as_f64().unwrap());
    rates.collect::<Vec<f64>>().try_into().unwrap()
}

/// Two hosts on the left, one with eight flows and the other with one: the emulator knows them by their addresses.
#[test]
fn a_host_with_eight_flows_has_no_more_than_a_host_with_one() {
    let sets = ["queue=qrm", "c=0.95"];
    let pink: Vec<&str> =
        ["--aqm", "pink"].into_iter().chain(sets.into_iter().flat_map(|set| ["--set", set])).collect();
    for attempt in 1..=ATTEMPTS {
        let Some(bed) = testbed() else { return };
        let emulator = start_emulator(&bed, &pink);
        bed.sh("l", "ip addr add 10.77.0.3/24 dev penstock0");
        let [many, one] = goodputs(&bed, [("10.77.0.1", 8), ("10.77.0.3", 1)]);
        let report = report(emulator);
        check(&report);
        println!(
            "attempt {attempt}: {:.3} and {:.3} Mbit/s, disturbed: {}",
            many / 1e6,
            one / 1e6,
            report["disturbed"]
        );
        if report["disturbed"] == Value::Bool(false) {
            // QRM takes from a node half of the link and, at once, what that is in 105 ms and three segments: 112 ms. The
            // queue, which is both nodes' at most, may hold as much from before.
            let most = FULL / 2.0 * (1.0 + 2.0 * 0.112 / 4.0);
            assert!(many <= most && one <= most, "{many} and {one} of {most}");
            // The one flow may use c of the half, and three quarters of that if it loses. By flows it would be a ninth.
            assert!(one > RENO * 0.95 * FULL / 2.0, "{one}");
            return;
        }
    }
    skip::<()>("this machine is too busy for numbers");
}

/// A run without packets sleeps, unless it spins.
#[test]
fn options_say_how_a_run_uses_the_processor() {
    let Some(bed) = testbed() else { return };
    // Looks after a second, and then until that many hundredths are used: on a busy machine who spins has a part of a core.
    let used = |option: &[&str], least: u64| -> (u64, u64, bool) {
        let words = [&["--rate", "10Mbit/s", "--duration", "9s"], option].concat();
        let emulator = Program::ready(emulator(&bed, &words), &["ready"]);
        let files = std::fs::read_dir(format!("/proc/{}/fd", emulator.pid())).unwrap();
        let awake =
            files.filter_map(|file| std::fs::read_link(file.ok()?.path()).ok()).any(|to| to == Path::new(AWAKE));
        let mut found = (0, 0, awake);
        for _ in 0..8 {
            std::thread::sleep(Duration::from_secs(1));
            let (ticks, policy) = processor(emulator.pid());
            found = (policy, ticks, awake);
            if ticks >= least {
                break;
            }
        }
        found
    };
    let (policy, ticks, awake) = used(&[], 0);
    // 1 is SCHED_FIFO.
    assert!(policy == 0 && ticks < 20 && !awake, "policy {policy}, {ticks} ticks, processors kept awake: {awake}");
    // A container may have no such device.
    let offered = std::fs::File::options().write(true).open(AWAKE).is_ok();
    let (policy, _, awake) = used(&["--realtime"], 0);
    assert_eq!((policy, awake), (1, offered));
    let (_, ticks, awake) = used(&["--spin"], 20);
    assert!(ticks >= 20 && awake == offered, "{ticks} ticks, processors kept awake: {awake}");
}

/// Datagrams of both ways pass without a queue, in the order in which they were sent, and each is counted in its direction.
#[test]
fn bare_packets_pass_at_once_and_are_counted() {
    let Some(bed) = testbed() else { return };
    let emulator = start_emulator(&bed, &["--bare"]);
    let (left, right) = (bed.udp("l", "10.77.0.1:7007"), bed.udp("r", "10.77.0.2:7007"));
    let mut buffer = [0; 64];
    for socket in [&left, &right] {
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    }
    for number in 0..20_u8 {
        left.send_to(&[number], "10.77.0.2:7007").unwrap();
        assert_eq!(right.recv(&mut buffer).unwrap(), 1);
        assert_eq!(buffer[0], number);
        if number % 2 == 0 {
            right.send_to(&[number, 0], "10.77.0.1:7007").unwrap();
            assert_eq!((left.recv(&mut buffer).unwrap(), buffer[0]), (2, number));
        }
    }
    let report = report(emulator);
    let [there, back] = ["/bare/0", "/bare/1"].map(|pointer| number(&report, pointer));
    // Neighbour discovery of both sides may be among them.
    assert!((20..40).contains(&there) && (10..30).contains(&back), "{there} and {back}");
    assert_eq!(number(&report, "/forward/arrived/packets") + number(&report, "/reverse/arrived/packets"), 0);
}

/// The kernel of a third namespace forwards copies of what goes to the right.
#[test]
fn packets_go_through_the_kernel_of_a_namespace_and_come_back() {
    let Some(bed) = Testbed::new(&["l", "r", "q"], &[]) else { return };
    bed.forward("q");
    let emulator = start_emulator(&bed, &["--through", &bed.namespace("q")]);
    bed.sh("q", "ip route add default dev out");
    let (left, right) = (bed.udp("l", "10.77.0.1:7007"), bed.udp("r", "10.77.0.2:7007"));
    right.set_read_timeout(Some(PATIENCE)).unwrap();
    for number in 0..20_u8 {
        left.send_to(&[number], "10.77.0.2:7007").unwrap();
        let mut buffer = [0; 64];
        assert_eq!((right.recv(&mut buffer).unwrap(), buffer[0]), (1, number));
    }
    let report = report(emulator);
    let through = |what: &str| number(&report, &format!("/forward/through/{what}"));
    assert_eq!([through("returned/packets"), through("dropped/packets")], [20, 0], "{report}");
    assert!(number(&report, "/forward/delivered/packets") >= 20, "{report}");
}

/// The interface and its namespace are those of the run; `support` packs its status.
#[test]
fn headers_are_recorded_and_support_is_packed() {
    let Some(bed) = testbed() else { return };
    let emulator = start_emulator(&bed, &["--name", bed.name()]);
    let directory = bed.file("support");
    std::fs::create_dir(&directory).unwrap();
    let ask = |words: &[&str]| {
        let mut command = Command::new(EMULATOR);
        let output = command.args(words).args(["--name", bed.name()]).current_dir(&directory).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let socket = bed.udp("l", "10.77.0.1:0");
    let said = std::thread::scope(|scope| {
        let run = scope.spawn(|| ask(&["record", "2s"]));
        while !run.is_finished() {
            let _ = socket.send_to(&[7; 500], "10.77.0.2:9999");
            std::thread::sleep(Duration::from_millis(10));
        }
        run.join().unwrap()
    });
    assert!(said.contains("packets of penstock0 in record.pcap, headers only"), "{said}");
    let capture = std::fs::read(directory.join("record.pcap")).unwrap();
    let udp = |packet: &[u8]| packet.len() == 44 && packet[..2] == [0, 4] && packet[16] == 0x45 && packet[25] == 17;
    assert!(capture.windows(44).any(udp), "a datagram that left, without its payload");
    assert!(!capture.windows(20).any(|bytes| bytes == [7; 20]), "no payload");
    std::fs::write(directory.join("emulate.toml"), "[link]\nrate = \"1Mbit/s\"\n[subscribers]\na = [\"10.9.9.9\"]\n")
        .unwrap();
    ask(&["support", "emulate.toml"]);
    let nowhere = ["support", "--out", "/nowhere/support.tar.gz", "--name", bed.name()];
    assert_eq!(Command::new(EMULATOR).args(nowhere).output().unwrap().status.code(), Some(2));
    let words = ["-xzOf", "support.tar.gz", "support/status.json", "support/emulate.toml"];
    let text = Command::new("tar").args(words).current_dir(&directory).output().unwrap().stdout;
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("\"interface\": \"penstock0\"") && text.contains("rate = \"1Mbit/s\""), "{text}");
    assert!(!text.contains("10.9.9.9"), "{text}");
    drop(emulator);
}

#[test]
fn a_mistake_ends_with_code_2_and_says_what_to_do() {
    for (arguments, expected) in [
        (&["--rate", "10Mbit/s", "--aqm", "codle"][..], "did you mean \"codel\""),
        (&["--rate", "10"], "Mbit/s"),
        (&["--rate", "10Mbit/s", "--left-netns", "penstock-nowhere"], "ip netns add"),
        (&["--rate", "10Mbit/s"], "--right-netns"),
    ] {
        let output = Command::new(EMULATOR).args(arguments).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains(expected), "{arguments:?}: {message}");
    }
}

/// Asks an emulator; returns what it said, and whether it did what was asked.
fn ask(bed: &Testbed, words: &[&str]) -> (String, bool) {
    let output = Command::new(EMULATOR).args(words).args(["--name", bed.name()]).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (String::from_utf8_lossy(&text).into_owned(), output.status.success())
}

/// Returns the rates that hold.
fn rates(bed: &Testbed) -> [u64; 2] {
    let status: Value = serde_json::from_str(&ask(bed, &["status", "--json"]).0).unwrap();
    ["forward", "reverse"].map(|way| number(&status, &format!("/{way}/rate_bps")))
}

#[test]
fn changes_go_back_and_files_are_applied() {
    let Some(bed) = testbed() else { return };
    let emulator = start_emulator(&bed, &["--name", bed.name(), "--aqm", "codel"]);
    let file = bed.file("new.toml");
    let words = ["apply", file.to_str().unwrap(), "--for", "1s"];
    std::fs::write(&file, "[link]\nrate = \"2Mbit/s\"\ndelay = \"5ms\"\n[aqm]\nname = \"pie\"\n").unwrap();
    let (said, done) = ask(&bed, &words);
    assert!(done && said.contains("rate=2Mbit/s") && said.contains("returns after 1s"), "{said}");
    wait_until("the former rates are back", || rates(&bed) == [10_000_000; 2]);

    assert!(ask(&bed, &["set", "rate=3Mbit/s"]).1);
    assert_eq!(rates(&bed), [3_000_000, 10_000_000]);
    assert!(ask(&bed, &["rollback"]).1 && rates(&bed) == [10_000_000; 2]);
    let (said, done) = ask(&bed, &["rollback"]);
    assert!(!done && said.contains("nothing was changed"), "{said}");

    std::fs::write(&file, "seed = 9\n[link]\nrate = \"2Mbit/s\"\ndelay = \"5ms\"\n").unwrap();
    let (said, done) = ask(&bed, &words);
    assert!(!done && said.contains("new.toml:1:") && said.contains("`seed` cannot change"), "{said}");
    assert_eq!(rates(&bed), [10_000_000; 2]);
    report(emulator);
}

/// What a discipline knows of connections would go with it, so it is replaced only by another one, and one of connections never.
#[test]
fn other_values_leave_a_discipline_in_its_place() {
    let Some(bed) = testbed() else { return };
    let emulator = start_emulator(&bed, &["--name", bed.name(), "--aqm", "pink"]);
    for value in ["rate=5Mbit/s", "delay=5ms"] {
        let (said, done) = ask(&bed, &["set", value]);
        assert!(done, "{value}: {said}");
    }
    assert_eq!(rates(&bed), [5_000_000, 10_000_000]);
    let (said, done) = ask(&bed, &["set", "aqm=codel"]);
    assert!(!done, "{said}");
    report(emulator);
}

/// A packet that begins at 100 bit/s would take a minute. When the former rate is back, so is the link.
#[test]
fn a_rate_that_held_for_a_second_leaves_nothing_behind() {
    let Some(bed) = testbed() else { return };
    let emulator = start_emulator(&bed, &["--name", bed.name()]);
    let (near, far) = (bed.udp("l", "10.77.0.1:7001"), bed.udp("r", "10.77.0.2:7001"));
    assert!(ask(&bed, &["set", "rate=100bit/s", "--confirm", "1s"]).1);
    near.send_to(&[1; 700], "10.77.0.2:7001").unwrap();
    wait_until("the former rate is back", || rates(&bed) == [10_000_000; 2]);
    far.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    assert_eq!(far.recv(&mut [0; 1000]).unwrap(), 700);
    report(emulator);
}
