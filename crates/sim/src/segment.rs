//! The simulated packet: a TCP segment or UDP datagram as a 64-byte value, moved and never boxed.

use penstock_core::packet::{
    AccEcn, ByteCounters, Ecn, Ern, FlowId, Packet, RateNotice, TcpFlags, TcpView, Timestamps,
};
use penstock_core::units::{Bytes, Instant};
use penstock_core::wire::scone::Signal;

/// Largest number of SACK blocks in a segment, which is what fits beside timestamps (RFC 2018 §3).
pub const MAX_SACK: usize = 3;

const IP_HEADER: u8 = 20;
const UDP_HEADER: u8 = 8;
const TCP_HEADER: u8 = 20;

/// The options which only a SYN carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SynOptions {
    /// Maximum segment size in bytes.
    pub mss: u16,
    /// Window scale; `None` if it is not offered.
    pub window_scale: Option<u8>,
    /// True if SACK is permitted.
    pub sack_permitted: bool,
}

/// A packet in the simulator. It counts its payload in bytes and does not carry it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// In a queue: when the packet entered it. On a link: when the packet arrives at the end of the link.
    pub at: Instant,
    /// Number of the owner, see `numbers.rs`.
    pub flow: u32,
    /// Place of the packet's next hop in the table of routes.
    pub cursor: u32,
    /// Sequence number of the first byte; for UDP the number of the datagram.
    pub seq: u32,
    /// Acknowledgment number.
    pub ack: u32,
    /// TSval of the timestamps option; valid if [`Segment::has_timestamps`].
    pub tsval: u32,
    /// TSecr of the timestamps option; valid if [`Segment::has_timestamps`].
    pub tsecr: u32,
    /// SACK blocks; on a SYN the options of [`Segment::syn_options`]. In a segment with an ERN option the last block
    /// holds the rate, in one with an AccECN option its counters.
    blocks: [(u32, u32); MAX_SACK],
    /// Payload in bytes.
    pub len: u16,
    /// Window field of the header, unscaled.
    pub window: u16,
    /// TCP flags; zero for UDP.
    pub flags: TcpFlags,
    /// Length of the IP and transport headers in bytes.
    header: u8,
    bits: u8,
    /// Number of SACK blocks, flags of ERN, and of Accurate ECN.
    sacks: u8,
}

const ECN_MASK: u8 = 0b11;
const UDP: u8 = 1 << 2;
const TIMESTAMPS: u8 = 1 << 3;
/// The side that opened the connection sent the packet.
const FROM_CLIENT: u8 = 1 << 4;
const RETRANSMISSION: u8 = 1 << 5;
/// The queue in which the packet is, or which it just left, marked it CE.
const MARKED: u8 = 1 << 6;
/// No element of the network sees the header of the transport, as with QUIC.
const OPAQUE: u8 = 1 << 7;

// Bits of the field `sacks`:
const SACK_COUNT: u8 = 0b11;
const ERN_CAPABLE: u8 = 1 << 2;
const ERN_TELLS_RATE: u8 = 1 << 3;
const ERN_OPTION: u8 = 1 << 4;
const AE: u8 = 1 << 5;
const ACCECN_OPTION: u8 = 1 << 6;
/// The last block has a rate signal or a report of one.
const SCONE: u8 = 1 << 7;
/// Bytes of a SCONE packet with a connection ID of 8 bytes, and one of padding.
pub const SCONE_PACKET: u8 = 16;
/// Bytes of a report of a rate signal.
pub const REPORT: u8 = 8;
const RATE_BLOCK: usize = MAX_SACK - 1;
/// Beside a report: what it is not.
const SIGNAL: u32 = u32::MAX;
/// Beside the counter in the last block of a segment with an AccECN option: its order, and the number of its fields.
const ECT1_FIRST: u32 = 1 << 31;
const COUNT_SHIFT: u32 = 24;
/// Length of a SACK option with its padding, without blocks, and of a block.
const SACK_HEAD: u8 = 4;
const SACK_BLOCK: u8 = 8;

/// The payload of a UDP datagram, which has no sequence number in its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Payload {
    /// The sequence number that the application writes into the payload.
    pub seq: u32,
    /// The number of bytes of payload.
    pub len: u16,
}

