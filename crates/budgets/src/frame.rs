//! What the two ends of a session say, on top of QUIC: messages of C²LP in version 2, and those of enrolment.
//!
//! On a stream each frame is preceded by its length (2 bytes). All numbers are big-endian.
//!
//! | type | name | body after the header `c2 1b 02 TYPE 00 00 00 00` |
//! |---|---|---|
//! | 1 to 6 | as in version 1 | the body of version 1, without a tag |
//! | 16 | ENROL | public key (32), name (the rest, at most 64) |
//! | 17 | ENROLLED | certificate and certificate of the authority (each: length (2), bytes), CLIENT_HELLO with the ticket |

use crate::identity::Public;
use crate::roster::LONGEST_NAME;
use penstock_core::coop::message::{DecodeError, Message, decode_in_session, encode_in_session, version};
use rustls::pki_types::CertificateDer;

/// Longest frame in bytes.
pub const LONGEST: usize = 2048;
const HEADER: usize = 8;
const ENROL: [u8; HEADER] = [0xc2, 0x1b, 2, 16, 0, 0, 0, 0];
const ENROLLED: [u8; HEADER] = [0xc2, 0x1b, 2, 17, 0, 0, 0, 0];

/// A frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// A message of C²LP.
    Message(Message),
    /// The holder of a token wants to be a node.
    Enrol {
        /// The key of the node.
        key: Public,
        /// How the node calls itself.
        name: String,
    },
    /// It is one.
    Enrolled(Enrolled),
}

/// What a node gets when it enrols.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enrolled {
    /// Its certificate.
    pub certificate: CertificateDer<'static>,
    /// The certificate of the authority.
    pub authority: CertificateDer<'static>,
    /// A hello with its ticket.
    pub hello: Message,
}

impl Frame {
    /// Returns the bytes of the frame.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::Message(message) => encode_in_session(message, &mut out),
            Self::Enrol { key, name } => out = [&ENROL[..], key, name.as_bytes()].concat(),
            Self::Enrolled(Enrolled { certificate, authority, hello }) => {
                encode_in_session(hello, &mut out);
                let length = |part: &[u8]| (part.len() as u16).to_be_bytes();
                let parts: [&[u8]; 6] =
                    [&ENROLLED, &length(certificate), certificate, &length(authority), authority, &out];
                out = parts.concat();
            }
        }
        out
    }

    /// Reads a frame.
    ///
    /// # Errors
    /// The bytes are none, or of another version.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        if let Some(body) = bytes.strip_prefix(&ENROL) {
            return enrol(body).ok_or(DecodeError::Malformed);
        }
        if let Some(body) = bytes.strip_prefix(&ENROLLED) {
            return enrolled(body).ok_or(DecodeError::Malformed);
        }
        decode_in_session(bytes).map(Self::Message)
    }
}

fn enrol(body: &[u8]) -> Option<Frame> {
    let (key, name) = body.split_first_chunk()?;
    let name = std::str::from_utf8(name).ok().filter(|name| name.len() <= LONGEST_NAME)?;
    Some(Frame::Enrol { key: *key, name: name.to_owned() })
}

fn enrolled(body: &[u8]) -> Option<Frame> {
    let (certificate, rest) = part(body)?;
    let (authority, rest) = part(rest)?;
    let hello =
        decode_in_session(rest).ok().filter(|hello| matches!(hello, Message::ClientHello { state: Some(_), .. }))?;
    Some(Frame::Enrolled(Enrolled { certificate, authority, hello }))
}

fn part(bytes: &[u8]) -> Option<(CertificateDer<'static>, &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (part, rest) = rest.split_at_checked(u16::from_be_bytes(*length).into())?;
    Some((part.to_vec().into(), rest))
}

/// True for a datagram of version 1, which has no session.
pub fn is_version_1(datagram: &[u8]) -> bool {
    version(datagram) == Some(1)
}

/// Takes the next whole frame from the front of what a stream has brought.
///
/// # Errors
/// Fails if a frame is longer than [`LONGEST`].
pub fn take(input: &mut Vec<u8>) -> Result<Option<Vec<u8>>, DecodeError> {
    let Some((length, rest)) = input.split_first_chunk() else { return Ok(None) };
    let length = usize::from(u16::from_be_bytes(*length));
    if length > LONGEST {
        return Err(DecodeError::Malformed);
    }
    let Some(frame) = rest.get(..length).map(<[u8]>::to_vec) else { return Ok(None) };
    input.drain(..2 + length);
    Ok(Some(frame))
}

/// Appends a frame to what a stream will carry.
pub fn put(frame: &[u8], output: &mut Vec<u8>) {
    output.extend_from_slice(&(frame.len() as u16).to_be_bytes());
    output.extend_from_slice(frame);
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_core::coop::message::encode;
    use penstock_core::coop::state::State;
    use penstock_core::coop::{Floor, Key, Keyring, NodeId, Share};

    fn frames() -> Vec<Frame> {
        let ring = Keyring::new(1, &Key::new([1; 32]));
        let ticket = State::ticket(NodeId(7), Share { class: 0, weight: 5, floor: Floor::NONE }).sign(&ring);
        let hello = Message::ClientHello { node: NodeId(7), ask: 0, state: Some(ticket) };
        let enrolled = Enrolled { certificate: vec![1; 300].into(), authority: vec![2; 200].into(), hello };
        let enrol = Frame::Enrol { key: [3; 32], name: "truck".into() };
        vec![Frame::Message(hello), enrol, Frame::Enrolled(enrolled)]
    }

    #[test]
    fn frames_are_read_as_they_are_written_and_no_part_of_them_is_one() {
        for frame in frames() {
            let bytes = frame.encode();
            assert!(bytes.len() <= LONGEST);
            assert_eq!(Frame::decode(&bytes).as_ref(), Ok(&frame));
            let parts = (0..bytes.len()).filter(|len| Frame::decode(&bytes[..*len]).is_ok()).count();
            // A hello without its state is a hello, and a name may be shorter.
            let whole = match frame {
                Frame::Message(_) => 1,
                Frame::Enrol { name, .. } => name.len(),
                Frame::Enrolled(_) => 0,
            };
            assert_eq!(parts, whole);
        }
    }

    #[test]
    fn a_stream_is_cut_into_frames_wherever_it_is_cut() {
        let mut wire = Vec::new();
        frames().iter().for_each(|frame| put(&frame.encode(), &mut wire));
        for piece in [1, 2, 3, 1000] {
            let (mut input, mut seen) = (Vec::new(), Vec::new());
            for bytes in wire.chunks(piece) {
                input.extend_from_slice(bytes);
                while let Some(frame) = take(&mut input).unwrap() {
                    seen.push(Frame::decode(&frame).unwrap());
                }
            }
            assert_eq!(seen, frames());
        }
        assert!(take(&mut vec![0xff, 0xff]).is_err());
    }

    #[test]
    fn version_1_is_refused_by_its_name() {
        let ring = Keyring::new(1, &Key::new([1; 32]));
        let old = encode(&Message::ClientHello { node: NodeId(7), ask: 1, state: None }, &ring);
        assert!(is_version_1(&old) && !is_version_1(&frames()[0].encode()));
        let refused = Frame::decode(&old).unwrap_err();
        assert_eq!(refused.to_string(), "version 1 of C2LP; this is version 2");
    }
}
