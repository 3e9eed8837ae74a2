//! Reading of `[[changes]]`.

use super::courses::{OrbitKeys, StateKeys};
use super::{Check, Checker};
use crate::scenario::{Change, Course, LinkSpec, Way};
use penstock_core::units::{Rate, Span};
use penstock_grammar::range::MAX_DURATION;
use serde::Deserialize;

/// The keys of one table `[[changes]]`.
#[derive(Debug, Clone, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeKeys {
    /// Name of the link.
    pub link: String,
    /// When the step happens, or the series begins.
    pub at: Option<Span>,
    /// After this time the step is repeated, or the `table` begins again.
    pub every: Option<Span>,
    /// "both", "forward" or "reverse".
    #[serde(default = "both")]
    pub direction: String,
    /// The new rate.
    pub rate: Option<Rate>,
    /// The new one-way delay.
    pub delay: Option<Span>,
    /// The new probability of loss.
    pub loss: Option<f64>,
    /// The new losses of the stations.
    pub stations: Option<Vec<f64>>,
    /// An orbit, which gives the delay.
    pub orbit: Option<OrbitKeys>,
    /// A file of packet opportunities, as Mahimahi records them.
    pub trace: Option<String>,
    /// Shortest interval of constant rate in a trace.
    pub bin: Option<Span>,
    /// A CSV file with `t_s` and at least one of `rate_mbit_s`, `delay_ms` and `loss`.
    pub table: Option<String>,
    /// States between which the link changes at random.
    pub states: Option<Vec<StateKeys>>,
    /// How much later the disciplines are told of the change.
    #[serde(default)]
    pub tell_after: Span,
    /// False if the disciplines are not told of the change.
    #[serde(default = "yes")]
    pub told: bool,
}

fn both() -> String {
    Way::Both.name().into()
}

fn yes() -> bool {
    true
}

impl Checker<'_> {
    pub(super) fn changes(&self, links: &[LinkSpec]) -> Check<Vec<Change>> {
        self.keys.changes.iter().enumerate().map(|(i, raw)| self.change(&i.to_string(), raw, links)).collect()
    }

    fn change(&self, index: &str, raw: &ChangeKeys, links: &[LinkSpec]) -> Check<Change> {
        let path = |key| ["changes", index, key];
        let known: Vec<&str> = links.iter().map(|l| l.name.as_str()).collect();
        let Some(link) = known.iter().position(|name| *name == raw.link) else {
            return Err(self.source.unknown(&path("link"), "link", &raw.link, &known));
        };
        let words = Way::ALL.map(|(word, _)| word);
        let Some((_, way)) = Way::ALL.into_iter().find(|(word, _)| *word == raw.direction) else {
            return Err(self.source.unknown(&path("direction"), "direction", &raw.direction, &words));
        };
        let course = self.course(index, raw, &links[link])?;
        let at = match (&course, raw.at) {
            (Course::Step { .. }, None) => {
                return Err(self.source.at(&path("link"), "`at` is missing: say when the step happens"));
            }
            (_, at) => at.unwrap_or_default(),
        };
        self.within_span("at", &path("at"), at, Span::ZERO, MAX_DURATION)?;
        self.within_span("tell_after", &path("tell_after"), raw.tell_after, Span::ZERO, MAX_DURATION)?;
        Ok(Change { link, at, way, course, tell_after: raw.tell_after, told: raw.told })
    }
}