impl Segment {
    /// Creates a TCP segment without options.
    pub fn tcp(flow: u32, from_client: bool, flags: TcpFlags) -> Self {
        Self {
            at: Instant::ZERO,
            flow,
            cursor: 0,
            seq: 0,
            ack: 0,
            tsval: 0,
            tsecr: 0,
            blocks: [(0, 0); MAX_SACK],
            len: 0,
            window: 0,
            flags,
            header: IP_HEADER + TCP_HEADER,
            bits: if from_client { FROM_CLIENT } else { 0 },
            sacks: 0,
        }
    }

    /// Creates a UDP datagram.
    pub fn udp(flow: u32, from_client: bool, payload: Payload) -> Self {
        let mut packet = Self::tcp(flow, from_client, TcpFlags(0));
        packet.header = IP_HEADER + UDP_HEADER;
        packet.bits |= UDP;
        packet.seq = payload.seq;
        packet.len = payload.len;
        packet
    }

    /// Adds the options of a SYN: MSS with 4 bytes, SACK-permitted with 2 (padded to 4 unless timestamps are present),
    /// scale with 3 and 1 of padding.
    pub fn set_syn_options(&mut self, options: SynOptions) {
        let scale = options.window_scale.map_or(u32::MAX, u32::from);
        self.blocks[0] = (u32::from(options.mss), scale);
        self.blocks[1].0 = u32::from(options.sack_permitted);
        let sack = if options.sack_permitted && !self.has_timestamps() { 4 } else { 0 };
        self.header += 4 + sack + if options.window_scale.is_some() { 4 } else { 0 };
    }

    /// Returns the options of a SYN; `None` on other segments.
    pub fn syn_options(&self) -> Option<SynOptions> {
        let (mss, scale) = self.blocks[0];
        self.flags.has(TcpFlags::SYN).then(|| SynOptions {
            mss: mss as u16,
            window_scale: u8::try_from(scale).ok(),
            sack_permitted: self.blocks[1].0 == 1,
        })
    }

    /// Adds timestamps: 10 bytes, padded to 12. On a SYN, SACK-permitted takes the place of the padding.
    pub fn set_timestamps(&mut self, timestamps: Timestamps) {
        (self.tsval, self.tsecr) = (timestamps.val, timestamps.ecr);
        self.bits |= TIMESTAMPS;
        self.header += 12;
    }

    /// True if the segment has the timestamps option.
    pub fn has_timestamps(&self) -> bool {
        self.bits & TIMESTAMPS != 0
    }

    /// Adds what ERN tells routers of the flow; a rate takes an option of 6 bytes, padded to 8. Must be called before
    /// SACK blocks are added, and not on a SYN.
    pub fn set_explicit_rate(&mut self, ern: Ern) {
        let bit = |on: bool, bit: u8| if on { bit } else { 0 };
        self.sacks |= bit(ern.capable, ERN_CAPABLE) | bit(ern.tells_rate, ERN_TELLS_RATE);
        if let Some(rate) = ern.rate {
            self.sacks |= ERN_OPTION;
            self.blocks[RATE_BLOCK].0 = u32::from_be_bytes(rate.to_bytes());
            self.header += 8;
        }
    }

    /// Adds one SACK block, its left and its right edge. A block is left out if the segment has [`MAX_SACK`] blocks already, or one less beside a
    /// rate. Must not be called on a SYN.
    pub fn add_sack(&mut self, block: (u32, u32)) {
        let n = usize::from(self.sacks & SACK_COUNT);
        let room = if self.sacks & (ERN_OPTION | ACCECN_OPTION | SCONE) == 0 { MAX_SACK } else { RATE_BLOCK };
        if n < room {
            self.header += if n == 0 { SACK_HEAD + SACK_BLOCK } else { SACK_BLOCK };
            self.blocks[n] = block;
            self.sacks += 1;
        }
    }

    /// Returns the field ACE of Accurate ECN (RFC 9768 §3.2.2): the flags AE, CWR and ECE as a number.
    pub fn ace(&self) -> u8 {
        let bit = |on: bool, value: u8| if on { value } else { 0 };
        let ae = bit(self.sacks & AE != 0, 4);
        ae | bit(self.flags.has(TcpFlags::CWR), 2) | bit(self.flags.has(TcpFlags::ECE), 1)
    }

