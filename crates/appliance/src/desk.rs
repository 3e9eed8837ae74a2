//! What every appliance has beside its packets: signals, the control socket, the log, former settings, a page.

use crate::appliance::Appliance;
use crate::change::{Change, Changes};
use crate::error::Error;
use crate::events::{Event, Events};
use crate::history::{History, Lapse};
use crate::log::Log;
use crate::output::Offers;
use crate::page::process::Process;
use crate::reader::Reader;
use crate::socket::message::Refusal;
use crate::socket::server::Server;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use penstock_core::units::{Instant, Span};
use penstock_linux::signals::Signals;
use serde_json::{Value, json};
use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::path::Path;

/// The time since the start by CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy)]
pub struct Clock(std::time::Instant);

impl Clock {
    /// Begins now.
    pub fn start() -> Self {
        Self(std::time::Instant::now())
    }

    /// Returns the time since the start.
    pub fn now(self) -> Instant {
        Instant::from_nanos(u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Returns the start by the clock of the system.
    pub fn epoch(self) -> std::time::Instant {
        self.0
    }
}

/// What is noted of a run.
#[derive(Debug)]
pub struct Chronicle {
    /// The file of changes.
    pub log: Log,
    /// What happened.
    pub events: Events,
    /// What was set.
    pub changes: Changes,
}

/// When the loop does things the next time.
#[derive(Debug, Default)]
pub(crate) struct Due {
    pub tick: Instant,
    pub slow: Instant,
}

/// What an appliance has beside its packets.
pub struct Desk<A: Appliance> {
    pub(crate) clock: Clock,
    pub(crate) signals: Signals,
    pub(crate) server: Option<Server>,
    /// Readable if there is something slow to do.
    pub(crate) slow: Epoll,
    pub(crate) reader: Option<Reader<A::File>>,
    pub(crate) chronicle: Chronicle,
    pub(crate) history: History<A::Settings>,
    /// The last status that was told, and when.
    pub(crate) snapshot: Option<(Instant, String)>,
    pub(crate) page: Option<Process>,
    /// Prints reports that are asked for meanwhile; without it they go to the standard error.
    pub(crate) printer: Option<Offers>,
    pub(crate) end: Option<Instant>,
    pub(crate) due: Due,
}

impl<A: Appliance> Desk<A> {
    /// Takes charge of signals and of a control socket. Call it before this thread gets a priority, which others would inherit.
    ///
    /// # Errors
    /// Returns the error of the system.
    pub fn open(signals: Signals, server: Option<Server>, log: Log) -> Result<Self, Error> {
        let slow = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(Error::io("cannot wait for signals"))?;
        let desk = Self {
            clock: Clock::start(),
            signals,
            server,
            slow,
            reader: None,
            chronicle: Chronicle { log, events: Events::default(), changes: Changes::default() },
            history: History::default(),
            snapshot: None,
            page: None,
            printer: None,
            end: None,
            due: Due::default(),
        };
        desk.watch(&desk.signals)?;
        if let Some(server) = &desk.server {
            desk.watch(server)?;
        }
        Ok(desk)
    }

    /// Reads files for `apply` and SIGHUP: `parse` gets the name and the text of one; that with which the run began is at
    /// `path`.
    ///
    /// # Errors
    /// Returns the error of the system.
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
    ///
    /// # Errors
    /// Returns the error of the system.
    pub fn watch(&self, descriptor: &impl AsFd) -> Result<(), Error> {
        let readable = EpollEvent::new(EpollFlags::EPOLLIN, 0);
        self.slow.add(descriptor, readable).map_err(Error::io("cannot wait for signals"))
    }

    /// Returns the clock of the run.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Returns the time since the start.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Notes an event: on the standard error, in the log and in the status.
    pub fn note(&mut self, what: String) {
        let _ = writeln!(io::stderr(), "{what}");
        self.chronicle.log.add(None, "event", &json!(what));
        let at_s = self.now().as_secs_f64();
        self.chronicle.events.add(at_s, what);
    }

    /// Notes an event of the start, which the status tells alone.
    pub fn begun(&mut self, what: String) {
        self.chronicle.events.add(0.0, what);
    }

    /// Writes a line of the log.
    pub fn log(&mut self, what: &str, details: &Value) {
        self.chronicle.log.add(None, what, details);
    }

    /// Returns the events, for the status.
    pub fn events(&self) -> &[Event] {
        self.chronicle.events.all()
    }

    /// Returns what was set, for the status.
    pub fn changes(&self) -> &[Change] {
        self.chronicle.changes.all()
    }

    /// Returns the change that will go by itself, for the status.
    pub fn lapse(&self) -> Option<Lapse> {
        self.history.lapse(self.now())
    }

    /// Returns what is wrong now with what every appliance has.
    pub fn marks(&self) -> impl Iterator<Item = String> {
        let log = self.chronicle.log.error().map(|error| format!("the log cannot be written: {error}"));
        [self.page.as_ref().and_then(Process::mark), log].into_iter().flatten()
    }

    /// True if somebody may ask who carries most.
    pub fn is_asked(&self) -> bool {
        self.server.is_some()
    }

    /// Returns the path of the file with which the run began; empty without one.
    pub(crate) fn file(&self) -> &Path {
        self.reader.as_ref().map_or(Path::new(""), Reader::path)
    }

    /// The next status is computed anew.
    pub fn forget_status(&mut self) {
        self.snapshot = None;
    }
}
