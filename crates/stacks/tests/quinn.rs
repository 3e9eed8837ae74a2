//! A released QUIC in the simulator.

use penstock_core::foreign::Config as Aqm;
use penstock_core::foreign::{Control, Library, LibraryError};
use penstock_core::stack::Config;
use penstock_core::units::Span;
use penstock_sim::summary::{Measures, StackSummary, Summary};
use penstock_sim::{Scenario, Simulation};
use serde_json::{Map, Value};

struct Released;

impl Library for Released {
    fn control(&self, _: &str, _: &Map<String, Value>) -> Option<Result<Control, LibraryError>> {
        None
    }
    fn aqm(&self, _: &str, _: &Map<String, Value>) -> Option<Result<Aqm, LibraryError>> {
        None
    }
    fn stack(&self, name: &str) -> Option<Result<Config, LibraryError>> {
        penstock_stacks::released(name)
    }
}

fn scenario(head: &str, topology: &str, flows: &str) -> Scenario {
    scenario_with(&Released, head, topology, flows)
}

pub fn scenario_with(library: &dyn Library, head: &str, topology: &str, flows: &str) -> Scenario {
    let text = format!("{head}\n[topology]\nkind = \"dumbbell\"\n{topology}\n{flows}");
    Scenario::parse_with(&text, "stack.toml", library).unwrap_or_else(|error| panic!("{error}"))
}

fn run(scenario: &Scenario) -> Summary {
    let mut run = Simulation::new(scenario);
    run.advance(Span::MAX).unwrap_or_else(|error| panic!("{error}"));
    run.summary()
}

pub fn stack(summary: &Summary, flow: usize) -> &StackSummary {
    match &summary.flows[flow].measures {
        Measures::Stack(summary) => summary,
        other => panic!("{other:?}"),
    }
}

pub fn flows(names: &[&str]) -> String {
    names.iter().map(|name| format!("[[flows]]\nkind = \"stack\"\nstack = \"{name}\"\n")).collect()
}

pub const LINK: &str = "rate = \"10Mbit/s\"\ndelay = \"20ms\"\nlimit = \"100p\"\n[aqm]\nname = \"codel\"\n";

#[test]
fn each_control_fills_a_link() {
    for name in penstock_stacks::NAMES {
        let summary = run(&scenario("duration = \"10s\"", LINK, &flows(&[name])));
        let goodput = summary.flows[0].goodput_bps;
        assert!((8e6..9.7e6).contains(&goodput), "{name}: {goodput}");
        assert_eq!(summary.flows[0].cc, *name);
        let of_stack = stack(&summary, 0);
        // A round trip for the hello and one for the answer that completes the handshake, which the client notes.
        assert!((40.0..90.0).contains(&of_stack.handshake_ms), "{name}: {of_stack:?}");
        assert!(of_stack.version.starts_with("quinn-proto "), "{of_stack:?}");
        println!("{name}: {goodput} {of_stack:?} {:?}", summary.flows[0].rtt_ms);
    }
}

/// What a summary is as bytes, for comparisons.
pub fn written(summary: &Summary) -> String {
    serde_json::to_string(summary).unwrap()
}

/// The same seed gives the same datagrams, whose bytes a hash of all of them would tell apart, in another thread too; another
/// seed gives other keys and other numbers.
#[test]
fn equal_seeds_give_equal_runs() {
    fn seeded(seed: u64) -> Scenario {
        let flows = flows(&["quinn:cubic", "quinn:bbr"]).replace("kind", "start_spread = \"100ms\"\nkind");
        scenario(&format!("duration = \"5s\"\nseed = {seed}"), &format!("{LINK}ecn = true\n"), &flows)
    }
    let first = written(&run(&seeded(1)));
    let other = std::thread::spawn(|| written(&run(&seeded(1)))).join().unwrap();
    assert_eq!(first, other);
    assert_ne!(first, written(&run(&seeded(2))));
}

