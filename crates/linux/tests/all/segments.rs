//! Frames that offloads have merged, taken apart.

use penstock_core::wire::{Headers, IpVersion};
use penstock_linux::lead::Lead;
use penstock_linux::port::{Frame, Virtio};
use penstock_linux::segments::Segments;

/// VIRTIO_NET_HDR_GSO_TCPV4, GSO_TCPV6, GSO_UDP_L4 and GSO_ECN of include/uapi/linux/virtio_net.h.
const TCP_V4: u8 = 1;
const TCP_V6: u8 = 4;
const UDP: u8 = 5;
const FIRST_CWR: u8 = 0x80;

fn get(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn put(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// The sum of words of 16 bits (RFC 1071), of an even number of bytes.
fn add(sum: u32, bytes: &[u8]) -> u32 {
    bytes.chunks(2).fold(sum, |sum, word| sum + u32::from(get(word, 0)))
}

fn folded(sum: u32) -> u16 {
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

fn lead() -> Lead {
    let bytes = [[9; 12].as_slice(), &[8, 0]].concat();
    Lead::read(&Frame { bytes: &bytes, tag: None, virtio: Virtio::default() }).unwrap().0
}

/// A packet of 2500 bytes of payload; the flags of TCP are CWR, ACK, PSH and FIN.
fn merged(v6: bool, tcp: bool) -> Vec<u8> {
    let header = if tcp { 20 } else { 8 };
    let mut ip = if v6 { vec![0; 40] } else { vec![0; 20] };
    let protocol = if tcp { 6 } else { 17 };
    if v6 {
        (ip[0], ip[6]) = (0x60, protocol);
        put(&mut ip, 4, header + 2500);
        ip[8..40].copy_from_slice(&[0xfd; 32]);
    } else {
        (ip[0], ip[8], ip[9]) = (0x45, 64, protocol);
        put(&mut ip, 2, 20 + header + 2500);
        put(&mut ip, 4, 0xffff);
        ip[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    }
    let mut transport = vec![0; usize::from(header)];
    transport[0..4].copy_from_slice(&[0x12, 0x34, 0x14, 0x51]);
    if tcp {
        transport[4..8].copy_from_slice(&u32::MAX.wrapping_sub(10).to_be_bytes());
        (transport[12], transport[13]) = (0x50, 0x99);
    }
    ip.extend(transport);
    ip.extend((0..2500).map(|n| n as u8));
    ip
}

/// The checksum over the pseudo-header and the transport, as the kernel completes it: it is right if this is zero.
fn completed(packet: &mut [u8], v6: bool, at: usize, offset: usize) -> u16 {
    let whole = |bytes: &[u8], sum: u32| {
        let odd = if bytes.len() % 2 == 1 { u32::from(bytes[bytes.len() - 1]) << 8 } else { 0 };
        folded(u32::from(folded(add(sum, &bytes[..bytes.len() / 2 * 2]))) + odd)
    };
    let sum = !whole(&packet[at..], 0);
    put(packet, at + offset, sum);
    let (addresses, protocol) = if v6 { (8..40, packet[6]) } else { (12..20, packet[9]) };
    let pseudo = add((packet.len() - at) as u32 + u32::from(protocol), &packet[addresses]);
    !whole(&packet[at..], u32::from(folded(pseudo)))
}

fn taken(ip: &[u8], kind: u8) -> Vec<(Lead, Vec<u8>)> {
    let mut segments = Segments::default();
    assert!(segments.begin(lead(), ip, &Virtio { merged: kind, size: 1000, pending: None }));
    std::iter::from_fn(|| segments.advance().map(|lead| (lead, segments.packet().to_vec()))).collect()
}

#[test]
fn tcp_is_cut_into_segments_with_their_own_headers() {
    for v6 in [false, true] {
        let at = if v6 { 40 } else { 20 };
        let ip = merged(v6, true);
        let packets = taken(&ip, if v6 { TCP_V6 } else { TCP_V4 } | FIRST_CWR);
        assert_eq!(packets.iter().map(|(_, p)| p.len()).collect::<Vec<_>>(), [at + 1020, at + 1020, at + 520]);
        let mut payload = Vec::new();
        for (number, (lead, mut packet)) in packets.into_iter().enumerate() {
            assert_eq!(lead, self::lead().with_pending(at as u16, 16));
            let headers = Headers::parse(&packet);
            assert_eq!((headers.end, headers.version == IpVersion::V6), (packet.len(), v6));
            let seq = u32::from_be_bytes(packet[at + 4..at + 8].try_into().unwrap());
            assert_eq!(seq, u32::MAX.wrapping_sub(10).wrapping_add(1000 * number as u32));
            // CWR and ACK; ACK; ACK, PSH and FIN.
            assert_eq!(packet[at + 13], [0x90, 0x10, 0x19][number]);
            if !v6 {
                assert_eq!(get(&packet, 4), 0xffff_u16.wrapping_add(number as u16));
                assert_eq!(folded(add(0, &packet[..20])), 0xffff, "the sum of a right header is all ones");
            }
            assert_eq!(completed(&mut packet, v6, at, 16), 0);
            payload.extend_from_slice(&packet[at + 20..]);
        }
        assert_eq!(payload, ip[at + 20..]);
    }
}

#[test]
fn datagrams_have_lengths_of_their_own() {
    for v6 in [false, true] {
        let at = if v6 { 40 } else { 20 };
        for (lead, mut packet) in taken(&merged(v6, false), UDP) {
            assert!(lead.is_pending());
            assert_eq!(usize::from(get(&packet, at + 4)), packet.len() - at);
            assert_eq!(completed(&mut packet, v6, at, 6), 0);
        }
    }
}

#[test]
fn without_the_mark_cwr_stays_on_all() {
    let flags: Vec<u8> = taken(&merged(false, true), TCP_V4).iter().map(|(_, packet)| packet[33]).collect();
    assert_eq!(flags, [0x90, 0x90, 0x99]);
}

/// Tunnels, fragments of UFO, another version, no size, nothing to cut.
#[test]
fn what_cannot_be_cut_is_refused() {
    let mut segments = Segments::default();
    let mut begin =
        |ip: &[u8], merged: u8, size: u16| segments.begin(lead(), ip, &Virtio { merged, size, pending: None });
    let [tcp, udp] = [true, false].map(|tcp| merged(false, tcp));
    assert!(!begin(&udp, TCP_V4, 1000) && !begin(&tcp, UDP, 1000) && !begin(&tcp, TCP_V6, 1000));
    assert!(!begin(&udp, 3, 1000) && !begin(&tcp, TCP_V4, 0) && !begin(&tcp[..40], TCP_V4, 1000));
    assert!(!begin(&[], TCP_V4, 1000));
    for len in 0..tcp.len() {
        begin(&tcp[..len], TCP_V4, 1000);
    }
    assert!(segments.advance().is_none());
}
