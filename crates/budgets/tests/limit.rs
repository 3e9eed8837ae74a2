//! The program in the kernel, with real connections over loopback in a cgroup, in which this process is. Therefore it has no
//! other tests.

use nix::sys::socket::{setsockopt, sockopt::Mark};
use penstock_core::units::Rate;
use penstock_linux::limit::Limit;
use penstock_linux::testing::{Testbed, skip};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A cgroup which this process leaves at the end.
struct Cgroup(PathBuf);

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = std::fs::write(self.0.with_file_name("cgroup.procs"), std::process::id().to_string());
    }
}

/// Bits that arrive in a second over each of some connections, which are always full.
fn rates_of(readers: &mut [TcpStream], time: Duration) -> Vec<f64> {
    let (start, mut bytes, mut buffer) = (Instant::now(), vec![0usize; readers.len()], vec![0; 1 << 20]);
    while start.elapsed() < time {
        for (reader, bytes) in readers.iter_mut().zip(&mut bytes) {
            *bytes += reader.read(&mut buffer).unwrap_or(0);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let seconds = start.elapsed().as_secs_f64();
    bytes.into_iter().map(|bytes| bytes as f64 * 8.0 / seconds).collect()
}

fn rate_of(readers: &mut [TcpStream], time: Duration) -> f64 {
    rates_of(readers, time).iter().sum()
}

/// Connections that are always full, of which each has a mark; returns the ends that read.
fn connections(marks: &[u32]) -> Vec<TcpStream> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    marks
        .iter()
        .map(|mark| {
            let mut writer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            setsockopt(&writer, Mark, mark).unwrap();
            let (reader, _) = listener.accept().unwrap();
            reader.set_nonblocking(true).unwrap();
            std::thread::spawn(move || while writer.write_all(&[7; 65536]).is_ok() {});
            reader
        })
        .collect()
}

/// One limit for one and for four connections, a change of it, and none after the order has ended.
#[test]
fn connections_keep_to_the_order_and_are_free_after_it() {
    let Some(bed) = Testbed::new(&[], &[]) else { return };
    let Some(path) = bed.cgroup("limit") else { return };
    if let Err(why) = std::fs::write(path.join("cgroup.procs"), "0") {
        return skip(format!("cannot join a cgroup: {why}"));
    }
    let cgroup = Cgroup(path);
    let limit = match Limit::attach(&cgroup.0, &BTreeMap::new(), None) {
        Ok(limit) => limit,
        Err(why) => return skip(why),
    };
    let keep = |rate: u64| {
        let limit = &limit;
        move || limit.order(Some(Rate::from_bps(rate))).unwrap()
    };
    let measured = |readers: &mut [TcpStream], order: &dyn Fn()| {
        order();
        let _ = rate_of(readers, Duration::from_millis(1500));
        order();
        rate_of(readers, Duration::from_millis(1500))
    };
    keep(50_000_000)();
    let mut four = connections(&[0; 4]);
    // A segment of the loopback has 64 KiB, and one of each connection may have waited for the reader from before.
    let burst = 4.0 * 65536.0 * 8.0 / 1.5;
    let within = |rate: f64, wanted: f64| (0.85 * wanted..1.03 * wanted + burst).contains(&rate);
    let rate = measured(&mut four, &keep(50_000_000));
    assert!(within(rate, 50e6), "{rate} {:?}", limit.census());
    let census = limit.census().unwrap();
    // Each connection has two ends here, of which the readers send acknowledgments only.
    assert!((4..=8).contains(&census.held) && census.changed_to == 50_000_000, "{census:?}");
    let rate = measured(&mut four, &keep(20_000_000));
    assert!(within(rate, 20e6), "{rate} {:?}", limit.census());
    // The order ends by itself, as when a process hangs.
    std::thread::sleep(Duration::from_millis(2100));
    let _ = rate_of(&mut four, Duration::from_millis(500));
    let free = rate_of(&mut four, Duration::from_millis(500));
    assert!(free > 200e6, "{free} {:?}", limit.census());
    drop((four, limit));

    // One connection of weight 3 beside three of weight 1 has half of the budget.
    let limit = Limit::attach(&cgroup.0, &BTreeMap::from([(7, 3), (9, 50)]), None).unwrap();
    let order = || limit.order(Some(Rate::from_bps(40_000_000))).unwrap();
    order();
    let mut streams = connections(&[7, 0, 0, 8]);
    let _ = rate_of(&mut streams, Duration::from_millis(1500));
    order();
    let rates = rates_of(&mut streams, Duration::from_millis(1500));
    eprintln!("weights 3, 1, 1, 1 of 40 Mbit/s: {rates:.0?}");
    let burst = 65536.0 * 8.0 / 1.5;
    for (rate, wanted) in rates.iter().zip([20e6, 20e6 / 3.0, 20e6 / 3.0, 20e6 / 3.0]) {
        assert!((0.85 * wanted - burst..1.03 * wanted + burst).contains(rate), "{rates:?} {:?}", limit.census());
    }
}
