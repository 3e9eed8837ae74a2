//! Comparison with etherparse: fields are equal, and checksums are correct after any rewriting.

use super::*;
use crate::packet::RateNotice;
use crate::units::Span;
use etherparse::{IpFragOffset, PacketBuilder, SlicedPacket, TcpOptionElement, TcpSlice, TransportSlice};
use proptest::prelude::*;

const FLOW: FlowId = FlowId(3);

/// The fields of a segment that a test can choose.
#[derive(Debug, Clone)]
struct Choice {
    v6: bool,
    ports: (u16, u16),
    seq: u32,
    ack: u32,
    window: u16,
    syn: bool,
    tos: u8,
    options: Vec<TcpOptionElement>,
    payload: Vec<u8>,
}

fn build(choice: &Choice) -> Vec<u8> {
    let builder = if choice.v6 {
        PacketBuilder::ipv6([0x20; 16], [0x31; 16], 64)
    } else {
        PacketBuilder::ipv4([10, 0, 0, 1], [192, 168, 7, 9], 64)
    };
    let mut tcp = builder.tcp(choice.ports.0, choice.ports.1, choice.seq, choice.window).ack(choice.ack);
    if choice.syn {
        tcp = tcp.syn();
    }
    let tcp = tcp.options(&choice.options).unwrap();
    let mut bytes = Vec::new();
    tcp.write(&mut bytes, &choice.payload).unwrap();
    set_tos(&mut bytes, choice.tos);
    bytes
}

/// Sets the whole TOS byte or traffic class and recomputes the header checksum.
fn set_tos(bytes: &mut [u8], tos: u8) {
    if bytes[0] >> 4 == 6 {
        bytes[0] = 0x60 | tos >> 4;
        bytes[1] = bytes[1] & 0xf | tos << 4;
    } else {
        bytes[1] = tos;
        let header = etherparse::Ipv4HeaderSlice::from_slice(bytes).unwrap().to_header();
        bytes[10..12].copy_from_slice(&header.calc_header_checksum().to_be_bytes());
    }
}

/// Checks that both checksums equal those which etherparse computes.
pub(crate) fn assert_checksums(bytes: &[u8]) {
    let sliced = SlicedPacket::from_ip(bytes).unwrap();
    let Some(TransportSlice::Tcp(tcp)) = sliced.transport else { panic!("no TCP in {bytes:?}") };
    let right = if bytes[0] >> 4 == 6 {
        tcp.calc_checksum_ipv6(bytes[8..24].try_into().unwrap(), bytes[24..40].try_into().unwrap()).unwrap()
    } else {
        let header = etherparse::Ipv4HeaderSlice::from_slice(bytes).unwrap();
        assert_eq!(header.header_checksum(), header.to_header().calc_header_checksum(), "IPv4 header checksum");
        tcp.calc_checksum_ipv4(header.source(), header.destination()).unwrap()
    };
    assert_eq!(tcp.checksum(), right, "TCP checksum");
}

fn oracle(bytes: &[u8]) -> TcpSlice<'_> {
    match SlicedPacket::from_ip(bytes).unwrap().transport {
        Some(TransportSlice::Tcp(tcp)) => tcp,
        other => panic!("no TCP: {other:?}"),
    }
}

fn choices() -> impl Strategy<Value = Choice> {
    let option = prop_oneof![
        Just(TcpOptionElement::Noop),
        any::<u16>().prop_map(TcpOptionElement::MaximumSegmentSize),
        any::<u8>().prop_map(TcpOptionElement::WindowScale),
        Just(TcpOptionElement::SelectiveAcknowledgementPermitted),
        any::<(u32, u32)>().prop_map(|(a, b)| TcpOptionElement::Timestamp(a, b)),
    ];
    let numbers = (any::<(u16, u16)>(), any::<u32>(), any::<u32>(), any::<u16>());
    let rest = (any::<bool>(), any::<bool>(), any::<u8>(), prop::collection::vec(option, 0..4));
    (numbers, rest, prop::collection::vec(any::<u8>(), 0..64)).prop_map(
        |((ports, seq, ack, window), (v6, syn, tos, options), payload)| Choice {
            v6,
            ports,
            seq,
            ack,
            window,
            syn,
            tos,
            options,
            payload,
        },
    )
}

