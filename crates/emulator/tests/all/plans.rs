//! What is planned by options and files, and what a file changes of a run.

use clap::{CommandFactory, Parser};
use penstock_appliance::settings::Settings as _;
use penstock_core::aqm::codel;
use penstock_core::foreign::{Library, Own};
use penstock_core::registry::AnyConfig;
use penstock_core::settings::config_from_settings;
use penstock_core::units::{Rate, Span};
use penstock_emulator::cli::{Options, Plan};
use penstock_grammar::fields;
use penstock_grammar::impair::ImpairmentKeys;
use penstock_grammar::link::{LayerKeys, Link};
use penstock_shaper::nodes::Side;
use std::sync::atomic::{AtomicU32, Ordering};

fn parse(extra: &[&str]) -> Result<Options, clap::Error> {
    Options::try_parse_from([&["penstock-emulate", "--rate", "10Mbit/s"], extra].concat())
}

fn plan(extra: &[&str]) -> Plan {
    parse(extra).unwrap().plans(&()).unwrap().remove(0)
}

/// Returns the plans of a file with further options, or what is said of a mistake.
fn all(file: &str, options: &[&str], library: &dyn Library) -> Result<Vec<Plan>, String> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let name = format!("penstock-plans-{}-{}.toml", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, file).unwrap();
    let words = [&["penstock-emulate", "--config", path.to_str().unwrap()], options].concat();
    let plans = Options::try_parse_from(words).unwrap().plans(library).map_err(|e| e.to_string());
    std::fs::remove_file(path).unwrap();
    plans
}

fn planned(file: &str, options: &[&str]) -> Plan {
    all(file, options, &()).unwrap().remove(0)
}

const FILE: &str = "seed = 7\nspin = true\n[link]\nrate = \"10Mbit/s\"\ndelay = \"20ms\"\nreverse_rate = \"1Mbit/s\"\n\
                    [aqm]\nname = \"codel\"\ntarget = \"10ms\"\ninterval = \"200ms\"\n[left]\nnetns = \"a\"\n";
const GOOD: &str = include_str!("good.toml");
const WIRES: &str = include_str!("wires.toml");

#[test]
fn the_command_is_well_formed() {
    Options::command().debug_assert();
}

#[test]
fn what_a_file_says_is_read_and_the_rest_is_left_open() {
    let Plan { file, settings, .. } = planned(GOOD, &[]);
    let [there, back] = settings.0.map(|way| way.config);
    assert_eq!((there.rate, there.delay), (Rate::from_bps(10_000_000), Span::from_millis(20)));
    assert_eq!((back.rate, back.delay), (Rate::from_bps(1_000_000), Span::from_millis(20)));
    assert_eq!([there.aqm, back.aqm].each_ref().map(AnyConfig::name), ["codel", "droptail"]);
    assert_eq!((file.run.seed, file.run.nodes), (Some(7), Some(Side::Right)));
    assert_eq!(file.ends[0].netns.as_deref(), Some("a"));
    assert_eq!(file.ends[1], plan(&[]).file.ends[1]);
    assert_eq!(planned("", &["--rate", "10Mbit/s"]), plan(&[]));
}

#[test]
fn subscribers_stations_and_hosts_are_read() {
    let text = GOOD.replace("limit = ", "stations = [0.0, { technology = \"wifi\", snr_db = 9 }]\nlimit = ");
    let text = format!(
        "{text}\n[[hosts]]\naddress = \"10.2.0.1\"\nclass = 3\n[[hosts]]\naddress = \"10.2.0.2\"\n\
         [subscribers]\nyard = [\"10.2.0.0/16\"]\nhouse = [\"10.1.0.0/28\", \"2001:db8:1::/56\"]\n"
    );
    let Plan { file, settings, .. } = planned(&text, &[]);
    let named: Vec<_> = file.subscribers.iter().map(|n| (n.name.as_str(), n.prefixes.len())).collect();
    assert_eq!(named, [("house", 2), ("yard", 1)]);
    let hosts: Vec<_> = file.hosts.iter().map(|host| (host.address.to_string(), host.class)).collect();
    assert_eq!(hosts, [("10.2.0.1".into(), Some(3)), ("10.2.0.2".into(), None)]);
    assert_eq!(settings.0[0].stations.len(), 2);
}

