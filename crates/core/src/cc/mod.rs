//! Congestion control: the TCP endpoint detects loss, the control owns the window.
//!
//! Sizes are bytes. A control is told of events and asked for its window; it never reads a clock. The contract with the
//! endpoint, event by event:
//!
//! | the endpoint sees | it calls | the control |
//! |---|---|---|
//! | an ACK of new data outside loss recovery, or after a timeout | [`on_ack`](CongestionControl::on_ack) | grows |
//! | fast recovery begins, or an ECN echo; once per window | [`on_loss`](CongestionControl::on_loss) | sets `ssthresh` |
//! | recovery ended; at once for an ECN echo | [`on_recovered`](CongestionControl::on_recovered) | falls to `ssthresh` |
//! | the first timeout of a segment | [`on_rto`](CongestionControl::on_rto) | sets `ssthresh`, falls to one segment |
//! | new data after an idle time | [`on_idle`](CongestionControl::on_idle) | restarts |
//! | an ACK during loss recovery, if the control requires rates | [`on_recovery_ack`](CongestionControl::on_recovery_ack) | measures |
//! | the time of the next burst, and data to send | [`on_burst`](CongestionControl::on_burst) | opens the window by a burst |
//!
//! During recovery the endpoint alone decides what may be sent (PRR, down to `ssthresh`); `cwnd` is not asked for.

/// Writes the methods of [`CongestionControl`] which a control has no use for: `without!(pacing, bursts)`.
///
/// The trait has no defaults, so that what stands around a control cannot forget to pass a method on.
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
use without;

#[cfg(test)]
mod driver;

mod check;
mod hystart;
mod table;
mod window;

pub mod bbr;
pub mod bic;
pub mod c2ml;
pub mod compound;
pub mod cubic;
pub mod cubic_linux;
pub mod dctcp;
pub mod foreign;
pub mod highspeed;
pub mod hybla;
pub mod newreno;
pub mod noordwijk;
pub mod prague;
pub mod scalable;
pub mod vegas;
pub mod westwood;

pub use table::{AnyCc, AnyControlConfig, NAMES, entries, needs_ecn, unknown};

use crate::config::ConfigError;
use crate::units::{Bytes, Instant, Rate, Span};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// What a control is told when a connection begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setup {
    /// Segment size in bytes; 0 is taken as 1.
    pub mss: Bytes,
    /// Initial window in bytes.
    pub initial_window: Bytes,
    /// Slow start threshold in bytes before the first signal; `u64::MAX` is none. BBR and Noordwijk have none.
    pub initial_ssthresh: Bytes,
}

impl Setup {
    /// [`Setup::initial_ssthresh`] in segments; infinite if there is none.
    fn first_threshold(&self, mss: f64) -> f64 {
        if self.initial_ssthresh == Bytes::MAX { f64::INFINITY } else { self.initial_ssthresh.as_f64() / mss }
    }
}

/// The configuration of a control is its factory.
pub trait ControlConfig: Default + Clone + PartialEq + Serialize + DeserializeOwned + JsonSchema {
    /// What it makes.
    type Control: CongestionControl;

    /// Refuses values that cannot work.
    ///
    /// # Errors
    /// The first parameter that is out of its range.
    fn validate(&self) -> Result<(), ConfigError>;

    /// Makes the control of a new connection. Call only after [`ControlConfig::validate`].
    fn control(&self, setup: &Setup) -> Self::Control;
}

/// What a control requires of its endpoint beyond the events above.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Requirements {
    /// [`Ack::rate`] is filled, and [`CongestionControl::on_recovery_ack`] called.
    pub rate: bool,
    /// The receiver acknowledges every segment.
    pub ack_per_segment: bool,
    /// Every ACK tells whether the segment it is for was marked (RFC 8257 §3.2), and [`Ack::marked`] is filled.
    pub accurate_ecn: bool,
    /// Segments carry ECT(1) (RFC 9331) instead of ECT(0).
    pub ect1: bool,
}

