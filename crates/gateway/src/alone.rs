//! A gateway that gives budgets to hosts (`penstock_budgets`) and does not touch packets: where the bottleneck is elsewhere,
//! such as in a modem, and for networks of which only some hosts have an agent.

use crate::cli::Invite;
use crate::error::Error;
use crate::file::{Alone, Kind};
use crate::hosts::hosts;
use crate::report::Common;
use crate::surroundings::{answered, ended, printed, say, server, signals};
use penstock_appliance::appliance::{Appliance, Clock, Desk, Rest, wait};
use penstock_appliance::live::Words;
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

const KEY: &str = "reverse_rate";

struct Running {
    served: Served,
    upload: Upload,
    clock: Clock,
}

/// The rate of the upload, of which a part is shared.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Upload(Rate);

impl Settings for Upload {
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
        let mut status = json!(Common::of(desk, self.served.marks().into_iter()));
        status["state"] = "budgets".into();
        status["reverse"] = json!({"rate_bps": self.upload.0.as_bps()});
        status["c2ml"] = json!(self.served.status());
        status
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
        let rate: Rate = value.parse().map_err(|e: UnitError| Refusal::of(&e))?;
        Words::GATEWAY.rate(KEY, rate).map_err(|e| Refusal::of(&e))?;
        Ok(Upload(rate))
    }

    fn wanted(&self, file: &Upload) -> Result<Upload, Refusal> {
        Ok(*file)
    }

    fn go_to(&mut self, wanted: &Upload) -> Result<Instant, Refusal> {
        self.upload = *wanted;
        self.served.set_upload(wanted.0);
        Ok(self.clock.now())
    }
}

/// Returns what another file says; all but the rate needs a new start.
fn read(name: &str, text: &str, own: &Alone) -> Result<Upload, Refusal> {
    let Kind::Alone(new) = Kind::parse(text, name).map_err(|mistake| Refusal::of(&mistake))? else {
        let what = format!("{name} governs a link, and a gateway of budgets only cannot begin with that");
        return Err(Refusal::new(what));
    };
    if *own != (Alone { upload: own.upload, ..(*new).clone() }) {
        let what = format!("{name}: only {KEY} can change while the gateway runs; end it, and start it anew");
        return Err(Refusal::new(what));
    }
    Ok(Upload(new.upload))
}

/// Gives budgets as the file at `path` says until a signal comes; returns the exit code.
pub fn run(alone: &Alone, path: &Path, json: bool) -> Result<u8, Error> {
    let desk = Desk::open(signals()?, Some(server(&alone.name)?), Log::nowhere())?;
    let own = alone.clone();
    let page = alone.page.as_ref().map(|_| Process::new(path));
    let mut desk = desk.reads(path, move |name, text| read(name, text, &own))?.showing(page);
    let served = Served::start(&alone.c2ml, alone.upload, false).map_err(Error::budgets)?;
    say(&format!("budgets for hosts at {}: {} are shared", served.address(), alone.c2ml.shared(alone.upload)));
    alone.page.iter().for_each(process::announce);
    let mut running = Running { served, upload: Upload(alone.upload), clock: desk.clock };
    let failed = penstock_appliance::run::run(&mut running, &mut desk).failure();
    ended(json, &running.status(&desk), hosts, failed)
}

pub fn explain(Alone { c2ml, upload, .. }: &Alone, json: bool) -> Result<u8, Error> {
    let Keys { listen, directory, lease, most, .. } = c2ml;
    let (shared, sharing) = (c2ml.shared(*upload), json!(c2ml.settings(*upload).policy.sharing));
    let explained = json!({
        "listen": listen,
        "directory": directory,
        "shared_bps": shared.as_bps(),
        "sharing": sharing,
        "lease_ms": lease.as_millis_f64(),
        "most": most,
    });
    let (sharing, directory) = (sharing.as_str().unwrap_or_default(), directory.display());
    answered(json, &explained, |_| {
        format!(
            "no packet is touched: hosts with an agent get budgets at {listen} (UDP)\n{shared} are shared by {sharing} among \
             at most {most} hosts; a budget holds for {lease}\nkeys and nodes: {directory}\n"
        )
    })
}

/// Makes a token for hosts of a file with `[c2ml]`, and prints it.
pub fn invite(asked: &Invite, file: &Kind) -> Result<u8, Error> {
    let keys = match file {
        Kind::Alone(alone) => Some(&alone.c2ml),
        Kind::Link(file) => file.c2ml.as_ref(),
    };
    let keys = keys.ok_or_else(|| Error::budgets("the table is missing, so there is nothing to enrol for"))?;
    let Invite { class, weight, floor, uses, .. } = *asked;
    let share = Share { class, weight, floor: floor.unwrap_or_default() };
    let made = Roster::open(&keys.directory).and_then(|roster| roster.invite(share, uses, asked.duration));
    let text = made.map_err(Error::budgets)?.text();
    printed(&if asked.described.json {
        format!("{}\n", json!({"token": *text, "class": class, "weight": weight, "floor": floor, "uses": uses}))
    } else {
        format!("{}\n", *text)
    })
}
