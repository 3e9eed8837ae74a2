//! The messages of C²LP and their encoding (2.2.3.2, 2.3.2; docs/reference/c2lp.md has the layout byte by byte).
//!
//! A message begins with a header of eight bytes and ends with a tag under the key that the members of the network
//! share. A sender without that key can neither make nor change a message. Only the buffer of bytes is allocated.

use super::keys::{Keyring, TAG};
use super::state::{CLASSES, Claim, NodeId, STATE_BYTES, Signed};
use crate::allocation::Kept;
use crate::units::Span;

/// The first two bytes of every message.
const MAGIC: u16 = 0xc21b;
/// The version of the encoding.
const VERSION: u8 = 1;
/// The version of the encoding within a session, which proves who sent a message and hides what it says.
const SESSION: u8 = 2;
/// Length of the header: magic, version, type, key id, three zeros.
const HEADER: usize = 8;
/// Length of the longest message in bytes.
pub const MAX_BYTES: usize = HEADER + 12 + STATE_BYTES + LEVELS + KEPT + LEASE + TAG;
/// Length of the levels in a message, in bytes.
const LEVELS: usize = 16 + 8 * CLASSES;
/// Length of what is kept of floors, which follows the levels if floors are cut, in bytes.
const KEPT: usize = 4;
/// Length of a lease in bytes.
const LEASE: usize = 4;

/// A request of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// The node that asks.
    pub node: NodeId,
    /// The number of the request, which its answer repeats. It grows, and no earlier client of this node used it.
    pub ask: u64,
    /// The last state that the gateway sent to this client.
    pub state: Signed,
}

/// The level of each class, equal for all clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Levels {
    /// The number of the gateway that sent the levels; a gateway gets a larger one at each start.
    pub incarnation: u64,
    /// The sequence number of the levels, which grows with each change.
    pub seq: u64,
    /// Bits per second and unit of weight, for each class.
    pub levels: [u64; CLASSES],
    /// What is given of floors.
    pub kept: Kept,
}

impl Levels {
    /// The levels for a client without a floor, which need not know what is given of floors.
    #[must_use]
    pub fn without_floors(self) -> Self {
        Self { kept: Kept::ALL, ..self }
    }
}

/// An answer of the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// The node that asked.
    pub node: NodeId,
    /// The number of the request.
    pub ask: u64,
    /// The state that the client sends with its next request.
    pub state: Signed,
    /// The levels that all clients get.
    pub levels: Levels,
    /// How long the gateway remembers the client, counted from the request; in whole milliseconds on the wire.
    pub lease: Span,
}

/// A message of C²LP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    /// A node wants to send.
    ClientHello {
        /// The node.
        node: NodeId,
        /// The number of the request.
        ask: u64,
        /// A ticket, an invitation or the state of an earlier gateway; `None` if the node has none of them.
        state: Option<Signed>,
    },
    /// A node has closed its last socket.
    ClientBye(Request),
    /// The rate that a node can use at most. Sent when that changes, and before the lease ends.
    UsedBw(Request, Claim),
    /// The levels, broadcast to all nodes.
    AvailBw(Levels),
    /// The answer to `ClientHello`.
    AckHello(Answer),
    /// The answer to `UsedBw`.
    AckUsed(Answer),
}

/// Why bytes cannot be decoded as a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The message is too short or too long, or a field has an invalid value.
    #[error("not a message of C2LP")]
    Malformed,
    /// The version of the encoding is not the one that is spoken here.
    #[error("version {found} of C2LP; this is version {spoken}")]
    Version {
        /// The version of the message.
        found: u8,
        /// The version that is spoken here.
        spoken: u8,
    },
    /// The tag does not match any key of the network.
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

/// Encodes a message and signs it with the network's key.
pub fn encode(message: &Message, network: &Keyring) -> Vec<u8> {
    let mut out = Vec::with_capacity(MAX_BYTES);
    encode_into(message, network, &mut out);
    out
}

/// Encodes a message as [`encode`] does, into a buffer that is cleared first.
pub fn encode_into(message: &Message, network: &Keyring, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&MAGIC.to_be_bytes());
    out.extend_from_slice(&[VERSION, message.kind(), network.id(), 0, 0, 0]);
    write_body(message, out);
    let tag = network.sign(out);
    out.extend_from_slice(&tag);
}

/// Encodes a message for a session, as version 2, into a buffer that is cleared first. It has no tag: the session proves
/// who sent it.
pub fn encode_in_session(message: &Message, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&MAGIC.to_be_bytes());
    out.extend_from_slice(&[SESSION, message.kind(), 0, 0, 0, 0]);
    write_body(message, out);
}

