//! Links that change by a series: an orbit, a recorded trace, a table, random states.

use penstock_core::foreign::{Config, Control, Library, LibraryError};
use penstock_core::units::Span;
use penstock_sim::{Column, Scenario, Simulation};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A library of files by their names.
struct Files(BTreeMap<&'static str, String>);

impl Library for Files {
    fn control(&self, _: &str, _: &Map<String, Value>) -> Option<Result<Control, LibraryError>> {
        None
    }
    fn aqm(&self, _: &str, _: &Map<String, Value>) -> Option<Result<Config, LibraryError>> {
        None
    }
    fn file(&self, name: &str) -> Option<Result<String, LibraryError>> {
        Some(self.0.get(name).cloned().ok_or_else(|| LibraryError(format!("there is no file {name}"))))
    }
}

/// 10 packets in 100 ms, nothing for 400 ms, then two at once at 500 ms; one each 2 ms up to 1 s.
fn cell() -> String {
    let chances = (1..=10).map(|k| 10 * k).chain([500, 500]).chain((251..=500).map(|k| 2 * k));
    chances.map(|ms: u32| format!("{ms}\n")).collect()
}

fn parse(text: &str) -> Scenario {
    let table = "t_s,rate_mbit_s,delay_ms,loss\n0,8,10,0\n2,4,40,0.25\n";
    let slow = "t_s,rate_mbit_s\n0.009,0.1\n";
    let fast = format!("{slow}0.049,10\n");
    let lossy = "t_s,rate_mbit_s,loss\n0,1,0\n0.010,1,0.999999\n0.015,0.1,0.999999\n";
    let tables = [("sky.csv", table), ("slow.csv", slow), ("slow-then-fast.csv", &fast), ("lossy.csv", lossy)];
    let files = [("cell.mahi", cell())].into_iter().chain(tables.map(|(name, text)| (name, text.to_owned())));
    let files = Files(files.collect());
    let scenario = Scenario::parse_with(text, "series.toml", &files).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let again = Scenario::parse_with(&scenario.resolved(), "resolved.toml", &files).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(scenario.changes, again.changes, "the resolved form says the same");
    assert_eq!(scenario.resolved(), again.resolved());
    scenario
}

fn simulate(text: &str) -> Simulation {
    let mut simulation = Simulation::new(&parse(text));
    simulation.advance(Span::MAX).unwrap();
    simulation
}

/// Datagrams of 1500 B with headers at this rate, with no delay before the bottleneck.
fn busy(duration: &str, rate: &str, changes: &str) -> String {
    format!(
        r#"
duration = "{duration}"
[topology]
kind = "dumbbell"
rate = "1Mbit/s"
delay = "20ms"
limit = "20p"
access_rate = "100Gbit/s"
access_delay = "0ms"
[[flows]]
kind = "cbr"
rate = "{rate}"
packet_size = "1472B"
[[changes]]
link = "bottleneck"
{changes}"#
    )
}

/// Returns a column of the table of changes, forward.
fn changed(simulation: &Simulation, name: &str) -> Vec<f64> {
    let tables = simulation.tables();
    let table = tables.iter().find(|t| t.name == "link_changes").unwrap();
    let column = |name: &str| &table.columns.iter().find(|(column, _)| *column == name).unwrap().1;
    let Column::U32(reverse) = column("reverse") else { panic!("a way is a number") };
    let values: Vec<f64> = match column(name) {
        Column::F64(values) => values.clone(),
        Column::U64(values) => values.iter().map(|value| *value as f64).collect(),
        Column::U32(values) => values.iter().map(|value| f64::from(*value)).collect(),
    };
    values.into_iter().zip(reverse).filter(|(_, reverse)| **reverse == 0).map(|(value, _)| value).collect()
}

/// 262 packets of 1500 B in each second, or as many bits in others: the rest of a packet goes at the rate of the moment, so
/// that no stretch loses anything. The stream sends 30 Mbit/s.
#[test]
fn a_busy_link_sends_as_many_packets_as_its_trace_has_chances() {
    for size in [1500, 1000, 500, 137] {
        let text = busy("10s", "30Mbit/s", "trace = \"cell.mahi\"\n").replace("1472B", &format!("{}B", size - 28));
        let simulation = simulate(&text);
        let (packets, chances) =
            (simulation.summary().bottlenecks[0].packets_all as f64, 2620.0 * 1500.0 / size as f64);
        // The first comes after its transmission on an access link, at most 0.1 us; the last may be under way.
        assert!((chances - 0.01..=chances + 1.0).contains(&packets), "{packets} of {chances}");
        assert_eq!(changed(&simulation, "t_s")[..4], [0.0, 0.1, 0.5, 0.6]);
        assert_eq!(changed(&simulation, "rate_bps")[..4], [1_200_000.0, 60_000.0, 6_000_000.0, 6_000_000.0]);
    }
}

/// 1500 B at 1 Mbit/s take 12 ms. After 8 ms, two thirds of it, the rate is a tenth: 40 ms for the rest, then 10 times
/// as much: 1.2 ms for a packet. All is 20 ms away. Counted are arrivals at the receiver, whose link takes 0.12 us.
#[test]
fn the_rest_of_a_packet_goes_at_the_new_rate() {
    let by = |end: &str, rates: &str| {
        let states = format!("table = \"{rates}\"\n");
        let text = busy(end, "2Mbit/s", &states).replace("[[changes]]", "start = \"1ms\"\n[[changes]]");
        simulate(&text).summary().flows[0].delivered_bytes / 1472
    };
    // The second of two is lost: the first, which it follows from 13 to 115 ms, is not late.
    assert_eq!((by("32.9ms", "lossy.csv"), by("33.1ms", "lossy.csv")), (0, 1));
    for rates in ["slow.csv", "slow-then-fast.csv"] {
        assert_eq!(by("68.99ms", rates), 0, "1 + 8 + 40 + 20 = 69 ms");
        assert_eq!(by("69.02ms", rates), 1);
    }
    // The second begins at 49 ms: 120 ms at a tenth, 1.2 ms at ten times the first rate.
    assert_eq!((by("188.9ms", "slow.csv"), by("189.1ms", "slow.csv")), (1, 2));
    assert_eq!((by("70.1ms", "slow-then-fast.csv"), by("70.3ms", "slow-then-fast.csv")), (1, 2));
}

/// 2 s at 8 Mbit/s, 3 s at 4 Mbit/s of which a quarter is lost, again and again; the round begins after a second.
#[test]
fn a_table_says_how_fast_and_how_far() {
    let simulation = simulate(&busy("11s", "12Mbit/s", "at = \"1s\"\ntable = \"sky.csv\"\nevery = \"5s\"\n"));
    assert_eq!(changed(&simulation, "t_s"), [0.0, 1.0, 3.0, 6.0, 8.0, 11.0]);
    assert_eq!(changed(&simulation, "delay_s"), [0.02, 0.01, 0.04, 0.01, 0.04, 0.01]);
    assert_eq!(changed(&simulation, "loss"), [0.0, 0.0, 0.25, 0.0, 0.25, 0.0]);
    let queue = &simulation.summary().bottlenecks[0];
    let mbit = 1.0 + 2.0 * (2.0 * 8.0 + 3.0 * 4.0);
    assert!((queue.throughput_bps * 11.0 / 1e6 - mbit).abs() < 0.1, "{} of {mbit} Mbit", queue.throughput_bps * 11.0);
    // Of 2000 packets in the bad 6 s a quarter; binomial with a deviation of 19: the bound is four of them.
    assert!((queue.lost as f64 - 500.0).abs() < 78.0, "{}", queue.lost);
    let ends = simulate(&busy("11s", "12Mbit/s", "table = \"sky.csv\"\n"));
    assert_eq!(changed(&ends, "t_s"), [0.0, 2.0], "without `every` it ends with its last row");
}

/// A fraction p = 4/5 of the time in the first of two states; over T its deviation is sqrt(2 p (1 - p) tau / T) with
/// tau = ab / (a + b) for exponential times of means a and b.
#[test]
fn states_by_lot_share_the_time_as_their_means_say() {
    let states = "states = [{ rate = \"1Mbit/s\", lasts = \"2s\" }, { rate = \"200kbit/s\", lasts = \"500ms\" }]\n";
    let simulation = simulate(&busy("1000s", "1.5Mbit/s", states));
    let share = (simulation.summary().bottlenecks[0].throughput_bps / 1e6 - 0.2) / 0.8;
    let deviation = (2.0 * 0.8 * 0.2 * 0.4 / 1000.0_f64).sqrt();
    assert!((share - 0.8).abs() < 4.0 * deviation, "{share}");
    let rates = changed(&simulation, "rate_bps");
    assert!(rates.windows(2).all(|pair| pair[0] != pair[1]), "they alternate");
    assert_eq!(rates[0], 1e6, "the first comes first");
    let other = busy("1000s", "1.5Mbit/s", states).replacen("duration", "seed = 2\nduration", 1);
    assert_ne!(changed(&simulate(&other), "t_s"), changed(&simulation, "t_s"), "the seed decides");
}

/// O3b, 2400 of 2700 s into a passage: 300 s later the next satellite is as far away as the first one was at the begin
/// of its service.
#[test]
fn an_orbit_gives_the_delay_of_its_geometry() {
    let orbit = "orbit = { altitude_km = 8063, satellites = 8, step = \"60s\", served = \"2400s\" }\n";
    let simulation = simulate(&busy("600s", "10kbit/s", orbit));
    let (times, delays) = (changed(&simulation, "t_s"), changed(&simulation, "delay_s"));
    let lowest = delays.iter().copied().fold(f64::MAX, f64::min);
    let slant = |degrees: f64| {
        let (r, s) = (6378.137_f64, 14_441.137_f64);
        (r * r + s * s - 2.0 * r * s * degrees.to_radians().cos()).sqrt()
    };
    let furthest = 2.0 * slant(22.5) / 299_792.458 + 0.035;
    let last = delays[times.iter().rposition(|t| *t < 300.0).unwrap()];
    assert!((last - furthest).abs() < 1e-3, "{last} s, {furthest} s at the handover");
    assert!(lowest > 2.0 * 8063.0 / 299_792.458 + 0.035 && lowest < furthest);
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] <= 60.1));
}

