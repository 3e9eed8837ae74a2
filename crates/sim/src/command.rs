//! The main of a program with algorithms of its own: it runs scenarios, and replays packets and events for
//! `penstock verify agree`. `docs/python-to-rust.md` shows one. This is the one file of this crate that reads arguments
//! and files.
//!
//! ```text
//! PROGRAM SCENARIO.toml [--seed N]                                     the summary of a run, as JSON
//! PROGRAM names                                                        the names of its algorithms, with their kinds
//! PROGRAM replay TRACE --rate RATE --limit LIMIT [--aqm NAME]          the fate of each packet, as CSV
//!         [--set KEY=VALUE ...] [--seed N] [--state-at ID:NS]          or the state of the algorithm then
//! PROGRAM schedule EVENTS --weights 1,2,4 [--alg NAME]                 the packets as they leave, and the state
//! PROGRAM control EVENTS [--cc NAME] [--set KEY=VALUE ...]             the window after each event, as CSV
//! ```

#![allow(clippy::disallowed_methods, reason = "the one file that reads arguments and files, and prints")]

use crate::{Scenario, Simulation};
use error::CommandError;
use penstock_core::config::LinkFacts;
use penstock_core::foreign::{Kind, Library as _, Own};
use penstock_core::sched::script;
use penstock_core::sched::table::AnySchedulerConfig;
use penstock_core::settings::{config_from_library, control_from_library};
use penstock_core::units::{Bytes, Instant, Span};
use penstock_trace::control::{self, Endpoint};
use penstock_trace::replay::{Conditions, replay_under, state_at};
use penstock_trace::{read, record};
use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::io::Write as _;
use std::process::ExitCode;
use std::str::FromStr;

mod error;

const USAGE: &str = "usage: PROGRAM SCENARIO.toml [--seed N], or PROGRAM names | replay | schedule | control ...; \
                     `penstock docs python-to-rust` explains each";
/// The largest packet of `schedule`.
const LARGEST: Bytes = Bytes::new(1500);

/// The main of a program with algorithms of its own. Returns 0, or 2 after a mistake of the user, which is printed.
///
/// ```no_run
/// # use penstock_core::aqm::codel;
/// fn main() -> std::process::ExitCode {
///     penstock_sim::main_with(&penstock_core::foreign::Own::new().with_aqm::<codel::Config>("my-codel"))
/// }
/// ```
pub fn main_with(own: &Own) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(own, &arguments) {
        // A reader that has seen enough is no mistake.
        Ok(text) => std::io::stdout().write_all(text.as_bytes()).map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS),
        Err(error) => {
            let message = error.to_string();
            let prefix = if message.starts_with("error") { "" } else { "error: " };
            let _ = writeln!(std::io::stderr(), "{prefix}{message}");
            ExitCode::from(2)
        }
    }
}

/// Carries out a command; returns what is to be printed.
fn run(own: &Own, arguments: &[String]) -> Result<String, CommandError> {
    let (verb, rest) = arguments.split_first().ok_or(CommandError::NoCommand)?;
    match verb.as_str() {
        "-h" | "--help" => Ok(format!("{USAGE}\nalgorithms: {}\n", own.names().join(", "))),
        "names" => Ok(own.names().iter().map(|name| format!("{} {name}\n", kind(own, name))).collect()),
        "replay" => replayed(own, &Given::read(rest, &["--rate", "--limit", "--aqm", "--seed", "--state-at"])?),
        "schedule" => scheduled(own, &Given::read(rest, &["--weights", "--alg"])?),
        "control" => controlled(own, &Given::read(rest, &["--cc"])?),
        flag if flag.starts_with('-') => Err(CommandError::UnknownFlag(flag.to_owned())),
        _ => simulated(own, &Given::read(arguments, &["--seed"])?),
    }
}

fn kind(own: &Own, name: &str) -> &'static str {
    match own.kind(name) {
        Some(Kind::Aqm) => "aqm",
        Some(Kind::Scheduler) => "scheduler",
        Some(Kind::AckPath) => "ack-path",
        None if own.stack(name).is_some() => "stack",
        None => "cc",
    }
}

/// The arguments of a command: one file, options with a value, and settings.
struct Given {
    file: String,
    options: BTreeMap<String, String>,
    settings: Vec<String>,
}

impl Given {
    fn read(arguments: &[String], known: &[&str]) -> Result<Self, CommandError> {
        let (mut files, mut options, mut settings) = (Vec::new(), BTreeMap::new(), Vec::new());
        let mut rest = arguments.iter();
        while let Some(word) = rest.next() {
            if !word.starts_with('-') {
                files.push(word.clone());
                continue;
            }
            let value = rest.next().ok_or_else(|| CommandError::NoValue(word.clone()))?.clone();
            match word.as_str() {
                "--set" => settings.push(value),
                word if known.contains(&word) => drop(options.insert(word.to_owned(), value)),
                _ => {
                    return Err(CommandError::UnknownOption { option: word.clone(), known: known.join(", ") });
                }
            }
        }
        match <[String; 1]>::try_from(files) {
            Ok([file]) => Ok(Self { file, options, settings }),
            Err(files) => Err(CommandError::Files(files.len())),
        }
    }

