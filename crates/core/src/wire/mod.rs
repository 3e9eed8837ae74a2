//! Bytes of real packets: parsing without allocation, and rewriting that keeps checksums correct.
//!
//! Follow one packet: [`Headers::parse`] finds the positions of its headers, [`FlowKey::of`] computes the key of its
//! connection and [`HostKey::of`] the host at one end; a table of connections (the crate `penstock-conntrack`) gives it a
//! dense [`FlowId`], and a [`RealPacket`] combines them and implements [`Packet`].
//!
//! Malformed packets, fragments and packets of other protocols are passed on unchanged: they still are packets, but
//! [`Packet::tcp`] returns `None` for them.
//!
//! Sources: RFC 791 §3.1, RFC 8200 §3 and §4, RFC 9293 §3.1 and §3.2, RFC 7323 §2.2 and §3.2, RFC 3168 §5, RFC 1624.

mod checksum;
pub mod flows;
mod headers;
mod hosts;
mod options;
pub mod scone;
#[cfg(test)]
pub(crate) mod tests;

pub use flows::FlowKey;
pub use headers::{Headers, IpVersion, Transport};
pub use hosts::{End, HostKey};
pub use options::{ERN, ERN_LENGTH, TcpOptions};

use crate::packet::{Ecn, Ern, FlowId, Packet, TcpFlags, TcpView, Timestamps};
use crate::units::Bytes;

/// Whether the transport checksum of a packet is already in its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TransportChecksum {
    /// The checksum is present: rewriting must keep it correct.
    #[default]
    Complete,
    /// The network card computes the checksum later (checksum offload): rewriting must not change it.
    Pending,
}

/// A packet as it came from an interface, starting at its IP header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RealPacket {
    bytes: Box<[u8]>,
    headers: Headers,
    options: TcpOptions,
    flow: FlowId,
    shows_tcp: bool,
    checksum: TransportChecksum,
}

impl RealPacket {
    /// Returns the same packet in another buffer, which is as large.
    pub fn copied_into(&self, mut bytes: Box<[u8]>) -> Self {
        if bytes.len() != self.bytes.len() {
            return self.clone();
        }
        bytes.copy_from_slice(&self.bytes);
        Self { bytes, ..*self }
    }

    /// Creates a packet from `bytes`, which begin with the IP header and may end in padding.
    ///
    /// The TCP header of a signed segment is hidden: a signature covers the window, so nobody may write one.
    ///
    /// A connection that is not tracked from its SYN must not reach elements which keep state for each flow: see
    /// [`RealPacket::hide_tcp`].
    pub fn new(bytes: impl Into<Box<[u8]>>, flow: FlowId) -> Self {
        let bytes = bytes.into();
        let headers = Headers::parse(&bytes);
        let options = match headers.transport {
            Transport::Tcp { offset, payload } => TcpOptions::parse(&bytes[offset + 20..payload]),
            _ => TcpOptions::default(),
        };
        let shows_tcp = matches!(headers.transport, Transport::Tcp { .. }) && !options.signed;
        Self { bytes, headers, options, flow, shows_tcp, checksum: TransportChecksum::Complete }
    }

    /// Hides the TCP header, so that [`Packet::tcp`] returns `None`.
    #[must_use]
    pub fn hide_tcp(mut self) -> Self {
        self.shows_tcp = false;
        self
    }

    /// Sets whether the transport checksum is present.
    #[must_use]
    pub fn with_checksum(mut self, checksum: TransportChecksum) -> Self {
        self.checksum = checksum;
        self
    }

    /// The bytes of the packet, with all changes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the buffer with the bytes of the packet.
    pub fn into_bytes(self) -> Box<[u8]> {
        self.bytes
    }

    /// The positions of the packet's headers.
    pub fn headers(&self) -> &Headers {
        &self.headers
    }

    fn tcp_offset(&self) -> usize {
        match self.headers.transport {
            Transport::Tcp { offset, .. } => offset,
            _ => 0, // never shown: `Packet::tcp` answers `None`
        }
    }

    fn u16_at(&self, at: usize) -> u16 {
        headers::be16(&self.bytes, at)
    }

    fn u32_at(&self, at: usize) -> u32 {
        u32::from(self.u16_at(at)) << 16 | u32::from(self.u16_at(at + 2))
    }

