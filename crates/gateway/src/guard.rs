//! The guard: a second process that lets packets pass when the first one hangs, and removes its rules when it dies.
//!
//! The kernel lets packets pass when nobody has a queue, but a process that hangs (SIGSTOP, swap, a deadlock) still has it.
//! So the first process writes a byte into a pipe several times within the guard's patience. If none comes, the guard takes
//! the rules away that hand packets over. When the first process runs again, it learns of it and puts them back.

use crate::error::Error;
use crate::rules::{Chains, Family, Firewall};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::signal::SigSet;
use penstock_core::units::Span;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

/// A sign of life.
const ALIVE: u8 = b'.';
/// The first process ends as it should, and has removed its rules.
const RETIRE: u8 = b'q';
/// The guard has let packets pass.
const OPENED: u8 = b'o';
/// The rules are there.
const CLOSED: u8 = b'c';

/// The options of the guard's process.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// The programs of the firewall
    #[arg(long, value_enum)]
    firewall: Firewall,
    /// Number of the first queue
    #[arg(long)]
    queue: u16,
    /// The rules are in IPv6 as well
    #[arg(long)]
    v6: bool,
    /// Time without a sign of life
    #[arg(long)]
    patience: Span,
}

/// The guard as the first process has it.
#[derive(Debug)]
pub struct Guard {
    child: Child,
    signs: ChildStdin,
    news: ChildStdout,
}

impl Guard {
    /// Starts the guard of these chains.
    ///
    /// # Errors
    /// Returns the error of the system.
    pub fn start(chains: &Chains, patience: Span) -> Result<Self, Error> {
        let mut command = Command::new("/proc/self/exe");
        command.arg0("penstock-gateway").arg("guard").args(["--firewall", chains.firewall.name()]);
        command.args(["--queue", &chains.queue.to_string(), "--patience", &patience.to_string()]);
        command.args(chains.families.contains(&Family::V6).then_some("--v6"));
        // Ctrl-C at a terminal is for the first process.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(Error::io("cannot start the guard"))?;
        let (Some(signs), Some(news)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Error::io("cannot talk to the guard")(io::Error::from(io::ErrorKind::BrokenPipe)));
        };
        let ready = never_wait(&signs).and_then(|()| never_wait(&news));
        ready.map_err(Error::io("cannot talk to the guard"))?;
        Ok(Self { child, signs, news })
    }

    /// Gives a sign of life; returns false if the guard is gone.
    pub fn beat(&mut self) -> bool {
        self.say(ALIVE)
    }

    /// Tells that the rules are there, so that the guard may take them away.
    pub fn closed(&mut self) -> bool {
        self.say(CLOSED)
    }

    fn say(&mut self, what: u8) -> bool {
        // A full pipe: the guard has not read for long, and what it has is enough.
        self.signs.write_all(&[what]).map_or_else(|e| e.kind() == io::ErrorKind::WouldBlock, |()| true)
    }

    /// Returns whether the guard has let packets pass since the last call.
    pub fn has_opened(&mut self) -> bool {
        let mut news = [0; 16];
        self.news.read(&mut news).is_ok_and(|len| news[..len].contains(&OPENED))
    }

    /// Ends the guard; the rules must be gone.
    pub fn retire(mut self) {
        self.say(RETIRE);
        let _ = self.child.wait();
    }
}

fn never_wait(pipe: &impl AsFd) -> Result<(), Errno> {
    let flags = OFlag::from_bits_truncate(fcntl(pipe, FcntlArg::F_GETFL)?) | OFlag::O_NONBLOCK;
    fcntl(pipe, FcntlArg::F_SETFL(flags)).map(drop)
}

/// The guard's process; returns its exit code.
pub fn run(options: &Options) -> u8 {
    let families = if options.v6 { vec![Family::V4, Family::V6] } else { vec![Family::V4] };
    let chains = Chains { firewall: options.firewall, families, queue: options.queue };
    // It ends with the first process, and not before it by a signal that is for both.
    let _ = SigSet::all().thread_block();
    let wait = |patience| wait(&io::stdin(), patience);
    let news = || io::stdout().write_all(&[OPENED]).and_then(|()| io::stdout().flush());
    u8::from(watch(options.patience, wait, &chains, news).is_err())
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
        Ok(len) => {
            let told = bytes[..len].iter().rev().find(|byte| **byte != ALIVE);
            Sign::Came(told.copied().unwrap_or(ALIVE))
        }
    }
}

/// What the guard does to the rules.
trait GuardedRules {
    /// Lets packets pass.
    fn open(&self) -> Result<(), Error>;
    /// Removes all rules.
    fn remove(&self) -> Result<(), Error>;
}

impl GuardedRules for Chains {
    fn open(&self) -> Result<(), Error> {
        Chains::open(self)
    }
    fn remove(&self) -> Result<(), Error> {
        Chains::remove(self).map(drop)
    }
}

fn watch(
    patience: Span,
    mut wait: impl FnMut(Option<Span>) -> Sign,
    rules: &impl GuardedRules,
    mut news: impl FnMut() -> io::Result<()>,
) -> Result<(), Error> {
    // Its patience begins when the first process says that the rules are there.
    let mut open = true;
    loop {
        match wait((!open).then_some(patience)) {
            Sign::Came(RETIRE) => return Ok(()),
            Sign::Came(CLOSED) => open = false,
            Sign::Came(_) => {}
            Sign::Silence => {
                // Rules that cannot be opened, as somebody changed them, are removed.
                rules.open().or_else(|_| rules.remove())?;
                open = true;
                let _ = news();
            }
            Sign::End => return rules.remove(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[derive(Default)]
    struct Notes {
        done: RefCell<Vec<&'static str>>,
        stuck: bool,
    }

    impl GuardedRules for Notes {
        fn open(&self) -> Result<(), Error> {
            self.done.borrow_mut().push("open");
            if self.stuck { Err(Error::ReadBack("x".into())) } else { Ok(()) }
        }
        fn remove(&self) -> Result<(), Error> {
            self.done.borrow_mut().push("remove");
            Ok(())
        }
    }

    /// What the guard does with these signs, and for how long it waited for each.
    fn played(signs: &[Sign], notes: &Notes) -> Vec<Option<Span>> {
        let (mut signs, mut waits) = (signs.iter(), Vec::new());
        let wait = |patience| {
            waits.push(patience);
            *signs.next().unwrap_or(&Sign::Came(RETIRE))
        };
        watch(Span::from_millis(80), wait, notes, || Ok(())).unwrap();
        waits
    }

    #[test]
    fn silence_opens_once_and_the_end_removes() {
        let notes = Notes::default();
        let patience = Some(Span::from_millis(80));
        let [alive, closed, silence] = [Sign::Came(ALIVE), Sign::Came(CLOSED), Sign::Silence];
        let signs = [closed, alive, silence, alive, closed, silence, Sign::End];
        assert_eq!(played(&signs, &notes), [None, patience, patience, None, None, patience, None]);
        assert_eq!(*notes.done.borrow(), ["open", "open", "remove"]);
    }

    #[test]
    fn who_retires_leaves_the_rules_alone() {
        let notes = Notes::default();
        played(&[Sign::Came(ALIVE)], &notes);
        assert!(notes.done.borrow().is_empty());
    }

    #[test]
    fn rules_that_cannot_be_opened_are_removed() {
        let notes = Notes { stuck: true, ..Notes::default() };
        played(&[Sign::Came(CLOSED), Sign::Silence], &notes);
        assert_eq!(*notes.done.borrow(), ["open", "remove"]);
    }
}
