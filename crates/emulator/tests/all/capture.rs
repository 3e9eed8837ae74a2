//! The capture of `--pcapng`: real packets between two namespaces, read back by this project's reader and by tshark, beside
//! the report of the same run.

use crate::lab::{emulator, number, report};
use nix::sys::socket::{setsockopt, sockopt::Ipv4Tos};
use penstock_linux::testing::{Program, Testbed, wait_until};
use penstock_trace::packets::{COLUMNS, Packets};
use penstock_trace::read::read;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::BufReader;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Bytes of a datagram with its headers of UDP and IPv4.
const SIZE: u32 = 1000 + 28;

/// An emulator of 10 Mbit/s with a capture, and a directory for files.
struct Run {
    emulator: Program,
    bed: Testbed,
}

impl Run {
    /// Starts an emulator; in the arguments `ROOM/` is the directory. `None` if that is not possible here.
    fn start(arguments: &[&str]) -> Option<Self> {
        let bed = Testbed::new(&["l", "r"], &[])?;
        let words = [&["--rate", "10Mbit/s", "--pcapng", "ROOM/capture.pcapng"], arguments].concat();
        let room = bed.file("");
        let words: Vec<String> = words.iter().map(|word| word.replace("ROOM/", room.to_str().unwrap())).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        Some(Self { emulator: Program::ready(emulator(&bed, &words), &["ready"]), bed })
    }

    /// Returns a socket on the left to a port on the right, with this field of ECN.
    fn socket(&self, ecn: i32) -> UdpSocket {
        let socket = self.bed.udp("l", "10.77.0.1:0");
        setsockopt(&socket, Ipv4Tos, &ecn).unwrap();
        socket.connect("10.77.0.2:9").unwrap();
        socket
    }

    /// Ends the run; returns its report, its capture, and the testbed, in whose directory that is.
    fn end(self) -> (Value, PathBuf, Testbed) {
        (report(self.emulator), self.bed.file("capture.pcapng"), self.bed)
    }
}

/// What a capture and a report say of the forward queue: packets by their fate.
fn in_report(report: &Value) -> BTreeMap<&'static str, u64> {
    let of = |pointer: &str| number(report, &format!("/forward{pointer}"));
    let left = of("/delivered/packets") + of("/in_flight");
    let fates = [
        ("", left - of("/marked")),
        ("mark", of("/marked")),
        ("lost", of("/lost")),
        ("drop_early", of("/dropped/early")),
        ("drop_overflow", of("/dropped/overflow")),
        ("drop_dequeue", of("/dropped/dequeue")),
    ];
    fates.into_iter().filter(|(_, packets)| *packets > 0).collect()
}

/// Returns the fates that tshark reads of an interface; `None` without tshark.
fn in_tshark(file: &Path, interface: &str) -> Option<BTreeMap<String, u64>> {
    let fields = ["-T", "fields", "-e", "frame.interface_name", "-e", "frame.len", "-e", "frame.comment"];
    let output = Command::new("tshark").arg("-r").arg(file).args(fields).output().ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut fates = BTreeMap::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let mut fields = line.split('\t');
        let [name, _len, comment] = [(); 3].map(|()| fields.next().unwrap_or_default());
        if name == interface {
            *fates.entry(comment.split(':').next().unwrap_or_default().to_owned()).or_default() += 1;
        }
    }
    Some(fates)
}

/// Reads the capture with the project's reader: the number of packets that arrived at and that were dropped by the forward
/// queue. All are datagrams, whose headers are whole and whose lengths are those of the wire.
fn in_reader(file: &Path) -> [u64; 2] {
    let packets = Packets::of(read(BufReader::new(std::fs::File::open(file).unwrap())).unwrap()).unwrap();
    assert_eq!((packets.notes.out_of_order, packets.notes.not_ip, &packets.notes.cut_short), (0, 0, &None));
    let column = |name| &packets.columns[COLUMNS.iter().position(|column| *column == name).unwrap()];
    let of_test: Vec<usize> = (0..packets.t_ns.len()).filter(|&i| column("size")[i] == SIZE).collect();
    assert!(of_test.iter().all(|&i| column("payload")[i] == 1000 && column("interface")[i] == 0));
    let forward = column("interface").iter().filter(|one| **one == 0).count();
    [forward as u64, column("dropped").iter().map(|dropped| u64::from(*dropped)).sum()]
}