fn write_body(message: &Message, out: &mut Vec<u8>) {
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
    if levels.kept != Kept::ALL {
        out.extend_from_slice(&levels.kept.bits().to_be_bytes());
    }
}

fn write_answer(answer: &Answer, out: &mut Vec<u8>) {
    write_id(answer.node, answer.ask, out);
    answer.state.write(out);
    write_levels(&answer.levels, out);
    let ms = (answer.lease.as_nanos() / 1_000_000).min(u32::MAX.into()) as u32;
    out.extend_from_slice(&ms.to_be_bytes());
}

/// Decodes a message that a member of the network signed.
///
/// # Errors
/// The bytes are not a message, or the message must not be trusted. No field is used before the tag is checked.
pub fn decode(bytes: &[u8], network: &Keyring) -> Result<Message, DecodeError> {
    let (signed, tag) = bytes.split_last_chunk::<TAG>().ok_or(DecodeError::Malformed)?;
    let (kind, key, body) = header(signed, VERSION)?;
    if !network.verify(key, signed, tag) {
        return Err(DecodeError::Forged);
    }
    read_body(kind, body)
}

/// Decodes a message of a session, which is of version 2.
///
/// # Errors
/// The bytes are not a message of this version.
pub fn decode_in_session(bytes: &[u8]) -> Result<Message, DecodeError> {
    match header(bytes, SESSION)? {
        (kind, 0, body) => read_body(kind, body),
        _ => Err(DecodeError::Malformed),
    }
}

/// Returns the version that bytes say they have, if they begin as a message of C²LP does.
pub fn version(bytes: &[u8]) -> Option<u8> {
    match bytes {
        [m0, m1, version, ..] if u16::from_be_bytes([*m0, *m1]) == MAGIC => Some(*version),
        _ => None,
    }
}

/// Returns the type, the id of the key and the body of a message of version `spoken`.
fn header(bytes: &[u8], spoken: u8) -> Result<(u8, u8, &[u8]), DecodeError> {
    let found = version(bytes).ok_or(DecodeError::Malformed)?;
    let (header, body) = bytes.split_first_chunk::<HEADER>().ok_or(DecodeError::Malformed)?;
    if found != spoken {
        return Err(DecodeError::Version { found, spoken });
    }
    match *header {
        [_, _, _, kind, key, 0, 0, 0] => Ok((kind, key, body)),
        _ => Err(DecodeError::Malformed),
    }
}

fn read_body(kind: u8, body: &[u8]) -> Result<Message, DecodeError> {
    let mut reader = Reader(body);
    let message = reader.message(kind).ok_or(DecodeError::Malformed)?;
    if reader.0.is_empty() { Ok(message) } else { Err(DecodeError::Malformed) }
}

/// Takes fields from the front of the bytes.
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
            3 => Message::AvailBw(self.levels(0)?),
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

    /// Levels, which are followed by `rest` bytes. What is kept of floors is there if floors are cut.
    fn levels(&mut self, rest: usize) -> Option<Levels> {
        let (incarnation, seq) = (self.word()?, self.word()?);
        let mut levels = [0; CLASSES];
        for level in &mut levels {
            *level = self.word()?;
        }
        let kept = if self.0.len() == rest { Kept::ALL } else { Kept::from_bits(u32::from_be_bytes(self.take()?)) };
        Some(Levels { incarnation, seq, levels, kept })
    }

    fn answer(&mut self) -> Option<Answer> {
        let (node, ask, state, levels) = (self.node()?, self.word()?, self.state()?, self.levels(LEASE)?);
        let lease = Span::from_millis(u32::from_be_bytes(self.take()?).into());
        Some(Answer { node, ask, state, levels, lease })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// docs/reference/c2lp.md: the header of version 2 has no key id and no tag follows the body.
    #[test]
    fn a_message_of_a_session_has_a_header_and_a_body() {
        let message = Message::ClientHello { node: NodeId(7), ask: 258, state: None };
        let mut bytes = Vec::new();
        encode_in_session(&message, &mut bytes);
        assert_eq!(bytes, [0xc2, 0x1b, 2, 1, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 1, 2]);
        assert_eq!(decode_in_session(&bytes), Ok(message));
        bytes[4] = 1;
        assert_eq!(decode_in_session(&bytes), Err(DecodeError::Malformed), "the id of a key");
    }
}