/// Rate and delay change every few packets, at any moment. The queue holds all that can be on its way: nothing is lost, and
/// were packets to overtake each other, the receiver would report gaps and the sender would send again.
#[test]
fn packets_stay_in_order_however_fast_a_series_changes() {
    let text = r#"
duration = "60s"
[topology]
kind = "dumbbell"
rate = "5Mbit/s"
delay = "10ms"
limit = "1000p"
[tcp]
receive_buffer = "200kB"
[[flows]]
kind = "bulk"
count = 2
[[changes]]
link = "bottleneck"
states = [
  { rate = "5Mbit/s", delay = "10ms", lasts = "7ms" },
  { rate = "300kbit/s", delay = "3ms", lasts = "3ms" },
  { rate = "50Mbit/s", delay = "20ms", lasts = "1ms" },
]
"#;
    let summary = simulate(text).summary();
    assert_eq!(summary.flows.iter().map(|flow| flow.retransmits).sum::<u64>(), 0);
    // Of 11 ms the states take 7, 3 and 1 in the mean: 35 + 0.9 + 50 kbit, which is 7.81 Mbit/s; there are some 5450 rounds
    // or 16,000 sojourns, the fast of which deviate by as much as they last: 50 kbit x sqrt(5450), or 1.4 %.
    let queue = &summary.bottlenecks[0];
    assert!((queue.utilization - 1.0).abs() < 0.01, "{}", queue.utilization);
    assert!((queue.throughput_bps / 7.81e6 - 1.0).abs() < 4.0 * 0.014, "{}", queue.throughput_bps);
}

