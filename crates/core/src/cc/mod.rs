//! Congestion control: the TCP endpoint detects loss, the control owns the window.
//!
//! Sizes are bytes. A control is told of events and asked for its window; it never reads a clock.

use crate::units::{Instant, Rate, Span};

#[cfg(test)]
mod driver;

pub mod cubic;
pub mod newreno;

use cubic::Cubic;
use newreno::NewReno;

/// What a control is told when a connection begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setup {
    /// Segment size in bytes.
    pub mss: u64,
    /// Initial window in bytes.
    pub initial_window: u64,
}

/// What an ACK of new data tells.
#[derive(Debug, Clone, Copy)]
pub struct Ack {
    /// When it arrived.
    pub now: Instant,
    /// Bytes newly acknowledged, cumulatively.
    pub acked: u64,
    /// A new round trip time sample, if this ACK gave one.
    pub rtt: Option<Span>,
    /// Smoothed round trip time (RFC 6298).
    pub srtt: Span,
    /// Smallest round trip time of the connection so far.
    pub min_rtt: Span,
    /// Bytes in flight before this ACK.
    pub in_flight: u64,
    /// True when the flight was limited by the congestion window; a window not in use does not grow (RFC 7661).
    pub cwnd_limited: bool,
}

/// A congestion signal.
#[derive(Debug, Clone, Copy)]
pub struct Loss {
    /// When it was noticed.
    pub now: Instant,
    /// Bytes in flight (FlightSize of RFC 5681).
    pub in_flight: u64,
    /// True for an ECN echo, false for a lost packet.
    pub ecn: bool,
}

/// A window algorithm.
pub trait CongestionControl {
    /// Congestion window in bytes.
    fn cwnd(&self) -> u64;
    /// Slow start threshold in bytes; `u64::MAX` before the first signal.
    fn ssthresh(&self) -> u64;
    /// New data was acknowledged outside loss recovery.
    fn on_ack(&mut self, ack: &Ack);
    /// Once per window of data: the network is congested. Sets `ssthresh`; the endpoint brings the window down.
    fn on_loss(&mut self, loss: &Loss);
    /// Loss recovery ended; the window becomes `ssthresh` unless the control knows better.
    fn on_recovered(&mut self, now: Instant);
    /// The retransmission timer fired.
    fn on_rto(&mut self, loss: &Loss);
    /// The connection was idle for longer than the retransmission timeout (RFC 5681 §4.1): restart the window.
    fn on_idle(&mut self, now: Instant, initial_window: u64);
    /// Pacing rate, if the control paces.
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }
}

/// Any control, by match and not by pointer: a control is asked several times per segment.
#[derive(Debug, Clone, PartialEq)]
pub enum AnyCc {
    /// NewReno.
    NewReno(NewReno),
    /// CUBIC.
    Cubic(Cubic),
}

/// The names of all controls.
pub const NAMES: &[&str] = &["newreno", "cubic"];

impl AnyCc {
    /// The control with this name.
    pub fn new(name: &str, setup: &Setup) -> Option<Self> {
        Some(match name {
            "newreno" => Self::NewReno(NewReno::new(setup)),
            "cubic" => Self::Cubic(Cubic::new(setup)),
            _ => return None,
        })
    }
}

macro_rules! each {
    ($self:ident, $cc:ident => $call:expr) => {
        match $self {
            Self::NewReno($cc) => $call,
            Self::Cubic($cc) => $call,
        }
    };
}

impl CongestionControl for AnyCc {
    #[inline]
    fn cwnd(&self) -> u64 {
        each!(self, cc => cc.cwnd())
    }
    #[inline]
    fn ssthresh(&self) -> u64 {
        each!(self, cc => cc.ssthresh())
    }
    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        each!(self, cc => cc.on_ack(ack));
    }
    fn on_loss(&mut self, loss: &Loss) {
        each!(self, cc => cc.on_loss(loss));
    }
    fn on_recovered(&mut self, now: Instant) {
        each!(self, cc => cc.on_recovered(now));
    }
    fn on_rto(&mut self, loss: &Loss) {
        each!(self, cc => cc.on_rto(loss));
    }
    fn on_idle(&mut self, now: Instant, initial_window: u64) {
        each!(self, cc => cc.on_idle(now, initial_window));
    }
    fn pacing_rate(&self) -> Option<Rate> {
        each!(self, cc => cc.pacing_rate())
    }
}
