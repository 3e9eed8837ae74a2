//! The status of a gateway with the kernel data path.

use crate::enforce::Enforcement;
use crate::report::State;
use penstock_appliance::ask::{self, ROWS};
use penstock_appliance::change::{Change, Event};
use penstock_appliance::history::Lapse;
use penstock_core::qdisc::Backlog;
use penstock_core::registry::AnyConfig;
use penstock_core::units::Limit;
use penstock_linux::bpf::{Attached, Gauges, Sums};
use penstock_shaper::bottleneck::Config;
use serde::Serialize;
use serde_json::Value;
use std::fmt::Write as _;

/// The status, as `penstock-gateway status --json` prints it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Time since the start in seconds.
    pub elapsed_s: f64,
    /// What is done with packets.
    pub state: State,
    /// `"kernel"`.
    pub datapath: &'static str,
    /// How the programs are attached.
    pub attached: Attached,
    /// What is wrong now, as sentences; empty if all is well.
    pub marks: Vec<String>,
    /// What happened, the last of it.
    pub events: Vec<Event>,
    /// The interface to the link.
    pub wan: String,
    /// What was set since the start.
    pub changes: Vec<Change>,
    /// The change that will go by itself, if there is one.
    pub lapse: Option<Lapse>,
    /// Connections that the table can hold.
    pub capacity: u32,
    /// The table of connections, and packets that passed untouched.
    pub table: Gauges,
    /// From the WAN to the LAN.
    pub forward: WayReport,
    /// From the LAN to the WAN.
    pub reverse: WayReport,
    /// Budgets for hosts, if the file has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub c2ml: Option<penstock_budgets::gateway::Status>,
    /// Who keeps to its budget, if that is enforced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforcement: Option<Enforcement>,
}

/// The status of one direction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WayReport {
    /// The name of the discipline.
    pub aqm: String,
    /// Its parameters.
    pub parameters: AnyConfig,
    /// The rate of the link.
    pub rate_bps: u64,
    /// The limit of the queue that the link is said to have.
    pub limit: Limit,
    /// Packets and bytes that passed the interface.
    pub arrived: Backlog,
    /// The counters of PINK for the data of this direction.
    pub pink: Sums,
}

/// Returns the status of a direction.
pub fn way(config: &Config, sums: &Sums, packets: u64, bytes: u64) -> WayReport {
    WayReport {
        aqm: config.aqm.name().to_owned(),
        parameters: config.aqm.clone(),
        rate_bps: config.rate.as_bps(),
        limit: config.limit,
        arrived: Backlog { packets, bytes },
        pink: *sums,
    }
}

/// Rows of the table that only this data path has.
const OWN: [(&str, &str); 6] = [
    ("active flows", "/pink/active"),
    ("use less than a share", "/pink/lacking"),
    ("idle flows", "/pink/asleep"),
    ("ACKs", "/pink/acks"),
    ("windows written", "/pink/rewritten"),
    ("below one segment", "/pink/below_one_segment"),
];

/// Returns the status as a table.
pub fn text(answer: &Value, headings: &[&str; 2]) -> String {
    let shared = ["/aqm", "/rate_bps", "/limit", "/arrived/packets"];
    let rows: Vec<_> = ROWS.into_iter().filter(|(_, pointer)| shared.contains(pointer)).chain(OWN).collect();
    let mut text = ask::table(answer, headings, &rows);
    let number = |pointer: &str| answer.pointer(pointer).and_then(Value::as_u64).unwrap_or_default();
    let word = |key: &str| answer[key].as_str().unwrap_or_default();
    let _ = writeln!(text, "state: {}, in the kernel ({})", word("state"), word("attached"));
    let _ = writeln!(
        text,
        "connections: {} of {}; untouched: {} packets that are no TCP, {} of connections whose start was not seen, {} with a \
         signature, {} while this process hung",
        number("/table/lines"),
        number("/capacity"),
        number("/table/not_tcp"),
        number("/table/unknown"),
        number("/table/signed"),
        number("/table/stale"),
    );
    text + &crate::hosts::hosts(answer)
}
