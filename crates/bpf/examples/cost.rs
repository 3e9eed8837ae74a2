//! What the programs of the kernel's packet path cost, by test runs: nanoseconds of processor time per data packet and per
//! rewritten ACK over a program that only makes the packet that of the next flow, in random order.
//!
//! ```sh
//! cargo run --release -p penstock-bpf --example cost
//! ```

use nix::time::{ClockId, clock_gettime};
use penstock_bpf::datapath::clock;
use penstock_bpf::{Control, Datapath, Error, Program, Way};
use std::time::Duration;

const SECOND: u64 = 1_000_000_000;
const REPEAT: u32 = 100_000;
const ROUNDS: usize = 5;
/// Offset of the TCP header behind Ethernet and IPv4.
const TCP: usize = 34;

/// Processor time of this process in nanoseconds. Other processes of a busy machine do not count.
fn spent() -> f64 {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map_or(0.0, |time| Duration::from(time).as_nanos() as f64)
}

/// Runs a program many times; returns the time of one run.
fn run(path: &mut Datapath, program: Program, mut packet: Vec<u8>) -> Result<f64, Error> {
    let begin = spent();
    path.test(program, &mut packet, REPEAT)?;
    Ok((spent() - begin) / f64::from(REPEAT))
}

fn main() -> Result<(), Error> {
    println!("| flows | data packet, ns | rewritten ACK, ns | the bare test run, ns | rewritten | load, ms |");
    println!("|---|---|---|---|---|---|");
    for flows in [1, 1000, 10_000, 100_000] {
        println!("{}", row(flows)?);
    }
    Ok(())
}

fn row(flows: u32) -> Result<String, Error> {
    let way = Way { rate_bps: SECOND, capacity: 118_750_000_000, room: 1 << 40, in_packets: false, backlog: 0 };
    let patience = 1000 * SECOND;
    let begin = spent();
    let control = Control { patience, ..Control::new((flows / 8).max(64), [1, 2], [way; 2]) };
    let mut path = Datapath::load_to_measure(control)?;
    let load = (spent() - begin) / 1e6;
    let missing = open(&mut path, flows)?;
    assert!(missing * 100 <= u64::from(flows), "{missing} of {flows} connections have no line");
    path.visit(flows)?;
    let [mut data, mut acks, mut shells] = [const { Vec::new() }; 3];
    let before = path.sums()?[0].rewritten;
    for _ in 0..ROUNDS {
        let shell = run(&mut path, Program::Shell, packet(0, true, 0x10, 0, 0, 1400))?;
        data.push(run(&mut path, Program::VisitData, packet(0, true, 0x10, 0, 0, 1400))? - shell);
        acks.push(run(&mut path, Program::VisitAck, packet(0, false, 0x10, 0, 0, 0))? - shell);
        shells.push(shell);
    }
    let rewritten = (path.sums()?[0].rewritten - before) as f64 / (f64::from(REPEAT) * ROUNDS as f64);
    let [data, acks, shell] = [data, acks, shells].map(median);
    Ok(format!("| {flows} | {data:.0} | {acks:.0} | {shell:.0} | {:.1} % | {load:.0} |", 100.0 * rewritten))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Opens all connections, 100 ms from end to end, and lets each send; returns how many got no line.
fn open(path: &mut Datapath, flows: u32) -> Result<u64, Error> {
    let begin = clock() - 60 * SECOND;
    for flow in 0..flows {
        let segments = [
            (true, 0x02, 1000, 0, 0),
            (false, 0x12, 5000, 1001, 0),
            (true, 0x10, 1001, 5001, 0),
            (true, 0x10, 1001, 5001, 1400),
            (false, 0x10, 5001, 1001, 0),
            (true, 0x10, 1001 + (1 << 28), 5001, 1400),
        ];
        for (at, (outward, flags, seq, ack, payload)) in segments.into_iter().enumerate() {
            let clock = begin + at as u64 * 50_000_000;
            path.tell(Control { clock, heartbeat: clock, ..path.told().clone() })?;
            let program = if outward { Program::Outward } else { Program::Inward };
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
