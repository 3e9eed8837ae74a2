//! Reads the frames of pcap and pcapng captures one after another, with little memory.
//!
//! Source: draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng. A length that a file claims is compared with a limit
//! before anything is read, and memory grows with the bytes that are in the file, not with those that it claims. A record
//! that breaks the format is passed over, counted and told ([`Capture::odd`]), if the place of the next one is known; if it is
//! not, the file ends there with an error. Either names the packet and the byte at which its record begins.
//!
//! This reader is written by hand because files in use break what the `pcap-file` crate (2.0) demands: the crate
//! refuses a packet longer than the snap length, although snap lengths exist to cut such packets; it refuses options
//! without an end mark, which the format allows; and it reads pcapng times as nanoseconds whatever the interface says.
//! The tests use the crate as an independent writer.

use crate::error::ReadError;
use crate::link::{LinkType, UnsupportedLinkType, Way};
use crate::pcapng::DROP;
use std::io::Read;

const NS_PER_S: i128 = 1_000_000_000;

/// Largest number of bytes of one packet in a pcap file.
const MAX_RECORD: u32 = 65_535 * 16 + 1024;

/// Largest length of a block of a pcapng file, in bytes.
const MAX_BLOCK: u32 = 16 << 20;

/// Largest number of interfaces in one section of a pcapng file.
const MAX_INTERFACES: usize = 65_536;

/// The first four bytes of a pcapng file.
pub const PCAPNG_MAGIC: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

/// Returns the byte order of a pcap file and the unit of its fractions of a second in nanoseconds, from its first four
/// bytes; `None` if these are not those of a pcap file.
pub fn pcap_magic(magic: [u8; 4]) -> Option<(Order, u32)> {
    Some(match magic {
        [0xa1, 0xb2, 0xc3, 0xd4] => (Order::Big, 1000),
        [0xa1, 0xb2, 0x3c, 0x4d] => (Order::Big, 1),
        [0xd4, 0xc3, 0xb2, 0xa1] => (Order::Little, 1000),
        [0x4d, 0x3c, 0xb2, 0xa1] => (Order::Little, 1),
        _ => return None,
    })
}

/// The byte order of a file or section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Most significant byte first.
    Big,
    /// Least significant byte first.
    Little,
}

impl Order {
    /// Returns the number at `at`; zero outside of `bytes`, whose length callers have checked.
    fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let raw = bytes.get(at..at + 2).and_then(|b| b.try_into().ok()).unwrap_or_default();
        if self == Self::Big { u16::from_be_bytes(raw) } else { u16::from_le_bytes(raw) }
    }

    fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let raw = bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).unwrap_or_default();
        if self == Self::Big { u32::from_be_bytes(raw) } else { u32::from_le_bytes(raw) }
    }
}

/// What a capture says of one frame; the bytes of the frame are in the buffer that the caller passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Time in nanoseconds since 1970; `None` if the capture has no time for the frame.
    pub epoch_ns: Option<i128>,
    /// Link type, which tells where the IP header is, or the number of one that cannot be read.
    pub link: Result<LinkType, UnsupportedLinkType>,
    /// Length on the wire in bytes, with the link header.
    pub original_len: u32,
    /// Number of the interface in its section of a pcapng file; 0 in a pcap file.
    pub interface: u32,
    /// The direction that a pcapng file gives for the frame.
    pub way: Way,
    /// True if its comment says that a queue dropped it, as in a capture of the simulator ([`crate::pcapng`]).
    pub dropped: bool,
}

/// Records that break the format and were passed over.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Odd {
    /// How many there are.
    pub records: u64,
    /// What is wrong with the first, and where it is.
    pub first: Option<String>,
}

impl Odd {
    fn add(&mut self, error: &ReadError) {
        self.records += 1;
        self.first.get_or_insert_with(|| error.to_string());
    }
}

/// A capture which is being read.
#[derive(Debug)]
pub struct Capture<R> {
    bytes: Source<R>,
    kind: Kind,
    odd: Odd,
}

#[derive(Debug)]
enum Kind {
    Pcap { order: Order, fraction_ns: u32, link: Result<LinkType, UnsupportedLinkType> },
    Pcapng { order: Order, interfaces: Vec<Interface>, block: Vec<u8> },
}

