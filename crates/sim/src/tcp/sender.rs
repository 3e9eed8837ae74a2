//! The sending half of a connection: what may be sent when, what is lost, and what is retransmitted.
//!
//! Sources: RFC 5681 (windows), RFC 6675 (SACK recovery), RFC 9937 (PRR), RFC 6582 (NewReno without SACK), RFC 3042
//! (limited transmit), RFC 6298 (timer), RFC 3168 (ECN), RFC 9293 §3.8.6 (flow control, probes, silly windows), RFC
//! 8985 (RACK-TLP). Detection of losses and recovery are in `sender/recovery.rs`, flow control is in
//! `sender/flow_control.rs`. `sender/without_sack.rs` has Linux' form of NewReno, `sender/gathering.rs` which segments Linux sends
//! together, `sender/services.rs` what some controls need besides, `sender/usage.rs` whether the window may grow.
//!
//! State table of loss recovery:
//!
//! | state | enters on | leaves on | window |
//! |---|---|---|---|
//! | Open | start, end of recovery | loss, timeout | cwnd of the control |
//! | Recovery | a lost byte (SACK), three duplicate ACKs | `una` reaches `recover` | PRR or inflation around ssthresh |
//! | Cwr | an ECN echo, with controls in the kernel's form | data above `reduced_at` is acknowledged, loss, timeout | PRR down to ssthresh |
//! | Loss | retransmission timeout | `una` reaches `recover` | cwnd of the control, from one segment |
//!
//! Invariant: `una <= nxt`, and nothing beyond the peer's window is sent except one-byte probes.

use super::accecn::Marks;
use super::config::{SillyWindow, TcpConfig};
use super::ern::{RateTeller, Sending};
use super::needs::Needs;
use super::peer::PeerWindow;
use super::prr::{Delivery, Prr};
use super::rtt::RttEstimator;
use super::scoreboard::Scoreboard;
use super::sequence;
use super::snapshot::{Counters, Growth, Snapshot};
use crate::segment::Segment;
use penstock_core::cc::{AnyCc, CongestionControl, Requirements};
use penstock_core::packet::{Ecn, TcpFlags};
use penstock_core::units::{Instant, Span};

mod accurate;
mod acked;
mod flow_control;
mod gathering;
mod handshake;
mod info;
mod recovery;
mod services;
mod usage;
mod without_sack;

use usage::Usage;
use without_sack::EmulatedSack;

const DUP_THRESH: u32 = 3; // RFC 5681 §3.2

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// The window shrinks to `ssthresh` after an ECN echo, where the endpoint behaves as the kernel's (`TCP_CA_CWR`).
    Cwr,
    Recovery,
    Loss,
}

/// The state of F-RTO after a timeout: whether what was in flight arrives although it counts as lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Frto {
    /// The loss is real, or nobody asks.
    Off,
    /// The first segment was sent again, and what the next ACKs say is awaited.
    Waits,
    /// This ACK lets new data go, and no retransmission.
    NewData,
}

