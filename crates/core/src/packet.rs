//! What an algorithm may see of a packet, whoever owns it: a simulated segment, a trace record or a real buffer.

use crate::units::Bytes;

/// The index of a flow in whatever table its owner keeps: dense and small, so that per-flow state is an array.
/// Both directions of a connection share one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u32);

/// The ECN field of the IP header (RFC 3168 §5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable.
    #[default]
    NotEct = 0,
    /// ECN-capable, ECT(1); an L4S identifier in RFC 9331.
    Ect1 = 1,
    /// ECN-capable, ECT(0).
    Ect0 = 2,
    /// Congestion experienced.
    Ce = 3,
}

impl Ecn {
    /// The field from its two bits; higher bits are ignored.
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::NotEct,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Ce,
        }
    }
    /// True when a queue may mark this packet instead of dropping it.
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }
}

/// The flags of a TCP header, as its byte 13 carries them (RFC 9293 §3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct TcpFlags(pub u8);

impl TcpFlags {
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronize sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgment field is significant.
    pub const ACK: Self = Self(0x10);
    /// ECN echo (RFC 3168).
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced (RFC 3168).
    pub const CWR: Self = Self(0x80);

    /// True when every flag of `other` is set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
    /// Both sets together.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A packet in a queue.
pub trait Packet {
    /// How this packet shows its TCP header.
    type Tcp: TcpView;

    /// Size on the link the queue feeds.
    fn size(&self) -> Bytes;
    /// The flow it belongs to.
    fn flow(&self) -> FlowId;
    /// Its ECN field.
    fn ecn(&self) -> Ecn;
    /// Sets the ECN field to CE; called only when [`Ecn::is_capable`].
    fn mark_ce(&mut self);
    /// Its TCP header, if it is an unfragmented TCP segment.
    fn tcp(&mut self) -> Option<&mut Self::Tcp>;
}

/// A TCP segment whose window may be rewritten.
pub trait TcpView {
    /// The flow it belongs to; the same for both directions.
    fn flow(&self) -> FlowId;
    /// Flags.
    fn flags(&self) -> TcpFlags;
    /// Sequence number of its first byte.
    fn seq(&self) -> u32;
    /// Acknowledgment number; significant only with [`TcpFlags::ACK`].
    fn ack(&self) -> u32;
    /// Bytes of payload.
    fn payload_len(&self) -> u32;
    /// The window field as it stands in the header, unscaled.
    fn window(&self) -> u16;
    /// Rewrites the window field and leaves the checksum correct.
    fn set_window(&mut self, window: u16);
    /// The window scale option; present only on a SYN (RFC 7323 §2.2).
    fn window_scale(&self) -> Option<u8>;
    /// The MSS option; present only on a SYN.
    fn mss(&self) -> Option<u16>;
    /// The timestamps option as (TSval, TSecr) (RFC 7323 §3.2).
    fn timestamps(&self) -> Option<(u32, u32)>;
}

/// The TCP header of packets that never have one; no value of it exists.
#[derive(Debug, Clone, Copy)]
pub enum NoTcp {}

impl TcpView for NoTcp {
    fn flow(&self) -> FlowId {
        match *self {}
    }
    fn flags(&self) -> TcpFlags {
        match *self {}
    }
    fn seq(&self) -> u32 {
        match *self {}
    }
    fn ack(&self) -> u32 {
        match *self {}
    }
    fn payload_len(&self) -> u32 {
        match *self {}
    }
    fn window(&self) -> u16 {
        match *self {}
    }
    fn set_window(&mut self, _: u16) {
        match *self {}
    }
    fn window_scale(&self) -> Option<u8> {
        match *self {}
    }
    fn mss(&self) -> Option<u16> {
        match *self {}
    }
    fn timestamps(&self) -> Option<(u32, u32)> {
        match *self {}
    }
}
