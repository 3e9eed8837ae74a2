//! How a connection starts: SEARCH and Careful Resume, around any control that has a window and a threshold.
//!
//! Both are written for the slow start of whatever control there is. [`Started`] passes events on to the control, and sets its
//! window and threshold by [`Advice::Adopt`] where `search` or `careful_resume` say so. [`AnyControlConfig::build`] adds it to
//! those controls whose parameters ask for it; all others have nothing of it.
//!
//! SEARCH looks at no ACK while Careful Resume has the window.
//!
//! [`AnyControlConfig::build`]: super::AnyControlConfig::build

use super::careful_resume::{CarefulResume, Step};
use super::check;
use super::search::{Drain, Search};
use super::{Ack, Advice, CongestionControl, Loss, Notice, Requirements, Setup};
use crate::config::ConfigError;
use crate::units::{Bytes, Instant, Rate, Span};

/// What an earlier connection has found out about a path (RFC 9959 §3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Saved {
    /// saved_cwnd: what was acknowledged in a round trip.
    pub cwnd: Bytes,
    /// saved_rtt: the smallest round trip time.
    pub rtt: Span,
}

/// How a connection starts, beside what its control does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Start {
    /// The first slow start ends by SEARCH.
    pub search: bool,
    /// What Careful Resume begins with; `None` without it.
    pub resume: Option<Saved>,
}

impl Start {
    /// The start that these parameters of a control ask for.
    pub(super) fn of(search: bool, cwnd: Option<Bytes>, rtt: Option<Span>) -> Self {
        Self { search, resume: cwnd.zip(rtt).map(|(cwnd, rtt)| Saved { cwnd, rtt }) }
    }

    /// True if the control is left to itself.
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}

/// Checks `resume_cwnd` and `resume_rtt`, which belong together.
pub(super) fn validate(cwnd: Option<Bytes>, rtt: Option<Span>) -> Result<(), ConfigError> {
    match (cwnd, rtt) {
        (None, None) => Ok(()),
        (None, Some(_)) => Err(ConfigError::new("resume_rtt", "needs resume_cwnd, the window that was saved with it")),
        (Some(_), None) => {
            Err(ConfigError::new("resume_cwnd", "needs resume_rtt, the round trip time that was saved with it"))
        }
        (Some(cwnd), Some(rtt)) => {
            check::within("resume_cwnd", cwnd.as_f64(), 1.0, 1e12)?;
            check::above_zero("resume_rtt", rtt)
        }
    }
}

/// A control with a start of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct Started<C> {
    control: C,
    mss: Bytes,
    /// `None` after the first slow start.
    search: Option<Box<Search>>,
    /// Set between the verdict of SEARCH and the end of slow start.
    drain: Option<Drain>,
    /// `None` once the control is on its own.
    resume: Option<Box<CarefulResume>>,
    /// True from the beginning to the end of a connection that was given something to resume.
    resumes: bool,
}

impl<C: CongestionControl> Started<C> {
    /// Wraps the `control` of a new connection.
    pub fn new(control: C, start: Start, setup: &Setup) -> Self {
        let mss = setup.mss.max(Bytes::new(1));
        let resume = |saved| Box::new(CarefulResume::new(saved, mss, setup.initial_window));
        Self {
            control,
            mss,
            search: start.search.then(|| Box::new(Search::new(setup.initial_window))),
            drain: None,
            resume: start.resume.map(resume),
            resumes: start.resume.is_some(),
        }
    }

    /// The control that is started.
    pub fn control(&self) -> &C {
        &self.control
    }

    /// Bytes of the state on the heap, without those of the control.
    pub fn heap_bytes(&self) -> usize {
        let search = self.search.as_ref().map_or(0, |_| size_of::<Search>());
        search + self.resume.as_ref().map_or(0, |_| size_of::<CarefulResume>())
    }

    fn adopt(&mut self, cwnd: Bytes, ssthresh: Bytes) {
        self.control.advise(Advice::Adopt { cwnd, ssthresh });
    }

    /// Does what Careful Resume asks for; true if the control takes the event itself.
    fn follow(&mut self, step: Step) -> bool {
        let ssthresh = self.control.ssthresh();
        match step {
            Step::Control | Step::Hold => {}
            Step::Window(cwnd) | Step::WindowThenControl(cwnd) => self.adopt(cwnd, ssthresh),
            Step::Retreat(window) => self.adopt(window, window),
            Step::Leave(cwnd, ssthresh) => self.adopt(cwnd, ssthresh),
        }
        matches!(step, Step::Control | Step::WindowThenControl(_))
    }

    /// Forgets the state of Careful Resume when it has ended.
    fn let_go(&mut self) {
        self.resume = self.resume.take().filter(|resume| !resume.is_over());
    }

