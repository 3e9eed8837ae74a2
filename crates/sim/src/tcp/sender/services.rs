//! What the sender does for controls that measure rates, pace, or send in bursts ([`Needs`](crate::tcp::needs::Needs)).

use super::{Kind, Phase, Sender};
use crate::tcp::needs::Acked;
use penstock_core::cc::{Ack, CongestionControl, RateSample};
use penstock_core::units::{Bytes, Instant, Span};

impl Sender {
    #[cold]
    pub(super) fn rate_sample(&mut self, now: Instant) -> Option<RateSample> {
        let (una, delivered) = (self.una, self.una + self.sacked());
        let acked = Acked { una, delivered, pipe: Bytes::new(self.pipe) };
        self.needs.as_mut()?.sample(acked, self.rtt.min_rtt(), now)
    }

    /// Passes an ACK within recovery to a control that measures rates.
    pub(super) fn measure(&mut self, acked: u64, in_flight: u64, rtt: Option<Span>, now: Instant) {
        if self.requirements().rate {
            let rate = self.rate_sample(now);
            let (acked, in_flight) = (Bytes::new(acked), Bytes::new(in_flight));
            let (srtt, min_rtt, cwnd_limited, marked) = (self.rtt.srtt(), self.rtt.min_rtt(), false, Bytes::ZERO);
            let delivered = Bytes::new(self.una + self.sacked());
            let ack = Ack { now, acked, rtt, srtt, min_rtt, in_flight, cwnd_limited, delivered, marked, rate };
            self.cc.on_recovery_ack(&ack);
        }
    }

    /// True if pacing forbids to send now. Must be called before anything is sent; begins a burst that is due.
    #[cold]
    pub(super) fn hold_back(&mut self, now: Instant) -> bool {
        let Some(needs) = &mut self.needs else { return false };
        let more = self.nxt < self.app_end + u64::from(self.closing);
        if !more && self.phase == Phase::Open && self.pipe < self.cc.cwnd().get() {
            needs.nothing_to_send(Bytes::new(self.pipe));
        }
        if more || self.phase == Phase::Loss {
            if self.cc.next_burst() <= now {
                self.cc.on_burst(now, Bytes::new(self.pipe));
            }
            needs.wake = self.cc.next_burst();
        }
        needs.held(now)
    }

    #[cold]
    pub(super) fn note_sent(&mut self, start: u64, end: u64, kind: Kind, now: Instant) {
        let Some(needs) = &mut self.needs else { return };
        needs.lost += if kind == Kind::Again { end - start } else { 0 };
        needs.sent(end, Bytes::new(self.pipe), now);
        needs.paced(now, end - start, self.cc.pacing_rate());
    }
}