impl<R: Read> Capture<R> {
    /// Reads the header of a pcap file.
    ///
    /// # Errors
    /// Returns [`ReadError::Capture`] if the header is incomplete or its version is unknown.
    pub fn pcap(reader: R) -> Result<Self, ReadError> {
        let mut bytes = Source::new("pcap", reader);
        let mut header = Vec::new();
        bytes.exactly(24, &mut header, "the file header")?;
        let magic = [header[0], header[1], header[2], header[3]];
        let (order, fraction_ns) =
            pcap_magic(magic).ok_or_else(|| bytes.error("the first four bytes are not those of a pcap file"))?;
        if order.u16(&header, 4) != 2 {
            return Err(bytes.error(format!("version {} of the format; only 2 can be read", order.u16(&header, 4))));
        }
        // The upper half of the field may hold the length of a frame check sequence.
        let link = LinkType::from_number(order.u32(&header, 20) & 0xffff);
        Ok(Self { bytes, kind: Kind::Pcap { order, fraction_ns, link }, odd: Odd::default() })
    }

    /// Reads the first block of a pcapng file.
    ///
    /// # Errors
    /// Returns [`ReadError::Capture`] if the first block is not a section header.
    pub fn pcapng(reader: R) -> Result<Self, ReadError> {
        let mut bytes = Source::new("pcapng", reader);
        let mut block = Vec::new();
        // Either byte order will do here, because the type of this block is the same in both.
        match bytes.block(Order::Little, &mut block, &mut Odd::default())? {
            Some((SECTION_HEADER, order)) => {
                Ok(Self { bytes, kind: Kind::Pcapng { order, interfaces: Vec::new(), block }, odd: Odd::default() })
            }
            _ => Err(bytes.error("the file does not begin with a section header block")),
        }
    }

    /// Returns the records that were passed over so far.
    pub fn odd(&self) -> &Odd {
        &self.odd
    }

    /// Returns the numbers of those link types that the file names and that cannot be read.
    pub fn unread_link_types(&self) -> Vec<u32> {
        let unread = |link: &Result<LinkType, UnsupportedLinkType>| link.err().map(|error| error.0);
        match &self.kind {
            Kind::Pcap { link, .. } => unread(link).into_iter().collect(),
            Kind::Pcapng { interfaces, .. } => interfaces.iter().filter_map(|one| unread(&one.link)).collect(),
        }
    }

    /// Reads the next frame and puts its captured bytes into `data`; `None` at the end of the file.
    ///
    /// # Errors
    /// Returns [`ReadError::Cut`] or [`ReadError::Capture`] with the packet and the byte at which its record begins, if the
    /// place of the next record is not known. After an error this function must not be called again.
    pub fn next_frame(&mut self, data: &mut Vec<u8>) -> Result<Option<Frame>, ReadError> {
        let Self { bytes, kind, odd } = self;
        match kind {
            Kind::Pcap { order, fraction_ns, link } => loop {
                let found = bytes.record(*order, *fraction_ns, *link, data)?;
                match found {
                    Ok(frame) => return Ok(frame),
                    Err(error) => odd.add(&error),
                }
            },
            Kind::Pcapng { order, interfaces, block } => loop {
                let Some((kind, block_order)) = bytes.block(*order, block, odd)? else { return Ok(None) };
                *order = block_order;
                let found = match kind {
                    SECTION_HEADER => {
                        interfaces.clear();
                        Ok(None)
                    }
                    INTERFACE if interfaces.len() == MAX_INTERFACES => {
                        return Err(bytes.error(format!("more than {MAX_INTERFACES} interfaces")));
                    }
                    INTERFACE => {
                        let (interface, wrong) = Interface::read(*order, block);
                        interfaces.push(interface);
                        wrong.map_or(Ok(None), Err)
                    }
                    _ => packet_block(kind, *order, block, interfaces, data),
                };
                bytes.packet += u64::from(is_packet(kind));
                match found {
                    Ok(None) => {}
                    Ok(frame) => return Ok(frame),
                    Err(what) => {
                        let packet = bytes.packet - u64::from(is_packet(kind));
                        odd.add(&bytes.error_of(packet, what.to_string()));
                    }
                }
            },
        }
    }
}

