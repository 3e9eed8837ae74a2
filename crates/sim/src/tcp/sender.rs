//! The sending half: what may be sent when, what is lost, what is sent again.
//!
//! Sources: RFC 5681 (windows), RFC 6675 (SACK recovery), RFC 6937 (PRR), RFC 6582 (NewReno without SACK), RFC 3042
//! (limited transmit), RFC 6298 (timer), RFC 3168 (ECN), RFC 9293 §3.8.6 (flow control, probes, silly windows).
//!
//! State table of loss recovery:
//!
//! | state | enters on | leaves on | window |
//! |---|---|---|---|
//! | Open | start, end of recovery | loss, timeout | cwnd of the control |
//! | Recovery | a lost byte (SACK), three duplicate ACKs | `una` reaches `recover` | PRR or inflation around ssthresh |
//! | Loss | retransmission timeout | `una` reaches `recover` | cwnd of the control, from one segment |
//!
//! Invariant: `una <= nxt`, and nothing beyond the peer's window is sent except one-byte probes.

use super::config::{SillyWindow, TcpConfig};
use super::ern::{RateTeller, Sending};
use super::needs::Needs;
use super::rtt::RttEstimator;
use super::scoreboard::Scoreboard;
use super::sequence;
use crate::segment::Segment;
use penstock_core::cc::{Ack, AnyCc, CongestionControl, Loss, RateSample, Setup, Wants};
use penstock_core::packet::{Ecn, TcpFlags};
use penstock_core::units::{Instant, Span};

const DUP_THRESH: u32 = 3; // RFC 5681 §3.2

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    Recovery,
    Loss,
}

/// Proportional rate reduction (RFC 6937 §3).
#[derive(Debug, Clone, Default)]
struct Prr {
    delivered: u64,
    out: u64,
    recover_fs: u64,
}

impl Prr {
    /// `sndcnt` for this ACK.
    fn send_count(&mut self, delivered: u64, pipe: u64, ssthresh: u64, mss: u64) -> u64 {
        self.delivered += delivered;
        if pipe > ssthresh {
            let target =
                (u128::from(self.delivered) * u128::from(ssthresh)).div_ceil(u128::from(self.recover_fs.max(1)));
            return (target as u64).saturating_sub(self.out);
        }
        // Slow start reduction bound.
        let limit = self.delivered.saturating_sub(self.out).max(delivered) + mss;
        (ssthresh - pipe).min(limit)
    }
}

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

/// State of the sending half.
#[derive(Debug, Clone)]
pub struct Sender {
    pub(super) cc: AnyCc,
    pub(super) rtt: RttEstimator,
    pub(super) counters: Counters,
    mss: u64,
    una: u64,
    nxt: u64,
    /// Past the last byte the application gave.
    app_end: u64,
    closing: bool,
    // The peer's window.
    edge: u64,
    max_window: u64,
    window_seq: u64,
    pub(super) scale: u8,
    // Loss recovery.
    phase: Phase,
    board: Scoreboard,
    /// Bytes thought to be in the network.
    pipe: u64,
    recover: u64,
    recovery_window: u64,
    prr: Prr,
    dupacks: u32,
    forced: bool,
    first_partial: bool,
    // Timers.
    /// Retransmission timer; `Instant::MAX` is never, here and below.
    pub(super) rto_at: Instant,
    pub(super) persist_at: Instant,
    probe_due: bool,
    /// A one-byte probe beyond the window is out; its ACK may cover that byte.
    probed: bool,
    last_sent: Instant,
    /// The end of the one timed segment, or 0, and when it was sent; only without timestamps.
    timed: (u64, Instant),
    // ECN.
    pub(super) ecn: bool,
    pub(super) ern: RateTeller,
    cwr: bool,
    reduced_at: u64,
    /// Past the last byte of the newest short segment (Minshall).
    short_end: u64,
    pub(super) sack: bool,
    /// For controls that pace, measure rates, send in bursts or want every mark.
    pub(super) needs: Option<Box<Needs>>,
}

/// Why a segment is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// New data.
    New,
    /// It was lost.
    Again,
    /// It may have been lost (NextSeg rules 3 and 4); it does not count as sent again.
    Spare,
    /// One byte beyond the peer's window.
    Probe,
}

/// A range to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Next {
    start: u64,
    end: u64,
    kind: Kind,
}