    /// Sets the flags AE, CWR and ECE from a number of three bits.
    pub fn set_ace(&mut self, ace: u8) {
        self.sacks = (self.sacks & !AE) | if ace & 4 == 0 { 0 } else { AE };
        self.flags = self.flags.without(TcpFlags::CWR.with(TcpFlags::ECE));
        for (bit, flag) in [(2, TcpFlags::CWR), (1, TcpFlags::ECE)] {
            if ace & bit != 0 {
                self.flags = self.flags.with(flag);
            }
        }
    }

    /// Adds an AccECN option, padded to whole words, after the SACK blocks. The third block gives way to it. Must not be
    /// called with three fields beside two blocks or more and timestamps, nor in a segment with a rate.
    pub fn set_accecn(&mut self, option: &AccEcn) {
        let blocks = self.sacks & SACK_COUNT;
        debug_assert!(
            self.sacks & ERN_OPTION == 0 && (option.fields().len() < 3 || blocks < 2 || !self.has_timestamps())
        );
        if usize::from(blocks) > RATE_BLOCK {
            self.sacks -= 1;
            self.header -= SACK_BLOCK;
        }
        let mut fields = [0; 3];
        fields[3 - option.fields().len()..].copy_from_slice(option.fields());
        let order = if option.ect1_first() { ECT1_FIRST } else { 0 };
        if option.fields().len() == 3 && usize::from(self.sacks & SACK_COUNT) == RATE_BLOCK {
            self.tsval = fields[0]; // without timestamps there is room for both
        } else if option.fields().len() == 3 {
            self.blocks[RATE_BLOCK - 1].1 = fields[0]; // a SYN has its own options before it
        }
        self.blocks[RATE_BLOCK] = (fields[1], fields[2] | order | (option.fields().len() as u32) << COUNT_SHIFT);
        self.sacks |= ACCECN_OPTION;
        self.header += option.length().next_multiple_of(4);
    }

    /// Returns the AccECN option; `None` without one.
    pub fn accecn(&self) -> Option<AccEcn> {
        let (second, last) = self.blocks[RATE_BLOCK];
        let (count, ect1_first) = (last >> COUNT_SHIFT & 3, last & ECT1_FIRST != 0);
        let first =
            if usize::from(self.sacks & SACK_COUNT) == RATE_BLOCK { self.tsval } else { self.blocks[RATE_BLOCK - 1].1 };
        let all = [first, second, last];
        let field = |place: u32| if place < count { all[(3 - count + place) as usize] } else { 0 };
        let (first, last) = (field(0), field(2));
        let (ect0, ect1) = if ect1_first { (last, first) } else { (first, last) };
        let counters = ByteCounters { ect0, ce: field(1), ect1 };
        (self.sacks & ACCECN_OPTION != 0).then(|| AccEcn::new(ect1_first, count as u8, &counters))
    }

    /// Adds a SCONE packet whose signal is not known. Must be called before SACK blocks are added, not on a SYN, and not with
    /// a rate or an AccECN option.
    pub fn ask_for_advice(&mut self) {
        debug_assert!(self.sacks & (ERN_OPTION | ACCECN_OPTION) == 0);
        self.sacks |= SCONE;
        self.blocks[RATE_BLOCK] = (Signal::UNKNOWN.get().into(), SIGNAL);
        self.header += SCONE_PACKET;
    }

    /// Adds a report of a rate signal with its number; the same restrictions as with [`Segment::ask_for_advice`].
    pub fn report_advice(&mut self, (signal, number): (Signal, u16)) {
        debug_assert!(self.sacks & (ERN_OPTION | ACCECN_OPTION) == 0);
        self.sacks |= SCONE;
        self.blocks[RATE_BLOCK] = (signal.get().into(), number.into());
        self.header += REPORT;
    }

    fn advice(&self) -> Option<(Signal, u32)> {
        let (signal, number) = self.blocks[RATE_BLOCK];
        (self.sacks & SCONE != 0).then_some((Signal::new(signal as u8), number))
    }

    /// Returns the signal of the SCONE packet; `None` without one.
    pub fn rate_signal(&self) -> Option<Signal> {
        self.advice().filter(|(_, number)| *number == SIGNAL).map(|(signal, _)| signal)
    }

    /// Lowers the signal of the SCONE packet, if there is one and it is higher.
    pub fn lower_rate_signal(&mut self, to: Signal) {
        if self.rate_signal().is_some_and(|is| to < is) {
            self.blocks[RATE_BLOCK].0 = to.get().into();
        }
    }