fn plain() -> Choice {
    Choice {
        v6: false,
        ports: (443, 50000),
        seq: 1,
        ack: 2,
        window: 3,
        syn: false,
        tos: 2,
        options: vec![],
        payload: vec![7; 5],
    }
}

#[test]
fn fragments_are_passed_on_untouched() {
    for fragment in [(true, 0), (false, 8), (true, 8)] {
        let mut header =
            etherparse::Ipv4Header::new(32, 64, etherparse::IpNumber::TCP, [1, 2, 3, 4], [5, 6, 7, 8]).unwrap();
        header.more_fragments = fragment.0;
        header.fragment_offset = IpFragOffset::try_new(fragment.1).unwrap();
        header.header_checksum = header.calc_header_checksum();
        let mut bytes = header.to_bytes().to_vec();
        bytes.extend([0x50; 32]);
        let mut packet = RealPacket::new(bytes.clone(), FLOW);
        assert!(packet.tcp().is_none(), "{fragment:?}");
        assert_eq!(packet.headers().transport, Transport::Other(6));
        assert_eq!(packet.bytes(), bytes);
    }
}

#[test]
fn ipv6_extension_headers_are_stepped_over_but_not_a_fragment_header() {
    let whole = build(&Choice { v6: true, ..plain() });
    // Hop-by-hop options of 8 bytes (PadN of 4), then TCP.
    let with_extension = |kind: u8| {
        let mut bytes = whole[..40].to_vec();
        bytes[6] = kind;
        let length = (whole.len() - 40 + 8) as u16;
        bytes[4..6].copy_from_slice(&length.to_be_bytes());
        bytes.extend([6, 0, 1, 4, 0, 0, 0, 0]);
        bytes.extend(&whole[40..]);
        bytes
    };
    let mut packet = RealPacket::new(with_extension(0), FLOW);
    let tcp = packet.tcp().expect("TCP behind hop-by-hop options");
    tcp.set_window(999);
    assert_checksums(packet.bytes());
    assert!(RealPacket::new(with_extension(44), FLOW).tcp().is_none(), "a fragment header");
}

#[test]
fn other_protocols_and_broken_headers_show_no_tcp() {
    let good = build(&plain());
    let broken = |edit: fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        edit(&mut bytes);
        RealPacket::new(bytes, FLOW).tcp().is_none()
    };
    assert!(!broken(|_| {}));
    assert!(broken(|b| b[9] = 47), "GRE");
    assert!(broken(|b| b[0] = 0x44), "an IP header of 16 bytes");
    assert!(broken(|b| b[0] = 0x55), "IP version 5");
    assert!(broken(|b| b[2] = 1), "a total length beyond the buffer");
    assert!(broken(|b| b[3] = 39), "a TCP header cut short");
    assert!(broken(|b| b[32] = 0x40), "a TCP header of 16 bytes");
    assert!(broken(|b| b[32] = 0xf0), "a TCP header beyond the packet");
    assert!(broken(Vec::clear));
}

/// RFC 768: two ports, length and checksum are 8 bytes. RFC 8200 §3: a header of IPv6 has 40.
#[test]
fn a_header_that_is_cut_short_is_not_shown() {
    for (length, shown) in [(27, Transport::Other(17)), (28, Transport::Udp { offset: 20 })] {
        let mut bytes = build(&plain());
        bytes.truncate(length);
        (bytes[3], bytes[9]) = (length as u8, 17);
        assert_eq!(Headers::parse(&bytes).transport, shown, "{length} bytes");
    }
    let mut bytes = [0; 40];
    (bytes[0], bytes[6]) = (0x60, 59); // no next header
    assert_eq!(Headers::parse(&bytes).version, IpVersion::V6);
    assert_eq!(Headers::parse(&bytes[..39]).version, IpVersion::Unknown);
}

