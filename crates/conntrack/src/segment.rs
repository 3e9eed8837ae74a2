//! What the table reads of a packet.

use crate::mac::Mac;
use penstock_core::packet::TcpFlags;
use penstock_core::wire::flows::KEY_LEN;
use penstock_core::wire::{End, FlowKey, Headers, HostKey, TcpOptions, Transport};
use std::net::IpAddr;

/// A packet as the table sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrived {
    /// The key of its connection; `None` for what is no IP packet.
    pub key: Option<FlowKey>,
    /// True if it comes from the lower end of the key.
    pub from_low: bool,
    /// True if it travels away from the subscribers.
    pub outward: bool,
    /// The TCP header; `None` for other packets.
    pub segment: Option<Segment>,
    /// The host on the side of the subscribers; `None` for an address that is no host.
    pub host: Option<HostKey>,
    /// The hardware address of the frame at the end of the subscribers, if that is known.
    pub hardware: Option<Mac>,
}

/// The parts of a TCP segment that the table reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Segment {
    /// The flags.
    pub flags: TcpFlags,
    /// The sequence number.
    pub seq: u32,
    /// The acknowledgment number.
    pub ack: u32,
    /// The number of bytes of data.
    pub len: u32,
    /// The window field, unscaled.
    pub window: u16,
    /// The window scale of a SYN.
    pub window_scale: Option<u8>,
    /// The MSS option of a SYN.
    pub mss: Option<u16>,
    /// It has a signature, of TCP-MD5 or TCP-AO.
    pub signed: bool,
}

impl Arrived {
    /// Reads a packet; `end` is the end of its path at which the subscriber is.
    pub fn read(bytes: &[u8], headers: &Headers, end: End) -> Self {
        let found = FlowKey::with_side(bytes, headers);
        Self {
            key: found.map(|(key, _)| key),
            from_low: found.is_some_and(|(_, low)| low),
            outward: end == End::Source,
            segment: Segment::read(bytes, headers),
            host: HostKey::of(bytes, headers, end),
            hardware: None,
        }
    }

    /// The bytes that are hashed: the key, and on which side its ends are. A packet that pretends to be of an end on the
    /// other side is not of the connection, so nobody can play both ends from one side.
    pub(crate) fn identity(&self) -> Option<[u8; KEY_LEN]> {
        let mut bytes = *self.key?.as_bytes();
        bytes[KEY_LEN - 1] |= u8::from(self.from_low == self.outward) << 7;
        Some(bytes)
    }

    /// The address of the host on the side of the subscribers.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        Some(self.key?.end(usize::from(self.from_low != self.outward)).ip())
    }
}

impl Segment {
    /// Reads the TCP header of a packet; options of SYNs only.
    pub fn read(bytes: &[u8], headers: &Headers) -> Option<Self> {
        let Transport::Tcp { offset, payload } = headers.transport else { return None };
        let header = bytes.get(offset..payload)?;
        let word = |at: usize| Some(u32::from_be_bytes(*header.get(at..)?.first_chunk()?));
        let flags = TcpFlags(*header.get(13)?);
        let field = header.get(20..)?;
        let options = if flags.has(TcpFlags::SYN) {
            TcpOptions::parse(field)
        } else {
            TcpOptions { signed: TcpOptions::are_signed(field), ..TcpOptions::default() }
        };
        Some(Self {
            flags,
            seq: word(4)?,
            ack: word(8)?,
            len: headers.end.saturating_sub(payload) as u32,
            window: (word(12)? & 0xffff) as u16,
            window_scale: options.window_scale,
            mss: options.mss,
            signed: options.signed,
        })
    }

    pub(crate) fn is(&self, flag: TcpFlags) -> bool {
        self.flags.has(flag)
    }

    /// The sequence number after the segment; a FIN counts as one byte (RFC 9293 §3.4).
    pub(crate) fn end(&self) -> u32 {
        self.seq.wrapping_add(self.len).wrapping_add(u32::from(self.is(TcpFlags::FIN)))
    }
}

/// Returns true if `a` is after `b` in sequence space.
pub(crate) fn after(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) as i32 > 0
}

/// Moves `mark` forward to `to`.
pub(crate) fn advance(mark: &mut u32, to: u32) {
    if after(to, *mark) {
        *mark = to;
    }
}
