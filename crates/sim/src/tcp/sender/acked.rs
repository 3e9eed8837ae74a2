//! What an ACK does to the sender besides recovery: data leaves the flight, the window grows, duplicates are counted.

use super::{Phase, Sender, TcpConfig};
use crate::segment::Segment;
use penstock_core::cc::{Ack, CongestionControl};
use penstock_core::units::{Bytes, Instant, Span};

/// What an ACK of new data says.
#[derive(Debug, Clone, Copy)]
struct Advance {
    ack: u64,
    /// Bytes by which the acknowledgment moved, and bytes that it newly acknowledges or SACKs.
    acked: u64,
    delivered: u64,
    /// Bytes outstanding before it.
    in_flight: u64,
    rtt: Option<Span>,
    ece: bool,
    /// What it covers begins with a segment that was never sent again; only without SACK.
    original: bool,
    /// The timestamp that it echoes.
    echo: Option<u32>,
}

impl Sender {
    /// Handles an ACK of new data: window, timer, round trip time sample, and the end of recovery.
    pub(super) fn advance(
        &mut self,
        segment: &Segment,
        ack: u64,
        sacked: u64,
        config: &TcpConfig,
        now: Instant,
    ) -> Option<Span> {
        let in_flight = self.flight();
        let acked = ack - self.una;
        let already = self.already_counted(acked);
        let original = self.emulated.as_ref().is_some_and(|emulated| emulated.is_original(self.una));
        let delivered = acked + sacked - self.board.advance(ack) - already;
        self.hear(segment, delivered);
        self.una = ack;
        self.nxt = self.nxt.max(ack);
        self.probed = false;
        if let Some(ledger) = self.ledger() {
            ledger.acked(ack, now);
            ledger.uncounted(already);
        }
        self.count_pipe();
        let mut sample = self.rtt_sample(segment, ack, now);
        let timed = self.kernel && !segment.has_timestamps() && self.board.rack.is_some();
        if let Some((first, last)) = self.board.rack.as_ref().filter(|_| timed).and_then(|rack| rack.acked()) {
            // The kernel knows when each segment was sent: the first one makes the timeout, the control hears of the last one.
            self.rtt.sample_of(now.since(first), (self.una, self.nxt), now);
            sample = Some(now.since(last));
        } else if let Some(rtt) = sample {
            self.rtt.sample_of(rtt, (self.una, self.nxt), now);
        }
        self.rtt.reset_backoff();
        let partial = self.phase == Phase::Recovery && ack < self.recover && !self.sack;
        if !partial || self.first_partial || self.emulated.is_some() {
            self.rto_at = if self.flight() > 0 { now + self.rtt.rto() } else { Instant::MAX };
        }
        self.schedule_probe(now);
        let ece = self.echoed;
        let echo = segment.has_timestamps().then_some(segment.tsecr);
        self.follow(&Advance { ack, acked, delivered, in_flight, rtt: sample, ece, original, echo }, config, now);
        sample
    }

    /// Does what the state of loss recovery asks for when new data is acknowledged.
    #[inline]
    fn follow(&mut self, advance: &Advance, config: &TcpConfig, now: Instant) {
        let &Advance { acked, delivered, in_flight, rtt: sample, ece, .. } = advance;
        match self.phase {
            Phase::Cwr => {
                self.in_cwr(acked, delivered, sample, ece, now);
                self.detect_loss(delivered, config, now);
            }
            Phase::Open => {
                self.dupacks = 0;
                self.forget_emulated();
                self.forget_first_again();
                let echo = self.ecn && ece;
                // RFC 3168 §6.1.2: an ACK with ECE never opens the window. A control that counts marks reacts to them
                // itself.
                if !echo || self.requirements().accurate_ecn {
                    self.grow(self.counted(advance), in_flight, sample, echo, now);
                }
                self.detect_loss(delivered, config, now);
            }
            Phase::Recovery => self.follow_recovery(advance, config, now),
            Phase::Loss => self.follow_loss(advance, config, now),
        }
    }

    /// Returns the bytes that let the window grow: in the kernel's form what it calls `acked_sacked`.
    fn counted(&self, advance: &Advance) -> u64 {
        if self.kernel { advance.delivered } else { advance.acked }
    }

