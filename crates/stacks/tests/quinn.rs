//! A released QUIC in the simulator.

use penstock_core::foreign::{Library, LibraryError, Control};
use penstock_core::foreign::Config as Aqm;
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
    let text = format!("{head}\n[topology]\nkind = \"dumbbell\"\n{topology}\n{flows}");
    Scenario::parse_with(&text, "stack.toml", &Released).unwrap_or_else(|error| panic!("{error}"))
}

fn run(scenario: &Scenario) -> Summary {
    let mut run = Simulation::new(scenario);
    run.advance(Span::MAX).unwrap_or_else(|error| panic!("{error}"));
    run.summary()
}

fn stack(summary: &Summary, flow: usize) -> &StackSummary {
    match &summary.flows[flow].measures {
        Measures::Stack(summary) => summary,
        other => panic!("{other:?}"),
    }
}

fn flows(names: &[&str]) -> String {
    names.iter().map(|name| format!("[[flows]]\nkind = \"stack\"\nstack = \"{name}\"\n")).collect()
}

const LINK: &str = "rate = \"10Mbit/s\"\ndelay = \"20ms\"\nlimit = \"100p\"\n[aqm]\nname = \"codel\"\n";

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
