//! The format of a trace is recognized by its content, and what is changed or left out of a capture is counted.

use penstock_core::packet::Ecn;
use penstock_core::units::Bytes;
use penstock_trace::error::ReadError;
use penstock_trace::headers::{Ip, Udp, udp};
use penstock_trace::notes::ClockSet;
use penstock_trace::read::{Cutting, open, read};
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

/// Times in nanoseconds and flows of all packets.
fn times(file: &[u8]) -> Vec<(u64, u32)> {
    read(file).unwrap().map(|a| a.map(|a| (a.t.as_nanos(), a.flow.0)).unwrap()).collect()
}

#[test]
fn times_count_from_the_first_packet_and_packets_are_put_in_order() {
    let file = pcap(&[
        (1_700_000_000, 999_999, Some(1)),
        (1_700_000_001, 5, None),
        (1_700_000_001, 4, Some(2)),
        (1_700_000_001, 3, Some(1)),
        (1_700_000_002, 0, Some(2)),
    ]);
    let mut arrivals = read(&file[..]).unwrap();
    let seen: Vec<_> =
        arrivals.by_ref().map(|a| a.map(|a| (a.t.as_nanos(), a.flow.0, a.size.get())).unwrap()).collect();
    assert_eq!(seen, [(0, 0, 128), (4_000, 0, 128), (5_000, 1, 128), (1_000_001_000, 1, 128)]);
    let notes = arrivals.notes();
    assert_eq!((notes.frames, notes.not_ip, notes.untimed, notes.cut_short), (5, 1, 0, None));
    assert_eq!((notes.out_of_order, notes.restored, notes.clock_set.times), (1, 1, 0));
    assert_eq!(notes.unread.into_iter().collect::<Vec<_>>(), [("malformed".to_owned(), 1)]);
}

#[test]
fn behind_a_clock_that_was_set_packets_keep_their_distances() {
    // Datagrams of one flow each second; the clock goes back by an hour, and later forward by some years.
    let of = |seconds: &[u32]| pcap(&seconds.iter().map(|s| (*s, 0, Some(1))).collect::<Vec<_>>());
    let file = of(&[9000, 9001, 9002, 5402, 5403, 1_700_000_000, 1_700_000_001]);
    let mut arrivals = read(&file[..]).unwrap();
    let seen: Vec<_> = arrivals.by_ref().map(|a| a.unwrap().t.as_nanos() / 1_000_000_000).collect();
    assert_eq!(seen, [0, 1, 2, 3, 4, 5, 6]);
    let notes = arrivals.notes();
    assert_eq!(notes.clock_set, ClockSet { times: 2, packets: 4, seconds: 1_699_994_597.0 });
    assert_eq!((notes.out_of_order, notes.restored), (0, 0));
}

#[test]
fn a_capture_of_weeks_is_refused() {
    let days = |n: u32| (n * 400_000, 0, Some(1));
    let file = pcap(&[days(0), days(1), days(2), days(3)]);
    let last = read(&file[..]).unwrap().last().unwrap().unwrap_err().to_string();
    assert!(last.contains("frame 4") && last.contains("1000000 s"), "{last}");
}

#[test]
fn what_claims_to_be_longer_than_its_frame_is_not_split() {
    let mut file = pcap(&[(0, 0, Some(1))]);
    // The frame had 64 bytes on the wire, and its header says 128.
    file[36..40].copy_from_slice(&64u32.to_le_bytes());
    let mut arrivals = read(&file[..]).unwrap().cutting(vec![Cutting { payload: 40, spacing_ns: 0 }]);
    assert_eq!((arrivals.by_ref().count(), arrivals.notes().split.frames), (1, 0));
}

#[test]
fn files_that_were_merged_one_after_the_other_are_put_in_order() {
    // The second flow was captured at the same time as the first, and stands behind it.
    let first = (0..100).map(|s| (9000 + s, 0, Some(1)));
    let second = (0..100).map(|s| (9000 + s, 500_000, Some(2)));
    let file = pcap(&first.chain(second).collect::<Vec<_>>());
    let mut arrivals = read(&file[..]).unwrap();
    let seen: Vec<_> =
        arrivals.by_ref().map(|a| a.unwrap()).map(|a| (a.t.as_nanos() / 500_000_000, a.flow.0)).collect();
    assert_eq!(seen, (0..200).map(|half| (half, half as u32 % 2)).collect::<Vec<_>>());
    let notes = arrivals.notes();
    // The last packet of the second file is behind all.
    assert_eq!((notes.out_of_order, notes.restored, notes.clock_set.times), (99, 99, 0));
}

#[test]
fn a_packet_that_is_too_late_for_its_place_comes_with_the_one_before() {
    let many: Vec<_> = (0..65_537u32).map(|n| (9000, n, Some(1))).chain([(9000, 0, Some(2))]).collect();
    let file = pcap(&many);
    let mut arrivals = read(&file[..]).unwrap();
    let seen: Vec<_> = arrivals.by_ref().map(|a| a.unwrap()).map(|a| (a.t.as_nanos() / 1000, a.flow.0)).collect();
    assert_eq!((seen.len(), seen[0], seen[1], seen[2]), (65_538, (0, 0), (1, 0), (1, 1)));
    assert_eq!((arrivals.notes().out_of_order, arrivals.notes().restored), (1, 0));
}

