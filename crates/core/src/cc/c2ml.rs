//! C²ML: adapts any congestion control to the budget that a gateway gives to its node.
//!
//! Source: Grazia, dissertation on public protection networks (Modena, 2016), §2.2.3, eq. (2.1), (2.2), Figure 2.13.
//!
//! The gateway of a bottleneck divides its rate among the nodes behind it and tells each node its budget BW_i. A node
//! divides the budget among its sockets ([`Sockets`]). A control never uses more than the part of its socket; it may
//! use less.
//!
//! ```text
//! new BW_i           ssThres = BW_i RTT / 8,  cWnd = ssThres / 2        eq. (2.1), (2.2), Figure 2.13
//! each ACK           ssThres = BW_i RTT / 8,  the control's own rule,  cWnd = min(cWnd, ssThres)
//! bursts by a timer  BURST = BW_i TX_TMR / (8 MSS),  TX_TMR = 8 MSS BURST / BW_i
//! ```
//!
//! From half of the ceiling, slow start takes the window to the ceiling in one round trip; growth ends there. A loss
//! reduces the window by the rule of the control, which then returns by slow start.
//!
//! Without a budget ([`C2ml::set_budget`] with `None`: the gateway did not send one yet, or no longer sends it) every
//! event goes to the control as if there were no C²ML. The control keeps its state, so the change is smooth.
//!
//! Invariants: with a budget and a round trip time known, `cwnd` is at most BW_i RTT / 8, or one segment if that is
//! less; a pacing rate is at most BW_i; parts of a budget add up to no more than the budget. Cost: O(1).
//!
//! DIFFERENCE: the budget is a rate on the wire, so the window leaves room for headers, and it is a whole number of
//! segments. [`Form::Literal`] counts payload only. Pinned by `a_window_is_whole_segments_with_their_headers`.
//! DIFFERENCE: RTT is the smallest round trip time of the connection. With the current one a standing queue sustains
//! itself, since each window grows with the queue that it causes. [`Form::Literal`] takes the current one. Pinned by
//! `a_queue_does_not_feed_itself`.
//! DIFFERENCE: a new budget moves the window only into `[ssThres/2, ssThres]`, so a window in that
//! range is not halved.
//! [`Form::Literal`] always halves. Pinned by `a_new_budget_leaves_a_window_that_fits`.

use super::{Ack, Advice, BurstLimit, CongestionControl, Loss, Notice, Requirements, Setup};
use crate::units::{Bytes, Instant, Rate, Span};
use serde::{Deserialize, Serialize};

/// How a control is adapted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// No adaptation: the control does not receive a budget.
    #[default]
    Off,
    /// The rules in the header of `c2ml.rs`, with its three differences.
    On,
    /// Figure 2.13 of the dissertation to the letter.
    Literal,
}

/// A control with a budget.
#[derive(Debug, Clone, PartialEq)]
pub struct C2ml<C> {
    control: C,
    /// True for [`Form::Literal`].
    literal: bool,
    /// True for a control which a timer limits, not a window.
    sends_bursts: bool,
    mss: Bytes,
    /// Size of a full segment on the wire; the payload for [`Form::Literal`].
    frame: Bytes,
    /// BW_i of this socket; `None` without a budget.
    budget: Option<Rate>,
    /// Round trip time from which the ceiling is computed; `None` before the handshake.
    rtt: Option<Span>,
    /// ssThres; `None` until budget and round trip time are known.
    ceiling: Option<Bytes>,
}

/// Eq. (2.1) in whole segments of payload `mss` and size `frame` on the wire; at least one segment.
fn window(rate: Rate, rtt: Span, mss: Bytes, frame: Bytes) -> Bytes {
    (rate.bytes_in(rtt) / frame).max(1) * mss
}

impl<C: CongestionControl> C2ml<C> {
    /// Wraps a `control` whose segments have `headers` besides their payload. It has no budget yet.
    pub fn new(control: C, setup: &Setup, form: Form, headers: Bytes) -> Self {
        let mss = setup.mss.max(Bytes::new(1));
        let literal = form == Form::Literal;
        let frame = if literal { mss } else { mss + headers };
        let sends_bursts = control.next_burst() != Instant::MAX;
        Self { control, literal, sends_bursts, mss, frame, budget: None, rtt: None, ceiling: None }
    }

    /// The control that is adapted.
    pub fn control(&self) -> &C {
        &self.control
    }

    /// The budget of this socket; `None` for no limit.
    pub fn budget(&self) -> Option<Rate> {
        self.budget
    }

    /// Sets the budget of this socket; `None` if the gateway no longer sends one.
    pub fn set_budget(&mut self, budget: Option<Rate>) {
        if budget == self.budget {
            return;
        }
        self.budget = budget;
        let frame = self.frame;
        self.control.advise(Advice::LimitBursts(budget.map(|rate| BurstLimit { rate, frame })));
        self.update();
        if let Some(ceiling) = self.ceiling {
            self.begin(ceiling);
        }
    }