    /// Returns the reported signal with its number; `None` without one.
    pub fn reported_advice(&self) -> Option<(Signal, u16)> {
        self.advice().and_then(|(signal, number)| Some((signal, u16::try_from(number).ok()?)))
    }

    /// Hides the header of the transport from elements of the network.
    pub fn set_opaque(&mut self) {
        self.bits |= OPAQUE;
    }

    /// Returns the SACK blocks, most recent first.
    pub fn sacks(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.sacks & SACK_COUNT)]
    }

    /// True for a UDP datagram.
    pub fn is_udp(&self) -> bool {
        self.bits & UDP != 0
    }

    /// True if the side that opened the connection sent the packet.
    pub fn from_client(&self) -> bool {
        self.bits & FROM_CLIENT != 0
    }

    /// Sets the ECN field of the IP header.
    pub fn set_ecn(&mut self, ecn: Ecn) {
        self.bits = (self.bits & !ECN_MASK) | ecn as u8;
    }

    /// Marks the segment as a retransmission, for traces and statistics.
    pub fn set_retransmission(&mut self) {
        self.bits |= RETRANSMISSION;
    }

    /// True if the segment is a retransmission.
    pub fn is_retransmission(&self) -> bool {
        self.bits & RETRANSMISSION != 0
    }

    /// True if the queue in which the packet is, or which it just left, marked it CE.
    pub fn is_marked(&self) -> bool {
        self.bits & MARKED != 0
    }

    /// Forgets the mark of the last queue, when the packet enters the next one. The ECN field keeps CE.
    pub fn clear_marked(&mut self) {
        self.bits &= !MARKED;
    }

    /// Returns the length in sequence space: payload, plus one each for SYN and FIN.
    pub fn sequence_len(&self) -> u32 {
        let one = |flag| u32::from(self.flags.has(flag));
        u32::from(self.len) + one(TcpFlags::SYN) + one(TcpFlags::FIN)
    }
}

impl Packet for Segment {
    type Tcp = Self;

    #[inline]
    fn size(&self) -> Bytes {
        Bytes::new(u64::from(self.len) + u64::from(self.header))
    }
    #[inline]
    fn flow(&self) -> FlowId {
        FlowId(self.flow)
    }
    #[inline]
    fn ecn(&self) -> Ecn {
        Ecn::from_bits(self.bits)
    }
    fn mark_ce(&mut self) {
        self.set_ecn(Ecn::Ce);
        self.bits |= MARKED;
    }
    #[inline]
    fn tcp(&mut self) -> Option<&mut Self> {
        (self.bits & (UDP | OPAQUE) == 0).then_some(self)
    }
    fn explicit_rate(&self) -> Ern {
        let has = |bit| self.sacks & bit != 0;
        let rate = has(ERN_OPTION).then(|| RateNotice::from_bytes(self.blocks[RATE_BLOCK].0.to_be_bytes())).flatten();
        Ern { capable: has(ERN_CAPABLE), tells_rate: has(ERN_TELLS_RATE), rate }
    }
}

