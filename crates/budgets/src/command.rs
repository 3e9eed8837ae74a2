//! The whole program `penstock-agent`, from its options to its exit code.

use crate::agent::{Enrolment, Identity};
use crate::cli::{Announce, Enrol, Options, Verb};
use crate::daemon::{self, Daemon};
use crate::file::{Apply, File, OfOthers};
use crate::guard;
use crate::identity::Token;
use crate::roster::LONGEST_NAME;
use crate::store;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use penstock_appliance::appliance::Desk;
use penstock_appliance::ask;
use penstock_appliance::log::Log;
use penstock_appliance::output::{print, say};
use penstock_appliance::socket::place;
use penstock_appliance::socket::server::Server;
use penstock_appliance::support::{self, Parts};
use penstock_core::units::{Instant, Rate};
use penstock_linux::limit::{Control, Rates};
use penstock_linux::signals::{Request as Signalled, Signals, is_orderly};
use penstock_linux::udp::{self, Socket};
use serde_json::{Value, json};
use std::io::{self, Read as _};
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::time::Duration;
use zeroize::Zeroizing;

const PROGRAM: &str = "penstock-agent";
/// The beginning of the names of agents.
const DEFAULT_NAME: &str = "agent";
/// How long an enrolment may take.
const PATIENCE: Duration = Duration::from_secs(15);

/// Why the program stops: a text for people, and its exit code.
#[derive(Debug)]
struct Stop(String, u8);

impl Stop {
    /// A mistake that the user can correct.
    fn user(what: impl ToString) -> Self {
        Self(format!("error: {}", what.to_string()), 2)
    }

    /// Something that failed.
    fn failed(what: impl ToString) -> Self {
        Self(format!("error: {}", what.to_string()), 1)
    }
}

/// Runs the program; returns its exit code.
pub fn run(options: &Options) -> u8 {
    begin(&options.verb).unwrap_or_else(|Stop(what, code)| {
        say(&what);
        code
    })
}

fn begin(verb: &Verb) -> Result<u8, Stop> {
    match verb {
        Verb::Guard(options) => Ok(guard::run(options)),
        Verb::Check(asked) => {
            let file = read(&asked.file)?;
            let text = format!("{} is right: {} of {}\n", asked.file.display(), file.name, list(&file.gateways));
            printed(asked.json, &json!({"file": asked.file, "right": true}), &text)
        }
        Verb::Explain(asked) => {
            let explained = explain(&read(&asked.file)?);
            printed(asked.json, &explained, &explained_text(&explained))
        }
        Verb::Enrol(asked) => enrol(asked),
        Verb::Run(asked) => serve(&read(&asked.file)?, asked.json),
        Verb::Announce(asked) => announce(asked),
        Verb::Support(asked) => {
            let written = support::run(asked, &parts(asked.file.as_deref())).map_err(Stop::failed)?;
            print(&written).map(|()| 0).map_err(Stop::failed)
        }
        Verb::Status(asked) => {
            let path = ask::socket(asked, DEFAULT_NAME, PROGRAM).map_err(Stop::user)?;
            let request = penstock_appliance::socket::message::Request::Status;
            ask::converse(&path, &request, asked.json, false, status).map(|()| 0).map_err(Stop::user)
        }
    }
}

/// Returns what `support` packs for an agent with this file.
fn parts(file: Option<&Path>) -> Parts<'static> {
    let log = file.and_then(|path| read(path).ok()).unwrap_or_default().log;
    Parts {
        program: PROGRAM,
        default: DEFAULT_NAME,
        file: "agent.toml",
        private: &["usable_command"],
        private_status: &[],
        commands: &[("programs.txt", &["bpftool", "cgroup", "tree"])],
        files: &[("cgroups.txt", "/proc/cgroups")],
        log: Some(log),
    }
}