/// The control of a sender with segments of `mss`.
fn control(config: &TcpConfig, mss: u64) -> AnyCc {
    let setup = Setup { mss, initial_window: mss * u64::from(config.initial_window), hystart: config.hystart };
    let headers = if config.timestamps { 52 } else { 40 }; // IPv4 20, TCP 20, timestamps 12
    let cc = AnyCc::new(&config.cc, &setup).expect("the configuration was validated");
    cc.with_budget(&setup, config.c2ml, headers)
}

impl Sender {
    /// A sender whose SYN has number `iss`; nothing is in flight.
    pub fn new(config: &TcpConfig, iss: u32) -> Self {
        let first = sequence::initial(iss) + 1;
        let mss = config.mss.get();
        let cc = control(config, mss);
        let wants = cc.wants();
        Self {
            needs: (wants != Wants::default()).then(|| Box::new(Needs::new(wants, first))),
            cc,
            rtt: RttEstimator::new(config.min_rto, config.rto_granularity),
            counters: Counters::default(),
            mss,
            una: first,
            nxt: first,
            app_end: first,
            closing: false,
            edge: first,
            max_window: 0,
            window_seq: 0,
            scale: 0,
            phase: Phase::Open,
            board: Scoreboard::default(),
            pipe: 0,
            recover: first,
            recovery_window: 0,
            prr: Prr::default(),
            dupacks: 0,
            forced: false,
            first_partial: false,
            rto_at: Instant::MAX,
            persist_at: Instant::MAX,
            probe_due: false,
            probed: false,
            last_sent: Instant::ZERO,
            timed: (0, Instant::ZERO),
            ecn: false,
            ern: RateTeller::new(),
            cwr: false,
            reduced_at: first,
            short_end: first,
            sack: config.sack,
        }
    }

    /// The handshake agreed on a smaller segment size.
    pub fn limit_mss(&mut self, peer: u64, config: &TcpConfig) {
        if peer < self.mss {
            self.mss = peer;
            let budget = self.cc.cooperation().and_then(|cc| cc.budget());
            self.cc = control(config, peer);
            if let Some(cc) = self.cc.cooperation() {
                cc.set_budget(budget);
            }
        }
    }

    /// Segment size in force.
    pub fn mss(&self) -> u64 {
        self.mss
    }

    /// The application gives `n` more bytes.
    pub fn write(&mut self, n: u64) {
        if !self.closing {
            self.app_end = self.app_end.saturating_add(n).min(u64::MAX / 2);
        }
    }

    /// The application takes back what was not yet sent.
    pub fn truncate(&mut self) {
        self.app_end = self.app_end.min(self.nxt);
    }

    /// The application has no more to send: a FIN follows its last byte.
    pub fn close(&mut self) {
        self.closing = true;
    }

    /// Bytes of payload acknowledged, of a sender whose SYN had number `iss`.
    pub fn acked(&self, iss: u32) -> u64 {
        self.una.min(self.app_end) - (sequence::initial(iss) + 1)
    }

    /// True when the FIN was acknowledged.
    pub fn finished(&self) -> bool {
        self.closing && self.una > self.app_end
    }

    /// Next number to send, as the wire carries it.
    pub fn sequence_number(&self) -> u32 {
        self.nxt as u32
    }

    /// Bytes sent and not acknowledged.
    pub fn flight(&self) -> u64 {
        self.nxt - self.una
    }

    /// The end of the sequence space to send, with the FIN.
    fn end(&self) -> u64 {
        self.app_end + u64::from(self.closing)
    }

    /// Counts the bytes thought to be in the network anew, after ACKs and timeouts; sending only adds to them.
    fn count_pipe(&mut self) {
        self.pipe = self.board.pipe(self.una, self.nxt);
    }

    /// The window in force: that of the control, or of recovery.
    fn window(&self, config: &TcpConfig) -> u64 {
        match self.phase {
            Phase::Recovery => self.recovery_window,
            Phase::Loss => self.cc.cwnd(),
            Phase::Open if !config.limited_transmit => self.cc.cwnd().saturating_sub(self.board.sacked()),
            // Without SACK the first two duplicate ACKs each allow one segment; with SACK the pipe shrinks by itself.
            Phase::Open if !self.sack => self.cc.cwnd() + u64::from(self.dupacks.min(DUP_THRESH - 1)) * self.mss,
            Phase::Open => self.cc.cwnd(),
        }
    }

    /// The window told by the SYN or SYN-ACK, unscaled.
    pub fn set_first_window(&mut self, window: u16) {
        self.edge = self.una + u64::from(window);
        self.max_window = u64::from(window);
        self.window_seq = 0;
    }

