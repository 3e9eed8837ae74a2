//! Congestion control: the TCP endpoint detects loss, the control owns the window.
//!
//! The endpoint reports events to the control and asks it for its window; a control never reads a clock. Sizes are
//! [`Bytes`]. The contract, event by event:
//!
//! | the endpoint observes | it calls | the control |
//! |---|---|---|
//! | an ACK of new data outside loss recovery, or after a timeout | [`on_ack`](CongestionControl::on_ack) | grows |
//! | fast recovery begins, or an ECN echo; once per window | [`on_loss`](CongestionControl::on_loss) | sets `ssthresh` |
//! | recovery ended; at once for an ECN echo | [`on_recovered`](CongestionControl::on_recovered) | falls to `ssthresh` |
//! | the first timeout of a segment | [`on_rto`](CongestionControl::on_rto) | sets `ssthresh`, falls to one segment |
//! | new data after an idle period | [`on_idle`](CongestionControl::on_idle) | restarts |
//! | an ACK during loss recovery, if the control requires rates | [`on_recovery_ack`](CongestionControl::on_recovery_ack) | updates its model |
//! | a segment is delivered or lost, if the control requires segments | [`on_notice`](CongestionControl::on_notice) | updates its model |
//! | the time of the next burst, and data to send | [`on_burst`](CongestionControl::on_burst) | opens the window by a burst |
//!
//! A control that requires segments ([`Requirements::segments`]) gets notices instead of ACKs, in recovery and outside.
//!
//! During recovery the endpoint alone decides what may be sent (PRR, down to `ssthresh`) and does not ask for `cwnd`.

/// Writes empty versions of the methods of [`CongestionControl`] that a control does not need, for example
/// `without!(pacing, bursts)`.
///
/// The trait has no default methods, so that a wrapper around a control cannot forget to forward one of them.
#[macro_export]
macro_rules! without {
    ($($hook:ident),+) => { $($crate::cc::without!(@ $hook);)+ };
    (@ pacing) => {
        #[inline]
        fn pacing_rate(&self) -> Option<$crate::units::Rate> {
            None
        }
    };
    (@ requirements) => {
        fn requirements(&self) -> $crate::cc::Requirements {
            $crate::cc::Requirements::default()
        }
    };
    (@ recovery) => {
        fn on_recovery_ack(&mut self, _: &$crate::cc::Ack) {}
        $crate::cc::without!(@ notices);
    };
    (@ notices) => {
        fn on_notice(&mut self, _: &$crate::cc::Notice) {}
    };
    (@ bursts) => {
        #[inline]
        fn next_burst(&self) -> $crate::units::Instant {
            $crate::units::Instant::MAX
        }
        fn on_burst(&mut self, _: $crate::units::Instant, _: $crate::units::Bytes) {}
    };
    (@ advice) => {
        fn advise(&mut self, _: $crate::cc::Advice) {}
    };
}
pub use without;

#[cfg(test)]
mod driver;

mod careful_resume;
mod check;
mod hystart;
mod linux;
mod notice;
mod search;
mod table;
mod window;

pub mod bbr;
pub mod bbr3;
pub mod bic;
pub mod c2ml;
pub mod compound;
pub mod cubic;
pub mod cubic_linux;
pub mod dctcp;
pub mod foreign;
pub mod highspeed;
pub mod hybla;
pub mod ledbat_pp;
pub mod newreno;
pub mod noordwijk;
pub mod prague;
pub mod scalable;
pub mod start;
pub mod vegas;
pub mod westwood;

pub use notice::{Begin, Delivered, LostSegment, Notice};
pub use table::{AnyCc, AnyControlConfig, NAMES, entries, needs_ecn, unknown};

use crate::config::ConfigError;
use crate::units::{Bytes, Instant, Rate, Span};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// What the endpoint tells a control when a connection begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setup {
    /// Payload of a full segment (SMSS of RFC 5681); 0 is taken as 1 byte.
    pub mss: Bytes,
    /// Initial congestion window (IW of RFC 5681).
    pub initial_window: Bytes,
    /// Slow start threshold before the first congestion signal; [`Bytes::MAX`] is none. BBR and Noordwijk ignore it.
    pub initial_ssthresh: Bytes,
    /// The endpoint spreads the segments of a window over the round trip, although the control does not ask for it. ACKs
    /// that come close together for half of a round trip are then no sign of a full path to the HyStart of Linux.
    pub paced: bool,
    /// For what a control leaves to chance: differs from connection to connection, and is equal in all runs with equal
    /// scenario and seed.
    pub seed: u64,
}

