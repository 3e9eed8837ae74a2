//! The scheduling of this thread by the kernel: exact timers, and on request a real-time priority.

use crate::error::Error;
use nix::sys::prctl::set_timerslack;
use std::io;

/// A low real-time priority: above every ordinary process, below the kernel's own threads.
const PRIORITY: i32 = 10;

/// Makes this thread prompt: exact timers, and precedence over all ordinary threads if `realtime` is set.
///
/// # Errors
/// Returns what the system refuses.
pub fn prompt(realtime: bool) -> Result<(), Error> {
    if realtime {
        self::realtime()?;
    }
    exact_timers()
}

/// Lets timers of this thread fire when they are due, instead of up to 50 us later.
fn exact_timers() -> Result<(), Error> {
    set_timerslack(1).map_err(Error::io("cannot set the timer slack"))
}

/// Gives this thread precedence over all ordinary ones (SCHED_FIFO).
#[expect(unsafe_code, reason = "no safe wrapper of sched_setscheduler is among the dependencies")]
fn realtime() -> Result<(), Error> {
    // SAFETY: `sched_param` is plain data for which zero is valid; the call only reads it.
    let refused = unsafe {
        let mut parameters: libc::sched_param = std::mem::zeroed();
        parameters.sched_priority = PRIORITY;
        libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) != 0
    };
    if refused { Err(Error::Realtime(io::Error::last_os_error())) } else { Ok(()) }
}