    /// Takes an acceptable segment's acknowledgment; gives the round trip time sample it brought, if any.
    pub fn on_ack(&mut self, segment: &Segment, config: &TcpConfig, now: Instant) -> Option<Span> {
        let ack = sequence::unwrap(segment.ack, self.una);
        if ack > self.nxt + u64::from(self.probed) || ack < self.una {
            return None;
        }
        let before = self.edge;
        self.update_window(segment, ack);
        let mut sacked = 0;
        if self.sack {
            for (start, end) in segment.sacks() {
                let start = sequence::unwrap(*start, self.una).max(ack);
                let end = sequence::unwrap(*end, self.una).min(self.nxt);
                let news = self.board.sack(start, end);
                if let Some(needs) = self.needs.as_mut().filter(|_| news > 0) {
                    needs.sacked_end = needs.sacked_end.max(end);
                }
                sacked += news;
            }
        }
        self.count_pipe();
        let mut sample = None;
        if ack > self.una {
            sample = self.advance(segment, ack, sacked, config, now);
        } else if self.flight() > 0
            && segment.sequence_len() == 0
            && (sacked > 0 || (!self.sack && before == self.edge))
        {
            self.on_duplicate(sacked, config, now);
        }
        if segment.flags.has(TcpFlags::ECE) {
            self.on_ecn_echo(now);
        }
        sample
    }

    fn update_window(&mut self, segment: &Segment, ack: u64) {
        let window = u64::from(segment.window) << self.scale;
        let seq = sequence::unwrap(segment.seq, self.window_seq.max(1 << 32));
        if self.window_seq == 0 || seq >= self.window_seq {
            self.window_seq = if self.window_seq == 0 { sequence::initial(segment.seq) } else { seq };
            self.edge = ack + window;
            self.max_window = self.max_window.max(window);
        }
        if self.edge > self.nxt {
            self.persist_at = Instant::MAX;
        }
    }

    /// New data was acknowledged.
    fn advance(&mut self, segment: &Segment, ack: u64, sacked: u64, config: &TcpConfig, now: Instant) -> Option<Span> {
        let in_flight = self.flight();
        let acked = ack - self.una;
        let delivered = acked + sacked - self.board.advance(ack);
        self.una = ack;
        self.nxt = self.nxt.max(ack);
        self.probed = false;
        self.count_pipe();
        let sample = self.rtt_sample(segment, ack, now);
        if let Some(rtt) = sample {
            self.rtt.sample(rtt);
        }
        self.rtt.reset_backoff();
        let partial = self.phase == Phase::Recovery && ack < self.recover && !self.sack;
        if !partial || self.first_partial {
            self.rto_at = if self.flight() > 0 { now + self.rtt.rto() } else { Instant::MAX };
        }
        match self.phase {
            Phase::Open => {
                self.dupacks = 0;
                let echo = self.ecn && segment.flags.has(TcpFlags::ECE);
                // RFC 3168 §6.1.2: an ACK with an echo never opens the window. A control that wants marks counts them.
                if !echo || self.wants().accurate_ecn {
                    self.grow(acked, in_flight, sample, echo, now);
                }
                self.detect_loss(delivered, config, now);
            }
            Phase::Recovery => {
                self.measure(acked, in_flight, sample, now);
                if ack >= self.recover { self.leave_recovery(now) } else { self.on_partial(acked, delivered, config) }
            }
            Phase::Loss => {
                self.grow(acked, in_flight, sample, false, now);
                if ack >= self.recover {
                    self.phase = Phase::Open;
                    self.dupacks = 0;
                }
            }
        }
        sample
    }

    fn rtt_sample(&mut self, segment: &Segment, ack: u64, now: Instant) -> Option<Span> {
        if segment.has_timestamps() {
            let elapsed = super::endpoint::timestamp(now).wrapping_sub(segment.tsecr);
            return Some(Span::from_micros(u64::from(elapsed)));
        }
        let (end, sent) = self.timed;
        if end == 0 || ack < end {
            return None;
        }
        self.timed.0 = 0;
        Some(now.since(sent))
    }

    /// What the control wants; cheap for those that want nothing.
    #[inline]
    fn wants(&self) -> Wants {
        self.needs.as_ref().map_or(Wants::default(), |needs| needs.wants)
    }