impl TcpView for Segment {
    fn flow(&self) -> FlowId {
        FlowId(self.flow)
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
        u32::from(self.len)
    }
    fn window(&self) -> u16 {
        self.window
    }
    fn set_window(&mut self, window: u16) {
        self.window = window;
    }
    fn window_scale(&self) -> Option<u8> {
        self.syn_options().and_then(|o| o.window_scale)
    }
    fn mss(&self) -> Option<u16> {
        self.syn_options().map(|o| o.mss)
    }
    fn timestamps(&self) -> Option<Timestamps> {
        self.has_timestamps().then_some(Timestamps { val: self.tsval, ecr: self.tsecr })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_one_cache_line() {
        assert_eq!(size_of::<Segment>(), 64);
    }

    #[test]
    fn sizes_are_those_of_a_linux_host() {
        // 1000 bytes of payload with timestamps: the 1052-byte frame of the PINK paper.
        let mut data = Segment::tcp(0, true, TcpFlags::ACK);
        data.len = 1000;
        data.set_timestamps(Timestamps { val: 1, ecr: 2 });
        assert_eq!(data.size(), Bytes::new(1052));
        // SYN with MSS, SACK-permitted, timestamps and scale: 60 bytes of IPv4.
        let mut syn = Segment::tcp(0, true, TcpFlags::SYN);
        syn.set_timestamps(Timestamps { val: 1, ecr: 0 });
        syn.set_syn_options(SynOptions { mss: 1448, window_scale: Some(7), sack_permitted: true });
        assert_eq!(syn.size(), Bytes::new(60));
        // An ACK with timestamps and three SACK blocks: 20 + 20 + 12 + 28.
        let mut ack = Segment::tcp(0, false, TcpFlags::ACK);
        ack.set_timestamps(Timestamps { val: 1, ecr: 2 });
        for i in 0..4 {
            ack.add_sack((i, i + 1));
        }
        assert_eq!(ack.size(), Bytes::new(80));
        assert_eq!(ack.sacks().len(), 3);
    }

    #[test]
    fn an_accecn_option_takes_the_place_of_sack_blocks_and_fills_words() {
        let counters = ByteCounters { ect0: 0x11_2233, ce: 0x44_5566, ect1: 0x77_8899 };
        for (blocks, count, size, left) in
            [(0, 3, 52 + 12, 0), (1, 3, 52 + 12 + 12, 1), (2, 2, 52 + 20 + 8, 2), (3, 2, 52 + 20 + 8, 2), (3, 1, 80, 2)]
        {
            for ect1_first in [false, true] {
                let mut segment = Segment::tcp(0, true, TcpFlags::ACK);
                segment.set_timestamps(Timestamps { val: 1, ecr: 2 });
                (0..blocks).for_each(|i| segment.add_sack((i + 1, i + 2)));
                let option = AccEcn::new(ect1_first, count, &counters);
                segment.set_accecn(&option);
                assert_eq!((segment.accecn(), segment.size().get(), segment.sacks().len()), (Some(option), size, left));
                assert_eq!(segment.sacks(), &[(1, 2), (2, 3)][..left]);
            }
        }
        let mut syn = Segment::tcp(0, true, TcpFlags::SYN);
        syn.set_timestamps(Timestamps { val: 1, ecr: 0 });
        let options = SynOptions { mss: 1448, window_scale: Some(7), sack_permitted: true };
        syn.set_syn_options(options);
        assert_eq!(syn.accecn(), None);
        syn.set_accecn(&AccEcn::new(false, 3, &counters));
        assert_eq!((syn.syn_options(), syn.size().get()), (Some(options), 72));
        assert_eq!(syn.accecn(), Some(AccEcn::new(false, 3, &counters)));
    }

    #[test]
    fn three_flags_are_one_number() {
        for ace in 0..8 {
            let mut segment = Segment::tcp(0, true, TcpFlags::ACK.with(TcpFlags::ECE));
            segment.set_ace(ace);
            assert_eq!((segment.ace(), segment.flags.has(TcpFlags::ACK)), (ace, true));
            assert_eq!(
                (segment.flags.has(TcpFlags::CWR), segment.flags.has(TcpFlags::ECE)),
                (ace & 2 != 0, ace & 1 != 0)
            );
        }
    }

    #[test]
    fn a_rate_takes_eight_bytes_and_the_place_of_a_sack_block() {
        let mut segment = Segment::tcp(0, true, TcpFlags::ACK);
        assert_eq!(segment.explicit_rate(), Ern::default());
        segment.set_timestamps(Timestamps { val: 1, ecr: 2 });
        let rate = RateNotice::new(Bytes::new(1_000_000), penstock_core::units::Span::from_millis(4095));
        let told = Ern { capable: true, tells_rate: true, rate: Some(rate) };
        segment.set_explicit_rate(told);
        assert_eq!(segment.size(), Bytes::new(20 + 20 + 12 + 8));
        (0..4).for_each(|i| segment.add_sack((i, i + 1)));
        // 12 + 8 + 4 + 2 * 8 = 40, the most that options may take.
        assert_eq!(segment.size(), Bytes::new(80));
        assert_eq!(segment.sacks(), [(0, 1), (1, 2)]);
        assert_eq!(segment.explicit_rate(), told);
        let mut between = Segment::tcp(0, true, TcpFlags::ACK);
        between.set_explicit_rate(Ern { tells_rate: false, rate: None, ..told });
        (0..4).for_each(|i| between.add_sack((i, i + 1)));
        assert_eq!((between.sacks().len(), between.explicit_rate().bits()), (3, Ern::ERC));
    }
}
