//! Detection of losses and recovery: fast recovery, ECN, timeouts (RFC 6675, RFC 6582, RFC 3168, RFC 6298, RFC 8985).

use super::{DUP_THRESH, Delivery, Frto, Kind, Next, Phase, Prr, Sender, TcpConfig};
use crate::segment::Segment;
use crate::tcp::prr::Bounds;
use crate::tcp::rack::Arrival;
use crate::tcp::sequence;
use penstock_core::cc::{CongestionControl, Loss};
use penstock_core::units::{Bytes, Instant, Span};

impl Sender {
    fn arrival(&self, now: Instant, echo: Option<u32>) -> Arrival {
        let recovering = self.phase != Phase::Open;
        Arrival { now, echo, srtt: self.rtt.srtt(), min_rtt: self.rtt.min_rtt(), recovering }
    }

    /// Passes an ACK to RACK, before any other use of the ACK (RFC 8985 §6.2 and §7.4.2).
    #[cold]
    pub(super) fn on_rack_ack(&mut self, segment: &Segment, ack: u64, now: Instant) {
        let arrival = self.arrival(now, segment.has_timestamps().then_some(segment.tsecr));
        let twice = self.reported_twice(segment, ack);
        let Some(rack) = &mut self.board.rack else { return };
        rack.advance(ack, &arrival);
        // The block that came last is the first one. In that order, what one ACK reports would seem to have overtaken
        // each other; RFC 8985 §6.2 step 3 and `tcp_sacktag_write_queue` take segments in the order of their numbers.
        let (una, nxt) = (self.una, self.nxt);
        let block = |&(s, e): &(u32, u32)| (sequence::unwrap(s, una).max(ack), sequence::unwrap(e, una).min(nxt));
        let mut from = ack;
        while let Some((start, end)) =
            segment.sacks().iter().map(block).filter(|(start, end)| *start >= from && start < end).min()
        {
            rack.sack(start..end, &arrival);
            from = end;
        }
        rack.note_overtaken();
        rack.note_twice(ack..self.nxt, twice.is_some());
        rack.detect(&arrival);
        let duplicate = ack == self.una && segment.sequence_len() == 0 && segment.sacks().is_empty();
        if rack.probe_repaired(ack, twice, duplicate) && self.phase == Phase::Open && self.una >= self.reduced_at {
            // The probe has repaired the loss, but a loss is a sign of congestion.
            self.reduced_at = self.nxt;
            self.reduce(false, now);
            self.cc.on_recovered(now);
        }
    }

    /// Returns the end of a D-SACK, which is the first block if it is acknowledged or lies within the second one (RFC
    /// 2883 §4).
    pub(super) fn reported_twice(&self, segment: &Segment, ack: u64) -> Option<u64> {
        let mut blocks =
            segment.sacks().iter().map(|(s, e)| (sequence::unwrap(*s, self.una), sequence::unwrap(*e, self.una)));
        let (start, end) = blocks.next()?;
        let within = blocks.next().is_some_and(|(s, e)| s <= start && end <= e);
        (end <= ack || within).then_some(end)
    }

    /// Returns when [`Sender::on_rack_timer`] must be called; `Instant::MAX` means never.
    #[inline]
    pub fn rack_at(&self) -> Instant {
        self.board.rack.as_ref().map_or(Instant::MAX, |rack| rack.deadline())
    }

    /// Handles the timers of RACK-TLP: segments count as lost now, or a probe is due.
    pub fn on_rack_timer(&mut self, config: &TcpConfig, now: Instant) {
        let arrival = self.arrival(now, None);
        let Some(rack) = &mut self.board.rack else { return };
        if rack.probe_timer_fires(now) {
            self.rto_at = now + self.rtt.rto();
        }
        rack.detect(&arrival);
        self.count_pipe();
        match self.phase {
            Phase::Open | Phase::Cwr => self.detect_loss(0, config, now),
            Phase::Recovery => self.on_partial(0, 0, config, now),
            Phase::Loss => {}
        }
        if self.tells_segments() {
            self.note_losses(now);
            self.tell_losses();
        }
    }

