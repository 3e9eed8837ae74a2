//! The headers of a capture as columns.

use penstock_core::packet::{Ecn, Ern, TcpFlags, Timestamps};
use penstock_core::qdisc::DropReason;
use penstock_core::units::{Bytes, Instant};
use penstock_trace::headers::{Headers, Ip, Tcp, Udp, tcp, udp};
use penstock_trace::packets::{COLUMNS, MSS, Packets, TCP, TIMESTAMPS, WINDOW_SCALE};
use penstock_trace::pcapng::{Writer, drop_comment};
use penstock_trace::read::{Cutting, read};
use proptest::prelude::*;

fn ip(src: u32, dst: u32) -> Ip {
    Ip { src, dst, ecn: Ecn::Ect0 }
}

fn segment() -> Tcp<'static> {
    Tcp {
        ip: ip(1, 2),
        src_port: 40_000,
        dst_port: 443,
        seq: 0xffff_fffe,
        ack: 7,
        flags: TcpFlags::ACK,
        window: 0xfedc,
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

/// A capture at two interfaces, with a packet each microsecond.
fn capture(packets: &[(u32, Headers, bool)]) -> Packets {
    let mut writer = Writer::new(Vec::new()).unwrap();
    for name in ["out", "in"] {
        writer.add_interface(name, Bytes::ZERO).unwrap();
    }
    for (at, (interface, headers, dropped)) in packets.iter().enumerate() {
        let t = Instant::from_nanos(1000 * at as u64);
        let comment = dropped.then(|| drop_comment(DropReason::Overflow));
        writer.packet(*interface, t, headers.original_len, &headers.bytes, comment).unwrap();
    }
    Packets::of(read(&writer.finish().unwrap()[..]).unwrap()).unwrap()
}

fn column<'a>(packets: &'a Packets, name: &str) -> &'a [u32] {
    let at = COLUMNS.iter().position(|column| *column == name).unwrap();
    &packets.columns[at]
}

#[test]
fn every_field_stands_in_its_column() {
    let syn = Tcp {
        flags: TcpFlags::SYN,
        mss: Some(1448),
        window_scale: Some(9),
        timestamps: Some(Timestamps { val: 5, ecr: 0 }),
        ..segment()
    };
    let answer = Tcp { ip: ip(2, 1), src_port: 443, dst_port: 40_000, seq: 3, ..segment() };
    let data =
        Tcp { payload: Bytes::new(1000), timestamps: Some(Timestamps { val: 8, ecr: 0x8000_0001 }), ..segment() };
    let datagram = Udp { ip: ip(3, 1), src_port: 443, dst_port: 40_000, payload: Bytes::new(500) };
    let found =
        capture(&[(0, tcp(&syn), false), (1, tcp(&answer), false), (0, tcp(&data), false), (1, udp(&datagram), true)]);
    let plain = u32::from(TcpFlags::ACK.0) | TCP;
    for (name, expected) in [
        ("flow", [0, 0, 0, 1]),
        ("size", [20 + 20 + 20, 40, 20 + 32 + 1000, 528]),
        ("ecn", [2; 4]),
        ("back", [0, 1, 0, 0]),
        ("interface", [0, 1, 0, 1]),
        ("sender", [0; 4]),
        ("way", [0; 4]),
        ("dropped", [0, 0, 0, 1]),
        ("flags", [u32::from(TcpFlags::SYN.0) | TCP | MSS | WINDOW_SCALE | TIMESTAMPS, plain, plain | TIMESTAMPS, 0]),
        ("seq", [0xffff_fffe, 3, 0xffff_fffe, 0]),
        ("ack", [7, 7, 7, 0]),
        ("window", [0xfedc, 0xfedc, 0xfedc, 0]),
        ("payload", [0, 0, 1000, 500]),
        ("tsval", [5, 0, 8, 0]),
        ("tsecr", [0, 0, 0x8000_0001, 0]),
        ("mss", [1448, 0, 0, 0]),
        ("window_scale", [9, 0, 0, 0]),
        ("record", [0, 1, 2, 3]),
    ] {
        assert_eq!(column(&found, name), expected, "{name}");
    }
    assert_eq!(found.t_ns, [0, 1000, 2000, 3000]);
    let ends: Vec<_> = found.flows.iter().map(|f| (f.protocol, f.source_port, f.destination_port)).collect();
    assert_eq!(ends, [(6, 40_000, 443), (17, 443, 40_000)]);
    assert_eq!(found.flows[1].source.unwrap().to_string(), "10.0.0.3");
}