#[test]
fn a_file_may_have_several_wires() {
    let [first, second] = all(WIRES, &[], &()).unwrap().try_into().unwrap();
    assert_eq!((first.wire.as_deref(), second.wire.as_deref()), (Some("first"), Some("second")));
    assert_eq!((&first.socket, &second.socket), (&None, &Some("/run/second.sock".into())));
    assert!(first.file.run.realtime && second.file.run.realtime);
    assert_eq!((first.file.run.seed, second.file.run.seed), (Some(7), Some(8)), "other random numbers");
    assert_eq!((first.file.run.mtu, second.file.run.mtu), (Some(1400), None));
    let [first, second] = [first, second].map(|plan| plan.settings.0[0].config.clone());
    assert_eq!((first.rate.as_bps(), second.rate.as_bps()), (10_000_000, 5_000_000));
    assert_eq!(second.aqm.name(), "codel");
}

#[test]
fn the_wire_loses_packets_if_told_by_option_or_file() {
    let loss = |plan: Plan| plan.settings.0.map(|way| way.loss);
    assert_eq!([loss(plan(&[])), loss(plan(&["--loss", "0.01"]))], [[0.0, 0.0], [0.01, 0.0]]);
    let lossy = FILE.replace("[link]\n", "[link]\nloss = 0.02\n");
    assert_eq!([loss(planned(&lossy, &[]))[0], loss(planned(&lossy, &["--loss", "0"]))[0]], [0.02, 0.0]);
}

#[test]
fn what_is_said_of_the_run_has_defaults() {
    let side = |extra: &[&str]| plan(extra).file.run.nodes;
    assert_eq!([side(&[]), side(&["--nodes", "left"])], [None, Some(Side::Left)]);
    assert_eq!([side(&["--nodes", "right"]), side(&["--nodes", "none"])], [Some(Side::Right), Some(Side::None)]);
    let seed = |plan: Plan| (plan.seed(), plan.file.run.seed);
    assert_eq!([seed(plan(&[])), seed(plan(&["--seed", "1"]))], [(1, None), (1, Some(1))]);
    let file = planned(&format!("{FILE}[subscribers]\nhouse = [\"10.1.0.0/28\"]\n"), &[]);
    assert_eq!((file.file.subscribers[0].name.clone(), seed(file)), ("house".into(), (7, Some(7))));
}

#[test]
fn a_file_says_what_options_say() {
    let extra = ["--delay", "20ms", "--reverse-rate", "1Mbit/s", "--aqm", "codel", "--set", "target=10ms"];
    let more = ["--set", "interval=200ms", "--left-netns", "a", "--seed", "7", "--spin"];
    assert_eq!(planned(FILE, &[]), plan(&[&extra[..], &more].concat()));
    let keys =
        "mtu = 1400\nduration = \"9s\"\npackets = \"p\"\npcapng = \"g\"\nuplink_log = \"u\"\ndownlink_log = \"d\"\n";
    let words = "--mtu 1400 --duration 9s --packets p --pcapng g --uplink-log u --downlink-log d --realtime";
    let words: Vec<&str> = words.split(' ').collect();
    let file = planned(&format!("{keys}realtime = true\n[link]\nrate = \"10Mbit/s\"\ndelay = \"0ms\"\n"), &[]);
    assert_eq!(file, plan(&words));
}

/// What the options say of the link's layer holds before the file, key by key; the way back has what the way there has.
#[test]
fn options_say_what_the_link_adds() {
    let layers = |file: &str, words: &[&str]| {
        planned(&format!("{FILE}{file}"), words).settings.0.map(|way| way.config.layer.to_string())
    };
    let (ptm, plain) = ("overhead 30 B, mpu 0 B, ptm", "overhead 0 B, mpu 0 B, ethernet");
    assert_eq!(layers("", &[]), [plain; 2]);
    assert_eq!(layers("", &["--layer", "link_layer=pppoe-ptm"]), [ptm; 2]);
    assert_eq!(layers("", &["--reverse-layer", "overhead=30", "--reverse-layer", "framing=ptm"]), [plain, ptm]);
    let file = "[link]\nrate = \"1Mbit/s\"\ndelay = \"1ms\"\nlink_layer = \"docsis\"\nreverse_overhead = 9\n";
    let said = |words: &[&str]| planned(file, words).settings.0.map(|way| way.config.layer.to_string());
    assert_eq!(said(&[]), ["overhead 18 B, mpu 64 B, ethernet", "overhead 9 B, mpu 64 B, ethernet"]);
    assert_eq!(said(&["--layer", "mpu=84"]), ["overhead 18 B, mpu 84 B, ethernet"; 2]);
    for (word, why) in
        [("overhead=x", "no whole number"), ("mpu=999", "at most 256"), ("framing=atn", "did you mean \"atm\"?")]
    {
        let wrong = all(FILE, &["--layer", word], &()).unwrap_err();
        assert!(wrong.contains("--layer") && wrong.contains(why), "{wrong}");
        let wrong = all(FILE, &["--reverse-layer", word], &()).unwrap_err();
        assert!(wrong.contains("--reverse-layer") && wrong.contains(why), "{wrong}");
    }
    assert!(
        parse(&["--layer", "overhed=3"]).is_err_and(|wrong| wrong.to_string().contains("link_layer, overhead, mpu"))
    );
}

