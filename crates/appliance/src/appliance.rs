//! What an appliance is to the loop that all of them share ([`run`](crate::run::run)), and its desk: what it has beside its
//! packets, which are signals, the control socket, the log, former settings and a page.
//!
//! An error that is a text says why the run must end.

use crate::change::Chronicle;
use crate::error::Error;
use crate::history::{History, Lapse};
use crate::log::Log;
use crate::output::{Offers, say};
use crate::page::process::Process;
use crate::reader::Reader;
use crate::settings::Settings;
use crate::socket::message::{By, Refusal};
use crate::socket::server::Server;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use penstock_core::units::{Instant, Span};
use penstock_linux::signals::Signals;
use serde::Serialize;
use serde_json::{Value, json};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::Duration;

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
    fn turn(&mut self, desk: &mut Desk<Self>) -> Result<Instant, String>;

    /// Sleeps until something is due, or to be read; returns whether `slow` is readable.
    fn sleep(&mut self, rest: &Rest<'_>) -> Result<bool, String>;

    /// Reads what has come.
    fn read_what_came(&mut self, _: &mut Desk<Self>) -> Result<(), String> {
        Ok(())
    }

    /// Looks at descriptors of its own among the slow ones ([`Desk::watch`]).
    fn look(&mut self, _: &mut Desk<Self>) -> Result<(), String> {
        Ok(())
    }

    /// Does what is done once a second.
    fn tick(&mut self, _: Instant, _: &mut Desk<Self>) -> Result<(), String> {
        Ok(())
    }

    /// Returns what it does, in a sentence for the service manager; empty if there is nothing to say.
    fn standing(&self) -> String {
        String::new()
    }

    /// Returns the status up to now.
    fn status(&mut self, desk: &Desk<Self>) -> Self::Status;

    /// Returns the status as a signal prints it.
    fn text(&mut self, desk: &Desk<Self>) -> String {
        serde_json::to_string(&self.status(desk)).unwrap_or_default()
    }

    /// Returns who carries most, or refuses it where nobody counts that.
    fn top(&self, _: By, _: usize, _: Instant) -> Result<Value, Refusal> {
        Err(Refusal::new("this appliance counts no flows; `status` has its counters"))
    }

    /// Returns the settings that hold.
    fn settings(&self) -> &Self::Settings;

    /// Returns the settings with these values in the place of those that hold, or refuses the first value that cannot be set,
    /// with what is allowed.
    fn read(&self, values: &[(String, String)]) -> Result<Self::Settings, Refusal>;

    /// Returns what to go to from what holds, as a file says, or refuses what cannot change while it runs.
    fn wanted(&self, file: &Self::File) -> Result<Self::Settings, Refusal>;

    /// Makes these the settings, all of them or none; returns when, or refuses what cannot be done.
    fn go_to(&mut self, wanted: &Self::Settings) -> Result<Instant, Refusal>;

    /// Reads back what holds; the error is what is not as it was set.
    fn read_back(&self) -> Result<(), String> {
        Ok(())
    }
}

/// Sleeps until `next` or until there is something slow to do, for an appliance that reads nothing itself; returns whether there
/// is. The error is a sentence.
pub fn wait(rest: &Rest<'_>, next: Instant) -> Result<bool, String> {
    let slow = if rest.serves { PollFlags::POLLIN } else { PollFlags::empty() };
    let timeout = Duration::from_nanos(next.min(rest.until).since(rest.now).as_nanos());
    match ppoll(&mut [PollFd::new(rest.slow, slow)], Some(timeout.into()), None) {
        Err(Errno::EINTR) => Ok(false),
        polled => Ok(polled.map_err(|error| format!("cannot wait: {error}"))? > 0),
    }
}

/// The time since the start by CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy)]
pub struct Clock(std::time::Instant);

