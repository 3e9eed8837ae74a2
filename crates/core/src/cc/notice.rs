//! What an endpoint tells controls that keep a model of the path segment by segment ([`Requirements::segments`]):
//! the rate samples, the lost segments and the other events of draft-ietf-ccwg-bbr-06 §4.1 and §5.2.
//!
//! [`Requirements::segments`]: super::Requirements::segments

use super::Ack;
use crate::units::{Bytes, Instant, Span};

/// An event of one of the segments of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// The first data is about to be sent (§5.2.1).
    Begin(Begin),
    /// An ACK delivered data, cumulatively or selectively; after the losses that it revealed (§5.2.3).
    Delivered(Delivered),
    /// A segment is marked as lost (§5.2.4); after [`CongestionControl::on_loss`](super::CongestionControl::on_loss) or
    /// [`on_rto`](super::CongestionControl::on_rto), if it begins a recovery.
    Lost(LostSegment),
    /// Data is about to be sent, nothing is in flight and the application had too little to send (§5.4.1).
    Restart(Instant),
    /// The recovery was needless: what was sent again had arrived (§5.2.5).
    Spurious(Instant),
}

/// What is known when the first data is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Begin {
    /// When the first data is sent.
    pub now: Instant,
    /// C.srtt, the round trip time of the handshake; zero if it gave none.
    pub srtt: Span,
    /// C.has_selective_acks: both ends use SACK.
    pub sack: bool,
}

/// The rate sample of an ACK (§2.3, §4.1.2.1.3). The *newest* segment is the one sent last among those that this ACK
/// acknowledges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivered {
    /// When the ACK arrived.
    pub now: Instant,
    /// RS.rtt: the round trip time of the newest segment; `None` if it is ambiguous.
    pub rtt: Option<Span>,
    /// C.delivered: bytes delivered since the connection began, with this ACK.
    pub delivered: Bytes,
    /// RS.newly_acked: bytes that this ACK reports.
    pub newly_acked: Bytes,
    /// RS.prior_delivered: C.delivered when the newest segment was sent.
    pub prior_delivered: Bytes,
    /// RS.interval; zero if it is no reliable sample, because it is shorter than the smallest round trip time.
    pub interval: Span,
    /// RS.is_app_limited: the application had too little to send when the newest segment was sent.
    pub app_limited: bool,
    /// RS.tx_in_flight: C.inflight when the newest segment was sent, with this segment.
    pub tx_in_flight: Bytes,
    /// RS.lost: bytes marked as lost since the newest segment was sent.
    pub lost: Bytes,
    /// C.inflight: bytes in flight after this ACK.
    pub in_flight: Bytes,
    /// Bytes in flight before this ACK.
    pub prior_in_flight: Bytes,
    /// When the pace lets the next segment leave; in the past if it may leave now.
    pub departs: Instant,
    /// C.is_cwnd_limited: the window was in full use at some time of the last round trip.
    pub cwnd_limited: bool,
}

impl Delivered {
    /// RS.delivered: bytes delivered since the newest segment was sent.
    #[inline]
    pub fn since_sent(&self) -> Bytes {
        self.delivered.saturating_sub(self.prior_delivered)
    }

    /// RS.delivery_rate in bytes per second; zero without a reliable sample.
    #[inline]
    pub fn rate(&self) -> f64 {
        if self.interval == Span::ZERO { 0.0 } else { self.since_sent().as_f64() / self.interval.as_secs_f64() }
    }

    /// The sample of an endpoint that does not track segments: what was in flight before the ACK stands for what was in
    /// flight when the newest segment was sent, and `lost` is what was lost since the sample before.
    pub fn of(ack: &Ack, lost: Bytes) -> Option<Self> {
        let sample = ack.rate?;
        Some(Self {
            now: ack.now,
            rtt: ack.rtt,
            delivered: ack.delivered,
            newly_acked: ack.acked,
            prior_delivered: sample.prior_delivered,
            interval: sample.interval,
            app_limited: sample.app_limited,
            tx_in_flight: sample.in_flight + ack.acked,
            lost,
            in_flight: sample.in_flight,
            prior_in_flight: sample.in_flight + ack.acked,
            departs: ack.now,
            cwnd_limited: ack.cwnd_limited,
        })
    }
}

/// A segment that is marked as lost, with its state at the time when it was sent (§4.1.2.1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostSegment {
    /// When the loss was detected.
    pub now: Instant,
    /// P.size in bytes.
    pub size: Bytes,
    /// C.delivered now.
    pub delivered: Bytes,
    /// P.delivered: C.delivered when it was sent.
    pub prior_delivered: Bytes,
    /// P.tx_in_flight: C.inflight when it was sent, with this segment.
    pub tx_in_flight: Bytes,
    /// C.lost - P.lost: bytes marked as lost since it was sent, with this segment.
    pub lost: Bytes,
    /// P.is_app_limited: the application had too little to send when it was sent.
    pub app_limited: bool,
    /// True if it does not follow the segment that was lost before it: it begins another range of lost data.
    pub apart: bool,
}
