//! The life of the link: whether its interface is there, what the data path does, and how much passes beside it. All
//! data paths have this one state, and whoever asks is told the same.

use crate::account::{Account, Allowed, Cause, Counted, LOOK, Told};
use crate::error::Error;
use crate::report::{Past, State};
use penstock_core::units::Instant;
use penstock_linux::links::{Facts, LinkWatch, Passed};
use penstock_linux::stalls::ProcessorWait;
use std::os::fd::{AsFd, BorrowedFd};

/// More than this part beside the gateway is wrong.
const MUCH: f64 = 0.01;
/// A process that did not run for so many seconds of a minute is starved.
const STARVED: f64 = 3.0;
/// Looks of about a minute.
const MINUTE: usize = 240;

/// What a data path says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Standing {
    /// It has what passes.
    #[default]
    Takes,
    /// Something that it needs is not there, so nothing passes either.
    Waits(String),
    /// It lets all pass, for a cause.
    Open(Cause, String),
    /// It cannot do what it must.
    Wrong(String),
}

/// What a data path knows at one time.
#[derive(Debug, Default)]
pub struct Sight {
    pub standing: Standing,
    /// What it has taken, download and upload.
    pub taken: [Passed; 2],
    pub past: Past,
    /// For how many seconds the process did not run since the start.
    pub late_s: f64,
}

pub struct Life {
    watch: LinkWatch,
    name: String,
    observe: bool,
    account: Account,
    state: State,
    pub due: Instant,
    sight: Sight,
    /// What had passed by itself, and the number of the interface, at the last look.
    past: Past,
    index: u32,
    processor: ProcessorWait,
    /// For how many seconds it did not run, at the last looks.
    late: std::collections::VecDeque<f64>,
}

impl Life {
    /// Watches the interface with this name.
    pub fn watch(name: &str, observe: bool, allowed: Allowed) -> Result<Self, Error> {
        let watch = LinkWatch::named(name)?;
        let index = watch.index();
        let (account, state, sight) = (Account::new(allowed), State::Waiting, Sight::default());
        let (due, past, processor) = (Instant::ZERO, Past::default(), ProcessorWait::open());
        let (name, late) = (name.to_owned(), Default::default());
        let mut life = Self { watch, name, observe, account, state, due, sight, past, index, processor, late };
        life.state = life.state_now();
        Ok(life)
    }

    /// Reads what the kernel has told of interfaces; false if it was nothing.
    pub fn has_news(&mut self) -> bool {
        self.watch.read()
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn facts(&self) -> Facts {
        self.watch.facts()
    }

    pub fn index(&self) -> u32 {
        self.watch.index()
    }

    /// What has passed the interface since the start.
    pub fn passed(&self) -> [Passed; 2] {
        self.watch.passed()
    }

    /// Sees what the interface is now. The data path is to be seen after that.
    pub fn refresh(&mut self) {
        self.watch.refresh();
    }

    /// Sees what the data path is now.
    pub fn see(&mut self, sight: Sight) {
        self.sight = sight;
    }

    /// Keeps the account of what was seen last. Returns what is new about the state.
    pub fn look(&mut self, now: Instant) -> Option<String> {
        self.due = now + LOOK;
        let (cause, counted) = (self.cause(), self.counted());
        (self.index, self.past) = (self.watch.index(), self.sight.past);
        self.account.look(now, &counted, cause);
        self.account.set_seconds(Cause::Hung, self.past.open_s);
        if self.late.len() > MINUTE {
            self.late.pop_front();
        }
        self.late.push_back(self.sight.late_s.max(self.processor.so_far().as_secs_f64()));
        let state = self.state_now();
        let is_new = state != self.state;
        self.state = state;
        is_new.then(|| self.sentence())
    }

    /// Returns what may have let bytes pass beside since the last look.
    fn cause(&self) -> Cause {
        let (before, now) = (&self.past, &self.sight.past);
        if let Standing::Open(cause, _) = self.sight.standing {
            return cause;
        }
        let causes = [
            (Cause::Hung, before.times != now.times),
            (Cause::Away, self.watch.index() != self.index || self.watch.facts().gone),
            (Cause::Missing, matches!(self.sight.standing, Standing::Wrong(_))),
            (Cause::Full, before.overflow_at_least != now.overflow_at_least),
        ];
        causes.into_iter().find_map(|(cause, is)| is.then_some(cause)).unwrap_or_default()
    }

    fn counted(&self) -> Counted {
        Counted { wan: self.watch.passed(), taken: self.sight.taken }
    }

    fn state_now(&self) -> State {
        match &self.sight.standing {
            _ if self.away().is_some() => State::Waiting,
            Standing::Wrong(_) => State::Wrong,
            Standing::Open(..) => State::Open,
            Standing::Waits(_) => State::Waiting,
            Standing::Takes if self.observe => State::Observing,
            Standing::Takes if self.passes_beside() => State::Partly,
            Standing::Takes => State::Governing,
        }
    }

    /// True if more than little passes beside and nobody knows why.
    pub fn doubts(&self) -> bool {
        self.sight.standing == Standing::Takes && self.passes_beside()
    }

    fn passes_beside(&self) -> bool {
        self.account.recent(&self.counted()).share > MUCH
    }

    /// Returns what is wrong with the interface.
    fn away(&self) -> Option<String> {
        let what = match self.watch.facts() {
            Facts { gone: true, .. } => "is gone",
            Facts { up: false, .. } => "is down",
            Facts { carrier: false, .. } => "has no carrier",
            _ => return None,
        };
        Some(format!("the interface {} {what}", self.name))
    }

    /// Returns the state as of what was seen last.
    pub fn state(&self) -> State {
        self.state_now()
    }

    /// Returns the state in a sentence, for the log and for the service manager.
    pub fn sentence(&self) -> String {
        let state = self.state_now().word();
        self.why().map_or_else(|| format!("{state} {}", self.name), |why| format!("{state}: {why}"))
    }

    fn why(&self) -> Option<String> {
        let standing = match &self.sight.standing {
            Standing::Takes => None,
            Standing::Waits(why) | Standing::Open(_, why) | Standing::Wrong(why) => Some(why.clone()),
        };
        let recent = self.account.recent(&self.counted());
        let partly = (self.state_now() == State::Partly).then(|| {
            let (percent, cause) = (100.0 * recent.share, self.account.latest_cause().text());
            format!("{percent:.1} % of the bytes of the last minute passed beside the shaper: {cause}")
        });
        self.away().or(standing).or(partly)
    }

    /// Returns what is wrong now.
    pub fn marks(&self) -> impl Iterator<Item = String> {
        let late = self.late.back().zip(self.late.front()).map(|(now, before)| now - before);
        let starved = late.filter(|late| *late >= STARVED);
        let starved =
            starved.map(|late| format!("starved: this process did not run for {late:.1} s of the last minute"));
        self.why().into_iter().chain(starved)
    }

    /// Returns the account, with bytes that the data path refused.
    pub fn account(&self, refused: [u64; 2]) -> Told {
        self.account.told(&self.counted(), refused)
    }
}

impl AsFd for Life {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.watch.as_fd()
    }
}
