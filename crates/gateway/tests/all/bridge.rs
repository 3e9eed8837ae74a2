//! A gateway on a bridge of the kernel between namespaces, with real frames.

use crate::lab::{Lab, passes, transfer};
use nix::sys::signal::Signal;
use penstock_linux::port::Port;
use penstock_linux::testing::wait_until;
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const BRIDGE: &str = "mode = \"bridge\"\npatience = \"10s\"\nrealtime = true\n[interfaces]\nwan = \"eth0\"\nlan = \"eth1\"\n\
                      [link]\nrate = \"10Mbit/s\"\n";
const FQ: &str = "[discipline]\nname = \"fq-codel\"\n";

fn arrived(status: &Value) -> u64 {
    status["reverse"]["arrived"]["packets"].as_u64().unwrap()
}

fn sum(pair: &Value) -> u64 {
    pair.as_array().unwrap().iter().map(|n| n.as_u64().or_else(|| n["packets"].as_u64()).unwrap()).sum()
}

/// One flow of TCP with the offloads that interfaces have: merged frames are taken apart. More datagrams than the link carries have
/// the rate that is set.
#[test]
fn traffic_has_the_rate_that_is_set() {
    let Some(lab) = Lab::on_a_bridge() else { return };
    let gateway = lab.govern(&format!("{BRIDGE}{FQ}"));
    transfer(&lab, "-C cubic -t 3");
    let datagrams = transfer(&lab, "-u -l 1472 -b 12M -t 5 -O 1");
    let status = gateway.end();
    assert_eq!((&status["marks"], status["state"].as_str()), (&serde_json::json!([]), Some("governing")));
    assert!(sum(&status["frames"]["taken_apart"]) > 0, "{}", status["frames"]);
    assert_eq!(sum(&status["frames"]["whole"]), 0, "{}", status["frames"]);
    assert_eq!(status["reverse"]["aqm"], "fq-codel");
    // Packets of at most 1500 bytes in the mean: none that is merged has waited.
    let delivered = &status["reverse"]["delivered"];
    let mean = delivered["bytes"].as_f64().unwrap() / delivered["packets"].as_f64().unwrap();
    assert!((1400.0..=1500.0).contains(&mean), "{delivered}");
    if status["stalled"]["times"].as_u64() != Some(0) || lateness_ms(&status) > 5.0 {
        eprintln!("disturbed: {}", status["stalled"]);
        return;
    }
    // 1472 bytes of payload in packets of 1500.
    let rate = datagrams["end"]["sum_received"]["bits_per_second"].as_f64().unwrap() * 1500.0 / 1472.0;
    assert!((rate / 10e6 - 1.0).abs() < 0.005, "{rate}");
}

fn lateness_ms(status: &Value) -> f64 {
    status["reverse"]["lateness_us"]["p99"].as_f64().unwrap_or_default() / 1e3
}

/// PINK writes windows, so that nothing is dropped. The bridge's own interface makes no checksums: every segment that the
/// server gets has a right one, of which the kernel trusts none unseen.
#[test]
fn pink_writes_windows_and_checksums_are_right() {
    let Some(lab) = Lab::on_a_bridge() else { return };
    // ETHTOOL_STXCSUM: what `ethtool -K eth0 tx off` says.
    let off = "import fcntl, socket, struct, array; v = array.array('B', struct.pack('II', 0x17, 0)); \
               s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); \
               fcntl.ioctl(s, 0x8946, struct.pack('16sP', b'eth0', v.buffer_info()[0]))";
    for side in ["r", "c"] {
        lab.sh(side, &format!("python3 -c \"{off}\""));
    }
    let gateway = lab.govern(BRIDGE);
    let over = AtomicBool::new(false);
    let (right, wrong) = std::thread::scope(|threads| {
        let seen = threads.spawn(|| checksums(&lab, &over));
        transfer(&lab, "-C reno -P 4 -t 3");
        transfer(&lab, "-C reno -P 4 -t 3 -R");
        over.store(true, Ordering::Relaxed);
        seen.join().unwrap()
    });
    assert!(right > 1000 && wrong == 0, "{right} right, {wrong} wrong");
    let status = gateway.end();
    assert_eq!(status["reverse"]["aqm"], "pink");
    assert!(
        status["windows"].as_array().unwrap().iter().all(|way| way["rewritten"].as_u64() > Some(100)),
        "{}",
        status["windows"]
    );
    for way in ["forward", "reverse"] {
        let dropped = &status[way]["dropped"];
        assert!(["early", "overflow", "dequeue"].iter().all(|why| dropped[why] == 0), "{way}: {dropped}");
    }
}