impl Setup {
    /// That of a connection of which nothing is known, for questions that every instance of a control answers alike.
    pub(crate) const ANY: Self = {
        let least = Bytes::new(1);
        Self { mss: least, initial_window: least, initial_ssthresh: Bytes::MAX, paced: false, seed: 0 }
    };

    /// [`Setup::initial_ssthresh`] in segments; infinite if there is none.
    fn first_threshold(&self, mss: f64) -> f64 {
        if self.initial_ssthresh == Bytes::MAX { f64::INFINITY } else { self.initial_ssthresh.as_f64() / mss }
    }
}

/// The parameters of a control, which also create it.
pub trait ControlConfig: Default + Clone + PartialEq + Serialize + DeserializeOwned + JsonSchema {
    /// The control that these parameters configure.
    type Control: CongestionControl;

    /// Checks that every parameter is in its range.
    ///
    /// # Errors
    /// The first parameter that is out of its range.
    fn validate(&self) -> Result<(), ConfigError>;

    /// Creates the control of a new connection. Call it only after [`ControlConfig::validate`].
    fn control(&self, setup: &Setup) -> Self::Control;

    /// How a connection starts, beside what the control does; [`AnyControlConfig::build`] adds it.
    fn start(&self) -> start::Start {
        start::Start::default()
    }
}

/// What a control requires of its endpoint besides the events which every control receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Requirements {
    /// The endpoint fills [`Ack::rate`] and calls [`CongestionControl::on_recovery_ack`].
    pub rate: bool,
    /// The window of the control holds in recovery too, instead of proportional rate reduction. Only with
    /// [`Requirements::rate`] or [`Requirements::segments`].
    pub own_recovery: bool,
    /// The receiver acknowledges every segment.
    pub ack_per_segment: bool,
    /// Every ACK tells whether the segment that it acknowledges was marked (RFC 8257 §3.2); the endpoint fills
    /// [`Ack::marked`]. Every segment is ECN-capable, also SYNs and retransmissions (§3.6).
    pub accurate_ecn: bool,
    /// Segments carry ECT(1) (RFC 9331) instead of ECT(0).
    pub ect1: bool,
    /// The endpoint tells the fate of each segment with [`CongestionControl::on_notice`], instead of ACKs. In
    /// [`CongestionControl::on_rto`], [`Loss::in_flight`] is then what is not lost.
    pub segments: bool,
    /// Where the window of the control is no larger than its threshold after [`CongestionControl::on_loss`], it holds at once, without
    /// proportional rate reduction.
    pub falls_at_once: bool,
    /// The endpoint behaves as that of the Linux kernel where the RFCs leave it a choice: what an ACK newly acknowledges or SACKs
    /// is what opens the window, an ECN echo reduces it by proportional rate reduction, [`Loss::in_flight`] of a timeout is what
    /// is not lost, and paced segments leave in groups.
    pub kernel: bool,
}

/// A sample of the delivery rate (draft-cheng-iccrg-delivery-rate-estimation): the data delivered between two points in
/// time. The first point is the last delivery before the newest acknowledged segment was sent; the second is this ACK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateSample {
    /// [`Ack::delivered`] at the first point.
    pub prior_delivered: Bytes,
    /// Time between the two points: the send interval or the ACK interval, whichever is longer.
    pub interval: Span,
    /// The application had too little to send at the first point.
    pub app_limited: bool,
    /// Bytes in flight after this ACK.
    pub in_flight: Bytes,
    /// Bytes lost since the connection began, counted when they are retransmitted.
    pub lost: Bytes,
}

