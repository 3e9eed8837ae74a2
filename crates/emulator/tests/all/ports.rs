//! Ports: the emulator reads and writes frames of two interfaces that are there, between two hosts.

use crate::lab::{EMULATOR, processor, report};
use penstock_linux::testing::{PATIENCE, Program, Testbed};
use penstock_trace::packets::Packets;
use penstock_trace::read::read;
use serde_json::Value;
use std::io::{BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;

/// A host on each side, `l` and `r`, of `m` with the ports `pl` and `pr`, in which the kernel would forward.
fn testbed() -> Option<Testbed> {
    let bed = Testbed::new(&["l", "m", "r"], &[])?;
    for (host, port, address) in [("l", "pl", "10.9.0.1/24"), ("r", "pr", "10.9.0.2/24")] {
        bed.veth([host, "e0"], ["m", port]);
        bed.up(host, "e0", &[address]);
        bed.up("m", port, &[]);
    }
    bed.forward("m");
    Some(bed)
}

fn emulator(bed: &Testbed, arguments: &[&str]) -> Command {
    let middle = bed.namespace("m");
    let mut command = Command::new(EMULATOR);
    command.args(["--left-netns", &middle, "--right-netns", &middle, "--left-port", "pl", "--right-port", "pr"]);
    command.args(["--json", "--duration", "60s"]).args(arguments);
    command
}

fn start(bed: &Testbed, arguments: &[&str]) -> Program {
    Program::ready(emulator(bed, arguments), &["ready: port pl -> port pr"])
}

/// Ends an emulator; returns its report.
fn reported(emulator: Program) -> Value {
    let report = report(emulator);
    assert!(["forward", "reverse"].iter().all(|way| report[way]["refused"] == 0), "{report}");
    report
}

/// Returns what an emulator says that cannot start.
fn refused(bed: &Testbed, arguments: &[&str]) -> String {
    let ended = Program::start(emulator(bed, arguments)).ended();
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    ended.stderr
}

/// Each datagram comes once: the kernel between the hosts, which forwards, has no part in it. ARP passes as well.
#[test]
fn each_datagram_comes_once_and_edited_ones_are_right() {
    let Some(bed) = testbed() else { return };
    let running = start(&bed, &["--rate", "100Mbit/s", "--delay", "1ms"]);
    let (left, right) = (bed.udp("l", "10.9.0.1:7007"), bed.udp("r", "10.9.0.2:7007"));
    for socket in [&left, &right] {
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
    }
    let mut bytes = [0; 1500];
    for number in 0..100_u32 {
        left.send_to(&number.to_be_bytes(), "10.9.0.2:7007").unwrap();
        let (len, from) = right.recv_from(&mut bytes).unwrap();
        assert_eq!((&bytes[..len], from.to_string().as_str()), (&number.to_be_bytes()[..], "10.9.0.1:7007"));
        right.send_to(&bytes[..len], from).unwrap();
        assert_eq!(left.recv(&mut bytes).unwrap(), 4);
    }
    right.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    assert!(right.recv(&mut bytes).is_err(), "a datagram came twice");
    // What is for the port itself is for this machine.
    let own = bed.sh("m", "ip -o link show pl | sed 's/.*link.ether \\([^ ]*\\).*/\\1/'");
    bed.sh("l", &format!("ip neigh replace 10.9.0.9 lladdr {} dev e0", own.trim()));
    left.send_to(&[1], "10.9.0.9:7007").unwrap();
    // Frames are read in order: when the next one has passed, this one has been counted.
    right.set_read_timeout(Some(PATIENCE)).unwrap();
    left.send_to(&[2], "10.9.0.2:7007").unwrap();
    assert_eq!((right.recv(&mut bytes).unwrap(), bytes[0]), (1, 2));
    let report = reported(running);
    assert_eq!([&report["forward"]["frames"]["own"], &report["reverse"]["frames"]["own"]], [1, 0], "{report}");
    for way in ["forward", "reverse"] {
        assert!(report[way]["delivered"]["packets"].as_u64().unwrap() >= 100, "{report}");
        assert_eq!(report[way]["frames"]["taken_apart"], 0);
    }
    assert!(report["unclassified"]["malformed"].as_u64().unwrap() >= 2, "ARP: {report}");
}

/// Hosts send super-packets of up to 64 kB, which are taken apart before the queue: no packet in it is longer than the MTU.
/// A discipline edits segments whose checksums the kernel makes later; what arrives is what was sent.
#[test]
fn merged_segments_are_queued_one_by_one() {
    let Some(bed) = testbed() else { return };
    let file = bed.file("capture.pcapng");
    let arguments = ["--rate", "50Mbit/s", "--delay", "5ms", "--aqm", "pink", "--limit", "200p", "--pcapng"];
    let running = start(&bed, &[&arguments[..], &[file.to_str().unwrap()]].concat());
    let sent: Vec<u8> = (0..1_000_000_u32).map(|n| (n.wrapping_mul(7919) >> 5) as u8).collect();
    let listener = bed.run("r", || TcpListener::bind("10.9.0.2:7008").unwrap());
    let received = std::thread::scope(|scope| {
        let server = scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let mut all = Vec::new();
            stream.read_to_end(&mut all).unwrap();
            all
        });
        let mut stream = bed.run("l", || TcpStream::connect("10.9.0.2:7008").unwrap());
        stream.write_all(&sent).unwrap();
        drop(stream);
        server.join().unwrap()
    });
    assert!(received == sent, "{} of {} bytes", received.len(), sent.len());
    let report = reported(running);
    assert!(report["forward"]["frames"]["taken_apart"].as_u64().unwrap() > 0, "{report}");
    assert_eq!(report["forward"]["frames"]["refused"], 0);
    let packets = Packets::of(read(BufReader::new(std::fs::File::open(&file).unwrap())).unwrap()).unwrap();
    let largest = packets.columns[1].iter().max();
    assert_eq!(largest, Some(&1500), "sizes of IP packets");
}