fn list(gateways: &[SocketAddr]) -> String {
    gateways.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn read(path: &Path) -> Result<File, Stop> {
    let text = std::fs::read_to_string(path).map_err(|e| Stop::user(format!("cannot read {}: {e}", path.display())))?;
    // A mistake is shown with its line, and that text begins with "error" itself.
    File::parse(&text, &path.to_string_lossy()).map_err(|mistake| Stop(mistake.to_string(), 2))
}

fn printed(json: bool, value: &Value, text: &str) -> Result<u8, Stop> {
    let text = if json { format!("{value}\n") } else { text.to_owned() };
    print(&text).map(|()| 0).map_err(|e| Stop::failed(format!("cannot write to the standard output: {e}")))
}

fn explain(file: &File) -> Value {
    let identity = store::load(&file.directory);
    let cgroup = file.limited();
    let kernel = match file.apply {
        Apply::Nothing => Ok(()),
        Apply::Kernel => Socket::bind(([127, 0, 0, 1], 0).into())
            .map_err(|e| e.to_string())
            .and_then(|own| daemon::limit(file, own.udp().as_fd()).map(drop)),
    };
    let shown = identity.as_ref().ok();
    let (node, share) = (shown.map(|one| one.node.0), shown.map(|one| one.ticket.state().share));
    let kernel = kernel.err().map(|e| format!("the kernel's program: {e}"));
    let lacks: Vec<String> = identity.err().map(|e| e.to_string()).into_iter().chain(kernel).collect();
    json!({
        "name": file.name,
        "gateways": file.gateways,
        "node": node,
        "class": share.map(|share| share.class),
        "weight": share.map(|share| share.weight),
        "identity": store::path(&file.directory),
        "applies": file.apply == Apply::Kernel,
        "control": file.control.map(Control::name),
        "announces": file.announce_rates,
        "polices": file.others == OfOthers::Police,
        "cgroup": cgroup.ok(),
        "usable_bps": file.usable.map(Rate::as_bps),
        "lacks": lacks,
    })
}

/// The texts of a list in an answer, each with these words before it.
fn told<'a>(answer: &'a Value, list: &str, before: &'a str) -> impl Iterator<Item = String> + 'a {
    let texts = answer[list].as_array().into_iter().flatten().filter_map(Value::as_str);
    texts.map(move |text| format!("{before}: {text}"))
}

fn explained_text(explained: &Value) -> String {
    let is = |key: &str, text: &str| (explained[key] == true).then(|| text.to_owned());
    let (node, class, weight) = (&explained["node"], &explained["class"], &explained["weight"]);
    let cgroup = explained["cgroup"].as_str().unwrap_or_default();
    let held = format!("every TCP connection of {cgroup} that begins from now on is held to the budget");
    let becomes =
        |control| format!("its congestion control becomes {control}, which sets windows by equations 2.1 and 2.2");
    let lines = [
        node.is_u64().then(|| format!("node {node} of class {class} with weight {weight}")),
        Some(format!("gateways, one after the other: {}", explained["gateways"])),
        is("applies", &held).or(Some("the budget is shown and not applied".into())),
        explained["control"].as_str().map(becomes),
        is("polices", "what is not TCP gets what TCP leaves of the budget; what is beyond that is lost"),
        is("announces", "connections with ECN tell queues on their way their rates, in an option of TCP"),
    ];
    lines.into_iter().flatten().chain(told(explained, "lacks", "MISSING")).map(|line| line + "\n").collect()
}

fn token(asked: &Enrol) -> Result<Token, Stop> {
    let mut text = Zeroizing::new(String::new());
    let read = match &asked.token {
        Some(path) => std::fs::File::open(path).and_then(|file| file.take(4096).read_to_string(&mut text)),
        None => io::stdin().take(4096).read_to_string(&mut text),
    };
    read.map_err(|e| Stop::user(format!("cannot read the token: {e}")))?;
    Token::read(&text).map_err(Stop::user)
}

fn enrol(asked: &Enrol) -> Result<u8, Stop> {
    let file = read(&asked.described.file)?;
    store::is_free(&file.directory).map_err(Stop::user)?;
    let host = || std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned();
    let called = asked.called.clone().unwrap_or_else(host);
    if called.len() > LONGEST_NAME {
        return Err(Stop::user(format!("a name has at most {LONGEST_NAME} bytes")));
    }
    let token = token(asked)?;
    let mut why = String::new();
    for gateway in &file.gateways {
        match enrol_at(*gateway, &token, &called).map_err(Stop::failed)? {
            Ok(identity) => {
                store::save(&file.directory, &identity).map_err(Stop::failed)?;
                let node = identity.node.0;
                Log::new(file.log).add(None, "enrol", &json!({"node": node, "gateway": gateway}));
                let text = format!("this is node {node} of {gateway}; `penstock-agent run` begins\n");
                return printed(asked.described.json, &json!({"node": node, "gateway": gateway}), &text);
            }
            Err(error) => why = format!("{gateway}: {error}"),
        }
    }
    Err(Stop::failed(format!("no gateway enrols this node; is the token new? {why}")))
}

fn enrol_at(gateway: SocketAddr, token: &Token, called: &str) -> io::Result<Result<Identity, String>> {
    let mut socket = Socket::bind(udp::any(gateway))?;
    let epoch = std::time::Instant::now();
    let mut now = || Instant::from_nanos(epoch.elapsed().as_nanos() as u64);
    let mut enrolment = match Enrolment::new(token, called, gateway, now()) {
        Ok(enrolment) => enrolment,
        Err(error) => return Ok(Err(error.to_string())),
    };
    while epoch.elapsed() < PATIENCE {
        socket.turn(&mut enrolment, &mut now);
        if let Some(done) = enrolment.done() {
            socket.turn(&mut enrolment, &mut now);
            return Ok(done);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(Err("no answer".into()))
}

fn serve(file: &File, json: bool) -> Result<u8, Stop> {
    let identity = store::load(&file.directory).map_err(Stop::user)?;
    let path = place::named(&file.name).map_err(Stop::user)?;
    let server = Server::open(&path);
    let server = server.map_err(|e| Stop::user(format!("{e} (`name` in the file)")))?;
    let signals = Signals::open(&[]).map_err(Stop::failed)?;
    let mut desk = Desk::open(signals, Some(server), Log::new(file.log.clone())).map_err(Stop::failed)?;
    let daemon = Daemon::open(file, &identity, &desk, &path.with_extension("guard")).map_err(Stop::user)?;
    say(&format!("node {} looks for {}", identity.node.0, list(&file.gateways)));
    let version = env!("CARGO_PKG_VERSION");
    desk.log("start", &json!({"node": identity.node.0, "gateways": file.gateways, "version": version}));
    let (last, failed) = daemon.run(desk);
    let value = serde_json::to_value(&last).unwrap_or(Value::Null);
    printed(json, &value, &status(&value))?;
    failed.map_or(Ok(0), |why| Err(Stop::failed(why)))
}

fn announce(asked: &Announce) -> Result<u8, Stop> {
    let signals = Signals::open(&[]).map_err(Stop::failed)?;
    let mut rates = Rates::load().map_err(|e| Stop::failed(format!("this kernel does not take the program: {e}")))?;
    for cgroup in &asked.cgroups {
        let failed = |e| Stop::failed(format!("cannot attach the program to the cgroup {}: {e}", cgroup.display()));
        rates.attach(cgroup).map_err(failed)?;
    }
    if asked.check {
        return Ok(0);
    }
    say(&format!("connections with ECN announce their rates in {} cgroups", asked.cgroups.len()));
    loop {
        match signals.next() {
            Some(Signalled::End(signal)) if is_orderly(signal) => return Ok(0),
            Some(Signalled::End(signal)) => return Err(Stop::failed(format!("ended by {signal}"))),
            Some(Signalled::Report) => {}
            None => match poll(&mut [PollFd::new(signals.as_fd(), PollFlags::POLLIN)], PollTimeout::NONE) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => return Err(Stop::failed(format!("cannot wait: {error}"))),
            },
        }
    }
}

fn status(answer: &Value) -> String {
    let mbit = |key: &str| answer[key].as_u64().map(|bps| format!("{} Mbit/s", bps as f64 / 1e6));
    let others = answer["others"].as_object();
    let lines = [
        Some(format!("node {}", answer["node"])),
        Some(format!("budget: {}", mbit("budget_bps").unwrap_or_else(|| "none".into()))),
        Some(format!("says that it can use: {}", mbit("usable_bps").unwrap_or_else(|| "all".into()))),
        Some(format!("gateway: {}", answer["gateway"].as_str().unwrap_or("none"))),
        Some(format!("connections: {} held, {} send", answer["connections"], answer["sending"])),
        answer["control"].as_str().map(|control| format!("congestion control: {control}")),
        others.map(|others| format!("not TCP: {} packets passed, {} refused", others["passed"], others["refused"])),
    ];
    lines.into_iter().flatten().chain(told(answer, "marks", "WRONG")).map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_shows_the_budget_and_what_is_wrong() {
        let text = status(&json!({"node": 7, "budget_bps": 2_500_000, "marks": ["the guard is gone"], "sending": 3,
            "others": {"passed": 9, "refused": 4}}));
        let passed = "9 packets passed, 4 refused";
        for expected in [passed, "node 7", "budget: 2.5 Mbit/s", "can use: all", "3 send", "WRONG: the guard"] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
    }
}