/// What an ACK of new data tells a control.
#[derive(Debug, Clone, Copy)]
pub struct Ack {
    /// When the ACK arrived.
    pub now: Instant,
    /// Bytes by which the cumulative acknowledgment moved. After a timeout this may be more than a window.
    pub acked: Bytes,
    /// A new round trip time sample, if this ACK gave one.
    pub rtt: Option<Span>,
    /// Smoothed round trip time (RFC 6298).
    pub srtt: Span,
    /// Smallest round trip time of the connection so far.
    pub min_rtt: Span,
    /// Bytes in flight before this ACK.
    pub in_flight: Bytes,
    /// True if the congestion window limited the flight; a window that is not in use does not grow (RFC 7661).
    pub cwnd_limited: bool,
    /// Bytes delivered so far, including SACKed data. Only differences count: the number at the start is arbitrary.
    pub delivered: Bytes,
    /// Those bytes of `acked` that arrived with a CE mark; zero without [`Requirements::accurate_ecn`].
    pub marked: Bytes,
    /// A sample of the delivery rate; `None` without [`Requirements::rate`], or if this ACK gave none.
    pub rate: Option<RateSample>,
}

/// A congestion signal.
#[derive(Debug, Clone, Copy)]
pub struct Loss {
    /// When the endpoint noticed the signal.
    pub now: Instant,
    /// Bytes in flight (FlightSize of RFC 5681).
    pub in_flight: Bytes,
    /// True for an ECN echo, false for a lost packet.
    pub ecn: bool,
}

/// Advice from a component which knows the path better than the control does, such as C²ML with its budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// Sets window and slow start threshold. A control with a model of the path may ignore this advice.
    Adopt {
        /// The new congestion window.
        cwnd: Bytes,
        /// The new slow start threshold.
        ssthresh: Bytes,
    },
    /// Limits the size of bursts; `None` lifts the limit. Controls that do not send in bursts ignore this advice.
    LimitBursts(Option<BurstLimit>),
    /// Sets the rate at which segments are paced; `None` ends pacing. Only a control that leaves the decision to others heeds
    /// it.
    Pace(Option<Rate>),
    /// The endpoint tells, before data is sent, that the peer has no ECN: no mark will ever come. A control that is made for
    /// marks may go on as another one.
    WithoutEcn,
}

/// The limit of a control which sends in bursts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BurstLimit {
    /// Highest mean rate of the bursts on the wire.
    pub rate: Rate,
    /// Size of a full segment on the wire, headers included.
    pub frame: Bytes,
}

/// A congestion control: it owns the congestion window and the slow start threshold of one connection.
pub trait CongestionControl {
    /// Congestion window.
    fn cwnd(&self) -> Bytes;
    /// Slow start threshold. Before the first congestion signal it is [`Setup::initial_ssthresh`]; [`Bytes::MAX`] is
    /// none.
    fn ssthresh(&self) -> Bytes;
    /// Takes an ACK of new data outside loss recovery.
    fn on_ack(&mut self, ack: &Ack);
    /// Takes a congestion signal, at most one per window of data. Sets `ssthresh`; the endpoint reduces the window.
    fn on_loss(&mut self, loss: &Loss);
    /// Ends loss recovery: the window becomes `ssthresh`, or what the model of the control allows.
    fn on_recovered(&mut self, now: Instant);
    /// Takes a timeout of a segment which was not retransmitted before: once per loss event (RFC 5681 §3.1).
    fn on_rto(&mut self, loss: &Loss);
    /// Restarts the window after the connection was idle for longer than the retransmission timeout (RFC 5681 §4.1).
    fn on_idle(&mut self, now: Instant, initial_window: Bytes);
    /// Rate at which the endpoint paces segments; `None` if it sends as soon as the window allows.
    fn pacing_rate(&self) -> Option<Rate>;
    /// What the control requires of its endpoint; the answer never changes during a connection.
    fn requirements(&self) -> Requirements;
    /// Takes an ACK during loss recovery. The endpoint calls it only with [`Requirements::rate`].
    fn on_recovery_ack(&mut self, ack: &Ack);
    /// Takes what happened to a segment. The endpoint calls it only with [`Requirements::segments`].
    fn on_notice(&mut self, notice: &Notice);
    /// When the next burst is due; a time in the past means at once. [`Instant::MAX`] if the control sends no bursts.
    fn next_burst(&self) -> Instant;
    /// Begins the burst which is due: opens the window by its size above `in_flight` and sets the time of the next.
    fn on_burst(&mut self, now: Instant, in_flight: Bytes);
    /// Takes advice from a component which knows the path better than the control.
    fn advise(&mut self, advice: Advice);
}
