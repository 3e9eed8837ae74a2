//! A run that somebody watches and steers.

use crate::samples::Samples;
use penstock_core::units::{Instant, Span};
use penstock_grammar::Diagnosis;
use penstock_sim::scenario::{Course, Scenario};
use penstock_sim::{Broken, Simulation};
use serde::Serialize;

/// The name of the scenario's file in messages, and the default of its name. `penstock run LINK` uses the same.
pub const FILE: &str = "playground.toml";

/// A change takes effect at the next whole multiple of this, so that its time is short when it is written down.
const GRAIN: Span = Span::from_millis(1);

/// A mistake in the text of a scenario.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mistake {
    /// Line of the mistake, from 1; 0 if it has no place.
    pub line: usize,
    /// Column of the mistake in characters, from 1; 0 if it has no place.
    pub column: usize,
    /// The diagnosis as the command `penstock` prints it.
    pub text: String,
}

impl From<Diagnosis> for Mistake {
    fn from(diagnosis: Diagnosis) -> Self {
        Self { line: diagnosis.line, column: diagnosis.column, text: diagnosis.to_string() }
    }
}

impl From<Broken> for Mistake {
    fn from(broken: Broken) -> Self {
        Self { line: 0, column: 0, text: broken.to_string() }
    }
}

/// What a page has to know of a scenario to draw it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Description {
    /// Name of the scenario.
    pub name: String,
    /// Simulated time at the end, in seconds.
    pub duration_s: f64,
    /// Seed of the run.
    pub seed: u64,
    /// The measured queues, in the order of samples and of the summary.
    pub queues: Vec<QueueDescription>,
    /// Names of the links, which can be changed.
    pub links: Vec<String>,
    /// The flows in the order of their numbers.
    pub flows: Vec<FlowDescription>,
    /// The scenario as it is written, as JSON.
    pub written: serde_json::Value,
    /// The scenario with all defaults, as JSON.
    pub resolved: serde_json::Value,
}

/// A measured queue.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QueueDescription {
    /// Name of link and direction.
    pub name: String,
    /// Name of the discipline.
    pub aqm: String,
}

/// A flow.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FlowDescription {
    /// Kind of traffic.
    pub kind: &'static str,
    /// Name of the congestion control; empty without TCP.
    pub cc: String,
}

/// A run with its scenario, whose text grows by each change that was made while it went on.
#[derive(Debug)]
pub struct Session {
    text: String,
    scenario: Scenario,
    simulation: Simulation,
    samples: Samples,
}

impl Session {
    /// Opens a scenario; `interval` is the simulated time from one sample to the next.
    ///
    /// # Errors
    /// Returns the mistake in the text.
    pub fn open(text: &str, interval: Span) -> Result<Self, Mistake> {
        let scenario = Scenario::parse(text, FILE)?;
        let simulation = Simulation::new(&scenario);
        let samples = Samples::new(&simulation, interval);
        Ok(Self { text: text.to_owned(), scenario, simulation, samples })
    }

    /// Returns what a page has to know to draw the run.
    pub fn describe(&self) -> Description {
        let queue = |b: &penstock_sim::Bottleneck| QueueDescription { name: b.name.clone(), aqm: b.aqm.clone() };
        let flow = |(kind, cc): (&'static str, &str)| FlowDescription { kind, cc: cc.to_owned() };
        Description {
            name: self.scenario.name.clone(),
            duration_s: self.scenario.duration.as_secs_f64(),
            seed: self.scenario.seed,
            queues: self.simulation.queues().iter().map(queue).collect(),
            links: self.scenario.links.iter().map(|link| link.name.clone()).collect(),
            flows: self.simulation.flows().map(flow).collect(),
            written: tree(&self.text),
            resolved: tree(&self.scenario.resolved()),
        }
    }

    /// Simulates at most `by` more and takes the samples that are due; returns true when the run is over.
    ///
    /// # Errors
    /// Fails if an invariant of the scenario is violated.
    pub fn advance(&mut self, by: Span) -> Result<bool, Mistake> {
        Ok(self.samples.advance(&mut self.simulation, by)?)
    }

    /// Simulates at most `by` more without samples; returns true when the run is over.
    ///
    /// # Errors
    /// Fails if an invariant of the scenario is violated.
    pub fn skip(&mut self, by: Span) -> Result<bool, Mistake> {
        Ok(self.simulation.advance(by)?)
    }

    /// Returns the run.
    pub fn simulation(&mut self) -> &mut Simulation {
        &mut self.simulation
    }

    /// Returns the scenario.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// Returns the samples since the last call of [`Samples::clear`].
    pub fn samples(&mut self) -> &mut Samples {
        &mut self.samples
    }

    /// Changes rate, delay or loss of a link from the next millisecond on. `keys` are lines as in `[[changes]]`, such as
    /// `rate = "5Mbit/s"`, with `direction = "reverse"` or `"forward"` for one direction alone. Returns the entry of `[[changes]]`, which is appended to the text of the scenario.
    ///
    /// # Errors
    /// Returns the mistake in the appended text.
    pub fn change(&mut self, link: &str, keys: &str) -> Result<String, Mistake> {
        let grains = self.simulation.now().since(Instant::ZERO).as_nanos() / GRAIN.as_nanos() + 1;
        let entry = format!("[[changes]]\nlink = {}\nat = \"{grains}ms\"\n{keys}\n", serde_json::Value::from(link));
        let text = format!("{}\n\n{entry}", self.text.trim_end());
        let scenario = Scenario::parse(&text, FILE)?;
        if let Some(change) = scenario.changes.last()
            && let Course::Step { values, .. } = change.course
        {
            self.simulation.steer(change.link, change.way, Instant::ZERO + change.at, values);
        }
        (self.text, self.scenario) = (text, scenario);
        Ok(entry)
    }

    /// Returns the text of the scenario with all changes that were made.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the results up to now as JSON.
    pub fn summary(&self) -> String {
        serde_json::to_string(&self.simulation.summary()).unwrap_or_default()
    }
}

/// Returns a text of TOML, which was read before, as JSON.
fn tree(text: &str) -> serde_json::Value {
    let table = toml::from_str::<toml::Table>(text).ok();
    table.and_then(|table| serde_json::to_value(table).ok()).unwrap_or_default()
}