/// A source of bytes which knows where the current record began.
#[derive(Debug)]
struct Source<R> {
    format: &'static str,
    reader: R,
    /// Number of bytes read so far.
    offset: u64,
    /// Offset at which the current record or block begins.
    begin: u64,
    /// Number of the packet that is being read, beginning with 1.
    packet: u64,
}

impl<R: Read> Source<R> {
    fn new(format: &'static str, reader: R) -> Self {
        Self { format, reader, offset: 0, begin: 0, packet: 1 }
    }

    fn error(&self, what: impl Into<String>) -> ReadError {
        self.error_of(self.packet, what.into())
    }

    fn error_of(&self, packet: u64, what: String) -> ReadError {
        ReadError::Capture { format: self.format, packet, offset: self.begin, what }
    }

    fn ends(&self, what: &str, got: usize, of: u32) -> ReadError {
        let what = format!("the file ends within {what}: {got} of {of} bytes are there");
        ReadError::Cut { format: self.format, packet: self.packet, offset: self.begin, what }
    }

    /// Reads `n` bytes into `into`, or fewer at the end of the file; returns how many.
    fn up_to(&mut self, n: u32, into: &mut Vec<u8>) -> Result<usize, ReadError> {
        into.clear();
        let read = self.reader.by_ref().take(u64::from(n)).read_to_end(into);
        self.offset += into.len() as u64;
        read.map_err(|source| ReadError::Io { offset: self.offset, source })
    }

    fn exactly(&mut self, n: u32, into: &mut Vec<u8>, what: &str) -> Result<(), ReadError> {
        let got = self.up_to(n, into)?;
        if got < n as usize {
            return Err(self.ends(what, got, n));
        }
        Ok(())
    }

    /// Reads one record of a pcap file; the inner error is that of a record behind which the file goes on.
    fn record(
        &mut self,
        order: Order,
        fraction_ns: u32,
        link: Result<LinkType, UnsupportedLinkType>,
        data: &mut Vec<u8>,
    ) -> Result<Result<Option<Frame>, ReadError>, ReadError> {
        self.begin = self.offset;
        match self.up_to(16, data)? {
            0 => return Ok(Ok(None)),
            16 => {}
            got => return Err(self.ends("a packet header", got, 16)),
        }
        let [seconds, fraction, captured, original_len] = [0, 4, 8, 12].map(|at| order.u32(data, at));
        if captured > MAX_RECORD {
            return Err(self.error(format!("{captured} captured bytes; at most {MAX_RECORD} are allowed")));
        }
        let ns = i128::from(fraction) * i128::from(fraction_ns);
        self.exactly(captured, data, "a packet")?;
        self.packet += 1;
        if ns >= NS_PER_S {
            let what = format!("the fraction of its time, {fraction}, is more than a second");
            return Ok(Err(self.error_of(self.packet - 1, what)));
        }
        let epoch_ns = Some(i128::from(seconds) * NS_PER_S + ns);
        Ok(Ok(Some(Frame { epoch_ns, link, original_len, interface: 0, way: Way::Unknown, dropped: false })))
    }

    /// Reads one block of a pcapng file and puts its body into `body`; returns the type of the block and the byte order
    /// from it on.
    fn block(&mut self, order: Order, body: &mut Vec<u8>, odd: &mut Odd) -> Result<Option<(u32, Order)>, ReadError> {
        self.begin = self.offset;
        match self.up_to(12, body)? {
            0 => return Ok(None),
            12 => {}
            got => return Err(self.ends("a block header", got, 12)),
        }
        let order = if body[..4] == PCAPNG_MAGIC { self.section_order(body)? } else { order };
        let (kind, length) = (order.u32(body, 0), order.u32(body, 4));
        if length % 4 != 0 || !(12..=MAX_BLOCK).contains(&length) {
            return Err(self.error(format!(
                "a block of {length} bytes; a block has 12 to {MAX_BLOCK} bytes, in whole words of 4"
            )));
        }
        let first_word = [body[8], body[9], body[10], body[11]];
        let mut trailer = order.u32(&first_word, 0);
        if length > 12 {
            self.exactly(length - 12, body, "a block")?;
            trailer = order.u32(body, body.len() - 4);
            body.truncate(body.len() - 4);
            body.splice(0..0, first_word);
        } else {
            body.clear();
        }
        if trailer != length {
            odd.add(&self.error(format!("a block that begins with length {length} ends with length {trailer}")));
        }
        Ok(Some((kind, order)))
    }