    fn put_u16(&mut self, at: usize, value: u16) {
        if let Some(field) = self.bytes.get_mut(at..at + 2) {
            field.copy_from_slice(&value.to_be_bytes());
        }
    }

    /// Writes the 16-bit word at `at` and updates the checksum at `sum` accordingly.
    fn rewrite(&mut self, at: usize, value: u16, sum: usize) {
        let updated = checksum::update(self.u16_at(sum), self.u16_at(at), value);
        self.put_u16(at, value);
        self.put_u16(sum, updated);
    }
}

impl Packet for RealPacket {
    type Tcp = Self;

    fn size(&self) -> Bytes {
        Bytes::new(self.headers.end as u64)
    }

    fn flow(&self) -> FlowId {
        self.flow
    }

    fn ecn(&self) -> Ecn {
        match self.headers.version {
            IpVersion::V4 => Ecn::from_bits(self.bytes[1]),
            IpVersion::V6 => Ecn::from_bits(self.bytes[1] >> 4),
            IpVersion::Unknown => Ecn::NotEct,
        }
    }

    fn mark_ce(&mut self) {
        match self.headers.version {
            IpVersion::V4 => self.rewrite(0, self.u16_at(0) | 0b11, 10),
            IpVersion::V6 => self.bytes[1] |= 0b11 << 4,
            IpVersion::Unknown => {}
        }
    }

    fn tcp(&mut self) -> Option<&mut Self> {
        self.shows_tcp.then_some(self)
    }

    /// Needs no state of the flow, and therefore also works for packets with a hidden TCP header.
    fn is_syn(&self) -> bool {
        let tcp = matches!(self.headers.transport, Transport::Tcp { .. });
        tcp && TcpView::flags(self).has(TcpFlags::SYN)
    }

    /// Needs no state of the flow, and therefore also works for packets with a hidden TCP header.
    fn explicit_rate(&self) -> Ern {
        match self.headers.transport {
            Transport::Tcp { offset, .. } => Ern::new(self.bytes[offset + 12], self.options.rate),
            _ => Ern::default(),
        }
    }

    fn dscp(&self) -> Option<u8> {
        match self.headers.version {
            IpVersion::V4 => Some(self.bytes[1] >> 2),
            IpVersion::V6 => Some((self.u16_at(0) >> 6) as u8 & 0x3f),
            IpVersion::Unknown => None,
        }
    }

    fn wash(&mut self) {
        match self.headers.version {
            IpVersion::V4 => self.rewrite(0, self.u16_at(0) & !0xfc, 10),
            IpVersion::V6 => self.put_u16(0, self.u16_at(0) & !0x0fc0),
            IpVersion::Unknown => {}
        }
    }
}

/// These methods are called only on the result of [`Packet::tcp`].
impl TcpView for RealPacket {
    fn flow(&self) -> FlowId {
        self.flow
    }

    fn flags(&self) -> TcpFlags {
        TcpFlags(self.u16_at(self.tcp_offset() + 12) as u8)
    }

    fn seq(&self) -> u32 {
        self.u32_at(self.tcp_offset() + 4)
    }

    fn ack(&self) -> u32 {
        self.u32_at(self.tcp_offset() + 8)
    }

    fn payload_len(&self) -> u32 {
        match self.headers.transport {
            Transport::Tcp { payload, .. } => (self.headers.end - payload) as u32,
            _ => 0,
        }
    }

    fn window(&self) -> u16 {
        self.u16_at(self.tcp_offset() + 14)
    }

    fn set_window(&mut self, window: u16) {
        let Transport::Tcp { offset, .. } = self.headers.transport else { return };
        match self.checksum {
            TransportChecksum::Complete => self.rewrite(offset + 14, window, offset + 16),
            TransportChecksum::Pending => self.put_u16(offset + 14, window),
        }
    }

    fn window_scale(&self) -> Option<u8> {
        self.options.window_scale.filter(|_| TcpView::flags(self).has(TcpFlags::SYN))
    }

    fn mss(&self) -> Option<u16> {
        self.options.mss.filter(|_| TcpView::flags(self).has(TcpFlags::SYN))
    }

    fn timestamps(&self) -> Option<Timestamps> {
        self.options.timestamps
    }
}