    /// Ends SEARCH at a sign of congestion.
    fn end_search(&mut self) {
        (self.search, self.drain) = (None, None);
    }

    /// Lets SEARCH take an ACK; true if the window drains, and the control does not take the ACK.
    fn searched(&mut self, ack: &Ack) -> bool {
        if self.control.cwnd() >= self.control.ssthresh() {
            self.end_search();
        }
        if self.drain.is_none() {
            self.drain = self.search.as_mut().and_then(|search| search.on_ack(ack));
        }
        let Some(drain) = &mut self.drain else { return false };
        let (target, before) = (drain.target, self.control.cwnd());
        let cwnd = drain.on_ack(ack, before, self.mss);
        if cwnd <= target {
            self.end_search();
            self.adopt(cwnd, cwnd);
        } else {
            self.adopt(cwnd, self.control.ssthresh());
        }
        true
    }

    /// Takes a congestion signal that the control has taken already, within Careful Resume.
    fn retreat(&mut self, step: Step, again: bool) {
        let reduced = self.control.ssthresh();
        let step = match &mut self.resume {
            Some(resume) if again => resume.shrink(reduced),
            _ => step,
        };
        self.follow(step);
    }
}

impl<C: CongestionControl> CongestionControl for Started<C> {
    #[inline]
    fn cwnd(&self) -> Bytes {
        self.control.cwnd()
    }

    #[inline]
    fn ssthresh(&self) -> Bytes {
        self.control.ssthresh()
    }

    fn on_ack(&mut self, ack: &Ack) {
        if let Some(resume) = &mut self.resume {
            let step = resume.on_ack(ack);
            if !self.follow(step) {
                return self.let_go();
            }
        }
        if self.resume.as_ref().is_none_or(|resume| resume.leaves_alone()) && self.searched(ack) {
            return;
        }
        self.control.on_ack(ack);
        let cwnd = self.control.cwnd();
        if let Some(jump) = self.resume.as_mut().and_then(|resume| resume.confirm(ack, cwnd)) {
            self.adopt(jump, self.control.ssthresh());
        }
        self.let_go();
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.end_search();
        let Some(resume) = &mut self.resume else { return self.control.on_loss(loss) };
        let again = resume.is_retreating();
        let step = resume.on_loss(loss);
        if let Step::Retreat(_) = step {
            // What was not validated is no window that was lost from.
            let (pipe_size, ssthresh) = (resume.pipe_size().max(self.mss), self.control.ssthresh());
            let known = pipe_size.min(self.control.cwnd());
            self.adopt(known, ssthresh);
        }
        self.control.on_loss(loss);
        if !matches!(step, Step::Control) {
            self.retreat(step, again);
        }
        self.let_go();
    }

    fn on_recovered(&mut self, now: Instant) {
        self.control.on_recovered(now);
        if let Some(step) = self.resume.as_mut().map(|resume| resume.retreat_on()) {
            self.follow(step);
        }
        self.let_go();
    }

    fn on_rto(&mut self, loss: &Loss) {
        self.end_search();
        self.resume = None;
        self.control.on_rto(loss);
    }

    fn on_idle(&mut self, now: Instant, initial_window: Bytes) {
        if let Some(search) = &mut self.search {
            search.reset();
        }
        self.resume = self.resume.take().filter(|resume| resume.leaves_alone());
        self.control.on_idle(now, initial_window);
    }

    fn pacing_rate(&self) -> Option<Rate> {
        let (own, resumed) = (self.control.pacing_rate(), self.resume.as_ref().and_then(|resume| resume.pacing_rate()));
        own.into_iter().chain(resumed).min()
    }

    fn requirements(&self) -> Requirements {
        let own = self.control.requirements();
        Requirements { rate: own.rate || self.resumes, falls_at_once: self.resumes, ..own }
    }

    fn on_recovery_ack(&mut self, ack: &Ack) {
        if let Some(resume) = &mut self.resume {
            resume.on_recovery_ack(ack);
        }
        if self.control.requirements().rate {
            self.control.on_recovery_ack(ack);
        }
    }

    fn on_notice(&mut self, notice: &Notice) {
        self.control.on_notice(notice);
    }

    fn next_burst(&self) -> Instant {
        let deadline = self.resume.as_ref().map_or(Instant::MAX, |resume| resume.deadline());
        self.control.next_burst().min(deadline)
    }

    fn on_burst(&mut self, now: Instant, in_flight: Bytes) {
        if let Some(resume) = self.resume.as_mut().filter(|resume| resume.deadline() <= now) {
            let step = resume.on_deadline(in_flight);
            self.follow(step);
            self.let_go();
        }
        if self.control.next_burst() <= now {
            self.control.on_burst(now, in_flight);
        }
    }

    fn advise(&mut self, advice: Advice) {
        self.control.advise(advice);
    }
}

#[cfg(test)]
mod tests;
