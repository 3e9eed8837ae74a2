//! The headers of a capture as columns.

use penstock_core::packet::{Ecn, Ern, TcpFlags, Timestamps};
use penstock_core::qdisc::DropReason;
use penstock_core::units::{Bytes, Instant};
use penstock_trace::headers::{Headers, Ip, Tcp, Udp, tcp, udp};
use penstock_trace::packets::{COLUMNS, MSS, Packets, TCP, TIMESTAMPS, WINDOW_SCALE};
use penstock_trace::pcapng::{Writer, drop_comment};
use penstock_trace::read::read;
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
    let packet = udp(&Udp { ip: ip(1, 2), src_port: 1, dst_port: 2, payload: Bytes::new(10) }).bytes;
    let file = |link: u32, headers: &[Vec<u8>]| {
        let mut bytes: Vec<u8> =
            [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 96, link].into_iter().flat_map(u32::to_le_bytes).collect();
        for header in headers {
            let frame = [&header[..], &packet].concat();
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
