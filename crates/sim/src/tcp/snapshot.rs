//! The sending half of a connection at one moment, for those that look at it from outside.

use penstock_core::units::{Rate, Span};

/// Counters of the sending half.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Data segments sent, with retransmissions.
    pub segments: u64,
    /// Of these, retransmissions.
    pub retransmits: u64,
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// Window reductions for loss or ECN, without timeouts.
    pub reductions: u32,
}

impl std::ops::AddAssign for Counters {
    fn add_assign(&mut self, other: Self) {
        self.segments += other.segments;
        self.retransmits += other.retransmits;
        self.timeouts += other.timeouts;
        self.reductions += other.reductions;
    }
}

/// How the window of a sender moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growth {
    /// Below the threshold.
    SlowStart,
    /// At or above it.
    CongestionAvoidance,
    /// After a loss, until what was then in flight is acknowledged.
    Recovery,
    /// After a timeout, likewise.
    Loss,
}

/// The sending half at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Snapshot {
    /// How the window moves.
    pub state: Growth,
    /// Congestion window in bytes.
    pub cwnd: u64,
    /// Slow start threshold in bytes; `u64::MAX` before the first signal.
    pub ssthresh: u64,
    /// Pacing rate, if the control paces.
    pub pacing: Option<Rate>,
    /// Bytes thought to be in the network.
    pub in_flight: u64,
    /// Smoothed round trip time; zero before the first sample.
    pub srtt: Span,
    /// Counters.
    pub counters: Counters,
}
