//! Bytes of real packets: parsing without allocation, and rewriting that keeps checksums right.
//!
//! Follow one packet: [`Headers::parse`] finds what is where, [`FlowKey::of`] names its connection,
//! [`FlowTable::lookup`] gives the connection a dense [`FlowId`], and a [`RealPacket`] joins the three and shows itself
//! as any other [`Packet`]. Whose connection it is says [`NodeTable::number`].
//!
//! What is malformed, fragmented or of another protocol is passed on untouched: it still is a packet, but
//! [`Packet::tcp`] shows nothing of it.
//!
//! Sources: RFC 791 §3.1, RFC 8200 §3 and §4, RFC 9293 §3.1 and §3.2, RFC 7323 §2.2 and §3.2, RFC 3168 §5, RFC 1624.

pub mod checksum;
pub mod flows;
mod headers;
pub mod hosts;
mod numbers;
mod options;
#[cfg(test)]
pub(crate) mod tests;

pub use flows::{FlowKey, FlowTable, Tracking};
pub use headers::{Headers, IpVersion, Transport};
pub use hosts::{End, HostKey, NodeTable};
pub use options::{ERN, ERN_LENGTH, TcpOptions};

use crate::packet::{Ecn, Ern, FlowId, Packet, TcpFlags, TcpView};
use crate::units::Bytes;

/// Whether the transport checksum of a packet stands in its header already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TransportChecksum {
    /// It does: rewriting must keep it right.
    #[default]
    Complete,
    /// The network card is to compute it later (checksum offload): rewriting must leave it alone.
    Pending,
}

/// A packet as it came from an interface, from its IP header on.
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
    /// The packet in `bytes`, which begin with the IP header and may end in padding.
    ///
    /// Use [`FlowTable::lookup`] for `flow`. A connection the table does not track from its SYN must not reach elements
    /// that keep state per flow: see [`RealPacket::hide_tcp`].
    pub fn new(bytes: impl Into<Box<[u8]>>, flow: FlowId) -> Self {
        let bytes = bytes.into();
        let headers = Headers::parse(&bytes);
        let options = match headers.transport {
            Transport::Tcp { offset, payload } => TcpOptions::parse(&bytes[offset + 20..payload]),
            _ => TcpOptions::default(),
        };
        let shows_tcp = matches!(headers.transport, Transport::Tcp { .. });
        Self { bytes, headers, options, flow, shows_tcp, checksum: TransportChecksum::Complete }
    }

    /// The same packet with its TCP header out of sight of [`Packet::tcp`].
    #[must_use]
    pub fn hide_tcp(mut self) -> Self {
        self.shows_tcp = false;
        self
    }

    /// The same packet whose transport checksum is as told.
    #[must_use]
    pub fn with_checksum(mut self, checksum: TransportChecksum) -> Self {
        self.checksum = checksum;
        self
    }

    /// Its bytes, rewritten where they were.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Gives the buffer back.
    pub fn into_bytes(self) -> Box<[u8]> {
        self.bytes
    }

    /// What is where.
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

    /// Writes the 16-bit word at `at` and updates the checksum at `sum` for it.
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

    /// Needs no state of the flow, so it is shown of hidden connections too.
    fn explicit_rate(&self) -> Ern {
        match self.headers.transport {
            Transport::Tcp { offset, .. } => Ern::new(self.bytes[offset + 12], self.options.rate),
            _ => Ern::default(),
        }
    }
}

/// Called only on what [`Packet::tcp`] showed.
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

    fn timestamps(&self) -> Option<(u32, u32)> {
        self.options.timestamps
    }
}
