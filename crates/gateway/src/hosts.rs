//! Budgets of hosts in the text of a status: what each has, uses and was refused.

use serde_json::Value;
use std::fmt::Write as _;

/// Returns a rate in Mbit/s.
fn mbit(bps: &Value) -> String {
    bps.as_u64().map_or_else(|| "-".to_owned(), |bps| format!("{:.3}", bps as f64 / 1e6))
}

/// Returns who keeps to its budget and who does not; empty if no packet is seen.
fn enforcement(enforced: &Value) -> String {
    if enforced.is_null() {
        return String::new();
    }
    let refused = |one: &Value| format!("{} packets, {} bytes", one["policed"]["packets"], one["policed"]["bytes"]);
    let mut text = String::from(if enforced["enforces"] == false { "counted, not enforced:\n" } else { "enforced:\n" });
    for node in enforced["nodes"].as_array().into_iter().flatten() {
        let address = node["address"].as_str().unwrap_or_default();
        let (used, budget) = (mbit(&node["used_bps"]), mbit(&node["budget_bps"]));
        let number = &node["node"];
        let over = if node["over"] == true { " (more came)" } else { "" };
        let _ = writeln!(
            text,
            "  {address:<20} node {number}: uses {used} of {budget} Mbit/s{over}; refused: {}",
            refused(node)
        );
    }
    let (rest, strangers) = (mbit(&enforced["rest_bps"]), refused(&enforced["strangers"]));
    text + &format!("  hosts without a session share {rest} Mbit/s; refused: {strangers}\n")
}

/// Returns the budgets of hosts as a table; empty if there are none.
pub fn hosts(answer: &Value) -> String {
    let Some(c2ml) = answer.get("c2ml") else { return String::new() };
    let mut text = format!(
        "budgets: {} of {} Mbit/s among {} hosts; {} have enrolled\n",
        mbit(&c2ml["granted_bps"]),
        mbit(&c2ml["rate_bps"]),
        c2ml["holders"],
        c2ml["enrolled"]
    );
    if c2ml["serves"] == false {
        text += "  this is a standby: the gateway before it is there, and serves them\n";
    }
    if c2ml["floors_bps"].as_u64() > c2ml["rate_bps"].as_u64() {
        let _ = writeln!(
            text,
            "  floors of {} Mbit/s exceed that and are cut, the last class first",
            mbit(&c2ml["floors_bps"])
        );
    }
    for node in c2ml["nodes"].as_array().into_iter().flatten() {
        let _ = writeln!(
            text,
            "  {:<20} node {}, class {}, weight {}{}: {} Mbit/s, can use {}; round trip {:.0} ms",
            node["name"].as_str().unwrap_or_default(),
            node["node"],
            node["class"],
            node["weight"],
            node["floor_bps"]
                .as_u64()
                .filter(|floor| *floor > 0)
                .map_or_else(String::new, |_| { format!(", floor {}", mbit(&node["floor_bps"])) }),
            mbit(&node["budget_bps"]),
            node["claim_bps"].as_u64().map_or_else(|| "all".to_owned(), |_| mbit(&node["claim_bps"])),
            node["rtt_ms"].as_f64().unwrap_or_default()
        );
    }
    text += &enforcement(&answer["enforcement"]);
    let counters = [("refused", "refused of nodes"), ("sessions", "sessions"), ("messages", "messages")];
    for (key, name) in counters {
        let some = c2ml[key].as_object().into_iter().flatten().filter(|(_, count)| count.as_u64() > Some(0));
        let counts: Vec<String> = some.map(|(what, count)| format!("{what} {count}")).collect();
        if !counts.is_empty() {
            let _ = writeln!(text, "{name}: {}", counts.join(", "));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn budgets_are_told_with_floors_claims_and_what_was_refused() {
        let node = |floor: u64, claim: Value| {
            json!({"name": "n", "node": 3, "class": 1, "weight": 4, "floor_bps": floor, "budget_bps": 2_500_000, "claim_bps": claim,
                "rtt_ms": 12.6})
        };
        let c2ml = json!({"granted_bps": 5_000_000, "rate_bps": 8_000_000, "holders": 2, "enrolled": 9, "serves": true,
            "floors_bps": 8_000_001, "nodes": [node(500_000, json!(750_000)), node(0, Value::Null)],
            "refused": {"malformed": 0, "other_names": 2}, "sessions": {"begun": 3}, "messages": {"joined": 0}});
        let expected = "budgets: 5.000 of 8.000 Mbit/s among 2 hosts; 9 have enrolled\n\
            \x20 floors of 8.000 Mbit/s exceed that and are cut, the last class first\n\
            \x20 n                    node 3, class 1, weight 4, floor 0.500: 2.500 Mbit/s, can use 0.750; round trip 13 ms\n\
            \x20 n                    node 3, class 1, weight 4: 2.500 Mbit/s, can use all; round trip 13 ms\n\
            refused of nodes: other_names 2\n\
            sessions: begun 3\n";
        assert_eq!(hosts(&json!({"c2ml": c2ml})), expected);
        let fits = json!({"c2ml": {"rate_bps": 8_000_000, "floors_bps": 8_000_000, "holders": 0, "enrolled": 1}});
        assert_eq!(hosts(&fits), "budgets: - of 8.000 Mbit/s among 0 hosts; 1 have enrolled\n");
        assert_eq!(hosts(&json!({})), "");
    }

    #[test]
    fn who_sends_more_than_it_may_is_marked_and_counting_is_not_enforcing() {
        let node = |over: bool| json!({"node": 7, "address": "10.0.0.1", "used_bps": 1, "over": over});
        let text = enforcement(&json!({"enforces": false, "nodes": [node(true), node(false)]}));
        assert!(text.starts_with("counted, not enforced:\n"), "{text}");
        let marked: Vec<bool> = text.lines().map(|line| line.contains("Mbit/s (more came); refused")).collect();
        assert_eq!(marked, [false, true, false, false], "{text}");
        assert!(enforcement(&json!({"nodes": []})).starts_with("enforced:\n"));
        assert_eq!(enforcement(&Value::Null), "");
    }
}
