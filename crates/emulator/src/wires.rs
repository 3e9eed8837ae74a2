//! Several wires in one process. Each has a thread of its own with an emulator, which shares nothing with the others: one does
//! not wait for another, and each has its place in the scheduler of the system. The main thread passes signals on.

use crate::cli::{Options, Plan};
use crate::emulator::{Emulator, Finished};
use crate::error::Error;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use penstock_appliance::appliance::Desk;
use penstock_appliance::output::{Offers, Printer};
use penstock_linux::signals::{Relay, Request, Signals};
use std::io;
use std::os::fd::AsFd as _;
use std::panic::resume_unwind;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

/// A wire whose interfaces are there, and whose thread waits for the others.
pub struct Wire {
    pub ready: String,
    relay: Relay,
    go: Sender<()>,
    thread: JoinHandle<Option<Finished>>,
}

/// What opens the emulator of a wire, and says what it does.
pub type Open = fn(Plan, &Options, Signals, Offers) -> Result<(Emulator, Desk<Emulator>, String), Error>;

/// Opens a wire with `open`; the error says what is missing.
pub fn open(plan: Plan, options: &Options, printer: &Printer, open: Open) -> Result<Wire, Error> {
    let no_thread = Error::io("cannot start a thread");
    let (relay, signals) = Relay::new().map_err(&no_thread)?;
    let (told, opened) = channel();
    let (go, wait) = channel::<()>();
    let (options, offers) = (options.clone(), printer.offers());
    let name = plan.wire.clone().unwrap_or_default();
    let work = move || {
        let (opened, emulator) = match open(plan, &options, signals, offers) {
            Ok((emulator, desk, ready)) => (Ok(ready), Some((emulator, desk))),
            Err(error) => (Err(error), None),
        };
        let _ = told.send(opened);
        // Without a word the process ends, because another wire could not be opened.
        wait.recv().ok()?;
        emulator.map(|(emulator, desk)| emulator.run(desk).0)
    };
    let thread = thread::Builder::new().name(name).spawn(work).map_err(&no_thread)?;
    let ready = opened.recv().unwrap_or_else(|_| Err(no_thread(io::Error::other("it ended at once"))))?;
    Ok(Wire { ready, relay, go, thread })
}

/// Runs all wires until each has ended; returns what they report, in order. If one fails, all end.
pub fn run(wires: Vec<Wire>, signals: &Signals) -> Result<Vec<Finished>, Error> {
    for wire in &wires {
        let _ = wire.go.send(());
    }
    let mut running: Vec<(usize, Wire)> = wires.into_iter().enumerate().collect();
    let mut finished: Vec<(usize, Finished)> = Vec::with_capacity(running.len());
    while !running.is_empty() {
        await_any(signals, &running)?;
        while let Some(request) = signals.next() {
            running.iter().for_each(|(_, wire)| wire.relay.send(request));
        }
        for (number, wire) in running.extract_if(.., |(_, wire)| wire.has_ended()).collect::<Vec<_>>() {
            // What was wrong with a wire that panicked has been said, and is no success.
            let one = wire.thread.join().unwrap_or_else(|panic| resume_unwind(panic));
            finished.extend(one.map(|one| (number, one)));
        }
        if finished.iter().any(|(_, one)| one.failure.is_some()) {
            running.iter().for_each(|(_, wire)| wire.relay.send(Request::End(Signal::SIGTERM)));
        }
    }
    finished.sort_by_key(|(number, _)| *number);
    Ok(finished.into_iter().map(|(_, one)| one).collect())
}

impl Wire {
    /// True if its thread has dropped its signals, as it does when it has ended.
    fn has_ended(&self) -> bool {
        let mut fds = [PollFd::new(self.relay.as_fd(), PollFlags::POLLIN)];
        poll(&mut fds, PollTimeout::ZERO) != Ok(0)
    }
}

/// Waits for a signal, or for the end of a wire.
fn await_any(signals: &Signals, running: &[(usize, Wire)]) -> Result<(), Error> {
    let relays = running.iter().map(|(_, wire)| wire.relay.as_fd());
    let fds = std::iter::once(signals.as_fd()).chain(relays);
    let mut fds: Vec<PollFd<'_>> = fds.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
    match poll(&mut fds, PollTimeout::NONE) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(error) => Err(Error::io("cannot wait for signals")(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn a_wire_has_ended_when_nobody_hears_its_relay() {
        let (relay, signals) = Relay::new().unwrap();
        let wire = Wire { ready: String::new(), relay, go: channel().0, thread: thread::spawn(|| None) };
        assert!(!wire.has_ended());
        drop(signals);
        assert!(wire.has_ended());
    }

    #[test]
    fn a_wire_that_panicked_is_no_success() {
        let (relay, heard) = Relay::new().unwrap();
        let thread = thread::spawn(|| {
            let _heard = heard;
            panic!("as it happens");
        });
        let wire = Wire { ready: String::new(), relay, go: channel().0, thread };
        let (_main, signals) = Relay::new().unwrap();
        assert!(catch_unwind(AssertUnwindSafe(|| run(vec![wire], &signals))).is_err());
    }
}
