//! The format of a trace is recognized by its content, and what is changed or left out of a capture is counted.

use penstock_core::packet::Ecn;
use penstock_core::units::Bytes;
use penstock_trace::error::ReadError;
use penstock_trace::headers::{Ip, Udp, udp};
use penstock_trace::read::{Cut, Notes, open, read};
use proptest::prelude::*;
use std::path::Path;

/// A pcap file with microseconds and raw IP packets of 128 bytes; a packet without ports stands for one that is not IP.
fn pcap(packets: &[(u32, u32, Option<u16>)]) -> Vec<u8> {
    let mut file = Vec::new();
    for field in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 96, 101] {
        file.extend_from_slice(&field.to_le_bytes());
    }
    for (seconds, micros, port) in packets {
        let ip = Ip { src: 1, dst: 2, ecn: Ecn::NotEct };
        let bytes = match port {
            Some(port) => udp(&Udp { ip, src_port: *port, dst_port: 9, payload: Bytes::new(100) }).bytes,
            None => vec![0xff; 20],
        };
        for field in [*seconds, *micros, bytes.len() as u32, 128] {
            file.extend_from_slice(&field.to_le_bytes());
        }
        file.extend_from_slice(&bytes);
    }
    file
}

#[test]
fn capture_times_count_from_the_first_packet_and_never_go_back() {
    let file = pcap(&[
        (1_700_000_000, 999_999, Some(1)),
        (1_700_000_001, 5, None),
        (1_700_000_001, 4, Some(2)),
        (1_700_000_001, 3, Some(1)),
        (1_699_999_999, 0, Some(3)),
        (1_700_000_002, 0, Some(2)),
    ]);
    let mut arrivals = read(&file[..]).unwrap();
    let seen: Vec<_> =
        arrivals.by_ref().map(|a| a.map(|a| (a.t.as_nanos(), a.flow.0, a.size.get())).unwrap()).collect();
    assert_eq!(seen, [(0, 0, 128), (5_000, 1, 128), (5_000, 0, 128), (5_000, 2, 128), (1_000_001_000, 1, 128)]);
    assert_eq!(arrivals.notes(), Notes { frames: 6, not_ip: 1, untimed: 0, out_of_order: 2, cut_short: None });
}

#[test]
fn a_capture_that_leaps_is_refused() {
    let file = pcap(&[(0, 0, Some(1)), (1_700_000_000, 0, Some(1))]);
    let last = read(&file[..]).unwrap().last().unwrap().unwrap_err().to_string();
    assert!(last.contains("frame 2") && last.contains("1000000 s are allowed"), "{last}");
}

#[test]
fn of_a_capture_that_is_cut_short_the_whole_packets_are_read() {
    let file = pcap(&[(0, 0, Some(1)), (0, 1, Some(1))]);
    for (length, packets, cut) in [
        (file.len(), 2, None),
        (file.len() - 1, 1, Some(Cut { packet: 2, byte: 68 })),
        (69, 1, Some(Cut { packet: 2, byte: 68 })),
        (68, 1, None),
        (25, 0, Some(Cut { packet: 1, byte: 24 })),
    ] {
        let mut arrivals = read(&file[..length]).unwrap();
        assert_eq!((arrivals.by_ref().map(Result::unwrap).count(), arrivals.notes().cut_short), (packets, cut));
    }
    let message = read(&file[..23]).err().unwrap().to_string();
    assert_eq!(message, "pcap: packet 1, at byte 0: the file ends within the file header: 23 of 24 bytes are there");
}

#[test]
fn packets_that_are_left_out_change_no_numbers() {
    let file = pcap(&[(0, 0, Some(1)), (0, 1, None), (0, 2, Some(2)), (0, 3, Some(1)), (0, 4, Some(3))]);
    let kept = |keep: Vec<u8>| -> Vec<(u64, u32)> {
        let arrivals = read(&file[..]).unwrap().keeping(keep);
        arrivals.map(|a| a.map(|a| (a.t.as_nanos(), a.flow.0)).unwrap()).collect()
    };
    assert_eq!(kept(vec![1, 1, 1, 1]), [(0, 0), (2000, 1), (3000, 0), (4000, 2)]);
    assert_eq!(kept(vec![0, 1, 0, 9]), [(2000, 1), (4000, 2)]);
    assert_eq!(kept(vec![0, 0, 0]), [(4000, 2)], "what the bytes do not tell is kept");
}

#[test]
fn after_an_error_nothing_follows() {
    let file = pcap(&[(0, 0, Some(1)), (0, 2_000_000, Some(1))]);
    let mut arrivals = read(&file[..]).unwrap();
    assert!(arrivals.next().unwrap().is_ok());
    let message = arrivals.next().unwrap().unwrap_err().to_string();
    assert_eq!(message, "pcap: packet 2, at byte 68: the fraction of its time, 2000000, is more than a second");
    assert!(arrivals.next().is_none());
}

#[test]
fn what_is_no_trace_is_named() {
    let message = |bytes: &[u8]| read(bytes).err().unwrap().to_string();
    assert!(message(b"").contains("empty"));
    assert!(message(&[0x1f, 0x8b, 8, 0]).contains("compressed"));
    assert!(message(&[0, 1, 2, 3]).contains("[00, 01, 02, 03]"));
    assert!(message(b"hello\n").contains("t_ns is missing"));
    let mut wifi = pcap(&[]);
    wifi[20] = 105;
    assert!(message(&wifi).contains("link type 105 is not supported"));
    let missing = open(Path::new("/nonexistent/trace.csv")).err().unwrap();
    assert!(matches!(missing, ReadError::Open { .. }) && missing.to_string().contains("/nonexistent/trace.csv"));
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(kind in 0usize..4, tail in proptest::collection::vec(any::<u8>(), 0..400)) {
        let starts: [&[u8]; 4] = [
            &[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 101, 0, 0, 0],
            &[0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a],
            b"t_ns,flow,size,ecn\n",
            b"",
        ];
        let file = [starts[kind], &tail].concat();
        if let Ok(arrivals) = read(&file[..]) {
            let mut last = 0;
            for arrival in arrivals.flatten() {
                prop_assert!(arrival.t.as_nanos() >= last && arrival.size > Bytes::ZERO);
                last = arrival.t.as_nanos();
            }
        }
    }
}
