//! The messages of C²LP and their bytes (2.2.3.2, 2.3.2; docs/c2lp.md has the layout byte by byte).
//!
//! A message begins with eight bytes that say what it is and ends with a tag under the key that the network's members
//! share. Who does not hold that key can neither make a message nor change one. Nothing is allocated but the bytes.

use super::keys::{Keyring, TAG};
use super::state::{CLASSES, Claim, NodeId, STATE_BYTES, Signed};
use crate::units::Span;

/// The first two bytes of every message.
pub const MAGIC: u16 = 0xc21b;
/// The version of these bytes.
pub const VERSION: u8 = 1;
/// Magic, version, type, key id, three zeros.
const HEADER: usize = 8;
/// The longest message.
pub const MAX_BYTES: usize = HEADER + 12 + STATE_BYTES + LEVELS + 4 + TAG;
/// Bytes of the levels in a message.
const LEVELS: usize = 16 + 8 * CLASSES;

/// What a client sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Who asks.
    pub node: NodeId,
    /// The number of the request, which its answer repeats. It grows, and no other life of the client used it.
    pub ask: u64,
    /// What the gateway last told.
    pub state: Signed,
}

/// What the gateway gives out: the level of each class. The same for everyone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Levels {
    /// Which gateway, and which of its lives.
    pub incarnation: u64,
    /// Grows with each change.
    pub seq: u64,
    /// Bits per second and unit of weight, for each class.
    pub levels: [u64; CLASSES],
}

/// An answer of the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// Who asked.
    pub node: NodeId,
    /// The number of the request.
    pub ask: u64,
    /// What the client is to send back next time.
    pub state: Signed,
    /// What everyone is told.
    pub levels: Levels,
    /// How long the gateway remembers the client, from when it asked; in whole milliseconds.
    pub lease: Span,
}

/// A message of C²LP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    /// A node wants to send.
    ClientHello {
        /// Who.
        node: NodeId,
        /// The number of the request.
        ask: u64,
        /// A ticket, an invitation or what an earlier gateway told, if it has any.
        state: Option<Signed>,
    },
    /// A node has finished.
    ClientBye(Request),
    /// What a node can use at most. Sent when that changes, and before the lease ends.
    UsedBw(Request, Claim),
    /// What there is for everyone. Broadcast.
    AvailBw(Levels),
    /// Answers `ClientHello`.
    AckHello(Answer),
    /// Answers `UsedBw`.
    AckUsed(Answer),
}

/// Why bytes are not a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Too short, too long, or something in it has no meaning.
    #[error("not a message of C2LP")]
    Malformed,
    /// Made by a later version, which may mean something else.
    #[error("version {0} of C2LP; this is version {VERSION}")]
    Version(u8),
    /// The tag is not that of a key the network uses.
    #[error("not from this network, or changed on the way")]
    Forged,
}

impl Message {
    fn kind(&self) -> u8 {
        match self {
            Self::ClientHello { .. } => 1,
            Self::ClientBye(_) => 2,
            Self::AvailBw(_) => 3,
            Self::UsedBw(..) => 4,
            Self::AckHello(_) => 5,
            Self::AckUsed(_) => 6,
        }
    }
}

/// The bytes of a message, signed with the network's key.
pub fn encode(message: &Message, network: &Keyring) -> Vec<u8> {
    let mut out = Vec::with_capacity(MAX_BYTES);
    encode_into(message, network, &mut out);
    out
}

/// As [`encode`], into a buffer that is cleared first.
pub fn encode_into(message: &Message, network: &Keyring, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&MAGIC.to_be_bytes());
    out.extend_from_slice(&[VERSION, message.kind(), network.id(), 0, 0, 0]);
    match message {
        Message::ClientHello { node, ask, state } => {
            write_id(*node, *ask, out);
            if let Some(state) = state {
                state.write(out);
            }
        }
        Message::ClientBye(request) => write_request(request, out),
        Message::UsedBw(request, claim) => {
            write_request(request, out);
            out.extend_from_slice(&claim.as_bps().to_be_bytes());
        }
        Message::AvailBw(levels) => write_levels(levels, out),
        Message::AckHello(answer) | Message::AckUsed(answer) => write_answer(answer, out),
    }
    let tag = network.sign(out);
    out.extend_from_slice(&tag);
}

