//! `status`, `top` and `set` of an appliance: asks a run that goes on, and prints its answer.

use crate::cli::Ask;
use crate::error::Error;
use crate::output::print;
use crate::socket::client;
use crate::socket::message::Request;
use crate::socket::place;
use serde_json::Value;
use std::fmt::Write as _;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often `top` shows a new picture on a terminal.
const REFRESH: Duration = Duration::from_secs(1);

/// Asks the appliance at `path` and prints what `show` makes of its answer. A question that `refreshes` is asked again
/// every second if the standard output is a terminal.
pub fn converse(
    path: &Path,
    request: &Request,
    json: bool,
    refreshes: bool,
    show: impl Fn(&Value) -> String,
) -> Result<(), Error> {
    let refreshes = refreshes && !json && io::stdout().is_terminal();
    loop {
        let answer = client::ask(path, request).map_err(|e| Error::User(e.to_string()))?;
        let text = if json { format!("{answer}\n") } else { show(&answer) };
        // Clears the screen and begins at its top.
        let text = if refreshes { format!("\x1b[H\x1b[2J{text}") } else { text };
        print(&text).map_err(Error::io("cannot write the answer to the standard output"))?;
        if !refreshes {
            return Ok(());
        }
        std::thread::sleep(REFRESH);
    }
}

/// Returns the socket of the run that is meant; without a name, the only one of this `program` that runs, whose names
/// begin with `default`. Fails if none runs, or several do.
pub fn socket(ask: &Ask, default: &str, program: &str) -> Result<PathBuf, Error> {
    if let Some(path) = &ask.socket {
        return Ok(path.clone());
    }
    let directory = place::directory().ok_or_else(|| {
        Error::User("there is no directory of control sockets: XDG_RUNTIME_DIR is not set; give --socket".into())
    })?;
    if let Some(name) = &ask.name {
        return Ok(place::socket(&directory, name));
    }
    match place::listening(&directory, default).as_slice() {
        [] => Err(Error::User(format!(
            "no {program} runs, or it has another name or socket: give --name or --socket (looked in {})",
            directory.display()
        ))),
        [name] => Ok(place::socket(&directory, name)),
        names => Err(Error::User(format!("several runs go on; choose one with --name: {}", names.join(", ")))),
    }
}

/// The rows of the table of a status: the name of each, and where its value is in the answer.
pub const ROWS: [(&str, &str); 20] = [
    ("discipline", "/aqm"),
    ("rate, bit/s", "/rate_bps"),
    ("delay, ms", "/delay_ms"),
    ("loss", "/loss"),
    ("limit", "/limit"),
    ("arrived packets", "/arrived/packets"),
    ("delivered packets", "/delivered/packets"),
    ("delivered bytes", "/delivered/bytes"),
    ("dropped on arrival", "/dropped/early"),
    ("dropped, no room", "/dropped/overflow"),
    ("dropped from queue", "/dropped/dequeue"),
    ("marked CE", "/marked"),
    ("lost on the wire", "/lost"),
    ("waiting packets", "/waiting/packets"),
    ("in flight", "/in_flight"),
    ("not read in time", "/unread"),
    ("queueing p50, ms", "/sojourn_ms/p50"),
    ("queueing p90, ms", "/sojourn_ms/p90"),
    ("queueing p99, ms", "/sojourn_ms/p99"),
    ("lateness p99, us", "/lateness_us/p99"),
];

/// Returns a table of what an answer tells of both directions: rows with a name and the place of the value.
pub fn table(answer: &Value, headings: &[&str; 2], rows: &[(&str, &str)]) -> String {
    let elapsed = answer["elapsed_s"].as_f64().unwrap_or_default();
    let mut text = format!("{:<22}{:>24}{:>24}\n", format!("{elapsed:.3} s"), headings[0], headings[1]);
    for (name, pointer) in rows {
        let [forward, reverse] =
            ["forward", "reverse"].map(|way| plain(answer[way].pointer(pointer).filter(|value| !value.is_null())));
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "{name:<22}{forward:>24}{reverse:>24}");
    }
    text
}

fn plain(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) if number.is_f64() => format!("{:.3}", number.as_f64().unwrap_or_default()),
        Some(value) => value.to_string(),
        None => "-".into(),
    }
}

