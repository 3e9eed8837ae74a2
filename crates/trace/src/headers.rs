//! The bytes of simulated packets for captures: IPv4 with TCP or UDP headers, made from plain values.
//!
//! Source: RFC 791 §3.1, RFC 9293 §3.1, RFC 768, RFC 2018 §3, RFC 7323 §2.2 and §3.2, RFC 9768 §3.2. Checksums are those of a packet
//! whose payload is all zeros, which does not change them; so the payload need not be captured.

use penstock_core::packet::{AE, AccEcn, Ecn, Ern, TcpFlags, Timestamps};
use penstock_core::units::Bytes;
use penstock_core::wire::{ERN, ERN_LENGTH};

const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_UDP: u8 = 17;
/// Largest length of TCP options in bytes.
const MAX_OPTIONS: usize = 40;

/// The values in the IP header of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ip {
    /// Number of the sending host; its address is `10.a.b.c` with the lower 24 bits of the number.
    pub src: u32,
    /// Number of the receiving host; its address is `10.a.b.c` with the lower 24 bits of the number.
    pub dst: u32,
    /// ECN field of the IP header.
    pub ecn: Ecn,
}

/// The values in a TCP segment. It carries those options that are set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tcp<'a> {
    /// Values of the IP header.
    pub ip: Ip,
    /// Port of the sender.
    pub src_port: u16,
    /// Port of the receiver.
    pub dst_port: u16,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgment number.
    pub ack: u32,
    /// TCP flags.
    pub flags: TcpFlags,
    /// Window field, unscaled.
    pub window: u16,
    /// Payload in bytes.
    pub payload: Bytes,
    /// Maximum segment size; `None` leaves the option out.
    pub mss: Option<u16>,
    /// Window scale; `None` leaves the option out.
    pub window_scale: Option<u8>,
    /// True if the segment carries the option SACK-permitted.
    pub sack_permitted: bool,
    /// Timestamps; `None` leaves the option out.
    pub timestamps: Option<Timestamps>,
    /// Bits and option of explicit rate notification.
    pub ern: Ern,
    /// The flag AE of Accurate ECN; CWR and ECE are in `flags`.
    pub ae: bool,
    /// Counters of Accurate ECN; `None` leaves the option out.
    pub accecn: Option<AccEcn>,
    /// SACK blocks, each with its left and right edge. As many as fit are written: three beside timestamps, otherwise
    /// four.
    pub sack: &'a [(u32, u32)],
}

/// The values in a UDP datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Udp {
    /// Values of the IP header.
    pub ip: Ip,
    /// Port of the sender.
    pub src_port: u16,
    /// Port of the receiver.
    pub dst_port: u16,
    /// Payload in bytes.
    pub payload: Bytes,
}

/// The headers of a packet, and its length with the payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Headers {
    /// IP header, followed by the transport header.
    pub bytes: Vec<u8>,
    /// Length of the whole packet.
    pub original_len: Bytes,
}

/// Returns the address of a host: `10.a.b.c` with the lower 24 bits of its number.
pub const fn address(host: u32) -> [u8; 4] {
    let [_, a, b, c] = host.to_be_bytes();
    [10, a, b, c]
}

/// Composes the headers of a TCP segment.
pub fn tcp(segment: &Tcp<'_>) -> Headers {
    let options = tcp_options(segment);
    let mut header = Vec::with_capacity(20 + options.len());
    header.extend_from_slice(&segment.src_port.to_be_bytes());
    header.extend_from_slice(&segment.dst_port.to_be_bytes());
    header.extend_from_slice(&segment.seq.to_be_bytes());
    header.extend_from_slice(&segment.ack.to_be_bytes());
    let ae = if segment.ae { AE } else { 0 };
    header.push((((20 + options.len()) / 4) << 4) as u8 | segment.ern.bits() | ae);
    header.push(segment.flags.0);
    header.extend_from_slice(&segment.window.to_be_bytes());
    header.extend_from_slice(&[0; 4]);
    header.extend_from_slice(&options);
    packet(&segment.ip, PROTOCOL_TCP, header, 16, segment.payload)
}

