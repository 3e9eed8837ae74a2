//! No algorithm breaks a rule of the audit in random scenarios, and a broken one is found. `tools/measure/adversary-invariants`
//! runs many more of the same trials.

#[path = "../examples/invariants/draw.rs"]
mod draw;
#[path = "../examples/invariants/trial.rs"]
#[allow(dead_code, reason = "the program tells panics in its own way")]
mod trial;

use draw::Space;
use penstock_core::aqm::droptail;
use penstock_core::aqm::{Aqm, Meta};
use penstock_core::cc;
use penstock_core::config::{AqmConfig, ConfigError, LinkFacts};
use penstock_core::fact::Fact;
use penstock_core::foreign::Own;
use penstock_core::listing::Entry;
use penstock_core::qdisc::{Backlog, Verdict};
use penstock_core::registry;
use penstock_core::rng::Rng;
use penstock_core::units::{Instant, Span};
use std::sync::atomic::{AtomicU64, Ordering};
use trial::{Finding, Outcome, Trial, outcome, stream, trial};

const DISCIPLINE: &str = include_str!("../../../python/penstock/adversary/spaces/discipline.toml");
const CONTROL: &str = include_str!("../../../python/penstock/adversary/spaces/control.toml");
/// Trials of each algorithm. They take a minute of CPU time together, in a build without optimization.
const TRIALS: u64 = 25;

fn keeps_the_rules(space: &str, entries: &[Entry]) {
    for entry in entries {
        let drawn = Space::new(space, entry.name, Some(entry));
        let all: Vec<Trial> = (0..TRIALS).map(|number| trial(&drawn, (entry.name, 0, number), &(), |_| ())).collect();
        let findings: Vec<&Finding> = all.iter().flat_map(|one| &one.findings).collect();
        assert!(findings.is_empty(), "{}: {findings:#?}", entry.name);
        let refused: Vec<&String> = all.iter().filter_map(|one| one.refused.as_ref()).collect();
        assert!(refused.len() as u64 * 2 < TRIALS, "{}: {refused:#?}", entry.name);
        assert!(all.iter().map(|one| one.packets).sum::<u64>() > 50 * TRIALS, "{}: few packets", entry.name);
    }
}

#[test]
fn disciplines_keep_the_rules() {
    keeps_the_rules(DISCIPLINE, &registry::entries());
}

#[test]
fn controls_keep_the_rules() {
    keeps_the_rules(CONTROL, &cc::entries());
}

/// What is wrong with the AQMs of this file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
enum Fault {
    /// It marks packets that are not ECN-capable, if nobody guards it.
    #[default]
    Marks,
    /// It divides by what waits in an empty queue.
    Fails,
    /// It remembers earlier runs.
    Remembers,
}

static EARLIER: AtomicU64 = AtomicU64::new(0);

macro_rules! broken {
    ($name:ident, $fault:expr) => {
        #[derive(
            Debug, Clone, Copy, PartialEq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
        )]
        #[serde(default, deny_unknown_fields)]
        struct $name {}
        impl AqmConfig for $name {
            type Aqm = Broken;
            fn validate(&self) -> Result<(), ConfigError> {
                Ok(())
            }
            fn aqm(&self, _: &LinkFacts) -> Broken {
                Broken { fault: $fault, earlier: EARLIER.fetch_add(1, Ordering::Relaxed), packets: 0 }
            }
        }
    };
}

broken!(Marking, Fault::Marks);
broken!(Failing, Fault::Fails);
broken!(Remembering, Fault::Remembers);

#[derive(Debug, Clone)]
struct Broken {
    fault: Fault,
    /// How many were made before it in this process.
    earlier: u64,
    packets: u64,
}

impl penstock_core::ack::AckPath for Broken {}

impl Aqm for Broken {
    fn on_enqueue(&mut self, packet: &Meta, backlog: Backlog, _: Instant, _: &mut Rng) -> Verdict {
        self.packets += 1;
        match self.fault {
            Fault::Marks if backlog.packets > 5 => Verdict::Mark,
            Fault::Fails if packet.size.get() / backlog.bytes.max(1) > 1_000_000 => Verdict::Drop,
            Fault::Fails if backlog.packets > 5 => panic!("a division by zero"),
            Fault::Remembers if self.packets.is_multiple_of(2 + self.earlier % 5) => Verdict::Drop,
            _ => Verdict::Pass,
        }
    }
    fn on_dequeue(&mut self, _: &Meta, _: Span, _: Backlog, _: Instant, _: &mut Rng) -> Verdict {
        Verdict::Pass
    }
    fn on_fact(&mut self, _: &Fact, _: Instant) {}
}

fn own() -> Own {
    let own = Own::new().with_aqm::<droptail::Config>("right").with_aqm::<Marking>("marking");
    own.with_aqm::<Failing>("failing").with_aqm::<Remembering>("remembering")
}

/// The first finding of so many trials, most of which must run.
fn found(name: &str, trials: u64) -> Option<Finding> {
    let space = Space::new(DISCIPLINE, name, None);
    let all: Vec<Trial> = (0..trials).map(|number| trial(&space, (name, 0, number), &own(), |_| ())).collect();
    let refused: Vec<&String> = all.iter().filter_map(|one| one.refused.as_ref()).collect();
    assert!(refused.len() as u64 * 2 < trials, "{refused:#?}");
    all.into_iter().flat_map(|one| one.findings).next()
}

#[test]
fn a_broken_discipline_is_found_and_its_scenario_repeats_it() {
    assert!(found("right", 8).is_none());
    assert!(found("marking", 8).is_none(), "what an own AQM may not mark is dropped (core/src/aqm/foreign.rs)");
    for (name, rule, text) in [("failing", "panic", "division"), ("remembering", "repeats", "")] {
        let finding = found(name, 8).unwrap_or_else(|| panic!("{name} was not found"));
        assert_eq!(finding.found.rule, rule, "{finding:?}");
        assert!(finding.found.message.contains(text), "{finding:?}");
        assert!(finding.settings.len() <= 3, "it is small: {:?}", finding.settings);
        let Outcome::Ran(_, again) = outcome(&finding.text, true, &own()) else { panic!("{finding:?} is refused") };
        assert!(again.iter().any(|one| one.rule == rule), "{again:?}");
    }
}

#[test]
fn a_trial_is_the_same_again_and_others_differ() {
    let space = Space::new(DISCIPLINE, "codel", registry::entries().iter().find(|entry| entry.name == "codel"));
    let text = |number: u64| space.text(&space.draw(&mut stream("codel", 1, number)), "codel", number);
    assert_eq!(text(3), text(3));
    assert_ne!(text(3), text(4));
    assert!(text(3).contains("seed = 3"));
    // Within 200 trials each part, parameter and kind of key is drawn.
    let all: String = (0..200).map(text).collect();
    for word in ["synflood", "optimistic_ack", "voip", "video", "web", "interval", "changes", "1p\"", "dualpi2"] {
        assert!(all.contains(word), "{word}");
    }
}
