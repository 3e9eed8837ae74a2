//! Traffic of applications: what is sent and measured, compared with hand calculation and theory.

use penstock_core::units::Span;
use penstock_sim::summary::{FlowSummary, Summary};
use penstock_sim::{Scenario, Simulation};

fn parse(text: &str) -> Scenario {
    Scenario::parse(text, "traffic.toml").unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn run_scenario(scenario: &Scenario, step: Span) -> Summary {
    let mut simulation = Simulation::new(scenario);
    while !simulation.advance(step).unwrap() {}
    simulation.summary()
}

fn run(text: &str) -> Summary {
    run_scenario(&parse(text), Span::MAX)
}

/// A bottleneck of 10 Mbit/s and 10 ms with access links of 1 Gbit/s without delay.
fn dumbbell(duration: &str, flows: &str) -> String {
    format!(
        r#"
duration = "{duration}"
[topology]
kind = "dumbbell"
rate = "10Mbit/s"
delay = "10ms"
limit = "1000p"
[tcp]
mss = "1000B"
{flows}"#
    )
}

/// Returns the summary of a run of one group of flows.
fn flows(duration: &str, flows: &str) -> Vec<FlowSummary> {
    run(&dumbbell(duration, &format!("[[flows]]\n{flows}"))).flows
}

// http.

/// Returns the time in ms that a packet of `bytes` takes through the empty dumbbell: 10 ms, twice at 1 Gbit/s, once at
/// 10 Mbit/s.
fn way(bytes: f64) -> f64 {
    10.0 + bytes * 8.0 * (2.0 / 1e6 + 1.0 / 1e4)
}

/// SYN (60 B), SYN-ACK (60 B) and ten segments of 1052 B, all in the initial window: the last leaves the bottleneck nine
/// transmissions of 0.8416 ms after the first.
fn ten_packets() -> f64 {
    2.0 * way(60.0) + way(1052.0) + 9.0 * 1052.0 * 8.0 / 1e4
}

#[test]
fn http_transfers_come_at_the_times_worked_out_by_hand() {
    let http = &flows("20s", "kind = \"http\"\npackets = 10\nidle = \"5s\"")[0];
    let transfers = http.measures.transfers().unwrap();
    // The transfers begin at 0 s, 5.04 s, 10.08 s, 15.12 s: each takes 0.04 s.
    assert_eq!((transfers.started, transfers.count, transfers.failed), (4, 4, 0));
    let took = &transfers.completion_ms;
    assert!((took.mean - ten_packets()).abs() < 0.01, "{took:?} against {}", ten_packets());
    assert!((took.max - took.mean).abs() < 1e-3, "all alike: {took:?}");
    assert_eq!((http.delivered_bytes, transfers.bytes), (40_000, 40_000));
    assert_eq!((http.kind, http.cc.as_str(), http.retransmits), ("http", "cubic", 0));
    // Without any key it is the session of the source: 30 packets, then 5 s idle.
    let plain = &flows("20s", "kind = \"http\"")[0];
    assert_eq!((plain.delivered_bytes, plain.measures.transfers().unwrap().count), (4 * 30_000, 4));
}

/// Over one connection only the first transfer waits for a handshake.
#[test]
fn a_connection_that_stays_open_is_greeted_once() {
    let http = &flows("20s", "kind = \"http\"\npackets = 10\nconnection = \"same\"")[0];
    let took = &http.measures.transfers().unwrap().completion_ms;
    assert!((took.max - ten_packets()).abs() < 0.01, "{took:?}");
    let later = ten_packets() - 2.0 * way(60.0);
    assert!((took.p50 / later - 1.0).abs() < 0.02, "{took:?} against {later}");
    assert!((took.mean - (ten_packets() + 3.0 * later) / 4.0).abs() < 0.05, "{took:?}");
}

#[test]
fn a_session_that_stops_begins_nothing_more() {
    for connection in ["new", "same"] {
        let http = &flows("30s", &format!("kind = \"http\"\nstop = \"10s\"\nconnection = \"{connection}\""))[0];
        assert_eq!(http.measures.transfers().unwrap().started, 2, "at 0 s and 5.1 s");
    }
}

/// 20 sessions with idle times of mean 1 s and transfers of 10 packets for 300 s: 1.04 s each round, with a deviation of
/// 1 s; n rounds take n * 1.04 +- sqrt(n) s.
#[test]
fn idle_times_may_be_exponential() {
    let text = "kind = \"http\"\ncount = 20\npackets = 10\nidle = \"1s\"\nidle_distribution = \"exponential\"";
    let summary = flows("300s", text);
    let count: u64 = summary.iter().map(|f| f.measures.transfers().unwrap().count).sum();
    let expected = 20.0 * 300.0 / (1.0 + ten_packets() / 1e3);
    assert!((count as f64 - expected).abs() < 5.0 * expected.sqrt() + 20.0, "{count} against {expected}");
}

/// On a wire that loses every third packet, transfers end late or their connections are given up, and the session
/// continues.
#[test]
fn sessions_survive_heavy_loss() {
    for connection in ["new", "same"] {
        let text = dumbbell("600s", &format!("[[flows]]\nkind = \"http\"\ncount = 10\nconnection = \"{connection}\""));
        let summary = run(&text.replace("[tcp]", "loss = 0.33\n[tcp]"));
        for flow in &summary.flows {
            let transfers = flow.measures.transfers().unwrap();
            assert!(transfers.count > 3 && flow.retransmits > 30 && flow.timeouts > 3, "{flow:?}");
            assert!(transfers.started - transfers.count - transfers.failed <= 1, "one at a time: {transfers:?}");
            assert!(flow.delivered_bytes >= transfers.bytes);
        }
    }
}

// web.

/// Poisson: the count of a time has its mean as its variance.
#[test]
fn web_transfers_arrive_as_often_as_asked_for() {
    let web = &flows("200s", "kind = \"web\"\nper_second = 12.5\nmean_size = \"10kB\"\nshape = 2.5")[0];
    let transfers = web.measures.transfers().unwrap();
    let expected: f64 = 12.5 * 200.0;
    assert!((transfers.started as f64 - expected).abs() < 5.0 * expected.sqrt(), "{transfers:?}");
    assert!(transfers.started - transfers.count < 10, "all but the last end: {transfers:?}");
    assert_eq!((transfers.failed, transfers.refused), (0, 0));
    // Shape 2.5: the deviation of a size is 0.894 of the mean.
    let mean = transfers.bytes as f64 / transfers.count as f64;
    assert!((mean / 1e4 - 1.0).abs() < 5.0 * 0.894 / (transfers.count as f64).sqrt(), "{mean}");
    let by_class: u64 = transfers.by_size.iter().map(|class| class.count).sum();
    assert_eq!(by_class, transfers.count);
    // The smallest size is 6 kB, and P(size > 10 kB) = 0.6^2.5.
    let below = transfers.by_size[0].count as f64 / transfers.count as f64;
    assert!((below - (1.0 - 0.6f64.powf(2.5))).abs() < 0.05, "{below}");
}

/// Half of 10 Mbit/s offered as payload; headers come on top: 52 B for each 1000 B, and what opens and closes.
#[test]
fn a_load_is_a_share_of_the_bottleneck() {
    let summary =
        run(&dumbbell("400s", "[[flows]]\nkind = \"web\"\ncount = 4\nload = 0.5\nmean_size = \"50kB\"\nshape = 3.0"));
    // 5,000 transfers of deviation 0.577 of their mean: the sum has one of sqrt(1 + 1/3)/sqrt(5000) = 1.6 %.
    let offered = summary.flows.iter().map(|f| f.delivered_bytes).sum::<u64>() as f64 * 8.0 / 400.0;
    assert!((offered / 5e6 - 1.0).abs() < 5.0 * 0.016, "{offered}");
    let bottleneck = &summary.bottlenecks[0];
    assert!((1.05..1.08).contains(&(bottleneck.throughput_bps / offered)), "{bottleneck:?}");
}

/// Nobody is faster than alone on the link: a handshake, then the bytes at the rate of the bottleneck. At a load of 0.5 an
/// ideal processor sharing queue (M/G/1-PS) would double the second part in the mean; TCP adds round trips to it.
#[test]
fn completion_times_lie_above_those_of_an_empty_link() {
    let text = dumbbell("300s", "[[flows]]\nkind = \"web\"\nload = 0.5\nshape = 2.2")
        .replace("limit = \"1000p\"", "limit = \"200p\"");
    let summary = run(&format!("{text}\n[aqm]\nname = \"codel\"\n"));
    let transfers = summary.flows[0].measures.transfers().unwrap();
    let least = 2.0 * way(60.0) + 10.0;
    for class in &transfers.by_size {
        let alone = least + class.mean_bytes * 1.052 * 8.0 / 1e4;
        let shared = least + 2.0 * class.mean_bytes * 1.052 * 8.0 / 1e4;
        let mean = class.completion_ms.mean;
        assert!(mean > alone, "{class:?}: nobody is faster than {alone} ms");
        assert!(mean < 3.0 * shared, "{class:?}: far above {shared} ms");
    }
    assert!(transfers.completion_ms.p10 > least);
}

/// The numbers of connections that are over are used again after a minute: an hour of web traffic needs those of a minute.
#[test]
fn memory_is_bounded_by_a_minute_of_arrivals() {
    let text = dumbbell(
        "1800s",
        "[[flows]]\nkind = \"web\"\nper_second = 5\nmean_size = \"2kB\"\nshape = 3.0\n[output]\nseries = false",
    );
    let mut simulation = Simulation::new(&parse(&text));
    simulation.advance(Span::MAX).unwrap();
    let numbers = simulation.connection_numbers();
    // Poisson with mean 300 in a minute, and those open.
    assert!((200..450).contains(&numbers), "{numbers}");
    assert!(simulation.summary().flows[0].measures.transfers().unwrap().count > 8_500);
}

/// More transfers arrive than the link can carry: the open ones are bounded, and those without room are counted.
#[test]
fn an_overload_is_refused_when_ten_thousand_are_open() {
    let text = "kind = \"web\"\nper_second = 3000\nmean_size = \"50kB\"\nshape = 3.0";
    let transfers = flows("8s", text)[0].measures.transfers().unwrap().clone();
    assert!(transfers.refused > 1000, "{transfers:?}");
    assert!(transfers.started <= 10_000 + transfers.count + transfers.failed, "{transfers:?}");
}

// voip and video.

#[test]
fn a_call_on_an_empty_link_has_no_jitter_and_no_loss() {
    let call = &flows("60s", "kind = \"voip\"")[0];
    let voip = call.measures.voip().unwrap();
    // One every 20 ms from 0 on, that of 60 s included; the last is under way.
    assert_eq!((voip.delivery.sent, voip.delivery.received, voip.delivery.lost), (3001, 3000, 0));
    assert_eq!((voip.delivery.jitter_ms.max, voip.late, voip.delivery.loss), (0.0, 0.0, 0.0));
    // 200 B on the way.
    assert!((voip.delivery.delay_ms.mean - way(200.0)).abs() < 0.001, "{voip:?}");
    assert_eq!(call.delivered_bytes, 3000 * 172);
    // R = 93.2 - 0.024 (10.16 + 20) = 92.48; its MOS is 4.39.
    assert!((voip.r - 92.476).abs() < 0.01 && (voip.mos - 4.395).abs() < 0.01, "{voip:?}");
}

/// A wire that loses 2 % costs 95 * 2 / 27.1 = 7.0 of R; 5 deviations of a binomial share with n = 15,000 are 0.0057.
#[test]
fn a_call_over_a_lossy_wire_sounds_as_the_e_model_says() {
    let text = dumbbell("300s", "[[flows]]\nkind = \"voip\"").replace("[tcp]", "loss = 0.02\n[tcp]");
    let voip = run(&text).flows[0].measures.voip().unwrap().clone();
    assert!((voip.delivery.loss - 0.02).abs() < 0.0057, "{voip:?}");
    let percent = 100.0 * voip.delivery.loss;
    assert!((voip.r - (92.476 - 95.0 * percent / (percent + 25.1))).abs() < 0.01, "{voip:?}");
}

/// P.59: on for 1.004 s, off for 1.587 s; each spurt has 50.7 packets in 2.601 s.
#[test]
fn talk_spurts_send_less() {
    let summary = flows("300s", "kind = \"voip\"\ncount = 20\ntalk_spurts = true");
    let sent: u64 = summary.iter().map(|f| f.measures.voip().unwrap().delivery.sent).sum();
    let expected = 20.0 * 300.0 * 50.702 / (50.702 * 0.02 + 1.587);
    // 2,300 spurts: rate of an on-off source, deviation sqrt(2) (1 - p) / sqrt(n) with p = 0.39.
    let error = expected * 2f64.sqrt() * 0.61 / 2300f64.sqrt();
    assert!((sent as f64 - expected).abs() < 5.0 * error + 20.0 * 51.0, "{sent} against {expected}");
}

#[test]
fn video_on_an_empty_link_is_played_whole() {
    let video =
        flows("40s", "kind = \"video\"\nrate = \"2Mbit/s\"\nspread = 0.0\ngop = 10\ni_frame_ratio = 6")[0].clone();
    let told = video.measures.video().unwrap();
    // 25 frames a second from 0 on; the one at 40 s is under way. 10 kB in the mean; an I-frame has 40 kB.
    assert_eq!((told.frames.sent, told.frames.played, told.frames.late, told.frames.lost), (1001, 1000, 0, 0));
    let mean = video.delivered_bytes as f64 / 1000.0;
    // 34 datagrams of an I-frame and 6 of each other carry 12 B of RTP each.
    assert!((mean - (10_000.0 + 12.0 * (34.0 + 9.0 * 6.0) / 10.0)).abs() < 1.0, "{mean}");
    // An I-frame leaves the bottleneck in 40 kB + 34 * 40 B at 10 Mbit/s, after 10 ms and the access links.
    let large = 10.0 + (40_000.0 + 34.0 * 40.0) * 8.0 / 1e4;
    assert!((told.frames.delay_ms.max - large).abs() < 0.05, "{told:?} against {large}");
    // Which is 43 ms: with a deadline of 40 ms one frame in ten is late.
    let text = "kind = \"video\"\nrate = \"2Mbit/s\"\nspread = 0.0\ngop = 10\ni_frame_ratio = 6\ndeadline = \"40ms\"";
    let frames = flows("40s", text)[0].measures.video().unwrap().clone().frames;
    assert_eq!((frames.played, frames.late), (900, 100));
}

// Mixed sizes, directions.

/// The rate is that of IP packets, whatever their sizes; 3 : 1 of 100 B and 1000 B are 325 B in the mean.
#[test]
fn mixed_packets_keep_the_rate() {
    let text = "kind = \"cbr\"\nrate = \"1Mbit/s\"\npacket_size = [\"100B\", \"1000B\"]\npacket_weights = [3, 1]";
    let summary = run(&dumbbell("200s", &format!("[[flows]]\n{text}")));
    let bottleneck = &summary.bottlenecks[0];
    assert!((bottleneck.throughput_bps / 1e6 - 1.0).abs() < 0.001, "{bottleneck:?}");
    // 70,822 packets; the deviation of a size is 390 B.
    let mean = summary.flows[0].delivered_bytes as f64 / bottleneck.packets as f64;
    assert!((mean - 325.0).abs() < 5.0 * 390.0 / (bottleneck.packets as f64).sqrt(), "{mean}");
}

#[test]
fn data_may_go_from_right_to_left() {
    let flows = "[[flows]]\nkind = \"bulk\"\ndirection = \"reverse\"\n[[flows]]\nkind = \"cbr\"\nrate = \"1Mbit/s\"\ndirection = \"reverse\"\n";
    let summary = run(&dumbbell("10s", flows));
    let bottleneck = &summary.bottlenecks[0];
    assert!(bottleneck.packets == 0 && bottleneck.packets_all > 1000, "ACKs alone go forward: {bottleneck:?}");
    assert!(summary.flows[0].goodput_bps > 5e6, "{:?}", summary.flows[0]);
    assert!((0.8e6..0.98e6).contains(&summary.flows[1].goodput_bps), "{:?}", summary.flows[1]);
}

// All together.

/// The mixed traffic of the thesis on bufferbloat, chapter 3: FTP both ways, calls, streams, web.
const MIXED: &str = r#"
[[flows]]
kind = "bulk"
count = 2
start_spread = "500ms"
[[flows]]
kind = "bulk"
count = 2
direction = "reverse"
[[flows]]
kind = "voip"
count = 5
talk_spurts = true
start_spread = "1s"
[[flows]]
kind = "video"
rate = "600kbit/s"
count = 3
start_spread = "1s"
[[flows]]
kind = "video"
rate = "600kbit/s"
fps = 30
direction = "reverse"
[[flows]]
kind = "web"
per_second = 15
mean_size = "10kB"
max_size = "1MB"
[[flows]]
kind = "http"
count = 4
idle = "500ms"
idle_distribution = "exponential"
start_step = "100ms"
stop = "8s"
[[flows]]
kind = "http"
connection = "same"
size = "70kB"
idle = "300ms"
tcp = { cc = "newreno" }
[[flows]]
kind = "onoff"
rate = "500kbit/s"
mean_on = "200ms"
mean_off = "300ms"
packet_size = ["40B", "576B", "1472B"]
packet_weights = [7, 4, 1.5]
[[flows]]
kind = "synflood"
per_second = 20
[aqm]
name = "codel"
"#;

fn json(summary: &Summary) -> String {
    serde_json::to_string(summary).unwrap()
}

#[test]
fn all_kinds_together_give_the_same_bytes_in_steps_on_threads_and_from_the_resolved_file() {
    let scenario = parse(&dumbbell("10s", MIXED));
    let summary = run_scenario(&scenario, Span::MAX);
    assert!(
        summary.flows.iter().filter(|f| f.kind != "synflood").all(|f| f.delivered_bytes > 0),
        "{:?}",
        summary.flows
    );
    assert!(summary.bottlenecks[0].drops_aqm > 0);
    let whole = json(&summary);
    for step in [Span::from_millis(37), Span::from_nanos(12_345_678)] {
        assert!(json(&run_scenario(&scenario, step)) == whole, "steps of {step} change the run");
    }
    let threads: Vec<String> = std::thread::scope(|scope| {
        let threads = [(); 2].map(|()| scope.spawn(|| json(&run_scenario(&scenario, Span::MAX))));
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert!(threads.iter().all(|one| *one == whole));
    let resolved = parse(&scenario.resolved());
    assert_eq!(resolved, scenario, "{}", scenario.resolved());
    assert!(json(&run_scenario(&resolved, Span::MAX)) == whole);
}

/// The random numbers of one flow do not depend on the others: calls are the same with more web traffic beside them.
#[test]
fn flows_draw_from_streams_of_their_own() {
    let sent = |text: &str| -> Vec<u64> {
        run(&dumbbell("10s", text)).flows.iter().filter_map(|f| f.measures.voip().map(|v| v.delivery.sent)).collect()
    };
    assert_eq!(sent(MIXED), sent(&MIXED.replace("per_second = 15", "per_second = 40")));
}

/// Flows that exist since before have the keys they had.
#[test]
fn new_keys_are_only_those_of_new_kinds() {
    let summary = serde_json::to_value(run(&dumbbell("10s", MIXED))).unwrap();
    for flow in summary["flows"].as_array().unwrap() {
        let told = ["transfers", "voip", "video"].map(|key| flow.get(key).is_some());
        let expected = match flow["kind"].as_str().unwrap() {
            "http" | "web" => [true, false, false],
            "voip" => [false, true, false],
            "video" => [false, false, true],
            _ => [false; 3],
        };
        assert_eq!(told, expected, "{flow}");
    }
}

/// The mix of `docs/reference/scenarios.md`, word for word: it can be read, and every application makes progress.
#[test]
fn the_mix_of_the_documentation_runs() {
    let page = include_str!("../../../docs/reference/scenarios.md");
    let from = page.find("\nflows = [").expect("the page has a mix");
    let mix = &page[from..from + page[from..].find("\n]\n").expect("which ends") + 3];
    let topology = "topology = { kind = \"dumbbell\", rate = \"10Mbit/s\", delay = \"40ms\", limit = \"200p\" }";
    let summary = run(&format!("duration = \"20s\"\n{topology}\naqm = {{ name = \"codel\" }}{mix}"));
    assert!(summary.flows.iter().all(|f| f.delivered_bytes > 0), "{:?}", summary.flows);
    let kinds = ["bulk", "web", "http", "voip", "video"];
    assert!(kinds.iter().all(|kind| summary.flows.iter().any(|f| f.kind == *kind)));
}

/// A thousand flows of each kind at the same time: every flow makes progress.
#[test]
fn a_thousand_flows_of_a_kind_share_a_link() {
    for kind in ["http", "voip", "web\"\nper_second = 1\nmean_size = \"2kB", "video\"\nrate = \"50kbit/s"] {
        let text = dumbbell("4s", &format!("[[flows]]\nkind = \"{kind}\"\ncount = 1000\nstart_spread = \"1s\"\n"));
        let summary = run(&text.replace("\"10Mbit/s\"", "\"1Gbit/s\""));
        let busy = summary.flows.iter().filter(|f| f.delivered_bytes > 0).count();
        // Of Poisson sources with three seconds, 5 % have nothing to do.
        assert!(busy > 900, "{kind}: {busy}");
        assert_eq!(summary.bottlenecks[0].drops_overflow, 0);
    }
}

// What is known before the run.

#[test]
fn the_transfers_told_ahead_are_those_of_the_run() {
    for spec in [
        "kind = \"web\"\nper_second = 5\nmean_size = \"5kB\"\nmax_size = \"20kB\"",
        "kind = \"http\"\nsize = \"9kB\"\nfirst = \"2kB\"\nidle = \"200ms\"\nidle_distribution = \"exponential\"",
    ] {
        let scenario = parse(&dumbbell("20s", &format!("[[flows]]\nstart = \"1s\"\nstop = \"15s\"\n{spec}")));
        let ahead = Simulation::new(&scenario).transfers_ahead(Span::from_secs(20)).next().unwrap();
        let flow = &run_scenario(&scenario, Span::MAX).flows[0];
        let transfers = flow.measures.transfers().unwrap();
        assert_eq!((transfers.count, transfers.failed), (transfers.started, 0), "all of them were complete");
        let begun = &ahead[..transfers.started as usize];
        assert_eq!(begun.iter().map(|one| one.size).sum::<u64>(), transfers.bytes, "their sizes");
        let waited = |of: &[penstock_sim::ahead::Coming]| of.iter().map(|one| one.wait.as_secs_f64()).sum::<f64>();
        let busy =
            if spec.contains("http") { transfers.completion_ms.mean / 1e3 * transfers.count as f64 } else { 0.0 };
        let last = waited(begun) + if busy > 0.0 { busy - 0.05 } else { 0.0 };
        assert!(last < 14.0, "the last one began before the flow stopped, after {last} s");
        assert!(waited(&ahead[..=begun.len()]) + busy > 14.0 - 1e-3, "the next one would not have");
    }
}

#[test]
fn the_paths_told_ahead_are_those_of_least_delay() {
    let text = r#"
duration = "1s"
[topology]
kind = "graph"
links = [
  { a = "x", b = "y", rate = "10Mbit/s", delay = "30ms", limit = "100p" },
  { a = "y", b = "z", rate = "10Mbit/s", delay = "5ms", limit = "100p" },
  { a = "z", b = "x", rate = "10Mbit/s", delay = "10ms", limit = "100p", aqm = "codel" },
]
[[flows]]
kind = "bulk"
from = "x"
to = "y"
[[flows]]
kind = "bulk"
from = "z"
to = "y"
"#;
    let paths: Vec<Vec<(usize, bool)>> = Simulation::new(&parse(text))
        .paths()
        .map(|path| path.iter().map(|step| (step.link, step.reverse)).collect())
        .collect();
    // From x over z (15 ms, against the direction of the third link and of the second one) and not directly (30 ms).
    assert_eq!(paths, [vec![(2, true), (1, true)], vec![(1, true)]]);
}