#[test]
fn of_a_capture_that_is_cut_short_the_whole_packets_are_read() {
    let file = pcap(&[(0, 0, Some(1)), (0, 1, Some(1))]);
    for (length, packets, cut) in
        [(file.len(), 2, None), (file.len() - 1, 1, Some((2, 68))), (69, 1, Some((2, 68))), (68, 1, None)]
    {
        let mut arrivals = read(&file[..length]).unwrap();
        let seen = arrivals.by_ref().map(Result::unwrap).count();
        assert_eq!((seen, arrivals.notes().cut_short.map(|cut| (cut.packet, cut.byte))), (packets, cut));
    }
    let message = read(&file[..23]).err().unwrap().to_string();
    assert_eq!(message, "pcap: packet 1, at byte 0: the file ends within the file header: 23 of 24 bytes are there");
    let message = read(&file[..25]).unwrap().next().unwrap().unwrap_err().to_string();
    assert!(message.contains("no IP packet in its 0 frames (it ends at byte 24: the file ends within"), "{message}");
}

#[test]
fn behind_a_broken_record_the_capture_ends() {
    let mut file = pcap(&[(0, 0, Some(1)), (0, 1, Some(1)), (0, 2, Some(1))]);
    file[76..80].copy_from_slice(&u32::MAX.to_le_bytes());
    let mut arrivals = read(&file[..]).unwrap();
    assert_eq!(arrivals.by_ref().map(Result::unwrap).count(), 1);
    let cut = arrivals.notes().cut_short.unwrap();
    assert_eq!((cut.packet, cut.byte), (2, 68));
    assert_eq!(cut.what, "4294967295 captured bytes; at most 1049584 are allowed");
}

#[test]
fn a_trace_may_be_compressed_with_gzip() {
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write as _;
    let packed = |parts: &[&[u8]]| -> Vec<u8> {
        let one = |part: &&[u8]| {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(part).unwrap();
            encoder.finish().unwrap()
        };
        parts.iter().flat_map(one).collect()
    };
    let file = pcap(&[(0, 0, Some(1)), (0, 1, Some(2)), (0, 2, Some(1))]);
    // Files may be joined of several.
    let whole = packed(&[&file[..50], &file[50..]]);
    assert_eq!(times(&whole), [(0, 0), (1000, 1), (2000, 0)]);
    assert_eq!(times(&packed(&[b"t_ns,flow,size,ecn\n5,7,40,0\n"])), [(5, 7)]);
    let mut arrivals = read(&whole[..whole.len() - 20]).unwrap();
    assert!(arrivals.by_ref().all(|a| a.is_ok()) && arrivals.notes().cut_short.is_some());
}

#[test]
fn frames_of_several_segments_are_split_where_the_list_says() {
    // A datagram of 100 bytes has the time 1 ms, and one of another flow 1.5 ms.
    let file = pcap(&[(0, 0, Some(1)), (0, 1000, Some(2)), (0, 1500, Some(1)), (0, 9000, Some(2))]);
    let split = |spacing_ns: i32| {
        let cut = Cutting { payload: 40, spacing_ns };
        let none = Cutting { payload: 0, spacing_ns: 7 };
        let mut arrivals = read(&file[..]).unwrap().cutting(vec![none, cut, Cutting { payload: 100, ..none }]);
        let seen: Vec<_> =
            arrivals.by_ref().map(|a| a.unwrap()).map(|a| (a.t.as_nanos() / 1000, a.size.get())).collect();
        assert_eq!((arrivals.notes().split.frames, arrivals.notes().split.packets), (1, 3));
        seen
    };
    assert_eq!(split(400_000), [(0, 128), (1000, 68), (1400, 68), (1500, 128), (1800, 48), (9000, 128)]);
    assert_eq!(split(-400_000), [(0, 128), (200, 68), (600, 68), (1000, 48), (1500, 128), (9000, 128)]);
    assert_eq!(split(0)[1..4], [(1000, 68), (1000, 68), (1000, 48)]);
    let bytes = [40i32, -7, 0, 5].map(i32::to_le_bytes).concat();
    let read = [Cutting { payload: 40, spacing_ns: -7 }, Cutting { payload: 0, spacing_ns: 5 }];
    assert_eq!(Cutting::of_bytes(&bytes), read);
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
    let mut arrivals = read(&b"t_ns,flow,size,ecn\n5,7,40,0\n4,7,40,0\n5,7,40,0\n"[..]).unwrap();
    assert!(arrivals.next().unwrap().is_ok());
    let message = arrivals.next().unwrap().unwrap_err().to_string();
    assert!(message.starts_with("CSV line 3"), "{message}");
    assert!(arrivals.next().is_none());
}

#[test]
fn what_is_no_trace_is_named() {
    let message = |bytes: &[u8]| match read(bytes) {
        Ok(mut arrivals) => arrivals.next().unwrap().unwrap_err().to_string(),
        Err(error) => error.to_string(),
    };
    assert!(message(b"").contains("empty"));
    assert!(message(&[0x28, 0xb5, 0x2f, 0xfd, 0]).contains("compressed with zstd"));
    assert!(message(&[0x1f, 0x8b, 8, 0]).contains("reading stopped"));
    assert!(message(&[0, 1, 2, 3]).contains("[00, 01, 02, 03]"));
    assert!(message(b"hello\n").contains("t_ns is missing"));
    assert!(message(b"t_ns,flow,size,ecn\n").contains("no rows below its header"));
    let mut wifi = pcap(&[]);
    wifi[20] = 105;
    assert!(message(&wifi).contains("no IP packet in its 0 frames (0 of link type 105 (IEEE 802.11))"));
    let mut two = pcap(&[(0, 0, Some(1)), (0, 0, Some(1))]);
    two[20] = 105;
    let told = message(&two);
    assert!(
        told.starts_with("there is no IP packet in its 2 frames (2 of link type 105 (IEEE 802.11)); read are"),
        "{told}"
    );
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