fn write_id(node: NodeId, ask: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&node.0.to_be_bytes());
    out.extend_from_slice(&ask.to_be_bytes());
}

fn write_request(request: &Request, out: &mut Vec<u8>) {
    write_id(request.node, request.ask, out);
    request.state.write(out);
}

fn write_levels(levels: &Levels, out: &mut Vec<u8>) {
    for word in [levels.incarnation, levels.seq].iter().chain(&levels.levels) {
        out.extend_from_slice(&word.to_be_bytes());
    }
}

fn write_answer(answer: &Answer, out: &mut Vec<u8>) {
    write_id(answer.node, answer.ask, out);
    answer.state.write(out);
    write_levels(&answer.levels, out);
    let ms = (answer.lease.as_nanos() / 1_000_000).min(u32::MAX.into()) as u32;
    out.extend_from_slice(&ms.to_be_bytes());
}

/// The message of these bytes, if a member of the network made them.
///
/// # Errors
/// The bytes are not a message, or one that must not be trusted. Nothing in them is acted on before the tag is checked.
pub fn decode(bytes: &[u8], network: &Keyring) -> Result<Message, DecodeError> {
    let (signed, tag) = bytes.split_last_chunk::<TAG>().ok_or(DecodeError::Malformed)?;
    let (header, body) = signed.split_first_chunk::<HEADER>().ok_or(DecodeError::Malformed)?;
    let [m0, m1, version, kind, key, zeros @ ..] = *header;
    if u16::from_be_bytes([m0, m1]) != MAGIC {
        return Err(DecodeError::Malformed);
    }
    if version != VERSION {
        return Err(DecodeError::Version(version));
    }
    if zeros != [0; 3] {
        return Err(DecodeError::Malformed);
    }
    if !network.verify(key, signed, tag) {
        return Err(DecodeError::Forged);
    }
    let mut reader = Reader(body);
    let message = reader.message(kind).ok_or(DecodeError::Malformed)?;
    if reader.0.is_empty() { Ok(message) } else { Err(DecodeError::Malformed) }
}

/// Takes fields off the front.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    fn word(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }

    fn node(&mut self) -> Option<NodeId> {
        self.take().map(|four| NodeId(u32::from_be_bytes(four)))
    }

    fn state(&mut self) -> Option<Signed> {
        Signed::read(&self.take()?)
    }

    fn message(&mut self, kind: u8) -> Option<Message> {
        Some(match kind {
            1 => self.hello()?,
            2 => Message::ClientBye(self.request()?),
            3 => Message::AvailBw(self.levels()?),
            4 => Message::UsedBw(self.request()?, Claim::bps(self.word()?)),
            5 => Message::AckHello(self.answer()?),
            6 => Message::AckUsed(self.answer()?),
            _ => return None,
        })
    }

    fn hello(&mut self) -> Option<Message> {
        let (node, ask) = (self.node()?, self.word()?);
        let state = if self.0.is_empty() { None } else { Some(self.state()?) };
        Some(Message::ClientHello { node, ask, state })
    }

    fn request(&mut self) -> Option<Request> {
        Some(Request { node: self.node()?, ask: self.word()?, state: self.state()? })
    }

    fn levels(&mut self) -> Option<Levels> {
        let (incarnation, seq) = (self.word()?, self.word()?);
        let mut levels = [0; CLASSES];
        for level in &mut levels {
            *level = self.word()?;
        }
        Some(Levels { incarnation, seq, levels })
    }

    fn answer(&mut self) -> Option<Answer> {
        let (node, ask, state, levels) = (self.node()?, self.word()?, self.state()?, self.levels()?);
        let lease = Span::from_millis(u32::from_be_bytes(self.take()?).into());
        Some(Answer { node, ask, state, levels, lease })
    }
}
