//! `status`, `top`, `set` and `rollback`: asks a gateway that runs, and prints its answer.

use crate::cli::Verb;
use crate::error::Error;
use crate::file::Kind;
use crate::hosts::hosts;
use crate::kernel;
use penstock_appliance::ask::{self, changed, converse};
use penstock_appliance::cli::{Applied, Ask};
use penstock_appliance::socket::message::Request;
use serde_json::Value;
use std::fmt::Write as _;

/// The beginning of the names of gateways that were given none.
pub const DEFAULT_NAME: &str = "gateway";

/// The names of the two directions.
const DIRECTIONS: [&str; 2] = ["download", "upload"];
/// Rows of the table of a status that only an emulated wire has: its delay and its losses.
const OF_A_WIRE: [&str; 4] = ["/delay_ms", "/loss", "/lost", "/in_flight"];

/// Asks what a verb asks, and prints the answer. Verbs that ask nothing do nothing.
///
/// # Errors
/// Returns why there is no answer, or why it cannot be printed.
pub fn run(verb: &Verb) -> Result<(), Error> {
    let (which, request, show): (&Ask, _, fn(&Value) -> String) = match verb {
        Verb::Status(ask) => (ask, Request::Status, status),
        Verb::Top(top) => (&top.ask, top.request(), |answer| ask::top(answer, &DIRECTIONS)),
        Verb::Set(change) => (&change.ask, change.request()?, changed),
        Verb::Apply(applied) => (&applied.ask, apply(applied)?, changed),
        Verb::Rollback(ask) => (ask, Request::Rollback, changed),
        _ => return Ok(()),
    };
    let path = ask::socket(which, DEFAULT_NAME, "penstock-gateway")?;
    Ok(converse(&path, &request, which.json, matches!(verb, Verb::Top(_)), show)?)
}

/// Reads a file, so that a mistake is told as by `check`, and makes the request of it.
fn apply(applied: &Applied) -> Result<Request, Error> {
    let path = &applied.file;
    let text = std::fs::read_to_string(path).map_err(|source| Error::NoFile { path: path.clone(), source })?;
    let name = path.to_string_lossy().into_owned();
    Kind::parse(&text, &name).map_err(Box::new)?;
    Ok(applied.request(text)?)
}

/// Returns the status as a table.
pub fn status(answer: &Value) -> String {
    let mut text = match answer["datapath"].as_str() {
        Some("kernel") => kernel::report::text(answer, &DIRECTIONS),
        _ => in_this_process(answer),
    };
    if let Some(lapse) = answer["lapse"].as_object() {
        let seconds = lapse["in_s"].as_f64().unwrap_or_default();
        let _ = writeln!(text, "the former values return in {seconds:.0} s");
    }
    for event in answer["events"].as_array().into_iter().flatten() {
        let (at, what) = (event["at_s"].as_f64().unwrap_or_default(), event["what"].as_str().unwrap_or_default());
        let _ = writeln!(text, "after {at:.1} s: {what}");
    }
    for mark in answer["marks"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let _ = writeln!(text, "WRONG: {mark}");
    }
    text
}

/// What only the data path of this process tells.
fn in_this_process(answer: &Value) -> String {
    let rows: Vec<_> = ask::ROWS.into_iter().filter(|(_, pointer)| !OF_A_WIRE.contains(pointer)).collect();
    let mut text = ask::table(answer, &DIRECTIONS, &rows);
    let number = |pointer: &str| answer.pointer(pointer).and_then(Value::as_u64).unwrap_or_default();
    let _ = writeln!(text, "state: {}", answer["state"].as_str().unwrap_or_default());
    let _ = writeln!(
        text,
        "past the shaper: {} packets while open ({} times), at least {} because the queue was full",
        number("/past/opened/packets"),
        number("/past/times"),
        number("/past/overflow_at_least")
    );
    let _ = writeln!(
        text,
        "connections: {} of {}; not governed: {} packets that are no TCP or whose start was not seen, {} with a signature",
        number("/flows/entries"),
        number("/flows/capacity"),
        number("/unclassified/not_from_syn"),
        number("/unclassified/signed")
    );
    text += &link(&answer["link"]);
    text += &calls(&answer["calls"]);
    text += &callers(&answer["callers"]);
    text += &scone(&answer["scone"]);
    text += &hosts(answer);
    text += &subscribers(answer);
    text
}

/// Returns how calls would sound; empty if there are none.
fn calls(calls: &Value) -> String {
    let mut text = String::new();
    for (call, way) in
        calls.as_array().into_iter().flatten().zip(["download", "upload"]).filter(|(call, _)| call.is_object())
    {
        let number = |key: &str| call[key].as_f64().unwrap_or_default();
        let gone = 100.0 * (number("lost") + number("late"));
        let (mos, delay) = (number("mos_estimate"), number("delay_ms"));
        let _ =
            writeln!(text, "calls, {way}: MOS {mos:.1} by estimate, {delay:.0} ms to the ear, {gone:.1}% lost or late");
    }
    text
}

