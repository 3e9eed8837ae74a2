//! The program in the kernel, with real connections over loopback in a cgroup of its own. Skipped where that is not
//! possible.

use penstock_core::units::Rate;
use penstock_hosts::limit::{Limit, hierarchy};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A cgroup in which this process is, for the duration of a test.
struct Cgroup(PathBuf);

impl Cgroup {
    fn new(name: &str) -> Option<Self> {
        let Some(root) = hierarchy() else {
            eprintln!("skipped: no cgroup of version 2");
            return None;
        };
        let path = root.join(format!("{name}{}", std::process::id()));
        if let Err(why) = std::fs::create_dir(&path) {
            eprintln!("skipped: cannot make a cgroup: {why}");
            return None;
        }
        let cgroup = Self(path);
        let joined = std::fs::write(cgroup.0.join("cgroup.procs"), "0");
        if let Err(why) = joined {
            eprintln!("skipped: cannot join a cgroup: {why}");
            return None;
        }
        Some(cgroup)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = std::fs::write(self.0.with_file_name("cgroup.procs"), std::process::id().to_string());
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// Bytes that arrive in a second, over connections that are always full.
fn rate_of(readers: &mut [TcpStream], time: Duration) -> f64 {
    let (start, mut bytes, mut buffer) = (Instant::now(), 0usize, vec![0; 1 << 20]);
    while start.elapsed() < time {
        for reader in readers.iter_mut() {
            bytes += reader.read(&mut buffer).unwrap_or(0);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    bytes as f64 * 8.0 / start.elapsed().as_secs_f64()
}

fn connections(n: usize) -> Vec<TcpStream> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    (0..n)
        .map(|_| {
            let mut writer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
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
    let Some(cgroup) = Cgroup::new("penstock-limit") else { return };
    let limit = match Limit::attach(&cgroup.0) {
        Ok(limit) => limit,
        Err(why) => return eprintln!("skipped: {why}"),
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
    let mut four = connections(4);
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
}
