//! What an algorithm may see of a packet. The packet may be a simulated segment, a record of a trace or a real buffer.

mod accecn;

pub use accecn::{AE, AccEcn, ByteCounters};

use crate::units::{Bytes, Span};

/// The index of a flow in the table of flows which the owner of the discipline keeps. Indices are dense and small, so
/// that per-flow state is an array. Both directions of a connection have one index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u32);

/// The number of a node: a subscriber, which may own many flows. The owner of the table of flows tells a discipline
/// which flow belongs to which node ([`Fact::Owner`](crate::fact::Fact::Owner)), so packets do not carry the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

impl NodeId {
    /// The node of flows which belong to no node. A discipline that divides a link among nodes gives them nothing.
    pub const NOBODY: Self = Self(u32::MAX);
}

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
    /// Congestion experienced (CE): a queue on the path marked the packet.
    Ce = 3,
}

impl Ecn {
    /// Decodes the field from its two bits; higher bits are ignored.
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::NotEct,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Ce,
        }
    }
    /// Returns true if a queue may mark this packet instead of dropping it.
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }
}

/// The flags of a TCP header, as its byte 13 carries them (RFC 9293 §3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct TcpFlags(pub u8);

impl TcpFlags {
    /// FIN: the sender has no more data.
    pub const FIN: Self = Self(0x01);
    /// SYN: the sequence number is the initial one of its sender.
    pub const SYN: Self = Self(0x02);
    /// RST: the connection is reset.
    pub const RST: Self = Self(0x04);
    /// PSH: the receiver should hand the data to its application at once.
    pub const PSH: Self = Self(0x08);
    /// ACK: the acknowledgment field is significant.
    pub const ACK: Self = Self(0x10);
    /// ECE, ECN echo: the receiver saw a mark (RFC 3168 §6.1).
    pub const ECE: Self = Self(0x40);
    /// CWR, congestion window reduced: the sender reacted to the echo (RFC 3168 §6.1).
    pub const CWR: Self = Self(0x80);

    /// Returns the set without the flags of `other`.
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
    /// Returns true if every flag of `other` is set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
    /// Returns the union of the two sets of flags.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The timestamps option of a TCP header (RFC 7323 §3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Timestamps {
    /// TSval: the clock of the sender.
    pub val: u32,
    /// TSecr, the echo: a TSval that the sender received.
    pub ecr: u32,
}

/// The rate of a flow as its sender tells it: the option of explicit rate notification (document 003 §III.A).
///
/// The congestion window is coded in 16 bits and a shift of 4 bits, the round trip time in 12 bits of milliseconds, 1
/// to
/// 4095. The rate is their quotient.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RateNotice {
    cwnd: u16,
    /// The shift in the upper 4 bits and the round trip time in the lower 12 bits, which are never all 0.
    shift_rtt: u16,
}

impl RateNotice {
    /// The largest congestion window which the option can tell.
    pub const MAX_CWND: Bytes = Bytes::new(0xffff << 15);
    /// The longest round trip time which the option can tell: 4095 ms.
    pub const MAX_RTT: Span = Span::from_millis(0xfff);

    /// Codes a congestion window and a round trip time. The window is rounded down to a multiple of 2^n for the least
    /// shift n that can hold it, the round trip time to the nearest millisecond. A value out of range becomes the end
    /// of the range.
    pub fn new(cwnd: Bytes, rtt: Span) -> Self {
        let bytes = cwnd.min(Self::MAX_CWND).get();
        let shift = (u64::BITS - bytes.leading_zeros()).saturating_sub(16);
        let ms = (rtt.min(Self::MAX_RTT).as_nanos() + 500_000) / 1_000_000;
        Self { cwnd: (bytes >> shift) as u16, shift_rtt: (shift as u16) << 12 | ms.max(1) as u16 }
    }

    /// Decodes the four bytes which follow kind and length of the option. `None` if the round trip time is 0, since
    /// that gives no rate.
    pub fn from_bytes([a, b, c, d]: [u8; 4]) -> Option<Self> {
        let notice = Self { cwnd: u16::from_be_bytes([a, b]), shift_rtt: u16::from_be_bytes([c, d]) };
        (notice.rtt_ms() > 0).then_some(notice)
    }

