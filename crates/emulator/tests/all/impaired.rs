//! Datagrams over a link that loses, duplicates and delays them, between two namespaces: what arrives is what the report says.

use crate::lab::{EMULATOR, emulator, number, report};
use penstock_linux::testing::{Program, Testbed, skip};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::process::Command;
use std::time::{Duration, Instant};

/// Number of datagrams, one each millisecond.
const SENT: u32 = 3000;
const DELAY_MS: f64 = 20.0;
const BY_MS: f64 = 8.0;

/// What arrived: numbers in the order in which they came, with their delays in milliseconds.
fn sent_and_received(near: &UdpSocket, far: &UdpSocket) -> Vec<(u32, f64)> {
    far.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let begin = Instant::now();
    let since = |begin: Instant| begin.elapsed().as_secs_f64() * 1e3;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..SENT {
                let due = Duration::from_millis(number.into());
                std::thread::sleep(due.saturating_sub(begin.elapsed()));
                let mut bytes = [0; 100];
                bytes[..4].copy_from_slice(&number.to_be_bytes());
                bytes[4..12].copy_from_slice(&since(begin).to_be_bytes());
                near.send_to(&bytes, "10.77.0.2:7009").unwrap();
            }
        });
        let (mut got, mut buffer) = (Vec::new(), [0; 200]);
        while got.is_empty() || begin.elapsed() < Duration::from_secs(4) {
            if far.recv(&mut buffer).is_ok() {
                let number = u32::from_be_bytes(buffer[..4].try_into().unwrap());
                let sent = f64::from_be_bytes(buffer[4..12].try_into().unwrap());
                got.push((number, since(begin) - sent));
            }
        }
        got
    })
}

/// A run that was on time, if there is one after some attempts.
fn run(arguments: &[&str]) -> Option<(Vec<(u32, f64)>, Value)> {
    for _ in 0..3 {
        let bed = Testbed::new(&["l", "r"], &[])?;
        let common = ["--rate", "50Mbit/s", "--delay", "20ms", "--realtime", "--seed", "3"];
        let running = Program::ready(emulator(&bed, &[&common, arguments].concat()), &["ready"]);
        let (near, far) = (bed.udp("l", "10.77.0.1:7009"), bed.udp("r", "10.77.0.2:7009"));
        let got = sent_and_received(&near, &far);
        let report = report(running);
        if report["disturbed"] == Value::Bool(false) {
            return Some((got, report));
        }
    }
    skip("this machine is too busy for numbers")
}

/// Half of a machine's microseconds are added to each delay; the distance to the uniform distribution is 0.025 by chance in one
/// of a thousand runs with 3000 datagrams.
#[test]
fn a_delay_that_varies_is_that_of_the_distribution_and_overtakes() {
    let Some((got, _)) = run(&["--impair", "jitter=8ms"]) else { return };
    let numbers: Vec<u32> = got.iter().map(|(number, _)| *number).collect();
    assert!(numbers.len() == SENT as usize && !numbers.is_sorted(), "{} came", numbers.len());
    let mut delays: Vec<f64> = got.iter().map(|(_, delay)| *delay).collect();
    delays.sort_by(f64::total_cmp);
    let n = delays.len() as f64;
    let function = |ms: &f64| ((ms - DELAY_MS + BY_MS) / (2.0 * BY_MS)).clamp(0.0, 1.0);
    let apart = (0..).zip(&delays).map(|(i, ms)| (function(ms) - f64::from(i) / n).abs()).fold(0.0, f64::max);
    assert!(apart < 0.06, "the distance of the distributions is {apart}");
}

#[test]
fn copies_arrive_and_losses_come_in_rows() {
    let Some((got, report)) = run(&["--impair", "duplicate=0.1", "--impair", "gilbert=to_bad=0.02,to_good=0.25"])
    else {
        return;
    };
    let mut times = BTreeMap::<u32, u64>::new();
    got.iter().for_each(|(number, _)| *times.entry(*number).or_default() += 1);
    assert_eq!(times.values().filter(|times| **times == 2).count() as u64, number(&report, "/forward/duplicated"));
    // The kernel sends packets of its own when an interface comes up.
    let lost = u64::from(SENT) - times.len() as u64;
    assert!(lost > 0 && number(&report, "/forward/lost") - lost < 10, "{lost} lost: {report}");
    let missing: Vec<u32> = (0..SENT).filter(|number| !times.contains_key(number)).collect();
    let rows = missing.windows(2).filter(|two| two[1] != two[0] + 1).count() + 1;
    // Rows have a mean of 4, those of independent losses at this rate of 1.08.
    assert!(missing.len() as f64 / rows as f64 > 2.0, "{} lost in {rows} rows", missing.len());
    assert!(got.windows(2).all(|two| two[0].0 <= two[1].0), "nothing overtakes");
}

/// A trace of 12 Mbit/s for a second and 1.2 Mbit/s for a second: the rate that the emulator tells is that of the time.
#[test]
fn a_trace_of_mahimahi_is_played() {
    let Some(bed) = Testbed::new(&["l", "r"], &[]) else { return };
    let lines = (1..=1000).chain((1..=100).map(|ten| 1000 + 10 * ten)).map(|ms: u32| ms.to_string());
    let trace = bed.file("up.trace");
    std::fs::write(&trace, lines.collect::<Vec<_>>().join("\n")).unwrap();
    let words = ["--trace", trace.to_str().unwrap(), "--reverse-rate", "3Mbit/s", "--name", bed.name()];
    let running = Program::ready(emulator(&bed, &words), &["ready"]);
    let mut told = BTreeMap::<u64, u64>::new();
    let begin = Instant::now();
    while told.len() < 2 && begin.elapsed() < Duration::from_secs(20) {
        let output = Command::new(EMULATOR).args(["status", "--json", "--name", bed.name()]).output().unwrap();
        let status: Value = serde_json::from_slice(&output.stdout).unwrap();
        *told.entry(number(&status, "/forward/rate_bps")).or_default() += 1;
        assert_eq!(number(&status, "/reverse/rate_bps"), 3_000_000);
    }
    assert_eq!(told.into_keys().collect::<Vec<_>>(), [1_200_000, 12_000_000]);
    report(running);
}
