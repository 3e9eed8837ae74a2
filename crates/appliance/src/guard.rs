//! Guards: a second process that acts when the first one hangs, and when it is gone.
//!
//! The first process holds a pipe to its guard. The guard learns of its death by the end of the pipe. A guard that watches for
//! a process that hangs (SIGSTOP, swap, a deadlock) gets a byte several times within its patience once it is armed. If none
//! comes, it acts and tells so; the first process arms it again.

use crate::second::Second;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use penstock_core::units::Span;
use penstock_linux::lock::Lock;
use std::ffi::OsStr;
use std::fs::TryLockError;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{ChildStdout, Stdio};
use std::time::{Duration, Instant};

/// The verb by which a program starts its guard.
const VERB: &str = "guard";
/// A sign of life.
const ALIVE: u8 = b'.';
/// The first process ends as it should, and leaves nothing to do.
const RETIRE: u8 = b'q';
/// The guard has acted on silence.
const ACTED: u8 = b'o';
/// From now on silence matters.
const ARMED: u8 = b'c';
/// How long a new guard waits for the one before to go.
const PATIENCE: Duration = Duration::from_secs(5);

/// The guard as the first process has it.
#[derive(Debug)]
pub struct Guard {
    second: Second,
    news: ChildStdout,
}

impl Guard {
    /// Starts the guard with these arguments of its verb.
    pub fn start(words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> io::Result<Self> {
        let mut second = Second::start(VERB, words, Stdio::piped())?;
        let news = second.output()?;
        never_wait(&second.life)?;
        never_wait(&news)?;
        Ok(Self { second, news })
    }

    /// False if the guard has gone.
    pub fn is_there(&mut self) -> bool {
        self.second.ended().is_none()
    }

    /// Gives a sign of life; returns false if the guard is gone.
    pub fn beat(&mut self) -> bool {
        self.say(ALIVE)
    }

    /// Tells the guard that it has to act on silence; returns false if the guard is gone.
    pub fn arm(&mut self) -> bool {
        self.say(ARMED)
    }

    fn say(&mut self, what: u8) -> bool {
        // A full pipe: the guard has not read for long, and what it has is enough.
        self.second.life.write_all(&[what]).map_or_else(|e| e.kind() == io::ErrorKind::WouldBlock, |()| true)
    }

    /// Returns whether the guard has acted on silence since the last call.
    pub fn has_acted(&mut self) -> bool {
        let mut news = [0; 16];
        self.news.read(&mut news).is_ok_and(|len| news[..len].contains(&ACTED))
    }

    /// Takes another guard in the place of this one, which is gone.
    pub fn replace(&mut self, other: Self) {
        std::mem::replace(self, other).second.kill();
    }

    /// Ends the guard; nothing must be left to do.
    pub fn retire(mut self) {
        self.say(RETIRE);
        self.second.wait();
    }
}

pub(crate) fn never_wait(pipe: &impl AsFd) -> Result<(), Errno> {
    let flags = OFlag::from_bits_truncate(fcntl(pipe, FcntlArg::F_GETFL)?) | OFlag::O_NONBLOCK;
    fcntl(pipe, FcntlArg::F_SETFL(flags)).map(drop)
}

/// The guard's process: watches the first process until it retires this one, or is gone. When the first process hangs, it does
/// what `silent` does; when it is gone, or that fails, what `gone` does, whose error it returns.
pub fn watch<E>(
    patience: Span,
    silent: impl FnMut() -> Result<(), E>,
    gone: impl FnMut() -> Result<(), E>,
) -> Result<(), E> {
    watch_with(patience, |patience| wait(&io::stdin(), patience), silent, gone)
}

fn watch_with<E>(
    patience: Span,
    mut wait: impl FnMut(Option<Span>) -> Sign,
    mut silent: impl FnMut() -> Result<(), E>,
    mut gone: impl FnMut() -> Result<(), E>,
) -> Result<(), E> {
    let mut armed = false;
    loop {
        match wait(armed.then_some(patience)) {
            Sign::Came(RETIRE) => return Ok(()),
            Sign::Came(ARMED) => armed = true,
            Sign::Came(_) => {}
            Sign::Silence => {
                silent().or_else(|_| gone())?;
                armed = false;
                let _ = io::stdout().write_all(&[ACTED]).and_then(|()| io::stdout().flush());
            }
            Sign::End => return gone(),
        }
    }
}

/// What a wait has brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    /// Signs of life, of which the last was this one.
    Came(u8),
    /// Nothing for as long as the patience.
    Silence,
    /// The first process is gone.
    End,
}

