//! Was this process running when it had to? Two things are not seen in the lateness of packets: that it was stopped or
//! the machine slept, and that packets waited in the kernel to be read while the link had nothing to send.

use nix::time::{ClockId, clock_gettime};
use penstock_core::units::{Instant, Span};
use serde::Serialize;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// The loop sleeps no longer than this, so that longer gaps are noticed.
pub const LONGEST_SLEEP: Span = Span::from_millis(100);
/// A loop that comes back so much later than it should was stopped.
const STALL: Span = Span::from_millis(50);

/// Times in which the process did not run although it had to.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Stalls {
    /// Number of times.
    pub times: u64,
    /// All of them together, in seconds.
    pub total_s: f64,
    /// The longest of them, in seconds.
    pub longest_s: f64,
    /// For how long the machine was suspended, in seconds. Packets do not travel in this time.
    pub suspended_s: f64,
}

impl Stalls {
    /// Notes that the loop, which had to be here at `due`, was here at `now`.
    pub fn note(&mut self, due: Instant, now: Instant) {
        let late = now.since(due);
        if late >= STALL {
            self.times += 1;
            self.total_s += late.as_secs_f64();
            self.longest_s = self.longest_s.max(late.as_secs_f64());
        }
    }

    /// Notes for how long the machine has been suspended since the start.
    pub fn note_suspended(&mut self, suspended: Span) {
        if suspended >= STALL {
            self.suspended_s = suspended.as_secs_f64();
        }
    }

    /// True if the process was stopped or the machine was suspended.
    pub fn any(&self) -> bool {
        self.times > 0 || self.suspended_s > 0.0
    }
}

/// The time for which the machine was suspended: CLOCK_BOOTTIME goes on then, CLOCK_MONOTONIC does not.
#[derive(Debug, Clone, Copy)]
pub struct Suspension {
    before: i64,
}

impl Default for Suspension {
    /// Begins to count.
    fn default() -> Self {
        Self { before: suspended_ns() }
    }
}

impl Suspension {
    /// Returns for how long the machine was suspended since then.
    pub fn so_far(&self) -> Span {
        Span::from_nanos(u64::try_from(suspended_ns() - self.before).unwrap_or_default())
    }
}

fn suspended_ns() -> i64 {
    let ns = |clock| clock_gettime(clock).map_or(0, |t| t.tv_sec() * 1_000_000_000 + t.tv_nsec());
    // Read in this order, the time between the two calls does not count as a suspension.
    let (boot, monotonic) = (ns(ClockId::CLOCK_BOOTTIME), ns(ClockId::CLOCK_MONOTONIC));
    boot - monotonic
}

/// For how long this thread has been ready to run and had no processor: the kernel counts it.
#[derive(Debug)]
pub struct ProcessorWait(Option<File>);

impl ProcessorWait {
    /// Opens the counter of this thread; where the kernel has none, it stays at zero.
    pub fn open() -> Self {
        Self(File::open("/proc/thread-self/schedstat").ok())
    }

    /// Returns the time since the thread exists.
    pub fn so_far(&self) -> Span {
        let mut text = [0; 96];
        let len = self.0.as_ref().and_then(|file| file.read_at(&mut text, 0).ok()).unwrap_or_default();
        Span::from_nanos(waited_ns(&text[..len]).unwrap_or_default())
    }
}

/// Reads the second of the three numbers.
fn waited_ns(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_for_a_processor_is_the_second_number() {
        assert_eq!(waited_ns(b"123456 789 42\n"), Some(789));
        assert_eq!((waited_ns(b""), waited_ns(b"x y z")), (None, None));
        let wait = ProcessorWait::open();
        assert!(wait.so_far() <= wait.so_far());
    }

    #[test]
    fn the_wait_is_read_anew_each_time_and_is_nothing_where_the_kernel_counts_none() {
        let path = std::env::temp_dir().join(format!("penstock-schedstat-{}", std::process::id()));
        std::fs::write(&path, "5000 700 3\n").unwrap();
        let wait = ProcessorWait(Some(File::open(&path).unwrap()));
        assert_eq!(wait.so_far(), Span::from_nanos(700));
        std::fs::write(&path, "6000 123456789 4\n").unwrap();
        assert_eq!(wait.so_far(), Span::from_nanos(123_456_789));
        std::fs::remove_file(path).unwrap();
        assert_eq!(ProcessorWait(None).so_far(), Span::ZERO);
    }
}
