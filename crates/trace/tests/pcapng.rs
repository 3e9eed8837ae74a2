//! What the writer writes is read by others: by tshark where it is installed, by the `pcap-file` crate, and by this
//! crate's own reader.

use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption;
use pcap_file::pcapng::{Block, PcapNgReader};
use penstock_core::packet::{Ecn, TcpFlags, Timestamps};
use penstock_core::qdisc::DropReason;
use penstock_core::units::{Bytes, Instant};
use penstock_trace::headers::{Headers, Ip, Tcp, Udp, tcp, udp};
use penstock_trace::pcapng::{MARK_COMMENT, Writer, drop_comment};
use penstock_trace::read::read;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

const SEGMENT: Tcp<'static> = Tcp {
    ip: Ip { src: 1, dst: 2, ecn: Ecn::Ect0 },
    src_port: 40_000,
    dst_port: 80,
    seq: 0,
    ack: 0,
    flags: TcpFlags::SYN,
    window: 65_000,
    payload: Bytes::ZERO,
    mss: Some(1448),
    window_scale: Some(7),
    sack_permitted: true,
    timestamps: Some(Timestamps { val: 11, ecr: 0 }),
    ern: penstock_core::packet::Ern::new(0, None),
    ae: false,
    accecn: None,
    sack: &[],
};

/// The packets of the capture: interface, time, headers, how many bytes of payload are captured, comment.
fn packets() -> Vec<(u32, u64, Headers, usize, Option<&'static str>)> {
    let plain = Tcp { mss: None, window_scale: None, sack_permitted: false, ..SEGMENT };
    let data = Tcp { seq: 1, ack: 1, flags: TcpFlags::ACK.with(TcpFlags::PSH), payload: Bytes::new(1000), ..plain };
    let back = Ip { src: 2, dst: 1, ecn: Ecn::NotEct };
    let sacking = Tcp {
        ip: back,
        src_port: 80,
        dst_port: 40_000,
        seq: 1,
        ack: 1,
        flags: TcpFlags::ACK,
        window: 0x1234,
        sack: &[(1001, 2001), (3001, 4001)],
        ..plain
    };
    let marked = Tcp { ip: Ip { ecn: Ecn::Ce, ..SEGMENT.ip }, seq: 1001, ..data };
    let datagram = Udp { ip: SEGMENT.ip, src_port: 7, dst_port: 9, payload: Bytes::new(172) };
    vec![
        (0, 0, tcp(&SEGMENT), 0, None),
        (0, 1_000_000_001, tcp(&data), 1000, Some(drop_comment(DropReason::Overflow))),
        (1, 1_000_000_002, tcp(&sacking), 0, Some(drop_comment(DropReason::Early))),
        (0, 5_000_000_000, tcp(&marked), 0, Some(MARK_COMMENT)),
        (0, 5_000_000_777, udp(&datagram), 172, Some(drop_comment(DropReason::Dequeue))),
    ]
}

fn capture() -> Vec<u8> {
    let mut writer = Writer::new(Vec::new()).unwrap();
    assert_eq!(writer.add_interface("bottleneck", Bytes::ZERO).unwrap(), 0);
    assert_eq!(writer.add_interface("bottleneck reverse", Bytes::new(96)).unwrap(), 1);
    for (iface, ns, headers, zeros, comment) in packets() {
        let bytes = [&headers.bytes[..], &vec![0; zeros]].concat();
        writer.packet(iface, Instant::from_nanos(ns), headers.original_len, &bytes, comment).unwrap();
    }
    writer.finish().unwrap()
}

/// Runs tshark over the capture, one line of fields per packet; `None` where it is not installed.
fn tshark(fields: &[&str]) -> Option<Vec<String>> {
    // The tests of one process run in parallel, so each call has its own file.
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("penstock-trace-{}-{call}.pcapng", std::process::id()));
    std::fs::write(&path, capture()).unwrap();
    let mut command = Command::new("tshark");
    command.arg("-r").arg(&path).args(["-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE"]);
    command.args(["-o", "udp.check_checksum:TRUE", "-T", "fields", "-E", "separator=|"]);
    fields.iter().for_each(|field| {
        command.args(["-e", field]);
    });
    let output = command.output();
    let _ = std::fs::remove_file(&path);
    match output {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect())
        }
        Err(error) => {
            eprintln!("skipped: tshark cannot be started ({error})");
            None
        }
    }
}

#[test]
fn tshark_reads_what_was_written() {
    let fields = ["frame.interface_name", "frame.time_epoch", "frame.len", "ip.src", "ip.dst", "frame.comment"];
    let Some(lines) = tshark(&fields) else { return };
    assert_eq!(
        lines,
        [
            "bottleneck|0.000000000|60|10.0.0.1|10.0.0.2|",
            "bottleneck|1.000000001|1052|10.0.0.1|10.0.0.2|drop_overflow: the queue had no room for it",
            "bottleneck reverse|1.000000002|72|10.0.0.2|10.0.0.1|drop_early: the AQM refused it on arrival",
            "bottleneck|5.000000000|1052|10.0.0.1|10.0.0.2|mark: the AQM set CE instead of dropping it",
            "bottleneck|5.000000777|200|10.0.0.1|10.0.0.2|drop_dequeue: the AQM dropped it from the queue",
        ]
    );
}