    /// Encodes the four bytes which follow kind and length of the option.
    pub fn to_bytes(self) -> [u8; 4] {
        let ([a, b], [c, d]) = (self.cwnd.to_be_bytes(), self.shift_rtt.to_be_bytes());
        [a, b, c, d]
    }

    /// Returns the congestion window as it was coded, in bytes.
    pub fn cwnd(self) -> Bytes {
        Bytes::new(u64::from(self.cwnd) << (self.shift_rtt >> 12))
    }

    /// Returns the round trip time in milliseconds, 1 to 4095.
    pub fn rtt_ms(self) -> u16 {
        self.shift_rtt & 0xfff
    }

    /// Returns the round trip time, in whole milliseconds.
    pub fn rtt(self) -> Span {
        Span::from_millis(self.rtt_ms().into())
    }
}

/// What a packet tells routers by explicit rate notification. By default it tells nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Ern {
    /// The header bit ERC is set: the packet belongs to an ERN-capable flow.
    pub capable: bool,
    /// The header bit ENR is set: the option holds the rate. Without `capable` this bit has no meaning.
    pub tells_rate: bool,
    /// The option, if the packet has one. It does not depend on the bits, since the variant of §V uses none.
    pub rate: Option<RateNotice>,
}

impl Ern {
    /// The mask of ERC in byte 12 of a TCP header, beside the data offset (document 003, Figure 1).
    pub const ERC: u8 = 0x04;
    /// The mask of ENR in byte 12 of a TCP header (document 003, Figure 1).
    pub const ENR: u8 = 0x02;

    /// Reads the two bits from byte 12 of a TCP header and takes the option as `rate`. Other bits are ignored.
    pub const fn new(byte_12: u8, rate: Option<RateNotice>) -> Self {
        Self { capable: byte_12 & Self::ERC != 0, tells_rate: byte_12 & Self::ENR != 0, rate }
    }

    /// Returns the two bits as they stand in byte 12 of a TCP header; all other bits are 0.
    pub const fn bits(self) -> u8 {
        (if self.capable { Self::ERC } else { 0 }) | (if self.tells_rate { Self::ENR } else { 0 })
    }
}

/// An IP packet in a queue.
pub trait Packet {
    /// The view of this packet's TCP header; [`NoTcp`] for packets without one.
    type Tcp: TcpView;

    /// Returns the size of the packet on the link which the queue feeds.
    fn size(&self) -> Bytes;
    /// Returns the flow to which the packet belongs.
    fn flow(&self) -> FlowId;
    /// Returns the ECN field of the IP header.
    fn ecn(&self) -> Ecn;
    /// Sets the ECN field to CE. Called only for packets which are ECN-capable ([`Ecn::is_capable`]).
    fn mark_ce(&mut self);
    /// Returns the TCP header, or `None` unless the packet is an unfragmented TCP segment without a signature.
    fn tcp(&mut self) -> Option<&mut Self::Tcp>;
    /// True for a TCP segment with SYN, also if [`Packet::tcp`] hides it. A packet type which wraps another must pass this
    /// on.
    #[inline]
    fn is_syn(&self) -> bool {
        false
    }
    /// Returns what the packet tells of its flow's rate. A packet type which wraps another must pass this on.
    #[inline]
    fn explicit_rate(&self) -> Ern {
        Ern::default()
    }
    /// Returns the Diffserv codepoint of its IP header, 0 to 63; `None` if it shows none. A packet type which wraps another
    /// must pass this on.
    #[inline]
    fn dscp(&self) -> Option<u8> {
        None
    }
    /// Sets the codepoint, if there is one, to 0. A packet type which wraps another must pass this on.
    #[inline]
    fn wash(&mut self) {}
}

/// What carries a packet through a discipline, and is one for it: the packet, unless it says otherwise.
pub trait Carrier {
    /// The type of the packet.
    type Packet: Packet;

