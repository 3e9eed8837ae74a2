//! A bottleneck between two network namespaces, with any queue discipline of Penstock before it.

use clap::Parser;
use penstock_net::cli::{Options, listing};
use penstock_net::emulator::Emulator;
use penstock_net::error::Error;
use penstock_net::netns::Namespace;
use std::io::Write as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(text) => {
            // If the reader of the output has gone, nobody can be told of the error.
            let _ = std::io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(error) => {
            // A mistake in a file is shown with its line, and that text begins with "error" itself.
            let heading = if matches!(error, Error::File(_)) { "" } else { "error: " };
            let _ = writeln!(std::io::stderr(), "{heading}{error}");
            ExitCode::from(error.exit_code())
        }
    }
}

/// Runs the command; returns the text to print at the end.
fn run(options: &Options) -> Result<String, Error> {
    if options.list {
        return Ok(listing());
    }
    let plan = options.plan()?;
    if options.check {
        return Ok(format!("{plan}\n").replacen("ready", "right", 1));
    }
    let [left, right] = plan.netns.each_ref().map(|name| Namespace::open(name.as_deref()));
    let namespaces = [left?, right?];
    let ready = format!("{plan}; Ctrl-C ends the run\n");
    let emulator = Emulator::open(plan, &namespaces)?;
    if !options.quiet {
        let _ = std::io::stderr().write_all(ready.as_bytes());
    }
    let report = emulator.run()?;
    if options.json {
        return serde_json::to_string(&report)
            .map(|json| json + "\n")
            .map_err(|e| Error::Io { what: "cannot write the report", source: e.into() });
    }
    Ok(report.to_string())
}
