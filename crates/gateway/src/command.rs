//! The whole program, from its options to its exit code.

use crate::alone;
use crate::apply::Read;
use crate::ask;
use crate::cli::{Checked, Options, Verb};
use crate::daemon::Daemon;
use crate::error::{Error, text_of};
use crate::explain;
use crate::file::{Alone, Datapath, File, Kind, LOG, Mode};
use crate::from;
use crate::guard;
use crate::kernel::Kernel;
use crate::offloaded;
use crate::page;
use crate::rules::Rules;
use crate::short;
use crate::surroundings::{answered, ended, missing, printed, say, server, signals};
use penstock_appliance::appliance::{Appliance, Desk};
use penstock_appliance::command;
use penstock_appliance::log::Log;
use penstock_appliance::page::process::{self, Process};
use penstock_appliance::record::{self, Place};
use penstock_appliance::socket::server::Server;
use penstock_appliance::support::{self, Parts};
use penstock_grammar::source::Source;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The name of the program.
const PROGRAM: &str = "penstock-gateway";

/// Runs the program; returns its exit code.
pub fn run(options: &Options) -> u8 {
    begin(&options.verb).unwrap_or_else(|error| {
        // A mistake in a file is shown with its line, and that text begins with "error" itself.
        say(&format!("{}{error}", if matches!(error, Error::File(_)) { "" } else { "error: " }));
        error.exit_code()
    })
}

fn begin(verb: &Verb) -> Result<u8, Error> {
    match verb {
        Verb::Run { file: path, observe, json } => match read(path)? {
            Kind::Alone(alone) => alone::run(&alone, path, *json),
            Kind::Link(mut file) => {
                let own = (*file).clone();
                file.keys.observe |= observe;
                govern(&file, own, path, *json)
            }
        },
        Verb::Invite(asked) => alone::invite(asked, &read(&asked.described.file)?),
        Verb::Check(asked) => check(asked),
        Verb::Explain(asked) => match read(&asked.file)? {
            Kind::Alone(alone) => alone::explain(&alone, asked.json),
            Kind::Link(file) if file.keys.datapath == Datapath::Kernel => {
                answered(asked.json, &explain::in_the_kernel(&file), explain::kernel_text)
            }
            Kind::Link(file) => {
                let rules = (file.keys.mode == Mode::Router).then(|| Rules::of(&file)).transpose()?;
                answered(asked.json, &explain::explain(&file, rules.as_ref()), explain::text)
            }
        },
        Verb::Record(options) => {
            let wan = |status: &Value| Some(Place { interface: status["wan"].as_str()?.to_owned(), netns: None });
            printed(&record::run(options, ask::DEFAULT_NAME, PROGRAM, wan)?)
        }
        Verb::Support(options) => printed(&support::run(options, &parts(options.file.as_deref()))?),
        Verb::Guard(options) => Ok(guard::run(options)),
        Verb::Page { file } => {
            let file = read(file)?;
            let page = match &file {
                Kind::Link(file) => &file.page,
                Kind::Alone(alone) => &alone.page,
            };
            Err(process::run(&page::CONTENT, page.as_ref(), file.name()).into())
        }
        Verb::Status(_) | Verb::Top { .. } | Verb::Set(_) | Verb::Apply(_) | Verb::Rollback(_) => {
            ask::run(verb).map(|()| 0)
        }
    }
}

/// Tells what a file with nothing wrong does, and what else is to be known of it.
fn check(asked: &Checked) -> Result<u8, Error> {
    let Some(path) = &asked.file else { return from::run(asked, right) };
    let kind = read(path)?;
    has_command(&kind, path)?;
    let (what, notes) = right(kind);
    let right = json!({"file": path, "right": true, "notes": notes});
    let told = notes.iter().map(|note| format!("note: {note}\n"));
    let text = format!("{} is right: {what}\n{}", path.display(), told.collect::<String>());
    answered(asked.json, &right, |_| text)
}