/// Each key that all links have changes the plan, or is refused at its line.
#[test]
fn no_key_of_links_is_ignored() {
    let link = |keys: &str| all(&format!("[link]\n{keys}\n"), &[], &()).map(|mut plans| plans.remove(0));
    let plain = "rate = \"2Mbit/s\"\ndelay = \"1ms\"";
    let keys = [fields::of::<Link>(), fields::of::<LayerKeys>(), fields::of::<ImpairmentKeys>()];
    for key in keys.concat() {
        let other = match key {
            "rate" => plain.replace('2', "3"),
            "delay" => plain.replace('1', "5"),
            "limit" | "reverse_limit" => format!("{plain}\n{key} = \"9p\""),
            "reverse_rate" => format!("{plain}\n{key} = \"3Mbit/s\""),
            "reverse_delay" => format!("{plain}\n{key} = \"5ms\""),
            "loss" => format!("{plain}\nloss = 0.01"),
            "link_layer" | "reverse_link_layer" => format!("{plain}\n{key} = \"docsis\""),
            "framing" | "reverse_framing" => format!("{plain}\n{key} = \"atm\""),
            "overhead" | "mpu" | "reverse_overhead" | "reverse_mpu" => format!("{plain}\n{key} = 9"),
            "police" | "reverse_police" => format!("{plain}\n{key} = {{ rate = \"1Mbit/s\", burst = \"9kB\" }}"),
            "aggregate" | "reverse_aggregate" => format!("{plain}\n{key} = {{ interval = \"9ms\" }}"),
            "reorder" | "reverse_reorder" => format!("{plain}\n{key} = {{ share = 0.1, by = \"9ms\" }}"),
            "jitter" | "reverse_jitter" => format!("{plain}\n{key} = {{ by = \"9ms\" }}"),
            "duplicate" | "reverse_duplicate" => format!("{plain}\n{key} = 0.1"),
            "gilbert" | "reverse_gilbert" => format!("{plain}\n{key} = {{ to_bad = 0.1, to_good = 0.5 }}"),
            other => panic!("write a value of `{other}` here, other than its default"),
        };
        match link(&other) {
            Ok(plan) => assert_ne!(plan, link(plain).unwrap(), "{key}"),
            Err(wrong) => assert!(wrong.contains(".toml:4:") && wrong.contains(key), "{wrong}"),
        }
    }
}

/// A file and options that say the same; what options say holds before the file, key by key.
#[test]
fn impairments_are_read_from_file_and_options() {
    let link = "[link]\nrate = \"10Mbit/s\"\ndelay = \"0ms\"\n";
    let file = format!(
        "{link}duplicate = 0.1\njitter = {{ by = \"5ms\", correlation = 0.25 }}\nreverse_jitter = {{ by = \"1ms\" }}\n"
    );
    let words =
        ["--impair", "duplicate=0.1", "--impair", "jitter=by=5ms,correlation=0.25", "--reverse-impair", "jitter=1ms"];
    assert_eq!(planned(&file, &[]), plan(&words));
    let over = planned(&file, &["--impair", "jitter=none"]).settings.0[0].impairments;
    assert_eq!(over, planned(&format!("{link}duplicate = 0.1\n"), &[]).settings.0[0].impairments);
    for (word, why) in [("jitter", "KEY=VALUE"), ("jiter=5ms", "no impairment"), ("duplicate=2", "from 0 to 1")] {
        let wrong = all(link, &["--impair", word], &()).unwrap_err();
        assert!(wrong.contains("--impair") && wrong.contains(why), "{wrong}");
    }
    let wrong = all(&format!("{link}jitter = {{ by = \"5ms\", correlation = 2.0 }}\n"), &[], &()).unwrap_err();
    assert!(wrong.contains(".toml:4:") && wrong.contains("allowed are 0 to 1"), "{wrong}");
}

