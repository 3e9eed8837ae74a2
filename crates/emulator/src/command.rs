//! The whole program, from its options to its exit code. Whatever ends a run, its report is printed first.

use crate::ask::{self, DEFAULT_NAME};
use crate::cli::{Options, Plan, listing};
use crate::emulator::{Emulator, Finished};
use crate::error::Error;
use crate::report::Report;
use crate::wires;
use clap::Parser as _;
use penstock_appliance::appliance::Desk;
use penstock_appliance::error::Error as Ask;
use penstock_appliance::output::{Offers, Printer, print, say, stdout_is_nowhere};
use penstock_appliance::socket::place;
use penstock_appliance::socket::server::{self, Server};
use penstock_core::foreign::{Library, Own};
use penstock_linux::netns::Namespace;
use penstock_linux::signals::{Request, Signals};
use std::io::Write as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// What the start takes, with room for the stacks of threads.
const MEMORY: usize = 64 << 20;
/// A signal ends the wait for a blocked output only after this time: signals often come in pairs.
const PATIENCE: Duration = Duration::from_secs(1);

/// The main of a program with algorithms of its own: `penstock-emulate` with the names of `own` beside the built-in ones.
///
/// ```no_run
/// # use penstock_core::aqm::codel;
/// fn main() -> std::process::ExitCode {
///     penstock_emulator::command::main_with(&penstock_core::foreign::Own::new().with_aqm::<codel::Config>("my-codel"))
/// }
/// ```
pub fn main_with(own: &Own) -> ExitCode {
    ExitCode::from(begin(&Options::parse(), own).unwrap_or_else(|error| {
        // A mistake in a file is shown with its line, and that text begins with "error" itself.
        say(&format!("{}{error}", if matches!(error, Error::File(_)) { "" } else { "error: " }));
        error.exit_code()
    }))
}

fn begin(options: &Options, library: &dyn Library) -> Result<u8, Error> {
    let printed = |text: &str| print(text).map(|()| 0).map_err(Error::io("cannot write to the standard output"));
    if let Some(command) = &options.command {
        return Ok(ask::run(command).map(|()| 0)?);
    }
    if options.list {
        return printed(&listing());
    }
    let mut plans = options.plans(library)?;
    if options.check {
        return printed(&plans.iter().map(|plan| format!("valid: {plan}\n")).collect::<String>());
    }
    let tell = |text: &str| {
        if !options.quiet {
            say(text)
        }
    };
    let needed = format!("there is too little memory: {} MiB are needed at the start; see `ulimit -v`", MEMORY >> 20);
    Vec::<u8>::new().try_reserve_exact(MEMORY).map_err(|_| Error::User(needed))?;
    let signals = Signals::open(&[])?;
    // Threads are started before one gets a priority, which they would inherit.
    let printer = Printer::open(plans.len()).map_err(Error::io("cannot start a thread"))?;
    if plans[0].wire.is_some() {
        let wires: Vec<_> =
            plans.into_iter().map(|plan| wires::open(plan, options, &printer, open)).collect::<Result<_, _>>()?;
        let ready = format!("ready: {} wires; Ctrl-C ends the run", wires.len());
        tell(&wires.iter().fold(ready, |text, wire| format!("{text}\n  {}", wire.ready)));
        return Ok(conclude(wires::run(wires, &signals)?, printer, &signals, options));
    }
    let (emulator, desk, ready) = open(plans.remove(0), options, signals, printer.offers())?;
    tell(&format!("ready: {ready}"));
    let (finished, signals) = emulator.run(desk);
    Ok(conclude(vec![finished], printer, &signals, options))
}

/// Opens the emulator of a wire; returns a line that says what it does as well.
fn open(
    plan: Plan,
    options: &Options,
    signals: Signals,
    printer: Offers,
) -> Result<(Emulator, Desk<Emulator>, String), Error> {
    let [left, right] = plan.file.ends.each_ref().map(|end| Namespace::open(end.netns.as_deref()));
    let namespaces = [left?, right?];
    let server = server(&plan, options)?;
    let socket = server.as_ref().map(|server| format!("; control socket {}", server.path().display()));
    let end = if plan.wire.is_some() { "" } else { "; Ctrl-C ends the run" };
    let ready = format!("{plan}{end}{}", socket.unwrap_or_default());
    let (emulator, desk) = Emulator::open(plan, options, &namespaces, signals, server, printer)?;
    Ok((emulator, desk, ready))
}