/// Both are CUBIC behind the same queue, so that neither pair may have much more than the other.
#[test]
fn two_of_theirs_and_two_of_ours_share_a_link() {
    for aqm in ["codel", "fq-codel"] {
        let mut shares: Vec<f64> = (1..=5)
            .map(|seed| {
                let theirs = "[[flows]]\nkind = \"stack\"\nstack = \"quinn:cubic\"\ncount = 2\nstart_spread = \"1s\"\n";
                let ours = "[[flows]]\nkind = \"bulk\"\ncc = \"cubic\"\ncount = 2\nstart_spread = \"1s\"\n";
                let link = LINK.replace("codel", aqm);
                let head = format!("duration = \"60s\"\nseed = {seed}");
                let summary = run(&scenario(&head, &link, &format!("{theirs}{ours}")));
                let got: Vec<f64> = summary.flows.iter().map(|flow| flow.goodput_bps).collect();
                (got[0] + got[1]) / (got[2] + got[3])
            })
            .collect();
        shares.sort_by(f64::total_cmp);
        println!("{aqm}: {shares:?}");
        assert!((0.95..1.05).contains(&shares[2]), "{aqm}: {shares:?}");
    }
}

/// Every byte arrives once, whatever the network does to datagrams.
#[test]
fn a_file_arrives_whole() {
    let harms = [
        "loss = 0.05\n",
        "duplicate = 0.3\n",
        "reorder = { share = 0.2, by = \"30ms\" }\n",
        "jitter = { by = \"5ms\", keep_order = false }\n",
    ];
    for harm in harms {
        let link = LINK.replace("[aqm]", &format!("{harm}[aqm]"));
        let flow = "[[flows]]\nkind = \"stack\"\nstack = \"quinn\"\nsize = \"3MB\"\n";
        let summary = run(&scenario("duration = \"60s\"", &link, flow));
        assert_eq!(summary.flows[0].delivered_bytes, 3_000_000, "{harm}");
        let took = summary.flows[0].completion_s.unwrap_or_else(|| panic!("{harm}"));
        // Its goodput is that of the time in which it was active.
        assert!((summary.flows[0].goodput_bps * took / 8.0 - 3e6).abs() < 9e3, "{harm}: {took}");
        assert!(took > 3e6 * 8.0 / 10e6, "{harm}: {took} s is faster than the link");
    }
}

/// A datagram that comes twice counts twice, and the link says how many there were.
#[test]
fn the_stack_sees_what_comes_twice() {
    let link = LINK.replace("[aqm]", "duplicate = 0.5\n[aqm]");
    let summary = run(&scenario("duration = \"5s\"", &link, &flows(&["quinn"])));
    let of_stack = stack(&summary, 0);
    let copies = summary.bottlenecks[0].duplicated.unwrap();
    assert!(copies > 1000, "{copies}");
    assert!(of_stack.received.abs_diff(of_stack.sent + copies) <= 120, "{of_stack:?} {copies}"); // some are on the way
}

/// Marks reach the stack: a queue that marks loses nothing, and the window goes down all the same.
#[test]
fn marks_reach_the_stack() {
    let link = LINK.replace("name = \"codel\"", "name = \"codel\"\necn = true").replace("100p", "1000p");
    let summary = run(&scenario("duration = \"20s\"", &link, &flows(&["quinn:newreno"])));
    let queue = &summary.bottlenecks[0];
    assert!(queue.marks > 5, "{queue:?}");
    assert_eq!(queue.drops_aqm + queue.drops_overflow, 0, "{queue:?}");
    assert!(queue.queue_delay_ms.p90 < 60.0, "without an answer to marks 1000 packets wait 1.2 s: {queue:?}");
}

