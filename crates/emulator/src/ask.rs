//! The verbs that ask an emulator that runs, and print its answer.

use crate::cli::Command;
use penstock_appliance::ask::{ROWS, changed, converse, socket, table, top};
use penstock_appliance::cli::Applied;
use penstock_appliance::error::Error;
use penstock_appliance::output::print;
use penstock_appliance::record::{self, Place};
use penstock_appliance::socket::message::Request;
use penstock_appliance::support::{self, Parts};
use serde_json::Value;
use std::fmt::Write as _;

/// The name of a run that was given none; if several run at once, the others have their process number at its end.
pub const DEFAULT_NAME: &str = "emulate";
const PROGRAM: &str = "penstock-emulate";
/// What `support` packs.
const PARTS: Parts<'_> = Parts {
    program: PROGRAM,
    default: DEFAULT_NAME,
    file: "emulate.toml",
    private: &["hosts", "subscribers"],
    private_status: &[],
    commands: &[("namespaces.txt", &["ip", "netns", "list"])],
    files: &[],
    log: None,
};

/// Asks what the command asks, and prints the answer.
pub fn run(command: &Command) -> Result<(), Error> {
    let printed = |text: String| print(&text).map_err(Error::io("cannot write to the standard output"));
    let (ask, request, show): (_, _, fn(&Value) -> String) = match command {
        Command::Status(ask) => (ask, Request::Status, status),
        Command::Top(asked) => (&asked.ask, asked.request(), |answer| top(answer, &["to right", "to left"])),
        Command::Set(change) => (&change.ask, change.request()?, changed),
        Command::Apply(applied) => (&applied.ask, apply(applied)?, changed),
        Command::Rollback(ask) => (ask, Request::Rollback, changed),
        Command::Record(record) => return printed(record::run(record, DEFAULT_NAME, PROGRAM, left)?),
        Command::Support(support) => return printed(support::run(support, &PARTS)?),
    };
    let path = socket(ask, DEFAULT_NAME, PROGRAM)?;
    converse(&path, &request, ask.json, matches!(command, Command::Top(_)), show)
}

/// Reads a file for the emulator that runs, which checks it.
fn apply(applied: &Applied) -> Result<Request, Error> {
    let text = std::fs::read_to_string(&applied.file);
    applied.request(text.map_err(|e| Error::User(format!("cannot read {}: {e}", applied.file.display())))?)
}

/// Returns the left interface of a run.
fn left(status: &Value) -> Option<Place> {
    serde_json::from_value(status["ends"][0].clone()).ok()
}

fn status(answer: &Value) -> String {
    let mut text = table(answer, &["left to right", "right to left"], &ROWS);
    let causes: Vec<&str> = answer["disturbed_by"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let _ = writeln!(text, "disturbed by: {}", if causes.is_empty() { "nothing".into() } else { causes.join(", ") });
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_status_is_a_table() {
        let text = status(
            &json!({"elapsed_s": 1.5, "forward": {"aqm": "codel", "loss": 0.25, "marked": 7}, "disturbed_by": ["unread"]}),
        );
        assert!(text.contains("codel") && text.contains("0.250") && text.contains("disturbed by: unread"), "{text}");
        let marked = text.lines().find(|line| line.starts_with("marked CE")).unwrap();
        assert!(marked.contains(" 7 "), "a number of packets is whole: {marked}");
    }
}
