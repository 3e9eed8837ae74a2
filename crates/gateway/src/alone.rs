//! A gateway that gives budgets to hosts (`penstock_budgets`) and does not touch packets: where the bottleneck is elsewhere,
//! such as in a modem, and for networks of which only some hosts have an agent.

use crate::cli::{Described, Invite};
use crate::error::Error;
use crate::file::{Alone, Kind};
use crate::surroundings::{printed, say, server};
use nix::poll::{PollFd, PollFlags, ppoll};
use penstock_appliance::page::process::{self, Process};
use penstock_appliance::service;
use penstock_appliance::socket::message::{Answer, Refusal, Request, Set};
use penstock_budgets::roster::Roster;
use penstock_budgets::served::Served;
use penstock_core::coop::Share;
use penstock_core::units::{Rate, Span, UnitError};
use penstock_linux::signals::{Request as Signalled, Signals, is_orderly};
use serde_json::{Value, json};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// How often events are told.
const TICK: Duration = Duration::from_millis(500);
/// The only key that can be set.
const KEY: &str = "reverse_rate";

struct Running {
    served: Served,
    page: Option<Process>,
    upload: Rate,
    alone: Alone,
    start: Instant,
}

impl Running {
    fn status(&self) -> Value {
        let page = self.page.as_ref().and_then(Process::mark);
        let failed = self.served.has_failed().then_some("budgets have stopped by a fault of this program");
        json!({
            "elapsed_s": self.start.elapsed().as_secs_f64(),
            "state": "budgets",
            "marks": failed.map(str::to_owned).into_iter().chain(page).collect::<Vec<_>>(),
            "reverse": {"rate_bps": self.upload.as_bps()},
            "c2ml": self.served.status(),
        })
    }

    fn answer(&mut self, request: &Request) -> Answer {
        match request {
            Request::Status => Ok(self.status().to_string()),
            Request::Set(Set { values, until: None }) => self.set(values),
            _ => Err(Refusal {
                what: "this gateway only gives budgets".into(),
                allowed: vec!["status".into(), "set".into()],
            }),
        }
    }

    fn set(&mut self, values: &[(String, String)]) -> Answer {
        let [(key, value)] = values else { return Err(Refusal::new(format!("only {KEY} can be set here"))) };
        if key != KEY {
            return Err(Refusal::unknown("key", key, &[KEY]));
        }
        let rate: Rate = value.parse().map_err(|e: UnitError| Refusal::new(e.to_string()))?;
        penstock_grammar::link::rate("reverse_rate", rate).map_err(|e| Refusal::new(e.to_string()))?;
        self.upload = rate;
        self.served.set_rate(self.alone.c2ml.shared(rate));
        Ok(json!({"at_s": self.start.elapsed().as_secs_f64(), "set": {KEY: value}}).to_string())
    }
}

/// Gives budgets as the file at `path` says until a signal comes; returns the exit code.
///
/// # Errors
/// Returns what is missing.
pub fn run(alone: &Alone, path: &Path, json: bool) -> Result<u8, Error> {
    let signals = Signals::open()?;
    let mut server = server(&alone.name)?;
    let served = Served::start(&alone.c2ml, alone.upload, false).map_err(Error::Hosts)?;
    say(&format!("budgets for hosts at {}: {} are shared", served.address(), alone.c2ml.shared(alone.upload)));
    alone.page.iter().for_each(process::announce);
    let page = alone.page.as_ref().map(|_| Process::new(path));
    let mut running = Running { served, page, upload: alone.upload, alone: alone.clone(), start: Instant::now() };
    service::ready();
    let ended = loop {
        service::alive();
        if let Some(Signalled::End(signal)) = signals.next() {
            break (!is_orderly(signal)).then(|| format!("the run was ended by {signal}"));
        }
        let mut ready =
            [PollFd::new(signals.as_fd(), PollFlags::POLLIN), PollFd::new(server.as_fd(), PollFlags::POLLIN)];
        let polled = ppoll(&mut ready, Some(TICK.into()), None);
        let asked = polled.is_ok() && ready[1].revents().is_some_and(|events| !events.is_empty());
        if asked {
            server.turn(Instant::now(), &mut |_, request| running.answer(&request));
        }
        server.tidy(Instant::now());
        let now = Span::from_nanos(running.start.elapsed().as_nanos() as u64);
        running.page.iter_mut().for_each(|page| page.tick(penstock_core::units::Instant::ZERO + now));
        running.served.events().iter().for_each(|what| say(what));
    };
    service::stopping();
    let status = running.status();
    printed(&if json { format!("{status}\n") } else { crate::ask::hosts(&status) })?;
    ended.iter().for_each(|why| say(&format!("error: {why}")));
    Ok(u8::from(ended.is_some()))
}

/// Tells that a file is right.
///
/// # Errors
/// Fails if nothing can be printed.
pub fn check(alone: &Alone, asked: &Described) -> Result<u8, Error> {
    let text = format!(
        "{} is right: {} are shared among hosts, at {}\n",
        asked.file.display(),
        alone.c2ml.shared(alone.upload),
        alone.c2ml.listen
    );
    printed(&if asked.json { format!("{}\n", json!({"file": asked.file, "right": true})) } else { text })
}

/// Tells what a run would do.
///
/// # Errors
/// Fails if nothing can be printed.
pub fn explain(alone: &Alone, asked: &Described) -> Result<u8, Error> {
    let keys = &alone.c2ml;
    let explained = json!({
        "listen": keys.listen,
        "directory": keys.directory,
        "shared_bps": keys.shared(alone.upload).as_bps(),
        "sharing": keys.settings(alone.upload).policy.sharing,
        "lease_ms": keys.lease.as_millis_f64(),
        "most": keys.most,
    });
    let text = format!(
        "no packet is touched: hosts with an agent get budgets at {} (UDP)\n{} are shared by {} among at most {} hosts; a \
         budget holds for {}\nkeys and nodes: {}\n",
        keys.listen,
        keys.shared(alone.upload),
        explained["sharing"].as_str().unwrap_or_default(),
        keys.most,
        keys.lease,
        keys.directory.display()
    );
    printed(&if asked.json { format!("{explained}\n") } else { text })
}

/// Makes a token and prints it.
///
/// # Errors
/// Fails if the file has no `[c2ml]`, or the token cannot be kept.
pub fn invite(asked: &Invite, file: &Kind) -> Result<u8, Error> {
    let keys = match file {
        Kind::Alone(alone) => Some(&alone.c2ml),
        Kind::Link(file) => file.c2ml.as_ref(),
    };
    let keys = keys.ok_or_else(|| Error::Hosts("the table is missing, so there is nothing to enrol for".into()))?;
    let share = Share { class: asked.class, weight: asked.weight, floor: asked.floor.unwrap_or_default() };
    let made = Roster::open(&keys.directory).and_then(|roster| roster.invite(share, asked.uses, asked.duration));
    let token = made.map_err(|e| Error::Hosts(e.to_string()))?;
    let text = token.text();
    printed(&if asked.described.json {
        let (Share { class, weight, .. }, floor) = (share, asked.floor);
        format!("{}\n", json!({"token": *text, "class": class, "weight": weight, "floor": floor, "uses": asked.uses}))
    } else {
        format!("{}\n", *text)
    })
}
