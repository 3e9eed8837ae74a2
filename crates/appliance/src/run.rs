//! The loop of every appliance: packets first, then what is due once a second, then what is slow: signals, clients,
//! files. Whoever has started the process, such as systemd, is told (`sd_notify`) that it is ready, that it lives, what
//! it does, and that it ends.

use crate::appliance::{Appliance, Desk, Rest};
use crate::output::say;
use crate::setting;
use crate::socket::message::{Answer, Refusal, Request};
use crate::socket::server::Asker;
use nix::sys::signal::Signal;
use penstock_core::units::{Instant, Span};
use penstock_linux::signals::{Request as Signalled, is_orderly};
use sd_notify::NotifyState;
use serde::Serialize;
use std::os::fd::AsFd as _;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How often counters are read and rates computed.
const TICK: Span = Span::from_secs(1);
/// Shortest time between two turns of what is slow: clients, however many ask, cannot take the processor from packets.
const BETWEEN_SLOW: Span = Span::from_millis(1);
/// A status is computed anew after this time; who asks more often gets the last one. One takes about as long as a hundred
/// packets.
const FRESH: Span = Span::from_millis(100);

/// Why a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// It goes on.
    Not,
    /// The duration is over.
    Duration,
    /// A signal came.
    Signal(Signal),
    /// Something failed, as the sentence says.
    Failed(String),
}

impl Ended {
    /// Returns why, as reports tell it.
    pub fn text(&self) -> String {
        match self {
            Self::Not => "running".into(),
            Self::Duration => "duration".into(),
            Self::Signal(signal) => signal.as_str().into(),
            Self::Failed(why) => why.clone(),
        }
    }

    /// Returns what failed, as a sentence; nothing if the run ended as it should.
    pub fn failure(&self) -> Option<String> {
        match self {
            Self::Failed(why) => Some(why.clone()),
            Self::Signal(signal) if !is_orderly(*signal) => Some(format!("the run was ended by {signal}")),
            _ => None,
        }
    }
}

/// When the loop does things the next time.
#[derive(Default)]
struct Due {
    tick: Instant,
    slow: Instant,
}

/// Runs an appliance until its time is over, a signal comes or something fails; returns why. A fault of the program ends the
/// run as well.
pub fn run<A: Appliance>(appliance: &mut A, desk: &mut Desk<A>) -> Ended {
    let mut due = Due { tick: desk.now(), slow: Instant::ZERO };
    let _ = sd_notify::notify(&[NotifyState::Ready]);
    let forward = AssertUnwindSafe(|| {
        loop {
            match turn(appliance, desk, &mut due) {
                Ok(Ended::Not) => {}
                Ok(ended) => return ended,
                Err(why) => return Ended::Failed(why),
            }
        }
    });
    let ended = catch_unwind(forward).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Ended::Failed(format!("a fault of this program: {}", text.unwrap_or_default()))
    });
    let _ = sd_notify::notify(&[NotifyState::Stopping]);
    desk.page = None;
    ended
}

fn turn<A: Appliance>(appliance: &mut A, desk: &mut Desk<A>, due: &mut Due) -> Result<Ended, String> {
    let now = appliance.turn(desk)?;
    if desk.end.is_some_and(|end| now >= end) {
        return Ok(Ended::Duration);
    }
    if now >= due.tick {
        due.tick = now + TICK;
        tick(appliance, desk, now)?;
    }
    let others = [desk.end, (due.slow > now).then_some(due.slow)];
    let until = others.into_iter().flatten().fold(due.tick, Instant::min);
    let rest = Rest { now, until, slow: desk.slow.0.as_fd(), serves: now >= due.slow };
    if appliance.sleep(&rest)? {
        let ended = serve(appliance, desk)?;
        if ended != Ended::Not {
            return Ok(ended);
        }
        due.slow = desk.now() + BETWEEN_SLOW;
    }
    appliance.read_what_came(desk)?;
    Ok(Ended::Not)
}

/// What is done once a second.
fn tick<A: Appliance>(appliance: &mut A, desk: &mut Desk<A>, now: Instant) -> Result<(), String> {
    let _ = sd_notify::notify(&[NotifyState::Watchdog, NotifyState::Status(&appliance.standing())]);
    desk.page.iter_mut().for_each(|page| page.tick(now));
    appliance.tick(now, desk)?;
    setting::lapse(desk, appliance, now);
    desk.server.iter_mut().for_each(|server| server.tidy(std::time::Instant::now()));
    Ok(())
}

/// Does what is slow and ready, a little of it.
fn serve<A: Appliance>(appliance: &mut A, desk: &mut Desk<A>) -> Result<Ended, String> {
    while let Some(request) = desk.signals.next() {
        match request {
            Signalled::End(Signal::SIGHUP) if A::APPLIES_AT_HANGUP => {
                let asked = desk.reader.as_ref().map_or(Ok(()), |reader| reader.read(None));
                asked.err().into_iter().for_each(|busy| setting::apply_again(desk, appliance, Err(busy)));
            }
            Signalled::End(signal) => return Ok(Ended::Signal(signal)),
            Signalled::Report => {
                let text = appliance.text(desk);
                match &desk.printer {
                    // If earlier ones are still being printed, one more would say little else.
                    Some(printer) => drop(printer.offer(text)),
                    None => say(&text),
                }
            }
        }
    }
    appliance.look(desk)?;
    apply_what_was_read(appliance, desk);
    if let Some(mut server) = desk.server.take() {
        server.turn(std::time::Instant::now(), &mut |asker, request| answer(appliance, desk, asker, request));
        desk.server = Some(server);
    }
    Ok(Ended::Not)
}

/// Applies the files that were read since.
fn apply_what_was_read<A: Appliance>(appliance: &mut A, desk: &mut Desk<A>) {
    let finished: Vec<_> = desk.reader.iter().flat_map(|reader| reader.finished()).collect();
    for (asker, read) in finished {
        let Some(asker) = asker else {
            setting::apply_again(desk, appliance, read);
            continue;
        };
        let answer = read.and_then(|read| setting::apply(desk, appliance, Some(asker.peer), &read));
        let server = desk.server.iter_mut();
        server.for_each(|server| server.answer(asker, &answer, std::time::Instant::now()));
    }
}

/// Carries out a request from the control socket and returns the answer to it; `None` if a file must be read before.
fn answer<A: Appliance>(appliance: &mut A, desk: &mut Desk<A>, asker: Asker, request: Request) -> Option<Answer> {
    Some(match request {
        Request::Status => status(appliance, desk),
        Request::Top { by, most } => appliance.top(by, most, desk.now()).and_then(|top| text(&top)),
        Request::Set(set) => setting::set(desk, appliance, asker.peer, &set),
        Request::Keep => setting::keep(desk, asker.peer),
        Request::Rollback => setting::rollback(desk, appliance, asker.peer),
        Request::Apply(file) => {
            let Some(reader) = &desk.reader else { return Some(Err(Refusal::new("this appliance applies no files"))) };
            return desk.history.may_set().and_then(|()| reader.read(Some((asker, file)))).err().map(Err);
        }
    })
}

fn status<A: Appliance>(appliance: &mut A, desk: &mut Desk<A>) -> Answer {
    let now = desk.now();
    if let Some((at, text)) = &desk.snapshot
        && now.since(*at) < FRESH
    {
        return Ok(text.clone());
    }
    let text = text(&appliance.status(desk))?;
    desk.snapshot = Some((now, text.clone()));
    Ok(text)
}

fn text(value: &impl Serialize) -> Answer {
    serde_json::to_string(value).map_err(|e| Refusal::new(format!("the answer cannot be written: {e}")))
}