/// The state of the sending half. Sequence numbers are internal 64-bit numbers, see `sequence.rs`.
#[derive(Debug, Clone)]
pub struct Sender {
    pub(super) cc: AnyCc,
    pub(super) rtt: RttEstimator,
    pub(super) counters: Counters,
    mss: u64,
    una: u64,
    nxt: u64,
    /// The number after the last byte that the application has written.
    app_end: u64,
    closing: bool,
    pub(super) peer: PeerWindow,
    // Loss recovery.
    phase: Phase,
    board: Scoreboard,
    /// Bytes in flight: sent and neither acknowledged, SACKed nor lost (*pipe* of RFC 6675).
    pipe: u64,
    recover: u64,
    recovery_window: u64,
    /// The endpoint behaves as that of the kernel where the RFCs leave it a choice ([`Requirements::kernel`]).
    kernel: bool,
    /// How many segments may still leave with the last one, as one packet of the kernel.
    group: u16,
    /// How far the congestion window was used.
    usage: Usage,
    /// F-RTO (RFC 5682), as the kernel has it.
    frto: Frto,
    /// When recovery began, or reduced the window again.
    recovery_since: Instant,
    prr: Prr,
    dupacks: u32,
    forced: bool,
    first_partial: bool,
    /// Emulation of SACK by counting duplicate ACKs; `None` with SACK and with NewReno of RFC 6582.
    emulated: Option<Box<EmulatedSack>>,
    // Timers.
    /// When the retransmission timer is due; in all timers `Instant::MAX` means never.
    rto_at: Instant,
    persist_at: Instant,
    probe_due: bool,
    /// True if a one-byte probe beyond the window was sent; its ACK may cover that byte.
    probed: bool,
    last_sent: Instant,
    /// The end of the one segment whose round trip is timed, or 0, and when it was sent; `None` with timestamps.
    timed: Option<Box<(u64, Instant)>>,
    // ECN.
    pub(super) ecn: bool,
    /// Retransmissions are ECN-capable as well.
    ecn_again: bool,
    /// Tells rates; `None` without ERN.
    ern: Option<Box<RateTeller>>,
    cwr: bool,
    /// The counters of Accurate ECN; `None` if it was not agreed.
    pub(super) accurate: Option<Box<Marks>>,
    /// The last ACK told of congestion.
    echoed: bool,
    reduced_at: u64,
    /// The number after the last byte of the newest short segment (Minshall).
    short_end: u64,
    pub(super) sack: bool,
    /// State for controls that pace, measure rates, send in bursts or want every mark; `None` for all others.
    pub(super) needs: Option<Box<Needs>>,
}

/// Why a segment is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The segment holds new data.
    New,
    /// The segment is a retransmission of data that was lost.
    Again,
    /// The segment is a retransmission of data that may have been lost (NextSeg rules 3 and 4, or the probe of
    /// RACK-TLP). The scoreboard does not count it as retransmitted.
    Spare,
    /// The segment is a probe: one byte beyond the peer's window.
    Probe,
}

/// A range of data to send, small enough to be passed in two registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Next {
    start: u64,
    len: u32,
    kind: Kind,
}

impl Next {
    /// Creates a range of at most one segment.
    fn new((start, end): (u64, u64), kind: Kind) -> Self {
        Self { start, len: (end - start) as u32, kind }
    }
}

/// Returns the estimator that a control wants.
fn estimator(config: &TcpConfig, requirements: Requirements) -> RttEstimator {
    let mut rtt = RttEstimator::new(config.min_rto, config.rto_granularity);
    if requirements.kernel {
        rtt.follow_kernel();
    }
    rtt
}

impl Sender {
    /// Creates a sender whose SYN has the number `iss`, with nothing in flight.
    pub fn new(config: &TcpConfig, iss: u32) -> Self {
        let first = sequence::initial(iss) + 1;
        let mss = config.mss.get();
        let cc = config.control(mss, iss);
        let requirements = cc.requirements();
        Self {
            needs: (Requirements { kernel: false, ..requirements } != Requirements::default())
                .then(|| Box::new(Needs::new(requirements, first))),
            kernel: requirements.kernel,
            group: 0,
            usage: Usage::new(first),
            frto: Frto::Off,
            cc,
            rtt: estimator(config, requirements),
            counters: Counters::default(),
            mss,
            una: first,
            nxt: first,
            app_end: first,
            closing: false,
            peer: PeerWindow::new(first),
            phase: Phase::Open,
            board: if config.rack { Scoreboard::with_rack(first) } else { Scoreboard::default() },
            pipe: 0,
            recover: first - 1, // RFC 6582 §3.2 step 1: the initial send sequence number
            recovery_window: 0,
            recovery_since: Instant::ZERO,
            prr: Prr::default(),
            dupacks: 0,
            forced: false,
            first_partial: false,
            emulated: if config.sack { None } else { EmulatedSack::of(config) },
            rto_at: Instant::MAX,
            persist_at: Instant::MAX,
            probe_due: false,
            probed: false,
            last_sent: Instant::ZERO,
            timed: None,
            ecn: false,
            ecn_again: false,
            ern: None,
            cwr: false,
            accurate: None,
            echoed: false,
            reduced_at: first,
            short_end: first,
            sack: config.sack,
        }
    }

