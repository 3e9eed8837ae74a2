//! Captures: what a reader finds in the file agrees with what the summary counts.

use penstock_core::units::{Instant, Span};
use penstock_sim::summary::Summary;
use penstock_sim::{Scenario, Simulation};
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file which only this test uses.
fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn captured(text: &str, path: &Path) -> Summary {
    let scenario = Scenario::parse(text, "capture.toml").unwrap_or_else(|e| panic!("{e}"));
    let mut simulation = Simulation::new(&scenario);
    simulation.capture_to(Box::new(BufWriter::new(File::create(path).unwrap())), &scenario).unwrap();
    simulation.advance(Span::MAX).unwrap();
    simulation.finish_capture().unwrap();
    simulation.summary()
}

/// Two bottlenecks: RED, which marks packets where it can and is too short for bursts, and CoDel. The first one loses
/// packets on its wire; its queue, and therefore the capture, does not know of these losses.
const TWO_HOPS: &str = r#"
duration = "6s"
seed = 3
[topology]
kind = "parking-lot"
hops = [
  { rate = "2Mbit/s", delay = "10ms", limit = "20p", aqm = { name = "red", min_threshold = "4p", max_threshold = "18p", weight = 0.02, ecn = true }, loss = 0.002 },
  { rate = "2Mbit/s", delay = "5ms", limit = "80kB", aqm = { name = "codel" } },
]
[[flows]]
kind = "bulk"
count = 2
from = "r0"
to = "r2"
tcp = { cc = "newreno", ecn = true }
[[flows]]
kind = "bulk"
count = 2
start = "500ms"
from = "r0"
to = "r2"
[[flows]]
kind = "cbr"
rate = "300kbit/s"
from = "r1"
to = "r2"
"#;

/// Counts the packets that were sent or dropped at any bottleneck.
fn all_packets(summary: &Summary) -> u64 {
    summary.bottlenecks.iter().map(|b| b.packets_all + b.drops_overflow + b.drops_aqm).sum()
}

/// One packet as `tshark` reports it.
#[derive(Debug)]
struct Row {
    ns: u64,
    interface: String,
    comment: String,
    len: u64,
    ce: bool,
    seq: Option<u32>,
}

fn has_tshark() -> bool {
    let found = Command::new("tshark").arg("-v").output().is_ok_and(|out| out.status.success());
    if !found {
        println!("skipped: tshark is not installed");
    }
    found
}

/// Converts seconds with nine decimal places to nanoseconds; fails on any other resolution.
fn nanoseconds(text: &str) -> u64 {
    let (whole, fraction) = text.split_once('.').expect("a fraction of a second");
    assert_eq!(fraction.len(), 9, "{text} is not in nanoseconds");
    whole.parse::<u64>().unwrap() * 1_000_000_000 + fraction.parse::<u64>().unwrap()
}

fn tshark(path: &Path) -> Vec<Row> {
    let fields =
        ["frame.time_epoch", "frame.interface_name", "frame.comment", "frame.len", "ip.dsfield.ecn", "tcp.seq_raw"];
    let mut command = Command::new("tshark");
    // Without name resolution and analysis of streams: only the contents of the packets are wanted.
    command
        .args(["-n", "-o", "tcp.analyze_sequence_numbers:false", "-T", "fields", "-E", "separator=|", "-r"])
        .arg(path);
    for field in fields {
        command.args(["-e", field]);
    }
    let out = command.output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap().lines().map(row).collect()
}

fn row(line: &str) -> Row {
    let parts: Vec<&str> = line.split('|').collect();
    let [time, interface, comment, len, ecn, seq] = parts[..] else { panic!("{line}") };
    Row {
        ns: nanoseconds(time),
        interface: interface.into(),
        comment: comment.into(),
        len: len.parse().unwrap(),
        ce: ecn.trim_start_matches("0x0") == "3",
        seq: (!seq.is_empty()).then(|| seq.parse().unwrap()),
    }
}