    fn follow_recovery(&mut self, advance: &Advance, config: &TcpConfig, now: Instant) {
        let &Advance { ack, acked, delivered, in_flight, rtt: sample, .. } = advance;
        let delayed = self.shows_needless(advance.echo);
        if delayed && ack < self.recover {
            self.on_needless(acked, delivered, config, now);
            if self.phase == Phase::Open {
                self.grow(self.counted(advance), in_flight, sample, false, now);
                return;
            }
        }
        let ends = ack >= self.recover && !self.holds_its_state();
        if !ends || !self.kernel {
            self.measure(acked, in_flight, sample, now);
        }
        if self.holds_its_state() {
            self.forget_emulated();
            self.forget_first_again();
            self.count_pipe();
            if delayed {
                self.take_back_in_state(now);
            }
            self.on_emulated_ack(0, delivered, config);
        } else if ends {
            if delayed {
                self.take_back(now);
            }
            self.leave_recovery(now);
            self.look_again(delivered, config, now);
            // The kernel's control hears of an ACK after the state has changed: the last one of a recovery opens the window
            // again, unless another recovery begins at once (`tcp_cong_control`).
            match (self.kernel, self.phase) {
                (true, Phase::Open) => self.grow(delivered, in_flight, sample, false, now),
                (true, _) => self.measure(acked, in_flight, sample, now),
                (false, _) => {}
            }
        } else if !delayed {
            self.on_partial(acked, delivered, config, now);
        }
    }

    fn follow_loss(&mut self, advance: &Advance, config: &TcpConfig, now: Instant) {
        let &Advance { ack, delivered, in_flight, rtt: sample, original, .. } = advance;
        let counted = self.counted(advance);
        if self.shows_needless(advance.echo) {
            self.take_back_in_state(now);
            self.grow(counted, in_flight, sample, false, now);
            return;
        }
        if self.timeout_was_needless(true, original) {
            self.undo(now);
            self.grow(counted, in_flight, sample, false, now);
            self.look_again(delivered, config, now);
            return;
        }
        self.grow(counted, in_flight, sample, false, now);
        if self.emulated.is_some() {
            self.forget_emulated();
            self.count_pipe();
        }
        if ack >= self.recover && !self.holds_its_state() {
            self.phase = Phase::Open;
            self.dupacks = 0;
            self.board.recovered();
            if self.tells_segments() {
                self.cc.on_recovered(now);
            }
            self.look_again(delivered, config, now);
        } else {
            self.recover_from_loss(delivered, config, now);
        }
    }

    fn rtt_sample(&mut self, segment: &Segment, ack: u64, now: Instant) -> Option<Span> {
        if segment.has_timestamps() {
            let elapsed = crate::tcp::sequence::timestamp(now).wrapping_sub(segment.tsecr);
            return Some(Span::from_micros(u64::from(elapsed)));
        }
        let timed = self.timed.as_mut().filter(|timed| timed.0 > 0 && ack >= timed.0)?;
        timed.0 = 0;
        Some(now.since(timed.1))
    }

    #[inline]
    pub(super) fn grow(&mut self, acked: u64, in_flight: u64, rtt: Option<Span>, echo: bool, now: Instant) {
        if self.tells_segments() {
            return; // the control learns it segment by segment
        }
        let cwnd = self.cc.cwnd().get();
        let slow_start = cwnd < self.cc.ssthresh().get();
        let cwnd_limited = self.usage.lets_grow(cwnd, slow_start);
        let (acked, in_flight) = (Bytes::new(acked), Bytes::new(in_flight));
        let marked = match &mut self.accurate {
            Some(marks) => Bytes::new(marks.marked(acked.get())),
            None if echo => acked,
            None => Bytes::ZERO,
        };
        let rate = if self.needs.is_some() { self.rate_sample(now) } else { None };
        let (srtt, min_rtt) = (self.rtt.srtt(), self.rtt.min_rtt());
        let delivered = Bytes::new(self.una + self.sacked());
        self.cc.on_ack(&Ack { now, acked, rtt, srtt, min_rtt, in_flight, cwnd_limited, delivered, marked, rate });
    }

    pub(super) fn on_duplicate(&mut self, sacked: u64, config: &TcpConfig, now: Instant) {
        if self.holds_its_state() {
            return;
        }
        if self.kernel {
            self.measure_sacked(now);
        }
        self.dupacks += 1;
        let sacked = sacked + self.count_duplicate();
        let needless = self.phase == Phase::Loss && self.timeout_was_needless(false, false);
        match self.phase {
            Phase::Open => self.detect_loss(sacked, config, now),
            Phase::Cwr => {
                self.in_cwr(0, sacked, None, false, now);
                self.detect_loss(sacked, config, now);
            }
            Phase::Recovery if self.sack || self.emulated.is_some() => {
                self.measure(sacked, self.flight(), None, now);
                self.on_partial(0, sacked, config, now);
            }
            Phase::Recovery => self.recovery_window += self.mss,
            Phase::Loss if needless => {
                self.undo(now);
                self.look_again(sacked, config, now);
            }
            Phase::Loss => self.recover_from_loss(sacked, config, now),
        }
    }
}