/// Twice the rate of the link for a third of a second, with and without ECN: CoDel marks the one and drops the other, and
/// the queue of 30 packets overflows.
#[test]
fn each_fate_in_the_capture_is_one_in_the_report() {
    let codel = ["--aqm", "codel", "--set", "ecn=true", "--set", "target=1ms", "--set", "interval=5ms"];
    let Some(run) = Run::start(&[&codel[..], &["--limit", "30p"]].concat()) else { return };
    let sockets = [run.socket(2), run.socket(0)];
    for _ in 0..70 {
        for number in 0..12 {
            let _ = sockets[number % 2].send(&[0x55; 1000]);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(100));
    let (report, file, _bed) = run.end();
    let expected = in_report(&report);
    println!("{expected:?}");
    assert!(["", "mark", "drop_overflow", "drop_dequeue"].iter().all(|fate| expected.contains_key(fate)), "{report}");
    let dropped: u64 = expected.iter().filter(|(fate, _)| fate.starts_with("drop_")).map(|(_, packets)| packets).sum();
    assert_eq!(in_reader(&file), [expected.values().sum(), dropped], "{report}");
    let written = &report["pcapng_file"];
    assert_eq!((&written["lost"], &written["error"]), (&0.into(), &Value::Null));
    if let Some(read) = in_tshark(&file, "forward") {
        let read: BTreeMap<&str, u64> = read.iter().map(|(fate, packets)| (fate.as_str(), *packets)).collect();
        assert_eq!(read, expected);
    }
}

/// The log of a link has the packets of the report, and as many opportunities as the rate: 10 Mbit/s are 833 in a second. It
/// is in the order of time, and a packet leaves by as many milliseconds after its arrival as it says.
#[test]
fn the_log_of_a_link_has_the_packets_of_the_report() {
    let Some(run) = Run::start(&["--limit", "20p", "--uplink-log", "ROOM/log"]) else { return };
    let socket = run.socket(0);
    for _ in 0..100 {
        let _ = socket.send(&[0x55; 1000]);
    }
    let log = run.bed.file("log");
    wait_until("lines come while packets pass", || std::fs::read_to_string(&log).unwrap().contains(" + "));
    // While nothing passes, the opportunities go on.
    let last = |of: &str| {
        let text = std::fs::read_to_string(&log).unwrap();
        let lines = text.lines().filter(|line| !line.starts_with('#') && line.contains(of) && text.ends_with('\n'));
        lines.filter_map(|line| line.split(' ').next()?.parse::<u64>().ok()).max().unwrap_or(0)
    };
    wait_until("a second without packets is in the log", || last(" # ") >= last(" - ") + 1000);
    let (report, _, _bed) = run.end();
    let text = std::fs::read_to_string(log).unwrap();
    assert!(text.starts_with("# ") && text.contains("\n# base timestamp: 0\n"), "{text}");
    let (mut counts, mut bytes, mut last) = (BTreeMap::new(), BTreeMap::new(), 0);
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words[at].parse::<u64>().unwrap();
        assert!(number(0) >= last, "{line} after {last}");
        last = number(0);
        *counts.entry(words[1]).or_default() += 1;
        *bytes.entry(words[1]).or_default() += number(if words[1] == "d" { 3 } else { 2 });
        assert!(words[1] != "-" || number(3) <= number(0), "{line}");
    }
    let of = |pointer: &str| crate::lab::number(&report, &format!("/forward{pointer}"));
    let overflow = of("/dropped/overflow");
    assert!(overflow > 0, "{report}");
    let expected = BTreeMap::from([("+", of("/arrived/packets")), ("-", of("/delivered/packets")), ("d", overflow)]);
    let opportunities = counts.remove("#").unwrap();
    assert_eq!(counts, expected);
    assert_eq!((bytes["+"], bytes["-"]), (of("/arrived/bytes"), of("/delivered/bytes")));
    // The log ends with the last event, or with the last second.
    let exact = last as f64 / 1e3 * 10e6 / 8.0 / 1500.0;
    assert!((opportunities as f64 - exact).abs() <= 2.0, "{opportunities} instead of {exact}");
}

#[test]
fn packets_that_the_wire_lost_are_told() {
    let Some(run) = Run::start(&["--loss", "0.5"]) else { return };
    let socket = run.socket(0);
    for _ in 0..100 {
        let _ = socket.send(&[0x55; 1000]);
    }
    std::thread::sleep(Duration::from_millis(300));
    let (report, file, _bed) = run.end();
    let expected = in_report(&report);
    assert!(expected["lost"] > 0 && report["pcapng_file"]["lost"] == 0, "{report}");
    assert_eq!(in_reader(&file), [expected.values().sum(), 0]);
    if let Some(read) = in_tshark(&file, "forward") {
        assert_eq!(read["lost"], expected["lost"]);
    }
}
