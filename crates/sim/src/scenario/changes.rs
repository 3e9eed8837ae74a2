//! `[[changes]]`: what happens to links while the run goes on.

use super::courses::{Course, RawOrbit, RawState};
use super::raw::text;
use super::{Check, Checker, LinkSpec, MAX_DURATION};
use penstock_core::units::{Rate, Span};
use serde::Deserialize;
use toml::{Table, Value};

/// The directions of a link that a change concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Both.
    Both,
    /// From its first end to its second.
    Forward,
    /// From its second end to its first.
    Reverse,
}

impl Way {
    const ALL: [(&'static str, Self); 3] =
        [("both", Self::Both), ("forward", Self::Forward), ("reverse", Self::Reverse)];

    /// The word of scenarios.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, way)| *way == self).map_or("both", |(name, _)| name)
    }
}

/// A change of a link.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The index of the link among those of the scenario.
    pub link: usize,
    /// When it happens, or begins.
    pub at: Span,
    /// Which directions.
    pub way: Way,
    /// What becomes of the link.
    pub course: Course,
    /// How long after a change of the rate the discipline is told.
    pub tell_after: Span,
    /// The discipline is told at all.
    pub told: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawChange {
    pub link: String,
    pub at: Option<Span>,
    pub every: Option<Span>,
    #[serde(default = "both")]
    pub direction: String,
    pub rate: Option<Rate>,
    pub delay: Option<Span>,
    pub loss: Option<f64>,
    pub stations: Option<Vec<f64>>,
    pub orbit: Option<RawOrbit>,
    pub trace: Option<String>,
    pub bin: Option<Span>,
    pub table: Option<String>,
    pub states: Option<Vec<RawState>>,
    #[serde(default)]
    pub tell_after: Span,
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
        self.raw.changes.iter().enumerate().map(|(i, raw)| self.change(&i.to_string(), raw, links)).collect()
    }

    fn change(&self, index: &str, raw: &RawChange, links: &[LinkSpec]) -> Check<Change> {
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

/// As it is written back.
pub(super) fn write(change: &Change, link: &str) -> Value {
    let mut table = Table::from_iter([
        ("link".to_owned(), Value::String(link.to_owned())),
        ("at".to_owned(), text(change.at)),
        ("direction".to_owned(), Value::String(change.way.name().into())),
        ("tell_after".to_owned(), text(change.tell_after)),
        ("told".to_owned(), Value::Boolean(change.told)),
    ]);
    change.course.write(&mut table);
    Value::Table(table)
}
