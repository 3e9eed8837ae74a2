//! The state of the sending half of a connection at one time, for observers.

use penstock_core::units::{Rate, Span};

/// Counters of the sending half.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Number of data segments sent, retransmissions included.
    pub segments: u64,
    /// Number of retransmissions among these segments.
    pub retransmits: u64,
    /// Number of retransmission timeouts.
    pub timeouts: u32,
    /// Number of window reductions for loss or ECN, without those of timeouts.
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

/// The phase of a sender, which says how its window changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growth {
    /// The window is below the slow start threshold.
    SlowStart,
    /// The window is at or above the slow start threshold.
    CongestionAvoidance,
    /// After a detected loss, until the data that was in flight at that time is acknowledged.
    Recovery,
    /// After a timeout, until the data that was in flight at that time is acknowledged.
    Loss,
}

/// The state of the sending half at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Snapshot {
    /// Phase of the sender.
    pub state: Growth,
    /// Congestion window in bytes.
    pub cwnd: u64,
    /// Slow start threshold in bytes; `u64::MAX` before the first signal.
    pub ssthresh: u64,
    /// Pacing rate; `None` if the control does not pace.
    pub pacing: Option<Rate>,
    /// Number of bytes in flight.
    pub in_flight: u64,
    /// Smoothed round trip time; zero before the first sample.
    pub srtt: Span,
    /// Counters since the connection was opened.
    pub counters: Counters,
}
