//! The status as Prometheus reads it (OpenMetrics). There is no label of a flow; rates are bytes per second, as is usual there.

use crate::report::BOUNDS_MS;
use penstock_appliance::page::metrics::{self, Metrics};
use serde_json::Value;
use std::fmt;

/// A counter or a gauge of each direction: its name, what it says, and the key in `forward` and `reverse`.
type Each = (&'static str, &'static str, &'static str);

const COUNTERS: [Each; 8] = [
    ("arrived_packets", "Packets that came", "arrived/packets"),
    ("arrived_bytes", "Bytes that came", "arrived/bytes"),
    ("delivered_packets", "Packets that went on", "delivered/packets"),
    ("delivered_bytes", "Bytes that went on", "delivered/bytes"),
    ("marked_packets", "Packets marked CE", "marked"),
    ("unread_packets", "Packets that the kernel dropped because they were not read in time", "unread"),
    ("refused_packets", "Packets that could not go on", "refused"),
    ("busy_seconds", "Time for which the shaper was occupied", "busy_s"),
];
const GAUGES: [Each; 2] = [
    ("waiting_packets", "Packets in the queue", "waiting/packets"),
    ("waiting_bytes", "Bytes in the queue", "waiting/bytes"),
];
const WINDOWS: [Each; 4] = [
    ("segments", "Segments that went on", "segments"),
    ("rewritten_segments", "Segments whose window was written anew", "rewritten"),
    ("advertised_window_fields", "Sum of the window fields as they came", "advertised"),
    ("written_window_fields", "Sum of the window fields as they went on", "written"),
];
/// Counters and gauges of the whole gateway, with the pointer to their value.
const WHOLE: [(&str, &str, &str, bool); 13] = [
    ("elapsed_seconds", "Time since the start", "/elapsed_s", false),
    ("connections", "Connections in the table", "/flows/entries", false),
    ("connections_most", "Connections for which the table has room", "/flows/capacity", false),
    ("ungoverned_packets", "Packets that are no TCP or whose start was not seen", "/unclassified/not_from_syn", true),
    ("signed_packets", "Segments with a signature, which pass untouched", "/unclassified/signed", true),
    ("opened_times", "How often the guard has let packets pass", "/past/times", true),
    ("opened_packets", "Packets that passed while the guard had opened the rules", "/past/opened/packets", true),
    ("overflow_packets", "Packets that passed because the queue was full, at least", "/past/overflow_at_least", true),
    ("stalled_times", "How often this process did not run although it had to", "/stalled/times", true),
    ("round_trip_flows", "Connections that show round trips now", "/link/flows", false),
    ("wan_seconds", "The half of round trips beyond the WAN", "/link/wan_ms", false),
    ("wan_least_seconds", "The smallest half of round trips beyond the WAN", "/link/wan_least_ms", false),
    ("lan_least_seconds", "The smallest half of round trips on the side of the LAN", "/link/lan_least_ms", false),
];

/// Counters, gauges and rates of budgets for hosts, with the pointer to their value, as [`WHOLE`].
const BUDGETS: [(&str, &str, &str, bool); 14] = [
    ("c2ml_enrolled", "Nodes that have enrolled", "/c2ml/enrolled", false),
    ("c2ml_over", "Hosts of which more came in the last second than their budgets", "/enforcement/over", false),
    ("c2ml_budgets", "Nodes that hold a budget", "/c2ml/holders", false),
    ("c2ml_joined", "Nodes that joined", "/c2ml/messages/joined", true),
    ("c2ml_left", "Nodes that said goodbye", "/c2ml/messages/left", true),
    ("c2ml_lapsed", "Nodes whose lease ended", "/c2ml/messages/lapsed", true),
    ("c2ml_refused_nodes", "Nodes for which there was no room", "/c2ml/messages/refused", true),
    ("c2ml_forged_states", "States that nobody signed here", "/c2ml/messages/forged", true),
    ("c2ml_refused_enrolments", "Enrolments that were refused", "/c2ml/refused/enrolments", true),
    ("c2ml_floors_bytes_per_second", "The sum of all floors", "/c2ml/floors_bps", false),
    (
        "c2ml_used_bytes_per_second",
        "What passed of hosts with a session in the last second",
        "/enforcement/used_bps",
        false,
    ),
    ("c2ml_shared_bytes_per_second", "The rate that is shared among nodes", "/c2ml/rate_bps", false),
    ("c2ml_granted_bytes_per_second", "The sum of all budgets", "/c2ml/granted_bps", false),
    ("c2ml_rest_bytes_per_second", "What hosts without a session share", "/enforcement/rest_bps", false),
];
/// What enforcement counts of hosts with and without a session.
const ENFORCED: [Each; 4] = [
    ("enforced_packets", "Packets that came from hosts held to budgets", "arrived/packets"),
    ("enforced_bytes", "Bytes that came from hosts held to budgets", "arrived/bytes"),
    ("policed_packets", "Packets refused because they were beyond a budget", "policed/packets"),
    ("policed_bytes", "Bytes refused because they were beyond a budget", "policed/bytes"),
];

/// Counters and gauges of each subscriber of a tree, with the pointer to their value in a direction.
const SUBSCRIBERS: [(&str, &str, &str, bool); 4] = [
    ("subscriber_sent_bytes", "Bytes of a subscriber that were sent", "sent/bytes", true),
    ("subscriber_sent_packets", "Packets of a subscriber that were sent", "sent/packets", true),
    ("subscriber_dropped_packets", "Packets of a subscriber that were dropped", "dropped", true),
    ("subscriber_waiting_bytes", "Bytes of a subscriber in its queue", "waiting/bytes", false),
];

/// What is estimated of calls in each direction.
const CALLS: [Each; 3] = [
    ("call_packets", "Packets of calls in the last 10 to 20 s", "packets"),
    ("call_lost_ratio", "Share of packets of calls that were dropped here", "lost"),
    ("call_mos_estimate", "Estimated mean opinion score of a call, 1 to 4.5 (E-model)", "mos_estimate"),
];

/// What flows of QUIC were told in each direction: counters, and gauges.
const SCONE: [(Each, bool); 6] = [
    (("scone_seen_packets", "SCONE packets that came", "seen"), true),
    (("scone_lowered_packets", "SCONE packets whose rate signal was lowered", "lowered"), true),
    (("scone_kept_packets", "SCONE packets whose rate signal was as low already", "kept"), true),
    (("scone_spared_packets", "SCONE packets left alone because their flow had its signals", "spared"), true),
    (("scone_flows", "Flows that sent a SCONE packet in the last 67 s", "flows"), false),
    (("scone_busy_flows", "Of these, those that use their part", "busy"), false),
];

/// The label of the two directions, and its values.
const WAY: &str = "direction";
const WAYS: [&str; 2] = ["download", "upload"];
/// The tables of the two directions in the status.
const KEYS: [&str; 2] = ["forward", "reverse"];

/// Returns the text for a status.
pub fn encode(status: &Value) -> String {
    metrics::encode("penstock_gateway", status, tables)
}

fn tables(metrics: &mut Metrics<'_, '_>) -> fmt::Result {
    for (table, total) in [(&COUNTERS[..], true), (&GAUGES, false)] {
        each(metrics, table, KEYS.map(|way| format!("/{way}")), total)?;
    }
    each(metrics, &WINDOWS, ["/windows/0", "/windows/1"], true)?;
    metrics.whole(&WHOLE)?;
    drops(metrics)?;
    let delays = ways(["/delays/0", "/delays/1"]);
    metrics.histogram(("queue_delay_seconds", "Time in the queue"), WAY, &delays, &BOUNDS_MS)?;
    rates(metrics)?;
    budgets(metrics)?;
    subscribers(metrics)?;
    callers(metrics)?;
    each(metrics, &CALLS, ["/calls/0", "/calls/1"], false)?;
    if metrics.status["scone"].is_array() {
        for (one, total) in SCONE {
            each(metrics, &[one], ["/scone/0", "/scone/1"], total)?;
        }
    }
    standing(metrics)
}

/// Returns the places of the two directions with their labels.
fn ways(places: [impl Into<String>; 2]) -> Vec<(&'static str, String)> {
    WAYS.into_iter().zip(places.map(Into::into)).collect()
}

/// Counters or gauges of both directions, whose keys are below these places.
fn each(metrics: &mut Metrics<'_, '_>, table: &[Each], places: [impl fmt::Display; 2], total: bool) -> fmt::Result {
    table.iter().try_for_each(|(name, help, key)| {
        metrics.by((name, help), WAY, &ways([0, 1].map(|at| format!("{}/{key}", places[at]))), total)
    })
}

/// Budgets of hosts and who keeps to them; nothing if the file has no `[c2ml]`. Nodes are counted, none has a label.
fn budgets(metrics: &mut Metrics<'_, '_>) -> fmt::Result {
    let Some(nodes) = metrics.status["c2ml"]["nodes"].as_array() else { return Ok(()) };
    metrics.one(("c2ml_nodes", "Nodes that have a session"), false, &[(vec![], nodes.len() as f64)])?;
    metrics.whole(&BUDGETS)?;
    ENFORCED.into_iter().try_for_each(|(name, help, key)| {
        let places = [("yes", "sessions"), ("no", "strangers")];
        let places = places.map(|(label, place)| (label, format!("/enforcement/{place}/{key}")));
        metrics.by((name, help), "session", &places, true)
    })
}

/// What the subscribers of a tree have, by their names; whoever has none is `others`.
fn subscribers(metrics: &mut Metrics<'_, '_>) -> fmt::Result {
    let Some(all) = metrics.status["subscribers"].as_array() else { return Ok(()) };
    for (name, help, pointer, total) in SUBSCRIBERS {
        let mut samples = Vec::new();
        for (one, way) in all.iter().flat_map(|one| [0, 1].map(|way| (one, way))) {
            let labels = vec![("subscriber", one["name"].as_str().unwrap_or("others")), (WAY, WAYS[way])];
            let value = one.pointer(&format!("/{}/{pointer}", KEYS[way])).and_then(Value::as_f64);
            samples.extend(value.map(|value| (labels, value)));
        }
        metrics.one((name, help), total, &samples)?;
    }
    Ok(())
}

/// How calls of subscribers would sound, by their names; whoever has none is `others`.
fn callers(metrics: &mut Metrics<'_, '_>) -> fmt::Result {
    let Some(all) = metrics.status["callers"].as_array() else { return Ok(()) };
    let mut samples = Vec::new();
    for (one, way) in all.iter().flat_map(|one| WAYS.map(|way| (one, way))) {
        let labels = vec![("subscriber", one["name"].as_str().unwrap_or("others")), (WAY, way)];
        samples.extend(one[way]["mos_estimate"].as_f64().map(|mos| (labels, mos)));
    }
    let about = ("subscriber_call_mos_estimate", "Estimated mean opinion score of calls of a subscriber");
    metrics.one(about, false, &samples)
}

fn drops(metrics: &mut Metrics<'_, '_>) -> fmt::Result {
    let mut samples = Vec::new();
    for (key, way) in KEYS.into_iter().zip(WAYS) {
        for cause in ["early", "overflow", "dequeue"] {
            let value = metrics.number(&format!("/{key}/dropped/{cause}"));
            samples.extend(value.map(|value| (vec![(WAY, way), ("cause", cause)], value)));
        }
    }
    metrics.one(("dropped_packets", "Packets dropped by the discipline, by cause"), true, &samples)
}

/// What is wrong, and how the gateway stands.
fn standing(metrics: &mut Metrics<'_, '_>) -> fmt::Result {
    let status = metrics.status;
    let marks = status["marks"].as_array().map_or(0, Vec::len) as f64;
    metrics.one(("marks", "Number of things that are wrong now"), false, &[(vec![], marks)])?;
    let is = |is: bool| f64::from(u8::from(is));
    let states = ["governing", "observing", "open"].map(|state| (vec![("state", state)], is(status["state"] == state)));
    metrics.one(("state", "1 for what is done with packets now"), false, &states)?;
    let sources = ["good", "waiting", "stale", "plain", "by_hand"];
    let sources = sources.map(|state| (vec![("state", state)], is(status["link"]["source"]["state"] == state)));
    metrics.one(("rate_source", "1 for how the source of the rate stands"), false, &sources)?;
    let behind = is(!status["link"]["behind"].is_null());
    let about = ("bottleneck_elsewhere", "1 if the set rate is above that of the link");
    metrics.one(about, false, &[(vec![], behind)])?;
    metrics.one(("build_info", "The version"), false, &[(vec![("version", env!("CARGO_PKG_VERSION"))], 1.0)])
}

/// Rates in bytes per second: what is set, and what is estimated.
fn rates(metrics: &mut Metrics<'_, '_>) -> fmt::Result {
    let set = ways(["/forward/rate_bps", "/reverse/rate_bps"]);
    metrics.by(("rate_bytes_per_second", "The rate of the shaper"), WAY, &set, false)?;
    let estimated = ways(["/link/estimate_bps/0", "/link/estimate_bps/1"]);
    metrics.by(("estimated_rate_bytes_per_second", "The estimated rate of the link"), WAY, &estimated, false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_number_is_that_of_the_status() {
        let way = |n: u64| {
            json!({"arrived": {"packets": n, "bytes": 2 * n}, "delivered": {"packets": n, "bytes": 2 * n},
            "dropped": {"early": 3, "overflow": 0, "dequeue": 0}, "rate_bps": 8_000_000, "busy_s": 1.5})
        };
        let text = encode(&json!({
            "state": "governing", "marks": ["x"], "elapsed_s": 2.5, "forward": way(10), "reverse": way(20),
            "delays": [{"count": 4, "sum_s": 0.25, "up_to": [1, 1, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3]}, null],
            "link": {"wan_ms": 41.0, "source": {"state": "stale"}},
            "calls": [null, {"packets": 100, "lost": 0.01, "mos_estimate": 4.3}],
            "scone": [{"seen": 9, "lowered": 5, "kept": 3, "spared": 1, "flows": 4, "busy": 2}, null],
        }));
        for line in [
            "penstock_gateway_arrived_bytes_total{direction=\"upload\"} 40.0",
            "penstock_gateway_dropped_packets_total{direction=\"download\",cause=\"early\"} 3.0",
            "penstock_gateway_rate_bytes_per_second{direction=\"download\"} 1000000.0",
            "penstock_gateway_queue_delay_seconds_bucket{le=\"0.005\",direction=\"download\"} 3",
            "penstock_gateway_queue_delay_seconds_bucket{le=\"+Inf\",direction=\"download\"} 4",
            "penstock_gateway_queue_delay_seconds_sum{direction=\"download\"} 0.25",
            "penstock_gateway_wan_seconds 0.041",
            "penstock_gateway_call_mos_estimate{direction=\"upload\"} 4.3",
            "penstock_gateway_scone_lowered_packets_total{direction=\"download\"} 5.0",
            "penstock_gateway_scone_flows{direction=\"download\"} 4.0",
            "penstock_gateway_marks 1.0",
            "penstock_gateway_state{state=\"governing\"} 1.0",
            "penstock_gateway_rate_source{state=\"stale\"} 1.0",
            "# EOF",
        ] {
            assert!(text.lines().any(|one| one == line), "{line} is missing:\n{text}");
        }
        assert!(!text.contains("c2ml"), "without budgets");
        assert!(!text.contains("flow=") && !text.contains("estimated_rate_bytes_per_second{"), "{text}");
    }

    #[test]
    fn calls_of_subscribers_have_labels() {
        let call = |mos: f64| json!({"mos_estimate": mos});
        let text = encode(&json!({"callers": [
            {"name": "shop", "download": null, "upload": call(4.25)},
            {"name": null, "download": call(1.5), "upload": null},
        ]}));
        for line in [
            "penstock_gateway_subscriber_call_mos_estimate{subscriber=\"shop\",direction=\"upload\"} 4.25",
            "penstock_gateway_subscriber_call_mos_estimate{subscriber=\"others\",direction=\"download\"} 1.5",
        ] {
            assert!(text.lines().any(|one| one == line), "{line}: {text}");
        }
        assert_eq!(text.matches("call_mos_estimate{").count(), 2, "{text}");
    }

    #[test]
    fn subscribers_of_a_tree_have_labels() {
        let part = |n: u64| json!({"sent": {"packets": n, "bytes": 1000 * n}, "dropped": 1, "waiting": {"bytes": 7}});
        let text = encode(&json!({"subscribers": [
            {"name": "shop", "forward": part(3), "reverse": part(4)}, {"name": null, "forward": part(5), "reverse": part(6)},
        ]}));
        for line in [
            "penstock_gateway_subscriber_sent_bytes_total{subscriber=\"shop\",direction=\"upload\"} 4000.0",
            "penstock_gateway_subscriber_dropped_packets_total{subscriber=\"others\",direction=\"download\"} 1.0",
            "penstock_gateway_subscriber_waiting_bytes{subscriber=\"shop\",direction=\"download\"} 7.0",
        ] {
            assert!(text.lines().any(|one| one == line), "{line} is missing:\n{text}");
        }
    }

    #[test]
    fn budgets_are_counted_and_no_node_has_a_label() {
        let count = |packets: u64| json!({"packets": packets, "bytes": packets * 1500});
        let text = encode(&json!({
            "c2ml": {"nodes": [{"node": 7, "name": "truck"}, {"node": 8}], "holders": 3, "rate_bps": 8_000_000,
                "granted_bps": 4_000_000, "messages": {"lapsed": 5, "refused": 6}, "refused": {"enrolments": 2}},
            "enforcement": {"rest_bps": 800_000, "nodes": [], "sessions": {"arrived": count(9), "policed": count(4)},
                "strangers": {"arrived": count(2), "policed": count(1)}},
        }));
        for line in [
            "penstock_gateway_c2ml_nodes 2.0",
            "penstock_gateway_c2ml_budgets 3.0",
            "penstock_gateway_c2ml_lapsed_total 5.0",
            "penstock_gateway_c2ml_refused_nodes_total 6.0",
            "penstock_gateway_c2ml_refused_enrolments_total 2.0",
            "penstock_gateway_c2ml_granted_bytes_per_second 500000.0",
            "penstock_gateway_c2ml_rest_bytes_per_second 100000.0",
            "penstock_gateway_policed_packets_total{session=\"yes\"} 4.0",
            "penstock_gateway_policed_bytes_total{session=\"no\"} 1500.0",
        ] {
            assert!(text.lines().any(|one| one == line), "{line} is missing:\n{text}");
        }
        assert!(!text.contains("truck") && !text.contains("node="), "{text}");
    }
}