    fn option<T: FromStr<Err: Display>>(&self, name: &str) -> Result<Option<T>, CommandError> {
        let parse = |text: &String| {
            let wrong = |message| CommandError::Value { option: name.to_owned(), text: text.clone(), message };
            text.parse().map_err(|error: T::Err| wrong(error.to_string()))
        };
        self.options.get(name).map(parse).transpose()
    }

    fn required<T: FromStr<Err: Display>>(&self, name: &str) -> Result<T, CommandError> {
        self.option(name)?.ok_or_else(|| CommandError::Missing(name.to_owned()))
    }

    /// The name of an algorithm: the given one, or the first of this kind in the program.
    fn name(&self, option: &str, own: &Own, wanted: &str) -> Result<String, CommandError> {
        let first = own.names().into_iter().find(|name| kind(own, name) == wanted);
        let given = self.options.get(option).map(String::as_str);
        let missing = || CommandError::NoAlgorithm { option: option.to_owned(), wanted: wanted.to_owned() };
        given.or(first).map(str::to_owned).ok_or_else(missing)
    }

    fn text(&self) -> Result<String, CommandError> {
        std::fs::read_to_string(&self.file).map_err(|source| self.unreadable(source))
    }

    fn unreadable(&self, source: std::io::Error) -> CommandError {
        CommandError::Unreadable { file: self.file.clone(), source }
    }
}

fn simulated(own: &Own, given: &Given) -> Result<String, CommandError> {
    let mut scenario = Scenario::parse_with(&given.text()?, &given.file, own)?;
    scenario.seed = given.option("--seed")?.unwrap_or(scenario.seed);
    let mut simulation = Simulation::new(&scenario);
    simulation.advance(Span::MAX)?;
    let summary = serde_json::to_string(&simulation.summary())?;
    Ok(summary + "\n")
}

fn replayed(own: &Own, given: &Given) -> Result<String, CommandError> {
    let config = config_from_library(&given.name("--aqm", own, "aqm")?, &given.settings, own)?;
    let link = LinkFacts { rate: given.required("--rate")?, limit: given.required("--limit")? };
    let conditions = Conditions::seeded(given.option("--seed")?.unwrap_or(1));
    let data = std::fs::read(&given.file).map_err(|source| given.unreadable(source))?;
    let file = || given.file.clone();
    let arrivals = read::read(data.as_slice()).map_err(|source| CommandError::Trace { file: file(), source })?;
    if let Some(at) = given.options.get("--state-at") {
        let parts = at.split_once(':').and_then(|(id, ns)| Some((id.parse().ok()?, ns.parse().ok()?)));
        let (id, ns) = parts.ok_or_else(|| CommandError::StateAt(at.clone()))?;
        return state_at(arrivals, &config, link, &conditions, id, Instant::from_nanos(ns))
            .map_err(CommandError::State);
    }
    let (mut rows, mut id) = (format!("{}\n", record::COLUMNS).into_bytes(), 0);
    let each = |packet: &record::Record| {
        // Writing to a vector cannot fail.
        let _ = packet.write_csv(id, &mut rows);
        id += 1;
    };
    let done = replay_under(arrivals, &config, link, &conditions, each);
    done.map_err(|source| CommandError::Replay { file: file(), source })?;
    Ok(String::from_utf8(rows)?)
}

/// Plays the events of a file to a scheduler. A row is an event, a class and a value, which is the size of an arrival in
/// bytes: `arrive,2,1500`, `depart,0,0`.
fn scheduled(own: &Own, given: &Given) -> Result<String, CommandError> {
    let name = given.name("--alg", own, "scheduler")?;
    let config = match (AnySchedulerConfig::default_of(&name), own.scheduler(&name, &Default::default())) {
        (Some(config), _) => config,
        (None, Some(found)) => AnySchedulerConfig::Foreign(found?),
        (None, None) => return Err(CommandError::UnknownScheduler(name)),
    };
    let weights: String = given.required("--weights")?;
    let weights: Result<Vec<u32>, _> = weights.split(',').map(|weight| weight.trim().parse()).collect();
    let weights = weights.map_err(CommandError::Weights)?;
    let mut events = Vec::new();
    for (line, row) in given.text()?.lines().enumerate() {
        let cells: Vec<&str> = row.split(',').collect();
        let event = match cells[..] {
            [name, class, value] => class.parse().ok().zip(value.parse().ok()).map(|(c, v)| (name.to_owned(), c, v)),
            _ => None,
        };
        events.push(event.ok_or_else(|| CommandError::Row { file: given.file.clone(), line: line + 1 })?);
    }
    let played = script::play(&config, &weights, LARGEST, events, false)?;
    let mut text = String::new();
    for packet in played.order {
        // Writing to a text cannot fail.
        let _ = writeln!(text, "{}", packet.map_or(-1, |packet| packet as i64));
    }
    let _ = writeln!(text, "{}", played.state);
    Ok(text)
}

fn controlled(own: &Own, given: &Given) -> Result<String, CommandError> {
    let config = control_from_library(&given.name("--cc", own, "cc")?, &given.settings, own)?;
    let text = given.text()?;
    let mut replay = control::Replay::new(text.as_bytes(), &config, &Endpoint::default());
    let mut rows = format!("{},state\n", control::COLUMNS);
    let wrong = |source| CommandError::Trace { file: given.file.clone(), source };
    while let Some(row) = replay.next_row().map_err(wrong)? {
        let _ = writeln!(rows, "{row},\"{}\"", replay.state().replace('"', "\"\""));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests;