#[test]
fn frames_may_grow_with_the_mtu_of_the_ports() {
    let Some(bed) = testbed() else { return };
    let running = start(&bed, &["--rate", "100Mbit/s"]);
    for (host, interface) in [("m", "pl"), ("m", "pr"), ("l", "e0"), ("r", "e0")] {
        bed.sh(host, &format!("ip link set {interface} mtu 9000"));
    }
    let (left, right) = (bed.udp("l", "10.9.0.1:7007"), bed.udp("r", "10.9.0.2:7007"));
    right.set_read_timeout(Some(PATIENCE)).unwrap();
    for size in [8000, 100] {
        left.send_to(&vec![7; size], "10.9.0.2:7007").unwrap();
        assert_eq!(right.recv(&mut [0; 9000]).unwrap(), size);
    }
    reported(running);
}

#[test]
fn what_cannot_be_a_port_is_told_with_what_to_do() {
    let Some(bed) = testbed() else { return };
    let rate = ["--rate", "10Mbit/s"];
    let path = format!("/run/netns/{}", bed.namespace("m"));
    let mut both = Command::new(EMULATOR);
    both.args(["--left-netns", &path, "--right-netns", &bed.namespace("m"), "--left-port", "pl", "--right-port", "pl"]);
    let ended = Program::start({
        both.args(rate);
        both
    })
    .ended();
    assert!(ended.code == Some(2) && ended.stderr.contains("pl cannot be both ends"), "{}", ended.stderr);
    bed.sh("m", "ip addr add 10.9.9.1/24 dev pl");
    assert!(refused(&bed, &rate).contains("ip addr flush dev pl"));
    bed.sh("m", "ip addr flush dev pl; ip link set pl up");
    bed.sh("m", "ip link set pr mtu 1400");
    assert!(refused(&bed, &rate).contains("MTUs of 1500 and 1400"));
    bed.sh("m", "ip link add br0 type bridge; ip link set pr master br0");
    assert!(refused(&bed, &rate).contains("ip link set pr nomaster"));
    bed.sh("m", "ip link set pr nomaster down");
    assert!(refused(&bed, &rate).contains("pr is down"));
    let mut one = Command::new(EMULATOR);
    let one = one.args(["--rate", "1Mbit/s", "--left-port", "pl"]).output().unwrap();
    assert!(String::from_utf8_lossy(&one.stderr).contains("both ends must be ports"));
}

/// A port goes down and comes up again: the run goes on, and uses no more of a processor meanwhile. Then it is removed.
#[test]
fn a_port_that_goes_down_comes_back_and_one_that_is_removed_ends_the_run() {
    let Some(bed) = testbed() else { return };
    let running = start(&bed, &["--rate", "10Mbit/s"]);
    let socket = bed.udp("l", "10.9.0.1:7007");
    let other = bed.udp("r", "10.9.0.2:7007");
    other.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let arrives = || {
        (0..50).any(|_| {
            let _ = socket.send_to(&[1], "10.9.0.2:7007");
            other.recv(&mut [0]).is_ok()
        })
    };
    assert!(arrives());
    bed.sh("m", "ip link set pl down");
    let before = processor(running.pid()).0;
    std::thread::sleep(Duration::from_millis(500));
    assert!(processor(running.pid()).0 - before < 25, "it polls all the time");
    bed.sh("m", "ip link set pl up");
    assert!(arrives(), "after the port came up");
    bed.sh("m", "ip link delete pr");
    let ended = running.ended();
    assert_eq!(ended.code, Some(1));
    assert!(ended.stdout.contains("was it removed?"), "{}", ended.stdout);
}
