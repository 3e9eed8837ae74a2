//! `status`, `top`, `set` and `rollback`: asks a gateway that runs, and prints its answer.

use crate::cli::Verb;
use crate::error::{Error, text_of};
use crate::file::Kind;
use crate::hosts::{hosts, list, word};
use penstock_appliance::ask::{self, ROWS, changed, converse};
use penstock_appliance::cli::{Applied, Ask};
use penstock_appliance::socket::message::Request;
use serde_json::Value;

/// The beginning of the names of gateways that were given none.
pub const DEFAULT_NAME: &str = "gateway";

const DIRECTIONS: [&str; 2] = ["download", "upload"];
/// Rows of the table of a status that only an emulated wire has: its delay and its losses.
const OF_A_WIRE: [&str; 4] = ["/delay_ms", "/loss", "/lost", "/in_flight"];
/// Rows that both data paths have, and those that only the kernel's has.
const OF_BOTH: [&str; 4] = ["/aqm", "/rate_bps", "/limit", "/arrived/packets"];
const OF_THE_KERNEL: [(&str, &str); 6] = [
    ("active flows", "/pink/active"),
    ("use less than a share", "/pink/lacking"),
    ("idle flows", "/pink/asleep"),
    ("ACKs", "/pink/acks"),
    ("windows written", "/pink/rewritten"),
    ("below one segment", "/pink/below_one_segment"),
];
/// Most subscribers that are listed.
const MOST: usize = 20;

/// Asks what a verb asks, and prints the answer. Verbs that ask nothing do nothing.
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
    let text = text_of(&applied.file)?;
    Kind::parse(&text, &applied.file.to_string_lossy()).map_err(Box::new)?;
    Ok(applied.request(text)?)
}

/// Returns the number at a place of an answer; 0 if there is none.
fn number(answer: &Value, pointer: &str) -> u64 {
    answer.pointer(pointer).and_then(Value::as_u64).unwrap_or_default()
}

pub fn status(answer: &Value) -> String {
    let mut text = match answer["datapath"].as_str() {
        Some("kernel") => in_the_kernel(answer),
        _ => in_this_process(answer),
    };
    text += &account(&answer["account"]);
    if let Some(seconds) = answer["lapse"]["in_s"].as_f64() {
        text += &format!("the former values return in {seconds:.0} s\n");
    }
    for event in list(&answer["events"]) {
        text += &format!("after {:.1} s: {}\n", event["at_s"].as_f64().unwrap_or_default(), word(&event["what"]));
    }
    text.extend(list(&answer["marks"]).map(|mark| format!("WRONG: {}\n", word(mark))));
    text
}

/// Returns what passed through the gateway and beside it; empty if nobody counts that.
fn account(account: &Value) -> String {
    let told = |way: &str| {
        let [wan, through, beside, refused] =
            ["wan", "through", "beside", "refused"].map(|key| number(account, &format!("/{way}/{key}_bytes")));
        format!("bytes, {way}: {wan} at the interface, {through} through, {beside} beside, {refused} refused\n")
    };
    let share = account.pointer("/last_minute/share").and_then(Value::as_f64);
    let recent = share.map(|share| format!("beside the shaper in the last minute: {:.1} %\n", 100.0 * share));
    recent.map_or(String::new(), |recent| DIRECTIONS.map(told).concat() + &recent)
}

fn in_this_process(answer: &Value) -> String {
    let rows: Vec<_> = ROWS.into_iter().filter(|(_, pointer)| !OF_A_WIRE.contains(pointer)).collect();
    let past = ["/past/opened/packets", "/past/times", "/past/overflow_at_least"];
    let flows = ["/flows/entries", "/flows/capacity", "/unclassified/not_from_syn", "/unclassified/signed"];
    let ([opened, times, full], [entries, capacity, late, signed]) =
        (past.map(|place| number(answer, place)), flows.map(|place| number(answer, place)));
    let text = format!(
        "state: {}\n\
         past the shaper: {opened} packets while open ({times} times), at least {full} because the queue was full\n\
         connections: {entries} of {capacity}; not governed: {late} packets that are no TCP or whose start was not seen, \
         {signed} with a signature\n",
        word(&answer["state"])
    );
    let parts = [link(&answer["link"]), calls(&answer["calls"]), callers(&answer["callers"]), scone(&answer["scone"])];
    ask::table(answer, &DIRECTIONS, &rows) + &text + &parts.concat() + &hosts(answer) + &subscribers(answer)
}

fn in_the_kernel(answer: &Value) -> String {
    let rows: Vec<_> = ROWS.into_iter().filter(|(_, pointer)| OF_BOTH.contains(pointer)).chain(OF_THE_KERNEL).collect();
    let places = ["/table/lines", "/capacity", "/table/not_tcp", "/table/unknown", "/table/signed", "/table/stale"];
    let [lines, capacity, other, late, signed, stale] = places.map(|place| number(answer, place));
    let text = format!(
        "state: {}, in the kernel ({})\n\
         connections: {lines} of {capacity}; untouched: {other} packets that are no TCP, {late} of connections whose start \
         was not seen, {signed} with a signature, {stale} while this process hung\n",
        word(&answer["state"]),
        word(&answer["attached"])
    );
    ask::table(answer, &DIRECTIONS, &rows) + &text + &hosts(answer)
}

