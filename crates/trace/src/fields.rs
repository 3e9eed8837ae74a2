//! The fields of the header of TCP or UDP as numbers.

use crate::link::IpPacket;
use penstock_core::wire::TcpOptions;

/// Bit of `flags`: the packet has a TCP header, which was captured.
pub const TCP: u32 = 1 << 8;
/// Bit of `flags`: the segment has timestamps.
pub const TIMESTAMPS: u32 = 1 << 9;
/// Bit of `flags`: the segment has a maximum segment size.
pub const MSS: u32 = 1 << 10;
/// Bit of `flags`: the segment has a window scale.
pub const WINDOW_SCALE: u32 = 1 << 11;
/// Bits of `flags`: FIN and PSH.
pub(crate) const FIN_PSH: u32 = 0b1001;

const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_UDP: u8 = 17;

/// Number of the fields.
pub const COUNT: usize = 9;
/// Place of the sequence number.
pub const SEQ: usize = 1;
/// Place of the bytes of payload.
pub const PAYLOAD: usize = 4;

/// Returns flags, sequence and acknowledgment number, window, payload, timestamps, maximum segment size and window scale of a
/// packet in a captured frame; zeros where there are none.
pub fn fields(packet: &IpPacket, frame: &[u8]) -> [u32; COUNT] {
    let transport = packet.transport.and_then(|at| frame.get(at..)).unwrap_or_default();
    let after_ip = packet.size.get().saturating_sub(packet.header as u64) as u32;
    match packet.protocol {
        PROTOCOL_TCP if transport.len() >= 20 => tcp(transport, after_ip),
        PROTOCOL_UDP => [0, 0, 0, 0, after_ip.saturating_sub(8), 0, 0, 0, 0],
        _ => [0; COUNT],
    }
}

/// Returns the fields of a segment whose header and data are `length` bytes.
fn tcp(header: &[u8], length: u32) -> [u32; COUNT] {
    let be16 = |at: usize| u32::from(header[at]) << 8 | u32::from(header[at + 1]);
    let be32 = |at: usize| be16(at) << 16 | be16(at + 2);
    let header_len = usize::from(header[12] >> 4) * 4;
    let options = TcpOptions::parse(&header[20..header_len.clamp(20, header.len())]);
    let bit = |present: bool, bit: u32| if present { bit } else { 0 };
    let flags = u32::from(header[13])
        | TCP
        | bit(options.timestamps.is_some(), TIMESTAMPS)
        | bit(options.mss.is_some(), MSS)
        | bit(options.window_scale.is_some(), WINDOW_SCALE);
    let stamps = options.timestamps.unwrap_or_default();
    let payload = length.saturating_sub(header_len as u32);
    let (mss, scale) = (options.mss.unwrap_or_default().into(), options.window_scale.unwrap_or_default().into());
    [flags, be32(4), be32(8), be16(14), payload, stamps.val, stamps.ecr, mss, scale]
}