#[test]
fn padding_is_neither_payload_nor_size() {
    let mut bytes = build(&plain());
    let size = bytes.len() as u64;
    bytes.resize(64, 0);
    let mut packet = RealPacket::new(bytes, FLOW);
    assert_eq!(packet.size().get(), size);
    assert_eq!(packet.tcp().unwrap().payload_len(), 5);
}

#[test]
fn a_pending_checksum_is_left_to_the_card() {
    let bytes = build(&plain());
    let before = oracle(&bytes).checksum();
    let mut packet = RealPacket::new(bytes, FLOW).with_checksum(TransportChecksum::Pending);
    packet.tcp().unwrap().set_window(77);
    assert_eq!(oracle(packet.bytes()).window_size(), 77);
    assert_eq!(oracle(packet.bytes()).checksum(), before);
}

#[test]
fn both_directions_have_one_key_and_another_port_has_another() {
    let key = |bytes: &[u8]| FlowKey::of(bytes, &Headers::parse(bytes)).unwrap();
    let there = build(&plain());
    let mut back = there.clone();
    back[12..16].copy_from_slice(&there[16..20]);
    back[16..20].copy_from_slice(&there[12..16]);
    back[20..22].copy_from_slice(&there[22..24]);
    back[22..24].copy_from_slice(&there[20..22]);
    assert_eq!(key(&there), key(&back));
    assert_ne!(key(&there), key(&build(&Choice { ports: (443, 50001), ..plain() })));
    // The ports are swapped but not the addresses: this is another connection.
    assert_ne!(key(&there), key(&build(&Choice { ports: (50000, 443), ..plain() })));
}

#[test]
fn a_syn_is_known_although_its_header_is_hidden() {
    let is_syn = |bytes: Vec<u8>| RealPacket::new(bytes, FLOW).hide_tcp().is_syn();
    assert!(!is_syn(build(&plain())));
    let bytes = build(&Choice { syn: true, ..plain() });
    assert!(is_syn(bytes.clone()));
    assert!(!is_syn(bytes[..33].to_vec()), "no whole header");
}

#[test]
fn a_rate_is_read_from_the_bits_and_the_option() {
    for v6 in [false, true] {
        let options = vec![TcpOptionElement::Noop; 8];
        let mut bytes = build(&Choice { v6, options, ..plain() });
        let tcp = if v6 { 40 } else { 20 };
        let nothing = RealPacket::new(bytes.clone(), FLOW).explicit_rate();
        assert_eq!(nothing, Ern::default());
        bytes[tcp + 12] |= 0b0110; // ERC, ENR
        bytes[tcp + 22..tcp + 28].copy_from_slice(&[ERN, ERN_LENGTH, 0x29, 0xe0, 0x10, 100]);
        // 0x29e0 = 10720, shifted by 1.
        let rate = RateNotice::new(Bytes::new(21_440), Span::from_millis(100));
        let mut told = RealPacket::new(bytes, FLOW).hide_tcp();
        assert_eq!(told.explicit_rate().rate.map(|r| (r.cwnd(), r.rtt())), Some((rate.cwnd(), rate.rtt())));
        assert_eq!(told.explicit_rate().bits(), 0b0110);
        told.mark_ce();
        assert_eq!(told.explicit_rate().bits(), 0b0110);
    }
    let mut bytes = build(&plain());
    bytes[9] = 17; // not TCP
    assert_eq!(RealPacket::new(bytes, FLOW).explicit_rate(), Ern::default());
}

#[test]
fn hidden_tcp_is_not_shown() {
    assert!(RealPacket::new(build(&plain()), FLOW).hide_tcp().tcp().is_none());
}

