//! Accurate ECN: what the handshake agrees on, the counters that a receiver feeds back, and what a sender makes of them.
//!
//! Source: RFC 9768. A receiver counts packets and bytes by the ECN field with which they arrive. Every ACK has the
//! three lowest bits of the number of CE packets in the field ACE (flags AE, CWR, ECE); an option has 24 bits of each
//! number of bytes. CWR is not used. The initial numbers are 5 packets, and 1 byte of ECT(0) and of ECT(1), so that a
//! path which sets them to zero is noticed.
//!
//! | handshake (Table 2) | SYN: AE CWR ECE | SYN-ACK | mode |
//! |---|---|---|---|
//! | both accurate | 1 1 1 | 0 1 0, 0 1 1, 1 0 0, 1 1 0: the SYN came Not-ECT, ECT(1), ECT(0), CE | accurate |
//! | reserved (§3.1.3) | 1 1 1 | 1 0 1 | accurate |
//! | server classic | 1 1 1 | 0 0 1 | classic |
//! | server without ECN, or one that repeats the flags | 1 1 1 | 0 0 0, 1 1 1 | none |
//! | client classic | 0 1 1 | 0 0 1 | classic |
//! | client without ECN | 0 0 0 | 0 0 0 | none |
//! | any other SYN (§3.1.3) | | as if 1 1 1 | accurate |
//!
//! The client's ACK of the SYN-ACK is a pure one whose ACE has the code of the ECN field of the SYN-ACK (Table 3).
//!
//! Controls in the kernel's form have that of Linux 7.2 (`include/net/tcp_ecn.h`, `tcp_accecn_process`): the option has the counter of
//! ECT(1) first and is in every segment once one of the peer has arrived, takes its room from the payload, and ends if it is lost
//! twice; every change of the ECN field is acknowledged at once; all segments but SYNs are ECT(0).
//!
//! DIFFERENCE: continuous marks (§3.2.2.3) and the loss of later segments with the option (§3.2.3.2.2) are not looked for;
//! the RFC leaves both open. Pinned by `a_sender_that_sees_only_marks_goes_on`.
//! DIFFERENCE: an option in which both counters of ECT changed leaves one out beside two SACK blocks, also where there
//! are no timestamps and all would fit. Pinned by `sack_comes_before_the_option`.

use super::snapshot::TcpInfo;
use crate::segment::Segment;
use penstock_core::packet::{AccEcn, ByteCounters, Ecn, Packet, TcpFlags};

mod linux;

use linux::{LinuxFeedback, LinuxMarks};

/// Initial value of the counter of packets (§3.2.1).
const FIRST_PACKETS: u32 = 5;
/// Initial values of the counters of bytes (§3.2.1).
const FIRST_BYTES: ByteCounters = ByteCounters { ect0: 1, ce: 0, ect1: 1 };
/// Values of the field ACE, and of a field of the option.
const DIV_ACE: u64 = 8;
const DIV_OPTION: u32 = 1 << 24;
/// Times that a SYN or SYN-ACK asks for accurate feedback (§3.1.4.1, §3.2.3.2.2); the option is only on the first.
const ACCURATE_GREETINGS: u16 = 2;
/// CE marks that an ACK waits for: with data that is not acknowledged, and without (§3.2.2.5.1).
const MARKS_WITH_DATA: u8 = 2;
const MARKS_WITHOUT: u8 = 3;
/// SAFETY_FACTOR of appendix A.2.2.
const SAFETY_FACTOR: u64 = 2;

/// ACE of a SYN that asks for accurate feedback, and of one that asks for that of RFC 3168.
const ASK: u8 = 0b111;
const ASK_CLASSIC: u8 = 0b011;
/// ACE of a SYN-ACK that agrees to classic ECN.
const AGREE_CLASSIC: u8 = 0b001;

/// Returns the code for the ECN field of a SYN or SYN-ACK (Tables 2 and 3).
fn code(ecn: Ecn) -> u8 {
    match ecn {
        Ecn::NotEct => 0b010,
        Ecn::Ect1 => 0b011,
        Ecn::Ect0 => 0b100,
        Ecn::Ce => 0b110,
    }
}