    /// Returns the packet.
    fn carried(&self) -> &Self::Packet;
    /// Returns the packet, to edit its headers.
    fn carried_mut(&mut self) -> &mut Self::Packet;
    /// False if its bytes stay as they are: then it is told as one that is not ECN-capable and shows no segment.
    #[inline]
    fn is_editable(&self) -> bool {
        true
    }
    /// Notes that the packet was marked CE.
    #[inline]
    fn note_mark(&mut self) {}
    /// Returns what the packet tells of its flow's rate.
    #[inline]
    fn told_rate(&self) -> Ern {
        self.carried().explicit_rate()
    }
}

impl<C: Carrier> Packet for C {
    type Tcp = <C::Packet as Packet>::Tcp;

    #[inline]
    fn size(&self) -> Bytes {
        self.carried().size()
    }
    #[inline]
    fn flow(&self) -> FlowId {
        self.carried().flow()
    }
    #[inline]
    fn ecn(&self) -> Ecn {
        if self.is_editable() { self.carried().ecn() } else { Ecn::NotEct }
    }
    #[inline]
    fn mark_ce(&mut self) {
        self.carried_mut().mark_ce();
        self.note_mark();
    }
    #[inline]
    fn tcp(&mut self) -> Option<&mut Self::Tcp> {
        if self.is_editable() { self.carried_mut().tcp() } else { None }
    }
    #[inline]
    fn is_syn(&self) -> bool {
        self.carried().is_syn()
    }
    #[inline]
    fn explicit_rate(&self) -> Ern {
        self.told_rate()
    }
    #[inline]
    fn dscp(&self) -> Option<u8> {
        self.carried().dscp()
    }
    #[inline]
    fn wash(&mut self) {
        if self.is_editable() {
            self.carried_mut().wash();
        }
    }
}

/// A TCP segment whose window may be rewritten.
pub trait TcpView {
    /// Returns the flow to which the segment belongs. Both directions of a connection are one flow.
    fn flow(&self) -> FlowId;
    /// Returns the flags of the TCP header.
    fn flags(&self) -> TcpFlags;
    /// Returns the sequence number of the first byte.
    fn seq(&self) -> u32;
    /// Returns the acknowledgment number, which is significant only with [`TcpFlags::ACK`].
    fn ack(&self) -> u32;
    /// Returns the number of bytes of payload.
    fn payload_len(&self) -> u32;
    /// Returns the window field as it stands in the header, unscaled.
    fn window(&self) -> u16;
    /// Rewrites the window field and leaves the checksum correct.
    fn set_window(&mut self, window: u16);
    /// Returns the shift of the window scale option, which only a SYN may have (RFC 7323 §2.2).
    fn window_scale(&self) -> Option<u8>;
    /// Returns the MSS option in bytes, which only a SYN may have (RFC 9293 §3.7.1).
    fn mss(&self) -> Option<u16>;
    /// Returns the timestamps option.
    fn timestamps(&self) -> Option<Timestamps>;
}

/// A TCP segment as plain values, one for each method of [`TcpView`]: a segment that was copied, recorded or made up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlainSegment {
    /// The flow of the segment; both directions of a connection are one flow.
    pub flow: FlowId,
    /// The flags of the TCP header.
    pub flags: TcpFlags,
    /// The sequence number of the first byte.
    pub seq: u32,
    /// The acknowledgment number.
    pub ack: u32,
    /// The number of bytes of payload.
    pub payload_len: u32,
    /// The window field, unscaled.
    pub window: u16,
    /// The shift of the window scale option, if the segment has one.
    pub window_scale: Option<u8>,
    /// The MSS option in bytes, if the segment has one.
    pub mss: Option<u16>,
    /// The timestamps option, if the segment has one.
    pub timestamps: Option<Timestamps>,
}

impl PlainSegment {
    /// Creates a segment without payload and options, with numbers of 0 and the largest window field.
    pub fn new(flow: FlowId, flags: TcpFlags) -> Self {
        Self {
            flow,
            flags,
            seq: 0,
            ack: 0,
            payload_len: 0,
            window: u16::MAX,
            window_scale: None,
            mss: None,
            timestamps: None,
        }
    }

