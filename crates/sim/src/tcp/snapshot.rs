//! The state of the sending half of a connection at one time, for observers.

use penstock_core::units::{Rate, Span};
use serde::Serialize;

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

/// What `TCP_INFO` of Linux tells of a connection, in its units: segments for windows and counts, microseconds for times. The names
/// are those of `struct tcp_info` without their prefix. What the simulated TCP does not have is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct TcpInfo {
    /// State of loss recovery: 0 is Open, 1 Disorder, 2 CWR, 3 Recovery, 4 Loss.
    pub ca_state: u8,
    /// Congestion window in force.
    pub snd_cwnd: u64,
    /// Slow start threshold; 0x7fffffff without one.
    pub snd_ssthresh: u64,
    /// Largest payload of a segment, in bytes.
    pub snd_mss: u64,
    /// Segments sent and not cumulatively acknowledged.
    pub unacked: u64,
    /// Segments that SACK reported.
    pub sacked: u64,
    /// Segments that count as lost and were not delivered since.
    pub lost: u64,
    /// Segments that were sent again and are in flight.
    pub retrans: u64,
    /// Largest distance by which a segment was overtaken; at least 3.
    pub reordering: u64,
    /// How often a segment was overtaken.
    pub reord_seen: u64,
    /// Smoothed round trip time.
    pub rtt: u64,
    /// Smallest round trip time.
    pub min_rtt: u64,
    /// Retransmission timeout.
    pub rto: u64,
    /// How often the retransmission timer has fired since the last ACK of new data.
    pub backoff: u32,
    /// Segments that arrived with CE, as Accurate ECN tells.
    pub delivered_ce: u64,
    /// Bytes that arrived with ECT(0), as Accurate ECN tells.
    pub delivered_e0_bytes: u64,
    /// Bytes that arrived with ECT(1), as Accurate ECN tells.
    pub delivered_e1_bytes: u64,
    /// Bytes that arrived with CE, as Accurate ECN tells.
    pub delivered_ce_bytes: u64,
    /// Payload bytes received in order.
    pub bytes_received: u64,
    /// Data is unacknowledged or waits to be sent; Linux counts the time (`tcpi_busy_time`).
    pub busy: bool,
    /// The peer's window alone holds data back; Linux counts the time (`tcpi_rwnd_limited`).
    pub window_limited: bool,
}