/// Counts segments of TCP over IPv4 that the server gets, by whether their checksums are right.
fn checksums(lab: &Lab, over: &AtomicBool) -> (u64, u64) {
    let mut port = port(lab, "s");
    let words = |bytes: &[u8]| {
        let word = |w: &[u8]| u64::from(w[0]) << 8 | u64::from(w.get(1).copied().unwrap_or_default());
        bytes.chunks(2).map(word).sum::<u64>()
    };
    let (mut right, mut wrong) = (0, 0);
    while !over.load(Ordering::Relaxed) {
        while port.advance() {
            let frame = port.frame();
            if frame.bytes.get(12..15) != Some(&[8, 0, 0x45]) || frame.bytes[23] != 6 || frame.virtio.pending.is_some()
            {
                continue;
            }
            let end = 14 + usize::from(u16::from_be_bytes([frame.bytes[16], frame.bytes[17]]));
            let segment = &frame.bytes[34..end];
            let mut sum = words(&frame.bytes[26..34]) + 6 + segment.len() as u64 + words(segment);
            while sum > 0xffff {
                sum = (sum & 0xffff) + (sum >> 16);
            }
            *if sum == 0xffff { &mut right } else { &mut wrong } += 1;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    (right, wrong)
}

/// Addresses are found by ARP and neighbour discovery, which never wait.
/// Frames tell the interface in both directions, and both families are one subscriber.
#[test]
fn a_hardware_address_is_a_subscriber() {
    let Some(lab) = Lab::on_a_bridge() else { return };
    lab.sh("c", "ip link set eth0 address 02:00:5e:00:53:01");
    let gateway = lab.govern(&format!("{BRIDGE}[subscribers.device]\nprefixes = [\"02:00:5e:00:53:01\"]\n"));
    for (client, server) in [("10.77.0.1:0", "10.77.0.2:9999"), ("[fd77::1]:0", "[fd77::2]:9999")] {
        let (client, server) = (lab.socket("c", client), lab.socket("s", server));
        wait_until("datagrams go down", || passes(&server, &client, &client.local_addr().unwrap().to_string()));
        wait_until("datagrams go up", || passes(&client, &server, &server.local_addr().unwrap().to_string()));
    }
    let status = gateway.end();
    let of = |n: usize, way: &str| status["subscribers"][n][way]["arrived"]["packets"].as_u64().unwrap();
    assert_eq!(
        (status["subscribers"][0]["name"].as_str(), status["subscribers"][1]["name"].as_str()),
        (Some("device"), None)
    );
    assert!(of(0, "forward") >= 2 && of(0, "reverse") >= 2, "{}", status["subscribers"]);
    assert_eq!((of(1, "forward"), of(1, "reverse")), (0, 0), "{}", status["subscribers"]);
}

#[test]
fn ipv6_is_governed_and_what_is_not_ip_is_the_kernels() {
    let Some(lab) = Lab::on_a_bridge() else { return };
    let gateway = lab.govern(&format!("{BRIDGE}{FQ}"));
    for (from, to) in [("10.77.0.1:0", "10.77.0.2:9999"), ("[fd77::1]:0", "[fd77::2]:9999")] {
        let (client, server) = (lab.socket("c", from), lab.socket("s", to));
        let before = arrived(&lab.status());
        wait_until(to, || passes(&client, &server, to));
        wait_until("it was governed", || arrived(&lab.status()) > before);
    }
    let status = lab.status();
    assert!(sum(&status["frames"]["not_ip"]) > 0, "ARP: {}", status["frames"]);
    assert!(sum(&status["frames"]["group"]) > 0, "neighbour discovery: {}", status["frames"]);
    assert_eq!(gateway.end()["marks"], serde_json::json!([]));
}

/// Opens the interface of a host as a port.
fn port(lab: &Lab, side: &str) -> Port {
    let opened = || {
        let port = Port::open(1500)?;
        let eth0 = penstock_linux::links::listed()?.into_iter().find(|one| one.name == "eth0").unwrap();
        port.begin(eth0.index).map(|()| port)
    };
    lab.open(side).run(opened).unwrap()
}

/// Frames of a host that is not there, with what stands between its addresses and the datagram: they come out as they went
/// in. What never waits is not governed.
#[test]
fn tags_pass_and_dhcp_and_discovery_do_not_wait() {
    let Some(lab) = Lab::on_a_bridge() else { return };
    let gateway = lab.govern(&format!("{BRIDGE}{FQ}"));
    let (client, mut server) = (port(&lab, "c"), port(&lab, "s"));
    let ipv4 = |ports: [u8; 4]| {
        let header = [0x45, 0, 0, 55, 0, 0, 0, 0, 64, 17, 0x66, 0xb4, 10, 0, 0, 1, 10, 0, 0, 2];
        [&header[..], &ports, &[0, 35, 0, 0], &[0xa5; 27]].concat()
    };
    let datagram = ipv4([1, 2, 3, 4]);
    let solicitation = [&[0x60, 0, 0, 0, 0, 8, 58, 255][..], &[0xfd; 32], &[135, 0, 0, 0, 0, 0, 0, 0]].concat();
    let cases: [(&[u8], &[u8], bool); 7] = [
        (&[0x08, 0x00], &datagram, true),
        (&[0x81, 0x00, 0x20, 0x05, 0x08, 0x00], &datagram, true),
        (&[0x88, 0xa8, 0x00, 0x05, 0x81, 0x00, 0x00, 0x06, 0x08, 0x00], &datagram, true),
        (&[0x88, 0x64, 0x11, 0, 0, 9, 0, 35, 0x00, 0x21], &datagram, true),
        (&[0x08, 0x00], &ipv4([0, 68, 0, 67]), false),
        (&[0x86, 0xdd], &solicitation, false),
        (&[0x81, 0x00, 0x00, 0x05, 0x08, 0x06], &[1; 46], false),
    ];
    for (number, (kind, packet, governed)) in cases.into_iter().enumerate() {
        let addresses = [2, 0, 0, 0, 0, 0xf0 + number as u8, 2, 0, 0, 0, 0, 1];
        let frame = [&addresses[..], kind, packet].concat();
        let before = arrived(&lab.status());
        wait_until(&format!("frame {number} comes through"), || {
            assert_eq!(client.send(std::iter::once([&[0; 10][..], &frame])).0, 0);
            std::thread::sleep(Duration::from_millis(5));
            let mut came = false;
            while server.advance() {
                let frame_there = server.frame();
                let tag = frame_there.tag.map(|tag| tag.map(u16::to_be_bytes).concat()).unwrap_or_default();
                // What the kernel's bridge forwards, and what this process does, may end in padding.
                let whole = [&frame_there.bytes[..12], &tag, &frame_there.bytes[12..]].concat();
                came |= whole.starts_with(&addresses) && whole.starts_with(&frame);
            }
            came
        });
        // A status is computed at most ten times in a second.
        std::thread::sleep(Duration::from_millis(150));
        let after = arrived(&lab.status());
        assert_eq!(after > before, governed, "{number}: {before} {after}");
    }
    assert_eq!(gateway.end()["unclassified"]["malformed"], 0);
}

/// Sends this frame at 15 Mbit/s for two seconds; returns the rate in Mbit/s at which it arrives.
fn flood(client: &Port, server: &mut Port, frame: &[u8]) -> f64 {
    let (start, mut sent, mut came) = (Instant::now(), 0, 0);
    while start.elapsed() < Duration::from_secs(2) {
        while start.elapsed().as_secs_f64() * 15e6 / 8.0 > (sent + frame.len()) as f64 {
            client.send(std::iter::once([&[0; 10][..], frame]));
            sent += frame.len();
        }
        while server.advance() {
            let there = server.frame().bytes;
            came += if there.len() >= frame.len() && there[..12] == frame[..12] { frame.len() } else { 0 };
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(sent > 3_000_000, "{sent}");
    came as f64 * 8e-6 / start.elapsed().as_secs_f64()
}

/// A host that gives its datagrams the ports of DHCP or the form of neighbour discovery, or sends to a group, has no
/// more of the link than with any other, beyond 4 kB in each second.
#[test]
fn no_form_of_a_packet_passes_the_shaper() {
    let Some(lab) = Lab::on_a_bridge() else { return };
    let gateway = lab.govern(&format!("{BRIDGE}{FQ}"));
    let (client, mut server) = (port(&lab, "c"), port(&lab, "s"));
    let v4 = |ports: [u8; 4]| {
        let header = [0x45, 0, 5, 120, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        [&header[..], &ports, &[5, 100, 0, 0], &[0xa5; 1372]].concat()
    };
    let v6 = |next: u8, begin: [u8; 4]| {
        [&[0x60, 0, 0, 0, 5, 80, next, 255][..], &[0x20; 32], &begin, &[5, 80, 0, 0], &[0xa5; 1352]].concat()
    };
    let to = [2, 0, 0, 0, 0, 0xf0];
    let cases: [([u8; 6], [u8; 2], Vec<u8>); 5] = [
        (to, [8, 0], v4([0, 68, 0, 67])),
        (to, [0x86, 0xdd], v6(17, [2, 34, 2, 35])),
        (to, [0x86, 0xdd], v6(58, [135, 0, 0, 0])),
        ([0xff; 6], [8, 0], v4([0, 68, 0, 67])),
        ([0x33, 0x33, 0xff, 0, 0, 1], [0x86, 0xdd], v6(58, [135, 0, 0, 0])),
    ];
    for (number, (to, kind, packet)) in cases.into_iter().enumerate() {
        let frame = [&to[..], &[2, 0, 0, 0, 0, number as u8], &kind, &packet].concat();
        let before = arrived(&lab.status());
        let rate = flood(&client, &mut server, &frame);
        assert!((8.0..10.4).contains(&rate), "{number}: {rate} Mbit/s of 10");
        wait_until("the queue is empty", || lab.status()["reverse"]["waiting"]["packets"] == 0);
        let counted = arrived(&lab.status()) - before;
        assert!(counted > 2000, "{number}: {counted} packets are counted");
    }
    gateway.end();
}

#[test]
fn frames_pass_when_the_process_hangs_or_dies() {
    let Some(lab) = Lab::on_a_bridge() else { return };
    let gateway = lab.govern(&format!("{}{FQ}", BRIDGE.replace("10s", "200ms")));
    let (client, server) = (lab.socket("c", "10.77.0.1:0"), lab.socket("s", "10.77.0.2:9999"));
    let passes = || passes(&client, &server, "10.77.0.2:9999");
    wait_until("packets pass the gateway", || passes() && arrived(&lab.status()) > 0);
    gateway.send(Signal::SIGSTOP);
    wait_until("the gateway hangs", || lab.sh("r", &format!("cat /proc/{}/stat", gateway.0.pid())).contains(" T "));
    // What it has got already and could only send late, after what the kernel forwards until then.
    let old = lab.socket("s", "10.77.0.2:9998");
    client.send_to(&[7], "10.77.0.2:9998").unwrap();
    wait_until("packets pass a gateway that hangs", passes);
    let was_taken = old.recv(&mut [0; 9]).is_err();
    gateway.send(Signal::SIGCONT);
    wait_until("it governs again", || {
        let (before, passed) = (arrived(&lab.status()), passes());
        let status = lab.status();
        let past = &status["past"];
        passed && arrived(&status) > before && past["times"].as_u64() > Some(0) && sum(&status["frames"]["hung"]) > 0
    });
    assert!(old.recv(&mut [0; 9]).is_err(), "what is late never comes");
    let status = lab.status();
    assert!(!was_taken || status["frames"]["late"][1].as_u64() >= Some(1), "{status}");
    let bytes = |way: usize| status["frames"]["hung"][way]["bytes"].as_u64().unwrap();
    assert_eq!(status["past"]["opened"]["bytes"], bytes(0) + bytes(1), "{status}");
    gateway.kill();
    wait_until("packets pass a gateway that is dead", passes);
    let gateway = lab.govern(&format!("{BRIDGE}{FQ}"));
    wait_until("another one governs", || passes() && arrived(&lab.status()) > 0);
    gateway.end();
    wait_until("packets pass without", passes);
}

/// Spanning tree may block a port: then nobody forwards.
#[test]
fn a_port_that_is_blocked_stays_blocked() {
    let Some(lab) = Lab::on_a_bridge() else { return };
    let gateway = lab.govern(&format!("{BRIDGE}{FQ}"));
    let (client, server) = (lab.socket("c", "10.77.0.1:0"), lab.socket("s", "10.77.0.2:9999"));
    let passes = || passes(&client, &server, "10.77.0.2:9999");
    wait_until("packets pass the gateway", passes);
    // A port that comes up listens for half a minute.
    lab.sh(
        "r",
        "ip link set br0 type bridge stp_state 1 forward_delay 3000; ip link set eth1 down; ip link set eth1 up",
    );
    wait_until("the status says so", || lab.status()["marks"].to_string().contains("eth1 does not forward"));
    assert!(!passes() && lab.status()["state"] == "open");
    lab.sh("r", "ip link set br0 type bridge stp_state 0; ip link set eth1 down; ip link set eth1 up");
    wait_until("it governs again", || passes() && lab.status()["state"] == "governing");
    gateway.end();
}

#[test]
fn who_only_observes_leaves_frames_to_the_kernel() {
    let Some(lab) = Lab::on_a_bridge() else { return };
    // At 12 kbit/s a second would be over after a few datagrams.
    let gateway = lab.govern(&format!("observe = true\n{}{FQ}", BRIDGE.replace("10Mbit/s", "12kbit/s")));
    let (client, server) = (lab.socket("c", "10.77.0.1:0"), lab.socket("s", "10.77.0.2:9999"));
    wait_until("packets pass", || passes(&client, &server, "10.77.0.2:9999"));
    (0..100).for_each(|_| drop(client.send_to(&[7; 500], "10.77.0.2:9999")));
    wait_until("all are seen", || lab.status()["observed"][1]["packets"].as_u64() >= Some(100));
    let mut came = 0;
    wait_until("none is missing", || {
        came += usize::from(server.recv(&mut [0; 600]).is_ok_and(|len| len == 500));
        came == 100
    });
    let status = gateway.end();
    assert_eq!((status["state"].as_str(), arrived(&status)), (Some("observing"), 0));
}

#[test]
fn a_bridge_that_cannot_be_is_refused() {
    let Some(lab) = Lab::on_a_bridge() else { return };
    let refused = || {
        let output = lab.ask(&["run", lab.write(BRIDGE).to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(3), "it may come right without another file");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    lab.sh("r", "ip link add d0 type veth peer name d1; ip link set d0 master br0");
    assert!(refused().contains("br0 has another port, d0"), "{}", refused());
    lab.sh("r", "ip link del d0; ip link set eth1 nomaster");
    assert!(refused().contains("ip link set eth1 master br0"), "{}", refused());
}
