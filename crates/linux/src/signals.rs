//! The signals that end a run, and the one that asks for a report meanwhile.
//!
//! Each signal that would end the process without a report ends the run instead. A signal that the process was told to
//! ignore when it started, as `nohup` does with SIGHUP, is ignored, unless it is a request of its own.

use crate::error::Error;
use nix::sys::signal::SigSet;
use nix::sys::signal::Signal::{self, SIGALRM, SIGIO, SIGPROF, SIGPWR, SIGSTKFLT, SIGUSR2, SIGVTALRM, SIGXCPU};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// These end a run as it should end.
const ORDERLY: [Signal; 4] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];
/// These end a process by default, and here they end the run.
const OTHERS: [Signal; 8] = [SIGALRM, SIGIO, SIGPROF, SIGPWR, SIGSTKFLT, SIGUSR2, SIGVTALRM, SIGXCPU];

/// What a signal means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// Print the report and go on.
    Report,
    /// End the run.
    End(Signal),
}

impl Request {
    fn of(signal: Signal) -> Self {
        if signal == Signal::SIGUSR1 { Self::Report } else { Self::End(signal) }
    }

    fn signal(self) -> Signal {
        match self {
            Self::Report => Signal::SIGUSR1,
            Self::End(signal) => signal,
        }
    }
}

/// True for a signal by which people and programs end a run; the others mean that something is wrong.
pub fn is_orderly(signal: Signal) -> bool {
    ORDERLY.contains(&signal)
}

/// A descriptor that is readable when a signal has come.
#[derive(Debug)]
pub struct Signals(Source);

#[derive(Debug)]
enum Source {
    Process(SignalFd),
    /// The signals that another thread passes on, a byte for each.
    Relay(UnixStream),
}

/// Passes signals on to one thread: the system gives each to one reader, and several threads want it. It is readable when
/// that thread has dropped its [`Signals`].
#[derive(Debug)]
pub struct Relay(UnixStream);

impl Relay {
    /// Creates a relay and what it passes signals on to.
    pub fn new() -> io::Result<(Self, Signals)> {
        let (here, there) = UnixStream::pair()?;
        here.set_nonblocking(true)?;
        there.set_nonblocking(true)?;
        Ok((Self(here), Signals(Source::Relay(there))))
    }

    /// Passes a request on. What does not fit is lost: then many are there already.
    pub fn send(&self, request: Request) {
        let _ = (&self.0).write(&[request.signal() as u8]);
    }
}

impl AsFd for Relay {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Signals {
    /// From here on signals are requests, in this thread and those that it starts; `always` are so even if the process was
    /// told to ignore them.
    pub fn open(always: &[Signal]) -> Result<Self, Error> {
        let ignored = ignored();
        let mut set = SigSet::empty();
        let heard = |signal: &Signal| {
            // Shells start background jobs with SIGINT ignored, and nevertheless SIGINT is what ends them.
            let is_end = matches!(signal, Signal::SIGINT | Signal::SIGTERM);
            is_end || always.contains(signal) || ignored & (1 << (*signal as i32 - 1)) == 0
        };
        ORDERLY.iter().chain(&OTHERS).chain([&Signal::SIGUSR1]).filter(|s| heard(s)).for_each(|s| set.add(*s));
        let mut blocked = set;
        // A file above the limit of `ulimit -f` is an error of that file only.
        blocked.add(Signal::SIGXFSZ);
        blocked.thread_block().map_err(Error::io("cannot block signals"))?;
        SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)
            .map(|signals| Self(Source::Process(signals)))
            .map_err(Error::io("cannot open a signalfd"))
    }

    /// Returns the next request; `None` if no signal has come.
    pub fn next(&self) -> Option<Request> {
        let number = match &self.0 {
            Source::Process(signals) => signals.read_signal().ok()??.ssi_signo as i32,
            Source::Relay(relay) => {
                let mut number = [0];
                let mut relay: &UnixStream = relay;
                relay.read_exact(&mut number).ok()?;
                i32::from(number[0])
            }
        };
        Signal::try_from(number).ok().map(Request::of)
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.0 {
            Source::Process(signals) => signals.as_fd(),
            Source::Relay(relay) => relay.as_fd(),
        }
    }
}

/// Returns the signals that this process ignores, one bit each. Rust itself ignores SIGPIPE.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rust_ignores_broken_pipes_and_this_is_seen() {
        assert_ne!(ignored() & (1 << (Signal::SIGPIPE as i32 - 1)), 0);
        assert_eq!(ignored() & (1 << (Signal::SIGTERM as i32 - 1)), 0);
    }

    #[test]
    fn only_one_signal_does_not_end_the_run() {
        assert_eq!(Request::of(Signal::SIGUSR1), Request::Report);
        assert_eq!(Request::of(Signal::SIGHUP), Request::End(Signal::SIGHUP));
        assert!(is_orderly(Signal::SIGQUIT) && !is_orderly(Signal::SIGXCPU));
    }
}
