//! Accurate ECN over whole connections: controls that go by its counters, and its bytes in captures.

use penstock_core::units::Span;
use penstock_sim::summary::Summary;
use penstock_sim::{Scenario, Simulation};
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::process::Command;

fn run(text: &str, seed: u64) -> Summary {
    let mut scenario = Scenario::parse(text, "accecn.toml").unwrap_or_else(|e| panic!("{e}"));
    scenario.seed = seed;
    let mut simulation = Simulation::new(&scenario);
    simulation.advance(Span::MAX).unwrap();
    simulation.summary()
}

/// Four flows at 1 Gbit/s with a round trip time of 200 us behind a step at 40 packets, as in `ecn.rs`.
fn data_centre(accurate: bool, link: &str) -> String {
    format!(
        r#"
        duration = "1s"
        topology = {{ kind = "dumbbell", rate = "1Gbit/s", delay = "80us", limit = "1000p", access_rate = "10Gbit/s", access_delay = "10us"{link} }}
        aqm = {{ name = "red", ecn = true, mean_packet = "1500B", min_threshold = "40p", max_threshold = "41p", weight = 1.0, max_probability = 1.0, compat = "linux" }}
        tcp = {{ cc = "dctcp", ecn = true, accurate_ecn = {accurate} }}
        flows = [{{ kind = "bulk", count = 4, start_spread = "10ms" }}]
        output = {{ series = false }}"#
    )
}

/// By counters DCTCP does what it does by the echo of each segment (`ecn.rs`), with half of the ACKs; so it does if ACKs come
/// in bursts.
#[test]
fn dctcp_goes_by_counters_as_by_echoes() {
    for seed in [1, 4] {
        let echoes = run(&data_centre(false, ""), seed);
        assert!(echoes.flows.iter().all(|flow| flow.ecn.used == 1 && flow.ecn.accurate == 0));
        for link in ["", ", reverse_aggregate = { interval = \"50us\" }"] {
            let summary = run(&data_centre(true, link), seed);
            let bottleneck = &summary.bottlenecks[0];
            assert!(summary.jain.overall > 0.9, "seed {seed}: {:?}", summary.flows);
            assert!(bottleneck.utilization > 0.95 && bottleneck.marks > 1000, "seed {seed}: {bottleneck:?}");
            assert!((0.2..0.8).contains(&bottleneck.queue_delay_ms.p50), "seed {seed}: {bottleneck:?}");
            assert!(summary.flows.iter().all(|flow| flow.ecn.used == 1 && flow.ecn.accurate == 1));
        }
    }
}

/// A control that takes a mark as a loss reduces once per window by either feedback.
#[test]
fn newreno_has_the_same_rate_by_either_feedback() {
    let text = |accurate: bool| {
        format!(
            r#"
            duration = "60s"
            topology = {{ kind = "dumbbell", rate = "10Mbit/s", delay = "20ms", limit = "200p" }}
            aqm = {{ name = "red", ecn = true, min_threshold = "10p", max_threshold = "30p" }}
            tcp = {{ cc = "newreno", ecn = true, accurate_ecn = {accurate} }}
            flows = [{{ kind = "bulk", count = 2 }}]
            output = {{ series = false }}"#
        )
    };
    let [classic, accurate] = [false, true].map(|accurate| run(&text(accurate), 1));
    let [before, after] = [&classic, &accurate].map(|summary| &summary.bottlenecks[0]);
    assert!(after.marks > 50 && (after.marks as f64 / before.marks as f64 - 1.0).abs() < 0.3, "{before:?} {after:?}");
    assert!((after.goodput_bps / before.goodput_bps - 1.0).abs() < 0.03, "{before:?} {after:?}");
}

/// L4S: Prague sends ECT(1), so its counter is the first of the option.
#[test]
fn prague_goes_by_counters() {
    let text = |accurate: bool| {
        format!(
            r#"
            duration = "20s"
            topology = {{ kind = "dumbbell", rate = "40Mbit/s", delay = "5ms", limit = "1000p" }}
            aqm = "dualpi2"
            tcp = {{ cc = "prague", ecn = true, accurate_ecn = {accurate} }}
            flows = [{{ kind = "bulk", count = 2 }}]
            output = {{ series = false }}"#
        )
    };
    let [echoes, counters] = [false, true].map(|accurate| run(&text(accurate), 1));
    let [before, after] = [&echoes, &counters].map(|summary| &summary.bottlenecks[0]);
    assert!(after.marks > 100 && after.utilization > 0.9 && before.utilization > 0.9, "{before:?} {after:?}");
    assert!(after.queue_delay_ms.p50 < 2.0, "{after:?}");
    assert!(counters.flows.iter().all(|flow| flow.ecn.accurate == 1));
}

/// One flow behind a step; both directions are captured.
const CAPTURED: &str = r#"
    duration = "2s"
    tcp = { cc = "dctcp", ecn = true, accurate_ecn = true }
    flows = [{ kind = "transfer", size = "3MB", from = "l", to = "r" }]
    output = { series = false }
    [topology]
    kind = "graph"
    [[topology.links]]
    name = "path"
    a = "l"
    b = "r"
    rate = "20Mbit/s"
    delay = "2ms"
    limit = "1000p"
    aqm = { name = "red", ecn = true, mean_packet = "1500B", min_threshold = "10p", max_threshold = "11p", weight = 1.0, max_probability = 1.0, compat = "linux" }
    reverse_aqm = "droptail"