#[test]
fn tshark_counts_the_drops_and_marks_of_the_summary() {
    if !has_tshark() {
        return;
    }
    let path = file("two-hops.pcapng");
    let summary = captured(TWO_HOPS, &path);
    let rows = tshark(&path);
    for bottleneck in &summary.bottlenecks {
        let here: Vec<&Row> = rows.iter().filter(|r| r.interface == bottleneck.name).collect();
        let with = |word: &str| here.iter().filter(|r| r.comment.starts_with(word)).count() as u64;
        assert_eq!(with("drop_overflow"), bottleneck.drops_overflow, "{bottleneck:?}");
        assert_eq!(with("drop_early") + with("drop_dequeue"), bottleneck.drops_aqm, "{bottleneck:?}");
        assert_eq!(with("drop_dequeue") > 0, bottleneck.aqm == "codel", "CoDel drops at the head, RED on arrival");
        let dropped: u64 = here.iter().filter(|r| r.comment.starts_with("drop")).map(|r| r.len).sum();
        assert_eq!(dropped, bottleneck.dropped_bytes);
        let sent = here.len() as u64 - bottleneck.drops_overflow - bottleneck.drops_aqm;
        assert_eq!(sent, bottleneck.packets_all, "every packet that was sent is there");
        let bytes: u64 = here.iter().filter(|r| !r.comment.starts_with("drop")).map(|r| r.len).sum();
        assert_eq!(bytes, bottleneck.bytes_all);
        // Of the packet that is being transmitted at the end only a part has left.
        let on_wire = bytes as f64 * 8.0 - bottleneck.throughput_bps * summary.duration_s;
        assert!((-0.01..=1500.0 * 8.0).contains(&on_wire), "{on_wire} bits have not left");
    }
    let [red, codel] = summary.bottlenecks.as_slice() else { panic!("two hops") };
    assert!(red.drops_overflow > 0 && red.drops_aqm > 0 && red.marks > 0 && red.lost > 0, "{red:?}");
    assert!(codel.drops_aqm > 0 && codel.marks == 0, "{codel:?}");
    assert_eq!(rows.len() as u64, all_packets(&summary));
}

/// A packet is marked while it waits but written when it is sent, so the marks of packets that still wait are missing.
#[test]
fn marked_packets_carry_ce_and_say_who_set_it() {
    if !has_tshark() {
        return;
    }
    let path = file("marks.pcapng");
    let summary = captured(TWO_HOPS, &path);
    let rows = tshark(&path);
    let marked =
        |name: &str| rows.iter().filter(|r| r.interface == name && r.comment.starts_with("mark")).count() as u64;
    let red = &summary.bottlenecks[0];
    assert!(
        (red.marks.saturating_sub(25)..=red.marks).contains(&marked("hop0")),
        "{} of {}",
        marked("hop0"),
        red.marks
    );
    assert_eq!(marked("hop1"), 0, "a mark is told by the queue that set it, not by the next");
    for row in &rows {
        assert!(row.ce || !row.comment.starts_with("mark"), "{row:?}");
        let fresh = row.interface == "hop0" && row.comment.is_empty();
        assert!(!(row.ce && fresh), "at the first hop only the AQM sets CE: {row:?}");
    }
    assert!(rows.iter().any(|r| r.interface == "hop1" && r.ce), "the mark travels on");
}

#[test]
fn times_are_ordered_nanoseconds_of_the_run_and_numbers_those_of_tcp() {
    if !has_tshark() {
        return;
    }
    let path = file("times.pcapng");
    let summary = captured(TWO_HOPS, &path);
    let rows = tshark(&path);
    assert!(rows.is_sorted_by_key(|r| r.ns), "in the order of the run");
    assert!(rows.last().unwrap().ns <= (summary.duration_s * 1e9) as u64);
    assert!(rows.iter().any(|r| r.ns % 1000 != 0), "finer than microseconds");
    // The first datagram is 1228 B long and comes over an access link of 1 Gbit/s: 9.824 us.
    assert_eq!(rows.iter().find(|r| r.seq.is_none()).unwrap().ns, 9_824);
    let tcp = rows.iter().filter(|r| r.seq.is_some()).count();
    assert!(tcp > 0 && tcp < rows.len());
}

