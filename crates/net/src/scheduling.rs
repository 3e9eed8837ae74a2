//! How the kernel wakes this thread: as exactly as it can, and before others if it is asked to.

use crate::error::Error;
use nix::sys::prctl::set_timerslack;
use std::io;

/// Low among real-time priorities: above every ordinary process, below the kernel's own threads.
const PRIORITY: i32 = 10;

/// Timers of this thread fire when they are due, not up to 50 us later.
pub fn exact_timers() -> Result<(), Error> {
    set_timerslack(1).map_err(Error::io("cannot set the timer slack"))
}

/// Runs this thread before all ordinary ones (SCHED_FIFO).
#[expect(unsafe_code, reason = "no safe wrapper of sched_setscheduler is among the dependencies")]
pub fn realtime() -> Result<(), Error> {
    // SAFETY: `sched_param` is plain data for which zero is valid; the call only reads it.
    let refused = unsafe {
        let mut parameters: libc::sched_param = std::mem::zeroed();
        parameters.sched_priority = PRIORITY;
        libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) != 0
    };
    if refused { Err(Error::Realtime(io::Error::last_os_error())) } else { Ok(()) }
}