"#;

/// What tshark reads of a packet.
#[derive(Debug)]
struct Row {
    forward: bool,
    syn: bool,
    /// AE, CWR and ECE of the header's bytes.
    ace: u8,
    /// The flag AE, which tshark tells of SYNs, and ACE, which it tells of the segments of a connection with AccECN.
    ae: bool,
    decoded: Option<u32>,
    seq: u32,
    ack: u32,
    len: u32,
    ecn: u8,
    /// EE0B, ECEB and EE1B.
    counters: [Option<u32>; 3],
}

fn rows(path: &Path) -> Option<Vec<Row>> {
    let fields = [
        "frame.interface_name",
        "tcp.flags.syn",
        "tcp.flags.ae",
        "tcp.flags",
        "tcp.seq_raw",
        "tcp.ack_raw",
        "tcp.len",
        "ip.dsfield.ecn",
        "tcp.options.acc_ecn.ee0b",
        "tcp.options.acc_ecn.eceb",
        "tcp.options.acc_ecn.ee1b",
        "_ws.malformed",
        "tcp.flags.ace",
    ];
    let mut command = Command::new("tshark");
    command.args(["-n", "-T", "fields", "-E", "separator=|", "-r"]).arg(path);
    fields.iter().for_each(|field| {
        command.args(["-e", field]);
    });
    let Ok(out) = command.output() else {
        println!("skipped: tshark is not installed");
        return None;
    };
    let text = String::from_utf8(out.stdout).unwrap();
    let row = |line: &str| {
        let parts: Vec<&str> = line.split('|').collect();
        let number = |text: &str| text.trim_start_matches("0x").parse::<u32>().ok();
        let is = |text: &str| matches!(text, "1" | "True");
        assert_eq!(parts[11], "", "{line}");
        Row {
            forward: parts[0] == "path",
            syn: is(parts[1]),
            ae: is(parts[2]),
            ace: (u32::from_str_radix(parts[3].trim_start_matches("0x"), 16).unwrap() >> 6 & 7) as u8,
            decoded: number(parts[12]),
            seq: number(parts[4]).unwrap(),
            ack: number(parts[5]).unwrap(),
            len: number(parts[6]).unwrap(),
            ecn: number(parts[7]).unwrap() as u8,
            counters: [parts[8], parts[9], parts[10]].map(number),
        }
    };
    Some(text.lines().map(row).collect())
}

/// tshark decodes flags and options, and each ACK has the numbers of packets and bytes with CE that the capture has up to
/// its acknowledgment number: an oracle which knows nothing of the endpoints.
#[test]
fn tshark_reads_what_the_capture_counts() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("accecn.pcapng");
    let scenario = Scenario::parse(CAPTURED, "accecn.toml").unwrap_or_else(|e| panic!("{e}"));
    let mut simulation = Simulation::new(&scenario);
    simulation.capture_to(Box::new(BufWriter::new(File::create(&path).unwrap())), &scenario).unwrap();
    simulation.advance(Span::MAX).unwrap();
    simulation.finish_capture().unwrap();
    let summary = simulation.summary();
    assert_eq!((summary.flows[0].delivered_bytes, summary.flows[0].retransmits), (3_000_000, 0));
    let Some(rows) = rows(&path) else { return };
    // Table 2: the SYN asks, and came as ECT(0), which DCTCP sends; the SYN-ACK has the option at its beginning.
    let [syn, syn_ack, ack] = &rows[..3] else { panic!("a handshake") };
    assert_eq!((syn.syn, syn.ae, syn.ace, syn.counters), (true, true, 0b111, [None; 3]));
    let first = [Some(1), Some(0), Some(1)];
    assert_eq!((syn_ack.syn, syn_ack.forward, syn_ack.ace, syn_ack.counters), (true, false, 0b100, first));
    assert_eq!((ack.len, ack.ace, ack.counters), (0, 0b100, first));
    let data: Vec<&Row> = rows.iter().filter(|row| row.forward && row.len > 0).collect();
    let (mut told, mut marked) = (0, 0);
    for ack in rows.iter().filter(|row| !row.forward && !row.syn) {
        let arrived = data.iter().filter(|row| (row.seq.wrapping_add(row.len).wrapping_sub(ack.ack) as i32) <= 0);
        let with = |ecn: u8| arrived.clone().filter(move |row| row.ecn == ecn);
        marked = with(3).count() as u32;
        let ace = (5 + marked) % 8;
        assert_eq!((u32::from(ack.ace), ack.decoded), (ace, Some(ace)), "{ack:?}");
        let bytes = |ecn: u8| with(ecn).map(|row| row.len).sum::<u32>();
        if let [Some(ect0), ce, ect1] = ack.counters {
            assert_eq!((ect0, ce.unwrap_or(0), ect1), (1 + bytes(2), bytes(3), None), "{ack:?}");
            assert_eq!(ce.is_some(), marked > 0, "a counter that has not changed is left out: {ack:?}");
            told += 1;
        }
    }
    assert!(told > 500 && marked > 20, "{told} options, {marked} marks");
}
