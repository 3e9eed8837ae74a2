//! One trial: a scenario is run under an audit, and made small if it breaks a rule.

use super::draw::{Settings, Space};
use penstock_core::foreign::Library;
use penstock_core::rng::{Rng, Streams};
use penstock_core::units::Span;
use penstock_sim::{Scenario, Simulation};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    /// Where the last panic was.
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Lets panics print nothing: they are findings, and told with their places.
pub fn tell_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map_or_else(String::new, |at| format!(" at {}:{}", at.file(), at.line()));
        PLACE.with(|last| *last.borrow_mut() = place);
    }));
}

/// One trial of so many runs twice, and must give the same bytes.
const TWICE: u64 = 64;

/// A rule that a scenario breaks, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The name of the rule; `panic` and `repeats` are rules as well.
    pub rule: String,
    /// What happened.
    pub message: String,
}

/// What became of a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It is no scenario that can be run.
    Refused(String),
    /// It ran: packets that came to the bottleneck, and what broke a rule.
    Ran(u64, Vec<Found>),
}

/// Runs a scenario.
pub fn outcome(text: &str, twice: bool, own: &dyn Library) -> Outcome {
    let read = catch_unwind(AssertUnwindSafe(|| Scenario::parse_with(text, "trial.toml", own)));
    let scenario = match read {
        Ok(Ok(scenario)) => scenario,
        Ok(Err(diagnosis)) => return Outcome::Refused(diagnosis.to_string()),
        Err(panic) => return Outcome::Ran(0, vec![told(panic.as_ref())]),
    };
    match catch_unwind(AssertUnwindSafe(|| run(&scenario, twice))) {
        Ok((packets, found)) => Outcome::Ran(packets, found),
        Err(panic) => Outcome::Ran(0, vec![told(panic.as_ref())]),
    }
}

fn run(scenario: &Scenario, twice: bool) -> (u64, Vec<Found>) {
    let mut simulation = Simulation::new(scenario);
    simulation.audit(scenario);
    let broken = simulation.advance(Span::MAX).err();
    let again = twice.then(|| {
        let mut again = Simulation::new(scenario);
        let _ = again.advance(Span::MAX);
        (again.summary(), simulation.summary())
    });
    let audited = simulation.end_audit();
    let found = |rule: &str, message: String| Found { rule: rule.to_owned(), message };
    let mut all: Vec<Found> = audited.violations.iter().map(|one| found(one.rule.name(), one.to_string())).collect();
    all.extend(broken.map(|broken| found("books", broken.to_string())));
    if again.is_some_and(|(one, other)| one != other) {
        all.push(found("repeats", "a second run, without an audit, has another result".to_owned()));
    }
    (audited.packets, all)
}

fn told(panic: &(dyn std::any::Any + Send)) -> Found {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    let text = text.unwrap_or_else(|| "a panic without a text".to_owned());
    Found { rule: "panic".to_owned(), message: PLACE.with(|place| text + &place.borrow()) }
}

/// A scenario that breaks a rule.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The rule, and how it is broken.
    pub found: Found,
    /// The keys that differ from the defaults.
    pub settings: Settings,
    /// The scenario.
    pub text: String,
}

/// What became of a trial.
#[derive(Debug, Default)]
pub struct Trial {
    /// Why the scenario could not be run; `None` if it was.
    pub refused: Option<String>,
    /// Packets that came to the bottleneck.
    pub packets: u64,
    /// The rules that were broken, each with its smallest scenario.
    pub findings: Vec<Finding>,
}

/// The stream of random numbers of a trial.
pub fn stream(subject: &str, seed: u64, number: u64) -> Rng {
    Streams::new(seed).get(&format!("{subject}/{number}"))
}

/// Draws and runs the trial of this number.
pub fn trial(
    space: &Space,
    (subject, seed, number): (&str, u64, u64),
    own: &dyn Library,
    begins: impl Fn(&str),
) -> Trial {
    let settings = space.draw(&mut stream(subject, seed, number));
    let text = space.text(&settings, subject, number);
    begins(&text);
    match outcome(&text, number.is_multiple_of(TWICE), own) {
        Outcome::Refused(why) => Trial { refused: Some(why), ..Trial::default() },
        Outcome::Ran(packets, found) => {
            let mut rules = std::collections::BTreeSet::new();
            let first = found.into_iter().filter(|one| rules.insert(one.rule.clone()));
            let findings = first.map(|found| shrink(space, settings.clone(), found, (subject, number), own)).collect();
            Trial { refused: None, packets, findings }
        }
    }
}

/// Leaves out keys as long as the same rule is broken.
fn shrink(
    space: &Space,
    mut settings: Settings,
    mut found: Found,
    (subject, seed): (&str, u64),
    own: &dyn Library,
) -> Finding {
    let twice = found.rule == "repeats";
    let breaks = |settings: &Settings| match outcome(&space.text(settings, subject, seed), twice, own) {
        Outcome::Ran(_, all) => all.into_iter().find(|one| one.rule == found.rule),
        Outcome::Refused(_) => None,
    };
    let mut last = Some(found.clone());
    loop {
        let smaller = settings.keys().find_map(|key| {
            let mut fewer = settings.clone();
            fewer.retain(|other, _| other != key && !other.starts_with(&format!("{key}.")));
            breaks(&fewer).map(|found| (fewer, found))
        });
        match smaller {
            Some((fewer, now)) => (settings, last) = (fewer, Some(now)),
            None => break,
        }
    }
    if let Some(last) = last {
        found = last;
    }
    Finding { text: space.text(&settings, subject, seed), settings, found }
}