    /// Sets the timer of the tail loss probe (RFC 8985 §7.2).
    #[inline]
    pub(super) fn schedule_probe(&mut self, now: Instant) {
        let (flight, srtt) = (self.flight(), self.rtt.srtt());
        if let Some(rack) = &mut self.board.rack
            && matches!(self.phase, Phase::Open | Phase::Cwr)
        {
            rack.schedule_probe(flight, self.mss, srtt, self.rto_at, now);
        }
    }

    /// Returns the tail loss probe if it is due (RFC 8985 §7.3). A probe may exceed the congestion window, but not the
    /// peer's window.
    #[cold]
    pub(super) fn tail_probe(&mut self, now: Instant) -> Option<Next> {
        let edge = self.edge();
        let rack = self.board.rack.as_mut()?;
        if !rack.take_due_probe() || !matches!(self.phase, Phase::Open | Phase::Cwr) || self.nxt == self.una {
            return None;
        }
        let left = (self.app_end - self.nxt.min(self.app_end)).min(self.mss);
        if left > 0 && self.nxt + left <= edge {
            let end = self.nxt + left;
            rack.probed_with_new_data(end);
            return Some(Next::new((self.nxt, end), Kind::New));
        }
        rack.probe_last(now).map(|range| Next::new(range, Kind::Spare))
    }

    /// Looks for losses beyond the end of a recovery that is over, which RACK may know.
    pub(super) fn look_again(&mut self, delivered: u64, config: &TcpConfig, now: Instant) {
        if self.board.rack.is_some() {
            self.detect_loss(delivered, config, now);
        }
    }

    /// Enters recovery if a loss is detected (RFC 6675 §5 (1), (2); RFC 6582 §3.2 step 2).
    pub(super) fn detect_loss(&mut self, delivered: u64, config: &TcpConfig, now: Instant) {
        self.find_losses();
        let counted = match &self.emulated {
            Some(emulated) => emulated.shows_loss(self.mss),
            None => self.board.rack.is_none() && self.dupacks >= DUP_THRESH,
        };
        // What was sent again and has not arrived still counts as lost in the kernel: where it lies beyond the end of a recovery, the
        // next one begins (`tcp_time_to_recover`).
        let marked = self.kernel && self.board.rack.as_ref().is_some_and(|rack| rack.any_marked());
        let lost = self.flight() > 0 && (counted || marked || (self.sack && self.board.any_lost(self.una)));
        // Without SACK, duplicates of the ACK which ended a recovery come from needless retransmissions (RFC 6582 §3.2
        // step 2: the ACK must cover more than `recover`). With SACK such segments would report nothing new.
        if lost && (self.una > self.recover || (self.sack && self.una == self.recover)) {
            self.enter_recovery(delivered, config, now);
        }
    }

    pub(super) fn enter_recovery(&mut self, delivered: u64, config: &TcpConfig, now: Instant) {
        // In CWR the kernel's window shrinks already, and in the state Loss it has reduced for what was lost before.
        let shrinking = self.phase == Phase::Cwr;
        let again = self.kernel && self.phase == Phase::Loss;
        if self.una >= self.reduced_at || again || self.tells_segments() {
            self.reduce(false, now);
        }
        if let Some(ledger) = self.ledger() {
            ledger.recovery_begins();
        }
        self.phase = Phase::Recovery;
        self.board.begin(self.una);
        self.forget_first_again();
        self.set_may_undo(true);
        self.first_partial = true;
        self.stop_timing();
        let delivery = Delivery { bytes: delivered, safe: false };
        if shrinking {
            (self.recover, self.recovery_since, self.forced) = (self.reduced_at, now, true);
            self.count_pipe();
            return;
        }
        // A timer has found the losses: the kernel counts a segment as delivered (`tcp_rack_reo_timeout`).
        let one = self.kernel && delivered == 0;
        self.begin_window(if one { Delivery { bytes: self.mss, ..delivery } } else { delivery }, config, now);
    }

    /// After a timeout, the loss of a retransmission begins a recovery in the kernel (`tcp_fastretrans_alert` with
    /// `FLAG_LOST_RETRANS`).
    pub(super) fn recover_from_loss(&mut self, delivered: u64, config: &TcpConfig, now: Instant) {
        if self.kernel && self.board.rack.as_mut().is_some_and(|rack| rack.take_lost_again().is_some()) {
            self.enter_recovery(delivered, config, now);
        }
    }

    /// Takes the round trip time of the handshake.
    pub fn sample_handshake(&mut self, rtt: Span, now: Instant) {
        self.rtt.sample_of(rtt, (self.una, self.nxt), now);
    }

