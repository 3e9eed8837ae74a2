//! A gateway on a router.

use crate::lab::{Lab, passes, signed, transfer};
use crate::link::{GATEWAY, body};
use nix::sys::signal::Signal;
use penstock_linux::testing::wait_until;
use serde_json::Value;
use std::io::Read;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

/// TCP payload that 10 Mbit/s carry in packets of 1500 bytes, 52 of which are headers.
const FULL: f64 = 10e6 * 1448.0 / 1500.0;
/// A FIFO of the product of rate and delay: 10 Mbit/s, 100 ms.
const PRODUCT: &str = "--rate 10Mbit/s --delay 50ms --limit 125kB --reverse-limit 125kB";
const QUICK: &str = "--rate 10Mbit/s --delay 1ms";
/// A busy machine does not let a guard open the rules.
const LINK: &str = "patience = \"10s\"\nrealtime = true\n[interfaces]\nwan = \"eth0\"\n[link]\nrate = \"10Mbit/s\"\n";

fn drops(direction: &Value) -> u64 {
    ["early", "overflow", "dequeue"].iter().map(|cause| direction["dropped"][cause].as_u64().unwrap()).sum()
}

/// Eight flows in each direction through PINK, and a FIFO of one product behind it: no packet is dropped anywhere.
#[test]
fn pink_governs_real_tcp_without_a_drop() {
    // On a busy machine the ends of a transfer are late as well, which no appliance can tell.
    assert!((0..3).any(|_| carries_real_tcp_without_a_drop()), "three transfers below 0.7 of the rate");
}

/// Asserts what holds on any machine; returns whether the transfers had their part of the rate.
fn carries_real_tcp_without_a_drop() -> bool {
    let Some(mut lab) = Lab::new(PRODUCT) else { return true };
    let gateway = lab.govern(LINK);
    let up = transfer(&lab, "-C reno -P 8 -t 6 -O 2");
    let down = transfer(&lab, "-C cubic -P 2 -t 4 -O 2 -R");
    let status = gateway.end();
    let link = lab.end_link();
    let [forward, reverse] = [&status["forward"], &status["reverse"]];
    assert_eq!((forward["aqm"].as_str(), status["state"].as_str()), (Some("pink"), Some("governing")));
    assert!(reverse["delivered"]["packets"].as_u64() > Some(4000), "{reverse}");
    assert_eq!(status["past"]["times"].as_u64(), Some(0));
    let windows_were_written = reverse["sojourn_ms"]["p90"].as_f64().unwrap() < 60.0;
    assert!(windows_were_written, "eight flows of Reno alone keep 125 kB waiting, which is 100 ms: {reverse}");
    if link.disturbed || status["stalled"]["times"].as_u64() != Some(0) {
        eprintln!("disturbed: {:?}, {}", link.disturbed_by, status["stalled"]);
        return true;
    }
    assert_eq!((drops(forward), drops(reverse)), (0, 0));
    let dropped =
        [&link.forward, &link.reverse].map(|way| (way.dropped.early, way.dropped.overflow, way.dropped.dequeue));
    assert_eq!(dropped, [(0, 0, 0); 2]);
    let goodput = |result: &Value| result["end"]["sum_received"]["bits_per_second"].as_f64().unwrap_or_default() / FULL;
    assert!(reverse["sojourn_ms"]["p90"].as_f64().unwrap() <= 30.0, "{reverse}");
    assert!(link.forward.sojourn_ms.p90 <= 30.0, "{:?}", link.forward.sojourn_ms);
    // The bar is 0.9 (`tools/measure/gateway-bars`).
    eprintln!("of the rate: {} {}", goodput(&up), goodput(&down));
    goodput(&up) >= 0.7 && goodput(&down) >= 0.7
}

/// A connection as BGP has it: a signature covers the window, so PINK writes none.
#[test]
fn signed_connections_pass_untouched() {
    let Some(lab) = Lab::new(QUICK) else { return };
    let gateway = lab.govern(LINK);
    assert_eq!(signed(&lab), [1_000_000, 0]);
    let status = gateway.end();
    assert!(status["unclassified"]["signed"].as_u64() > Some(800), "{status}");
    assert_eq!((&status["flows"]["promoted"], &status["reverse"]["aqm"]), (&0.into(), &"pink".into()), "{status}");
}