    fn section_order(&self, header: &[u8]) -> Result<Order, ReadError> {
        match header[8..12] {
            [0x1a, 0x2b, 0x3c, 0x4d] => Ok(Order::Big),
            [0x4d, 0x3c, 0x2b, 0x1a] => Ok(Order::Little),
            _ => Err(self.error("a section header without its byte-order mark")),
        }
    }
}

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

fn is_packet(kind: u32) -> bool {
    matches!(kind, OBSOLETE_PACKET | SIMPLE_PACKET | ENHANCED_PACKET)
}

/// Options of a packet block.
const COMMENT: u16 = 1;
const FLAGS: u16 = 2;

/// A block of a pcapng file that violates the format, or whose packet cannot be read.
#[derive(Debug, thiserror::Error)]
enum BlockError {
    #[error("an interface block with a body of {0} bytes; at least 8 are needed")]
    ShortInterface(usize),
    #[error("an option that is longer than its block")]
    LongOption,
    #[error("if_tsresol is {0}; 0 to 19 and 128 to 191 are allowed")]
    Resolution(u8),
    #[error("a packet block with a body of {length} bytes; at least {needed} are needed")]
    ShortPacket { length: usize, needed: usize },
    #[error("interface {id} is not described; {described} are")]
    UnknownInterface { id: u32, described: usize },
    #[error("{captured} captured bytes in a block that has room for {room}")]
    LongPacket { captured: u32, room: usize },
    #[error("interface {0} is described with an error")]
    OddInterface(u32),
}

/// An interface of a pcapng section.
#[derive(Debug, Clone)]
struct Interface {
    /// The link type, or why it cannot be read, which is an error only if a packet refers to the interface.
    link: Result<LinkType, UnsupportedLinkType>,
    snaplen: u32,
    /// The unit of times; `None` if it is not known, so that no packet of the interface can be read.
    resolution: Option<Resolution>,
    /// Seconds that are added to every time.
    offset_s: i64,
}

/// The unit of timestamps.
#[derive(Debug, Clone, Copy)]
enum Resolution {
    /// A unit of 10^-n seconds.
    Decimal(u32),
    /// A unit of 2^-n seconds.
    Binary(u32),
}

impl Resolution {
    fn from_option(value: u8) -> Result<Self, BlockError> {
        match (value & 0x80, u32::from(value & 0x7f)) {
            (0, n) if n <= 19 => Ok(Self::Decimal(n)),
            (0x80, n) if n <= 63 => Ok(Self::Binary(n)),
            _ => Err(BlockError::Resolution(value)),
        }
    }

    fn nanoseconds(self, ticks: u64) -> i128 {
        let scaled = i128::from(ticks) * NS_PER_S;
        match self {
            Self::Decimal(n) => scaled / 10i128.pow(n),
            Self::Binary(n) => scaled >> n,
        }
    }
}

impl Interface {
    /// Reads the description of an interface, as far as it is right, and returns what is wrong with it.
    fn read(order: Order, body: &[u8]) -> (Self, Option<BlockError>) {
        let mut interface = Self {
            link: LinkType::from_number(u32::from(order.u16(body, 0))),
            snaplen: order.u32(body, 4),
            resolution: Some(Resolution::Decimal(6)),
            offset_s: 0,
        };
        if body.len() < 8 {
            interface.resolution = None;
            return (interface, Some(BlockError::ShortInterface(body.len())));
        }
        let mut at = 8;
        while body.len() >= at + 4 {
            let (code, length) = (order.u16(body, at), usize::from(order.u16(body, at + 2)));
            let Some(value) = body.get(at + 4..at + 4 + length) else {
                return (interface, Some(BlockError::LongOption));
            };
            match (code, length) {
                (0, _) => break,
                (9, 1) => match Resolution::from_option(value[0]) {
                    Ok(resolution) => interface.resolution = Some(resolution),
                    Err(wrong) => {
                        interface.resolution = None;
                        return (interface, Some(wrong));
                    }
                },
                (14, 8) => interface.offset_s = offset_option(order, value),
                _ => {}
            }
            at += 4 + length.next_multiple_of(4);
        }
        (interface, None)
    }
}

