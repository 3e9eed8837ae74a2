//! Former values: `rollback` returns to those before the last change, and what was set for a time, or until it is
//! confirmed, goes by itself.

use crate::socket::message::{Refusal, Until};
use penstock_core::units::{Instant, Span};
use serde::Serialize;

/// Number of changes that can be taken back.
const MOST: usize = 32;

/// What was set before.
#[derive(Debug)]
pub(crate) struct History<S> {
    past: Vec<S>,
    pending: Option<Pending<S>>,
}

#[derive(Debug)]
struct Pending<S> {
    former: S,
    due: Instant,
    until: Until,
}

/// What the status tells of a change that will go.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Lapse {
    /// True if it stays once it is confirmed.
    pub waits_for_confirmation: bool,
    /// The former values return after so many seconds.
    pub in_s: f64,
}

impl<S> Default for History<S> {
    fn default() -> Self {
        Self { past: Vec::new(), pending: None }
    }
}

impl<S> History<S> {
    /// Refuses to set something while a change is temporary: what it returns to would be unclear.
    pub fn may_set(&self) -> Result<(), Refusal> {
        let what = "the last change is temporary: `keep` or `rollback` it before the next one";
        if self.pending.is_none() { Ok(()) } else { Err(Refusal::new(what)) }
    }

    /// Notes a change that was made at `now`, before which the settings were `former`.
    pub fn note(&mut self, former: S, until: Option<Until>, now: Instant) {
        match until {
            Some(until) => self.pending = Some(Pending { former, due: now + until.span(), until }),
            None => self.push(former),
        }
    }

    fn push(&mut self, former: S) {
        if self.past.len() == MOST {
            self.past.remove(0);
        }
        self.past.push(former);
    }

    /// A temporary change stays; fails if there is none.
    pub fn keep(&mut self) -> Result<(), Refusal> {
        let pending = self.pending.take().map(|pending| self.push(pending.former));
        pending.ok_or_else(|| Refusal::new("no change is temporary: there is nothing to keep"))
    }

    /// Returns the settings before the last change, which is forgotten; fails if nothing was changed.
    pub fn back(&mut self) -> Result<S, Refusal> {
        let former = self.pending.take().map(|pending| pending.former).or_else(|| self.past.pop());
        former.ok_or_else(|| Refusal::new("nothing was changed since the start: there is nothing to roll back"))
    }

    /// Returns the settings that must return now, because the time of a change is over.
    pub fn lapsed(&mut self, now: Instant) -> Option<S> {
        self.pending.take_if(|pending| pending.due <= now).map(|pending| pending.former)
    }

    /// Puts settings back that could not be applied: they are tried again a second later.
    pub fn again(&mut self, former: S, now: Instant) {
        let second = Span::from_secs(1);
        self.pending = Some(Pending { former, due: now + second, until: Until::For(second) });
    }

    /// Returns what the status tells.
    pub fn lapse(&self, now: Instant) -> Option<Lapse> {
        let Pending { due, until, .. } = self.pending.as_ref()?;
        Some(Lapse { waits_for_confirmation: matches!(until, Until::Confirmed(_)), in_s: due.since(now).as_secs_f64() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(s: u64) -> Instant {
        Instant::ZERO + Span::from_secs(s)
    }

    #[test]
    fn the_last_changes_are_taken_back_one_after_another() {
        let mut history = History::default();
        (0..100).for_each(|mbps| history.note(mbps, None, at(0)));
        (0..32).for_each(|mbps| assert_eq!(history.back().unwrap(), 99 - mbps));
        assert!(history.back().unwrap_err().what.contains("nothing was changed"));
    }

    #[test]
    fn what_was_set_for_a_time_goes_when_it_is_over() {
        let mut history = History::default();
        history.note(1, Some(Until::For(Span::from_secs(10))), at(5));
        assert!(history.may_set().is_err());
        let lapse = Lapse { waits_for_confirmation: false, in_s: 10.0 };
        assert_eq!((history.lapsed(at(14)), history.lapse(at(5))), (None, Some(lapse)));
        assert_eq!(history.lapsed(at(15)), Some(1));
        assert!(history.may_set().is_ok() && history.lapsed(at(16)).is_none());
        history.again(1, at(16));
        assert_eq!(history.lapsed(at(17)), Some(1));
    }

    #[test]
    fn what_is_confirmed_stays_and_can_still_be_taken_back() {
        let mut history = History::default();
        history.note(1, Some(Until::Confirmed(Span::from_secs(60))), at(0));
        history.keep().unwrap();
        assert_eq!(history.lapsed(at(100)), None);
        assert!(history.keep().is_err());
        assert_eq!(history.back().unwrap(), 1);
    }
}
