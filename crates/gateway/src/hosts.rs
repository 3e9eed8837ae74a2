//! Budgets of hosts in the text of a status: what each has, uses and was refused.

use serde_json::Value;

/// Returns a rate in Mbit/s.
fn mbit(bps: &Value) -> String {
    bps.as_u64().map_or_else(|| "-".to_owned(), |bps| format!("{:.3}", bps as f64 / 1e6))
}

/// Returns the elements of an array; none if it is not there.
pub fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

pub fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns who keeps to its budget and who does not; empty if no packet is seen.
fn enforcement(enforced: &Value) -> String {
    if enforced.is_null() {
        return String::new();
    }
    let refused = |one: &Value| format!("{} packets, {} bytes", one["policed"]["packets"], one["policed"]["bytes"]);
    let node = |node: &Value| {
        let (used, budget, number) = (mbit(&node["used_bps"]), mbit(&node["budget_bps"]), &node["node"]);
        let over = if node["over"] == true { " (more came)" } else { "" };
        let (address, refused) = (word(&node["address"]), refused(node));
        format!("  {address:<20} node {number}: uses {used} of {budget} Mbit/s{over}; refused: {refused}\n")
    };
    let begin = if enforced["enforces"] == false { "counted, not enforced:\n" } else { "enforced:\n" };
    let (rest, strangers) = (mbit(&enforced["rest_bps"]), refused(&enforced["strangers"]));
    let nodes: String = list(&enforced["nodes"]).map(node).collect();
    format!("{begin}{nodes}  hosts without a session share {rest} Mbit/s; refused: {strangers}\n")
}

/// Returns the budgets of hosts as a table; empty if there are none.
pub fn hosts(answer: &Value) -> String {
    let Some(c2ml) = answer.get("c2ml") else { return String::new() };
    let [granted, rate, floors] = ["granted_bps", "rate_bps", "floors_bps"].map(|key| mbit(&c2ml[key]));
    let (holders, enrolled) = (&c2ml["holders"], &c2ml["enrolled"]);
    let mut text = format!("budgets: {granted} of {rate} Mbit/s among {holders} hosts; {enrolled} have enrolled\n");
    if c2ml["serves"] == false {
        text += "  this is a standby: the gateway before it is there, and serves them\n";
    }
    if c2ml["floors_bps"].as_u64() > c2ml["rate_bps"].as_u64() {
        text += &format!("  floors of {floors} Mbit/s exceed that and are cut, the last class first\n");
    }
    for node in list(&c2ml["nodes"]) {
        let [budget, claim, floor] = ["budget_bps", "claim_bps", "floor_bps"].map(|key| mbit(&node[key]));
        let floor = if node["floor_bps"].as_u64() > Some(0) { format!(", floor {floor}") } else { String::new() };
        let claim = if node["claim_bps"].is_u64() { &claim } else { "all" };
        let (name, number, class, weight) = (word(&node["name"]), &node["node"], &node["class"], &node["weight"]);
        let rtt = node["rtt_ms"].as_f64().map_or_else(|| "-".into(), |ms| format!("{ms:.0} ms"));
        text += &format!("  {name:<20} node {number}, class {class}, weight {weight}{floor}: ");
        text += &format!("{budget} Mbit/s, can use {claim}; round trip {rtt}\n");
    }
    text += &enforcement(&answer["enforcement"]);
    for (key, name) in [("refused", "refused of nodes"), ("sessions", "sessions"), ("messages", "messages")] {
        let some = c2ml[key].as_object().into_iter().flatten().filter(|(_, count)| count.as_u64() > Some(0));
        let counts: Vec<String> = some.map(|(what, count)| format!("{what} {count}")).collect();
        if !counts.is_empty() {
            text += &format!("{name}: {}\n", counts.join(", "));
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
                "rtt_ms": (floor > 0).then_some(12.6)})
        };
        let c2ml = json!({"granted_bps": 5_000_000, "rate_bps": 8_000_000, "holders": 2, "enrolled": 9, "serves": true,
            "floors_bps": 8_000_001, "nodes": [node(500_000, json!(750_000)), node(0, Value::Null)],
            "refused": {"malformed": 0, "other_names": 2}, "sessions": {"begun": 3}, "messages": {"joined": 0}});
        let expected = "budgets: 5.000 of 8.000 Mbit/s among 2 hosts; 9 have enrolled\n\
            \x20 floors of 8.000 Mbit/s exceed that and are cut, the last class first\n\
            \x20 n                    node 3, class 1, weight 4, floor 0.500: 2.500 Mbit/s, can use 0.750; round trip 13 ms\n\
            \x20 n                    node 3, class 1, weight 4: 2.500 Mbit/s, can use all; round trip -\n\
            refused of nodes: other_names 2\n\
            sessions: begun 3\n";
        assert_eq!(hosts(&json!({"c2ml": c2ml})), expected);
        let fits = json!({"c2ml": {"rate_bps": 8_000_000, "floors_bps": 8_000_000, "holders": 0, "enrolled": 1}});
        assert_eq!(hosts(&fits), "budgets: - of 8.000 Mbit/s among 0 hosts; 1 have enrolled\n");
        assert_eq!(hosts(&json!({})), "");
    }

    #[test]
    fn who_sends_more_than_it_may_is_marked_and_counting_is_not_enforcing() {
        let count = |packets: u64| json!({"packets": packets, "bytes": packets * 1500});
        let node = |over: bool| {
            json!({"node": 7, "address": "10.0.0.1", "budget_bps": 2_000_000, "used_bps": 1_990_000, "over": over,
                "policed": count(4)})
        };
        let told = |enforces: bool| {
            enforcement(&json!({"enforces": enforces, "rest_bps": 400_000, "nodes": [node(true), node(false)],
                "strangers": {"policed": count(2)}}))
        };
        let nodes = "\x20 10.0.0.1             node 7: uses 1.990 of 2.000 Mbit/s (more came); refused: 4 packets, 6000 bytes\n\
            \x20 10.0.0.1             node 7: uses 1.990 of 2.000 Mbit/s; refused: 4 packets, 6000 bytes\n\
            \x20 hosts without a session share 0.400 Mbit/s; refused: 2 packets, 3000 bytes\n";
        assert_eq!(told(true), format!("enforced:\n{nodes}"));
        assert_eq!(told(false), format!("counted, not enforced:\n{nodes}"));
        assert!(enforcement(&json!({"nodes": []})).starts_with("enforced:\n"));
        assert_eq!(enforcement(&Value::Null), "");
        assert!(hosts(&json!({"c2ml": {"serves": false}})).contains("standby"));
    }
}