fn offset_option(order: Order, value: &[u8]) -> i64 {
    let (first, second) = (u64::from(order.u32(value, 0)), u64::from(order.u32(value, 4)));
    let (high, low) = if order == Order::Big { (first, second) } else { (second, first) };
    (high << 32 | low) as i64
}

/// Reads the frame of a packet block and puts its bytes into `data`; `None` for blocks without a packet.
fn packet_block(
    kind: u32,
    order: Order,
    body: &[u8],
    interfaces: &[Interface],
    data: &mut Vec<u8>,
) -> Result<Option<Frame>, BlockError> {
    let fixed = match kind {
        ENHANCED_PACKET | OBSOLETE_PACKET => 20,
        SIMPLE_PACKET => 4,
        _ => return Ok(None),
    };
    if body.len() < fixed {
        return Err(BlockError::ShortPacket { length: body.len(), needed: fixed });
    }
    let id = match kind {
        ENHANCED_PACKET => order.u32(body, 0),
        OBSOLETE_PACKET => u32::from(order.u16(body, 0)),
        _ => 0,
    };
    let interface =
        interfaces.get(id as usize).ok_or(BlockError::UnknownInterface { id, described: interfaces.len() })?;
    let (captured, original_len, epoch_ns) = if kind == SIMPLE_PACKET {
        let original = order.u32(body, 0);
        let limit = if interface.snaplen == 0 { u32::MAX } else { interface.snaplen };
        // The block does not give the captured length, which is as much of the packet as the block can hold.
        (original.min(limit).min((body.len() - fixed) as u32), original, None)
    } else {
        let ticks = u64::from(order.u32(body, 4)) << 32 | u64::from(order.u32(body, 8));
        let resolution = interface.resolution.ok_or(BlockError::OddInterface(id))?;
        let ns = resolution.nanoseconds(ticks) + i128::from(interface.offset_s) * NS_PER_S;
        (order.u32(body, 12), order.u32(body, 16), Some(ns))
    };
    let frame = body
        .get(fixed..fixed.saturating_add(captured as usize))
        .ok_or(BlockError::LongPacket { captured, room: body.len() - fixed })?;
    data.clear();
    data.extend_from_slice(frame);
    let options = body.get(fixed + (captured as usize).next_multiple_of(4)..).filter(|_| kind == ENHANCED_PACKET);
    let (way, dropped) = options.map_or((Way::Unknown, false), |options| marks(order, options));
    Ok(Some(Frame { epoch_ns, link: interface.link, original_len, interface: id, way, dropped }))
}

