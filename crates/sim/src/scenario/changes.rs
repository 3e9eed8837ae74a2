//! `[[changes]]`: what happens to links while the run goes on.

use super::raw::RawChange;
use super::{Check, Checker, LinkSpec, MAX_DELAY, MAX_DURATION};
use penstock_core::units::{Rate, Span};

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
    /// When it first happens.
    pub at: Span,
    /// How long until it happens again.
    pub every: Option<Span>,
    /// Which directions.
    pub way: Way,
    /// The new rate.
    pub rate: Option<Rate>,
    /// The new delay, one way.
    pub delay: Option<Span>,
    /// The new probability with which the wire loses a packet.
    pub loss: Option<f64>,
    /// The new losses of the stations behind the link, forward.
    pub stations: Option<Vec<f64>>,
    /// How long after a change of the rate the discipline is told.
    pub tell_after: Span,
    /// The discipline is told at all.
    pub told: bool,
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
        self.within_span("at", &path("at"), raw.at, Span::ZERO, MAX_DURATION)?;
        self.within_span("tell_after", &path("tell_after"), raw.tell_after, Span::ZERO, MAX_DURATION)?;
        if let Some(every) = raw.every {
            self.within_span("every", &path("every"), every, Span::from_millis(1), MAX_DURATION)?;
        }
        if let Some(rate) = raw.rate {
            self.rate(&path("rate"), rate)?;
        }
        if let Some(delay) = raw.delay {
            self.within_span("delay", &path("delay"), delay, Span::ZERO, MAX_DELAY)?;
        }
        if let Some(loss) = raw.loss {
            self.loss(&["changes", index], loss)?;
        }
        let behind = links[link].queue.stations.len();
        let stations = raw.stations.as_ref().map(|losses| self.new_losses(&path("stations"), losses, behind));
        if raw.rate.is_none() && raw.delay.is_none() && raw.loss.is_none() && raw.stations.is_none() {
            return Err(self.source.at(&path("link"), "nothing changes: give `rate`, `delay`, `loss` or `stations`"));
        }
        Ok(Change {
            link,
            at: raw.at,
            every: raw.every,
            way,
            rate: raw.rate,
            delay: raw.delay,
            loss: raw.loss,
            stations: stations.transpose()?,
            tell_after: raw.tell_after,
            told: raw.told,
        })
    }
}
