//! Congestion control: the TCP endpoint detects loss, the control owns the window.
//!
//! Sizes are bytes. A control is told of events and asked for its window; it never reads a clock.

use crate::units::{Instant, Rate, Span};

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