/// Composes the headers of a UDP datagram.
pub fn udp(datagram: &Udp) -> Headers {
    let length = field16(8 + datagram.payload.get());
    let mut header = Vec::with_capacity(8);
    for field in [datagram.src_port, datagram.dst_port, length, 0] {
        header.extend_from_slice(&field.to_be_bytes());
    }
    let mut headers = packet(&datagram.ip, PROTOCOL_UDP, header, 6, datagram.payload);
    if headers.bytes[26..28] == [0, 0] {
        // A checksum of zero would mean that there is none (RFC 768).
        headers.bytes[26..28].copy_from_slice(&[0xff, 0xff]);
    }
    headers
}

/// Writes options in the order and with the padding of Linux, so that each 32-bit field is aligned.
fn tcp_options(segment: &Tcp<'_>) -> Vec<u8> {
    let mut options = Vec::with_capacity(MAX_OPTIONS);
    if let Some(mss) = segment.mss {
        options.extend_from_slice(&[2, 4]);
        options.extend_from_slice(&mss.to_be_bytes());
    }
    match (segment.sack_permitted, segment.timestamps) {
        (true, Some(_)) => options.extend_from_slice(&[4, 2]),
        (true, None) => options.extend_from_slice(&[1, 1, 4, 2]),
        (false, Some(_)) => options.extend_from_slice(&[1, 1]),
        (false, None) => {}
    }
    if let Some(Timestamps { val, ecr }) = segment.timestamps {
        options.extend_from_slice(&[8, 10]);
        options.extend_from_slice(&val.to_be_bytes());
        options.extend_from_slice(&ecr.to_be_bytes());
    }
    if let Some(shift) = segment.window_scale {
        options.extend_from_slice(&[1, 3, 3, shift]);
    }
    if let Some(rate) = segment.ern.rate {
        options.extend_from_slice(&[1, 1, ERN, ERN_LENGTH]);
        options.extend_from_slice(&rate.to_bytes());
    }
    if let Some(accecn) = segment.accecn {
        let length = usize::from(accecn.length());
        options.resize(options.len() + length.next_multiple_of(4) - length, 1);
        options.extend_from_slice(&accecn.to_bytes()[..length]);
    }
    let blocks = segment.sack.len().min((MAX_OPTIONS - options.len()).saturating_sub(4) / 8);
    if blocks > 0 {
        options.extend_from_slice(&[1, 1, 5, (2 + 8 * blocks) as u8]);
        for (left, right) in &segment.sack[..blocks] {
            options.extend_from_slice(&left.to_be_bytes());
            options.extend_from_slice(&right.to_be_bytes());
        }
    }
    options
}

/// Puts the IP header before `transport`, whose checksum is at `checksum_at`, and fills in both checksums.
fn packet(ip: &Ip, protocol: u8, mut transport: Vec<u8>, checksum_at: usize, payload: Bytes) -> Headers {
    let transport_len = transport.len() as u64 + payload.get();
    let original_len = Bytes::new(20 + transport_len);
    let (src, dst) = (address(ip.src), address(ip.dst));
    let mut pseudo = Vec::with_capacity(12 + transport.len());
    pseudo.extend_from_slice(&src);
    pseudo.extend_from_slice(&dst);
    pseudo.extend_from_slice(&[0, protocol]);
    pseudo.extend_from_slice(&field16(transport_len).to_be_bytes());
    pseudo.extend_from_slice(&transport);
    transport[checksum_at..checksum_at + 2].copy_from_slice(&checksum(&pseudo));

    let mut bytes = vec![0x45, ip.ecn as u8];
    bytes.extend_from_slice(&field16(original_len.get()).to_be_bytes());
    // Identification 0 is correct for packets that are never fragmented (RFC 6864 §4.1); the flag "don't fragment" is
    // set.
    bytes.extend_from_slice(&[0, 0, 0x40, 0, 64, protocol, 0, 0]);
    bytes.extend_from_slice(&src);
    bytes.extend_from_slice(&dst);
    let sum = checksum(&bytes);
    bytes[10..12].copy_from_slice(&sum);
    bytes.extend_from_slice(&transport);
    Headers { bytes, original_len }
}

/// Returns a 16-bit length; 0 if it does not fit, as in captures of packets that the network card was to split.
fn field16(length: u64) -> u16 {
    u16::try_from(length).unwrap_or(0)
}

