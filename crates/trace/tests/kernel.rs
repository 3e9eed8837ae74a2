//! The Linux forms of algorithms give every packet the fate that the kernel's own code gave it.
//!
//! Each file in `data/` is what the module of Linux 6.18 answered to a trace in a harness: its first line says which
//! module, at which rate, and which random numbers the kernel was given. `tools/measure/kernel-fates` says how the files are
//! made, `read` below how they are read.

use penstock_core::config::LinkFacts;
use penstock_core::packet::{Ecn, Ern};
use penstock_core::qdisc::DropReason;
use penstock_core::rng::Rng;
use penstock_core::settings::config_from_settings;
use penstock_core::units::{Bytes, Instant, Limit, Rate};
use penstock_trace::arrival::{Arrival, FlowTable};
use penstock_trace::record::{Fate, Record};
use penstock_trace::replay::{Conditions, replay_under};

const LINK: Rate = Rate::from_bps(10_000_000);
/// The state of splitmix64 from which the kernel was given its numbers.
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
/// The kernel's answer to a trace.
struct Kernel {
    arrivals: Vec<Arrival>,
    /// 0 sent, 1 sent with a new mark, 2 dropped by the AQM, 3 dropped for want of room.
    fates: Vec<u8>,
    /// BLAKE3 of the lines `id,fate,t_fate_ns,ecn_out`.
    digest: [u8; 32],
}

/// Reads a number of seven bits to the byte, the least first.
fn varint(bytes: &mut &[u8]) -> u64 {
    let (mut number, mut shift) = (0, 0);
    while let Some((byte, rest)) = bytes.split_first() {
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            break;
        }
    }
    number
}

fn read(file: &[u8]) -> Kernel {
    let line = file.iter().position(|byte| *byte == b'\n').unwrap();
    let size = std::str::from_utf8(&file[..line]).unwrap().rsplit(' ').nth(1).unwrap().parse().unwrap();
    let (digest, mut packets) = file[line + 1..].split_at(32);
    let (mut t, mut flows) = (0, FlowTable::default());
    let mut kernel = Kernel { arrivals: Vec::new(), fates: Vec::new(), digest: digest.try_into().unwrap() };
    while !packets.is_empty() {
        t += varint(&mut packets);
        let (of, rest) = packets.split_first().unwrap();
        packets = rest;
        let (label, ecn) = (u64::from(of & 15), Ecn::from_bits(of >> 4));
        let (size, flow) = (Bytes::new(size), flows.id(label));
        kernel.arrivals.push(Arrival {
            t: Instant::from_nanos(t),
            flow,
            label,
            node: None,
            size,
            ecn,
            ern: Ern::default(),
            dscp: None,
        });
        kernel.fates.push(of >> 6);
    }
    kernel
}

fn fate(record: &Record, came: Ecn) -> u8 {
    match record.fate {
        Fate::Sent => u8::from(record.ecn_out != came),
        Fate::Dropped(DropReason::Early | DropReason::Dequeue) => 2,
        Fate::Dropped(DropReason::Overflow) => 3,
    }
}

/// Replays what the kernel got, and compares every fate, the time of each and every ECN field.
fn agrees(file: &[u8], name: &str, settings: &[&str], limit: Limit) {
    let kernel = read(file);
    let settings: Vec<String> = settings.iter().map(|text| (*text).to_owned()).collect();
    let config = config_from_settings(name, &settings).unwrap();
    let conditions = Conditions { draws: Some(Rng::split_mix(SEED)), ..Conditions::seeded(0) };
    let (arrivals, link) = (kernel.arrivals.iter().copied().map(Ok), LinkFacts { rate: LINK, limit });
    let mut packets = Vec::new();
    replay_under(arrivals, &config, link, &conditions, |packet| packets.push(*packet)).unwrap();
    let mut digest = blake3::Hasher::new();
    let mut parted = Vec::new();
    for (id, (record, (arrival, expected))) in packets.iter().zip(kernel.arrivals.iter().zip(&kernel.fates)).enumerate()
    {
        let ours = fate(record, arrival.ecn);
        if ours != *expected {
            parted.push((id, ours, *expected));
        }
        // A packet that was dropped has the ECN field with which it came.
        let ecn = if ours < 2 { record.ecn_out } else { arrival.ecn };
        digest.update(format!("{id},{ours},{},{}\n", record.t_fate.as_nanos(), ecn as u8).as_bytes());
    }
    assert_eq!(packets.len(), kernel.fates.len());
    assert!(
        parted.is_empty(),
        "{name}: {} of {} fates part: {:?}",
        parted.len(),
        packets.len(),
        &parted[..parted.len().min(5)]
    );
    assert_eq!(
        *digest.finalize().as_bytes(),
        kernel.digest,
        "{name}: the fates agree, their times or ECN fields do not"
    );
}

/// Four L4S and classic senders and bursts, 82,501 packets, of which 7,485 are dropped.
#[test]
fn dualpi2_is_the_kernels() {
    let file = include_bytes!("data/dualpi2.fates");
    agrees(file, "dualpi2", &["compat=linux"], Limit::Packets(10_000));
    agrees(file, "dualpi2", &["compat=linux", "alpha=0.16", "beta=3.2", "tupdate=16ms"], Limit::Packets(10_000));
}

/// A stream that starts and stops, 84,000 packets, of which 21,598 are dropped by COBALT and 797 at the head of a full
/// queue. Idle times are among them.
#[test]
fn cobalt_is_the_kernels() {
    let file = include_bytes!("data/cobalt.fates");
    let limit = Limit::Bytes(Bytes::new(262_144));
    agrees(file, "cobalt", &["compat=linux"], limit);
    // Flow queueing with one queue is the same.
    agrees(file, "fq-cobalt", &["compat=linux", "flows=1", "ways=1"], limit);
}
