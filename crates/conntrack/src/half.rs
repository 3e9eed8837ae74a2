//! A connection that has not shown yet that both ends take part in it.
//!
//! | stage | begins with | next |
//! |---|---|---|
//! | Asked | SYN | a SYN-ACK that acknowledges it |
//! | Answered | SYN-ACK | an ACK of the opener that acknowledges it |
//! | Proven | ACK | an acknowledgment of data, whichever side sent them: the connection becomes an entry |
//!
//! A segment counts only if it acknowledges what was seen, so who sends from a forged address, and sees no answer, has to
//! guess 32 bits to get from Answered to Proven. An RST or the FINs of both sides end it.

use crate::segment::{Segment, advance, after};
use penstock_core::fact::{Greeting, Opening};
use penstock_core::packet::{FlowId, TcpFlags};
use penstock_core::units::{Instant, Span};

/// The index of a connection that has none.
pub(crate) const NONE: u32 = u32::MAX;
const NO_SCALE: u8 = u8::MAX;
/// A segment further than this after the SYN of its sender is not of this connection: no data that far were acknowledged.
const REACH: u32 = 1 << 30;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum Stage {
    #[default]
    Asked,
    Answered,
    Proven,
}

/// What a segment did to a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing: its numbers are wrong.
    Ignored,
    /// It is one of the connection.
    Noted,
    /// An RST or a second FIN ended the connection.
    Closed(TcpFlags),
    /// It acknowledged the first data of a half-open connection.
    Acknowledged,
}

/// What one side has sent.
#[derive(Debug, Clone, Copy, Default)]
struct Side {
    isn: u32,
    /// The sequence number after what was seen.
    end: u32,
    mss: u16,
    scale: u8,
    /// Whether data were seen.
    data: bool,
    fin: bool,
}

impl Side {
    fn greet(&mut self, syn: &Segment) {
        (self.isn, self.end) = (syn.seq, syn.end().wrapping_add(1));
        self.scale = syn.window_scale.unwrap_or(NO_SCALE);
        self.mss = syn.mss.unwrap_or(0);
        self.data = syn.len > 0;
    }

    /// The sequence number after the SYN.
    fn first(&self) -> u32 {
        self.isn.wrapping_add(1)
    }

    fn extend(&mut self, segment: &Segment) {
        advance(&mut self.end, segment.end());
        self.data |= segment.len > 0;
        self.fin |= segment.is(TcpFlags::FIN);
    }

    fn greeting(&self) -> Greeting {
        Greeting {
            isn: self.isn,
            end: self.end,
            window_scale: (self.scale != NO_SCALE).then_some(self.scale),
            mss: (self.mss != 0).then_some(self.mss),
        }
    }
}

/// A half-open connection. Pairs are for the opener and for the other side.
#[derive(Debug, Clone, Default)]
pub(crate) struct Half {
    /// When the half of the round trip that is running began.
    since: Instant,
    /// Times from SYN to SYN-ACK and from there to the ACK, in nanoseconds; 0 if they are not known.
    halves: [u32; 2],
    sides: [Side; 2],
    pub flow: u32,
    pub stage: Stage,
    pub opener_low: bool,
    /// The running half began with a segment that was sent again, so the answer may be that to the copy before (RFC 6298
    /// §3).
    repeated: bool,
}

const _: () = assert!(size_of::<(u64, Half)>() <= 64, "a half-open connection has a cache line, with its hash");

impl Half {
    /// Creates a connection of which the SYN was seen.
    pub fn new(from_low: bool, syn: &Segment, flow: u32, now: Instant) -> Self {
        let mut half = Self { since: now, opener_low: from_low, flow, ..Self::default() };
        half.sides[0].greet(syn);
        half
    }

    /// Returns 0 for the opener and 1 for the other side.
    pub fn role(&self, from_low: bool) -> usize {
        usize::from(self.opener_low != from_low)
    }

    /// Takes a SYN. Returns false if it opens another connection.
    pub fn on_syn(&mut self, role: usize, syn: &Segment, now: Instant) -> bool {
        if role == 0 && syn.seq == self.sides[0].isn {
            if self.stage == Stage::Asked {
                (self.since, self.repeated) = (now, true);
            }
            return true;
        }
        if role == 1 && self.stage == Stage::Asked {
            // Both sides open at once (RFC 9293 §3.5): their SYNs are answers to each other.
            self.sides[1].greet(syn);
            (self.stage, self.repeated) = (Stage::Answered, true);
            return true;
        }
        role == 1 && self.stage == Stage::Answered && syn.seq == self.sides[1].isn
    }