    /// Takes the round trip time of what a duplicate ACK reports, if it was sent once. If it was sent before the first segment
    /// was sent last, the timer begins again: that segment cannot be here yet (`tcp_clean_rtx_queue`).
    #[cold]
    pub(super) fn measure_sacked(&mut self, now: Instant) {
        let Some(rack) = &mut self.board.rack else { return };
        let Some((sent, head)) = rack.take_first_sacked() else { return };
        self.rtt.sample_of(now.since(sent), (self.una, self.nxt), now);
        if sent < head {
            self.rto_at = now + self.rtt.rto();
        }
    }

    /// Asks F-RTO after an ACK in the state Loss (`tcp_process_loss`): true if something arrived that was sent before the timeout
    /// and never again, so that nothing need be lost. The first ACK that only advances lets two new segments go instead.
    pub(super) fn timeout_was_needless(&mut self, advanced: bool, original: bool) -> bool {
        if self.frto == Frto::Off {
            return false;
        }
        self.frto = Frto::Waits;
        let recover = self.recover;
        if original || self.board.rack.as_mut().is_some_and(|rack| rack.take_original() <= recover) {
            self.frto = Frto::Off;
            return true;
        }
        if self.nxt > self.recover {
            if !advanced || self.sacked() > 0 {
                self.frto = Frto::Off;
            }
        } else if advanced && self.una < self.recover {
            self.recover = self.nxt;
            self.frto = Frto::NewData;
        }
        false
    }

    /// True if F-RTO lets new data go before retransmissions, and there is some.
    pub(super) fn sends_new_data_first(&mut self, config: &TcpConfig, now: Instant) -> bool {
        if self.frto != Frto::NewData || self.nxt > self.recover {
            return self.frto == Frto::NewData;
        }
        let may = self.nxt < self.end() && self.nxt + self.mss <= self.edge() && self.sendable(config, now) > 0;
        if !may {
            self.frto = Frto::Off;
        }
        may
    }

    /// Begins to shrink the window after an ECN echo (`tcp_enter_cwr`).
    fn enter_cwr(&mut self, delivered: u64) {
        self.phase = Phase::Cwr;
        self.prr = Prr::new(self.cc.cwnd().get());
        self.recovery_window = self.reduced_proportionally(Delivery { bytes: delivered, safe: true });
    }

    /// Handles an ACK in CWR, which ends with the first ACK above the flight that was there when it began (`tcp_fastretrans_alert`).
    pub(super) fn in_cwr(&mut self, acked: u64, delivered: u64, rtt: Option<Span>, echo: bool, now: Instant) {
        let in_flight = self.flight() + acked;
        if self.una <= self.reduced_at {
            self.measure(delivered, in_flight, rtt, now);
            if delivered > 0 {
                self.recovery_window = self.reduced_proportionally(Delivery { bytes: delivered, safe: acked > 0 });
            }
            return;
        }
        self.phase = Phase::Open;
        self.dupacks = 0;
        self.cc.on_recovered(now);
        if !echo {
            self.grow(delivered, in_flight, rtt, false, now);
        }
    }

    /// Begins the window of a recovery, whose end is the end of the flight.
    fn begin_window(&mut self, delivery: Delivery, config: &TcpConfig, now: Instant) {
        self.reduced_at = self.nxt;
        self.recover = self.nxt;
        self.recovery_since = now;
        self.forced = true;
        self.count_pipe();
        self.prr = Prr::new(if self.kernel {
            self.cc.cwnd().get() // `prior_cwnd`
        } else {
            (self.flight() + delivery.bytes).saturating_sub(self.sacked())
        });
        self.recovery_window = match (self.sack || self.emulated.is_some(), config.prr) {
            (true, _) if self.requirements().own_recovery => self.pipe + delivery.bytes.max(self.mss),
            (true, true) => self.reduced_proportionally(delivery),
            (true, false) => self.cc.ssthresh().get(),
            (false, _) => self.kept_window() + u64::from(DUP_THRESH) * self.mss,
        };
    }

    /// Returns the window to which a loss reduced the control: its threshold. A control that has none keeps its window: BBR
    /// ignores a mark, and a loss of the same window is not told to it.
    fn kept_window(&self) -> u64 {
        match self.cc.ssthresh() {
            Bytes::MAX => self.cc.cwnd().get(),
            threshold => threshold.get(),
        }
    }