proptest! {
    #[test]
    fn fields_are_those_etherparse_reads(choice in choices()) {
        let bytes = build(&choice);
        let mut packet = RealPacket::new(bytes.clone(), FLOW);
        prop_assert_eq!(packet.ecn(), Ecn::from_bits(choice.tos));
        prop_assert_eq!(packet.size().get(), bytes.len() as u64);
        let tcp = packet.tcp().expect("TCP");
        let right = oracle(&bytes);
        prop_assert_eq!((tcp.seq(), tcp.ack(), tcp.window()), (choice.seq, choice.ack, choice.window));
        prop_assert_eq!(tcp.flags().has(TcpFlags::SYN), right.syn());
        prop_assert!(tcp.flags().has(TcpFlags::ACK));
        prop_assert_eq!(tcp.payload_len() as usize, right.payload().len());
        let first = |pick: fn(&TcpOptionElement) -> Option<u64>| {
            right.options_iterator().filter_map(Result::ok).find_map(|o| pick(&o))
        };
        let mss = first(|o| if let TcpOptionElement::MaximumSegmentSize(v) = o { Some((*v).into()) } else { None });
        let scale = first(|o| if let TcpOptionElement::WindowScale(v) = o { Some((*v).into()) } else { None });
        let stamps =
            first(|o| if let TcpOptionElement::Timestamp(a, b) = o { Some(u64::from(*a) << 32 | u64::from(*b)) } else { None });
        prop_assert_eq!(tcp.mss().map(u64::from), mss.filter(|_| choice.syn));
        prop_assert_eq!(tcp.window_scale().map(u64::from), scale.filter(|_| choice.syn));
        prop_assert_eq!(tcp.timestamps().map(|stamps| u64::from(stamps.val) << 32 | u64::from(stamps.ecr)), stamps);
    }

    /// Any sequence of rewrites leaves both checksums equal to recomputed ones.
    #[test]
    fn checksums_survive_any_rewriting(choice in choices(), steps in prop::collection::vec(any::<Option<u16>>(), 0..20)) {
        let mut packet = RealPacket::new(build(&choice), FLOW);
        for step in steps {
            match step {
                Some(window) => packet.tcp().unwrap().set_window(window),
                None if packet.ecn().is_capable() => packet.mark_ce(),
                None => {}
            }
            assert_checksums(packet.bytes());
        }
    }

    /// Only the window, the ECN bits and the checksums change.
    #[test]
    fn rewriting_touches_nothing_else(choice in choices(), window: u16) {
        let bytes = build(&choice);
        let mut packet = RealPacket::new(bytes.clone(), FLOW);
        packet.tcp().unwrap().set_window(window);
        let offset = if choice.v6 { 40 } else { 20 };
        for (at, (new, old)) in packet.bytes().iter().zip(&bytes).enumerate() {
            prop_assert!(new == old || (offset + 14..offset + 18).contains(&at), "byte {}", at);
        }
    }

    /// Random bytes, and truncated or modified real packets, never cause a panic, and a TCP header that is shown lies
    /// within the buffer.
    #[test]
    fn no_bytes_make_it_panic(choice in choices(), noise in prop::collection::vec(any::<u8>(), 0..120),
                              cut in 0..120usize, bent in prop::collection::vec((0..60usize, any::<u8>()), 0..4)) {
        let mut bytes = build(&choice);
        bytes.truncate(cut);
        for (at, value) in bent {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
        }
        for bytes in [bytes, noise] {
            let before = bytes.len();
            let _ = FlowKey::with_side(&bytes, &Headers::parse(&bytes));
            let mut packet = RealPacket::new(bytes, FLOW);
            packet.mark_ce();
            if let Some(tcp) = packet.tcp() {
                tcp.set_window(5);
                prop_assert_eq!(tcp.window(), 5);
                let _ = (tcp.flags(), tcp.seq(), tcp.ack(), tcp.payload_len(), tcp.mss(), tcp.timestamps());
            }
            prop_assert!(packet.size().get() as usize <= before);
            prop_assert_eq!(packet.into_bytes().len(), before);
        }
    }
}