/// Returns what a file does, and notes.
fn right(kind: Kind) -> (String, Vec<String>) {
    match kind {
        Kind::Alone(alone) => {
            let Alone { c2ml, upload, .. } = *alone;
            (format!("{} are shared among hosts, at {}", c2ml.shared(upload), c2ml.listen), Vec::new())
        }
        Kind::Link(file) => {
            let [down, up] = file.settings.ways.each_ref().map(|way| format!("{} at {}", way.aqm.name(), way.rate));
            let short = short::note(&file.settings.ways, file.settings.source.keys.round_trip);
            let notes = short.into_iter().chain(offloaded::note(&file));
            (format!("{down} down, {up} up, on {}", file.interfaces.wan), notes.collect())
        }
    }
}

fn read(path: &Path) -> Result<Kind, Error> {
    Kind::parse(&text_of(path)?, &path.to_string_lossy()).map_err(|mistake| Box::new(mistake).into())
}

/// Refuses a file whose command for the rates is not on this machine.
fn has_command(kind: &Kind, path: &Path) -> Result<(), Error> {
    let Kind::Link(file) = kind else { return Ok(()) };
    let Some(program) = file.settings.source.keys.command.first().filter(|word| !command::is_there(word)) else {
        return Ok(());
    };
    let (text, name) = (text_of(path)?, path.to_string_lossy());
    let what =
        format!("there is no program {program:?} here that can be run; write the path of one that prints the rates");
    let told =
        Source::parse(&text, &name).map_or_else(|mistake| mistake, |source| source.at(&["link", "command"], &what));
    Err(Box::new(told).into())
}

/// Returns what `support` packs for a gateway with this file.
fn parts(file: Option<&Path>) -> Parts<'static> {
    let log = file.and_then(|path| match read(path).ok()? {
        Kind::Link(file) => Some(file.keys.log),
        Kind::Alone(_) => None,
    });
    Parts {
        program: PROGRAM,
        default: ask::DEFAULT_NAME,
        file: "gateway.toml",
        private: &["page", "subscribers", "command"],
        private_status: &["/subscribers", "/callers", "/c2ml/nodes", "/c2ml/contested", "/enforcement/nodes"],
        commands: &[
            ("rules.txt", &["iptables-legacy-save", "-c", "-t", "mangle"]),
            ("rules-nft.txt", &["iptables-save", "-c", "-t", "mangle"]),
            ("programs.txt", &["bpftool", "net"]),
        ],
        files: &[("queues.txt", "/proc/net/netfilter/nfnetlink_queue")],
        log: Some(log.unwrap_or_else(|| PathBuf::from(LOG))),
    }
}

/// Governs as a file says, until a signal comes. `own` is the file at `path` without options.
fn govern(file: &File, own: File, path: &Path, json: bool) -> Result<u8, Error> {
    let lan = file.interfaces.lan.as_ref().map(|lan| ("lan", lan));
    for (key, name) in [("wan", &file.interfaces.wan)].into_iter().chain(lan) {
        missing(key, name).iter().for_each(|why| say(&format!("waiting: {why}")));
    }
    let server = server(&file.keys.name)?;
    if file.keys.datapath == Datapath::Kernel {
        let mut desk = desk(file, own, path, server)?;
        let kernel = Kernel::open(file, &mut desk)?;
        begun(file, &kernel);
        let (report, failed) = kernel.run(desk);
        return ended(json, &report, ask::status, failed);
    }
    let mut desk = desk(file, own, path, server)?;
    let daemon = Daemon::open(file, &mut desk)?;
    begun(file, &daemon);
    let (status, failed) = daemon.run(desk);
    ended(json, &status, ask::status, failed)
}

/// From here on signals end the run. `own` is the file at `path` without options.
fn desk<A: Appliance<File = Read>>(file: &File, own: File, path: &Path, server: Server) -> Result<Desk<A>, Error> {
    let desk = Desk::open(signals()?, Some(server), Log::new(file.keys.log.clone()))?;
    let page = file.page.as_ref().map(|_| Process::new(path));
    Ok(desk.reads(path, move |name, text| Read::of(name, text, &own))?.showing(page))
}

fn begun(file: &File, appliance: &impl Appliance) {
    let [down, up] = file.settings.ways.each_ref().map(|way| format!("{} {}", way.aqm.name(), way.rate));
    say(&format!("{}: {down} down, {up} up", appliance.standing()));
    file.page.iter().for_each(process::announce);
}