    pub(super) fn reduced_proportionally(&mut self, delivery: Delivery) -> u64 {
        if self.requirements().falls_at_once && self.cc.cwnd() <= self.cc.ssthresh() {
            return self.cc.cwnd().get();
        }
        let bounds = Bounds { pipe: self.pipe, ssthresh: self.cc.ssthresh().get(), mss: self.mss };
        let count = self.prr.send_count(delivery, bounds);
        // Linux counts segments, and rounds up.
        self.pipe + if self.emulated.is_some() || self.kernel { count.next_multiple_of(self.mss) } else { count }
    }

    /// Tells the control of a congestion signal. What is in flight is FlightSize, but no more than the window allows:
    /// what limited transmit has sent beyond it does not count (RFC 5681 §3.2 step 2).
    ///
    /// DIFFERENCE: FlightSize of RFC 5681 includes what has left the network, SACKed or lost, as long as a hole below it
    /// is open. In recovery it grows with every new segment and is no measure of the path; a control that keeps most of
    /// it would not reduce. So it counts up to the window that recovery is heading for. Pinned by
    /// the ladder `a flight full of holes is no measure of the path`.
    pub(super) fn reduce(&mut self, ecn: bool, now: Instant) {
        self.counters.reductions += 1;
        let in_flight = Bytes::new(self.flight_within_window());
        self.cc.on_loss(&Loss { now, in_flight, ecn });
        self.cwr = self.ecn;
    }

    /// Returns FlightSize, at most the congestion window in force.
    fn flight_within_window(&self) -> u64 {
        let window = if self.phase == Phase::Recovery { self.cc.ssthresh() } else { self.cc.cwnd() };
        self.flight().min(window.get())
    }

    /// Handles an ACK within recovery that does not end it, or a timer that finds losses.
    pub(super) fn on_partial(&mut self, acked: u64, delivered: u64, config: &TcpConfig, now: Instant) {
        if self.emulated.is_some() {
            self.on_emulated_ack(acked, delivered, config);
            return;
        }
        if !self.sack {
            // RFC 6582 §3.2 step 3: retransmit the next gap, deflate the window by what was acknowledged, and add back
            // one segment.
            self.forced = true;
            self.first_partial = false;
            let back = if acked >= self.mss { self.mss } else { 0 };
            self.recovery_window = self.recovery_window.saturating_sub(acked).max(self.mss) + back;
            return;
        }
        let found_losses = self.find_losses();
        let delivery = Delivery { bytes: delivered, safe: acked > 0 && !found_losses };
        if self.requirements().own_recovery {
            self.recovery_window = self.cc.cwnd().get();
        } else if self.lost_a_retransmission() {
            self.reduce_again(delivery, config, now);
        } else if config.prr && (delivered > 0 || !self.kernel) {
            // The kernel's window stays where it is if nothing is delivered (`tcp_cwnd_reduction`).
            self.recovery_window = self.reduced_proportionally(delivery);
        }
    }

    /// True if a retransmission is lost that was sent since the window was reduced. Only RACK can tell.
    fn lost_a_retransmission(&mut self) -> bool {
        let since = self.recovery_since;
        self.board.rack.as_mut().is_some_and(|rack| rack.take_lost_again().is_some_and(|sent| sent >= since))
    }

    /// Reduces the window once more: the loss of a retransmission is a second sign of congestion (RFC 5681 §4.3). The
    /// Linux forms of controls do not answer it, as Linux.
    #[cold]
    fn reduce_again(&mut self, delivery: Delivery, config: &TcpConfig, now: Instant) {
        let before = self.cc.ssthresh();
        self.reduce(false, now);
        if self.cc.ssthresh() < before {
            self.begin_window(delivery, config, now);
        } else if config.prr {
            self.recovery_window = self.reduced_proportionally(delivery);
        }
    }

    pub(super) fn leave_recovery(&mut self, now: Instant) {
        self.phase = Phase::Open;
        self.dupacks = 0;
        self.forced = false;
        self.forget_emulated();
        self.board.recovered();
        self.cc.on_recovered(now);
    }