/// The rate of a trace is that of the link at its beginning; the other direction has one of its own, or the same.
#[test]
fn a_trace_gives_the_rate() {
    let place = std::env::temp_dir().join(format!("penstock-plan-trace-{}", std::process::id()));
    std::fs::write(&place, "1\n").unwrap();
    let trace = place.to_str().unwrap();
    let parsed = Options::try_parse_from(["penstock-emulate", "--trace", trace]).unwrap();
    let [plan] = parsed.plans(&()).unwrap().try_into().unwrap();
    assert_eq!(plan.settings.0.map(|way| way.config.rate.as_bps()), [12_000_000; 2]);
    let file = format!(
        "[link]\nrate = \"5Mbit/s\"\ndelay = \"1ms\"\n[[changes]]\ndirection = \"reverse\"\ntrace = {trace:?}\n"
    );
    let plan = planned(&file, &[]);
    assert_eq!((plan.file.changes.len(), plan.settings.0[0].config.rate.as_bps()), (1, 5_000_000));
    let wrong = all(&file, &["--trace", trace], &()).unwrap_err();
    assert!(wrong.contains("the file has [[changes]]"), "{wrong}");
    std::fs::remove_file(place).unwrap();
}

#[test]
fn an_option_counts_instead_of_the_file() {
    let plan = planned(FILE, &["--rate", "5Mbit/s", "--seed", "9", "--realtime", "--left-netns", "b"]);
    let rates = plan.settings.0.map(|way| way.config.rate.as_bps());
    assert_eq!(
        (rates, plan.file.run.seed, plan.file.run.spin, plan.file.run.realtime),
        ([5_000_000, 1_000_000], Some(9), false, true)
    );
    assert_eq!(plan.file.ends.map(|end| end.netns), [Some("b".into()), None]);
    let ports = format!("{FILE}port = \"p0\"\n[right]\nport = \"p1\"\n");
    let named = |words: &[&str]| planned(&ports, words).interfaces.map(|one| one.name().to_owned());
    assert_eq!(named(&[]), ["p0", "p1"]);
    assert_eq!(named(&["--left-port", "x"]), ["x", "p1"]);
    assert_eq!(named(&["--left", "t0", "--right", "t1"]), ["t0", "t1"]);
}

#[test]
fn set_changes_the_discipline_of_the_file_and_aqm_replaces_it() {
    let aqm = |options: &[&str]| planned(FILE, options).settings.0[0].config.aqm.clone();
    let codel = |settings: &[&str]| {
        config_from_settings("codel", &settings.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>()).unwrap()
    };
    assert_eq!(aqm(&["--set", "target=7ms"]), codel(&["target=7ms", "interval=200ms"]));
    assert_eq!(aqm(&["--aqm", "codel", "--set", "target=7ms"]), codel(&["target=7ms"]));
    assert_eq!(aqm(&["--aqm", "pie"]).name(), "pie");
}

#[test]
fn each_direction_may_go_through_a_kernel() {
    let through = |plan: Plan| plan.file.through.map(|one| one.map(|keys| format!("{} {:?}", keys.netns, keys.drops)));
    let some = |text: &str| Some(text.to_owned());
    let both = plan(&["--through", "q", "--drops", "dequeue", "--reverse-through", "r"]);
    assert_eq!(through(both), [some("q Dequeue"), some("r Overflow")]);
    assert_eq!(through(plan(&[])), [None, None]);
    let file = format!("through = {{ netns = \"q\", drops = \"early\" }}\n{FILE}");
    assert_eq!(through(planned(&file, &[])), [some("q Early"), None]);
    assert_eq!(through(planned(&file, &["--through", "r"]))[0], some("r Early"));
    assert!(parse(&["--drops", "early"]).unwrap_err().to_string().contains("--through"));
}