fn wait(signs: &io::Stdin, patience: Option<Span>) -> Sign {
    let mut fds = [PollFd::new(signs.as_fd(), PollFlags::POLLIN)];
    let timeout = patience.map(|span| Duration::from_nanos(span.as_nanos()).into());
    match ppoll(&mut fds, timeout, None) {
        Ok(0) => return Sign::Silence,
        Err(Errno::EINTR) => return Sign::Came(ALIVE),
        Err(_) => return Sign::End,
        Ok(_) => {}
    }
    let mut bytes = [0; 256];
    match nix::unistd::read(signs, &mut bytes) {
        Ok(0) | Err(_) => Sign::End,
        Ok(len) => Sign::Came(bytes[..len].iter().rev().find(|byte| **byte != ALIVE).copied().unwrap_or(ALIVE)),
    }
}

/// Takes the lock of a file, which has the number of the process that holds it; a guard that has it is ended first.
/// Fails if that guard does not end.
pub fn take_over(path: &Path) -> io::Result<Lock> {
    let start = Instant::now();
    let mut lock = loop {
        match Lock::take(path) {
            Ok(lock) => break lock,
            Err(TryLockError::Error(error)) => return Err(error),
            Err(_) if start.elapsed() > PATIENCE => return Err(io::ErrorKind::WouldBlock.into()),
            // Who has the lock has written this number, so it is that process and no other one.
            Err(_) => {
                let text = std::fs::read_to_string(path).unwrap_or_default();
                let _ = holder(&text).map(|holder| kill(holder, Signal::SIGTERM));
            }
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    lock.write(&std::process::id().to_string())?;
    Ok(lock)
}

/// The process of this number. No guard is the first process, and numbers below stand for groups of processes (kill(2)).
fn holder(text: &str) -> Option<Pid> {
    text.trim().parse().ok().filter(|number| *number > 1).map(Pid::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn only_a_number_of_a_process_is_ended_and_never_the_first_one_or_a_group() {
        assert_eq!(["4711\n", "2"].map(holder), [4711, 2].map(|number| Some(Pid::from_raw(number))));
        assert_eq!(["1", "0", "-1", "-4711", "", "x"].map(holder), [None; 6]);
    }

    /// What the guard does with these signs, and for how long it waited for each.
    fn played(signs: &[Sign], stuck: bool) -> (Vec<&'static str>, Vec<Option<Span>>) {
        let (mut signs, mut waits, done) = (signs.iter(), Vec::new(), RefCell::new(Vec::new()));
        let wait = |patience| {
            waits.push(patience);
            *signs.next().unwrap_or(&Sign::Came(RETIRE))
        };
        let act = |what, fails: bool| {
            done.borrow_mut().push(what);
            if fails { Err(()) } else { Ok(()) }
        };
        watch_with(Span::from_millis(80), wait, || act("silent", stuck), || act("gone", false)).unwrap();
        (done.into_inner(), waits)
    }

    #[test]
    fn silence_counts_once_after_each_order_and_the_end_always() {
        let patience = Some(Span::from_millis(80));
        let [alive, armed, silence] = [Sign::Came(ALIVE), Sign::Came(ARMED), Sign::Silence];
        let (done, waits) = played(&[armed, alive, silence, alive, armed, silence, Sign::End], false);
        assert_eq!(waits, [None, patience, patience, None, None, patience, None]);
        assert_eq!(done, ["silent", "silent", "gone"]);
    }

    #[test]
    fn who_retires_leaves_nothing_to_do() {
        assert!(played(&[Sign::Came(ALIVE)], false).0.is_empty());
    }

    #[test]
    fn a_guard_that_cannot_act_on_silence_does_what_it_does_at_the_end() {
        assert_eq!(played(&[Sign::Came(ARMED), Sign::Silence], true).0, ["silent", "gone"]);
    }
}