impl Clock {
    /// Returns the time since the start.
    pub fn now(self) -> Instant {
        Instant::from_nanos(u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Returns the start by the clock of the system.
    pub fn epoch(self) -> std::time::Instant {
        self.0
    }
}

/// What an appliance has beside its packets.
pub struct Desk<A: Appliance> {
    /// The clock of the run.
    pub clock: Clock,
    /// The signals, which end nothing by themselves.
    pub signals: Signals,
    pub(crate) server: Option<Server>,
    /// Readable if there is something slow to do.
    pub(crate) slow: Epoll,
    pub(crate) reader: Option<Reader<A::File>>,
    pub(crate) log: Log,
    /// What was set and what happened, for the status.
    pub chronicle: Chronicle,
    pub(crate) history: History<A::Settings>,
    /// The last status that was told, and when.
    pub(crate) snapshot: Option<(Instant, String)>,
    pub(crate) page: Option<Process>,
    /// Prints reports that are asked for meanwhile; without it they go to the standard error.
    pub(crate) printer: Option<Offers>,
    pub(crate) end: Option<Instant>,
}

impl<A: Appliance> Desk<A> {
    /// Takes charge of signals and of a control socket. Call it before this thread gets a priority, which others would inherit.
    pub fn open(signals: Signals, server: Option<Server>, log: Log) -> Result<Self, Error> {
        let slow = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(Error::io("cannot wait for signals"))?;
        let desk = Self {
            clock: Clock(std::time::Instant::now()),
            signals,
            server,
            slow,
            reader: None,
            log,
            chronicle: Chronicle::default(),
            history: History::default(),
            snapshot: None,
            page: None,
            printer: None,
            end: None,
        };
        desk.watch(&desk.signals)?;
        desk.server.iter().try_for_each(|server| desk.watch(server))?;
        Ok(desk)
    }

    /// Reads files for `apply` and SIGHUP: `parse` gets the name and the text of one; that with which the run began is at
    /// `path`.
    pub fn reads(
        mut self,
        path: &Path,
        parse: impl Fn(&str, &str) -> Result<A::File, Refusal> + Send + 'static,
    ) -> Result<Self, Error> {
        let reader = Reader::start(path, parse).map_err(Error::io("cannot start a thread"))?;
        self.watch(&reader)?;
        self.reader = Some(reader);
        Ok(self)
    }

    /// Has a page.
    pub fn showing(self, page: Option<Process>) -> Self {
        Self { page, ..self }
    }

    /// Prints reports by this printer, and ends after this time.
    pub fn printing(self, printer: Offers, duration: Option<Span>) -> Self {
        Self { printer: Some(printer), end: duration.map(|duration| Instant::ZERO + duration), ..self }
    }

    /// Polls a descriptor of the appliance among the slow ones ([`Appliance::look`]).
    pub fn watch(&self, descriptor: &impl AsFd) -> Result<(), Error> {
        let readable = EpollEvent::new(EpollFlags::EPOLLIN, 0);
        self.slow.add(descriptor, readable).map_err(Error::io("cannot wait for signals"))
    }

    /// Returns the time since the start.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Notes an event: on the standard error, in the log and in the status.
    pub fn note(&mut self, what: String) {
        say(&what);
        self.log.add(None, "event", &json!(what));
        self.chronicle.note(self.clock.now().as_secs_f64(), what);
    }

    /// Notes an event of the start, which the status tells alone.
    pub fn begun(&mut self, what: String) {
        self.chronicle.note(0.0, what);
    }

    /// Writes a line of the log.
    pub fn log(&mut self, what: &str, details: &Value) {
        self.log.add(None, what, details);
    }

    /// Returns the change that will go by itself, for the status.
    pub fn lapse(&self) -> Option<Lapse> {
        self.history.lapse(self.now())
    }

    /// Returns what is wrong now with what every appliance has.
    pub fn marks(&self) -> impl Iterator<Item = String> {
        let log = self.log.error().map(|error| format!("the log cannot be written: {error}"));
        [self.page.as_ref().and_then(Process::mark), log].into_iter().flatten()
    }

    /// True if somebody may ask who carries most.
    pub fn is_asked(&self) -> bool {
        self.server.is_some()
    }

    /// The next status is computed anew.
    pub fn forget_status(&mut self) {
        self.snapshot = None;
    }
}