    /// Returns the number of bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        let board = self.board.heap_bytes();
        self.cc.heap_bytes() + self.needs.as_ref().map_or(0, |needs| needs.bytes()) + board
    }

    /// Returns the segment size in use, in bytes.
    pub fn mss(&self) -> u64 {
        self.mss
    }

    /// Adds `n` bytes of the application to what is to be sent.
    pub fn write(&mut self, n: u64) {
        if !self.closing {
            self.app_end = self.app_end.saturating_add(n).min(u64::MAX / 2);
        }
    }

    /// Discards the data that was not sent yet.
    pub fn truncate(&mut self) {
        self.app_end = self.app_end.min(self.nxt);
    }

    /// Ends the data of the application: a FIN follows its last byte.
    pub fn close(&mut self) {
        self.closing = true;
    }

    /// Returns the number of payload bytes acknowledged, for a sender whose SYN had the number `iss`.
    pub fn acked(&self, iss: u32) -> u64 {
        self.una.min(self.app_end) - (sequence::initial(iss) + 1)
    }

    /// Returns the number of payload bytes written and not discarded, for a sender whose SYN had the number `iss`.
    pub fn written(&self, iss: u32) -> u64 {
        self.app_end - (sequence::initial(iss) + 1)
    }

    /// True if a FIN follows the data of the application.
    pub fn is_closing(&self) -> bool {
        self.closing
    }

    /// True if the endpoint behaves as that of the kernel.
    pub fn is_kernel(&self) -> bool {
        self.kernel
    }

    /// True if a peer may acknowledge this number of the header.
    pub fn can_be_acknowledged(&self, ack: u32) -> bool {
        let ack = sequence::unwrap(ack, self.una);
        ack <= self.nxt + u64::from(self.probed) && ack + u64::from(self.peer.largest) >= self.una
    }

    /// True if the FIN was acknowledged.
    pub fn finished(&self) -> bool {
        self.closing && self.una > self.app_end
    }

    /// Returns the next number to send in the form of the header.
    pub fn sequence_number(&self) -> u32 {
        self.nxt as u32
    }

    /// True if everything the application has written was acknowledged and no control needs the sender's attention.
    #[inline]
    pub fn has_sent_all(&self) -> bool {
        self.una == self.end() && self.needs.is_none()
    }

    /// Returns the earliest time at which [`Sender::on_timer`] has something to do; `Instant::MAX` if no timer is set.
    #[inline]
    pub fn deadline(&self) -> Instant {
        let wake = self.needs.as_ref().map_or(Instant::MAX, |needs| needs.wake);
        [self.persist_at, wake, self.rack_at()].into_iter().fold(self.rto_at, Instant::min)
    }

    /// Handles all timers that are due at `now`; those of losses wait until the connection is `established`. Returns false
    /// after too many timeouts in a row.
    pub fn on_timer(&mut self, established: bool, config: &TcpConfig, now: Instant) -> bool {
        if self.rack_at() <= now && established {
            self.on_rack_timer(config, now);
        }
        let goes_on = !(self.rto_at <= now && established) || self.on_rto(now);
        if self.persist_at <= now {
            self.on_persist();
        }
        if let Some(needs) = self.needs.as_mut().filter(|needs| needs.wake <= now) {
            needs.wake = Instant::MAX; // the caller asks for segments next
        }
        goes_on
    }

    /// Returns the state of the sender for observers.
    pub fn snapshot(&self) -> Snapshot {
        let state = match self.phase {
            Phase::Recovery => Growth::Recovery,
            Phase::Cwr => Growth::CongestionAvoidance,
            Phase::Loss => Growth::Loss,
            Phase::Open if self.cc.cwnd() < self.cc.ssthresh() => Growth::SlowStart,
            Phase::Open => Growth::CongestionAvoidance,
        };
        Snapshot {
            state,
            cwnd: self.cc.cwnd().get(),
            ssthresh: self.cc.ssthresh().get(),
            pacing: self.cc.pacing_rate(),
            in_flight: self.pipe,
            srtt: self.rtt.srtt(),
            counters: self.counters,
        }
    }

    /// Returns the flight size: bytes sent and not cumulatively acknowledged (RFC 5681).
    pub fn flight(&self) -> u64 {
        self.nxt - self.una
    }

    /// Returns the end of the sequence space to send, the FIN included.
    fn end(&self) -> u64 {
        self.app_end + u64::from(self.closing)
    }

    /// Computes the bytes in flight anew, which is needed after ACKs and timeouts; sending only adds to them.
    fn count_pipe(&mut self) {
        self.pipe = self.counted_pipe();
    }

    fn counted_pipe(&self) -> u64 {
        let pipe = self.board.pipe(self.una..self.nxt);
        match &self.emulated {
            Some(emulated) => pipe - emulated.gone(self.mss, self.forced).min(pipe),
            None => pipe,
        }
    }

    /// Looks for bytes that are lost now, after an ACK was counted; returns true if there are any. Only they take something
    /// out of flight then, unless SACK is emulated.
    fn find_losses(&mut self) -> bool {
        let found = self.board.update_lost(self.mss);
        if found || self.emulated.is_some() {
            self.count_pipe();
        }
        debug_assert_eq!(self.pipe, self.counted_pipe(), "the pipe was counted");
        found
    }

    /// Returns the bytes that arrived beyond a gap, SACKed or counted.
    fn sacked(&self) -> u64 {
        self.board.sacked() + self.emulated.as_ref().map_or(0, |emulated| emulated.bytes)
    }

    /// Returns the congestion window in force: that of the control or that of recovery.
    fn window(&self, config: &TcpConfig) -> u64 {
        let cwnd = || self.cc.cwnd().get();
        match self.phase {
            Phase::Recovery if self.tells_segments() => cwnd(),
            Phase::Recovery | Phase::Cwr => self.recovery_window,
            Phase::Loss => cwnd(),
            Phase::Open if !config.limited_transmit => cwnd().saturating_sub(self.sacked()),
            // Limited transmit (RFC 3042). Without SACK each of the first two duplicate ACKs allows one segment more;
            // with SACK, also emulated, the pipe shrinks by what was SACKed.
            Phase::Open if !self.sack && self.emulated.is_none() => {
                cwnd() + u64::from(self.dupacks.min(DUP_THRESH - 1)) * self.mss
            }
            Phase::Open => cwnd(),
        }
    }

    /// Takes the acknowledgment of an acceptable segment; returns the round trip time sample it gave, if any.
    pub fn on_ack(&mut self, segment: &Segment, config: &TcpConfig, now: Instant) -> Option<Span> {
        let told = sequence::unwrap(segment.ack, self.una);
        // What an ACK that was overtaken SACKs is news all the same (RFC 6675 §4, Update).
        let overtaken = told < self.una;
        if told > self.nxt + u64::from(self.probed) || (overtaken && segment.sacks().is_empty()) {
            return None;
        }
        let ack = told.max(self.una);
        let before = self.edge();
        let (prior_in_flight, prior_delivered) = (self.pipe, self.una + self.sacked());
        if !overtaken {
            self.update_window(segment, ack);
        }
        self.group = 0;
        let mut sacked = 0;
        if self.sack {
            for (start, end) in segment.sacks() {
                let start = sequence::unwrap(*start, self.una).max(ack);
                let end = sequence::unwrap(*end, self.una).min(self.nxt);
                if self.needs.is_some() {
                    self.note_sacked(start..end, now);
                }
                let newly = self.board.sack(start..end);
                if let Some(needs) = self.needs.as_mut().filter(|_| newly > 0) {
                    needs.sacked_end = needs.sacked_end.max(end);
                }
                sacked += newly;
            }
        }
        if let Some(rack) = &mut self.board.rack {
            rack.take_original();
            self.on_rack_ack(segment, ack, now);
        }
        let mut sample = None;
        let advanced = ack > self.una;
        if advanced {
            sample = self.advance(segment, ack, sacked, config, now);
        } else {
            self.count_pipe();
            self.hear(segment, sacked);
            let news = sacked > 0 || (!self.sack && before == self.edge());
            if self.flight() > 0 && segment.sequence_len() == 0 && news {
                self.on_duplicate(sacked, config, now);
            }
        }
        if self.echoed {
            self.on_ecn_echo((self.una + self.sacked()).saturating_sub(prior_delivered), now);
        }
        if self.tells_segments() {
            self.tell_segments(segment, advanced, prior_in_flight, now);
        }
        sample
    }

    /// Returns what the control needs of the sender; cheap for controls that need nothing.
    #[inline]
    fn requirements(&self) -> Requirements {
        self.needs.as_ref().map_or(Requirements::default(), |needs| needs.requirements)
    }

    /// Returns what may be sent now; `None` if nothing may. The caller must send it with [`Sender::emit`].
    #[inline(never)]
    pub fn next(&mut self, config: &TcpConfig, now: Instant) -> Option<Next> {
        let some = |range, kind| Some(Next::new(range, kind));
        if self.needs.is_some() && self.hold_back(now) {
            return None;
        }
        if self.board.rack.is_some()
            && let Some(probe) = self.tail_probe(now)
        {
            return Some(probe);
        }
        if matches!(self.phase, Phase::Recovery | Phase::Loss)
            && !self.sends_new_data_first(config, now)
            && let Some(range) = self.next_retransmission(config)
        {
            return some(range, Kind::Again);
        }
        if self.nxt < self.end() {
            self.restart_if_idle(config, now);
            let len = self.sendable(config, now);
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

    /// Writes what [`Sender::next`] returned into `segment`: sequence number, length and flags.
    #[inline]
    pub fn emit(&mut self, segment: &mut Segment, next: Next, now: Instant) {
        let Next { start, len, kind } = next;
        if kind == Kind::Probe {
            // That of the kernel has no data and an old number (`tcp_xmit_probe_skb`).
            self.probed = !self.kernel;
            (segment.seq, segment.len) = (start as u32, 1);
            if self.kernel {
                (segment.seq, segment.len) = (segment.seq.wrapping_sub(1), 0);
            }
            return;
        }
        self.fill(segment, start, start + u64::from(len), kind, now);
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
            Kind::Again => {
                self.board.retransmitted(start..end, now);
                if let Some(emulated) = &mut self.emulated {
                    emulated.sent_again(end, now);
                }
            }
            Kind::Spare | Kind::Probe => {}
        }
        if segment.len > 0 && if kind == Kind::New { self.ecn } else { self.ecn_again } && self.sends_ect() {
            segment.set_ecn(if self.requirements().ect1 { Ecn::Ect1 } else { Ecn::Ect0 });
        }
        if self.ern.is_some() {
            self.tell_rate(segment, (kind == Kind::New).then_some(end));
        }
        self.pipe += end - start;
        if kind != Kind::New {
            self.counters.retransmits += 1;
            segment.set_retransmission();
            self.stop_timing();
        }
        if matches!(self.phase, Phase::Recovery | Phase::Cwr) {
            self.prr.out += end - start;
        }
        if self.kernel {
            self.note_group(kind == Kind::New, now);
        }
        self.last_sent = now;
        if self.rto_at == Instant::MAX || (kind == Kind::Again && self.restarts_timer(start)) {
            self.rto_at = now + self.rtt.rto();
        }
        if kind == Kind::New {
            self.note_use();
            self.schedule_probe(now);
        }
    }

    /// Times the round trip of the segment that ends at `end`, unless one is timed already.
    #[cold]
    fn time(&mut self, end: u64, now: Instant) {
        let timed = self.timed.get_or_insert_default();
        if timed.0 == 0 {
            **timed = (end, now);
        }
    }

    /// Times the round trip no longer, because an ACK may be that of a retransmission.
    fn stop_timing(&mut self) {
        if let Some(timed) = &mut self.timed {
            timed.0 = 0;
        }
    }

    fn tell_rate(&mut self, segment: &mut Segment, new_end: Option<u64>) {
        let (cwnd, ssthresh, srtt) = (self.cc.cwnd().get(), self.cc.ssthresh().get(), self.rtt.srtt());
        if let Some(ern) = &mut self.ern {
            ern.tell(segment, Sending { una: self.una, new_end, cwnd, ssthresh, srtt });
        }
    }

    fn note_new(&mut self, segment: &mut Segment, end: u64, now: Instant) {
        if let Some(rack) = &mut self.board.rack {
            rack.sent(self.nxt..end, now);
        }
        self.nxt = end;
        if u64::from(segment.len) < self.segment_size() && end < self.app_end {
            self.short_end = end;
        }
        if !segment.has_timestamps() {
            self.time(end, now);
        }
        if self.ecn && segment.len > 0 && std::mem::take(&mut self.cwr) {
            segment.flags = segment.flags.with(TcpFlags::CWR);
        }
    }
}