/// Returns the ECN field of a code; `None` for values that are no code (Table 4).
fn decoded(ace: u8) -> Option<Ecn> {
    [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce].into_iter().find(|ecn| code(*ecn) == ace)
}

/// True if no router may have changed an ECN field so (§3.2.2.3, RFC 3168 §18).
fn is_mangled(sent: Ecn, arrived: Ecn) -> bool {
    match sent {
        Ecn::NotEct => arrived != Ecn::NotEct,
        Ecn::Ect0 | Ecn::Ect1 => arrived == Ecn::NotEct,
        Ecn::Ce => arrived != Ecn::Ce,
    }
}

/// Returns the option of a SYN-ACK: all counters, as they are at the beginning; in the form of Linux that of ECT(1) comes first.
pub fn first_option(linux: bool) -> AccEcn {
    AccEcn::new(linux, 3, &FIRST_BYTES)
}

/// The feedback that the two sides have agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// No SYN of the peer arrived yet.
    Open,
    /// None.
    NotEcn,
    /// That of RFC 3168.
    Classic,
    /// That of RFC 9768.
    Accurate,
}

/// The handshake of one side that asks for accurate feedback.
#[derive(Debug, Clone)]
pub struct Negotiation {
    /// The mode that was entered first, which does not change (§3.1.5).
    pub mode: Mode,
    /// ECN field of the latest SYN or SYN-ACK of the peer.
    arrived: Ecn,
    /// A server must not send ECT: it sent or received a SYN or SYN-ACK without flags (§3.1.5).
    bare: bool,
    /// ECN field with which the SYN or SYN-ACK of this side arrived; `None` if the peer did not tell it.
    told: Option<Ecn>,
    /// The ACK of this side's SYN or SYN-ACK had a zero in place of a code (Table 4, note 1).
    zero: bool,
    /// The code in the last ACK of the handshake was read, so that its ACE is no counter.
    coded: bool,
    /// The option in the peer's SYN-ACK, or in the first segment that acknowledges ours.
    option: Option<AccEcn>,
    /// The form of Linux.
    pub linux: bool,
}

impl Negotiation {
    /// Begins a handshake, in the form of Linux or in that of the RFC.
    pub fn new(linux: bool) -> Self {
        Self {
            mode: Mode::Open,
            arrived: Ecn::NotEct,
            bare: false,
            told: None,
            zero: false,
            coded: false,
            option: None,
            linux,
        }
    }

    /// Takes a SYN without ACK, as a listener or at a simultaneous open; false if it must be answered with a reset,
    /// because both classic and accurate feedback were asked for (§3.1.5).
    pub fn on_syn(&mut self, syn: &Segment) -> bool {
        let asked = match syn.ace() {
            0 => Mode::NotEcn,
            ASK_CLASSIC => Mode::Classic,
            _ => Mode::Accurate, // §3.1.3
        };
        self.arrived = syn.ecn();
        match self.mode {
            Mode::Open => self.mode = asked,
            Mode::Accurate => self.bare |= asked == Mode::NotEcn,
            Mode::NotEcn | Mode::Classic => {}
        }
        !matches!((self.mode, asked), (Mode::Classic, Mode::Accurate) | (Mode::Accurate, Mode::Classic))
    }

    /// Takes the SYN-ACK of a server.
    pub fn on_syn_ack(&mut self, syn_ack: &Segment) {
        let ace = syn_ack.ace();
        let agreed = match ace {
            0 | ASK => Mode::NotEcn, // a server that repeats the flags is broken
            AGREE_CLASSIC => Mode::Classic,
            _ => Mode::Accurate,
        };
        self.arrived = syn_ack.ecn();
        if self.mode == Mode::Open {
            (self.mode, self.told, self.option) = (agreed, decoded(ace), syn_ack.accecn());
        }
    }