/// Returns how calls of subscribers would sound, the worst twenty; empty if there are none.
fn callers(callers: &Value) -> String {
    let mut text = String::new();
    for one in callers.as_array().into_iter().flatten().take(20) {
        let mos =
            |way: &str| one[way]["mos_estimate"].as_f64().map_or_else(|| "-".to_owned(), |mos| format!("{mos:.1}"));
        let name = one["name"].as_str().unwrap_or("all others");
        let _ = writeln!(text, "  {name:<20} MOS by estimate: down {}, up {}", mos("download"), mos("upload"));
    }
    text
}

/// Returns what flows of QUIC were told; empty if that is switched off.
fn scone(advice: &Value) -> String {
    let mut text = String::new();
    for (one, way) in advice.as_array().into_iter().flatten().zip(["download", "upload"]) {
        let Value::Object(one) = one else { continue };
        let number = |key: &str| one.get(key).and_then(Value::as_u64).unwrap_or_default();
        let (seen, lowered, flows) = (number("seen"), number("lowered"), number("flows"));
        let _ = writeln!(text, "SCONE, {way}: {seen} packets seen, {lowered} lowered; {flows} flows know their part");
    }
    text
}

/// Returns what the subscribers of a tree have, the first twenty; empty if there is no tree.
fn subscribers(answer: &Value) -> String {
    let Some(all) = answer["subscribers"].as_array() else { return String::new() };
    let mut text = format!("subscribers: {}\n", all.len().saturating_sub(1));
    for one in all.iter().take(20) {
        let way = |way: &str| {
            let (sent, waiting) = (&one[way]["sent"]["bytes"], &one[way]["waiting"]["packets"]);
            format!("{sent} bytes sent, {} packets dropped, {waiting} waiting", one[way]["dropped"])
        };
        let name = one["name"].as_str().unwrap_or("all others");
        let _ = writeln!(text, "  {name:<20} down: {}; up: {}", way("forward"), way("reverse"));
    }
    text
}