/// Checksum status 1 is good; 2 is not verified, as tshark has not all bytes of the fourth packet.
#[test]
fn tshark_finds_headers_and_checksums_right() {
    let fields = [
        "ip.checksum.status",
        "tcp.checksum.status",
        "udp.checksum.status",
        "ip.dsfield.ecn",
        "tcp.window_size_value",
        "tcp.len",
        "tcp.options.mss_val",
        "tcp.options.wscale.shift",
        "tcp.options.sack_le",
        "tcp.options.sack_re",
        "tcp.options.timestamp.tsval",
        "udp.length",
        "_ws.malformed",
    ];
    let Some(lines) = tshark(&fields) else { return };
    assert_eq!(
        lines,
        [
            "1|1||2|65000|0|1448|7|||11||",
            "1|1||2|65000|1000|||||11||",
            "1|1||0|4660|0|||1001,3001|2001,4001|11||",
            "1|2||3|65000|1000|||||11||",
            "1||1|2||||||||180|",
        ]
    );
}

#[test]
fn an_independent_reader_sees_the_same_blocks() {
    let file = capture();
    let mut reader = PcapNgReader::new(&file[..]).unwrap();
    let (mut names, mut seen) = (Vec::new(), Vec::new());
    while let Some(block) = reader.next_block() {
        match block.unwrap().into_owned() {
            Block::InterfaceDescription(interface) => {
                assert!(interface.options.contains(&InterfaceDescriptionOption::IfTsResol(9)));
                names.extend(interface.options.into_iter().filter_map(|option| match option {
                    InterfaceDescriptionOption::IfName(name) => Some(name.into_owned()),
                    _ => None,
                }));
            }
            Block::EnhancedPacket(packet) => {
                let comment = packet.options.iter().find_map(|option| match option {
                    EnhancedPacketOption::Comment(text) => Some(text.clone().into_owned()),
                    _ => None,
                });
                let ns = packet.timestamp.as_nanos() as u64;
                seen.push((packet.interface_id, ns, packet.original_len, packet.data.len(), comment));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(names, ["bottleneck", "bottleneck reverse"]);
    let expected: Vec<_> = packets()
        .into_iter()
        .map(|(iface, ns, headers, zeros, comment)| {
            let kept = headers.bytes.len() + zeros;
            (iface, ns, headers.original_len.get() as u32, kept, comment.map(str::to_owned))
        })
        .collect();
    assert_eq!(seen, expected);
}

#[test]
fn our_own_reader_finds_the_arrivals() {
    let file = capture();
    let arrivals: Vec<_> = read(&file[..])
        .unwrap()
        .map(|arrival| arrival.map(|a| (a.t.as_nanos(), a.flow.0, a.size.get(), a.ecn)).unwrap())
        .collect();
    assert_eq!(
        arrivals,
        [
            (0, 0, 60, Ecn::Ect0),
            (1_000_000_001, 0, 1052, Ecn::Ect0),
            (1_000_000_002, 0, 72, Ecn::NotEct),
            (5_000_000_000, 0, 1052, Ecn::Ce),
            (5_000_000_777, 1, 200, Ecn::Ect0),
        ]
    );
}

#[test]
fn misuse_is_refused_and_leaves_the_capture_whole() {
    let mut writer = Writer::new(Vec::new()).unwrap();
    assert!(writer.packet(0, Instant::ZERO, Bytes::new(1), &[0], None).is_err(), "no interface yet");
    let iface = writer.add_interface("q", Bytes::new(2)).unwrap();
    assert!(writer.packet(iface, Instant::ZERO, Bytes::new(1), &[0, 0], None).is_err(), "more than there is");
    let long = "x".repeat(70_000);
    assert!(writer.packet(iface, Instant::ZERO, Bytes::new(1), &[0], Some(&long)).is_err(), "comment too long");
    assert!(writer.add_interface(&long, Bytes::ZERO).is_err(), "name too long");
    writer.packet(iface, Instant::from_nanos(u64::MAX), Bytes::new(9), &[1, 2, 3], Some("kept")).unwrap();
    let file = writer.finish().unwrap();
    let mut reader = PcapNgReader::new(&file[..]).unwrap();
    reader.next_block().unwrap().unwrap();
    let Block::EnhancedPacket(packet) = reader.next_block().unwrap().unwrap().into_owned() else { panic!() };
    assert_eq!((&packet.data[..], packet.original_len), (&[1u8, 2][..], 9), "cut to the snap length");
    assert_eq!(packet.timestamp.as_nanos(), u128::from(u64::MAX));
    assert!(reader.next_block().is_none());
}