#[test]
fn a_header_that_was_cut_has_no_fields() {
    let mut headers = tcp(&segment());
    headers.bytes.truncate(39);
    assert_eq!(column(&capture(&[(0, headers, false)]), "flags"), [0]);
}

#[test]
fn a_table_has_no_headers() {
    let found = Packets::of(read(&b"t_ns,flow,size,ecn\n5,70,100,3\n6,8,200,0\n9,70,300,1\n"[..]).unwrap()).unwrap();
    assert_eq!((column(&found, "flow"), column(&found, "size")), (&[0, 1, 0][..], &[100, 200, 300][..]));
    assert_eq!(found.flows.iter().map(|flow| flow.label).collect::<Vec<_>>(), [70, 8]);
    assert_eq!(found.flows[0].source, None);
}

#[test]
fn the_sender_is_an_ethernet_address_and_the_way_that_of_a_cooked_capture() {
    let packet = |port| udp(&Udp { ip: ip(1, 2), src_port: port, dst_port: 2, payload: Bytes::new(port.into()) }).bytes;
    let file = |link: u32, headers: &[Vec<u8>]| {
        let mut bytes: Vec<u8> =
            [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 96, link].into_iter().flat_map(u32::to_le_bytes).collect();
        for (header, port) in headers.iter().zip(1..) {
            let frame = [&header[..], &packet(port)].concat();
            let record = [0, 0, frame.len() as u32, frame.len() as u32];
            bytes.extend(record.into_iter().flat_map(u32::to_le_bytes).chain(frame));
        }
        Packets::of(read(&bytes[..]).unwrap()).unwrap()
    };
    let ethernet = |mac: u8| [vec![9; 6], vec![mac; 6], vec![8, 0]].concat();
    assert_eq!(column(&file(1, &[ethernet(4), ethernet(7), ethernet(4)]), "sender"), [1, 2, 1]);
    let cooked = |kind: u8| [vec![0, kind], vec![0; 12], vec![8, 0]].concat();
    assert_eq!(column(&file(113, &[cooked(0), cooked(4)]), "way"), [1, 2]);
    let cooked2 = |kind: u8| [vec![8, 0, 0, 0, 0, 0, 0, 1, 0, 1, kind, 6], vec![0; 8]].concat();
    assert_eq!(column(&file(276, &[cooked2(4), cooked2(3)]), "way"), [2, 1]);
}

/// A cooked capture, version 2: microseconds, interface, kind (0 received, 4 sent) and IP packet of each frame.
fn cooked(frames: &[(u32, u8, u8, Vec<u8>)]) -> Packets {
    let mut file: Vec<u8> =
        [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 0xffff, 276].into_iter().flat_map(u32::to_le_bytes).collect();
    for (us, interface, kind, packet) in frames {
        let header = [&[8, 0, 0, 0, 0, 0, 0, *interface, 0, 1, *kind, 6][..], &[0; 8]].concat();
        let frame = [&header[..], packet].concat();
        let record = [us / 1_000_000, us % 1_000_000, frame.len() as u32, frame.len() as u32];
        file.extend(record.into_iter().flat_map(u32::to_le_bytes).chain(frame));
    }
    Packets::of(read(&file[..]).unwrap()).unwrap()
}

/// A segment without data with this sequence number, a mark of its own, and one hop less for each that it has passed.
fn hop(from: [u8; 4], to: [u8; 4], seq: u32, hops: u8) -> Vec<u8> {
    let mut bytes = tcp(&Tcp { seq, ..segment() }).bytes;
    bytes[12..16].copy_from_slice(&from);
    bytes[16..20].copy_from_slice(&to);
    bytes[8] -= hops;
    if from == [198, 51, 100, 9] {
        let (host, server) = (bytes[20..22].to_vec(), bytes[22..24].to_vec());
        bytes[20..24].copy_from_slice(&[server, host].concat());
    }
    bytes
}

