//! Scenario files: a mistake gives one message with file, line and what is allowed; a scenario that is accepted runs
//! and routes.

use penstock_core::cc::{AnyControlConfig, cubic};
use penstock_core::units::{Bytes, Span};
use penstock_grammar::fields;
use penstock_grammar::impair::ImpairmentKeys;
use penstock_sim::scenario::{LayerKeys, Link};
use penstock_sim::summary::Summary;
use penstock_sim::tcp::{Acknowledging, ReceiveWindow, TcpConfig};
use penstock_sim::{Scenario, Simulation};

/// A correct scenario; each mistake replaces one piece of it. The first line is line 1.
const GOOD: &str = r#"name = "good"
duration = "2s"
seed = 1
warmup = "500ms"

[topology]
kind = "dumbbell"
rate = "10Mbit/s"
delay = "5ms"
limit = "125kB"
loss = 0.001

[aqm]
name = "red"
min_threshold = "5p"
max_threshold = "15p"

[tcp]
cc = "newreno"
mss = "1000B"

[[flows]]
kind = "bulk"
count = 2

[[flows]]
kind = "transfer"
size = "20kB"

[output]
pcapng = ["bottleneck"]
"#;

const GRAPH: &str = r#"duration = "1s"
[topology]
kind = "graph"
links = [
  { a = "x", b = "y", rate = "10Mbit/s", delay = "5ms", aqm = { name = "codel" } },
  { a = "y", b = "z", rate = "10Mbit/s", delay = "5ms" },
  { a = "p", b = "q", rate = "10Mbit/s", delay = "5ms" },
]
[[flows]]
kind = "bulk"
from = "x"
to = "z"
"#;