    /// Takes the segment that acknowledges the SYN-ACK of this server.
    pub fn on_last_ack(&mut self, segment: &Segment) {
        self.option = segment.accecn();
        if segment.sequence_len() == 0 && segment.sacks().is_empty() {
            self.coded = true;
            self.zero = segment.ace() == 0;
            self.told = decoded(segment.ace());
        }
    }

    /// Returns ACE of a SYN or SYN-ACK of which `sent` were sent before, and whether it has the option.
    pub fn greeting(&mut self, answers: bool, sent: u16) -> (u8, bool) {
        let accurate = match (answers, self.mode) {
            (false, _) => return (if sent < ACCURATE_GREETINGS { ASK } else { 0 }, false),
            (true, Mode::Classic) => return (AGREE_CLASSIC, false),
            (true, mode) => mode == Mode::Accurate,
        };
        if accurate && sent < ACCURATE_GREETINGS {
            return (code(self.arrived), sent == 0);
        }
        self.bare |= accurate;
        (0, false)
    }

    /// Returns the two halves of the connection, whose own SYN or SYN-ACK carried `sent`. `server`: this side answered a SYN.
    pub fn halves(&self, server: bool, sent: Ecn, sack: bool) -> (Feedback, Marks) {
        let mut feedback = Feedback::new(sack);
        if self.linux {
            let (seen, last) = (self.option.is_some(), if server { self.arrived } else { Ecn::NotEct });
            feedback.linux = Some(LinuxFeedback { seen, last, ..LinuxFeedback::default() });
        }
        if !server {
            // §3.2.2.2: a mark of the SYN-ACK counts, that of a SYN does not.
            feedback.packets += u32::from(self.arrived == Ecn::Ce);
            (feedback.code, feedback.first, feedback.first_data) = (Some(code(self.arrived)), true, true);
        }
        let mut marks = Marks::new(self.option);
        marks.linux = self.linux.then(LinuxMarks::default);
        marks.packets += u64::from(server && self.told == Some(Ecn::Ce));
        marks.skip = self.coded;
        marks.ect = !(self.zero || (server && self.bare) || self.told.is_some_and(|told| is_mangled(sent, told)));
        marks.heard = !self.zero;
        (feedback, marks)
    }

    /// True if this client's SYN, or this server's SYN-ACK, arrived with a mark.
    pub fn was_marked(&self) -> bool {
        self.mode == Mode::Accurate && self.told == Some(Ecn::Ce)
    }
}

/// The receiving half: counts what arrives, and tells it on every ACK.
#[derive(Debug, Clone)]
pub struct Feedback {
    /// r.cep.
    packets: u32,
    /// r.e0b, r.ceb and r.e1b.
    bytes: ByteCounters,
    /// Which of these have changed ever, and since the last option that had them.
    ever: ByteCounters,
    changed: ByteCounters,
    /// The last packet came with CE.
    last_ce: bool,
    /// CE marks since the last ACK.
    marks: u8,
    /// Acknowledgments of acknowledgments can be told from duplicates, because they have no SACK blocks.
    sack: bool,
    /// The code for the next pure ACK: that of the SYN-ACK.
    code: Option<u8>,
    /// The first ACK, and the first segment with data, have the option.
    first: bool,
    first_data: bool,
    /// Options are sent at all.
    option: bool,
    /// State of the form of Linux; `None` in that of the RFC.
    linux: Option<LinuxFeedback>,
}

impl Feedback {
    fn new(sack: bool) -> Self {
        Self {
            packets: FIRST_PACKETS,
            bytes: FIRST_BYTES,
            ever: ByteCounters::default(),
            changed: ByteCounters::default(),
            last_ce: false,
            marks: 0,
            sack,
            code: None,
            first: false,
            first_data: false,
            option: true,
            linux: None,
        }
    }

    /// Says whether options are sent at all.
    pub fn with_option(self, option: bool) -> Self {
        Self { option, ..self }
    }

    /// True if a pure ACK must leave before anything else, which tells how the SYN-ACK arrived (§3.2.2.1).
    pub fn owes_code(&self) -> bool {
        self.code.is_some()
    }

