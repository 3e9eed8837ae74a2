//! What the sender does for controls that measure rates, pace, or send in bursts ([`Needs`](crate::tcp::needs::Needs)).

use super::{Kind, Phase, Sender};
use crate::segment::Segment;
use crate::tcp::ledger::{Arrival, Ledger, Sending};
use crate::tcp::needs::{Acked, Pace};
use penstock_core::cc::{Ack, Begin, CongestionControl, Loss, Notice, RateSample};
use penstock_core::units::{Bytes, Instant, Span};
use std::ops::Range;

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
        let cwnd = self.cc.cwnd().get();
        if !more && self.phase == Phase::Open && self.pipe < cwnd {
            needs.nothing_to_send(Bytes::new(self.pipe));
        }
        if let Some(ledger) = &mut needs.ledger {
            if self.pipe + self.mss > cwnd {
                ledger.window_is_full(self.pipe);
            } else if !more && (self.phase == Phase::Open || !self.board.any_lost(self.una)) {
                ledger.nothing_to_send(self.pipe);
            }
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
        // What is in flight is a guess: after a timeout it is nothing, and the ACK of the first retransmission, which covers
        // all that had arrived before, would be a rate far above that of the path. Linux asks what is outstanding
        // (`tcp_rate_skb_sent`), the draft of BBRv3 what is in flight.
        let is_first =
            if self.kernel { start == self.una && matches!(kind, Kind::New | Kind::Probe) } else { self.pipe == 0 };
        if is_first {
            needs.restart_clock(now);
        }
        if self.tells_segments() {
            self.note_segment(start..end, kind, now);
        }
        let mss = self.segment_size();
        let Some(needs) = &mut self.needs else { return };
        needs.lost += if kind == Kind::Again { end - start } else { 0 };
        needs.sent(end, now);
        if self.kernel {
            let room = self.cc.cwnd().get().saturating_sub(self.pipe) / self.mss;
            let room = room.min((self.cc.cwnd().get() / (2 * self.mss)).max(1));
            let edge = self.peer.edge(self.una);
            let usable = match kind {
                Kind::Again if self.emulated.is_some() && self.phase == Phase::Recovery => end - start,
                Kind::Again => self.board.lost_run(start),
                // What the peer's window leaves beyond whole segments goes along if no short segment is in flight.
                _ if self.short_end <= self.una => edge.max(end) - start,
                _ => (edge.max(end) - start) / mss * mss,
            };
            let pace = Pace { rate: self.cc.pacing_rate(), min_rtt: self.rtt.min_rtt(), mss, room, usable };
            needs.paced_in_groups(now, start..end, &pace);
        } else {
            needs.paced(now, end - start, self.cc.pacing_rate());
        }
    }

    /// True if the control requires the fate of each segment.
    #[inline]
    pub(super) fn tells_segments(&self) -> bool {
        self.needs.as_ref().is_some_and(|needs| needs.ledger.is_some())
    }

    #[inline]
    pub(super) fn ledger(&mut self) -> Option<&mut Ledger> {
        self.needs.as_mut()?.ledger.as_deref_mut()
    }

    /// Records a segment that leaves, for a control that requires segments (OnTransmit of draft-ietf-ccwg-bbr §5.2.2).
    fn note_segment(&mut self, bytes: Range<u64>, kind: Kind, now: Instant) {
        let (srtt, sack, pipe) = (self.rtt.srtt(), self.sack, self.pipe);
        let Some(ledger) = self.ledger() else { return };
        let (begins, restarts) = (ledger.begins(), ledger.restarts(pipe));
        let why = match kind {
            Kind::New | Kind::Probe => Sending::New,
            Kind::Again => Sending::Again,
            Kind::Spare => Sending::Spare,
        };
        ledger.sent(bytes, why, pipe, now);
        if begins {
            self.cc.on_notice(&Notice::Begin(Begin { now, srtt, sack }));
        } else if restarts {
            self.cc.on_notice(&Notice::Restart(now));
        }
        self.tell_losses();
    }

    /// Takes the bytes of a SACK block that were not SACKed before, segment by segment.
    #[cold]
    pub(super) fn note_sacked(&mut self, block: Range<u64>, now: Instant) {
        let Range { start, end } = block;
        let mut from = start;
        while from < end {
            let (gap, resume) = self.board.sacked_gap(from);
            let until = resume.unwrap_or(u64::MAX).min(end);
            if gap < until
                && let Some(ledger) = self.ledger()
            {
                ledger.sacked(gap..until, now);
            }
            from = until.max(gap).max(from + 1);
        }
    }

    /// Tells the control what became of segments, after an ACK was handled: the losses it revealed, a recovery that was
    /// needless, and the sample of what it delivered.
    #[cold]
    pub(super) fn tell_segments(&mut self, segment: &Segment, advanced: bool, prior_in_flight: u64, now: Instant) {
        self.note_losses(now);
        self.tell_losses();
        let echo = segment.has_timestamps().then_some(segment.tsecr);
        let departs = self.needs.as_ref().map_or(now, |needs| needs.departs());
        let (min_rtt, in_flight) = (self.rtt.min_rtt(), self.pipe);
        let kernel = self.kernel;
        let arrival = Arrival { now, echo, min_rtt, in_flight, prior_in_flight, departs, kernel };
        let twice = self.reported_twice(segment, self.una).is_some();
        let Some(ledger) = self.ledger() else { return };
        if ledger.was_needless(&arrival, advanced, twice) && !(self.kernel && self.emulated.is_some()) {
            self.undo(now);
        }
        let in_flight = self.pipe;
        if let Some(sample) = self.ledger().and_then(|ledger| ledger.sample(&Arrival { in_flight, ..arrival })) {
            self.cc.on_notice(&Notice::Delivered(sample));
        }
    }

    pub(super) fn hold_nothing_for_lost(&mut self) {
        self.forced = false;
        self.board.nothing_is_lost(self.una);
        let una = self.una;
        if let Some(ledger) = self.ledger() {
            ledger.nothing_is_lost(una);
        }
        self.count_pipe();
    }

    /// Ends a recovery that was needless: nothing is lost, and the control takes back what it did.
    pub(super) fn undo(&mut self, now: Instant) {
        if self.phase != Phase::Open {
            self.phase = Phase::Open;
            self.dupacks = 0;
            if self.sack || self.kernel && self.emulated.is_some() {
                self.recover = self.una - 1; // what was sent before the end of this episode may be lost all the same
            }
            self.hold_nothing_for_lost();
            if self.tells_segments() {
                self.cc.on_recovered(now);
            }
        }
        self.cc.on_notice(&Notice::Spurious(now));
    }

    /// Records which segments the scoreboard holds for lost.
    pub(super) fn note_losses(&mut self, now: Instant) {
        let edge = self.board.lost_edge();
        // Without SACK the first segment is lost when its retransmission is due (`tcp_newreno_mark_lost`).
        let first = self.una..self.una + self.mss;
        let due = self.emulated.is_some() && self.forced && self.phase == Phase::Recovery;
        let Some(ledger) = self.needs.as_mut().and_then(|needs| needs.ledger.as_deref_mut()) else { return };
        if due {
            ledger.mark_lost(first, now);
        }
        match &mut self.board.rack {
            Some(rack) => {
                while let Some((start, end)) = rack.next_declared() {
                    ledger.mark_lost(start..end, now);
                }
            }
            None => ledger.lost_below(edge, now),
        }
    }

    /// Tells the control of the losses that it does not know.
    pub(super) fn tell_losses(&mut self) {
        while let Some(lost) = self.ledger().and_then(Ledger::next_found) {
            self.cc.on_notice(&Notice::Lost(lost));
        }
    }

    /// Tells the control of a timeout and of the segments of the flight that are lost with it. In the kernel their number stands
    /// when the control hears of the timeout (`tcp_enter_loss`); the draft of BBRv3 begins with the timeout.
    #[cold]
    pub(super) fn tell_timeout(&mut self, now: Instant) {
        let timeout = Loss { now, in_flight: Bytes::new(self.pipe), ecn: false };
        if self.kernel {
            self.tell_lost_flight(now);
            self.cc.on_rto(&timeout);
        } else {
            self.cc.on_rto(&timeout);
            self.tell_lost_flight(now);
        }
    }

    fn tell_lost_flight(&mut self, now: Instant) {
        let (una, nxt, rack) = (self.una, self.nxt, self.board.rack.is_some());
        if let Some(ledger) = self.ledger() {
            ledger.recovery_begins();
            if !rack {
                ledger.mark_lost(una..nxt, now);
            }
        }
        self.note_losses(now);
        self.tell_losses();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::TcpConfig;
    use penstock_core::cc::AnyControlConfig;

    /// A sender with BBRv3, which requires segments, and without RACK.
    fn sender() -> Sender {
        let cc = AnyControlConfig::default_of("bbr3").expect("there is one");
        Sender::new(&TcpConfig { cc, rack: false, ..TcpConfig::default() }, 1)
    }

    /// draft-ietf-ccwg-bbr-06 §4.1.2.4: the application limits who has nothing to send, room in the window, and nothing lost that
    /// waits for its retransmission.
    #[test]
    fn the_application_limits_who_has_nothing_to_send_or_to_send_again() {
        for (more, phase, lost, limited) in [
            (false, Phase::Open, false, true),
            (true, Phase::Open, false, false),
            (false, Phase::Recovery, false, true),
            (false, Phase::Recovery, true, false),
        ] {
            let mut sender = sender();
            sender.phase = phase;
            sender.app_end += u64::from(more) * 10_000;
            if lost {
                sender.nxt += sender.mss;
                sender.board.all_lost(sender.una..sender.nxt);
            }
            sender.hold_back(Instant::ZERO);
            let ledger = sender.ledger().expect("a ledger");
            assert_eq!(ledger.restarts(0), limited, "more: {more}, {phase:?}, lost: {lost}");
        }
    }

    #[test]
    fn a_loss_is_told_once() {
        let mut sender = sender();
        let ledger = sender.ledger().expect("a ledger");
        ledger.sent(0..1000, Sending::New, 0, Instant::ZERO);
        ledger.mark_lost(0..1000, Instant::ZERO);
        sender.tell_losses();
        assert_eq!(sender.ledger().and_then(Ledger::next_found), None);
    }
}