    /// Reduces the window for an ECN echo, at most once per window of data (RFC 3168 §6.1.2). An ACK up to the end of the
    /// flight at the last reduction tells of data sent before it.
    pub(super) fn on_ecn_echo(&mut self, delivered: u64, now: Instant) {
        if self.ecn && self.phase == Phase::Open && self.una > self.reduced_at {
            self.reduced_at = self.nxt;
            self.reduce(true, now);
            if self.kernel && !self.requirements().own_recovery {
                self.enter_cwr(delivered);
            } else {
                self.cc.on_recovered(now);
            }
        }
    }

    /// Handles the retransmission timer (RFC 6298 §5.4 to 5.6). Returns false after too many timeouts in a row.
    pub fn on_rto(&mut self, now: Instant) -> bool {
        self.counters.timeouts += 1;
        let progressed = self.phase != Phase::Loss || self.rtt.backoff() == 0;
        if progressed && !self.tells_segments() && !self.kernel {
            // RFC 5681 §3.1: ssthresh is set once per loss event. A timeout in recovery means that a retransmission was
            // lost, and counts as a second one (§4.3); Linux forms of controls keep their threshold, as Linux.
            let in_flight = Bytes::new(self.flight_within_window());
            self.cc.on_rto(&Loss { now, in_flight, ecn: false });
        }
        let asks =
            self.kernel && (self.phase != Phase::Recovery && self.phase != Phase::Loss || self.rtt.backoff() > 0);
        self.frto = if asks { Frto::Waits } else { Frto::Off };
        if self.phase == Phase::Open || self.una >= self.recover || (self.phase == Phase::Loss && progressed) {
            self.set_may_undo(true);
        }
        self.phase = Phase::Loss;
        self.recover = self.nxt;
        self.reduced_at = self.nxt;
        let arrival = self.arrival(now, None);
        match &mut self.board.rack {
            Some(rack) => {
                rack.take_lost_again();
                rack.timed_out(&arrival);
            }
            None => self.board.all_lost(self.una..self.nxt),
        }
        self.forget_emulated();
        self.forced = false;
        self.count_pipe();
        if self.tells_segments() {
            self.tell_timeout(now);
        } else if progressed && self.kernel {
            self.cc.on_rto(&Loss { now, in_flight: Bytes::new(self.pipe), ecn: false });
        }
        self.dupacks = 0;
        // RACK leaves segments in flight that may still arrive; the first segment must be retransmitted in any case.
        self.forced = self.board.rack.is_some();
        self.stop_timing();
        self.rtt.back_off();
        self.rto_at = now + self.rtt.rto();
        self.rtt.backoff() < 15 // R2 of RFC 9293 §3.8.3, as Linux counts it
    }

    /// True if the retransmission of this number restarts the timer (RFC 6675 §6): where recovery is that of Linux, the time
    /// counts from the last transmission of the first segment (`tcp_xmit_retransmit_queue`). Else a retransmission that is
    /// lost would end in a timeout before what was sent after it can tell.
    #[cold]
    pub(super) fn restarts_timer(&self, start: u64) -> bool {
        start == self.una && (self.board.rack.is_some() || self.emulated.is_some())
    }

    pub(super) fn next_retransmission(&mut self, config: &TcpConfig) -> Option<(u64, u64)> {
        if self.forced && self.emulated.is_some() && self.pipe + self.mss > self.window(config) {
            return None;
        }
        if std::mem::take(&mut self.forced) {
            if let Some(rack) = &mut self.board.rack {
                // A recovery in the kernel can begin with what was sent again already (`tcp_xmit_retransmit_queue`).
                let all_again = self.kernel && self.phase == Phase::Recovery;
                return rack.next_lost().or_else(|| if all_again { None } else { rack.first() });
            }
            let (_, resume) = self.board.sacked_gap(self.una);
            let end = (self.una + self.mss).min(resume.unwrap_or(u64::MAX)).min(self.nxt);
            return Some((self.una, end));
        }
        if self.phase == Phase::Recovery && !self.sack {
            return None;
        }
        let (start, end) = self.board.next_lost(self.mss)?;
        (self.pipe + (end - start) <= self.window(config)).then_some((start, end))
    }

    pub(super) fn next_spare(&mut self, config: &TcpConfig) -> Option<(u64, u64)> {
        if !self.sack || self.pipe + self.mss > self.window(config) {
            return None;
        }
        self.board.next_spare(self.mss, self.nxt)
    }
}
