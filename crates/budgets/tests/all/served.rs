//! The role in its thread.

use penstock_budgets::roster::Roster;
use penstock_budgets::served::{Keys, Served};
use penstock_core::units::Rate;
use penstock_linux::random;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

/// A standby takes over from a silent gateway under its third number. Here the second is the last that there is, so the role
/// ends.
#[test]
fn when_the_role_ends_by_itself_nobody_has_a_budget() {
    let name = format!("penstock-served-{:x}", u64::from_ne_bytes(random::bytes().unwrap()));
    let directory = std::env::temp_dir().join(name);
    let _ = Roster::open(&directory).unwrap();
    std::fs::write(directory.join("incarnation"), (u64::MAX - 2).to_string()).unwrap();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let standby = Some(silent.local_addr().unwrap());
    let keys =
        Keys { listen: "127.0.0.1:0".parse().unwrap(), directory: directory.clone(), standby, ..Keys::default() };
    let served = Served::start(&keys, Rate::from_bps(1_000_000), true).unwrap();
    let begin = Instant::now();
    while !served.has_failed() {
        assert!(begin.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!((served.grants(), served.status()), (Some(Vec::new()), None));
    std::fs::remove_dir_all(directory).unwrap();
}
