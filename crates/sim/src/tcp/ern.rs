//! Explicit rate notification: the sender tells routers once per round trip how fast it sends (document 003 §III.A).

use super::config::TcpConfig;
use crate::segment::Segment;
use penstock_core::packet::{Ecn, Ern, Packet, RateNotice};
use penstock_core::units::{Bytes, Span};

/// What announces the option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    /// Nothing is told.
    Nothing,
    /// Header bits.
    Bits,
    /// ECT(1) (§V).
    Ect1,
}

/// What is known when a segment leaves.
#[derive(Debug, Clone, Copy)]
pub struct Sending {
    /// First byte not acknowledged.
    pub una: u64,
    /// Past the last byte of new data in the segment; `None` if it holds none.
    pub new_end: Option<u64>,
    /// Congestion window.
    pub cwnd: u64,
    /// Slow start threshold.
    pub ssthresh: u64,
    /// Smoothed round trip time; zero before the first sample.
    pub srtt: Span,
}

/// Decides which segments tell what.
#[derive(Debug, Clone)]
pub struct RateTeller {
    by: By,
    /// The end of the segment that told last: a round trip is over when it is acknowledged.
    told: u64,
}

impl RateTeller {
    /// Tells nothing until [`RateTeller::agree`].
    pub fn new() -> Self {
        Self { by: By::Nothing, told: 0 }
    }

    /// The handshake agreed on ECN, or not. Without it no router could answer a rate.
    pub fn agree(&mut self, ecn: bool, config: &TcpConfig) {
        self.by = match (ecn && config.ern, config.ern_ect1) {
            (false, _) => By::Nothing,
            (true, false) => By::Bits,
            (true, true) => By::Ect1,
        };
    }

    /// True when segments are to be shown to [`RateTeller::tell`].
    #[inline]
    pub fn is_active(&self) -> bool {
        self.by != By::Nothing
    }

    /// Writes what is told into a segment with data. In slow start that is nothing: the flow may end before it hears of
    /// a mark (§II).
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