    /// Copies what `segment` shows.
    pub fn of<S: TcpView>(segment: &S) -> Self {
        Self {
            flow: segment.flow(),
            flags: segment.flags(),
            seq: segment.seq(),
            ack: segment.ack(),
            payload_len: segment.payload_len(),
            window: segment.window(),
            window_scale: segment.window_scale(),
            mss: segment.mss(),
            timestamps: segment.timestamps(),
        }
    }
}

impl TcpView for PlainSegment {
    fn flow(&self) -> FlowId {
        self.flow
    }
    fn flags(&self) -> TcpFlags {
        self.flags
    }
    fn seq(&self) -> u32 {
        self.seq
    }
    fn ack(&self) -> u32 {
        self.ack
    }
    fn payload_len(&self) -> u32 {
        self.payload_len
    }
    fn window(&self) -> u16 {
        self.window
    }
    fn set_window(&mut self, window: u16) {
        self.window = window;
    }
    fn window_scale(&self) -> Option<u8> {
        self.window_scale
    }
    fn mss(&self) -> Option<u16> {
        self.mss
    }
    fn timestamps(&self) -> Option<Timestamps> {
        self.timestamps
    }
}

/// The TCP header of packets which never have one. The type has no values.
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
    fn timestamps(&self) -> Option<Timestamps> {
        match *self {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(cwnd: u64, rtt: Span) -> ([u8; 4], u64, u16) {
        let notice = RateNotice::new(Bytes::new(cwnd), rtt);
        (notice.to_bytes(), notice.cwnd().get(), notice.rtt_ms())
    }

    #[test]
    fn a_rate_is_told_in_four_bytes() {
        let ms = Span::from_millis;
        // 20 segments of 536 B are 10720 = 0x29e0; 100 ms = 0x064.
        assert_eq!(told(10_720, ms(100)), ([0x29, 0xe0, 0x00, 0x64], 10_720, 100));
        // 65536 needs a shift of 1; 1,000,001 / 16 = 62500.06, so one byte is lost with a shift of 4.
        assert_eq!(told(65_535, ms(1)), ([0xff, 0xff, 0x00, 0x01], 65_535, 1));
        assert_eq!(told(65_536, ms(1)), ([0x80, 0x00, 0x10, 0x01], 65_536, 1));
        assert_eq!(told(1_000_001, ms(4095)), ([0xf4, 0x24, 0x4f, 0xff], 1_000_000, 4095));
    }

    #[test]
    fn what_is_out_of_range_is_told_as_its_end() {
        let most = 65_535 << 15;
        assert_eq!(told(u64::MAX, Span::from_secs(5)), ([0xff, 0xff, 0xff, 0xff], most, 4095));
        assert_eq!(told(0, Span::ZERO), ([0, 0, 0, 1], 0, 1));
        assert_eq!(told(0, Span::from_micros(1499)).2, 1);
        assert_eq!(told(0, Span::from_micros(1500)).2, 2, "to the nearest millisecond");
    }

    #[test]
    fn bytes_are_read_as_they_were_written_and_no_rtt_is_no_rate() {
        for bytes in [[0x29, 0xe0, 0x00, 0x64], [0xff, 0xff, 0xff, 0xff], [0, 0, 0x10, 1]] {
            assert_eq!(RateNotice::from_bytes(bytes).unwrap().to_bytes(), bytes);
        }
        assert_eq!(RateNotice::from_bytes([0x29, 0xe0, 0xf0, 0x00]), None);
    }

    #[test]
    fn the_bits_are_beside_the_data_offset() {
        assert_eq!(Ern::new(0x50, None), Ern::default());
        assert_eq!(Ern::new(0x84, None), Ern { capable: true, ..Ern::default() });
        let both = Ern::new(0x86 | 0x01, None);
        assert_eq!((both.capable, both.tells_rate, both.bits()), (true, true, 0x06));
    }
}
