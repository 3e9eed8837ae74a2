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
use penstock_core::coop::message::{DecodeError, Message, decode_in_session, encode_in_session};
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

    /// Reads a frame. Fails if the bytes are none, or of another version.
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

/// Takes the next whole frame from the front of what a stream has brought. Fails if a frame is longer than [`LONGEST`].
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
