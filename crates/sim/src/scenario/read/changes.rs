//! Reading of `[[changes]]`.

use super::change_keys::ChangeKeys;
use super::{Check, Checker};
use crate::scenario::{Change, Course, LinkSpec, Way};
use penstock_core::units::Span;
use penstock_grammar::range::MAX_DURATION;

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