    #[inline]
    fn grow(&mut self, acked: u64, in_flight: u64, rtt: Option<Span>, echo: bool, now: Instant) {
        let cwnd = self.cc.cwnd();
        let slow_start = cwnd < self.cc.ssthresh();
        // In slow start a flight of half the window will need the whole of it next round trip.
        let cwnd_limited = if slow_start { 2 * in_flight >= cwnd } else { in_flight + self.mss > cwnd };
        let marked = if echo { acked } else { 0 };
        let rate = if self.needs.is_some() { self.rate_sample(now) } else { None };
        let (srtt, min_rtt) = (self.rtt.srtt(), self.rtt.min_rtt());
        let delivered = self.una + self.board.sacked();
        self.cc.on_ack(&Ack { now, acked, rtt, srtt, min_rtt, in_flight, cwnd_limited, delivered, marked, rate });
    }

    #[cold]
    fn rate_sample(&mut self, now: Instant) -> Option<RateSample> {
        let delivered = self.una + self.board.sacked();
        self.needs.as_mut()?.sample(self.una, delivered, self.pipe, self.rtt.min_rtt(), now)
    }

    /// An ACK within recovery, for controls that measure.
    fn measure(&mut self, acked: u64, in_flight: u64, rtt: Option<Span>, now: Instant) {
        if self.wants().rate {
            let rate = self.rate_sample(now);
            let (srtt, min_rtt, cwnd_limited, marked) = (self.rtt.srtt(), self.rtt.min_rtt(), false, 0);
            let delivered = self.una + self.board.sacked();
            let ack = Ack { now, acked, rtt, srtt, min_rtt, in_flight, cwnd_limited, delivered, marked, rate };
            self.cc.on_recovery_ack(&ack);
        }
    }

    fn on_duplicate(&mut self, sacked: u64, config: &TcpConfig, now: Instant) {
        self.dupacks += 1;
        match self.phase {
            Phase::Open => self.detect_loss(sacked, config, now),
            Phase::Recovery if self.sack => {
                self.measure(sacked, self.flight(), None, now);
                self.on_partial(0, sacked, config);
            }
            Phase::Recovery => self.recovery_window += self.mss,
            Phase::Loss => {}
        }
    }

    /// RFC 6675 §5 (1), (2); RFC 6582 §3.2 step 2.
    fn detect_loss(&mut self, delivered: u64, config: &TcpConfig, now: Instant) {
        self.board.update_lost(self.mss);
        self.count_pipe();
        let lost = self.flight() > 0 && (self.dupacks >= DUP_THRESH || (self.sack && self.board.any_lost(self.una)));
        if lost && self.una >= self.recover {
            self.enter_recovery(delivered, config, now);
        }
    }

    fn enter_recovery(&mut self, delivered: u64, config: &TcpConfig, now: Instant) {
        let flight = self.flight();
        if self.una >= self.reduced_at {
            self.reduce(flight, false, now);
        }
        self.reduced_at = self.nxt;
        self.phase = Phase::Recovery;
        self.recover = self.nxt;
        self.board.begin(self.una);
        self.count_pipe();
        self.forced = true;
        self.first_partial = true;
        self.timed.0 = 0;
        self.prr = Prr { delivered: 0, out: 0, recover_fs: flight };
        let (ssthresh, pipe) = (self.cc.ssthresh(), self.pipe);
        self.recovery_window = match (self.sack, config.prr) {
            (true, true) => pipe + self.prr.send_count(delivered, pipe, ssthresh, self.mss),
            (true, false) => ssthresh,
            (false, _) => ssthresh + u64::from(DUP_THRESH) * self.mss,
        };
    }

    fn reduce(&mut self, in_flight: u64, ecn: bool, now: Instant) {
        self.counters.reductions += 1;
        self.cc.on_loss(&Loss { now, in_flight, ecn });
        self.cwr = self.ecn;
    }

    /// An ACK within recovery that does not end it.
    fn on_partial(&mut self, acked: u64, delivered: u64, config: &TcpConfig) {
        if !self.sack {
            // RFC 6582 §3.2 step 3: send the next hole, deflate by what was acknowledged, add back one segment.
            self.forced = true;
            self.first_partial = false;
            let back = if acked >= self.mss { self.mss } else { 0 };
            self.recovery_window = self.recovery_window.saturating_sub(acked).max(self.mss) + back;
            return;
        }
        self.board.update_lost(self.mss);
        self.count_pipe();
        if config.prr {
            let pipe = self.pipe;
            self.recovery_window = pipe + self.prr.send_count(delivered, pipe, self.cc.ssthresh(), self.mss);
        }
    }