#[test]
fn a_forwarded_packet_is_there_once_and_a_segment_that_is_sent_again_twice() {
    let (host, server) = ([192, 168, 1, 20], [198, 51, 100, 9]);
    let pass = |at: u32, seq: u32| [(at, 3, 0, hop(server, host, seq, 0)), (at + 30, 2, 4, hop(server, host, seq, 1))];
    // Segment 1 is sent again half a second later, and segment 2 waits in the router for longer than that.
    let mut frames = [pass(0, 1), pass(500_000, 1)].concat();
    frames.extend([(600_000, 3, 0, hop(server, host, 2, 0)), (1_600_000, 2, 4, hop(server, host, 2, 1))]);
    frames.push((1_700_000, 2, 0, hop(host, server, 9, 0)));
    frames.sort_by_key(|frame| frame.0);
    let found = cooked(&frames);
    assert_eq!((column(&found, "seq"), column(&found, "way")), (&[1, 1, 2, 9][..], &[1; 4][..]));
    assert_eq!((column(&found, "interface"), found.notes.copies), (&[3, 3, 3, 2][..], 3));
}

#[test]
fn behind_a_translator_of_addresses_packets_have_those_of_its_hosts() {
    let (host, outside, server) = ([192, 168, 1, 20], [203, 0, 113, 5], [198, 51, 100, 9]);
    let found = cooked(&[
        (0, 2, 0, hop(host, server, 1, 0)),
        (30, 3, 4, hop(outside, server, 1, 1)),
        (100, 3, 0, hop(server, outside, 2, 0)),
        (130, 2, 4, hop(server, host, 2, 1)),
    ]);
    assert_eq!((found.t_ns.len(), found.notes.copies, found.flows.len()), (2, 2, 1));
    let sources: Vec<_> = found.flows.iter().map(|flow| flow.source.unwrap().to_string()).collect();
    assert_eq!((sources, column(&found, "back")), (vec!["192.168.1.20".to_owned()], &[0, 1][..]));
}

#[test]
fn segments_of_a_split_frame_follow_each_other_and_the_last_closes() {
    let fin = Tcp { payload: Bytes::new(2500), flags: TcpFlags(TcpFlags::ACK.0 | TcpFlags::FIN.0), ..segment() };
    let mut writer = Writer::new(Vec::new()).unwrap();
    writer.add_interface("out", Bytes::ZERO).unwrap();
    let headers = tcp(&fin);
    writer.packet(0, Instant::ZERO, headers.original_len, &headers.bytes, None).unwrap();
    let file = writer.finish().unwrap();
    let cut = Cutting { payload: 1000, spacing_ns: 10 };
    let found = Packets::of(read(&file[..]).unwrap().cutting(vec![cut])).unwrap();
    let flags = u32::from(TcpFlags::ACK.0) | TCP;
    let closes = flags | u32::from(TcpFlags::FIN.0);
    for (name, expected) in [
        ("seq", [0xffff_fffe, 998, 1998]),
        ("payload", [1000, 1000, 500]),
        ("size", [1040, 1040, 540]),
        ("ack", [7; 3]),
        ("flags", [flags, flags, closes]),
        ("record", [0; 3]),
    ] {
        assert_eq!(column(&found, name), expected, "{name}");
    }
    assert_eq!(found.t_ns, [0, 10, 20]);
}

proptest! {
    #[test]
    fn no_damage_makes_it_panic(at in 0usize..400, value: u8) {
        let syn = Tcp { mss: Some(1448), window_scale: Some(9), timestamps: Some(Timestamps { val: 5, ecr: 0 }), ..segment() };
        let mut writer = Writer::new(Vec::new()).unwrap();
        writer.add_interface("out", Bytes::ZERO).unwrap();
        let headers = tcp(&syn);
        writer.packet(0, Instant::ZERO, headers.original_len, &headers.bytes, Some("drop_early")).unwrap();
        let mut file = writer.finish().unwrap();
        let at = at % file.len();
        file[at] = value;
        if let Ok(packets) = read(&file[..]).and_then(Packets::of) {
            prop_assert!(packets.columns.iter().all(|column| column.len() == packets.t_ns.len()));
        }
    }
}
