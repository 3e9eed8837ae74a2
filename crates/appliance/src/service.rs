//! What whoever has started this process is told (`sd_notify`): the unit waits for it, and watches over it. Without such a one
//! nothing is told.

use sd_notify::NotifyState;

/// It is ready for its work.
pub fn ready() {
    let _ = sd_notify::notify(&[NotifyState::Ready]);
}

/// It still runs; told at least once a second.
pub fn alive() {
    let _ = sd_notify::notify(&[NotifyState::Watchdog]);
}

/// It ends.
pub fn stopping() {
    let _ = sd_notify::notify(&[NotifyState::Stopping]);
}