/// Returns what the status tells of the link, in a line or two.
fn link(link: &Value) -> String {
    let mut text = String::new();
    let word = |value: &Value| value.as_str().unwrap_or_default().replace('_', " ");
    if link["source"]["from"].as_str().is_some_and(|from| from != "file") {
        text += &format!("rates come from: {} ({})\n", word(&link["source"]["from"]), word(&link["source"]["state"]));
    }
    if let Some([down, up]) = link["estimate_bps"].as_array().map(Vec::as_slice) {
        let mbps = |value: &Value| value.as_f64().unwrap_or_default() / 1e6;
        text += &format!("estimated: {:.2} Mbit/s down, {:.2} Mbit/s up\n", mbps(down), mbps(up));
    }
    if let (Some(wan), Some(least)) = (link["wan_ms"].as_f64(), link["wan_least_ms"].as_f64()) {
        text += &format!(
            "round trip beyond the WAN: {wan:.1} ms, at least {least:.1} ms ({} connections)\n",
            link["flows"]
        );
    }
    link["remarks"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .for_each(|one| text += &format!("{one}\n"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_status_shows_what_is_wrong() {
        let text = status(&json!({
            "elapsed_s": 2.0, "state": "open", "marks": ["the interface w0 is down"], "forward": {"aqm": "pink"},
            "events": [{"at_s": 1.0, "what": "this process hung"}], "past": {"opened": {"packets": 7}, "times": 1},
            "link": {"source": {"from": "estimate", "state": "good"}, "estimate_bps": [9_500_000, 1_000_000]},
            "lapse": {"in_s": 59.6, "waits_for_confirmation": true},
        }));
        for expected in [
            "pink",
            "state: open",
            "7 packets",
            "WRONG: the interface w0",
            "after 1.0 s: this",
            "in 60 s",
            "estimated: 9.50",
        ] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
    }

    #[test]
    fn who_exceeds_its_budget_is_seen() {
        let count = |packets: u64| json!({"packets": packets, "bytes": packets * 1500});
        let node = json!({"node": 7, "address": "10.0.0.1", "budget_bps": 2_000_000, "used_bps": 1_990_000,
            "arrived": count(9), "policed": count(4)});
        let text = hosts(&json!({"c2ml": {}, "enforcement": {"rest_bps": 400_000, "nodes": [node],
            "strangers": {"policed": count(2)}}}));
        assert!(text.contains("node 7: uses 1.990 of 2.000 Mbit/s; refused: 4 packets, 6000 bytes\n"), "{text}");
        assert!(text.contains("share 0.400 Mbit/s; refused: 2 packets, 3000 bytes\n"), "{text}");
        assert!(!hosts(&json!({"c2ml": {}})).contains("enforced"));
        assert!(hosts(&json!({"c2ml": {"serves": false}})).contains("standby"));
    }

    #[test]
    fn a_temporary_change_says_when_it_goes() {
        let text = changed(&json!({"set": {"rate": "5Mbit/s"}, "confirm": "60s"}));
        assert_eq!(text, "rate=5Mbit/s\nreturns unless `set --keep` comes within 60s\n");
    }

    /// What only this process sees is told in the order of the parts, in units for people; what is not there is not told.
    #[test]
    fn a_status_tells_each_part_that_is_there() {
        let count = |bytes: u64| json!({"sent": {"bytes": bytes}, "waiting": {"packets": 1}, "dropped": bytes + 1});
        let answer = json!({
            "state": "shut", "past": {"opened": {"packets": 7}, "times": 2, "overflow_at_least": 5},
            "flows": {"entries": 11, "capacity": 64}, "unclassified": {"not_from_syn": 3, "signed": 4},
            "link": {"source": {"from": "estimate", "state": "not_yet"}, "estimate_bps": [9_500_000, 1_250_000],
                "wan_ms": 41.26, "wan_least_ms": 20.0, "flows": 3, "remarks": ["one", "two"]},
            "calls": [{"lost": 0.01, "late": 0.025, "mos_estimate": 4.06, "delay_ms": 42.4}, null],
            "callers": [{"name": "alice", "download": {"mos_estimate": 4.21}, "upload": {}}],
            "scone": [null, {"seen": 9, "lowered": 4, "flows": 2}],
            "subscribers": [{"name": "bob", "forward": count(10), "reverse": count(20)}, {"forward": count(30), "reverse": count(40)}],
        });
        let text = in_this_process(&answer);
        let (_, rest) = text.split_once("state: ").unwrap();
        let expected = "shut\n\
            past the shaper: 7 packets while open (2 times), at least 5 because the queue was full\n\
            connections: 11 of 64; not governed: 3 packets that are no TCP or whose start was not seen, 4 with a signature\n\
            rates come from: estimate (not yet)\n\
            estimated: 9.50 Mbit/s down, 1.25 Mbit/s up\n\
            round trip beyond the WAN: 41.3 ms, at least 20.0 ms (3 connections)\n\
            one\n\
            two\n\
            calls, download: MOS 4.1 by estimate, 42 ms to the ear, 3.5% lost or late\n\
            \x20 alice                MOS by estimate: down 4.2, up -\n\
            SCONE, upload: 9 packets seen, 4 lowered; 2 flows know their part\n\
            subscribers: 1\n\
            \x20 bob                  down: 10 bytes sent, 11 packets dropped, 1 waiting; up: 20 bytes sent, 21 packets dropped, \
            1 waiting\n\
            \x20 all others           down: 30 bytes sent, 31 packets dropped, 1 waiting; up: 40 bytes sent, 41 packets dropped, \
            1 waiting\n";
        assert_eq!(rest, expected);
        let none = in_this_process(&json!({"link": {"source": {"from": "file", "state": "good"}}}));
        assert!(none.ends_with("0 with a signature\n"), "{none}");
        for of_a_wire in ["delay, ms", "loss", "lost on the wire", "in flight"] {
            assert!(!text.contains(of_a_wire), "{text}");
        }
        assert!(text.contains("dropped on arrival") && text.contains("download"), "{text}");
    }

    #[test]
    fn a_status_shows_no_more_than_twenty_subscribers() {
        let all: Vec<Value> = (0..30).map(|n| json!({"name": format!("s{n}")})).collect();
        let text = subscribers(&json!({"subscribers": all}));
        assert!(text.starts_with("subscribers: 29\n") && text.lines().count() == 21, "{text}");
        assert_eq!(callers(&json!(all)).lines().count(), 20);
    }

    /// The kernel's data path has no classifier and no calls.
    #[test]
    fn the_kernel_tells_nothing_of_a_shaper() {
        let text = status(&json!({"datapath": "kernel", "marks": ["x"]}));
        assert!(!text.contains("past the shaper") && text.ends_with("WRONG: x\n"), "{text}");
        assert!(status(&json!({"datapath": "process"})).contains("past the shaper"));
    }

    #[test]
    fn a_change_that_changes_nothing_says_so() {
        assert_eq!(changed(&json!({"set": {}})), "nothing differs\n");
        assert_eq!(changed(&json!({"set": {"rate": "1Mbit/s"}, "for": "5s"})), "rate=1Mbit/s\nreturns after 5s\n");
    }
}
