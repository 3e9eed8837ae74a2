//! The status as Prometheus reads it (OpenMetrics). There is no label of a flow; rates are bytes per second, as is usual there.

use crate::account::Cause;
use crate::report::{BOUNDS_MS, State};
use penstock_appliance::page::metrics::{self, Metrics};
use serde_json::Value;
use std::fmt;

/// A counter (true) or a gauge: its name, what it says, and the place of its value.
type Row = (&'static str, &'static str, &'static str, bool);

/// Those of each direction ([`place`]).
const EACH: [Row; 23] = [
    ("wan_bytes", "Bytes of IP that the kernel has counted at the interface", "/account/{direction}/wan_bytes", true),
    ("through_bytes", "Of these, what went through the gateway", "/account/{direction}/through_bytes", true),
    ("beside_bytes", "Of these, what passed beside the gateway", "/account/{direction}/beside_bytes", true),
    ("refused_bytes", "Bytes that the discipline dropped", "/account/{direction}/refused_bytes", true),
    ("arrived_packets", "Packets that came", "/{way}/arrived/packets", true),
    ("arrived_bytes", "Bytes that came", "/{way}/arrived/bytes", true),
    ("delivered_packets", "Packets that went on", "/{way}/delivered/packets", true),
    ("delivered_bytes", "Bytes that went on", "/{way}/delivered/bytes", true),
    ("marked_packets", "Packets marked CE", "/{way}/marked", true),
    ("unread_packets", "Packets that the kernel dropped because they were not read in time", "/{way}/unread", true),
    ("refused_packets", "Packets that could not go on", "/{way}/refused", true),
    ("busy_seconds", "Time for which the shaper was occupied", "/{way}/busy_s", true),
    ("waiting_packets", "Packets in the queue", "/{way}/waiting/packets", false),
    ("waiting_bytes", "Bytes in the queue", "/{way}/waiting/bytes", false),
    ("segments", "Segments that went on", "/windows/{at}/segments", true),
    ("rewritten_segments", "Segments whose window was written anew", "/windows/{at}/rewritten", true),
    ("advertised_window_fields", "Sum of the window fields as they came", "/windows/{at}/advertised", true),
    ("written_window_fields", "Sum of the window fields as they went on", "/windows/{at}/written", true),
    ("rate_bytes_per_second", "The rate of the shaper", "/{way}/rate_bps", false),
    ("estimated_rate_bytes_per_second", "The estimated rate of the link", "/link/estimate_bps/{at}", false),
    ("call_packets", "Packets of calls in the last 10 to 20 s", "/calls/{at}/packets", false),
    ("call_lost_ratio", "Share of packets of calls that were dropped here", "/calls/{at}/lost", false),
    (
        "call_mos_estimate",
        "Estimated mean opinion score of a call, 1 to 4.5 (E-model)",
        "/calls/{at}/mos_estimate",
        false,
    ),
];
/// What flows of QUIC were told in each direction.
const SCONE: [Row; 6] = [
    ("scone_seen_packets", "SCONE packets that came", "/scone/{at}/seen", true),
    ("scone_lowered_packets", "SCONE packets whose rate signal was lowered", "/scone/{at}/lowered", true),
    ("scone_kept_packets", "SCONE packets whose rate signal was as low already", "/scone/{at}/kept", true),
    ("scone_spared_packets", "SCONE packets left alone because their flow had its signals", "/scone/{at}/spared", true),
    ("scone_flows", "Flows that sent a SCONE packet in the last 67 s", "/scone/{at}/flows", false),
    ("scone_busy_flows", "Of these, those that use their part", "/scone/{at}/busy", false),
];
/// Those of each subscriber of a tree, and of each whose calls are seen.
const SUBSCRIBERS: [Row; 4] = [
    ("subscriber_sent_bytes", "Bytes of a subscriber that were sent", "/{way}/sent/bytes", true),
    ("subscriber_sent_packets", "Packets of a subscriber that were sent", "/{way}/sent/packets", true),
    ("subscriber_dropped_packets", "Packets of a subscriber that were dropped", "/{way}/dropped", true),
    ("subscriber_waiting_bytes", "Bytes of a subscriber in its queue", "/{way}/waiting/bytes", false),
];
const CALLERS: [Row; 1] = [(
    "subscriber_call_mos_estimate",
    "Estimated mean opinion score of calls of a subscriber",
    "/{direction}/mos_estimate",
    false,
)];
/// Those of the whole gateway.
const WHOLE: [Row; 16] = [
    ("elapsed_seconds", "Time since the start", "/elapsed_s", false),
    ("connections", "Connections in the table", "/flows/entries", false),
    ("connections_most", "Connections for which the table has room", "/flows/capacity", false),
    ("ungoverned_packets", "Packets that are no TCP or whose start was not seen", "/unclassified/not_from_syn", true),
    ("signed_packets", "Segments with a signature, which pass untouched", "/unclassified/signed", true),
    ("opened_times", "How often the guard has let packets pass", "/past/times", true),
    ("opened_packets", "Packets that passed while the guard had opened the rules", "/past/opened/packets", true),
    ("overflow_packets", "Packets that passed because the queue was full, at least", "/past/overflow_at_least", true),
    ("opened_seconds", "For how long packets have passed because this process hung", "/past/open_s", true),
    ("beside_ratio", "Part of the bytes of the last minute that passed beside", "/account/last_minute/share", false),
    ("stalled_seconds", "For how long this process did not run although it had to", "/stalled/total_s", true),
    ("stalled_times", "How often this process did not run although it had to", "/stalled/times", true),
    ("round_trip_flows", "Connections that show round trips now", "/link/flows", false),
    ("wan_seconds", "The half of round trips beyond the WAN", "/link/wan_ms", false),
    ("wan_least_seconds", "The smallest half of round trips beyond the WAN", "/link/wan_least_ms", false),
    ("lan_least_seconds", "The smallest half of round trips on the side of the LAN", "/link/lan_least_ms", false),
];

/// Those of budgets for hosts.
const BUDGETS: [Row; 14] = [
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
const ENFORCED: [Row; 4] = [
    ("enforced_packets", "Packets that came from hosts held to budgets", "arrived/packets", true),
    ("enforced_bytes", "Bytes that came from hosts held to budgets", "arrived/bytes", true),
    ("policed_packets", "Packets refused because they were beyond a budget", "policed/packets", true),
    ("policed_bytes", "Bytes refused because they were beyond a budget", "policed/bytes", true),
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
    each(metrics, &EACH)?;
    metrics.whole(&WHOLE)?;
    drops(metrics)?;
    beside(metrics)?;
    let delays = ways("/delays/{at}");
    metrics.histogram(("queue_delay_seconds", "Time in the queue"), WAY, &delays, &BOUNDS_MS)?;
    budgets(metrics)?;
    named(metrics, "subscribers", &SUBSCRIBERS)?;
    named(metrics, "callers", &CALLERS)?;
    if metrics.status["scone"].is_array() {
        each(metrics, &SCONE)?;
    }
    standing(metrics)
}

/// Returns a place in one of the two directions: `{at}` is 0 or 1, `{way}` the key and `{direction}` the label.
fn place(of: &str, at: usize) -> String {
    of.replace("{at}", &at.to_string()).replace("{way}", KEYS[at]).replace("{direction}", WAYS[at])
}

/// Returns the places of the two directions with their labels.
fn ways(of: &str) -> [(&'static str, String); 2] {
    [0, 1].map(|at| (WAYS[at], place(of, at)))
}

fn each(metrics: &mut Metrics<'_, '_>, table: &[Row]) -> fmt::Result {
    table.iter().try_for_each(|(name, help, of, total)| metrics.by((name, help), WAY, &ways(of), *total))
}

/// Budgets of hosts and who keeps to them; nothing if the file has no `[c2ml]`. Nodes are counted, none has a label.
fn budgets(metrics: &mut Metrics<'_, '_>) -> fmt::Result {
    let Some(nodes) = metrics.status["c2ml"]["nodes"].as_array() else { return Ok(()) };
    metrics.one(("c2ml_nodes", "Nodes that have a session"), false, &[(vec![], nodes.len() as f64)])?;
    metrics.whole(&BUDGETS)?;
    ENFORCED.into_iter().try_for_each(|(name, help, key, total)| {
        let places = [("yes", "sessions"), ("no", "strangers")];
        let places = places.map(|(label, place)| (label, format!("/enforcement/{place}/{key}")));
        metrics.by((name, help), "session", &places, total)
    })
}

/// What is told of subscribers in a list, by their names; whoever has none is `others`.
fn named(metrics: &mut Metrics<'_, '_>, list: &str, table: &[Row]) -> fmt::Result {
    let Some(all) = metrics.status[list].as_array() else { return Ok(()) };
    for (name, help, of, total) in table {
        let mut samples = Vec::new();
        for (one, at) in all.iter().flat_map(|one| [0, 1].map(|at| (one, at))) {
            let labels = vec![("subscriber", one["name"].as_str().unwrap_or("others")), (WAY, WAYS[at])];
            samples.extend(one.pointer(&place(of, at)).and_then(Value::as_f64).map(|value| (labels, value)));
        }
        metrics.one((name, help), *total, &samples)?;
    }
    Ok(())
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

/// What passed beside the gateway, by cause.
fn beside(metrics: &mut Metrics<'_, '_>) -> fmt::Result {
    let mut samples = Vec::new();
    for (way, cause) in WAYS.into_iter().flat_map(|way| Cause::ALL.map(|cause| (way, cause.name()))) {
        let value = metrics.number(&format!("/account/{way}/causes/{cause}"));
        samples.extend(value.map(|value| (vec![(WAY, way), ("cause", cause)], value)));
    }
    metrics.one(("beside_cause_bytes", "Bytes that passed beside the gateway, by cause"), true, &samples)?;
    let seconds = Cause::ALL.map(|cause| (cause.name(), format!("/account/seconds/{}", cause.name())));
    metrics.by(("beside_seconds", "For how long bytes passed beside, by cause"), "cause", &seconds, true)
}

/// What is wrong, and how the gateway stands.
fn standing(metrics: &mut Metrics<'_, '_>) -> fmt::Result {
    let status = metrics.status;
    let marks = status["marks"].as_array().map_or(0, Vec::len) as f64;
    metrics.one(("marks", "Number of things that are wrong now"), false, &[(vec![], marks)])?;
    let is = |is: bool| f64::from(u8::from(is));
    let (state, source) = (&status["state"], &status["link"]["source"]["state"]);
    let states = State::ALL.map(|one| (vec![("state", one)], is(*state == one)));
    metrics.one(("state", "1 for what is done with packets now"), false, &states)?;
    let sources =
        ["good", "waiting", "stale", "plain", "by_hand"].map(|one| (vec![("state", one)], is(*source == one)));
    metrics.one(("rate_source", "1 for how the source of the rate stands"), false, &sources)?;
    let behind = is(!status["link"]["behind"].is_null());
    let about = ("bottleneck_elsewhere", "1 if the set rate is above that of the link");
    metrics.one(about, false, &[(vec![], behind)])?;
    metrics.one(("build_info", "The version"), false, &[(vec![("version", env!("CARGO_PKG_VERSION"))], 1.0)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Asserts that the text has these lines, each without its prefix; returns the text.
    fn told(status: &Value, lines: &[&str]) -> String {
        let text = encode(status);
        for line in lines {
            let line = format!("penstock_gateway_{line}");
            assert!(text.lines().any(|one| one == line), "{line} is missing:\n{text}");
        }
        assert!(text.ends_with("# EOF\n"), "{text}");
        text
    }

    #[test]
    fn every_number_is_that_of_the_status() {
        let way = |n: u64| {
            json!({"arrived": {"packets": n, "bytes": 2 * n}, "delivered": {"packets": n, "bytes": 2 * n},
            "dropped": {"early": 3, "overflow": 0, "dequeue": 0}, "rate_bps": 8_000_000, "busy_s": 1.5})
        };
        let account = json!({"wan_bytes": 90, "beside_bytes": 7, "causes": {"hung": 7}});
        let status = json!({
            "account": {"upload": account, "seconds": {"hung": 3.9}, "last_minute": {"share": 0.25}},
            "state": "governing", "marks": ["x"], "elapsed_s": 2.5, "forward": way(10), "reverse": way(20),
            "delays": [{"count": 4, "sum_s": 0.25, "up_to": [1, 1, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3]}, null],
            "link": {"wan_ms": 41.0, "source": {"state": "stale"}},
            "calls": [null, {"packets": 100, "lost": 0.01, "mos_estimate": 4.3}],
            "scone": [{"seen": 9, "lowered": 5, "kept": 3, "spared": 1, "flows": 4, "busy": 2}, null],
        });
        let lines = [
            "wan_bytes_total{direction=\"upload\"} 90.0",
            "beside_bytes_total{direction=\"upload\"} 7.0",
            "beside_cause_bytes_total{direction=\"upload\",cause=\"hung\"} 7.0",
            "beside_seconds_total{cause=\"hung\"} 3.9",
            "beside_ratio 0.25",
            "arrived_bytes_total{direction=\"upload\"} 40.0",
            "dropped_packets_total{direction=\"download\",cause=\"early\"} 3.0",
            "rate_bytes_per_second{direction=\"download\"} 1000000.0",
            "queue_delay_seconds_bucket{le=\"0.005\",direction=\"download\"} 3",
            "queue_delay_seconds_bucket{le=\"+Inf\",direction=\"download\"} 4",
            "queue_delay_seconds_sum{direction=\"download\"} 0.25",
            "wan_seconds 0.041",
            "call_mos_estimate{direction=\"upload\"} 4.3",
            "scone_lowered_packets_total{direction=\"download\"} 5.0",
            "scone_flows{direction=\"download\"} 4.0",
            "marks 1.0",
            "state{state=\"governing\"} 1.0",
            "state{state=\"partly\"} 0.0",
            "rate_source{state=\"stale\"} 1.0",
        ];
        let text = told(&status, &lines);
        assert!(!text.contains("c2ml") && !text.contains("subscriber"), "neither budgets nor subscribers");
        assert!(!text.contains("flow=") && !text.contains("estimated_rate_bytes_per_second{"), "{text}");
    }

    #[test]
    fn subscribers_have_labels() {
        let part = |n: u64| json!({"sent": {"packets": n, "bytes": 1000 * n}, "dropped": 1, "waiting": {"bytes": 7}});
        let call = |mos: f64| json!({"mos_estimate": mos});
        let status = json!({
            "subscribers": [{"name": "shop", "forward": part(3), "reverse": part(4)},
                {"name": null, "forward": part(5), "reverse": part(6)}],
            "callers": [{"name": "shop", "download": null, "upload": call(4.25)},
                {"name": null, "download": call(1.5), "upload": null}],
        });
        let lines = [
            "subscriber_sent_bytes_total{subscriber=\"shop\",direction=\"upload\"} 4000.0",
            "subscriber_dropped_packets_total{subscriber=\"others\",direction=\"download\"} 1.0",
            "subscriber_waiting_bytes{subscriber=\"shop\",direction=\"download\"} 7.0",
            "subscriber_call_mos_estimate{subscriber=\"shop\",direction=\"upload\"} 4.25",
            "subscriber_call_mos_estimate{subscriber=\"others\",direction=\"download\"} 1.5",
        ];
        let text = told(&status, &lines);
        assert_eq!(text.matches("call_mos_estimate{").count(), 2, "{text}");
    }

    #[test]
    fn budgets_are_counted_and_no_node_has_a_label() {
        let count = |packets: u64| json!({"packets": packets, "bytes": packets * 1500});
        let status = json!({
            "c2ml": {"nodes": [{"node": 7, "name": "truck"}, {"node": 8}], "holders": 3, "rate_bps": 8_000_000,
                "granted_bps": 4_000_000, "messages": {"lapsed": 5, "refused": 6}, "refused": {"enrolments": 2}},
            "enforcement": {"rest_bps": 800_000, "nodes": [], "sessions": {"arrived": count(9), "policed": count(4)},
                "strangers": {"arrived": count(2), "policed": count(1)}},
        });
        let lines = [
            "c2ml_nodes 2.0",
            "c2ml_budgets 3.0",
            "c2ml_lapsed_total 5.0",
            "c2ml_refused_nodes_total 6.0",
            "c2ml_refused_enrolments_total 2.0",
            "c2ml_granted_bytes_per_second 500000.0",
            "c2ml_rest_bytes_per_second 100000.0",
            "policed_packets_total{session=\"yes\"} 4.0",
            "policed_bytes_total{session=\"no\"} 1500.0",
        ];
        let text = told(&status, &lines);
        assert!(!text.contains("truck") && !text.contains("node="), "{text}");
    }
}