    fn leave_recovery(&mut self, now: Instant) {
        self.phase = Phase::Open;
        self.dupacks = 0;
        self.forced = false;
        self.cc.on_recovered(now);
    }

    /// RFC 3168 §6.1.2: once per window of data.
    fn on_ecn_echo(&mut self, now: Instant) {
        if self.ecn && self.phase == Phase::Open && self.una >= self.reduced_at {
            self.reduced_at = self.nxt;
            self.reduce(self.flight(), true, now);
            self.cc.on_recovered(now);
        }
    }

    /// The retransmission timer fired (RFC 6298 §5.4 to 5.6). False when there have been too many in a row.
    pub fn on_rto(&mut self, now: Instant) -> bool {
        self.counters.timeouts += 1;
        let progressed = self.phase != Phase::Loss || self.rtt.backoff() == 0;
        if progressed {
            // RFC 5681 §3.1: ssthresh is set once per loss event.
            self.cc.on_rto(&Loss { now, in_flight: self.flight(), ecn: false });
        }
        self.phase = Phase::Loss;
        self.recover = self.nxt;
        self.reduced_at = self.nxt;
        self.board.all_lost(self.una, self.nxt);
        self.count_pipe();
        self.dupacks = 0;
        self.forced = false;
        self.timed.0 = 0;
        self.rtt.back_off();
        self.rto_at = now + self.rtt.rto();
        self.rtt.backoff() < 15 // R2 of RFC 9293 §3.8.3, as Linux counts it
    }

    /// The persist timer fired: what little the window permits may go now, or a probe of one byte.
    pub fn on_persist(&mut self) {
        self.persist_at = Instant::MAX;
        self.probe_due = true;
        self.rtt.back_off();
    }

    /// What may be sent next, if anything. Whoever asks must [`Sender::emit`] it.
    #[inline]
    pub fn next(&mut self, config: &TcpConfig, now: Instant) -> Option<Next> {
        let some = |(start, end), kind| Some(Next { start, end, kind });
        if self.needs.is_some() && self.hold_back(now) {
            return None;
        }
        if self.phase != Phase::Open
            && let Some(range) = self.next_retransmission(config)
        {
            return some(range, Kind::Again);
        }
        if self.nxt < self.end() {
            self.restart_if_idle(config, now);
            let len = self.sendable(config);
            if len > 0 {
                return some((self.nxt, self.nxt + len), Kind::New);
            }
        }
        if self.phase == Phase::Recovery
            && let Some(range) = self.next_spare(config)
        {
            return some(range, Kind::Spare);
        }
        if self.flight() == 0 && self.nxt < self.end() {
            return self.probe_or_wait(config, now);
        }
        None
    }

    /// Before anything is sent: true if the pacer holds it back. A burst that is due is begun.
    #[cold]
    fn hold_back(&mut self, now: Instant) -> bool {
        let Some(needs) = &mut self.needs else { return false };
        let more = self.nxt < self.app_end + u64::from(self.closing);
        if !more && self.phase == Phase::Open && self.pipe < self.cc.cwnd() {
            needs.nothing_to_send(self.pipe);
        }
        if more || self.phase == Phase::Loss {
            if self.cc.next_burst() <= now {
                self.cc.on_burst(now, self.pipe);
            }
            needs.wake = self.cc.next_burst();
        }
        needs.held(now)
    }