/// Sends `count` datagrams of 500 bytes in packets of 528.
fn send(from: &UdpSocket, count: usize) {
    for _ in 0..count {
        // Nobody may listen yet: then the kernel tells it at the next call.
        let _ = from.send_to(&[7; 500], "10.77.0.2:9999");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn the_status_has_the_numbers_of_the_kernel() {
    let Some(lab) = Lab::new(QUICK) else { return };
    let gateway = lab.govern(LINK);
    let (client, server) = (lab.socket("c", "10.88.0.2:0"), lab.socket("s", "10.77.0.2:9999"));
    send(&client, 300);
    wait_until("300 packets arrive", || lab.status()["reverse"]["delivered"]["packets"].as_u64() >= Some(300));
    assert_eq!(lab.status()["calls"], serde_json::json!([null, null]));
    // Expedited forwarding.
    nix::sys::socket::setsockopt(&client, nix::sys::socket::sockopt::Ipv4Tos, &(46 << 2)).unwrap();
    send(&client, 50);
    let mut call = Value::Null;
    wait_until("packets of a call are seen", || {
        call = lab.status()["calls"][1].clone();
        call["packets"].as_u64() >= Some(1)
    });
    let mos = call["mos_estimate"].as_f64().unwrap();
    assert!((1.0..=4.5).contains(&mos) && call["lost"] == 0.0 && call["delay_ms"].as_f64() >= Some(21.0), "{call}");
    wait_until("all packets arrive", || lab.status()["reverse"]["delivered"]["packets"].as_u64() >= Some(350));
    drop(server);
    let status = lab.status();
    let arrived = &status["reverse"]["arrived"];
    // Those of IPv6 are what kernels say to their link.
    let rules = lab.rules();
    let handed = rules.lines().filter(|line| line.contains("--queue-num 7011"));
    let counters =
        handed.map(|line| line[1..].split(']').next().unwrap().split(':').map(|n| n.parse::<u64>().unwrap()));
    let sums = counters
        .fold([0, 0], |[packets, bytes], mut pair| [packets + pair.next().unwrap(), bytes + pair.next().unwrap()]);
    assert_eq!(sums, [arrived["packets"].as_u64().unwrap(), arrived["bytes"].as_u64().unwrap()], "{rules}");
    let queue = status["kernel_queues"].as_array().unwrap().iter().find(|queue| queue["queue"] == 7011).unwrap();
    assert_eq!(queue["given"], arrived["packets"]);
    assert!(arrived["packets"].as_u64() >= Some(300) && arrived["bytes"].as_u64() >= Some(300 * 528));
    assert_eq!(gateway.end()["reverse"]["arrived"], *arrived);
    assert_eq!(lab.rules(), "", "SIGTERM removes all rules");
}

/// A router forwards no DHCP and no neighbour discovery, so what a host sends in their form has its turn like all else.
#[test]
fn no_host_passes_the_shaper_by_its_choice_of_ports() {
    let Some(lab) = Lab::new(QUICK) else { return };
    lab.sh("r", "ip addr add fd88::1/64 dev eth1 nodad; ip addr add fd77::1/64 dev eth0 nodad");
    lab.sh("r", "echo 1 > /proc/sys/net/ipv6/conf/all/forwarding");
    lab.sh("c", "ip addr add fd88::2/64 dev eth0 nodad; ip -6 route add default via fd88::1");
    lab.sh("s", "ip addr add fd77::2/64 dev eth0 nodad; ip -6 route add fd88::/64 via fd77::1");
    let solicitations = "import socket; s = socket.socket(socket.AF_INET6, socket.SOCK_RAW, 58); \
                         [s.sendto(bytes([135] + [0] * 499), ('fd77::2', 0)) for _ in range(100)]";
    for interfaces in ["wan = \"eth0\"\n", "wan = \"eth0\"\nlan = \"eth1\"\n"] {
        let gateway = lab.govern(&LINK.replace("wan = \"eth0\"\n", interfaces));
        let arrived = || lab.status()["reverse"]["arrived"]["packets"].as_u64();
        let begun = arrived();
        for (from, to) in [("10.88.0.2:68", "10.77.0.2:67"), ("[fd88::2]:546", "[fd77::2]:547")] {
            let client = lab.socket("c", from);
            (0..100).for_each(|_| drop(client.send_to(&[7; 500], to)));
        }
        lab.sh("c", &format!("python3 -c \"{solicitations}\""));
        wait_until("300 packets have their turn", || arrived() >= begun.map(|begun| begun + 300));
        gateway.end();
    }
}

#[test]
fn packets_pass_when_the_process_hangs_or_dies() {
    let Some(lab) = Lab::new(QUICK) else { return };
    let text = LINK.replace("10s", "200ms");
    let gateway = lab.govern(&text);
    let (client, server) = (lab.socket("c", "10.88.0.2:0"), lab.socket("s", "10.77.0.2:9999"));
    wait_until("packets pass the gateway", || passes(&client, &server, "10.77.0.2:9999"));
    gateway.send(Signal::SIGSTOP);
    wait_until("packets pass a gateway that hangs", || passes(&client, &server, "10.77.0.2:9999"));
    wait_until("the guard has opened all rules", || !lab.rules().contains("NFQUEUE"));
    gateway.send(Signal::SIGCONT);
    wait_until("it governs again", || {
        let status = lab.status();
        status["state"] == "governing" && status["past"]["times"].as_u64() > Some(0)
    });
    wait_until("all rules are back", || lab.rules().matches("NFQUEUE").count() == 4);
    gateway.kill();
    wait_until("packets pass a gateway that is dead", || passes(&client, &server, "10.77.0.2:9999"));
    wait_until("the guard removes the rules", || lab.rules().is_empty());
    // Both die: the rules stay, and packets pass. This guard is patient enough to be killed before it opens them.
    let gateway = lab.govern(LINK);
    gateway.send(Signal::SIGSTOP);
    lab.sh("r", &format!("kill -KILL $(cat /proc/{0}/task/{0}/children)", gateway.0.pid()));
    gateway.kill();
    wait_until("packets pass rules that nobody serves", || passes(&client, &server, "10.77.0.2:9999"));
    assert!(lab.rules().contains("NFQUEUE"));
    let gateway = lab.govern(LINK);
    let events = lab.status()["events"].to_string();
    assert!(events.contains("that an earlier run left were removed"), "{events}");
    gateway.end();
    assert_eq!(lab.rules(), "");
}

/// What lets its guard die at once does so again: the next ones are a second apart, and those that died leave nothing.
#[test]
fn guards_that_die_follow_each_other_slowly() {
    let Some(lab) = Lab::new(QUICK) else { return };
    let gateway = lab.govern(&LINK.replace("10s", "80ms"));
    let children = format!("/proc/{0}/task/{0}/children", gateway.0.pid());
    let begin = std::time::Instant::now();
    while begin.elapsed() < Duration::from_millis(1500) {
        lab.sh("r", &format!("for one in $(cat {children}); do kill -KILL $one || true; done"));
        std::thread::sleep(Duration::from_millis(5));
    }
    wait_until("there is a guard again", || {
        let guards = std::fs::read_to_string(&children).unwrap();
        let stat = |one: &str| std::fs::read_to_string(format!("/proc/{one}/stat")).unwrap_or_default();
        !guards.is_empty() && guards.split_whitespace().all(|one| stat(one).contains(") S"))
    });
    let status = gateway.end();
    let events = status["events"].as_array().unwrap();
    assert!(
        (1..=5).contains(&events.iter().filter(|one| one["what"].to_string().contains("guard was gone")).count()),
        "{status}"
    );
}

#[test]
fn rules_that_somebody_removes_come_back() {
    let Some(lab) = Lab::new(QUICK) else { return };
    let gateway = lab.govern(LINK);
    lab.sh("r", "iptables-legacy -t mangle -F OUTPUT");
    wait_until("the rules are back", || lab.rules().contains("-A OUTPUT -o eth0 -j penstock-7010-up-own"));
    wait_until("the status tells it", || {
        let events = lab.status()["events"].to_string();
        events.contains("was missing: -A OUTPUT") && events.contains("the rules are back")
    });
    let status = gateway.end();
    assert_eq!(status["marks"].to_string(), "[]", "{}", status["events"]);
}

/// When the process runs again, another program has the lock of the firewall, and the rules cannot be put back. They are once it
/// has gone.
#[test]
fn rules_that_could_not_be_put_back_are_tried_again() {
    let Some(lab) = Lab::new(QUICK) else { return };
    let (bin, taken) = (lab.file("bin"), lab.file("taken"));
    std::fs::create_dir(&bin).unwrap();
    for name in ["iptables-legacy-restore", "ip6tables-legacy-restore"] {
        let path = "PATH=/usr/sbin:/sbin:/usr/bin:/bin";
        let text = format!("#!/bin/sh\n{path}\ntest ! -e {} || exit 4\nexec {name} \"$@\"\n", taken.display());
        std::fs::write(bin.join(name), text).unwrap();
        std::fs::set_permissions(bin.join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("PATH={}:{}", bin.display(), std::env::var("PATH").unwrap());
    let gateway = lab.govern_under(&["env", &path], LINK);
    gateway.send(Signal::SIGSTOP);
    wait_until("the guard lets packets pass", || !lab.rules().contains("NFQUEUE"));
    std::fs::write(&taken, "").unwrap();
    gateway.send(Signal::SIGCONT);
    wait_until("it is told", || lab.status()["marks"].to_string().contains("iptables-legacy-restore"));
    assert_eq!(lab.status()["state"], "open");
    std::fs::remove_file(&taken).unwrap();
    wait_until("it governs again", || lab.status()["state"] == "governing");
    let marks = lab.status()["marks"].to_string();
    assert!(lab.rules().matches("NFQUEUE").count() >= 2 && !marks.contains("iptables"), "{marks}");
    // The same when somebody removes them: that is wrong until they are back.
    std::fs::write(&taken, "").unwrap();
    lab.sh("r", "iptables-legacy -t mangle -F");
    wait_until("it is wrong", || lab.status()["state"] == "wrong");
    std::fs::remove_file(&taken).unwrap();
    wait_until("it governs again", || lab.status()["state"] == "governing");
    gateway.end();
}

#[test]
fn what_was_set_returns_and_is_noted() {
    let Some(lab) = Lab::new(QUICK) else { return };
    let text = format!("{LINK}[reverse_discipline]\nname = \"codel\"\n");
    let gateway = lab.govern(&text);
    let rates = || ["forward", "reverse"].map(|way| lab.status()[way]["rate_bps"].as_u64().unwrap() / 1_000_000);
    assert!(lab.set(&["set", "rate=8Mbit/s", "reverse_discipline.target=7ms"]).0);
    assert_eq!(rates(), [8, 10]);
    assert_eq!(lab.status()["reverse"]["parameters"]["target"], "7ms");
    let (done, said) = lab.set(&["set", "reverse_rate=2Mbit/s", "--for", "2s"]);
    assert!(done && said.contains("returns after 2s"), "{said}");
    let (done, said) = lab.set(&["set", "rate=3Mbit/s"]);
    assert!(!done && said.contains("temporary"), "{said}");
    wait_until("the former rate returns", || rates() == [8, 10]);
    assert!(lab.set(&["set", "rate=4Mbit/s", "--confirm", "60s"]).0 && lab.set(&["set", "--keep"]).0);
    assert_eq!((rates(), lab.status()["lapse"].is_null()), ([4, 10], true));
    assert!(lab.set(&["rollback"]).0 && lab.set(&["rollback"]).0);
    assert_eq!(rates(), [10, 10]);
    assert_eq!(lab.status()["reverse"]["parameters"]["target"], "5ms");
    let (done, said) = lab.set(&["rollback"]);
    assert!(!done && said.contains("nothing was changed"), "{said}");
    let (done, said) = lab.set(&["set", "raet=1Mbit/s"]);
    assert!(!done && said.contains("did you mean \"rate\"?"), "{said}");
    let (done, said) = lab.set(&["set", "discipline.c=0.9"]);
    assert!(!done && said.contains("pink keeps state"), "{said}");
    gateway.end();
    let log = std::fs::read_to_string(lab.file("log.jsonl")).unwrap();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let done: Vec<&str> = lines.iter().filter_map(|line| line["do"].as_str()).filter(|what| *what != "event").collect();
    assert_eq!(done, ["start", "set", "set", "lapse", "set", "keep", "rollback", "rollback", "end"]);
    assert_eq!(lines[1]["by"]["uid"], 0);
}

/// A hundred files with three disciplines under load: a flow of TCP goes on, and of datagrams beside it none is
/// missing. PINK governs connections that begin after it was applied.
#[test]
fn a_file_is_applied_without_a_loss() {
    let Some(lab) = Lab::new("--rate 100Mbit/s --delay 1ms") else { return };
    let file = |rate: u32, discipline: &str, limit: &str| {
        let link = LINK.replace("rate = \"10Mbit/s\"", &format!("rate = \"{rate}Mbit/s\"\nlimit = \"{limit}\""));
        format!("{link}[discipline]\nname = {discipline}\n")
    };
    const FQ: &str = "\"fq-codel\"\ntarget = \"1s\"\ninterval = \"10s\"";
    const PINK: &str = "\"pink\"\nqueue = \"fq-others\"";
    let gateway = lab.govern(&file(20, FQ, "1000p"));
    let (client, server) = (lab.socket("c", "10.88.0.2:0"), lab.socket("s", "10.77.0.2:9999"));
    wait_until("packets pass", || passes(&client, &server, "10.77.0.2:9999"));
    let over = std::sync::atomic::AtomicBool::new(false);
    let (sent, came) = std::thread::scope(|threads| {
        let flow = threads.spawn(|| transfer(&lab, "-C cubic -t 8 -w 100K"));
        let sender = threads.spawn(|| {
            let mut sent = 0;
            while !over.load(std::sync::atomic::Ordering::Relaxed) {
                send(&client, 10);
                sent += 10;
            }
            sent
        });
        let receiver = threads.spawn(|| {
            let (mut came, mut silent, mut buffer) = (0, 0, [0; 600]);
            while silent < 50 || !over.load(std::sync::atomic::Ordering::Relaxed) {
                let is_one = server.recv(&mut buffer).is_ok_and(|len| len == 500);
                came += usize::from(is_one);
                silent = if is_one { 0 } else { silent + 1 };
            }
            came
        });
        for n in 0..100 {
            let (rate, discipline, limit) =
                [(19, PINK, "2000p"), (20, FQ, "1000p"), (18, "\"droptail\"", "1000p")][n % 3];
            let path = lab.write(&file(rate, discipline, limit));
            wait_until("a file is applied", || {
                let (done, said) = lab.set(&["apply", path.to_str().unwrap()]);
                // The queues before still hold packets.
                assert!(done || said.contains("try again"), "{said}");
                done
            });
        }
        assert_eq!(lab.status()["forward"]["rate_bps"].as_u64(), Some(19_000_000));
        let _ = flow.join().unwrap();
        over.store(true, std::sync::atomic::Ordering::Relaxed);
        (sender.join().unwrap(), receiver.join().unwrap())
    });
    assert!(sent > 500 && sent == came, "{sent} {came}");
    let before = lab.status();
    assert_eq!((drops(&before["forward"]), drops(&before["reverse"])), (0, 0));
    assert_eq!(before["reverse"]["aqm"], "pink");
    std::thread::scope(|threads| {
        threads.spawn(|| transfer(&lab, "-C cubic -t 2"));
        let short = || lab.status()["link"]["remarks"].to_string().contains("of the download and the upload units");
        wait_until("the status tells that the path is short", short);
    });
    let after = gateway.end();
    let written = |status: &Value| status["windows"][1]["rewritten"].as_u64().unwrap();
    assert!(written(&after) > written(&before) + 10, "{} {}", before["windows"], after["windows"]);
}

#[test]
fn what_a_file_cannot_change_is_refused_by_its_line() {
    let Some(lab) = Lab::new(QUICK) else { return };
    // As `nohup` and some supervisors start it.
    let gateway = lab.govern_under(&["env", "--ignore-signal=HUP"], LINK);
    let rate = || lab.status()["forward"]["rate_bps"].as_u64().unwrap() / 1_000_000;
    let apply = |text: &str, more: &[&str]| {
        let path = lab.write(text);
        lab.set(&[&["apply", path.to_str().unwrap()], more].concat())
    };
    let (done, said) = apply(LINK, &[]);
    assert!(done && said.contains("nothing differs"), "{said}");
    // The first two lines are those of every test.
    for (text, line, why) in [
        (format!("queue = 7020\n{LINK}"), ":3:", "error: `queue` cannot change"),
        (LINK.replace("wan = \"eth0\"", "wan = \"eth1\""), ":6:", "error: `interfaces.wan` cannot change"),
        (LINK.replace("rate =", "raet ="), ":8:", "did you mean `rate`?"),
    ] {
        let (done, said) = apply(&text, &[]);
        assert!(!done && said.contains(line) && said.contains(why), "{said}");
    }
    assert_eq!(rate(), 10);
    let slower = LINK.replace("10Mbit/s", "6Mbit/s");
    let (done, said) = apply(&slower, &["--confirm", "2s"]);
    assert!(done && said.contains("rate=6Mbit/s") && said.contains("returns unless"), "{said}");
    wait_until("the former rate returns", || rate() == 10);
    assert!(apply(&slower, &[]).0 && rate() == 6);
    assert!(lab.set(&["rollback"]).0 && rate() == 10);
    // The file of the run is now the slower one.
    gateway.send(Signal::SIGHUP);
    wait_until("the file is applied", || {
        rate() == 6 && lab.status()["events"].to_string().contains("was applied (SIGHUP)")
    });
    lab.write("nonsense");
    gateway.send(Signal::SIGHUP);
    wait_until("the mistake is told", || lab.status()["events"].to_string().contains("was not applied (SIGHUP)"));
    assert_eq!(rate(), 6);
    let script = format!("{slower}command = [\"echo\", \"7Mbit/s\"]\nevery = \"1s\"\n");
    assert!(apply(&script, &[]).0);
    wait_until("the script tells the rate", || rate() == 7);
    assert!(apply(&slower, &[]).0 && rate() == 6);
    gateway.end();
}

#[test]
fn what_cannot_be_is_refused_and_nothing_is_changed() {
    let Some(lab) = Lab::new(QUICK) else { return };
    let refused = |text: &str| {
        let path = lab.write(text);
        let output = lab.ask(&["run", path.to_str().unwrap()]);
        assert_eq!((output.status.code(), lab.rules().as_str()), (Some(2), ""));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let key = refused(&LINK.replace("rate", "raet"));
    assert!(key.contains("gateway.toml:") && key.contains("did you mean `rate`?"), "{key}");
    let gateway = lab.govern(LINK);
    let path = lab.file("second.toml");
    std::fs::write(&path, format!("name = \"{}b\"\n{LINK}", lab.namespace("r"))).unwrap();
    let output = lab.ask(&["run", path.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("has the queue 7010"), "{said}");
    assert_eq!(lab.rules().matches("NFQUEUE").count(), 4, "the first one goes on");
    gateway.end();
}

#[test]
fn who_only_observes_changes_nothing() {
    let Some(lab) = Lab::new(QUICK) else { return };
    // At 12 kbit/s a datagram would take a third of a second.
    let gateway = lab.govern(&format!("observe = true\n{}", LINK.replace("10Mbit/s", "12kbit/s")));
    let (client, server) = (lab.socket("c", "10.88.0.2:0"), lab.socket("s", "10.77.0.2:9999"));
    wait_until("packets pass", || passes(&client, &server, "10.77.0.2:9999"));
    send(&client, 100);
    wait_until("all are seen", || lab.status()["observed"][1]["packets"].as_u64() >= Some(100));
    let status = gateway.end();
    assert_eq!(
        (status["state"].as_str(), status["reverse"]["arrived"]["packets"].as_u64()),
        (Some("observing"), Some(0))
    );
}

/// What a modem's script tells is the rate; what it tells wrongly is not; what somebody sets holds until it is taken back.
#[test]
fn a_script_tells_the_rates() {
    let Some(lab) = Lab::new(QUICK) else { return };
    let told = lab.file("told");
    let tell = |text: &str| std::fs::write(&told, text).unwrap();
    tell("8Mbit/s 1Mbit/s\n");
    let source = format!(
        "command = [\"cat\", \"{}\"]\nevery = \"1s\"\nstale_after = \"2s\"\nplain_after = \"6s\"\n",
        told.display()
    );
    let gateway = lab.govern(&format!("{LINK}{source}"));
    let rates = || ["forward", "reverse"].map(|way| lab.status()[way]["rate_bps"].as_u64().unwrap());
    wait_until("the rates are those of the script", || rates() == [8_000_000, 1_000_000]);
    tell("8Mbit/s 900Mbit/s\n");
    let marked = |word: &str| lab.status()["marks"].to_string().contains(word);
    wait_until("a rate beyond the bounds is told", || marked("allowed are") && marked("the last good rates hold"));
    assert_eq!(rates(), [8_000_000, 1_000_000]);
    wait_until("packets pass at last", || rates() == [1_000_000_000_000; 2] && marked("as if there were no shaper"));
    tell("7Mbit/s\n");
    wait_until("it governs again", || {
        rates() == [7_000_000, 1_000_000] && lab.status()["marks"] == serde_json::json!([])
    });
    assert!(lab.set(&["set", "rate=3Mbit/s"]).0);
    std::thread::sleep(Duration::from_millis(1500));
    let by_hand = || lab.status()["link"]["source"]["state"] == "by_hand";
    assert!(rates()[0] == 3_000_000 && by_hand());
    assert!(lab.set(&["set", "reverse_rate=2Mbit/s", "--for", "1s"]).0);
    wait_until("the other rate returns", || lab.status()["lapse"].is_null());
    std::thread::sleep(Duration::from_millis(1500));
    assert!(rates() == [3_000_000, 1_000_000] && by_hand(), "what was set before holds: {}", lab.status());
    assert!(lab.set(&["rollback"]).0);
    wait_until("the script tells again", || rates()[0] == 7_000_000);
    assert!(lab.set(&["set", "rate=4Mbit/s"]).0 && by_hand());
    let (done, told) = lab.set(&["apply", lab.file("gateway.toml").to_str().unwrap()]);
    assert!(done && told == "source=command\n", "{told}");
    wait_until("the file says that the script tells", || rates()[0] == 7_000_000);
    let changes = lab.status()["changes"].as_array().unwrap().clone();
    let changes: Vec<String> =
        changes.iter().map(|one| format!("{}={}", one["key"], one["value"]).replace('"', "")).collect();
    let expected = [
        "rate=3Mbit/s",
        "reverse_rate=2Mbit/s",
        "reverse_rate=1Mbit/s",
        "rate=7Mbit/s",
        "source=command",
        "rate=4Mbit/s",
        "source=command",
    ];
    assert_eq!(changes, expected);
    gateway.end();
}

/// A file which says something new of the source of the rates begins with it anew; one that changes a limit does not.
#[test]
fn a_file_that_changes_a_limit_leaves_the_script_alone() {
    const CODEL: &str = "[discipline]\nname = \"fq-codel\"\n";
    let Some(lab) = Lab::new(QUICK) else { return };
    let told = lab.file("told");
    let file = |limit: &str, every: &str| {
        let command = format!("command = [\"cat\", \"{}\"]\nevery = \"{every}\"\n", told.display());
        format!("{LINK}limit = \"{limit}\"\n{command}stale_after = \"1h\"\nplain_after = \"1h\"\n{CODEL}")
    };
    std::fs::write(&told, "8Mbit/s 1Mbit/s\n").unwrap();
    let gateway = lab.govern(&file("200p", "1h"));
    let rate = || lab.status()["forward"]["rate_bps"].as_u64().unwrap();
    let apply = |text: &str| {
        let (done, said) = lab.set(&["apply", lab.write(text).to_str().unwrap()]);
        assert!(done, "{said}");
    };
    wait_until("the rate is that of the script", || rate() == 8_000_000);
    std::fs::write(&told, "7Mbit/s 1Mbit/s\n").unwrap();
    apply(&file("300p", "1h"));
    // Twice as long as it takes until what a script says is heard.
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(rate(), 8_000_000);
    apply(&file("300p", "30min"));
    wait_until("the script is asked anew", || rate() == 7_000_000);
    gateway.end();
}

/// Downloads over a link of 10 Mbit/s, of which 14 Mbit/s are said: the mark tells both rates.
#[test]
fn a_bottleneck_behind_the_gateway_is_marked() {
    let Some(lab) = Lab::new("--rate 10Mbit/s --delay 20ms --limit 250kB --reverse-limit 250kB") else { return };
    let gateway = lab.govern(&format!("{}[discipline]\nname = \"fq-codel\"\n", LINK.replace("10Mbit/s", "14Mbit/s")));
    let behind = std::sync::Mutex::new(Value::Null);
    std::thread::scope(|threads| {
        let run = threads.spawn(|| transfer(&lab, "-C cubic -P 2 -t 9 -R"));
        while !run.is_finished() {
            let found = lab.status()["link"]["behind"].clone();
            if !found.is_null() {
                *behind.lock().unwrap() = found;
            }
            std::thread::sleep(Duration::from_millis(300));
        }
    });
    let (behind, status) = (behind.into_inner().unwrap(), gateway.end());
    if status["stalled"]["times"].as_u64() != Some(0) {
        eprintln!("disturbed: {}", status["stalled"]);
        return;
    }
    assert_eq!((behind["way"].as_str(), behind["set_bps"].as_u64()), (Some("download"), Some(14_000_000)), "{behind}");
    let measured = behind["measured_bps"].as_f64().unwrap();
    assert!((measured / 10e6 - 1.0).abs() < 0.15, "{measured}");
    assert!(status["link"]["wan_least_ms"].as_f64().unwrap() >= 40.0, "{}", status["link"]);
}

/// Four uploads over 2 Mbit/s, of which the file says 4. The rate that carried less than a tenth of such a link was taken from our own
/// spacing and from pauses of programs.
#[test]
fn a_rate_that_nobody_tells_is_found_and_used() {
    let Some(mut lab) = Lab::new("--rate 2Mbit/s --delay 10ms --limit 62kB --reverse-limit 62kB") else { return };
    let estimated = format!("{}rate_from = \"estimate\"\n", LINK.replace("10Mbit/s", "4Mbit/s"));
    let gateway = lab.govern(&format!("{estimated}[discipline]\nname = \"fq-codel\"\n"));
    let run = transfer(&lab, "-C cubic -P 4 -t 12 -O 4");
    let status = gateway.end();
    let link = lab.end_link();
    let used = run["end"]["sum_received"]["bits_per_second"].as_f64().unwrap() / (2e6 * 1448.0 / 1500.0);
    let estimate = status["link"]["estimate_bps"][1].as_f64().unwrap() / 2e6;
    eprintln!("used {used:.3}, thought {estimate:.3}, behind {:?}", link.forward.sojourn_ms);
    if link.disturbed || status["stalled"]["times"].as_u64() != Some(0) {
        return eprintln!("disturbed: {:?}, {}", link.disturbed_by, status["stalled"]);
    }
    assert!(used > 0.85 && (0.8..1.2).contains(&estimate), "{used} {estimate}");
    assert!(link.forward.sojourn_ms.p50 < 40.0, "the modem alone holds 248 ms: {:?}", link.forward.sojourn_ms);
}

/// 200 kbit/s with the codepoint of expedited forwarding beside ten uploads over 1 Mbit/s: CAKE has a tin for it. Without tins it is
/// one of eleven flows.
#[test]
fn expedited_forwarding_keeps_its_rate_beside_ten_uploads() {
    let Some(lab) = Lab::new("--rate 100Mbit/s --delay 5ms") else { return };
    for (tins, keeps) in [("diffserv4", true), ("besteffort", false)] {
        let link = LINK.replace("10Mbit/s", "1Mbit/s");
        let gateway =
            lab.govern(&format!("{link}[discipline]\nname = \"cake\"\ntins = \"{tins}\"\nbandwidth = \"1Mbit/s\"\n"));
        let kept = lab.expedited("c", ["s", "10.77.0.2"]);
        let status = gateway.end();
        eprintln!("{tins}: {kept:.4}");
        if status["stalled"]["times"].as_u64() != Some(0) {
            return eprintln!("disturbed: {}", status["stalled"]);
        }
        assert!(if keeps { kept >= 0.995 } else { kept < 0.9 }, "{tins}: {kept}");
    }
}

/// Page, Prometheus, status and the rules of the kernel tell the same numbers.
#[test]
fn every_number_of_the_page_is_that_of_the_status() {
    let Some(lab) = Lab::new(QUICK) else { return };
    // printf %s look | sha256sum; printf %s change | sha256sum
    let page = "[page]\nreaders = [\"3c01eba119e00d79c82b6f65d70bc5f1044d568618bf41377e6d1432023fc2b8\"]\n\
                operators = [\"12ea12eace7d655f471ce55e34f89b1b77a3d9d05a445ca82877dd2235beaa51\"]\n";
    let gateway = lab.govern(&format!("{LINK}{page}"));
    let (client, server) = (lab.socket("c", "10.88.0.2:0"), lab.socket("s", "10.77.0.2:9999"));
    wait_until("packets pass", || passes(&client, &server, "10.77.0.2:9999"));
    let get = |path: &str| lab.page(&format!("GET {path} HTTP/1.1\nAuthorization: Bearer look"));
    wait_until("the page answers", || get("/api/now").contains("\"elapsed_s\""));
    assert!(lab.page("GET /api/now HTTP/1.1").starts_with("HTTP/1.1 401"), "nothing without a token");
    assert!(lab.page("GET / HTTP/1.1").contains("<label for=\"token\">"));
    send(&client, 50);
    let mut last = (Value::Null, Value::Null, String::new());
    wait_until("all tell the same", || {
        // Nothing passes between equal answers.
        let before = lab.status();
        std::thread::sleep(Duration::from_millis(1500));
        let now: Value = serde_json::from_str(body(&get("/api/now"))).unwrap();
        last = (before, now["status"].clone(), body(&get("/metrics")).to_owned());
        ["forward", "reverse", "windows", "delays", "flows", "past", "unclassified"]
            .iter()
            .all(|key| last.0[key] == last.1[key])
            && lab.status()["reverse"]["arrived"] == last.0["reverse"]["arrived"]
    });
    let (status, _, metrics) = last;
    for (name, pointer) in [
        ("arrived_packets_total{direction=\"upload\"}", "/reverse/arrived/packets"),
        ("delivered_bytes_total{direction=\"upload\"}", "/reverse/delivered/bytes"),
        ("arrived_bytes_total{direction=\"download\"}", "/forward/arrived/bytes"),
        ("queue_delay_seconds_count{direction=\"upload\"}", "/delays/1/count"),
        ("opened_times_total", "/past/times"),
    ] {
        let value = metrics.lines().find_map(|line| line.strip_prefix(&format!("penstock_gateway_{name} ")));
        let value: Option<f64> = value.and_then(|value| value.parse().ok());
        assert_eq!(value, status.pointer(pointer).and_then(Value::as_f64), "{name}: {metrics}");
    }
    assert!(status["reverse"]["arrived"]["packets"].as_u64() >= Some(50));
    let answer = get("/api/history?span=600");
    let rows = body(&answer);
    assert!(
        serde_json::from_str::<Value>(rows).unwrap()["rows"].as_array().is_some_and(|rows| !rows.is_empty()),
        "{rows}"
    );
    let set = "{\"values\":{\"rate\":\"6Mbit/s\"},\"for\":\"1h\"}";
    let post = |token: &str| {
        lab.page(&format!(
            "POST /api/set HTTP/1.1\nContent-Type: application/json\nAuthorization: Bearer {token}\n\n{set}"
        ))
    };
    assert!(post("look").starts_with("HTTP/1.1 403"));
    assert!(post("change").starts_with("HTTP/1.1 200"), "{}", post("change"));
    assert_eq!(lab.status()["forward"]["rate_bps"].as_u64(), Some(6_000_000));
    let user = format!(
        "for p in $(pgrep -f '^penstock-gateway page'); do grep -q {} /proc/$p/cmdline && grep ^Uid /proc/$p/status; done",
        lab.name()
    );
    assert!(lab.sh("r", &user).lines().all(|line| !line.contains("\t0")), "the page has no rights of root");
    gateway.end();
    wait_until("the page ends with its gateway", || lab.page("GET / HTTP/1.1").is_empty());
}

/// The interface is that of the gateway that runs; packets have their way and their headers, and nothing more.
#[test]
fn headers_are_recorded_and_support_is_packed() {
    let Some(lab) = Lab::new(QUICK) else { return };
    let gateway = lab.govern(LINK);
    let client = lab.socket("c", "10.88.0.2:0");
    let (done, said) = std::thread::scope(|threads| {
        let run = threads.spawn(|| lab.set(&["record", "2s", "--out", "r.pcap"]));
        while !run.is_finished() {
            send(&client, 10);
        }
        run.join().unwrap()
    });
    assert!(done && said.contains("packets of eth0 in r.pcap, headers only"), "{said}");
    let capture = std::fs::read(lab.file("r.pcap")).unwrap();
    assert_eq!(capture[20..24], [0, 0, 0, 113], "LINUX_SLL");
    let udp = |packet: &[u8]| packet.len() == 44 && packet[..2] == [0, 4] && packet[16] == 0x45 && packet[25] == 17;
    assert!(capture.windows(44).any(udp), "a datagram that left, without its 500 bytes");
    assert!(!capture.windows(20).any(|bytes| bytes == [7; 20]), "no payload");
    let (done, said) = lab.set(&["support", "gateway.toml", "--out", "s.tar.gz"]);
    assert!(done, "{said}");
    let text = lab.sh("r", "tar -xzOf s.tar.gz support/status.json support/gateway.toml support/log.jsonl");
    assert!(text.contains("\"do\":\"start\""), "the log that the file names: {text}");
    assert!(text.contains("\"state\": \"governing\"") && text.contains("wan = \"eth0\""), "{text}");
    gateway.end();
}

/// One subscriber with a guarantee beside a flood with a ceiling, while others come, go and change: a few dozen times, or as
/// often as `PENSTOCK_CHANGES` says. Nobody who stays loses a packet, and the flood stays below its ceiling.
#[test]
fn subscribers_change_under_load_and_nobody_else_loses_a_packet() {
    let Some(lab) = Lab::new(QUICK) else { return };
    let changes = std::env::var("PENSTOCK_CHANGES").map_or(24, |changes| changes.parse().unwrap());
    lab.sh("c", "ip addr add 10.88.0.3/24 dev eth0");
    let file_of = |most: usize, n: usize| {
        let others = (0..most).filter(|at| !(at + n).is_multiple_of(7)).map(|at| {
            let (weight, ceiling) = (1 + (at + n) % 3, 1 + (at * n) % 5);
            let (a, b) = (100 + at / 250, at % 250);
            let prefixes = format!("[subscribers.s{at}]\nprefixes = [\"10.{a}.{b}.0/24\"]\n");
            format!("{prefixes}weight = {weight}\nceiling = \"{ceiling}Mbit/s\"\n")
        });
        let link = LINK.replace("10Mbit/s\"", "10Mbit/s\"\nlimit = \"2000p\"");
        format!(
            "{link}[subscribers.keeps]\nprefixes = [\"10.88.0.2/32\"]\nreverse_guaranteed = \"6Mbit/s\"\n\
             [subscribers.flood]\nprefixes = [\"10.88.0.3/32\"]\nreverse_ceiling = \"3Mbit/s\"\n{}",
            others.collect::<String>()
        )
    };
    let file = |n: usize| file_of(20, n);
    let gateway = lab.govern(&file(0));
    let apply = |text: &str, more: &[&str]| {
        let path = lab.write(text);
        lab.set(&[&["apply", path.to_str().unwrap()], more].concat())
    };
    let over = std::sync::atomic::AtomicBool::new(false);
    let goes_on = || !over.load(std::sync::atomic::Ordering::Relaxed);
    let (client, flood) = (lab.socket("c", "10.88.0.2:0"), lab.socket("c", "10.88.0.3:0"));
    let sent = std::thread::scope(|threads| {
        threads.spawn(|| {
            while goes_on() {
                send(&flood, 1);
                (0..2).for_each(|_| drop(flood.send_to(&[7; 500], "10.77.0.2:9999")));
            }
        });
        let sender = threads.spawn(|| {
            let mut sent = 0;
            while goes_on() {
                send(&client, 10);
                sent += 10;
            }
            sent
        });
        for n in 1..=changes {
            let (done, said) = apply(&file(n), &[]);
            assert!(done && said.contains("subscribers="), "{said}");
        }
        // With a thousand subscribers a build without optimization changes its trees so slowly that CoDel may drop.
        for n in 0..if std::env::var_os("PENSTOCK_CHANGES").is_some() { 2 } else { 0 } {
            let (done, said) = apply(&file_of(1000, n), &[]);
            assert!(done && said.contains("subscribers="), "{said}");
        }
        assert!(apply(&file(changes), &[]).0);
        over.store(true, std::sync::atomic::Ordering::Relaxed);
        sender.join().unwrap()
    });
    let of = |status: &Value, name: &str| {
        let all = status["subscribers"].as_array().unwrap().clone();
        all.into_iter().find(|one| one["name"] == name).map_or(Value::Null, |one| one["reverse"].clone())
    };
    wait_until("all packets of who stays are sent", || {
        of(&lab.status(), "keeps")["waiting"]["packets"].as_u64() == Some(0)
    });
    // What is temporary returns, and what cannot be kept is refused.
    let names = || lab.status()["subscribers"].as_array().unwrap().len();
    let (before, alone) = (names(), file(0).split("[subscribers.s").next().unwrap().to_owned());
    assert!(apply(&alone, &["--confirm", "1s"]).0 && names() == 3);
    wait_until("the former subscribers return", || names() == before);
    let (done, said) = apply(&file(0).replace("6Mbit/s", "16Mbit/s"), &[]);
    assert!(!done && said.contains("16Mbit/s are guaranteed") && said.contains("(`rate` in line 8)"), "{said}");
    // Before the end, which lets go at once what waits.
    let status = lab.status();
    gateway.end();
    let [keeps, flood] = ["keeps", "flood"].map(|name| of(&status, name));
    assert_eq!(keeps["dropped"].as_u64(), Some(0), "{keeps}");
    let (past, queues) = (&status["past"], &status["kernel_queues"]);
    let all = || format!("{sent} {keeps} {past} {queues} {} {}", of(&status, "flood"), status["stalled"]);
    assert!(keeps["sent"]["packets"].as_u64() >= Some(sent) && sent >= 10, "{}", all());
    assert_eq!(keeps["sent"], keeps["arrived"]);
    let most = 3e6 / 8.0 * status["elapsed_s"].as_f64().unwrap() + 3.0 * 1514.0;
    assert!(flood["sent"]["bytes"].as_f64().unwrap() <= most, "{flood} {most}");
    eprintln!("{changes} changes, {sent} packets of one who stays, none lost; the flood: {flood}");
}

/// Packets and bytes that came of a subscriber with this name; `None` is for all others.
fn came(status: &Value, way: &str, name: Option<&str>) -> u64 {
    let all = status["subscribers"].as_array().unwrap();
    let one = all.iter().find(|one| one["name"].as_str() == name).unwrap();
    one[way]["arrived"]["packets"].as_u64().unwrap()
}

/// All addresses of an interface are of one subscriber, in both directions, until the interface is another one.
#[test]
fn a_hardware_address_is_a_subscriber() {
    let Some(lab) = Lab::new(QUICK) else { return };
    lab.sh("c", "ip addr add 10.88.0.3/24 dev eth0");
    lab.sh("c", "ip link set eth0 address 02:00:5e:00:53:01");
    let device = "[subscribers.device]\nprefixes = [\"02:00:5E:00:53:01\", \"10.99.0.0/16\"]\n";
    let gateway = lab.govern(&format!("{}{device}", LINK.replace("wan = \"eth0\"", "wan = \"eth0\"\nlan = \"eth1\"")));
    let server = lab.socket("s", "10.77.0.2:9999");
    let clients = ["10.88.0.2:0", "10.88.0.3:0"].map(|address| lab.socket("c", address));
    for client in &clients {
        wait_until("packets pass up", || passes(client, &server, "10.77.0.2:9999"));
        // Something from each address has come, so what goes back is known.
        let to = client.local_addr().unwrap();
        let mut buffer = [0; 600];
        wait_until("packets pass down", || {
            let _ = server.send_to(&[7; 100], to);
            client.recv(&mut buffer).is_ok()
        });
    }
    let mut status = Value::Null;
    wait_until("all are counted", || {
        status = lab.status();
        ["forward", "reverse"].iter().all(|way| came(&status, way, Some("device")) >= 2)
    });
    assert_eq!((came(&status, "reverse", None), came(&status, "forward", None)), (0, 0));
    nix::sys::socket::setsockopt(&clients[1], nix::sys::socket::sockopt::Ipv4Tos, &(46 << 2)).unwrap();
    wait_until("its calls are told", || {
        send(&clients[1], 5);
        let one = &lab.status()["callers"][0];
        one["name"] == "device" && one["download"].is_null() && one["upload"]["mos_estimate"].as_f64() > Some(1.0)
    });
    let (done, said) = lab.set(&["top", "--by", "node"]);
    assert!(done && said.contains(" device\n") && !said.contains("10.88.0"), "one row: {said}");
    lab.sh("c", "ip link set eth0 address 02:00:5e:00:53:02; ip route add default via 10.88.0.1 || true");
    wait_until("another interface has the address", || {
        passes(&clients[0], &server, "10.77.0.2:9999") && came(&lab.status(), "reverse", None) >= 1
    });
    let (_, said) = lab.set(&["top", "--by", "node"]);
    assert!(said.contains("10.88.0.2 (not provisioned)"), "{said}");
    gateway.end();
}

/// The commands of the guide, as written, on a router whose interfaces have the names that it uses.
#[test]
fn the_guide_works_as_written() {
    let Some(lab) = Lab::new(QUICK) else { return };
    let page = include_str!("../../../../docs/gateway.md");
    let (_, rest) = page.split_once("## Five minutes").unwrap();
    let (guide, _) = rest.split_once("\n## ").unwrap();
    let blocks: Vec<&str> =
        guide.split("```").skip(1).step_by(2).map(|block| block.strip_prefix("sh\n").unwrap()).collect();
    assert!(blocks.len() >= 6, "{blocks:?}");
    let bin = std::path::Path::new(GATEWAY).parent().unwrap();
    // Its control socket and its log are those of this shell alone.
    let script = format!(
        "set -euo pipefail\nmkdir -p /run/penstock /var/log/penstock\nmount -t tmpfs none /run/penstock\n\
         mount -t tmpfs none /var/log/penstock\nexport PATH={}:$PATH\n{}\necho all; iptables-legacy-save -t mangle\n",
        bin.display(),
        blocks.join("\n")
    );
    let output = lab.command("r", &["unshare", "--mount", "bash", "-c", &script]).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success(), "{said}");
    for expected in ["is right: pink at 9.5Mbit/s down", "observing eth0", "state: ", "returns after 7200s", "all"] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    assert!(!said.rsplit("all\n").next().unwrap().contains("penstock"), "nothing remains: {said}");
}

/// The ones' complement sum of a datagram of UDP over IPv4 with its pseudo header, which is 0xffff if its checksum is right (RFC 768).
fn udp_sum(packet: &[u8]) -> u64 {
    let (header, datagram) = packet.split_at(usize::from(packet[0] & 15) * 4);
    let pseudo = [&header[12..20], &[0, 17], &datagram[4..6], datagram].concat();
    let sum: u64 = pseudo.chunks(2).map(|w| u64::from(w[0]) << 8 | u64::from(*w.get(1).unwrap_or(&0))).sum();
    (sum & 0xffff) + (sum >> 16)
}

/// A datagram of 300 bytes whose first packet is one of SCONE with this signal, if `version` says so.
fn quic(signal: u8, version: u32) -> Vec<u8> {
    let version = version | u32::from(signal & 1) << 31;
    let mut datagram = [&[0xc0 | signal >> 1][..], &version.to_be_bytes(), &[1, 9, 0]].concat();
    datagram.resize(300, 0x5a);
    datagram
}

/// Flows of QUIC that ask are told their part, in both directions, and nothing else of them changes.
#[test]
fn scone_packets_are_lowered_to_the_part_of_their_flow() {
    const SCONE: u32 = 0x6f7d_c0fd;
    let Some(lab) = Lab::new(QUICK) else { return };
    let gateway = lab.govern(&format!("scone = true\n{LINK}"));
    let (client, server) = (lab.socket("c", "10.88.0.2:0"), lab.socket("s", "10.77.0.2:9999"));
    let mut buffer = [0; 600];
    // Sent until it comes, because the machine may be busy: a flow gets a few signals.
    let mut comes = |from: &UdpSocket, to: &UdpSocket, datagram: &[u8]| {
        (0..50).find_map(|_| {
            let _ = from.send_to(datagram, to.local_addr().unwrap());
            to.recv(&mut buffer).ok().map(|len| buffer[..len].to_vec())
        })
    };
    // 10 Mbit/s are signal 40.
    assert_eq!(comes(&client, &server, &quic(127, SCONE)).unwrap(), quic(40, SCONE));
    assert_eq!(comes(&server, &client, &quic(41, SCONE)).unwrap(), quic(40, SCONE));
    for same in [quic(40, SCONE), quic(17, SCONE), quic(127, 1), vec![7; 300]] {
        assert_eq!(comes(&client, &server, &same).unwrap(), same, "it stays");
    }
    // Checksums as they are on the wire, which kernels do not always verify.
    let open = || {
        use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, socket};
        socket(AddressFamily::Inet, SockType::Raw, SockFlag::SOCK_NONBLOCK, SockProtocol::Udp).unwrap()
    };
    let raw = std::fs::File::from(lab.run("s", open));
    let other = lab.socket("c", "10.88.0.2:0");
    let mut packet = [0; 600];
    wait_until("a lowered packet is seen", || {
        let _ = other.send_to(&quic(127, SCONE), "10.77.0.2:9999");
        std::thread::sleep(Duration::from_millis(10));
        let len = (&raw).read(&mut packet).unwrap_or(0);
        len == 328 && packet[28..328] == quic(40, SCONE)
    });
    assert_eq!(udp_sum(&packet[..328]), 0xffff);
    assert_ne!(packet[26..28], [0, 0], "it has a checksum");
    let status = gateway.end();
    let count = |way: usize, key: &str| status["scone"][way][key].as_u64().unwrap();
    assert!(count(0, "lowered") >= 1 && count(1, "lowered") >= 2 && count(1, "kept") >= 2, "{}", status["scone"]);
    for way in [0, 1] {
        assert_eq!(count(way, "seen"), count(way, "lowered") + count(way, "kept") + count(way, "spared"));
    }
    assert_eq!(count(1, "flows"), 2);
}

/// Without the switch every signal stays.
#[test]
fn scone_is_off_by_default() {
    let Some(lab) = Lab::new(QUICK) else { return };
    let gateway = lab.govern(LINK);
    let (client, server) = (lab.socket("c", "10.88.0.2:0"), lab.socket("s", "10.77.0.2:9999"));
    let mut buffer = [0; 600];
    wait_until("it comes as it was sent", || {
        let _ = client.send_to(&quic(127, 0x6f7d_c0fd), "10.77.0.2:9999");
        server.recv(&mut buffer).is_ok_and(|len| buffer[..len] == quic(127, 0x6f7d_c0fd))
    });
    assert!(gateway.end()["scone"].is_null());
}