    /// Takes a SYN-ACK that came again.
    pub fn again(&mut self, syn_ack: &Segment) {
        self.code = Some(code(syn_ack.ecn()));
    }

    /// Counts an acceptable packet (§3.2). `waits`: data arrived that was not acknowledged. True if an ACK must leave now
    /// (§3.2.2.5.1).
    pub fn count(&mut self, segment: &Segment, waits: bool) -> bool {
        let (ecn, len) = (segment.ecn(), u32::from(segment.len));
        let ce = ecn == Ecn::Ce;
        let add = |to: &mut u32, seen: [&mut u32; 2]| {
            *to = to.wrapping_add(len);
            seen.into_iter().for_each(|seen| *seen |= u32::from(len > 0));
        };
        match ecn {
            Ecn::NotEct => {}
            Ecn::Ect0 => add(&mut self.bytes.ect0, [&mut self.ever.ect0, &mut self.changed.ect0]),
            Ecn::Ect1 => add(&mut self.bytes.ect1, [&mut self.ever.ect1, &mut self.changed.ect1]),
            Ecn::Ce => add(&mut self.bytes.ce, [&mut self.ever.ce, &mut self.changed.ce]),
        }
        let changes = match &mut self.linux {
            Some(linux) => linux.count(segment),
            None => ce && !self.last_ce && len > 0,
        };
        self.last_ce = ce;
        if !ce {
            return changes;
        }
        self.packets = self.packets.wrapping_add(1);
        self.marks = self.marks.saturating_add(1);
        let enough =
            if waits || len > 0 { self.marks >= MARKS_WITH_DATA } else { self.sack && self.marks >= MARKS_WITHOUT };
        changes || enough
    }

    /// Writes ACE and the option into a segment that has its SACK blocks.
    pub fn write(&mut self, segment: &mut Segment) {
        let pure = segment.sequence_len() == 0 && segment.sacks().is_empty();
        let ace = match self.code {
            Some(code) if pure => {
                self.code = None;
                code
            }
            _ => (u64::from(self.packets) % DIV_ACE) as u8,
        };
        segment.set_ace(ace);
        self.marks = 0;
        if !self.option {
            return;
        }
        if let Some(linux) = &mut self.linux {
            let fields = linux.fields(segment);
            let twice = segment.sacks().first().filter(|block| segment.ack.wrapping_sub(block.1) as i32 >= 0);
            linux.twice = twice.filter(|_| fields.is_some()).map(|block| block.0);
            if let Some(fields) = fields {
                linux.least = 0;
                segment.set_accecn(&AccEcn::new(true, fields, &self.bytes));
            }
            return;
        }
        let ByteCounters { ect0, ce, ect1 } = self.changed;
        // §3.2.3.2.2: a first segment with data that was lost goes out again without the option.
        let data = segment.len > 0 && std::mem::take(&mut self.first_data) && !segment.is_retransmission();
        let first = std::mem::take(&mut self.first) || data;
        if ect0 | ce | ect1 == 0 && !first {
            return;
        }
        if let Some(option) = self.option(segment.sacks().len(), first) {
            segment.set_accecn(&option);
            let told = |was: u32, field: Option<u32>| if field.is_some() { 0 } else { was };
            self.changed = ByteCounters {
                ect0: told(ect0, option.ect0()),
                ce: told(ce, option.ce()),
                ect1: told(ect1, option.ect1()),
            };
        }
    }

