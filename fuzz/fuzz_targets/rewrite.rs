//! Any bytes as a packet whose window is rewritten, which is marked, and whose rate signal is lowered if it is one of SCONE: no
//! panic, and only these fields and their checksums change; a signal never rises. A checksum keeps its difference from the correct value, and a correct checksum stays correct to
//! the bit.
#![no_main]

use libfuzzer_sys::fuzz_target;
use penstock_core::packet::{Ecn, FlowId, Packet, TcpView};
use penstock_core::wire::scone::Signal;
use penstock_core::wire::{FlowKey, Headers, IpVersion, RealPacket, Transport, TransportChecksum};

/// The ones' complement sum of the words, as its residue modulo 65535: a slow and simple version of RFC 1071 §1.
fn residue(bytes: &[u8]) -> u64 {
    bytes.chunks(2).map(|w| u64::from(w[0]) << 8 | u64::from(*w.get(1).unwrap_or(&0))).sum::<u64>() % 0xffff
}

/// Computes the checksum of these bytes, in which the field of the checksum is zero.
fn checksum(bytes: &[u8]) -> [u8; 2] {
    let mut sum: u32 = bytes.chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(*w.get(1).unwrap_or(&0))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}

/// Writes the correct checksum of `covered` at `at`.
fn make_right(covered: &mut [u8], at: usize) {
    covered[at..at + 2].fill(0);
    let right = checksum(covered);
    covered[at..at + 2].copy_from_slice(&right);
}

/// Lists the places at which two packets of the same length differ.
fn changed(before: &[u8], after: &[u8]) -> Vec<usize> {
    assert_eq!(before.len(), after.len());
    (0..before.len()).filter(|at| before[*at] != after[*at]).collect()
}

/// Rewrites the window, with checksums as they come, or made correct before if `right` is true.
fn set_window(mut bytes: Vec<u8>, window: u16, offset: usize, end: usize, right: bool) {
    let sum = offset + 16;
    if right {
        make_right(&mut bytes[offset..end], 16);
    }
    let mut packet = RealPacket::new(bytes.clone(), FlowId(0));
    let tcp = packet.tcp().expect("a TCP header was found");
    let kept = (tcp.flags(), tcp.seq(), tcp.ack(), tcp.payload_len(), tcp.mss(), tcp.window_scale(), tcp.timestamps());
    tcp.set_window(window);
    assert_eq!(tcp.window(), window);
    let after = (tcp.flags(), tcp.seq(), tcp.ack(), tcp.payload_len(), tcp.mss(), tcp.window_scale(), tcp.timestamps());
    assert_eq!(kept, after);
    let after = packet.into_bytes();
    assert!(changed(&bytes, &after).iter().all(|at| (sum - 2..sum + 2).contains(at)));
    assert_eq!(residue(&bytes[offset..end]), residue(&after[offset..end]));
    if right && after[offset..end].iter().enumerate().any(|(at, byte)| *byte != 0 && !(16..18).contains(&at)) {
        let mut fresh = after.to_vec();
        make_right(&mut fresh[offset..end], 16);
        assert_eq!(fresh[..], after[..], "a right checksum stays right to the bit");
    }
    let mut pending = RealPacket::new(bytes.clone(), FlowId(0)).with_checksum(TransportChecksum::Pending);
    pending.tcp().expect("a TCP header was found").set_window(window);
    assert!(changed(&bytes, pending.bytes()).iter().all(|at| (sum - 2..sum).contains(at)));
}

fn mark(mut bytes: Vec<u8>, version: IpVersion, right: bool) {
    let header = usize::from(bytes[0] & 0xf) * 4;
    if right && version == IpVersion::V4 {
        make_right(&mut bytes[..header], 10);
    }
    let mut packet = RealPacket::new(bytes.clone(), FlowId(0));
    if !packet.ecn().is_capable() {
        return;
    }
    packet.mark_ce();
    assert_eq!(packet.ecn(), Ecn::Ce);
    let after = packet.into_bytes();
    let may_change: &[usize] = if version == IpVersion::V4 { &[1, 10, 11] } else { &[1] };
    assert!(changed(&bytes, &after).iter().all(|at| may_change.contains(at)));
    if version == IpVersion::V4 {
        assert_eq!(residue(&bytes[..header]), residue(&after[..header]));
        if right {
            assert_eq!(checksum(&after[..header]), [0, 0], "a right checksum stays right");
        }
    }
}

/// Writes the correct checksum of a datagram with its pseudo header, or none.
fn sum_datagram(bytes: &mut [u8], version: IpVersion, offset: usize, checksummed: bool) {
    let length = usize::from(u16::from_be_bytes([bytes[offset + 4], bytes[offset + 5]]));
    bytes[offset + 6..offset + 8].fill(0);
    if checksummed {
        let addresses = if version == IpVersion::V4 { 12..20 } else { 8..40 };
        let covered = [&bytes[addresses], &[0, 17, bytes[offset + 4], bytes[offset + 5]], &bytes[offset..offset + length]];
        let sum = checksum(&covered.concat());
        bytes[offset + 6..offset + 8].copy_from_slice(if sum == [0, 0] { &[0xff, 0xff] } else { &sum });
    }
}

/// Lowers the rate signal of a datagram, with its checksum as it comes, made correct, and without one.
fn lower(mut bytes: Vec<u8>, version: IpVersion, offset: usize, to: Signal) {
    for made in [None, Some(true), Some(false)] {
        let Some(is) = RealPacket::new(bytes.clone(), FlowId(0)).rate_signal() else { return };
        if let Some(checksummed) = made {
            sum_datagram(&mut bytes, version, offset, checksummed);
        }
        let mut packet = RealPacket::new(bytes.clone(), FlowId(0));
        assert_eq!(packet.lower_rate_signal(to), to < is);
        assert_eq!(packet.rate_signal(), Some(is.min(to)), "it never rises");
        let after = packet.into_bytes();
        assert!(changed(&bytes, &after).iter().all(|at| (offset + 6..offset + 10).contains(at)));
        if let Some(checksummed) = made {
            let mut fresh = after.to_vec();
            sum_datagram(&mut fresh, version, offset, checksummed);
            assert_eq!(fresh[..], after[..], "a right checksum stays right to the bit, and none stays none");
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((window, bytes)) = data.split_first_chunk::<2>() else { return };
    let window = u16::from_be_bytes(*window);
    let headers = Headers::parse(bytes);
    assert!(headers.end <= bytes.len());
    assert_eq!(FlowKey::of(bytes, &headers).is_none(), headers.version == IpVersion::Unknown);
    let mut packet = RealPacket::new(bytes, FlowId(0));
    assert_eq!(packet.tcp().is_some(), matches!(headers.transport, Transport::Tcp { .. }));
    if headers.version == IpVersion::Unknown {
        packet.mark_ce();
        assert_eq!(packet.bytes(), bytes, "what is not understood passes untouched");
        return;
    }
    assert!(packet.tcp().is_some() || !packet.is_syn());
    if packet.tcp().is_none() {
        packet.set_window(window);
        assert_eq!(packet.bytes(), bytes, "there is no window");
    }
    match headers.transport {
        Transport::Udp { offset } => lower(bytes.to_vec(), headers.version, offset, Signal::new(window as u8)),
        _ => assert_eq!(packet.rate_signal(), None),
    }
    for right in [false, true] {
        mark(bytes.to_vec(), headers.version, right);
        if let Transport::Tcp { offset, payload } = headers.transport {
            assert!(offset + 20 <= payload && payload <= headers.end);
            set_window(bytes.to_vec(), window, offset, headers.end, right);
        }
    }
});
