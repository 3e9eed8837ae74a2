//! What the programs of the kernel's packet path cost, by test runs: nanoseconds per packet over a program that only makes the
//! packet that of the next flow, in random order.
//!
//! ```sh
//! cargo run --release -p penstock-linux --example cost -- 1000 10000
//! ```
//!
//! The arguments are numbers of flows. Programs take turns in short runs, and a low percentile of their times counts, so that
//! other work on the machine matters little.

use nix::time::{ClockId, clock_gettime};
use penstock_linux::bpf::datapath::clock;
use penstock_linux::bpf::{Control, Datapath, Error, Way};
use std::time::Duration;

const SECOND: u64 = 1_000_000_000;
const REPEAT: u32 = 2000;
const ROUNDS: usize = 400;
/// Of this part of the runs the slowest counts.
const QUICKEST: usize = 20;
const FLOWS: [u32; 4] = [10, 1000, 10_000, 100_000];
/// Offset of the TCP header behind Ethernet and IPv4.
const TCP: usize = 34;
/// Payload of data.
const SEGMENT: usize = 1448;
/// What is measured, in which direction and with how many packets at once: headers are read, the connection is found as well, and
/// all is done with data or ACKs.
const PARTS: [(&str, bool, u32); 6] = [
    ("shell", true, REPEAT),
    ("visit_parse", true, REPEAT),
    ("visit_find", true, REPEAT),
    ("visit_plain", true, REPEAT),
    ("visit_data", true, REPEAT),
    ("visit_ack", false, 2 * REPEAT),
];

/// Processor time of this process in nanoseconds. Other processes of a busy machine do not count.
fn spent() -> f64 {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map_or(0.0, |time| Duration::from(time).as_nanos() as f64)
}

fn main() -> Result<(), Error> {
    let given: Vec<u32> = std::env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    sizes()?;
    println!(
        "\n| flows | bare test run, ns | header | and connection | data | data, rewritten | ACK, rewritten | ACKs rewritten |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for flows in if given.is_empty() { FLOWS.to_vec() } else { given } {
        println!("{}", row(flows)?);
    }
    Ok(())
}

/// Prints what a gateway loads.
fn sizes() -> Result<(), Error> {
    let load = || -> Result<(f64, Datapath), Error> {
        let begin = spent();
        let path = Datapath::load(Control::new(64, [1, 2], [way(); 2]))?;
        Ok(((spent() - begin) / 1e6, path))
    };
    let (first, path) = load()?;
    let time = (0..4).try_fold(first, |least, _| load().map(|(time, _)| least.min(time)))?;
    println!("| program | machine code, bytes | verified instructions |");
    println!("|---|---|---|");
    for (name, machine, verified) in path.sizes()? {
        println!("| {name} | {machine} | {verified} |");
    }
    println!("\nAll are loaded in {time:.0} ms of processor time.");
    Ok(())
}

fn way() -> Way {
    Way { rate_bps: SECOND, capacity: 118_750_000_000, room: 1 << 40, in_packets: false, backlog: 0 }
}

fn row(flows: u32) -> Result<String, Error> {
    let patience = 1000 * SECOND;
    let control = Control { patience, ..Control::new((flows / 8).max(64), [1, 2], [way(); 2]) };
    let mut path = Datapath::load_to_measure(control)?;
    let missing = open(&mut path, flows)?;
    assert!(missing * 100 <= u64::from(flows), "{missing} of {flows} connections have no line");
    path.visit(flows)?;
    // Data are a segment ahead of their ACKs.
    path.test("visit_data", &mut data(), flows)?;
    let before = path.sums()?[0].rewritten;
    let mut times = PARTS.map(|_| Vec::new());
    for _ in 0..ROUNDS {
        for ((program, outward, repeat), times) in PARTS.into_iter().zip(&mut times) {
            let mut bytes = if outward { data() } else { packet(0, false, 0x10, 0, 0, 0) };
            times.push(path.test(program, &mut bytes, repeat)?.as_nanos());
        }
    }
    let rewritten = (path.sums()?[0].rewritten - before) as f64 / (2.0 * f64::from(REPEAT) * ROUNDS as f64);
    let [shell, parts @ ..] = times.map(quickest);
    let parts = parts.map(|time| format!("{} |", time.saturating_sub(shell))).join(" ");
    Ok(format!("| {flows} | {shell} | {parts} {:.1} % |", 100.0 * rewritten))
}

fn data() -> Vec<u8> {
    packet(0, true, 0x10, 0, 0, SEGMENT)
}

fn quickest(mut values: Vec<u128>) -> u128 {
    values.sort_unstable();
    values[values.len() / QUICKEST]
}

/// Opens all connections, 100 ms from end to end, and lets each send; returns how many got no line.
fn open(path: &mut Datapath, flows: u32) -> Result<u64, Error> {
    let begin = clock() - 60 * SECOND;
    for flow in 0..flows {
        let segments = [
            (true, 0x02, 1000, 0, 0),
            (false, 0x12, 5000, 1001, 0),
            (true, 0x10, 1001, 5001, 0),
            (true, 0x10, 1001, 5001, SEGMENT),
            (false, 0x10, 5001, 1001, 0),
        ];
        for (at, (outward, flags, seq, ack, payload)) in segments.into_iter().enumerate() {
            let clock = begin + at as u64 * 50_000_000;
            path.tell(Control { clock, heartbeat: clock, ..path.told().clone() })?;
            let program = if outward { "outward" } else { "inward" };
            path.test(program, &mut packet(flow, outward, flags, seq, ack, payload), 1)?;
        }
    }
    path.tell(Control { clock: 0, heartbeat: clock(), ..path.told().clone() })?;
    Ok(path.gauges()?.refused)
}

/// A frame of Ethernet and IPv4 from 10.x.y.z, or to it.
fn packet(flow: u32, outward: bool, flags: u8, seq: u32, ack: u32, payload: usize) -> Vec<u8> {
    let syn = flags & 2 != 0;
    let options: &[u8] = if syn { &[2, 4, 5, 180, 1, 3, 3, 7] } else { &[1, 1, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0] };
    let mut bytes = vec![0; TCP + 20 + options.len() + payload];
    bytes[12] = 8;
    bytes[14] = 0x45;
    let length = (bytes.len() - 14) as u16;
    bytes[16..18].copy_from_slice(&length.to_be_bytes());
    bytes[23] = 6;
    let (near, far) = (0x0a00_0000 | flow, 0xc0a8_0001u32);
    let (from, to, ports) = if outward { (near, far, [5000u16, 443]) } else { (far, near, [443, 5000]) };
    bytes[26..30].copy_from_slice(&from.to_be_bytes());
    bytes[30..34].copy_from_slice(&to.to_be_bytes());
    bytes[34..36].copy_from_slice(&ports[0].to_be_bytes());
    bytes[36..38].copy_from_slice(&ports[1].to_be_bytes());
    bytes[38..42].copy_from_slice(&seq.to_be_bytes());
    bytes[42..46].copy_from_slice(&ack.to_be_bytes());
    bytes[46..50].copy_from_slice(&[((5 + options.len() / 4) << 4) as u8, flags, 0xff, 0xff]);
    bytes[54..54 + options.len()].copy_from_slice(options);
    bytes
}