fn parse(text: &str) -> Scenario {
    Scenario::parse(text, "some/file.toml").unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn run(text: &str) -> Summary {
    let mut simulation = Simulation::new(&parse(text));
    simulation.advance(Span::MAX).unwrap();
    simulation.summary()
}

/// Returns the number of the line on which a piece of a text is.
fn line_of(text: &str, piece: &str) -> usize {
    let at = text.find(piece).unwrap_or_else(|| panic!("{piece:?} is not in the text"));
    text[..at].matches('\n').count() + 1
}

/// Checks that `good` with one piece replaced is refused, at the line where `place` is then, with all these words.
fn refused(good: &str, piece: &str, by: &str, place: &str, words: &[&str]) {
    assert_eq!(good.matches(piece).count(), 1, "{piece:?} is there once");
    let text = good.replacen(piece, by, 1);
    let message = Scenario::parse(&text, "some/file.toml").expect_err(&text).to_string();
    let expected = format!("some/file.toml:{}:", line_of(&text, place));
    assert!(message.contains(&expected), "{expected} is not in\n{message}");
    for word in words {
        assert!(message.contains(word), "{word:?} is not in\n{message}");
    }
    assert_eq!(message.matches("error: ").count(), 1, "one message:\n{message}");
    assert_eq!(message.matches("some/file.toml").count(), 1, "one place:\n{message}");
    assert!(message.lines().count() < 10, "a short message:\n{message}");
}

#[test]
fn the_examples_without_a_mistake_run() {
    assert!(run(GOOD).bottlenecks[0].packets > 0);
    assert!(run(GRAPH).bottlenecks[0].packets > 0);
}

#[test]
fn unknown_keys_are_refused_where_they_stand() {
    refused(GOOD, "seed = 1", "sede = 1", "sede", &["sede", "expected one of", "`seed`"]);
    refused(GOOD, "limit =", "limits =", "limits", &["limits", "`limit`"]);
    refused(GOOD, "min_threshold =", "min_treshold =", "min_treshold", &["red", "min_treshold", "`min_threshold`"]);
    refused(GOOD, "mss =", "msss =", "msss", &["msss", "`mss`"]);
    refused(GOOD, "count = 2", "counts = 2", "counts", &["counts", "`count`"]);
    refused(GOOD, "pcapng =", "pcap =", "pcap =", &["pcap", "`pcapng`"]);
    refused(GRAPH, "to = \"z\"", "towards = \"z\"", "towards", &["towards", "`to`"]);
    let in_link = "{ a = \"y\", b = \"z\", speed";
    refused(GRAPH, "{ a = \"y\", b = \"z\", rate", in_link, "speed", &["speed", "`rate`"]);
}

/// Each key of every link with another value than the default changes a run: the simulator ignores none.
#[test]
fn every_key_of_a_link_is_read() {
    const PLAIN: &str = r#"duration = "5s"
topology = { kind = "dumbbell", rate = "2Mbit/s", delay = "10ms", limit = "1000p", reverse_limit = "1000p", loss = 0.0 }
flows = [{ kind = "bulk" }, { kind = "bulk", direction = "reverse" }]
"#;
    let others = [
        ("rate", "rate = \"2Mbit/s\"", "rate = \"3Mbit/s\""),
        ("delay", "delay = \"10ms\"", "delay = \"20ms\""),
        ("reverse_rate", "rate = \"2Mbit/s\"", "rate = \"2Mbit/s\", reverse_rate = \"3Mbit/s\""),
        ("reverse_delay", "delay = \"10ms\"", "delay = \"10ms\", reverse_delay = \"20ms\""),
        ("limit", " limit = \"1000p\"", " limit = \"5p\""),
        ("reverse_limit", "reverse_limit = \"1000p\"", "reverse_limit = \"5p\""),
        ("loss", "loss = 0.0", "loss = 0.02"),
        ("link_layer", "loss = 0.0", "link_layer = \"docsis\""),
        ("overhead", "loss = 0.0", "overhead = 9"),
        ("mpu", "loss = 0.0", "mpu = 90"),
        ("framing", "loss = 0.0", "framing = \"atm\""),
        ("reverse_link_layer", "loss = 0.0", "reverse_link_layer = \"docsis\""),
        ("reverse_overhead", "loss = 0.0", "reverse_overhead = 9"),
        ("reverse_mpu", "loss = 0.0", "reverse_mpu = 90"),
        ("reverse_framing", "loss = 0.0", "reverse_framing = \"ptm\""),
        ("police", "loss = 0.0", "police = { rate = \"1Mbit/s\", burst = \"9kB\" }"),
        ("aggregate", "loss = 0.0", "aggregate = { interval = \"9ms\" }"),
        ("reorder", "loss = 0.0", "reorder = { share = 0.1, by = \"9ms\" }"),
        ("jitter", "loss = 0.0", "jitter = { by = \"9ms\" }"),
        ("duplicate", "loss = 0.0", "duplicate = 0.1"),
        ("gilbert", "loss = 0.0", "gilbert = { to_bad = 0.1, to_good = 0.5 }"),
        ("reverse_police", "loss = 0.0", "reverse_police = { rate = \"1Mbit/s\", burst = \"9kB\" }"),
        ("reverse_aggregate", "loss = 0.0", "reverse_aggregate = { interval = \"9ms\" }"),
        ("reverse_reorder", "loss = 0.0", "reverse_reorder = { share = 0.1, by = \"9ms\" }"),
        ("reverse_jitter", "loss = 0.0", "reverse_jitter = { by = \"9ms\" }"),
        ("reverse_duplicate", "loss = 0.0", "reverse_duplicate = 0.1"),
        ("reverse_gilbert", "loss = 0.0", "reverse_gilbert = { to_bad = 0.1, to_good = 0.5 }"),
    ];
    let keys: Vec<&str> = others.iter().map(|(key, ..)| *key).collect();
    assert_eq!(
        keys,
        [fields::of::<Link>(), fields::of::<LayerKeys>(), fields::of::<ImpairmentKeys>()].concat(),
        "every key has a row"
    );
    let plain = run(PLAIN);
    for (key, piece, by) in others {
        assert_eq!(PLAIN.matches(piece).count(), 1, "{piece:?} is there once");
        assert_ne!(run(&PLAIN.replacen(piece, by, 1)), plain, "{key}");
    }
}

#[test]
fn a_number_without_its_unit_is_refused_with_the_units() {
    refused(GOOD, "duration = \"2s\"", "duration = 2", "duration", &["a time in quotes with its unit", "\"5ms\""]);
    refused(GOOD, "duration = \"2s\"", "duration = \"2\"", "duration", &["\"2\" is not a time", "units: ns, us, ms"]);
    refused(GOOD, "\"10Mbit/s\"", "10000000", "10000000", &["a rate above zero", "\"10Mbit/s\""]);
    refused(GOOD, "\"125kB\"", "125000", "125000", &["a queue limit", "\"1000p\"", "\"125kB\""]);
    refused(GOOD, "\"1000B\"", "1000", "mss", &["a size", "\"125kB\""]);
    refused(GOOD, "\"20kB\"", "20000", "20000", &["a size", "\"125kB\""]);
    refused(GOOD, "\"5p\"", "5", "min_threshold", &["red", "\"1000p\""]);
}

#[test]
fn impossible_values_are_refused_with_what_is_allowed() {
    refused(GOOD, "\"10Mbit/s\"", "\"0Mbit/s\"", "0Mbit", &["a rate above zero"]);
    refused(GOOD, "\"10Mbit/s\"", "\"10Tbit/s\"", "10Tbit", &["rate is 10000Gbit/s", "up to 1Tbit/s"]);
    let fast = "loss = 0.001\naccess_rate = \"2Tbit/s\"";
    refused(GOOD, "loss = 0.001", fast, "access_rate", &["access_rate is 2000Gbit/s", "up to 1Tbit/s"]);
    let fast = "kind = \"cbr\"\nrate = \"2Tbit/s\"";
    refused(GOOD, "kind = \"bulk\"", fast, "2Tbit", &["rate is 2000Gbit/s", "up to 1Tbit/s"]);
    refused(GOOD, "\"5ms\"", "\"2h\"", "2h", &["delay is 7200s", "0ns to 600s"]);
    refused(GOOD, "\"125kB\"", "\"0p\"", "0p", &["a queue limit above zero"]);
    refused(GOOD, "\"500ms\"", "\"2s\"\n", "warmup", &["warmup must be shorter than duration (2s)"]);
    refused(GOOD, "\"1000B\"", "\"10B\"", "mss", &["mss: 10B is not within 64B and 65000B"]);
    refused(GOOD, "duration = \"2s\"", "duration = \"0s\"", "duration", &["duration is 0ns", "1ns to"]);
    refused(GOOD, "seed = 1", "seed = -1", "seed", &["-1", "a whole number from 0 on"]);
    for loss in ["1.1", "-0.1", "nan", "inf"] {
        let text = format!("loss = {loss}");
        refused(GOOD, "loss = 0.001", &text, &text, &["loss is", "from 0 to 1"]);
    }
    // As for stations, a wire may lose everything.
    for loss in ["0.0", "1.0"] {
        parse(&GOOD.replace("loss = 0.001", &format!("loss = {loss}")));
    }
    refused(GRAPH, "\"5ms\" },\n  { a = \"p\"", "\"5ms\", loss = 2 },\n  { a = \"p\"", "loss = 2", &["from 0 to 1"]);
}

#[test]
fn unknown_names_come_with_the_nearest_and_all_others() {
    refused(
        GOOD,
        "name = \"red\"",
        "name = \"rde\"",
        "rde",
        &["no algorithm \"rde\"", "did you mean \"red\"", "codel"],
    );
    refused(GOOD, "\"newreno\"", "\"newrneo\"", "newrneo", &["did you mean \"newreno\"", "cubic"]);
    refused(GOOD, "name = \"red\"\n", "", "[aqm]", &["`name` is missing", "codel"]);
    refused(
        GOOD,
        "kind = \"bulk\"",
        "kind = \"bulky\"",
        "bulky",
        &["\"bulky\"", "did you mean \"bulk\"", "transfer", "onoff"],
    );
    refused(GOOD, "\"dumbbell\"", "\"dumbell\"", "dumbell", &["did you mean \"dumbbell\"", "parking-lot", "graph"]);
    refused(
        GOOD,
        "[\"bottleneck\"]",
        "[\"bottle\"]",
        "bottle\"",
        &["no bottleneck \"bottle\"", "there are bottleneck"],
    );
    let captured = format!("{GRAPH}[output]\npcapng = [\"x-y\"]\n");
    parse(&captured);
    refused(&captured, "[\"x-y\"]", "[\"y-z\"]", "pcapng", &["no bottleneck \"y-z\"", "there are x-y"]);
}

#[test]
fn parameters_of_an_algorithm_are_checked_together() {
    refused(GOOD, "\"5p\"", "\"15p\"", "max_threshold", &["red", "must be above min_threshold (15p)"]);
    let weight = "max_threshold = \"15p\"\nweight = 3.0";
    refused(GOOD, "max_threshold = \"15p\"", weight, "weight", &["red", "weight"]);
    let codel = "aqm = { name = \"codel\", target = \"0ms\" }";
    refused(GRAPH, "aqm = { name = \"codel\" }", codel, "target", &["codel", "target"]);
}

#[test]
fn a_flow_has_what_its_kind_needs_and_nothing_else() {
    refused(GOOD, "size = \"20kB\"\n", "", "kind = \"transfer\"", &["\"transfer\" needs `size`"]);
    refused(GOOD, "count = 2", "size = \"1kB\"", "size = \"1kB\"", &["`size` means nothing for kind \"bulk\""]);
    refused(GOOD, "\"20kB\"", "\"0B\"", "size", &["1B to 1PB"]);
    refused(GOOD, "kind = \"bulk\"", "kind = \"onoff\"\nrate = \"1Mbit/s\"", "onoff", &["needs `mean_on`"]);
    refused(GOOD, "count = 2", "start = \"1s\"\nstop = \"1s\"", "stop", &["after start (1s)"]);
    refused(GOOD, "count = 2", "from = \"left\"", "from", &["leave `from` and `to` out"]);
    refused(
        GOOD,
        "kind = \"bulk\"",
        "kind = \"cbr\"\nrate = \"1Mbit/s\"\npacket_size = \"1MB\"",
        "packet_size",
        &["65kB"],
    );
    refused(GRAPH, "to = \"z\"", "", "kind = \"bulk\"", &["`to` is missing"]);
    let own = "tcp = { initial_window = 0 }";
    refused(GOOD, "count = 2", own, own, &["initial_window: 0 is not within 1 and 10000"]);
    refused(GOOD, "count = 2", "cc = \"quick\"", "quick", &["\"quick\" is not one of", "newreno"]);
    refused(GOOD, "cc = \"newreno\"", "sack = \"yes\"", "sack", &["true or false"]);
}

#[test]
fn parameters_of_a_control_are_refused_where_they_stand() {
    let cc = "cc = \"newreno\"";
    let with = |table: &str| format!("cc = {{ {table} }}");
    let quick = with("name = \"cubik\"");
    refused(GOOD, cc, &quick, "cubik", &["\"cubik\" is not one of", "did you mean \"cubic\"?"]);
    let unknown = with("name = \"cubic\", bata = 0.8");
    refused(GOOD, cc, &unknown, "bata", &["cubic: unknown field `bata` (did you mean `beta`?)", "hystart"]);
    let kind = "[tcp.cc]\nname = \"hybla\"\nrtt0 = 25\n[tcp]";
    refused(
        &GOOD.replace(&format!("{cc}\n"), ""),
        "[tcp]",
        kind,
        "rtt0",
        &["hybla: ", "a time in quotes with its unit"],
    );
    refused(GOOD, cc, &with("name = \"vegas\", beta = 1"), "beta", &["vegas: beta: must be from 2 to"]);
    refused(GOOD, cc, &with("beta = 0.8"), "beta", &["`name` is missing", "newreno"]);
    refused(GOOD, cc, "cc = 3", "cc = 3", &["a number is no control: write its name"]);
    refused(GOOD, cc, "hystart = 1", "hystart", &["true or false"]);
    let own = "count = 2\ncc = { name = \"bbr\",\n gain = 2 }";
    refused(GOOD, "count = 2", &own.replace(",\n", ", "), "gain", &["bbr: unknown field `gain`"]);
}

/// The control of `[tcp]`, that of a flow in place of it, and the old spelling of `hystart`, which counts for controls that
/// have it unless the parameter is written.
#[test]
fn parameters_of_a_control_are_those_that_are_written() {
    let config = |tcp: &str, flow: &str| {
        let text = GOOD.replace("cc = \"newreno\"", tcp).replace("count = 2", &format!("count = 2\n{flow}"));
        let scenario = parse(&text);
        let again = parse(&scenario.resolved());
        assert_eq!(again.flows, scenario.flows, "the resolved form says the same");
        scenario.flows[0].tcp.cc.clone()
    };
    let cubic = |beta, hystart| AnyControlConfig::Cubic(cubic::Config { beta, hystart, ..cubic::Config::default() });
    let table = "cc = { name = \"cubic\", beta = 0.8 }";
    assert_eq!(config("", ""), cubic(0.7, false));
    assert_eq!(config("cc = \"cubic\"", ""), cubic(0.7, false));
    assert_eq!(config(table, ""), cubic(0.8, false));
    assert_eq!(config(table, "cc = \"cubic\""), cubic(0.7, false));
    assert_eq!(config(table, "tcp = { cc = { name = \"cubic\", hystart = true } }"), cubic(0.7, true));
    assert_eq!(config(&format!("{table}\nhystart = true"), ""), cubic(0.8, true));
    assert_eq!(config("hystart = true", ""), cubic(0.7, true));
    assert_eq!(config("hystart = true\ncc = { name = \"cubic\", hystart = false }", ""), cubic(0.7, false));
    assert_eq!(config("hystart = true\ncc = \"vegas\"", ""), AnyControlConfig::default_of("vegas").unwrap());
}

#[test]
fn absurd_sizes_are_refused_before_anything_is_built() {
    refused(GOOD, "count = 2", "count = 1000000000", "flows", &["1 to 200000 flows", "1000000001"]);
    refused(GOOD, "count = 2", "count = 9223372036854775807", "flows", &["1 to 200000 flows"]);
    refused(GOOD, "duration = \"2s\"", "duration = \"8766h\"", "duration", &["duration is 31557600s", "to 86400s"]);
    refused(GOOD, "duration = \"2s\"", "duration = \"8766000h\"", "duration", &["is not a time"]);
    refused(GOOD, "count = 2", "start = \"1000h\"", "start", &["start is 3600000s", "to 86400s"]);
    refused(GOOD, "count = 2", "count = 0", "count", &["count is 0; allowed are 1 to 200000"]);
    refused(GOOD, "count = 2", "count = 2\n[[flows]]\nkind = \"transfer\"\nsize = \"9999TB\"", "size", &["1PB"]);
}

#[test]
fn names_are_distinct_and_places_are_connected() {
    let second = "{ a = \"y\", b = \"z\", name = \"x-y\",";
    refused(GRAPH, "{ a = \"y\", b = \"z\",", second, "name = \"x-y\"", &["two links have the name \"x-y\"", "`name`"]);
    let parallel = "{ a = \"x\", b = \"y\", rate = \"1Mbit/s\",";
    refused(
        GRAPH,
        "{ a = \"p\", b = \"q\", rate = \"10Mbit/s\",",
        parallel,
        "1Mbit/s",
        &["two links have the name \"x-y\""],
    );
    let reverse = "{ a = \"y\", b = \"z\", name = \"x-y-reverse\",";
    refused(GRAPH, "{ a = \"y\", b = \"z\",", reverse, "x-y-reverse", &["two links have the name \"x-y-reverse\""]);
    refused(GRAPH, "to = \"z\"", "to = \"q\"", "to = \"q\"", &["no path from \"x\" to \"q\""]);
    refused(GRAPH, "to = \"z\"", "to = \"nowhere\"", "nowhere", &["no router \"nowhere\"", "x, y, z"]);
    refused(GRAPH, "to = \"z\"", "to = \"x\"", "to = \"x\"", &["from \"x\" to itself"]);
    refused(GRAPH, "a = \"p\", b = \"q\"", "a = \"p\", b = \"p\"", "a = \"p\"", &["from \"p\" to itself"]);
}

#[test]
fn broken_toml_and_missing_parts_are_named() {
    refused(GOOD, "[tcp]", "[tcp", "[tcp\n", &["]"]);
    refused(GOOD, "kind = \"dumbbell\"\n", "", "[topology]", &["`kind` is missing", "parking-lot"]);
    refused(GOOD, "\"dumbbell\"", "3", "kind = 3", &["`kind` is a text", "parking-lot"]);
    refused(GOOD, "rate = \"10Mbit/s\"\n", "", "[topology]", &["missing field `rate`"]);
    refused(GOOD, "duration = \"2s\"\n", "", "name = \"good\"", &["missing field `duration`"]);
    refused(GOOD, "seed = 1", "seed = 1\nseed = 2", "seed = 2", &["duplicate key"]);
    for text in ["", "\u{feff}", "\0", "=", "[[flows]]", "topology = 3", "[topology]\nkind = 3\n", "é = \"é"] {
        let message = Scenario::parse(text, "some/file.toml").expect_err(text).to_string();
        assert!(message.contains("error: "), "{message}");
    }
}

#[test]
fn changes_name_their_link_and_what_becomes_of_it() {
    let change = |rest: &str| format!("[[changes]]\nlink = \"bottleneck\"\nat = \"1s\"\n{rest}\n[output]");
    let refused = |rest: &str, place: &str, words: &[&str]| refused(GOOD, "[output]", &change(rest), place, words);
    refused("", "bottleneck", &["nothing changes", "`rate`", "`delay`", "`loss`"]);
    refused("rate = \"2Tbit/s\"", "2Tbit", &["up to 1Tbit/s"]);
    refused("delay = \"1h\"", "1h", &["delay is 3600s", "600s"]);
    refused("loss = 1.5", "loss = 1.5", &["from 0 to 1"]);
    refused("loss = 0.1\nevery = \"1us\"", "1us", &["every is 1us", "1ms"]);
    refused("loss = 0.1\ndirection = \"forwards\"", "forwards", &["did you mean \"forward\"?", "reverse"]);
    refused("lost = 0.1", "lost", &["`loss`"]);
    let elsewhere = "[[changes]]\nlink = \"bottelneck\"\nat = \"1s\"\nloss = 0.1\n[output]";
    self::refused(GOOD, "[output]", elsewhere, "bottelneck", &["no link", "did you mean \"bottleneck\"?"]);
}

/// Checks that `GOOD` with this change is refused.
fn refused_change(rest: &str, place: &str, words: &[&str]) {
    refused(GOOD, "[output]", &format!("[[changes]]\nlink = \"bottleneck\"\n{rest}\n[output]"), place, words);
}

#[test]
fn a_change_is_a_step_or_one_series() {
    let refused = refused_change;
    refused("rate = \"1Mbit/s\"", "link = \"bottleneck\"", &["`at` is missing"]);
    refused("", "link = \"bottleneck\"", &["nothing changes", "`orbit`", "`trace`", "`table`", "`states`"]);
    refused("orbit = \"meo\"\nrate = \"1Mbit/s\"", "rate = \"1M", &["`orbit` and `rate`", "its own [[changes]]"]);
    refused("orbit = \"meo\"\ntrace = \"x\"", "trace", &["`orbit` and `trace` in one change"]);
    refused("orbit = \"meo\"\nevery = \"9s\"", "every", &["`every` is for steps and a `table`"]);
    refused("orbit = \"meo\"\nbin = \"9s\"", "bin", &["`bin` is for a `trace`"]);
    refused("orbits = \"meo\"", "orbits", &["unknown field `orbits`", "`orbit`"]);
}

#[test]
fn an_orbit_has_satellites_that_are_seen() {
    let refused = refused_change;
    refused("orbit = \"mao\"", "mao", &["no orbit \"mao\"", "did you mean", "geo, meo, leo"]);
    refused("orbit = 8063", "8063", &["a table like { altitude_km = 8063, satellites = 8 }", "\"geo\""]);
    refused("orbit = { satellites = 8 }", "orbit", &["missing field `altitude_km`"]);
    refused("orbit = { altitude_km = 50 }", "50 }", &["altitude_km is 50; allowed are 100 to 50000"]);
    refused("orbit = { altitude_km = nan }", "nan", &["altitude_km is NaN; allowed are 100 to 50000"]);
    refused("orbit = { altitude_km = 780, satellites = 0 }", "orbit", &["satellites is 0; allowed are 1 to 1000"]);
    refused("orbit = { altitude_km = 780, satellites = 4 }", "orbit", &["above the horizon of both stations"]);
    refused("orbit = { altitude_km = 780, latitude = 99 }", "99", &["latitude is 99; allowed are -90 to 90"]);
    refused("orbit = { altitude_km = 780, step = \"1us\" }", "1us", &["step is 1us", "1ms"]);
    refused("orbit = { altitude_km = 780, steps = \"1s\" }", "steps", &["unknown field `steps`", "`step`"]);
    let often = "orbit = { altitude_km = 8063, satellites = 8, step = \"1ms\" }";
    refused(often, "orbit", &["a passage has 2700055 steps of 1ms", "1000000", "longer `step`"]);
}

#[test]
fn files_are_somebody_elses() {
    let refused = refused_change;
    let told: &[&str] = &["nothing here can read the file \"cell.mahi\"", "`penstock run`"];
    refused("trace = \"cell.mahi\"", "cell.mahi", told);
    refused("table = \"cell.mahi\"", "cell.mahi", told);
    refused("trace = \"cell.mahi\"\nbin = \"1us\"", "1us", &["bin is 1us", "1ms"]);
}

#[test]
fn states_differ_in_what_all_of_them_say() {
    let refused = |states: &str, place: &str, words: &[&str]| {
        refused_change(&format!("states = [\n{states}\n]"), place, words);
    };
    let good = "{ loss = 0.5, lasts = \"1s\" },";
    refused(good, "states", &["2 to 1000 states, not 1"]);
    refused(&format!("{good}\n{{ loss = 0.5 }}"), "{ loss = 0.5 }", &["missing field `lasts`"]);
    refused(&format!("{good}\n{{ lasts = \"2s\" }}"), "lasts = \"2s\"", &["give `rate`, `delay` or `loss`"]);
    refused(&format!("{good}\n{{ loss = 2, lasts = \"2s\" }}"), "loss = 2", &["loss is 2", "from 0 to 1"]);
    refused(&format!("{good}\n{{ loss = 0, lasts = \"1us\" }}"), "1us", &["lasts is 1us", "1ms"]);
    let other = format!("{good}\n{{ delay = \"5ms\", loss = 0, lasts = \"2s\" }}");
    refused(&other, "delay = \"5ms\", loss = 0, lasts", &["`delay` is said of some states only", "all or of none"]);
}

#[test]
fn a_flood_needs_its_rate() {
    refused(GOOD, "kind = \"bulk\"", "kind = \"synflood\"", "synflood", &["needs `per_second`"]);
    let none = "kind = \"synflood\"\nper_second = 0";
    refused(GOOD, "kind = \"bulk\"", none, "per_second = 0", &["1 to 1000000 SYNs"]);
    let bulk = "kind = \"bulk\"\nper_second = 5";
    refused(GOOD, "kind = \"bulk\"", bulk, "per_second", &["means nothing for kind \"bulk\""]);
}

/// Checks that `GOOD` with its bulk flows replaced by these lines is refused.
fn refused_flow(flow: &str, place: &str, words: &[&str]) {
    refused(GOOD, "kind = \"bulk\"\ncount = 2", flow, place, words);
}

#[test]
fn sessions_and_web_traffic_say_what_they_allow() {
    for flow in ["kind = \"http\"", "kind = \"web\"\nper_second = 0.125", "kind = \"web\"\nload = 0.5"] {
        parse(&GOOD.replacen("kind = \"bulk\"", flow, 1));
    }
    let both = "kind = \"http\"\nsize = \"1kB\"\npackets = 3";
    refused_flow(both, "packets", &["`size` or `packets`", "not both"]);
    refused_flow("kind = \"http\"\npackets = 0", "packets", &["1 to 1000000 packets"]);
    refused_flow("kind = \"http\"\nsize = \"0B\"", "size", &["1B to 1PB"]);
    refused_flow("kind = \"http\"\nidle = 5", "idle", &["a time in quotes with its unit"]);
    let distribution = "kind = \"http\"\nidle_distribution = \"exponental\"";
    refused_flow(distribution, "idle_dist", &["did you mean \"exponential\"", "constant"]);
    refused_flow("kind = \"http\"\nconnection = \"old\"", "connection", &["no connection \"old\"", "new", "same"]);
    refused_flow("kind = \"http\"\nload = 0.5", "load", &["`load` means nothing for kind \"http\""]);
    refused_flow("kind = \"web\"", "kind = \"web\"", &["needs `per_second` or `load`"]);
    refused_flow("kind = \"web\"\nper_second = 1\nload = 1", "load", &["not both"]);
    refused_flow("kind = \"web\"\nper_second = 0", "per_second", &["above 0 to 10000"]);
    refused_flow("kind = \"web\"\nper_second = 1e5", "per_second", &["above 0 to 10000"]);
    refused_flow("kind = \"web\"\nper_second = nan", "per_second", &["above 0 to 10000"]);
    refused_flow("kind = \"web\"\nload = -1", "load", &["load is -1", "to 10"]);
    refused_flow("kind = \"web\"\nload = 10\nmean_size = \"1B\"", "load", &["12500000 transfers per second"]);
    refused_flow("kind = \"web\"\nper_second = 1\nshape = 1.0", "shape", &["above 1 (or there is no mean)"]);
    refused_flow("kind = \"web\"\nper_second = 1\nmean_size = \"0B\"", "mean_size", &["1B to 1PB"]);
    refused_flow("kind = \"web\"\nper_second = 1\nmax_size = \"49kB\"", "max_size", &["at least mean_size (50kB)"]);
    refused_flow("kind = \"synflood\"\nper_second = 2.5", "per_second", &["1 to 1000000 SYNs", "whole"]);
}

#[test]
fn calls_and_video_say_what_they_allow() {
    for flow in [
        "kind = \"voip\"\ntalk_spurts = true",
        "kind = \"voip\"\nmean_on = \"1s\"",
        "kind = \"video\"\nrate = \"1Mbit/s\"",
    ] {
        parse(&GOOD.replacen("kind = \"bulk\"", flow, 1));
    }
    refused_flow("kind = \"voip\"\ntalk_spurts = 1", "talk_spurts", &["true or false"]);
    refused_flow("kind = \"voip\"\nmean_on = \"0s\"", "mean_on", &["mean_on is 0ns", "1ms"]);
    let silent = "kind = \"voip\"\ntalk_spurts = false\nmean_on = \"1s\"";
    refused_flow(silent, "talk_spurts", &["leave them out"]);
    refused_flow("kind = \"voip\"\nrate = \"64kbit/s\"", "rate = \"64", &["means nothing for kind \"voip\""]);
    refused_flow("kind = \"video\"", "kind = \"video\"", &["needs `rate`"]);
    let video = |rest: &str| format!("kind = \"video\"\nrate = \"2Mbit/s\"\n{rest}");
    refused_flow(&video("fps = 0"), "fps", &["fps is 0", "1 to 1000"]);
    refused_flow(&video("gop = 0"), "gop", &["1 to 10000 frames"]);
    refused_flow(&video("i_frame_ratio = 0.5"), "i_frame", &["i_frame_ratio is 0.5", "1 to 100"]);
    refused_flow(&video("spread = 3"), "spread", &["spread is 3", "0 to 2"]);
    refused_flow(&video("deadline = \"0ms\""), "deadline", &["deadline is 0ns", "1ms"]);
    refused_flow(&video("packet_size = \"12B\""), "packet_size", &["100B to 65kB"]);
    refused_flow(&video("packet_size = [\"1kB\", \"2kB\"]"), "packet_size", &["all the same"]);
    refused_flow("kind = \"video\"\nrate = \"1Tbit/s\"", "1Tbit", &["at most 65535 packets"]);
}

#[test]
fn packets_of_several_sizes_have_a_weight_each() {
    let cbr = |rest: &str| format!("kind = \"cbr\"\nrate = \"1Mbit/s\"\n{rest}");
    parse(&GOOD.replacen("kind = \"bulk\"", &cbr("packet_size = [\"40B\", \"1500B\"]"), 1));
    refused_flow(&cbr("packet_size = 1000"), "packet_size", &["a size in quotes", "or a list of sizes"]);
    refused_flow(&cbr("packet_size = [\"40B\", 1500]"), "packet_size", &["a size"]);
    refused_flow(&cbr("packet_size = []"), "packet_size", &["1B to 65kB"]);
    refused_flow(&cbr("packet_size = [\"40B\", \"1MB\"]"), "packet_size", &["1B to 65kB"]);
    let weights = |weights: &str| cbr(&format!("packet_size = [\"40B\", \"1500B\"]\npacket_weights = {weights}"));
    refused_flow(&weights("[1, 2, 3]"), "packet_weights", &["3 weights for 2 sizes"]);
    refused_flow(&weights("[1, 0]"), "packet_weights", &["above 0"]);
    refused_flow(&weights("[1, inf]"), "packet_weights", &["above 0"]);
    let bulk = "kind = \"bulk\"\npacket_size = \"1kB\"";
    refused_flow(bulk, "packet_size", &["`packet_size` means nothing for kind \"bulk\""]);
}

#[test]
fn a_direction_is_for_dumbbells() {
    refused_flow("kind = \"bulk\"\ndirection = \"revers\"", "revers", &["did you mean \"reverse\"?", "forward"]);
    refused_flow(
        "kind = \"bulk\"\nfrom = \"right\"",
        "from",
        &["direction = \"reverse\"", "leave `from` and `to` out"],
    );
    refused(GRAPH, "to = \"z\"", "to = \"z\"\ndirection = \"reverse\"", "direction", &["name `from` and `to`"]);
}

/// The file's own keys stand; all others are the profile's, in every flow and at every link.
#[test]
fn a_profile_sets_what_the_file_does_not_say() {
    let text = |profile: &str| {
        format!("profile = {profile:?}\n{GOOD}")
            .replace("[[flows]]\nkind = \"bulk\"", "[[flows]]\nkind = \"bulk\"\ntcp = { sack = false }")
    };
    let resolved = parse(&text("ns-3.37")).resolved();
    for line in [
        "mss = \"1kB\"",
        "sack = false",
        "sack = true",
        "initial_window = 10",
        "growth = \"acks\"",
        "min_threshold = \"5p\"",
    ] {
        assert!(resolved.contains(line), "{line} is not in\n{resolved}");
    }
    for line in ["send_buffer = \"131.072kB\"", "max_probability = 0.02", "wait = true", "min_rto = \"1s\""] {
        assert!(resolved.contains(line), "{line} is not in\n{resolved}");
        assert!(!parse(GOOD).resolved().contains(line), "{line} is in the default");
    }
    assert!(!resolved.contains("profile"), "the keys say all");
    assert_eq!(parse(&resolved).resolved(), resolved);
    let mistake = Scenario::parse(&text("ns-3.73"), "f.toml").unwrap_err();
    assert_eq!((mistake.line, mistake.allowed.join(" ").as_str()), (1, "linux linux-6.12 ns-3.37 ns-2.35"));
    assert!(mistake.what.contains("did you mean \"ns-3.37\"?"), "{mistake}");
}

/// `[tcp] profile` is that of hosts: the discipline keeps its own values, and a flow may have hosts of another kind.
#[test]
fn hosts_have_a_profile_of_their_own() {
    const TEXT: &str = r#"duration = "1s"
topology = { kind = "dumbbell", rate = "10Mbit/s", delay = "20ms" }
aqm = "red"
[tcp]
profile = "linux"
[[flows]]
kind = "bulk"
[[flows]]
kind = "bulk"
cc = "newreno"
[[flows]]
kind = "bulk"
tcp = { profile = "ns-3.37" }
[[flows]]
kind = "bulk"
tcp = { sack = false, cc = "cubic" }
"#;
    let scenario = parse(TEXT);
    let tcp: Vec<_> = scenario.flows.iter().map(|flow| &flow.tcp).collect();
    let [linux, reno, other, blind] = tcp.as_slice() else { panic!("four flows") };
    assert_eq!((linux.cc.name(), linux.rack, linux.receive_window), ("cubic-linux", true, ReceiveWindow::Linux));
    assert_eq!(linux.acknowledging, Acknowledging::Linux);
    let of = |tcp: &TcpConfig, key: &str| tcp.cc.parameters().get(key).cloned();
    assert_eq!((of(linux, "hystart"), of(reno, "compat")), (Some(true.into()), Some("linux".into())));
    assert_eq!((other.mss, other.rack, other.receive_window), (Bytes::new(536), false, ReceiveWindow::Fixed));
    assert_eq!((blind.sack, blind.rack, of(blind, "hystart")), (false, false, Some(true.into())));
    let plain = parse(&TEXT.replace("profile = \"linux\"\n", ""));
    assert_eq!(scenario.links, plain.links, "the discipline is not a matter of hosts");
    let resolved = scenario.resolved();
    assert!(!resolved.contains("profile"), "the keys say all");
    assert_eq!(parse(&resolved).flows, scenario.flows);
    let mistake = Scenario::parse(&TEXT.replace("\"linux\"", "\"linux-6.21\""), "f.toml").unwrap_err();
    assert_eq!((mistake.line, mistake.column), (5, 11), "{mistake}");
    assert!(mistake.what.contains("did you mean \"linux-6.12\"?"), "{mistake}");
    let named = parse(&TEXT.replace("\"linux\"", "\"linux-6.12\""));
    assert_eq!(named.flows, scenario.flows, "the name without a version is that version");
}

/// The kernel's `rto_min` is the least timeout and the granularity of its timer (`tcp_rto_min`); ns-3 has two values.
#[test]
fn hosts_of_linux_have_one_value_for_the_least_timeout() {
    let text = |profile: &str, more: &str| {
        format!(
            "duration = \"1s\"\ntopology = {{ kind = \"dumbbell\", rate = \"10Mbit/s\", delay = \"20ms\" }}\n\
             [tcp]\nprofile = \"{profile}\"\nmin_rto = \"10ms\"\n{more}[[flows]]\nkind = \"bulk\"\n"
        )
    };
    let granularity = |profile, more| parse(&text(profile, more)).flows[0].tcp.rto_granularity;
    assert_eq!(granularity("linux", ""), Span::from_millis(10));
    assert_eq!(granularity("linux", "rto_granularity = \"4ms\"\n"), Span::from_millis(4));
    assert_eq!(granularity("ns-3.37", ""), Span::from_millis(1));
}

/// A profile without ECN does not keep a control from what it needs (`TCP_CONG_NEEDS_ECN`); a file may.
#[test]
fn a_control_that_counts_marks_has_ecn_in_every_profile() {
    let text = |more: &str| {
        format!(
            "duration = \"1s\"\ntopology = {{ kind = \"dumbbell\", rate = \"10Mbit/s\", delay = \"20ms\" }}\n\
             [tcp]\nprofile = \"linux\"\n{more}[[flows]]\nkind = \"bulk\"\n"
        )
    };
    assert!(parse(&text("cc = \"dctcp\"\n")).flows[0].tcp.ecn);
    assert!(!parse(&text("")).flows[0].tcp.ecn);
    let mistake = Scenario::parse(&text("cc = \"dctcp\"\necn = false\n"), "f.toml").unwrap_err();
    assert!(mistake.what.contains("dctcp goes by marks"), "{mistake}");
}

/// Each discipline and each control with a table in a profile takes every value of it.
#[test]
fn every_value_of_every_profile_is_one_of_a_key() {
    let tables: toml::Table = include_str!("../src/scenario/profiles.toml").parse().unwrap();
    for (profile, kinds) in &tables {
        for (kind, of) in kinds.as_table().unwrap().iter().filter(|(kind, _)| *kind != "tcp") {
            for (name, keys) in of.as_table().unwrap() {
                let (aqm, cc) = if kind == "aqm" { (name.as_str(), "cubic") } else { ("droptail", name.as_str()) };
                let text = GOOD.replace("min_threshold = \"5p\"\nmax_threshold = \"15p\"\n", "");
                let text = text.replace("\"red\"", &format!("{aqm:?}")).replace("\"newreno\"", &format!("{cc:?}"));
                let resolved = parse(&format!("profile = {profile:?}\n{text}")).resolved();
                for (key, value) in keys.as_table().unwrap() {
                    let value = &value["is"];
                    assert!(
                        value.is_str() || resolved.contains(&format!("{key} = {value}")),
                        "{key} = {value}\n{resolved}"
                    );
                    assert!(resolved.contains(&format!("{key} = ")), "{key}\n{resolved}");
                }
            }
        }
    }
}
