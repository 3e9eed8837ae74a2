//! The lock that a guard takes from the one before.

use nix::sys::signal::Signal;
use penstock_appliance::guard::take_over;
use std::fs::{File, TryLockError};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

#[test]
fn a_lock_is_taken_once_it_is_free() {
    let path = std::env::temp_dir().join(format!("penstock-guard-{}", std::process::id()));
    std::fs::write(&path, "0").unwrap();
    let before = File::open(&path).unwrap();
    before.lock().unwrap();
    std::thread::scope(|threads| {
        let taken = threads.spawn(|| take_over(&path).unwrap());
        std::thread::sleep(Duration::from_millis(30));
        assert!(!taken.is_finished());
        drop(before);
        let _taken = taken.join().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), std::process::id().to_string());
    });
    assert!(!path.exists(), "the file goes with the lock");
}

/// The guard before this one is a process that has the lock until it ends; its number is in the file.
#[test]
fn a_guard_that_is_there_is_ended_and_its_lock_is_taken() {
    let path = std::env::temp_dir().join(format!("penstock-guard-before-{}", std::process::id()));
    let held = File::create(&path).unwrap();
    held.try_lock().unwrap();
    let mut before = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    std::fs::write(&path, format!("{}\n", before.id())).unwrap();
    let ended = std::thread::spawn(move || {
        let status = before.wait().unwrap();
        drop(held);
        status
    });
    let taken = take_over(&path).unwrap();
    assert_eq!(ended.join().unwrap().signal(), Some(Signal::SIGTERM as i32));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), std::process::id().to_string());
    assert!(matches!(File::open(&path).unwrap().try_lock(), Err(TryLockError::WouldBlock)));
    drop(taken);
}

/// Whoever may open the file may take its lock, and a guard ends the process of which the number is in it.
#[test]
fn nobody_else_may_open_the_lock() {
    let path = std::env::temp_dir().join(format!("penstock-guard-own-{}", std::process::id()));
    let taken = take_over(&path).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    drop(taken);
}
