//! What a run would install: rules, queues, memory.

use crate::begin::kernel_queue;
use crate::file::File;
use crate::rules::{Family, Rules};
use penstock_core::units::Limit;
use penstock_net::bottleneck::Config;
use penstock_net::direction::Direction;
use serde_json::{Value, json};

/// Memory in bytes that tables take whatever passes: connections, hosts, those who carry most.
const TABLES: u64 = 24 << 20;
/// Memory in bytes for a packet of Ethernet here, with what the kernel keeps of it.
const PACKET: u64 = 2048 + 2304;

/// Returns what a run of this file would install.
pub fn explain(file: &File, rules: &Rules) -> Value {
    let way = |d: Direction| {
        let Config { aqm, rate, limit, .. } = &file.bottlenecks[d.index()];
        json!({
            "discipline": aqm.name(),
            "parameters": aqm,
            "rate_bps": rate.as_bps(),
            "limit": limit,
            "queue": rules.chains.queue_of(d),
            "kernel_queue_packets": kernel_queue(*limit),
        })
    };
    let lines = |family: Family| match rules.chains.families.contains(&family) {
        true => rules.lines(family),
        false => Vec::new(),
    };
    let waiting: u64 = file.bottlenecks.iter().map(|config| packets(config.limit)).sum();
    json!({
        "wan": file.interfaces.wan,
        "lan": file.interfaces.lan,
        "observe": file.keys.observe,
        "patience_ms": file.keys.patience.as_millis_f64(),
        "firewall": rules.chains.firewall.name(),
        "rules": {"ipv4": lines(Family::V4), "ipv6": lines(Family::V6)},
        "forward": way(Direction::Forward),
        "reverse": way(Direction::Reverse),
        "enforce": file.c2ml.as_ref().map(|c2ml| c2ml.enforce),
        "memory_most_bytes": TABLES + waiting * PACKET,
    })
}

/// Returns what a run of this file would install with the kernel data path.
pub fn in_the_kernel(file: &File) -> Value {
    let way = |d: Direction| {
        let Config { aqm, rate, limit, .. } = &file.bottlenecks[d.index()];
        json!({"discipline": aqm.name(), "parameters": aqm, "rate_bps": rate.as_bps(), "limit": limit})
    };
    json!({
        "wan": file.interfaces.wan,
        "datapath": "kernel",
        "observe": file.keys.observe,
        "forward": way(Direction::Forward),
        "reverse": way(Direction::Reverse),
    })
}

/// Returns the same for people.
pub fn kernel_text(explained: &Value) -> String {
    let mut text = String::new();
    for (way, name) in [("forward", "download, from the WAN"), ("reverse", "upload, to the WAN")] {
        let rate = explained[way]["rate_bps"].as_u64().unwrap_or_default() as f64 / 1e6;
        let limit = explained[way]["limit"].as_str().unwrap_or_default();
        text += &format!("{name}: pink at {rate} Mbit/s before a queue of {limit}\n");
    }
    let wan = explained["wan"].as_str().unwrap_or_default();
    text +=
        &format!("programs `outward` and `inward` at {wan}, by TCX, or by filters of clsact where there is no TCX\n");
    text += "they write windows into ACKs and drop nothing; without a sign of life for 1 s they pass everything untouched\n";
    text + "memory: 20 MB in the kernel for 65536 connections\n"
}

/// Returns how many packets of 1500 bytes a queue may hold.
fn packets(limit: Limit) -> u64 {
    match limit {
        Limit::Packets(packets) => packets,
        Limit::Bytes(bytes) => bytes.get() / 1500 + 1,
    }
}

/// Returns the same for people.
pub fn text(explained: &Value) -> String {
    let mut text = String::new();
    for (way, name) in [("forward", "download, from the WAN"), ("reverse", "upload, to the WAN")] {
        let one = &explained[way];
        let rate = one["rate_bps"].as_u64().unwrap_or_default() as f64 / 1e6;
        text += &format!(
            "{name}: {} at {rate} Mbit/s, limit {}; queue {} of netfilter, {} packets at most\n",
            one["discipline"].as_str().unwrap_or_default(),
            one["limit"].as_str().unwrap_or_default(),
            one["queue"],
            one["kernel_queue_packets"],
        );
    }
    if explained["observe"] == true {
        text += "observe: packets pass at once and unchanged\n";
    }
    if let Some(enforce) = explained["enforce"].as_bool() {
        text += match enforce {
            true => "uploads of hosts are held to the budgets of their sessions; hosts without one share the rest\n",
            false => "hosts get budgets, and nobody holds them to these (enforce = false)\n",
        };
    }
    text += &format!(
        "the guard lets packets pass after {} ms without a sign of life\n",
        explained["patience_ms"].as_f64().unwrap_or_default()
    );
    let most = explained["memory_most_bytes"].as_u64().unwrap_or_default() >> 20;
    text += &format!("memory: up to {most} MB when queues are full of packets of 1500 bytes\n");
    for (family, name) in [("ipv4", "IPv4"), ("ipv6", "IPv6")] {
        let firewall = explained["firewall"].as_str().unwrap_or_default();
        text += &format!("rules of {name} in the table mangle, by {firewall}:\n");
        for line in explained["rules"][family].as_array().into_iter().flatten().filter_map(Value::as_str) {
            text += &format!("  {line}\n");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Chains, Firewall};

    #[test]
    fn rules_queues_and_memory_are_told() {
        let file =
            File::parse("[interfaces]\nwan = \"w0\"\n[link]\nrate = \"10Mbit/s\"\nlimit = \"150kB\"\n", "f").unwrap();
        let chains = Chains { firewall: Firewall::IptablesLegacy, families: vec![Family::V4], queue: 7010 };
        let explained = explain(&file, &Rules::new(chains, file.interfaces.clone()));
        assert_eq!(explained["rules"]["ipv6"], json!([]));
        assert_eq!(explained["memory_most_bytes"], json!(TABLES + 2 * 101 * PACKET));
        let text = text(&explained);
        assert!(!text.contains("budgets"));
        for expected in ["download, from the WAN: pink at 10 Mbit/s, limit 150", "80 ms", "-A POSTROUTING -o w0"] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
    }
}