#[test]
fn our_own_reader_agrees() {
    let path = file("own.pcapng");
    let summary = captured(TWO_HOPS, &path);
    let mut arrivals = penstock_trace::read::open(&path).unwrap();
    let packets: Vec<_> = arrivals.by_ref().collect::<Result<_, _>>().unwrap();
    let notes = arrivals.notes();
    let expected = all_packets(&summary);
    assert_eq!((notes.frames, packets.len() as u64), (expected, expected));
    assert_eq!((notes.not_ip, notes.untimed, notes.out_of_order), (0, 0, 0));
    let flows: std::collections::BTreeSet<u32> = packets.iter().map(|p| p.flow.0).collect();
    assert_eq!(flows.len(), summary.flows.len(), "hosts have addresses of their own");
    let bytes: u64 = packets.iter().map(|p| p.size.get()).sum();
    assert_eq!(bytes, summary.bottlenecks.iter().map(|b| b.bytes_all + b.dropped_bytes).sum::<u64>());
    assert!(packets.iter().all(|p| p.t <= Instant::ZERO + Span::from_secs(6)));
}

#[test]
fn only_the_queues_that_are_named_are_captured() {
    let path = file("named.pcapng");
    let named = format!("{TWO_HOPS}\n[output]\npcapng = [\"hop1\"]\n");
    let summary = captured(&named, &path);
    let hop1 = &summary.bottlenecks[1];
    let frames = penstock_trace::read::open(&path).unwrap().count() as u64;
    assert_eq!(frames, hop1.packets_all + hop1.drops_overflow + hop1.drops_aqm);
}

#[test]
fn capturing_and_stepping_change_neither_the_run_nor_the_file() {
    let (whole, stepped) = (file("whole.pcapng"), file("stepped.pcapng"));
    let summary = captured(TWO_HOPS, &whole);
    let scenario = Scenario::parse(TWO_HOPS, "capture.toml").unwrap();
    let mut without = Simulation::new(&scenario);
    without.advance(Span::MAX).unwrap();
    assert_eq!(without.summary(), summary);
    let mut simulation = Simulation::new(&scenario);
    simulation.capture_to(Box::new(BufWriter::new(File::create(&stepped).unwrap())), &scenario).unwrap();
    while !simulation.advance(Span::from_millis(7)).unwrap() {}
    simulation.finish_capture().unwrap();
    assert!(std::fs::read(whole).unwrap() == std::fs::read(stepped).unwrap());
}

/// The capture of the first hop: every packet was sent or dropped, and waited as long as the summary says.
#[test]
fn as_csv_every_packet_has_its_fate_and_the_time_it_waited() {
    let path = file("rows.csv");
    let scenario = Scenario::parse(TWO_HOPS, "capture.toml").unwrap_or_else(|e| panic!("{e}"));
    let mut simulation = Simulation::new(&scenario);
    simulation.capture_csv_to(Box::new(BufWriter::new(File::create(&path).unwrap())), &scenario).unwrap();
    simulation.advance(Span::MAX).unwrap();
    simulation.finish_capture().unwrap();
    let summary = simulation.summary();
    let text = std::fs::read_to_string(&path).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("queue,t_ns,waited_ns,flow,bytes,fate"));
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len() as u64, all_packets(&summary));
    let hop = &summary.bottlenecks[0];
    let of = |fates: &[&str]| rows.iter().filter(|row| row[0] == hop.name && fates.contains(&row[5])).count() as u64;
    assert_eq!(of(&["sent", "mark"]), hop.packets_all);
    assert_eq!(of(&["mark"]), hop.marks);
    assert_eq!((of(&["drop_early"]), of(&["drop_overflow"])), (hop.drops_aqm, hop.drops_overflow));
    assert!(hop.marks > 0 && hop.drops_aqm > 0, "the scenario marks and drops");
    let sent = rows.iter().filter(|row| row[0] == hop.name && !row[5].starts_with("drop"));
    let waited: f64 = sent.map(|row| row[2].parse::<f64>().unwrap() / 1e6).sum::<f64>() / hop.packets_all as f64;
    assert!((waited - hop.queue_delay_ms.mean).abs() < 1e-5, "{waited} ms, {} ms", hop.queue_delay_ms.mean);
}