/// A sample of the delivery rate (draft-cheng-iccrg-delivery-rate-estimation): what was delivered between two points.
/// The first is the last delivery before the newest segment acknowledged was sent, the second this ACK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateSample {
    /// [`Ack::delivered`] at the first point.
    pub prior_delivered: Bytes,
    /// The time between the points, as seen by the receiver or the sender, whichever is longer.
    pub interval: Span,
    /// The application had too little to send at the first point.
    pub app_limited: bool,
    /// Bytes in flight after this ACK.
    pub in_flight: Bytes,
    /// Bytes of the connection found lost so far, counted when they are sent again.
    pub lost: Bytes,
}

/// What an ACK of new data tells.
#[derive(Debug, Clone, Copy)]
pub struct Ack {
    /// When it arrived.
    pub now: Instant,
    /// Bytes newly acknowledged, cumulatively. After a timeout this may be more than a window.
    pub acked: Bytes,
    /// A new round trip time sample, if this ACK gave one.
    pub rtt: Option<Span>,
    /// Smoothed round trip time (RFC 6298).
    pub srtt: Span,
    /// Smallest round trip time of the connection so far.
    pub min_rtt: Span,
    /// Bytes in flight before this ACK.
    pub in_flight: Bytes,
    /// True when the flight was limited by the congestion window; a window not in use does not grow (RFC 7661).
    pub cwnd_limited: bool,
    /// Bytes of the connection delivered so far, with what was SACKed, counted from any number on.
    pub delivered: Bytes,
    /// Bytes of `acked` that arrived marked; only with [`Requirements::accurate_ecn`].
    pub marked: Bytes,
    /// A rate sample; only with [`Requirements::rate`].
    pub rate: Option<RateSample>,
}

/// A congestion signal.
#[derive(Debug, Clone, Copy)]
pub struct Loss {
    /// When it was noticed.
    pub now: Instant,
    /// Bytes in flight (FlightSize of RFC 5681).
    pub in_flight: Bytes,
    /// True for an ECN echo, false for a lost packet.
    pub ecn: bool,
}

/// What somebody tells a control who knows the path better than it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// Window and slow start threshold are to be these. A control with a model of its own may ignore it.
    Adopt {
        /// Congestion window in bytes.
        cwnd: Bytes,
        /// Slow start threshold in bytes.
        ssthresh: Bytes,
    },
    /// Bursts are to stay below a limit; `None` ends it. Only for controls that send in bursts.
    LimitBursts(Option<BurstLimit>),
}

/// What bursts may carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BurstLimit {
    /// No more than this rate.
    pub rate: Rate,
    /// Bytes of a full segment on the wire.
    pub frame: Bytes,
}

/// A window algorithm.
pub trait CongestionControl {
    /// Congestion window in bytes.
    fn cwnd(&self) -> Bytes;
    /// Slow start threshold in bytes; before the first signal that of [`Setup`].
    fn ssthresh(&self) -> Bytes;
    /// New data was acknowledged outside loss recovery.
    fn on_ack(&mut self, ack: &Ack);
    /// Once per window of data: the network is congested. Sets `ssthresh`; the endpoint brings the window down.
    fn on_loss(&mut self, loss: &Loss);
    /// Loss recovery ended; the window becomes `ssthresh` unless the control knows better.
    fn on_recovered(&mut self, now: Instant);
    /// The retransmission timer fired for a segment not yet sent again: once per loss event (RFC 5681 §3.1).
    fn on_rto(&mut self, loss: &Loss);
    /// The connection was idle for longer than the retransmission timeout (RFC 5681 §4.1): restart the window.
    fn on_idle(&mut self, now: Instant, initial_window: Bytes);
    /// Pacing rate, if the control paces.
    fn pacing_rate(&self) -> Option<Rate>;
    /// What the control requires of its endpoint; it never changes.
    fn requirements(&self) -> Requirements;
    /// Data was acknowledged during loss recovery; only with [`Requirements::rate`].
    fn on_recovery_ack(&mut self, ack: &Ack);
    /// When the next burst is due, for a control that sends in bursts: [`Instant::MAX`] is never, the past at once.
    fn next_burst(&self) -> Instant;
    /// The burst that was due may begin; its size and the next time are set.
    fn on_burst(&mut self, now: Instant, in_flight: Bytes);
    /// Somebody who knows the path better than the control tells what he knows.
    fn advise(&mut self, advice: Advice);
}