#[test]
fn a_program_with_algorithms_of_its_own_names_them_in_options_and_files() {
    let own = Own::new().with_aqm::<codel::Config>("mine");
    let planned = |words: &[&str], file: &str| {
        all(file, &[&["--rate", "10Mbit/s"], words].concat(), &own).map(|mut plans| plans.remove(0))
    };
    let target = |plan: &Plan| serde_json::to_value(&plan.settings.0[0].config.aqm).unwrap()["target"].clone();
    assert_eq!(target(&planned(&["--aqm", "mine", "--set", "target=7ms"], "").unwrap()), "7ms");
    let file = "[aqm]\nname = \"mine\"\ntarget = \"6ms\"\n";
    assert_eq!(target(&planned(&[], file).unwrap()), "6ms");
    let over = planned(&["--set", "target=8ms"], file).unwrap();
    assert_eq!((over.settings.0[0].config.aqm.name(), target(&over)), ("mine", "8ms".into()));
    let wrong = planned(&["--aqm", "mine", "--set", "traget=7ms"], "").unwrap_err();
    assert!(wrong.contains("--aqm") && wrong.contains("unknown field `traget`"), "{wrong}");
    let elsewhere = parse(&["--aqm", "mine"]).unwrap().plans(&()).unwrap_err().to_string();
    assert!(elsewhere.contains("no algorithm \"mine\""), "only in that program");
}

const APPLIED: &str =
    "seed = 3\n[link]\nrate = \"10Mbit/s\"\ndelay = \"5ms\"\n[aqm]\nname = \"codel\"\n[left]\nnetns = \"a\"\n";

#[test]
fn a_file_changes_what_can_change() {
    let before = planned(APPLIED, &[]).settings;
    let after = APPLIED.replace("10Mbit/s", "2Mbit/s").replace("5ms", "30ms").replace("codel", "pie");
    let told = before.difference(&planned(APPLIED, &[]).again(&parse(&[]).unwrap(), "f.toml", &after).unwrap());
    let keys: Vec<&str> = told.keys().map(String::as_str).collect();
    assert_eq!(keys, ["aqm", "delay", "rate", "reverse_delay", "reverse_rate"]);
    assert_eq!(told["rate"], "2Mbit/s");
    assert!(before.difference(&before).is_empty() && before.told()["limit"] == "1000p");
}

#[test]
fn what_needs_a_new_start_is_refused_with_its_line() {
    // The run began with an option that no longer counts.
    let (run, options) = (planned(APPLIED, &[]), parse(&[]).unwrap());
    let refusal = |text: &str| run.again(&options, "f.toml", text).unwrap_err().what;
    for (from, to, said) in [
        ("seed = 3", "seed = 4", "f.toml:1:"),
        ("netns = \"a\"", "netns = \"b\"", "f.toml:7:"),
        ("[left]", "[right]\nnetns = \"c\"\n[left]", "f.toml:7:"),
        ("[left]", "[[hosts]]\naddress = \"10.0.0.1\"\n[left]", "f.toml:7:"),
    ] {
        let refused = refusal(&APPLIED.replace(from, to));
        assert!(refused.contains("cannot change while the emulator runs") && refused.contains(said), "{refused}");
    }
    assert!(refusal("[link]\nrate = 5\n").contains("f.toml:2:"));
}

#[test]
fn stations_are_told_where_there_are_some() {
    let with =
        |list: &str| planned(&APPLIED.replace("\"5ms\"", &format!("\"5ms\"\nstations = [{list}]")), &[]).settings;
    let (none, one, other) = (planned(APPLIED, &[]).settings.told(), with("0.0, 0.25"), with("0.0, 0.5"));
    let told = |map: &serde_json::Map<_, _>| ["stations", "reverse_stations"].map(|key| map.contains_key(key));
    assert_eq!([told(&none), told(&one.told())], [[false, false], [true, false]]);
    assert_eq!(one.difference(&other).keys().collect::<Vec<_>>(), ["stations"]);
    // What is told can be set again.
    let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    let fading = serde_json::json!([0.1, {"good": 0.0, "bad": 0.5, "mean_good": "80ms", "mean_bad": "20ms"}]);
    let again = one.with(&[("stations".to_owned(), fading.to_string())], [false; 2]).unwrap();
    assert_eq!(value(again.told()["stations"].as_str().unwrap()), fading);
}