/// Opens the control socket of a wire. One that was asked for must be there; without one by default a run goes on.
fn server(plan: &Plan, options: &Options) -> Result<Option<Server>, Error> {
    let wanted = |result: Result<Server, server::Error>| result.map(Some).map_err(|e| Ask::User(e.to_string()).into());
    if let Some(path) = plan.socket.as_ref().or(options.socket.as_ref()) {
        return wanted(Server::open(path));
    }
    let directory = place::directory();
    let name = |run: &str| plan.wire.as_ref().map_or_else(|| run.to_owned(), |wire| format!("{run}-{wire}"));
    if let Some(run) = &options.name {
        let no_directory = "--name needs the directory of XDG_RUNTIME_DIR, which is not set; give --socket";
        let directory = directory.ok_or_else(|| Ask::User(no_directory.into()))?;
        return wanted(Server::open(&place::socket(&directory, &name(run))));
    }
    let Some(directory) = directory else { return Ok(None) };
    let open = |name: &str| Server::open(&place::socket(&directory, name));
    let default = name(DEFAULT_NAME);
    let opened = match open(&default) {
        Err(server::Error::Taken(_)) => open(&format!("{default}-{}", std::process::id())),
        opened => opened,
    };
    if let (Err(error), false) = (&opened, options.quiet) {
        say(&format!("without a control socket: {error}"));
    }
    Ok(opened.ok())
}

/// Prints the report or those of all wires, then everything else; returns the exit code.
fn conclude(finished: Vec<Finished>, printer: Printer, signals: &Signals, options: &Options) -> u8 {
    let (mut reports, mut failures, mut files) = (Vec::new(), Vec::new(), Vec::new());
    for one in finished {
        let wire = one.report.wire.as_ref().map(|wire| format!("wire {wire}: ")).unwrap_or_default();
        failures.extend(one.failure.map(|failure| wire + &failure));
        files.extend(one.files);
        reports.push(one.report);
    }
    let text = match &reports[..] {
        [only] if only.wire.is_none() => only.text(options.json),
        all => Report::text_of_all(all, options.json),
    };
    let text = text.unwrap_or_else(|error| error.to_string());
    let begin = Instant::now();
    let printed = printer.finish(text.clone(), || begin.elapsed() > PATIENCE && is_asked_to_end(signals));
    let mut complaints = Vec::new();
    match printed {
        Ok(()) if stdout_is_nowhere() => {
            let _ = std::io::stderr().write_all(text.as_bytes());
        }
        Ok(()) => {}
        Err(error) => {
            rescue(&text, &error, options);
            complaints.push(format!("cannot write the report to the standard output: {error}"));
        }
    }
    complaints.extend(failures);
    for file in files {
        while !file.wait(Duration::from_millis(100)) && !is_asked_to_end(signals) {}
        complaints.extend(file.complaint());
    }
    complaints.iter().for_each(|complaint| say(&format!("error: {complaint}")));
    u8::from(!complaints.is_empty())
}

fn is_asked_to_end(signals: &Signals) -> bool {
    std::iter::from_fn(|| signals.next()).any(|request| matches!(request, Request::End(_)))
}

/// Puts a report that the standard output did not take on the standard error, or else into a file.
fn rescue(text: &str, error: &std::io::Error, options: &Options) {
    let heading = format!("the standard output did not take the report ({error}); here it is:\n");
    if std::io::stderr().write_all((heading + text).as_bytes()).is_ok() {
        return;
    }
    let name = options.name.as_deref().unwrap_or(DEFAULT_NAME);
    let file = format!("{name}-{}.report", std::process::id());
    let directories = [place::directory(), Some(std::env::temp_dir())];
    let _ = directories.into_iter().flatten().any(|directory| std::fs::write(directory.join(&file), text).is_ok());
}