    /// Adopts ssThres and the window from which slow start continues: half of it by eq. (2.2), or the own window if
    /// that is larger.
    fn begin(&mut self, ceiling: Bytes) {
        let half = (ceiling / 2).max(self.mss).min(ceiling);
        let own = self.control.cwnd();
        self.adopt(if self.literal { half } else { own.clamp(half, ceiling) }, ceiling);
    }

    /// Sets the round trip time of the handshake; with a budget, the first flight is half of the ceiling.
    pub fn set_rtt(&mut self, rtt: Span) {
        self.rtt = Some(rtt);
        self.update();
        if let Some(ceiling) = self.ceiling {
            self.begin(ceiling);
        }
    }

    fn adopt(&mut self, cwnd: Bytes, ssthresh: Bytes) {
        if !self.sends_bursts {
            self.control.advise(Advice::Adopt { cwnd, ssthresh });
        }
    }

    /// Computes the ceiling, eq. (2.1), after a change of budget or round trip time.
    fn update(&mut self) {
        self.ceiling = self.budget.zip(self.rtt).map(|(budget, rtt)| {
            let literal = || budget.bytes_in(rtt).max(self.mss);
            if self.literal { literal() } else { window(budget, rtt, self.mss, self.frame) }
        });
    }

    /// Takes the round trip time of an ACK.
    fn follow_rtt(&mut self, ack: &Ack) {
        self.follow(if self.literal { ack.rtt.unwrap_or(ack.srtt) } else { ack.min_rtt });
    }

    fn follow(&mut self, rtt: Span) {
        if self.rtt != Some(rtt) {
            self.rtt = Some(rtt);
            self.update();
        }
    }
}

impl<C: CongestionControl> CongestionControl for C2ml<C> {
    #[inline]
    fn cwnd(&self) -> Bytes {
        match self.ceiling {
            Some(ceiling) if !self.sends_bursts => self.control.cwnd().min(ceiling),
            _ => self.control.cwnd(),
        }
    }

    #[inline]
    fn ssthresh(&self) -> Bytes {
        self.control.ssthresh()
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.follow_rtt(ack);
        let Some(ceiling) = self.ceiling.filter(|_| !self.sends_bursts) else { return self.control.on_ack(ack) };
        self.control.advise(Advice::Adopt { cwnd: self.control.cwnd(), ssthresh: ceiling });
        self.control.on_ack(ack);
        if self.control.cwnd() > ceiling {
            self.control.advise(Advice::Adopt { cwnd: ceiling, ssthresh: ceiling });
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.control.on_loss(loss);
    }

    fn on_recovered(&mut self, now: Instant) {
        self.control.on_recovered(now);
    }

    fn on_rto(&mut self, loss: &Loss) {
        self.control.on_rto(loss);
    }

    fn on_idle(&mut self, now: Instant, initial_window: Bytes) {
        self.control.on_idle(now, initial_window);
    }

    fn pacing_rate(&self) -> Option<Rate> {
        let own = self.control.pacing_rate()?;
        Some(self.budget.map_or(own, |budget| own.min(budget)))
    }

    fn requirements(&self) -> Requirements {
        self.control.requirements()
    }

    fn on_recovery_ack(&mut self, ack: &Ack) {
        self.control.on_recovery_ack(ack);
    }

    fn on_notice(&mut self, notice: &Notice) {
        if let Notice::Delivered(sample) = notice
            && let Some(rtt) = sample.rtt
        {
            self.follow(if self.literal { rtt } else { self.rtt.map_or(rtt, |least| least.min(rtt)) });
        }
        self.control.on_notice(notice);
    }

    #[inline]
    fn next_burst(&self) -> Instant {
        self.control.next_burst()
    }

    fn on_burst(&mut self, now: Instant, in_flight: Bytes) {
        self.control.on_burst(now, in_flight);
    }

    fn advise(&mut self, advice: Advice) {
        self.control.advise(advice);
    }
}

/// The budget of a node and the weights of its open sockets: each socket gets its part by weight. Equal weights give
/// equal parts. O(1).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sockets {
    budget: Option<Rate>,
    weights: u64,
}

impl Sockets {
    /// The budget of the node; `None` for no limit.
    pub fn budget(&self) -> Option<Rate> {
        self.budget
    }

    /// Sets the budget of the node; `None` if the gateway no longer sends one.
    pub fn set_budget(&mut self, budget: Option<Rate>) {
        self.budget = budget;
    }

    /// Opens a socket with this weight; 0 counts as 1. True for the first socket.
    pub fn open(&mut self, weight: u32) -> bool {
        let first = self.weights == 0;
        self.weights += u64::from(weight.max(1));
        first
    }

    /// Closes a socket with this weight. True for the last socket.
    pub fn close(&mut self, weight: u32) -> bool {
        self.weights = self.weights.saturating_sub(weight.max(1).into());
        self.weights == 0
    }

    /// The part of the budget for a socket with this weight; `None` for no limit.
    pub fn part(&self, weight: u32) -> Option<Rate> {
        let bps = u128::from(self.budget?.as_bps()) * u128::from(weight.max(1)) / u128::from(self.weights.max(1));
        Some(Rate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX)))
    }
}

#[cfg(test)]
mod tests;
