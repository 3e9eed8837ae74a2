//! A gateway that gives budgets to hosts (`penstock_budgets`) and does not touch packets: where the bottleneck is elsewhere,
//! such as in a modem, and for networks of which only some hosts have an agent.

use crate::cli::{Described, Invite};
use crate::error::Error;
use crate::file::{Alone, Kind};
use crate::surroundings::{printed, say, server, signals};
use penstock_appliance::appliance::{Appliance, Clock, Desk, Rest, wait};
use penstock_appliance::log::Log;
use penstock_appliance::page::process::{self, Process};
use penstock_appliance::settings::Settings;
use penstock_appliance::socket::message::{By, Refusal};
use penstock_budgets::roster::Roster;
use penstock_budgets::served::{Keys, Served};
use penstock_core::coop::Share;
use penstock_core::units::{Instant, Rate, UnitError};
use serde_json::{Map, Value, json};
use std::path::Path;

/// The only key that can be set.
const KEY: &str = "reverse_rate";

/// A gateway that only gives budgets.
struct Running {
    served: Served,
    upload: Upload,
    keys: Keys,
    clock: Clock,
}

/// The rate of the upload, of which a part is shared.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Upload(Rate);

impl Settings for Upload {
    fn difference(&self, new: &Self) -> Map<String, Value> {
        if self == new { Map::new() } else { new.told() }
    }

    fn told(&self) -> Map<String, Value> {
        Map::from_iter([(KEY.to_owned(), self.0.to_string().into())])
    }
}

impl Appliance for Running {
    type Settings = Upload;
    type File = Upload;
    type Status = Value;
    const APPLIES_AT_HANGUP: bool = true;

    fn turn(&mut self, _: &mut Desk<Self>) -> Result<Instant, String> {
        Ok(self.clock.now())
    }

    fn sleep(&mut self, rest: &Rest<'_>) -> Result<bool, String> {
        wait(rest, rest.until)
    }

    fn tick(&mut self, _: Instant, desk: &mut Desk<Self>) -> Result<(), String> {
        self.served.events().into_iter().for_each(|what| desk.note(what));
        Ok(())
    }

    fn status(&mut self, desk: &Desk<Self>) -> Value {
        let failed = self.served.has_failed().then(|| "budgets have stopped by a fault of this program".to_owned());
        json!({
            "elapsed_s": self.clock.now().as_secs_f64(),
            "state": "budgets",
            "marks": failed.into_iter().chain(desk.marks()).collect::<Vec<_>>(),
            "events": desk.events(),
            "changes": desk.changes(),
            "lapse": desk.lapse(),
            "reverse": {"rate_bps": self.upload.0.as_bps()},
            "c2ml": self.served.status(),
        })
    }

    fn top(&self, _: By, _: usize, _: Instant) -> Result<Value, Refusal> {
        Err(Refusal::new("this gateway only gives budgets: it sees no packets; `status` has its counters"))
    }

    fn settings(&self) -> &Upload {
        &self.upload
    }

    fn read(&self, values: &[(String, String)]) -> Result<Upload, Refusal> {
        let [(key, value)] = values else { return Err(Refusal::new(format!("only {KEY} can be set here"))) };
        if key != KEY {
            return Err(Refusal::unknown("key", key, &[KEY]));
        }
        let rate: Rate = value.parse().map_err(|e: UnitError| Refusal::new(e.to_string()))?;
        penstock_grammar::link::rate("reverse_rate", rate).map_err(|e| Refusal::new(e.to_string()))?;
        Ok(Upload(rate))
    }

    fn wanted(&self, file: &Upload) -> Result<Upload, Refusal> {
        Ok(*file)
    }

    fn go_to(&mut self, wanted: &Upload) -> Result<Instant, Refusal> {
        self.upload = *wanted;
        self.served.set_rate(self.keys.shared(wanted.0));
        Ok(self.clock.now())
    }
}

/// Returns what another file says; all but the rate needs a new start.
fn read(name: &str, text: &str, own: &Alone) -> Result<Upload, Refusal> {
    let refuse = |mistake: &dyn std::fmt::Display| {
        let said = mistake.to_string();
        Refusal::new(said.strip_prefix("error: ").unwrap_or(&said))
    };
    let Kind::Alone(new) = Kind::parse(text, name).map_err(|mistake| refuse(&mistake))? else {
        return Err(Refusal::new(format!(
            "{name} governs a link, and a gateway of budgets only cannot begin with that"
        )));
    };
    if *own != (Alone { upload: own.upload, ..(*new).clone() }) {
        return Err(Refusal::new(format!(
            "{name}: only {KEY} can change while the gateway runs; end it, and start it anew"
        )));
    }
    Ok(Upload(new.upload))
}

/// Gives budgets as the file at `path` says until a signal comes; returns the exit code.
///
/// # Errors
/// Returns what is missing.
pub fn run(alone: &Alone, path: &Path, json: bool) -> Result<u8, Error> {
    let desk = Desk::open(signals()?, Some(server(&alone.name)?), Log::nowhere())?;
    let own = alone.clone();
    let page = alone.page.as_ref().map(|_| Process::new(path));
    let mut desk = desk.reads(path, move |name, text| read(name, text, &own))?.showing(page);
    let served = Served::start(&alone.c2ml, alone.upload, false).map_err(Error::Hosts)?;
    say(&format!("budgets for hosts at {}: {} are shared", served.address(), alone.c2ml.shared(alone.upload)));
    alone.page.iter().for_each(process::announce);
    let clock = desk.clock();
    let mut running = Running { served, upload: Upload(alone.upload), keys: alone.c2ml.clone(), clock };
    let ended = penstock_appliance::run::run(&mut running, &mut desk);
    let status = running.status(&desk);
    printed(&if json { format!("{status}\n") } else { crate::hosts::hosts(&status) })?;
    ended.failure().iter().for_each(|why| say(&format!("error: {why}")));
    Ok(u8::from(ended.failure().is_some()))
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