    /// Returns an option with all counters that have ever changed, or where there is no room, since SACK comes first, with
    /// those that have changed since they were told; `None` if even these do not fit (§3.2.3.3).
    fn option(&self, blocks: usize, all: bool) -> Option<AccEcn> {
        let most = if blocks < 2 { 3 } else { 2 };
        let count = |of: &ByteCounters, ect1_first: bool| {
            let (first, last) = if ect1_first { (of.ect1, of.ect0) } else { (of.ect0, of.ect1) };
            match (first > 0, of.ce > 0, last > 0) {
                (_, _, true) => 3,
                (_, true, _) => 2,
                (first, ..) => u8::from(first),
            }
        };
        let shortest = |of: &ByteCounters| {
            let orders = [false, true].map(|ect1_first| (ect1_first, count(of, ect1_first)));
            if orders[1].1 < orders[0].1 { orders[1] } else { orders[0] }
        };
        let wanted = if all { (false, 3) } else { shortest(&self.ever) };
        let found = [wanted, shortest(&self.changed)].into_iter().find(|(_, count)| *count <= most);
        found.map(|(ect1_first, count)| AccEcn::new(ect1_first, count, &self.bytes))
    }
}

/// What a sender knows of the peer's options (§3.2.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Options {
    /// They arrive.
    Arrive,
    /// None has arrived where one was due; the first that does changes this (§3.2.3.2.3).
    Absent,
    /// The first had a zero where none can be: they are ignored (§3.2.3.2.4).
    Zeroed,
}

/// What an ACK acknowledges, for its feedback.
#[derive(Debug, Clone, Copy)]
pub struct Acknowledged {
    /// Bytes that are acknowledged or SACKed for the first time.
    pub bytes: u64,
    /// Largest payload of a segment.
    pub mss: u64,
}

/// The sending half: follows the counters of the receiver.
#[derive(Debug, Clone)]
pub struct Marks {
    /// s.cep.
    packets: u64,
    /// s.e0b, s.ceb and s.e1b, modulo 2^24.
    bytes: ByteCounters,
    options: Options,
    /// Packets with CE since the last option that had the counter of their bytes.
    since: u64,
    /// The newest timestamp of a segment whose feedback was taken.
    newest: Option<u32>,
    /// The ACE of the next segment is no counter.
    skip: bool,
    /// No counter was read yet (§3.2.2.4).
    first: bool,
    /// ECT may be sent.
    ect: bool,
    /// Feedback is heeded.
    heard: bool,
    /// Payload bytes with CE that the control was not told yet.
    pending: u64,
    /// State of the form of Linux; `None` in that of the RFC.
    linux: Option<LinuxMarks>,
}

impl Marks {
    /// Begins with the option of the handshake, which tells whether options arrive.
    fn new(option: Option<AccEcn>) -> Self {
        let options = match option {
            None => Options::Absent,
            Some(option) if option.ect0() == Some(0) || option.ect1() == Some(0) => Options::Zeroed,
            Some(_) => Options::Arrive,
        };
        Self {
            packets: FIRST_PACKETS.into(),
            bytes: FIRST_BYTES,
            options,
            since: 0,
            newest: None,
            skip: false,
            first: true,
            ect: true,
            heard: true,
            pending: 0,
            linux: None,
        }
    }

    /// Returns the counters as `TCP_INFO` tells them: since the handshake.
    pub fn info(&self) -> TcpInfo {
        let since = |counter: u32, first: u32| u64::from(counter.wrapping_sub(first) % DIV_OPTION);
        TcpInfo {
            delivered_ce: self.packets - u64::from(FIRST_PACKETS),
            delivered_e0_bytes: since(self.bytes.ect0, FIRST_BYTES.ect0),
            delivered_e1_bytes: since(self.bytes.ect1, FIRST_BYTES.ect1),
            delivered_ce_bytes: since(self.bytes.ce, FIRST_BYTES.ce),
            ..TcpInfo::default()
        }
    }

    /// True if segments may carry ECT.
    #[inline]
    pub fn sends_ect(&self) -> bool {
        self.ect
    }