/// Returns how calls would sound; empty if there are none.
fn calls(calls: &Value) -> String {
    let told = |(call, way): (&Value, &str)| {
        let [mos, delay, lost, late] =
            ["mos_estimate", "delay_ms", "lost", "late"].map(|key| call[key].as_f64().unwrap_or_default());
        let gone = 100.0 * (lost + late);
        format!("calls, {way}: MOS {mos:.1} by estimate, {delay:.0} ms to the ear, {gone:.1}% lost or late\n")
    };
    list(calls).zip(DIRECTIONS).filter(|(call, _)| call.is_object()).map(told).collect()
}

/// Returns how calls of subscribers would sound, the worst first; empty if there are none.
fn callers(callers: &Value) -> String {
    let told = |one: &Value| {
        let [down, up] = DIRECTIONS
            .map(|way| one[way]["mos_estimate"].as_f64().map_or_else(|| "-".to_owned(), |mos| format!("{mos:.1}")));
        format!("  {:<20} MOS by estimate: down {down}, up {up}\n", name(one))
    };
    list(callers).take(MOST).map(told).collect()
}

fn name(one: &Value) -> &str {
    one["name"].as_str().unwrap_or("all others")
}

/// Returns what flows of QUIC were told; empty if that is switched off.
fn scone(advice: &Value) -> String {
    let told = |(one, way): (&Value, &str)| {
        let [seen, lowered, flows] = ["/seen", "/lowered", "/flows"].map(|place| number(one, place));
        format!("SCONE, {way}: {seen} packets seen, {lowered} lowered; {flows} flows know their part\n")
    };
    list(advice).zip(DIRECTIONS).filter(|(one, _)| one.is_object()).map(told).collect()
}

/// Returns what the subscribers of a tree have; empty if there is no tree.
fn subscribers(answer: &Value) -> String {
    let Some(all) = answer["subscribers"].as_array() else { return String::new() };
    let told = |one: &Value| {
        let [down, up] = ["forward", "reverse"].map(|way| {
            let (sent, waiting) = (&one[way]["sent"]["bytes"], &one[way]["waiting"]["packets"]);
            format!("{sent} bytes sent, {} packets dropped, {waiting} waiting", one[way]["dropped"])
        });
        format!("  {:<20} down: {down}; up: {up}\n", name(one))
    };
    let others = all.len().saturating_sub(1);
    format!("subscribers: {others}\n") + &all.iter().take(MOST).map(told).collect::<String>()
}

/// Returns what the status tells of the link, in a line or two.
fn link(link: &Value) -> String {
    let mut text = String::new();
    let [from, state] = ["from", "state"].map(|key| word(&link["source"][key]).replace('_', " "));
    if !["", "file"].contains(&from.as_str()) {
        text += &format!("rates come from: {from} ({state})\n");
    }
    if let [Some(down), Some(up)] = [0usize, 1].map(|at| link["estimate_bps"][at].as_f64()) {
        text += &format!("estimated: {:.2} Mbit/s down, {:.2} Mbit/s up\n", down / 1e6, up / 1e6);
    }
    if let [Some(wan), Some(least)] = ["wan_ms", "wan_least_ms"].map(|key| link[key].as_f64()) {
        let flows = &link["flows"];
        text += &format!("round trip beyond the WAN: {wan:.1} ms, at least {least:.1} ms ({flows} connections)\n");
    }
    text.extend(list(&link["remarks"]).map(|remark| format!("{}\n", word(remark))));
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
            "lapse": {"in_s": 59.6, "waits_for_confirmation": true},
        }));
        assert!(text.contains("pink") && text.contains("state: open") && text.contains("7 packets"), "{text}");
        let end = "the former values return in 60 s\nafter 1.0 s: this process hung\nWRONG: the interface w0 is down\n";
        assert!(text.ends_with(end), "{text}");
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

    #[test]
    fn the_account_is_told_of_both_directions() {
        let way = |n: u64| json!({"wan_bytes": n, "through_bytes": n - 1, "beside_bytes": 1, "refused_bytes": 7});
        let answer = json!({"download": way(10), "upload": way(20), "last_minute": {"share": 0.125}});
        let expected = "bytes, download: 10 at the interface, 9 through, 1 beside, 7 refused\n\
            bytes, upload: 20 at the interface, 19 through, 1 beside, 7 refused\n\
            beside the shaper in the last minute: 12.5 %\n";
        assert_eq!((account(&answer).as_str(), account(&Value::Null).as_str()), (expected, ""));
    }

    /// The kernel's data path has no classifier and no calls.
    #[test]
    fn the_kernel_tells_nothing_of_a_shaper() {
        let table = json!({"lines": 3, "not_tcp": 4, "unknown": 5, "signed": 6, "stale": 7});
        let text = status(&json!({"datapath": "kernel", "state": "governing", "attached": "tcx", "capacity": 64,
            "table": table, "forward": {"pink": {"acks": 8}}, "marks": ["x"]}));
        let (rows, rest) = text.split_once("state: ").unwrap();
        let expected = "governing, in the kernel (tcx)\n\
            connections: 3 of 64; untouched: 4 packets that are no TCP, 5 of connections whose start was not seen, 6 with \
            a signature, 7 while this process hung\n\
            WRONG: x\n";
        assert_eq!(rest, expected);
        assert!(rows.contains("ACKs") && rows.contains(" 8 ") && !rows.contains("delivered"), "{rows}");
        assert!(status(&json!({"datapath": "process"})).contains("past the shaper"));
    }
}
