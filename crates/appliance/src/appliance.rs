//! What an appliance is to the loop that all of them share ([`run`](crate::run::run)).

use crate::desk::Desk;
use crate::settings::Settings;
use crate::socket::message::{By, Refusal};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use penstock_core::units::Instant;
use serde::Serialize;
use serde_json::Value;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// How settings came to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// Somebody set values.
    ByHand,
    /// A file says so.
    ByFile,
    /// Former values returned.
    Back,
}

/// Until when an appliance may sleep, and what else wakes it.
#[derive(Debug, Clone, Copy)]
pub struct Rest<'a> {
    /// The present time.
    pub now: Instant,
    /// The loop has something to do then.
    pub until: Instant,
    /// Readable if the loop has something to do now.
    pub slow: BorrowedFd<'a>,
    /// False while `slow` must not be polled: clients, however many ask, cannot take the processor from packets.
    pub serves: bool,
}

/// A program that runs until something ends it. What it does with packets is its own; signals, the control socket, changes, the
/// log, the page and the service manager are the loop's.
pub trait Appliance: Sized {
    /// What can be changed while it runs.
    type Settings: Settings;
    /// What `apply` reads of a file.
    type File: Send + 'static;
    /// The status, as `status --json` prints it, and the last report.
    type Status: Serialize;
    /// True if SIGHUP applies the file with which the run began; else it ends the run.
    const APPLIES_AT_HANGUP: bool = false;

    /// Does all that is due; returns the time up to which it was done.
    ///
    /// # Errors
    /// Returns why the run must end, as a sentence.
    fn turn(&mut self, desk: &mut Desk<Self>) -> Result<Instant, String>;

    /// Sleeps until something is due, or to be read; returns whether `slow` is readable.
    ///
    /// # Errors
    /// Returns why the run must end, as a sentence.
    fn sleep(&mut self, rest: &Rest<'_>) -> Result<bool, String>;

    /// Reads what has come.
    ///
    /// # Errors
    /// Returns why the run must end, as a sentence.
    fn read_what_came(&mut self, _: &mut Desk<Self>) -> Result<(), String> {
        Ok(())
    }

    /// Looks at descriptors of its own among the slow ones ([`Desk::watch`]).
    ///
    /// # Errors
    /// Returns why the run must end, as a sentence.
    fn look(&mut self, _: &mut Desk<Self>) -> Result<(), String> {
        Ok(())
    }

    /// Does what is done once a second.
    ///
    /// # Errors
    /// Returns why the run must end, as a sentence.
    fn tick(&mut self, _: Instant, _: &mut Desk<Self>) -> Result<(), String> {
        Ok(())
    }

    /// Returns the status up to now.
    fn status(&mut self, desk: &Desk<Self>) -> Self::Status;

    /// Returns the status as a signal prints it.
    fn text(&mut self, desk: &Desk<Self>) -> String {
        serde_json::to_string(&self.status(desk)).unwrap_or_default()
    }

    /// Returns who carries most.
    ///
    /// # Errors
    /// Refuses it where nobody counts that.
    fn top(&self, _: By, _: usize, _: Instant) -> Result<Value, Refusal> {
        Err(Refusal::new("this appliance counts no flows; `status` has its counters"))
    }

    /// Returns the settings that hold.
    fn settings(&self) -> &Self::Settings;

    /// Returns the settings with these values in the place of those that hold.
    ///
    /// # Errors
    /// Refuses the first value that cannot be set, with what is allowed.
    fn read(&self, values: &[(String, String)]) -> Result<Self::Settings, Refusal>;

    /// Returns what to go to from what holds, as a file says.
    ///
    /// # Errors
    /// Refuses what cannot change while it runs.
    fn wanted(&self, file: &Self::File) -> Result<Self::Settings, Refusal>;

    /// Makes these the settings, all of them or none; returns when.
    ///
    /// # Errors
    /// Refuses what cannot be done.
    fn go_to(&mut self, wanted: &Self::Settings) -> Result<Instant, Refusal>;

    /// Reads back what holds.
    ///
    /// # Errors
    /// Returns what is not as it was set.
    fn read_back(&self) -> Result<(), String> {
        Ok(())
    }

    /// Hears that the settings were `former` until now.
    fn changed(&mut self, _former: &Self::Settings, _: How) {}
}

/// Sleeps until `next` or until there is something slow to do, for an appliance that reads nothing itself; returns whether there
/// is.
///
/// # Errors
/// Returns the error of the system, as a sentence.
pub fn wait(rest: &Rest<'_>, next: Instant) -> Result<bool, String> {
    let slow = if rest.serves { PollFlags::POLLIN } else { PollFlags::empty() };
    let timeout = Duration::from_nanos(next.min(rest.until).since(rest.now).as_nanos());
    match ppoll(&mut [PollFd::new(rest.slow, slow)], Some(timeout.into()), None) {
        Err(Errno::EINTR) => Ok(false),
        polled => Ok(polled.map_err(|error| format!("cannot wait: {error}"))? > 0),
    }
}