    /// Takes the feedback of an ACK; true if it tells of new marks.
    pub fn take(&mut self, segment: &Segment, acknowledged: Acknowledged) -> bool {
        // The last ACK of a handshake acknowledges nothing new, and has its code all the same.
        let coded = std::mem::take(&mut self.skip);
        if segment.flags.has(TcpFlags::SYN) || self.is_superseded(segment, acknowledged.bytes) {
            return false;
        }
        if !coded && std::mem::take(&mut self.first) && segment.ace() == 0 {
            (self.ect, self.heard) = (false, false); // §3.2.2.4
        }
        let option = segment.accecn().filter(|_| self.options != Options::Zeroed);
        let before = self.bytes;
        let marked_bytes = option.and_then(|option| self.take_option(&option));
        let told = self.told_bytes(option.as_ref(), &before, acknowledged.bytes);
        let least = (u64::from(segment.ace()) + DIV_ACE - self.packets % DIV_ACE) % DIV_ACE;
        let packets = match self.linux {
            _ if coded => 0,
            Some(mut linux) => {
                let covered = acknowledged.bytes.div_ceil(acknowledged.mss.max(1));
                linux.cover(covered);
                self.linux = Some(linux);
                linux.packets(least, told, covered, acknowledged)
            }
            None => self.packets(least, marked_bytes, acknowledged),
        };
        self.packets += packets;
        self.since += packets;
        let bytes = match (marked_bytes, self.options) {
            (Some(bytes), _) => {
                // §3.2.3.2.5: marked bytes without a marked packet, where ACE cannot have come round.
                let certain = acknowledged.bytes < (DIV_ACE - 1) * acknowledged.mss;
                self.ect &= bytes == 0 || self.since > 0 || !certain;
                self.since = 0;
                bytes
            }
            (None, Options::Arrive) => 0, // the next option tells them
            (None, _) => (packets * acknowledged.mss).min(acknowledged.bytes), // appendix A.3
        };
        if !self.heard {
            return false;
        }
        self.pending += bytes;
        packets > 0 || bytes > 0
    }

    /// Takes the bytes that came with CE, of which no more than those acknowledged are told at once.
    pub fn marked(&mut self, acked: u64) -> u64 {
        let told = self.pending.min(acked);
        self.pending -= told;
        told
    }

    /// Forgets the bytes that the control was not told.
    pub fn forget(&mut self) {
        self.pending = 0;
    }

    /// True if a later ACK was taken already (appendix A.1): this one acknowledges nothing new, and its timestamp is no newer.
    fn is_superseded(&mut self, segment: &Segment, acknowledged: u64) -> bool {
        let newer = segment.has_timestamps()
            && self.newest.is_none_or(|newest| (segment.tsval.wrapping_sub(newest) as i32) > 0);
        if newer {
            self.newest = Some(segment.tsval);
        }
        !newer && acknowledged == 0
    }

    /// Takes the counters of an option; returns how many bytes more came with CE, if it tells that: a counter that is left
    /// out has not changed.
    fn take_option(&mut self, option: &AccEcn) -> Option<u64> {
        self.options = Options::Arrive;
        let more = |counter: &mut u32, field: Option<u32>| {
            let more = field.map_or(0, |field| (field + DIV_OPTION - *counter) % DIV_OPTION);
            *counter = (*counter + more) % DIV_OPTION;
            more
        };
        more(&mut self.bytes.ect0, option.ect0());
        more(&mut self.bytes.ect1, option.ect1());
        Some(more(&mut self.bytes.ce, option.ce()).into())
    }

    /// Returns how many packets with CE an ACK tells of, of which `least` is the smallest number that fits ACE (appendix
    /// A.2): without an option the largest number of packets that it may acknowledge, with one the number that fits the
    /// bytes.
    fn packets(&self, least: u64, marked_bytes: Option<u64>, acknowledged: Acknowledged) -> u64 {
        let packets = acknowledged.bytes / acknowledged.mss.max(1);
        if packets < least {
            return least; // §3.2.2.5.2: ACE is right, and the count of packets is incomplete
        }
        let safer = packets - (packets - least) % DIV_ACE;
        let bytes = match marked_bytes {
            Some(bytes) => bytes,
            None if self.options == Options::Arrive => 0, // no counter has changed
            None => return safer,
        };
        let safe_enough = bytes <= acknowledged.mss * least && bytes * SAFETY_FACTOR < acknowledged.mss * safer;
        if safer > least && safe_enough { least } else { safer }
    }
}

#[cfg(test)]
mod tests;