/// Returns the table of who carries most; `headings` name the two directions.
pub fn top(answer: &Value, headings: &[&str; 2]) -> String {
    let mut text = format!("{:>13} {:>13} {:>14}  {:<9} name\n", headings[0], headings[1], "bytes", "kind");
    for entry in answer["entries"].as_array().into_iter().flatten() {
        let of = |key: &str, way: usize| entry[key][way].as_u64().unwrap_or_default();
        let bytes = of("bytes", 0) + of("bytes", 1);
        let [there, back] = [0, 1].map(|way| rate(of("rate_bps", way)));
        let (kind, name) = (entry["kind"].as_str().unwrap_or_default(), entry["name"].as_str().unwrap_or_default());
        let (provisioned, budget) = (provisioned(entry), budget(entry));
        let _ = writeln!(text, "{there:>13} {back:>13} {bytes:>14}  {kind:<9} {name}{provisioned}{budget}");
    }
    let others: u64 = (0..2).filter_map(|way| answer["others_bytes"][way].as_u64()).sum();
    let _ = writeln!(text, "{} known; {others} bytes of others", answer["known"]);
    text
}

/// Tells of a host that it is in no list of subscribers, if there are lists.
fn provisioned(entry: &Value) -> &'static str {
    if entry["provisioned"] == false { " (not provisioned)" } else { "" }
}

/// Returns the budget of a node and what was refused, if budgets are enforced.
fn budget(entry: &Value) -> String {
    let Some(refused) = entry.pointer("/policed/packets") else { return String::new() };
    let budget =
        entry["budget_bps"].as_u64().map_or_else(|| "no session".to_owned(), |bps| format!("budget {}", rate(bps)));
    format!(" ({budget}, {refused} packets refused)")
}

fn rate(bps: u64) -> String {
    match bps {
        0..1_000_000 => format!("{:.1} kbit/s", bps as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2} Mbit/s", bps as f64 / 1e6),
        _ => format!("{:.3} Gbit/s", bps as f64 / 1e9),
    }
}

/// Returns what was set, one line each.
pub fn set(answer: &Value) -> String {
    let mut text = String::new();
    for (key, value) in answer["set"].as_object().into_iter().flatten() {
        let _ = writeln!(text, "{key}={}", plain(Some(value)));
    }
    text
}

/// Returns what was changed, and until when.
pub fn changed(answer: &Value) -> String {
    let mut text = set(answer);
    if answer["set"].as_object().is_some_and(serde_json::Map::is_empty) {
        text += "nothing differs\n";
    }
    for (key, meaning) in [("for", "returns after"), ("confirm", "returns unless `set --keep` comes within")] {
        if let Some(span) = answer[key].as_str() {
            // Writing to a `String` cannot fail.
            let _ = writeln!(text, "{meaning} {span}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn answers_become_tables() {
        let entry =
            json!({"name": "a > b", "kind": "tcp", "rate_bps": [8_000_000, 500], "bytes": [7, 1], "packets": [1, 1]});
        let text = top(&json!({"entries": [entry], "known": 1, "others_bytes": [5, 6]}), &["to right", "to left"]);
        assert!(text.contains("8.00 Mbit/s    0.5 kbit/s              8  tcp       a > b"), "{text}");
        assert!(text.ends_with("1 known; 11 bytes of others\n"), "{text}");
        for (entry, shown) in [
            (json!({"budget_bps": 2_000_000, "policed": {"packets": 3}}), " (budget 2.00 Mbit/s, 3 packets refused)"),
            (json!({"budget_bps": null, "policed": {"packets": 0}}), " (no session, 0 packets refused)"),
            (json!({"provisioned": false}), " (not provisioned)"),
            (json!({"provisioned": true}), ""),
            (json!({}), ""),
        ] {
            assert_eq!(format!("{}{}", provisioned(&entry), budget(&entry)), shown);
        }
        assert_eq!(set(&json!({"set": {"rate": "5Mbit/s"}})), "rate=5Mbit/s\n");
    }

    #[test]
    fn rates_have_the_unit_in_which_they_are_one_or_more() {
        let shown = [0, 999_999, 1_000_000, 999_999_999, 1_000_000_000].map(rate);
        assert_eq!(shown, ["0.0 kbit/s", "1000.0 kbit/s", "1.00 Mbit/s", "1000.00 Mbit/s", "1.000 Gbit/s"]);
    }
}