    fn next_retransmission(&mut self, config: &TcpConfig) -> Option<(u64, u64)> {
        if std::mem::take(&mut self.forced) {
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

    fn next_spare(&mut self, config: &TcpConfig) -> Option<(u64, u64)> {
        if !self.sack || self.pipe + self.mss > self.window(config) {
            return None;
        }
        self.board.next_spare(self.mss, self.nxt)
    }

    /// RFC 5681 §4.1.
    fn restart_if_idle(&mut self, config: &TcpConfig, now: Instant) {
        let idle = self.flight() == 0 && self.counters.segments > 0 && now.since(self.last_sent) > self.rtt.rto();
        if idle && self.persist_at == Instant::MAX && !self.probe_due {
            self.cc.on_idle(now, self.mss * u64::from(config.initial_window));
            self.last_sent = now;
        }
    }

    /// Length of new data (with the FIN) that all rules together let go now; 0 for none.
    fn sendable(&self, config: &TcpConfig) -> u64 {
        let left = (self.app_end - self.nxt.min(self.app_end)).min(self.mss);
        let fin = u64::from(self.closing && self.nxt + left == self.app_end);
        let buffer = (self.una + config.send_buffer.get()).saturating_sub(self.nxt);
        let usable = self.edge.saturating_sub(self.nxt).min(buffer);
        let congestion = self.window(config).saturating_sub(self.pipe);
        if left == 0 {
            return fin;
        }
        if congestion < left {
            return 0;
        }
        if usable >= left {
            return left + if usable > left { fin } else { 0 };
        }
        let allowed = match config.silly_window {
            SillyWindow::Minshall => self.short_end <= self.una || self.flight() == 0,
            SillyWindow::Strict => self.flight() == 0 && 2 * usable >= self.max_window,
        };
        if allowed { usable } else { 0 }
    }

    /// Nothing is in flight and nothing can go: if only the peer's window is in the way, a timer must probe it.
    fn probe_or_wait(&mut self, config: &TcpConfig, now: Instant) -> Option<Next> {
        if self.window(config) < self.mss {
            return None;
        }
        if !std::mem::take(&mut self.probe_due) {
            self.persist_at = self.persist_at.min(now + self.rtt.rto());
            return None;
        }
        let start = self.nxt;
        let usable = self.edge.saturating_sub(start).min(self.app_end - start);
        if usable > 0 {
            return Some(Next { start, end: start + usable.min(self.mss), kind: Kind::New });
        }
        self.persist_at = now + self.rtt.rto();
        Some(Next { start, end: start + 1, kind: Kind::Probe })
    }

    /// Makes `segment` what [`Sender::next`] told: sequence, length and flags are filled.
    #[inline]
    pub fn emit(&mut self, segment: &mut Segment, next: Next, now: Instant) {
        let Next { start, end, kind } = next;
        if kind == Kind::Probe {
            self.probed = true;
            (segment.seq, segment.len) = (start as u32, 1);
            return;
        }
        self.fill(segment, start, end, kind, now);
    }

    fn fill(&mut self, segment: &mut Segment, start: u64, end: u64, kind: Kind, now: Instant) {
        let data_end = end.min(self.app_end);
        segment.seq = start as u32;
        segment.len = (data_end - start.min(data_end)) as u16;
        if end > self.app_end {
            segment.flags = segment.flags.with(TcpFlags::FIN);
        }
        if data_end == self.app_end {
            segment.flags = segment.flags.with(TcpFlags::PSH);
        }
        self.counters.segments += 1;
        if self.needs.is_some() {
            self.note_sent(start, end, kind, now);
        }
        match kind {
            Kind::New => self.note_new(segment, end, now),
            Kind::Again => self.board.retransmitted(end),
            Kind::Spare | Kind::Probe => {}
        }
        if self.ern.is_active() {
            self.tell_rate(segment, (kind == Kind::New).then_some(end));
        }
        self.pipe += end - start;
        if kind != Kind::New {
            self.counters.retransmits += 1;
            segment.set_retransmission();
            self.timed.0 = 0;
        }
        if self.phase == Phase::Recovery {
            self.prr.out += end - start;
        }
        self.last_sent = now;
        if self.rto_at == Instant::MAX {
            self.rto_at = now + self.rtt.rto();
        }
    }

    fn tell_rate(&mut self, segment: &mut Segment, new_end: Option<u64>) {
        let (cwnd, ssthresh, srtt) = (self.cc.cwnd(), self.cc.ssthresh(), self.rtt.srtt());
        self.ern.tell(segment, Sending { una: self.una, new_end, cwnd, ssthresh, srtt });
    }

    #[cold]
    fn note_sent(&mut self, start: u64, end: u64, kind: Kind, now: Instant) {
        let Some(needs) = &mut self.needs else { return };
        needs.lost += if kind == Kind::Again { end - start } else { 0 };
        needs.sent(end, self.pipe, now);
        needs.paced(now, end - start, self.cc.pacing_rate());
    }

    fn note_new(&mut self, segment: &mut Segment, end: u64, now: Instant) {
        self.nxt = end;
        if u64::from(segment.len) < self.mss && end < self.app_end {
            self.short_end = end;
        }
        if self.timed.0 == 0 && !segment.has_timestamps() {
            self.timed = (end, now);
        }
        if self.ecn && segment.len > 0 {
            segment.set_ecn(if self.wants().ect1 { Ecn::Ect1 } else { Ecn::Ect0 });
            if std::mem::take(&mut self.cwr) {
                segment.flags = segment.flags.with(TcpFlags::CWR);
            }
        }
    }
}