/// Computes the Internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> [u8; 2] {
    let words = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_core::packet::{ByteCounters, RateNotice};
    use penstock_core::units::Span;

    fn plain() -> Tcp<'static> {
        Tcp {
            ip: Ip { src: 1, dst: 0x01_02_03, ecn: Ecn::Ect0 },
            src_port: 5000,
            dst_port: 80,
            seq: 1,
            ack: 2,
            flags: TcpFlags::ACK,
            window: 0x1234,
            payload: Bytes::ZERO,
            mss: None,
            window_scale: None,
            sack_permitted: false,
            timestamps: None,
            ern: Ern::default(),
            ae: false,
            accecn: None,
            sack: &[],
        }
    }

    #[test]
    fn the_checksum_is_the_one_of_rfc_1071() {
        // RFC 1071 §3: the words 0001 f203 f4f5 f6f7 sum to ddf2.
        assert_eq!(checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), (!0xddf2u16).to_be_bytes());
    }

    #[test]
    fn fields_stand_where_the_rfcs_put_them() {
        let headers = tcp(&Tcp { payload: Bytes::new(1000), ..plain() });
        let bytes = &headers.bytes;
        assert_eq!((bytes.len(), headers.original_len), (40, Bytes::new(1040)));
        assert_eq!(bytes[..4], [0x45, 2, 0x04, 0x10]);
        assert_eq!(bytes[12..20], [10, 0, 0, 1, 10, 1, 2, 3]);
        assert_eq!(bytes[20..36], [0x13, 0x88, 0, 80, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x10, 0x12, 0x34]);
        assert_eq!(checksum(&bytes[..20]), [0, 0], "a header with its checksum sums to zero");
    }

    #[test]
    fn options_fill_whole_words_and_never_more_than_forty_bytes() {
        let blocks = [(1, 2), (3, 4), (5, 6), (7, 8), (9, 10)];
        let full = Tcp {
            mss: Some(1448),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: Some(Timestamps { val: 9, ecr: 8 }),
            sack: &blocks,
            ..plain()
        };
        let rate = RateNotice::new(Bytes::new(10_720), Span::from_millis(100));
        let ern = Ern { capable: true, tells_rate: true, rate: Some(rate) };
        let cases = [
            (full, 20 + 20 + 20),
            (Tcp { sack: &[], ..full }, 20 + 20),
            (Tcp { timestamps: Some(Timestamps { val: 1, ecr: 2 }), sack: &blocks, ..plain() }, 20 + 12 + 28),
            (Tcp { sack: &blocks, ..plain() }, 20 + 36),
            (Tcp { ern, ..plain() }, 20 + 8),
            (Tcp { ern, timestamps: Some(Timestamps { val: 1, ecr: 2 }), sack: &blocks, ..plain() }, 20 + 12 + 8 + 20),
            (Tcp { window_scale: Some(2), ..plain() }, 20 + 4),
        ];
        for (segment, header_len) in cases {
            let bytes = tcp(&segment).bytes;
            assert_eq!((bytes.len() - 20, usize::from(bytes[32] >> 4) * 4), (header_len, header_len), "{segment:?}");
        }
        // Two counters of 24 bits behind their kind and length; AE is the last bit of byte 12.
        let counters = ByteCounters { ect0: 1448, ce: 0x01_0000, ect1: 1 };
        let counted = tcp(&Tcp { ae: true, accecn: Some(AccEcn::new(false, 2, &counters)), ..plain() }).bytes;
        assert_eq!(counted[32], 0x71);
        assert_eq!(counted[40..48], [172, 8, 0, 5, 168, 1, 0, 0]);
        let counted = tcp(&Tcp { accecn: Some(AccEcn::new(true, 3, &counters)), ..plain() }).bytes;
        assert_eq!(counted[40..52], [1, 174, 11, 0, 0, 1, 1, 0, 0, 0, 5, 168]);
        let told = tcp(&Tcp { ern, ..plain() }).bytes;
        assert_eq!(told[32], 0x76, "seven words, ERC and ENR");
        assert_eq!(told[40..48], [1, 1, 253, 6, 0x29, 0xe0, 0, 100]);
    }
}
