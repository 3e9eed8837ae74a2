//! The scheduling of this thread by the kernel: exact timers, and on request a real-time priority and processors that do not sleep.

use crate::error::Error;
use nix::sys::prctl::set_timerslack;
use std::fs::File;
use std::io::{self, Write};

/// A low real-time priority: above every ordinary process, below the kernel's own threads.
const PRIORITY: i32 = 10;
/// Threads and processes that this one starts are ordinary ones (SCHED_RESET_ON_FORK of include/uapi/linux/sched.h).
const NOT_INHERITED: i32 = 0x4000_0000;

/// The kernel's promise about how soon a processor wakes up (Documentation/power/pm_qos_interface.rst): it holds as long as the
/// file is open.
const WAKES_WITHIN: &str = "/dev/cpu_dma_latency";

/// As long as this lives, no processor of the machine sleeps so deeply that it would need time to wake up; idle ones poll.
#[derive(Debug)]
pub struct Awake(#[expect(dead_code, reason = "what counts is that it is open")] File);

impl Awake {
    /// Keeps the processors awake; `None` where the kernel does not offer it or only root may ask.
    pub fn keep() -> Option<Self> {
        Self::by(WAKES_WITHIN)
    }

    fn by(file: &str) -> Option<Self> {
        let mut file = File::options().write(true).open(file).ok()?;
        file.write_all(&0_i32.to_ne_bytes()).ok()?; // microseconds
        Some(Self(file))
    }
}

/// Makes this thread prompt: exact timers, and precedence over all ordinary threads if `realtime` is set.
pub fn prompt(realtime: bool) -> Result<(), Error> {
    if realtime {
        self::realtime()?;
    }
    // Timers fire when they are due, instead of up to 50 us later.
    set_timerslack(1).map_err(Error::io("cannot set the timer slack"))
}

/// Gives this thread alone precedence over all ordinary ones (SCHED_FIFO).
#[expect(unsafe_code, reason = "no safe wrapper of sched_setscheduler is among the dependencies")]
fn realtime() -> Result<(), Error> {
    // SAFETY: `sched_param` is plain data for which zero is valid; the call only reads it.
    let refused = unsafe {
        let mut parameters: libc::sched_param = std::mem::zeroed();
        parameters.sched_priority = PRIORITY;
        libc::sched_setscheduler(0, libc::SCHED_FIFO | NOT_INHERITED, &raw const parameters) != 0
    };
    let why = io::Error::last_os_error();
    let what = format!("real-time priority: {why}; run as root or with CAP_SYS_NICE, or do without it (`realtime`)");
    if refused { Err(Error::Refused(what)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Field 41 of /proc/PID/stat is the policy: 1 is SCHED_FIFO, 0 the ordinary one.
    #[test]
    fn who_is_started_by_a_thread_with_precedence_has_none() {
        let policy = || {
            let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
            stat.rsplit_once(") ").unwrap().1.split(' ').nth(41 - 3).unwrap().to_owned()
        };
        let own = move || prompt(true).map(|()| [policy(), std::thread::spawn(policy).join().unwrap()]);
        match std::thread::spawn(own).join().unwrap() {
            Ok(policies) => assert_eq!(policies, ["1", "0"]),
            Err(error) => eprintln!("SKIPPED: {error}"),
        }
    }

    #[test]
    fn processors_are_asked_to_wake_in_no_time_and_without_the_kernels_file_nothing_is_asked() {
        let asked = std::env::temp_dir().join(format!("penstock-awake-{}", std::process::id()));
        std::fs::write(&asked, []).unwrap();
        assert!(Awake::by(asked.to_str().unwrap()).is_some());
        assert_eq!(std::fs::read(&asked).unwrap(), [0; 4]);
        std::fs::remove_file(asked).unwrap();
        assert!(Awake::by("/nowhere/cpu_dma_latency").is_none());
    }
}