    /// Takes a segment that is no SYN without ACK.
    pub fn step(&mut self, role: usize, segment: &Segment, now: Instant) -> Step {
        if segment.is(TcpFlags::RST) {
            return if self.believes_rst(role, segment) { Step::Closed(TcpFlags::RST) } else { Step::Ignored };
        }
        if !segment.is(TcpFlags::ACK) || !self.has_sent(1 - role, segment.ack) {
            return Step::Ignored;
        }
        if segment.is(TcpFlags::SYN) { self.on_answer(role, segment, now) } else { self.on_ack(role, segment, now) }
    }

    /// True if something of the side was seen.
    fn knows(&self, role: usize) -> bool {
        role == 0 || self.stage > Stage::Asked
    }

    /// Returns true if the side has sent what `ack` acknowledges.
    fn has_sent(&self, role: usize, ack: u32) -> bool {
        let side = &self.sides[role];
        self.knows(role) && after(ack, side.isn) && !after(ack, side.end)
    }

    /// An RST of the other side may answer the SYN; otherwise it must be the next segment of its sender.
    fn believes_rst(&self, role: usize, rst: &Segment) -> bool {
        let answers = role == 1 && rst.is(TcpFlags::ACK) && self.has_sent(0, rst.ack);
        answers || self.knows(role) && rst.seq == self.sides[role].end
    }

    fn on_answer(&mut self, role: usize, answer: &Segment, now: Instant) -> Step {
        if role == 0 || self.stage == Stage::Proven {
            return Step::Ignored;
        }
        let again = self.stage == Stage::Answered && self.sides[1].isn == answer.seq;
        if self.stage == Stage::Asked && !self.repeated {
            self.halves[0] = nanos(now.since(self.since));
        }
        if !again {
            self.sides[1].greet(answer);
        }
        (self.stage, self.since, self.repeated) = (Stage::Answered, now, again);
        Step::Noted
    }

    fn on_ack(&mut self, role: usize, segment: &Segment, now: Instant) -> Step {
        if !self.knows(role) || segment.seq.wrapping_sub(self.sides[role].first()) >= REACH {
            return Step::Ignored;
        }
        if role == 0 && self.stage == Stage::Answered {
            self.stage = Stage::Proven;
            self.halves[1] = if self.repeated { 0 } else { nanos(now.since(self.since)) };
        }
        self.sides[role].extend(segment);
        let other = &self.sides[1 - role];
        if self.stage == Stage::Proven && other.data && after(segment.ack, other.first()) {
            return Step::Acknowledged;
        }
        if self.sides.iter().all(|side| side.fin) { Step::Closed(TcpFlags::FIN) } else { Step::Noted }
    }

    /// Returns, for the low and the high end, the sequence number after the SYN, that after what was seen, and the scale of
    /// its windows (RFC 7323 §2.2: both sides scale or none).
    pub fn numbers(&self) -> [(u32, u32, u8); 2] {
        let scaled = self.sides.iter().all(|side| side.scale != NO_SCALE);
        let of = |role: usize| {
            let side = &self.sides[role];
            (side.first(), side.end, if scaled { side.scale.min(14) } else { 0 })
        };
        [of(self.role(true)), of(self.role(false))]
    }

    /// Returns which of the low and the high end has sent a FIN.
    pub fn fins(&self) -> [bool; 2] {
        [true, false].map(|low| self.sides[self.role(low)].fin)
    }

    /// Returns the beginning of this connection for an element on the ACK path which did not see its first segments.
    /// `from_inside` is true if the present packet comes from the host that opened the connection.
    pub fn opening(&self, flow: FlowId, from_inside: bool) -> Opening {
        let [opener, other] = self.sides.map(|side| side.greeting());
        let half = |at: usize| (self.halves[at] > 0).then(|| Span::from_nanos(self.halves[at].into()));
        Opening { flow, from_inside, opener, other, asked: half(0), answered: half(1) }
    }
}

/// Returns a span as it is kept: 0, for not known, from 4.3 s on.
fn nanos(span: Span) -> u32 {
    u32::try_from(span.as_nanos().max(1)).unwrap_or(0)
}