#[test]
fn a_series_does_not_depend_on_the_steps_of_a_run() {
    let states = "states = [{ rate = \"3Mbit/s\", delay = \"5ms\", lasts = \"200ms\" }, \
                  { rate = \"1Mbit/s\", delay = \"30ms\", lasts = \"100ms\" }]\ntell_after = \"20ms\"\n";
    let more = format!(
        "{states}[[changes]]\nlink = \"bottleneck\"\ntrace = \"cell.mahi\"\nat = \"4s\"\ndirection = \"forward\"\n"
    );
    let text = busy("8s", "2Mbit/s", &more);
    let mut simulation = Simulation::new(&parse(&text));
    while !simulation.advance(Span::from_millis(17)).unwrap() {}
    let whole = simulate(&text);
    let json = |simulation: &Simulation| serde_json::to_string(&simulation.summary()).unwrap();
    assert_eq!(json(&simulation), json(&whole));
    assert_eq!(simulation.tables(), whole.tables());
}

#[test]
fn every_form_is_written_back_with_its_defaults() {
    let resolved = |changes: &str| parse(&busy("1s", "1Mbit/s", changes)).resolved();
    for line in
        ["altitude_km = 780.0", "satellites = 11", "processing = \"35ms\"", "step = \"10s\"", "served = \"0ns\""]
    {
        assert!(resolved("orbit = \"leo\"\n").contains(line), "{line} is not in\n{}", resolved("orbit = \"leo\"\n"));
    }
    assert!(resolved("orbit = \"geo\"\n").contains("satellites = 1\n"));
    let traced = resolved("trace = \"cell.mahi\"\n");
    for line in ["trace = \"cell.mahi\"", "bin = \"100ms\"", "at = \"0ns\"", "direction = \"both\""] {
        assert!(traced.contains(line), "{line} is not in\n{traced}");
    }
}
