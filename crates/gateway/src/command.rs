//! The whole program, from its options to its exit code.

use crate::alone;
use crate::apply::Read;
use crate::ask;
use crate::cli::{Options, Verb};
use crate::daemon::Daemon;
use crate::error::Error;
use crate::explain;
use crate::file::{Datapath, File, Kind, LOG, Mode};
use crate::guard;
use crate::kernel::Kernel;
use crate::page;
use crate::rules::Rules;
use crate::surroundings::{interface, printed, say, server, signals};
use penstock_appliance::appliance::{Appliance, Desk};
use penstock_appliance::log::Log;
use penstock_appliance::page::process::{self, Process};
use penstock_appliance::record::{self, Place};
use penstock_appliance::socket::server::Server;
use penstock_appliance::support::{self, Parts};
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
        Verb::Check(asked) => {
            let file = match read(&asked.file)? {
                Kind::Alone(alone) => return alone::check(&alone, asked),
                Kind::Link(file) => file,
            };
            let [down, up] = &file.bottlenecks;
            let text = format!(
                "{} is right: {} at {} down, {} at {} up, on {}\n",
                asked.file.display(),
                down.aqm.name(),
                down.rate,
                up.aqm.name(),
                up.rate,
                file.interfaces.wan
            );
            printed(&if asked.json { format!("{}\n", json!({"file": asked.file, "right": true})) } else { text })
        }
        Verb::Explain(asked) => {
            let file = match read(&asked.file)? {
                Kind::Alone(alone) => return alone::explain(&alone, asked),
                Kind::Link(file) => file,
            };
            if file.keys.datapath == Datapath::Kernel {
                let explained = explain::in_the_kernel(&file);
                return printed(&if asked.json { format!("{explained}\n") } else { explain::kernel_text(&explained) });
            }
            let explained = match file.keys.mode {
                Mode::Bridge => explain::on_a_bridge(&file),
                Mode::Router => explain::explain(&file, &Rules::of(&file)?),
            };
            printed(&if asked.json { format!("{explained}\n") } else { explain::text(&explained) })
        }
        Verb::Record(options) => printed(&record::run(options, ask::DEFAULT_NAME, PROGRAM, wan)?),
        Verb::Support(options) => printed(&support::run(options, &parts(options.file.as_deref()))?),
        Verb::Guard(options) => Ok(guard::run(options)),
        Verb::Page { file } => {
            let file = read(file)?;
            Err(process::run(&page::CONTENT, file.page(), file.name()).into())
        }
        Verb::Status(_) | Verb::Top { .. } | Verb::Set(_) | Verb::Apply(_) | Verb::Rollback(_) => {
            ask::run(verb).map(|()| 0)
        }
    }
}

fn read(path: &Path) -> Result<Kind, Error> {
    let text = std::fs::read_to_string(path).map_err(|source| Error::NoFile { path: path.to_owned(), source })?;
    Kind::parse(&text, &path.to_string_lossy()).map_err(|mistake| Box::new(mistake).into())
}

/// Returns the interface to the link of a gateway that runs.
fn wan(status: &Value) -> Option<Place> {
    Some(Place { interface: status["wan"].as_str()?.to_owned(), netns: None })
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
        private_tables: &["page", "subscribers"],
        private_keys: &["command"],
        private_status: &["/subscribers", "/callers", "/c2ml/nodes", "/enforcement/nodes"],
        commands: &[
            ("rules.txt", &["iptables-legacy-save", "-c", "-t", "mangle"]),
            ("rules-nft.txt", &["iptables-save", "-c", "-t", "mangle"]),
            ("programs.txt", &["bpftool", "net"]),
        ],
        files: &[("queues.txt", "/proc/net/netfilter/nfnetlink_queue")],
        log: Some(log.unwrap_or_else(|| PathBuf::from(LOG))),
    }
}

fn govern(file: &File, own: File, path: &Path, json: bool) -> Result<u8, Error> {
    let wan = interface("wan", &file.interfaces.wan)?;
    if let Some(lan) = &file.interfaces.lan {
        interface("lan", lan)?;
    }
    let server = Some(server(&file.keys.name)?);
    let page = file.page.as_ref().map(|_| Process::new(path));
    if file.keys.datapath == Datapath::Kernel {
        let mut desk = desk(file, own, path, server)?;
        let kernel = Kernel::open(file, wan, &mut desk)?;
        begun(file);
        let (report, failed) = kernel.run(desk);
        return ended(&serde_json::to_value(&report).unwrap_or(Value::Null), failed, json);
    }
    let mut desk = desk(file, own, path, server)?.showing(page);
    let daemon = Daemon::open(file, wan, &mut desk)?;
    begun(file);
    let (status, failed) = daemon.run(desk);
    ended(&serde_json::to_value(&status).unwrap_or(Value::Null), failed, json)
}

/// From here on signals end the run. `own` is the file at `path` without options.
fn desk<A: Appliance<File = Read>>(
    file: &File,
    own: File,
    path: &Path,
    server: Option<Server>,
) -> Result<Desk<A>, Error> {
    let desk = Desk::open(signals()?, server, Log::new(file.keys.log.clone()))?;
    Ok(desk.reads(path, move |name, text| Read::of(name, text, &own))?)
}

fn begun(file: &File) {
    let [down, up] = &file.bottlenecks;
    let what = if file.keys.observe { "observing" } else { "governing" };
    let [there, back] = [down, up].map(|way| format!("{} {}", way.aqm.name(), way.rate));
    say(&format!("{what} {}: {there} down, {back} up", file.interfaces.wan));
    file.page.iter().for_each(process::announce);
}

/// Prints the last status.
fn ended(status: &Value, failed: Option<String>, json: bool) -> Result<u8, Error> {
    printed(&last(status, json))?;
    failed.iter().for_each(|why| say(&format!("error: {why}")));
    Ok(u8::from(failed.is_some()))
}

/// The last status, for programs or for people.
fn last(status: &Value, json: bool) -> String {
    if json { format!("{status}\n") } else { ask::status(status) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_last_status_is_a_line_of_json_or_a_table() {
        let status = json!({"state": "shut"});
        assert_eq!(last(&status, true), "{\"state\":\"shut\"}\n");
        assert!(last(&status, false).contains("\nstate: shut\n"));
    }
}