/// Finds in the options of a block the direction of its frame (`epb_flags`), and whether a comment says that it was dropped.
fn marks(order: Order, options: &[u8]) -> (Way, bool) {
    let (mut at, mut way, mut dropped) = (0, Way::Unknown, false);
    while let Some(rest) = options.get(at + 4..) {
        let (code, length) = (order.u16(options, at), usize::from(order.u16(options, at + 2)));
        match (code, length) {
            (0, _) => break,
            (COMMENT, _) => dropped |= rest.starts_with(DROP.as_bytes()),
            (FLAGS, 4) => {
                way = match order.u32(rest, 0) & 3 {
                    1 => Way::In,
                    2 => Way::Out,
                    _ => Way::Unknown,
                }
            }
            _ => {}
        }
        at += 4 + length.next_multiple_of(4);
    }
    (way, dropped)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
    use pcap_file::pcapng::PcapNgWriter;
    use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
    use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
    use pcap_file::{DataLink, Endianness, TsResolution};
    use proptest::prelude::*;
    use std::borrow::Cow;
    use std::time::Duration;

    type Seen = (Option<i128>, u32, Vec<u8>);

    fn all(capture: Result<Capture<&[u8]>, ReadError>) -> Result<Vec<Seen>, ReadError> {
        let (mut capture, mut seen, mut data) = (capture?, Vec::new(), Vec::new());
        while let Some(frame) = capture.next_frame(&mut data)? {
            seen.push((frame.epoch_ns, frame.original_len, data.clone()));
        }
        Ok(seen)
    }

    fn pcap_of(endianness: Endianness, ts_resolution: TsResolution) -> Vec<u8> {
        let header = PcapHeader { datalink: DataLink::RAW, ts_resolution, endianness, ..PcapHeader::default() };
        let mut writer = PcapWriter::with_header(Vec::new(), header).unwrap();
        for (ns, bytes) in [(1_700_000_000_123_456_000, &b"first"[..]), (1_700_000_001_000_000_000, b"")] {
            writer.write_packet(&PcapPacket::new(Duration::from_nanos(ns), 1500, bytes)).unwrap();
        }
        writer.into_writer()
    }

    #[test]
    fn pcap_is_read_in_both_orders_and_both_resolutions() {
        for endianness in [Endianness::Big, Endianness::Little] {
            for resolution in [TsResolution::MicroSecond, TsResolution::NanoSecond] {
                let seen = all(Capture::pcap(&pcap_of(endianness, resolution)[..])).unwrap();
                assert_eq!(seen[0], (Some(1_700_000_000_123_456_000), 1500, b"first".to_vec()));
                assert_eq!(seen[1], (Some(1_700_000_001_000_000_000), 1500, Vec::new()));
                assert_eq!(seen.len(), 2);
            }
        }
    }

    #[test]
    fn a_packet_longer_than_the_snap_length_is_read() {
        let mut file = pcap_of(Endianness::Little, TsResolution::MicroSecond);
        file[16..20].copy_from_slice(&96u32.to_le_bytes());
        assert_eq!(all(Capture::pcap(&file[..])).unwrap().len(), 2);
    }

    fn pcapng_of(endianness: Endianness, options: Vec<InterfaceDescriptionOption<'static>>, ticks: u64) -> Vec<u8> {
        let mut writer = PcapNgWriter::with_endianness(Vec::new(), endianness).unwrap();
        let interface = InterfaceDescriptionBlock { linktype: DataLink::RAW, snaplen: 0, options };
        writer.write_pcapng_block(interface).unwrap();
        let packet = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: Duration::from_nanos(ticks),
            original_len: 1500,
            data: Cow::Borrowed(b"first"),
            options: vec![],
        };
        writer.write_pcapng_block(packet).unwrap();
        writer.into_inner()
    }

    #[test]
    fn pcapng_times_follow_the_resolution_of_their_interface() {
        use InterfaceDescriptionOption::{IfTsOffset, IfTsResol};
        let ticks = 3 << 30;
        // The unit is 10^-6 s by default; 10^-9 s; 2^-30 s, where 3 * 2^30 units are three seconds; and with an offset
        // of 2^33 seconds.
        let cases = [
            (vec![], i128::from(ticks) * 1000),
            (vec![IfTsResol(9)], i128::from(ticks)),
            (vec![IfTsResol(0x80 | 30)], 3 * NS_PER_S),
            (vec![IfTsResol(9), IfTsOffset(1 << 33)], i128::from(ticks) + (1 << 33) * NS_PER_S),
        ];
        for (options, ns) in cases {
            for endianness in [Endianness::Big, Endianness::Little] {
                let seen = all(Capture::pcapng(&pcapng_of(endianness, options.clone(), ticks)[..])).unwrap();
                assert_eq!(seen, [(Some(ns), 1500, b"first".to_vec())]);
            }
        }
    }

    #[test]
    fn every_cut_is_an_error_with_its_place_or_a_shorter_trace() {
        let pcap = pcap_of(Endianness::Little, TsResolution::NanoSecond);
        for cut in 0..pcap.len() {
            match all(Capture::pcap(&pcap[..cut])) {
                Ok(seen) => assert!([24, 45].contains(&cut), "{cut}: {seen:?}"),
                Err(ReadError::Cut { packet, offset, what, .. }) => {
                    let begin = if cut < 24 {
                        0
                    } else if cut < 45 {
                        24
                    } else {
                        45
                    };
                    assert_eq!((offset, packet), (begin, if begin == 45 { 2 } else { 1 }), "{cut}: {what}");
                    assert!(what.contains("ends within"), "{what}");
                }
                Err(other) => panic!("{other}"),
            }
        }
    }

    #[test]
    fn claimed_lengths_beyond_reason_are_refused() {
        let mut pcap = pcap_of(Endianness::Little, TsResolution::NanoSecond);
        pcap[32..36].copy_from_slice(&u32::MAX.to_le_bytes());
        let message = all(Capture::pcap(&pcap[..])).unwrap_err().to_string();
        assert_eq!(message, "pcap: packet 1, at byte 24: 4294967295 captured bytes; at most 1049584 are allowed");
        let mut ng = pcapng_of(Endianness::Little, vec![], 0);
        let second_block = u32::from_le_bytes(ng[4..8].try_into().unwrap()) as usize;
        ng[second_block + 4..second_block + 8].copy_from_slice(&0xffff_fffcu32.to_le_bytes());
        let message = all(Capture::pcapng(&ng[..])).unwrap_err().to_string();
        assert!(message.contains("a block of 4294967292 bytes"), "{message}");
    }

    /// A little-endian block.
    fn block(kind: u32, body: &[u8]) -> Vec<u8> {
        let length = (12 + body.len() as u32).to_le_bytes();
        [&kind.to_le_bytes()[..], &length, body, &length].concat()
    }

    /// A section with one interface for raw IP with nanoseconds and snap length 3, whose options have no end mark.
    fn section(then: &[Vec<u8>]) -> Vec<u8> {
        let header = [0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255];
        let interface = [101, 0, 0, 0, 3, 0, 0, 0, 9, 0, 1, 0, 9, 0, 0, 0];
        [block(SECTION_HEADER, &header), block(INTERFACE, &interface), then.concat()].concat()
    }

    #[test]
    fn options_without_an_end_mark_and_unknown_blocks_are_read_over() {
        let packet = [0, 0, 0, 0, 0, 0, 0, 0, 77, 0, 0, 0, 1, 0, 0, 0, 40, 0, 0, 0, b'x', 0, 0, 0];
        let ng = section(&[block(0x0bad, &[1, 2, 3, 4]), block(0x0bad, &[]), block(ENHANCED_PACKET, &packet)]);
        assert_eq!(all(Capture::pcapng(&ng[..])).unwrap(), [(Some(77), 40, b"x".to_vec())]);
    }

    #[test]
    fn older_and_simpler_packet_blocks_are_read() {
        // A packet of interface 0, with 9 drops before it; then a packet without a time, of which only the snap length
        // was captured.
        let old = [0, 0, 9, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 40, 0, 0, 0, b'o', b'k', 0, 0];
        let simple = [40, 0, 0, 0, b'a', b'b', b'c', 0];
        let ng = section(&[block(OBSOLETE_PACKET, &old), block(SIMPLE_PACKET, &simple)]);
        let expected = [(Some(1 << 32), 40, b"ok".to_vec()), (None, 40, b"abc".to_vec())];
        assert_eq!(all(Capture::pcapng(&ng[..])).unwrap(), expected);
    }

    #[test]
    fn the_direction_of_a_packet_is_that_of_its_flags() {
        let packet = |options: &[u8]| {
            let fixed = [0, 0, 0, 0, 0, 0, 0, 0, 77, 0, 0, 0, 1, 0, 0, 0, 40, 0, 0, 0, b'x', 0, 0, 0];
            block(ENHANCED_PACKET, &[&fixed[..], options].concat())
        };
        let comment = [1, 0, 2, 0, b'h', b'i', 0, 0];
        let cases = [
            (packet(&[&comment[..], &[2, 0, 4, 0, 1, 0, 0, 0]].concat()), Way::In),
            (packet(&[2, 0, 4, 0, 0x12, 0, 0, 0]), Way::Out),
            (packet(&[2, 0, 4, 0, 0, 0, 0, 0]), Way::Unknown),
            (packet(&[0, 0, 0, 0, 2, 0, 4, 0, 1, 0, 0, 0]), Way::Unknown),
            (packet(&comment), Way::Unknown),
            (packet(&[]), Way::Unknown),
        ];
        for (bytes, way) in cases {
            let file = section(&[bytes]);
            let frame = Capture::pcapng(&file[..]).unwrap().next_frame(&mut Vec::new()).unwrap().unwrap();
            assert_eq!((frame.way, frame.interface, frame.dropped), (way, 0, false));
        }
        let reason = [&[1, 0, 10, 0][..], b"drop_early", &[0, 0, 2, 0, 4, 0, 2, 0, 0, 0]].concat();
        let file = section(&[packet(&reason)]);
        let frame = Capture::pcapng(&file[..]).unwrap().next_frame(&mut Vec::new()).unwrap().unwrap();
        assert_eq!((frame.way, frame.dropped), (Way::Out, true));
    }

    /// The frames of a file, and what was told of records that were passed over.
    fn with_odd(file: &[u8]) -> (Vec<Seen>, u64, String) {
        let mut capture = if file[0] == 10 { Capture::pcapng(file) } else { Capture::pcap(file) }.unwrap();
        let (mut seen, mut data) = (Vec::new(), Vec::new());
        while let Some(frame) = capture.next_frame(&mut data).unwrap() {
            seen.push((frame.epoch_ns, frame.original_len, data.clone()));
        }
        let odd = capture.odd().clone();
        (seen, odd.records, odd.first.unwrap_or_default())
    }

    #[test]
    fn interfaces_end_with_their_section() {
        let packet = [0; 20];
        let mut ng = [section(&[]), section(&[block(ENHANCED_PACKET, &packet)])].concat();
        assert_eq!(all(Capture::pcapng(&ng[..])).unwrap().len(), 1);
        ng.extend_from_slice(&section(&[])[..28]);
        ng.extend_from_slice(&block(ENHANCED_PACKET, &packet));
        let (seen, odd, first) = with_odd(&ng);
        assert_eq!((seen.len(), odd), (1, 1));
        assert!(first.contains("packet 2") && first.contains("interface 0 is not described; 0 are"), "{first}");
    }

    #[test]
    fn odd_records_are_passed_over_and_the_first_is_told() {
        let good =
            block(ENHANCED_PACKET, &[0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0, 40, 0, 0, 0, b'x', 0, 0, 0]);
        let long =
            block(ENHANCED_PACKET, &[0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 9, 0, 0, 0, 40, 0, 0, 0, b'x', 0, 0, 0]);
        let short = block(ENHANCED_PACKET, &[0; 8]);
        // The unit of times of the second interface is 10^-20 s, which no clock has.
        let unit = block(INTERFACE, &[101, 0, 0, 0, 3, 0, 0, 0, 9, 0, 1, 0, 20, 0, 0, 0]);
        let of_it = block(ENHANCED_PACKET, &[1, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 40, 0, 0, 0]);
        let (seen, odd, first) = with_odd(&section(&[good.clone(), long, short, unit, of_it, good.clone()]));
        assert_eq!((seen.len(), odd), (2, 4), "{first}");
        assert!(
            first.contains("packet 2") && first.contains("9 captured bytes in a block that has room for 4"),
            "{first}"
        );
        let mut trailer = good.clone();
        let end = trailer.len() - 4;
        trailer[end] ^= 4;
        let (seen, odd, first) = with_odd(&section(&[trailer, good]));
        assert_eq!((seen.len(), odd), (2, 1), "{first}");
        let mut pcap = pcap_of(Endianness::Little, TsResolution::NanoSecond);
        pcap[28..32].copy_from_slice(&2_000_000_000u32.to_le_bytes());
        let (seen, odd, first) = with_odd(&pcap);
        assert_eq!((seen.len(), odd), (1, 1));
        assert!(first.starts_with("pcap: packet 1, at byte 24: the fraction of its time"), "{first}");
    }

    proptest! {
        #[test]
        fn damage_never_panics(at in 0usize..200, value: u8, big: bool) {
            let endianness = if big { Endianness::Big } else { Endianness::Little };
            for file in [pcap_of(endianness, TsResolution::MicroSecond), pcapng_of(endianness, vec![], 5)] {
                let mut damaged = file;
                let at = at % damaged.len();
                damaged[at] = value;
                let _ = all(Capture::pcap(&damaged[..]));
                let _ = all(Capture::pcapng(&damaged[..]));
            }
        }
    }
}
