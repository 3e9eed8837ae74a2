//! Explicit rate notification: once per round trip the sender tells routers its rate (document 003 §III.A).

use super::config::TcpConfig;
use crate::segment::Segment;
use penstock_core::packet::{Ecn, Ern, Packet, RateNotice};
use penstock_core::units::{Bytes, Span};

/// How a segment shows that its sender is capable of ERN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    /// By bits of the header.
    Bits,
    /// By ECT(1) in the IP header (§V).
    Ect1,
}

/// The state of the sender when a segment leaves.
#[derive(Debug, Clone, Copy)]
pub struct Sending {
    /// Number of the first byte that is not acknowledged.
    pub una: u64,
    /// The number after the last byte of new data in the segment; `None` if it holds no new data.
    pub new_end: Option<u64>,
    /// Congestion window in bytes.
    pub cwnd: u64,
    /// Slow start threshold in bytes.
    pub ssthresh: u64,
    /// Smoothed round trip time; zero before the first sample.
    pub srtt: Span,
}

/// Decides which segments carry ERN and which of them carry a rate.
#[derive(Debug, Clone)]
pub struct RateTeller {
    by: By,
    /// End of the last segment that carried a rate. When it is acknowledged, a round trip is over.
    told: u64,
}

impl RateTeller {
    /// Creates the teller of a connection, whose handshake has agreed on ECN if `ecn` is true. Without ECN no router could answer
    /// a rate, and there is none.
    pub fn of(ecn: bool, config: &TcpConfig) -> Option<Box<Self>> {
        let by = if config.ern_ect1 { By::Ect1 } else { By::Bits };
        (ecn && config.ern).then(|| Box::new(Self { by, told: 0 }))
    }

    /// Writes ERN into a segment with data. In slow start nothing is written, because the flow may end before a mark
    /// reaches it (§II).
    pub fn tell(&mut self, segment: &mut Segment, now: Sending) {
        if segment.len == 0 || now.cwnd < now.ssthresh {
            return;
        }
        let due = now.new_end.filter(|_| now.una >= self.told && now.srtt > Span::ZERO);
        self.told = due.unwrap_or(self.told);
        let bits = self.by == By::Bits;
        if !bits && segment.ecn() == Ecn::Ect0 {
            segment.set_ecn(Ecn::Ect1);
        }
        let rate = due.map(|_| RateNotice::new(Bytes::new(now.cwnd), now.srtt));
        segment.set_explicit_rate(Ern { capable: bits, tells_rate: bits && due.is_some(), rate });
    }
}