/// A flow that stops closes its connection: nothing more is sent than what tells the peer.
#[test]
fn a_flow_that_stops_is_closed() {
    let stops = flows(&["quinn"]) + "stop = \"2s\"\n";
    let link = LINK;
    let until = |seconds: u32, flows: &str| {
        let summary = run(&scenario(&format!("duration = \"{seconds}s\""), link, flows));
        (stack(&summary, 0).clone(), summary.flows[0].delivered_bytes)
    };
    let ((short, _), (long, bytes)) = (until(3, &stops), until(20, &stops));
    assert!(long.sent <= short.sent + 2, "{short:?} {long:?}");
    assert!(bytes > 1_000_000 && long.ended.is_none(), "{long:?}");
}

/// A link that is gone for longer than the idle time of the stack ends the connection, and not the run.
#[test]
fn a_connection_that_times_out_says_so() {
    let gone = "[[changes]]\nlink = \"bottleneck\"\nat = \"2s\"\nloss = 1.0\n";
    let summary = run(&scenario("duration = \"60s\"", LINK, &(flows(&["quinn"]) + gone)));
    assert_eq!(stack(&summary, 0).ended.as_deref(), Some("timed out"));
    assert!(summary.flows[0].delivered_bytes > 1_000_000);
}

/// Neighbours are not changed by looking, and a flow that begins after the end changes nothing.
#[test]
fn a_stack_that_never_begins_changes_nothing() {
    let alone = flows(&["quinn"]);
    let late = format!("{alone}{}start = \"10s\"\n", flows(&["quinn:bbr"]));
    let bottleneck = |flows: &str| run(&scenario("duration = \"5s\"", LINK, flows)).bottlenecks;
    assert_eq!(bottleneck(&alone), bottleneck(&late));
}

/// Every discipline with its defaults, before QUIC in both directions, TCP and a call, on a link that harms: the books balance
/// (the run checks them), and the same bytes come twice.
#[test]
fn every_discipline_takes_a_stack() {
    let both = format!("{}{}direction = \"reverse\"\n", flows(&["quinn:bbr"]), flows(&["quinn"]));
    let others = "[[flows]]\nkind = \"bulk\"\n[[flows]]\nkind = \"voip\"\n";
    let mut taken = 0;
    for entry in penstock_core::registry::all_entries().iter().filter(|entry| entry.kind != "cc") {
        let link = LINK.replace("\"codel\"", &format!("{:?}", entry.name));
        let link = link
            .replace("[aqm]", "loss = 0.01\nduplicate = 0.01\njitter = { by = \"3ms\", keep_order = false }\n[aqm]");
        let text = format!("duration = \"2s\"\n[topology]\nkind = \"dumbbell\"\n{link}{both}{others}");
        let Ok(scenario) = Scenario::parse_with(&text, "stack.toml", &Released) else { continue };
        let summary = run(&scenario);
        assert_eq!(written(&summary), written(&run(&scenario)), "{}", entry.name);
        assert!(stack(&summary, 0).received > 100 && stack(&summary, 1).received > 100, "{}: {summary:?}", entry.name);
        taken += 1;
    }
    assert!(taken >= 30, "{taken} disciplines");
}

#[test]
fn names_that_there_are_not_are_refused_at_their_line() {
    let refused = |flow: &str| {
        let text =
            format!("duration = \"1s\"\n[topology]\nkind = \"dumbbell\"\n{LINK}[[flows]]\nkind = \"stack\"\n{flow}");
        Scenario::parse_with(&text, "stack.toml", &Released).unwrap_err().to_string()
    };
    let other = refused("stack = \"quinn:vegas\"\n");
    assert!(other.contains("quinn has no control \"vegas\"; there are quinn:cubic"), "{other}");
    let none = refused("stack = \"quiche\"\n");
    assert!(none.contains("there is no stack \"quiche\" here"), "{none}");
    assert!(refused("size = \"1MB\"\n").contains("needs `stack`"));
    assert!(refused("stack = \"quinn\"\nsize = \"0B\"\n").contains("a transfer has 1B to 1PB"));
}
