//! What a run would install: rules, queues, memory.

use crate::file::File;
use crate::gate::kernel_queue;
use crate::hosts::{list, word};
use crate::rules::{Family, Rules};
use penstock_core::units::Limit;
use penstock_shaper::bottleneck::Config;
use penstock_shaper::direction::Direction;
use serde_json::{Value, json};

/// Memory in bytes that tables take whatever passes: connections, hosts, those who carry most.
const TABLES: u64 = 24 << 20;
/// Memory in bytes for a packet of Ethernet here, with what the kernel keeps of it.
const PACKET: u64 = 2048 + 2304;
/// Memory in bytes of the rings of both ports of a bridge.
const RINGS: u64 = 16 << 20;

/// The directions in an answer.
const WAYS: [&str; 2] = ["forward", "reverse"];

fn way(file: &File, direction: Direction) -> Value {
    let Config { aqm, rate, layer, limit, .. } = &file.settings.ways[direction.index()];
    json!({"discipline": aqm.name(), "parameters": aqm, "rate_bps": rate.as_bps(), "link_layer": layer.to_string(), "limit": limit})
}

/// Returns what a run of this file would install; without rules on a bridge.
pub fn explain(file: &File, rules: Option<&Rules>) -> Value {
    let mut told = json!({
        "wan": file.interfaces.wan,
        "lan": file.interfaces.lan,
        "observe": file.keys.observe,
        "scone": file.keys.scone,
        "patience_ms": file.keys.patience.as_millis_f64(),
        "forward": way(file, Direction::Forward),
        "reverse": way(file, Direction::Reverse),
    });
    let memory = TABLES
        + file.settings.ways.iter().map(|config| packets(file.settings.subscribers.room(config.limit))).sum::<u64>()
            * PACKET;
    let Some(rules) = rules else {
        told["mode"] = "bridge".into();
        told["memory_most_bytes"] = (memory + RINGS).into();
        return told;
    };
    for (direction, key) in Direction::BOTH.into_iter().zip(WAYS) {
        let limit = file.settings.ways[direction.index()].limit;
        told[key]["queue"] = rules.chains.queue_of(direction).into();
        told[key]["kernel_queue_packets"] = kernel_queue(file.settings.subscribers.room(limit)).into();
    }
    let v6 = if rules.chains.v6 { rules.lines(Family::V6) } else { Vec::new() };
    told["firewall"] = rules.chains.firewall.name().into();
    told["rules"] = json!({"ipv4": rules.lines(Family::V4), "ipv6": v6});
    told["enforce"] = json!(file.c2ml.as_ref().map(|c2ml| c2ml.enforce));
    told["memory_most_bytes"] = memory.into();
    told
}

pub fn in_the_kernel(file: &File) -> Value {
    json!({
        "wan": file.interfaces.wan,
        "datapath": "kernel",
        "observe": file.keys.observe,
        "enforced_at": file.interfaces.lan,
        "forward": way(file, Direction::Forward),
        "reverse": way(file, Direction::Reverse),
    })
}

/// Returns how many packets of 1500 bytes a queue may hold.
fn packets(limit: Limit) -> u64 {
    match limit {
        Limit::Packets(packets) => packets,
        Limit::Bytes(bytes) => bytes.get() / 1500 + 1,
    }
}

/// Returns a line about each direction; `of` has what stands before the limit and after it.
fn ways<'a>(explained: &'a Value, of: impl Fn(&'a Value) -> String) -> String {
    let names = ["download, from the WAN", "upload, to the WAN"];
    WAYS.into_iter().zip(names).map(|(way, name)| format!("{name}: {}\n", of(&explained[way]))).collect()
}

fn mbps(way: &Value) -> f64 {
    way["rate_bps"].as_u64().unwrap_or_default() as f64 / 1e6
}

pub fn kernel_text(explained: &Value) -> String {
    let queue = |way: &Value| format!("pink at {} Mbit/s before a queue of {}", mbps(way), word(&way["limit"]));
    let (ways, wan) = (ways(explained, queue), word(&explained["wan"]));
    let hold = explained["enforced_at"].as_str().map(|lan| {
        format!(
            "programs `hold` and `answer` at {lan}, by TCX: they drop what hosts send to {wan} beyond their budgets\n"
        )
    });
    format!(
        "{ways}programs `outward` and `inward` at {wan}, by TCX, or by filters of clsact where there is no TCX\n\
         they write windows into ACKs and drop nothing; without a sign of life for 1 s they pass everything untouched\n\
         {}memory: 20 MB in the kernel for 65536 connections\n",
        hold.unwrap_or_default()
    )
}

pub fn text(explained: &Value) -> String {
    let mut text = ways(explained, |way| {
        let queue = way["kernel_queue_packets"].as_u64();
        let queue = queue.map(|most| format!("; queue {} of netfilter, {most} packets at most", way["queue"]));
        let (discipline, limit) = (word(&way["discipline"]), word(&way["limit"]));
        format!("{discipline} at {} Mbit/s, limit {limit}{}", mbps(way), queue.unwrap_or_default())
    });
    if explained["observe"] == true {
        text += "observe: packets pass at once and unchanged\n";
    } else if explained["scone"] == true {
        text += "SCONE: flows of QUIC that ask for it are told their part\n";
    }
    text += match explained["enforce"].as_bool() {
        Some(true) => "uploads of hosts are held to the budgets of their sessions; hosts without one share the rest\n",
        Some(false) => "hosts get budgets, and nobody holds them to these (enforce = false)\n",
        None => "",
    };
    let on_a_bridge = explained["mode"] == "bridge";
    let who = if on_a_bridge { "the kernel's bridge has all frames" } else { "the guard lets packets pass" };
    let patience = explained["patience_ms"].as_f64().unwrap_or_default();
    text += &format!("{who} after {patience} ms without a sign of life\n");
    if on_a_bridge {
        let [wan, lan] = ["wan", "lan"].map(|key| word(&explained[key]));
        text += &format!("program `hide` at {wan} and {lan}, by TCX: it takes IP to one host from the kernel\n");
        text += "left to the kernel's bridge: what is not IP, broadcasts, multicasts, what is for this machine, neighbour \
                 discovery, router advertisements, DHCP\n";
    }
    let most = explained["memory_most_bytes"].as_u64().unwrap_or_default() >> 20;
    text += &format!("memory: up to {most} MB when queues are full of packets of 1500 bytes\n");
    for (family, name) in [("ipv4", "IPv4"), ("ipv6", "IPv6")].into_iter().filter(|_| !on_a_bridge) {
        text += &format!("rules of {name} in the table mangle, by {}:\n", word(&explained["firewall"]));
        text.extend(list(&explained["rules"][family]).map(|line| format!("  {}\n", word(line))));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::Firewall;
    use crate::rules::Chains;
    use penstock_core::units::Bytes;

    #[test]
    fn a_bridge_has_no_rules() {
        let text = "mode = 'bridge'\n[interfaces]\nwan = 'w0'\nlan = 'l0'\n[link]\nrate = '10Mbit/s'\n";
        let text = super::text(&explain(&File::parse(text, "f").unwrap(), None));
        let begin = "download, from the WAN: pink at 10 Mbit/s, limit 1000p\nupload, to the WAN: pink at 10 Mbit/s, limit 1000p\n\
            the kernel's bridge has all frames after 80 ms without a sign of life\nprogram `hide` at w0 and l0";
        assert!(text.starts_with(begin) && !text.contains("rules"), "{text}");
    }

    #[test]
    fn rules_queues_and_memory_are_told() {
        let text = "[interfaces]\nwan = 'w0'\n[link]\nrate = '10Mbit/s'\nlimit = '150kB'\n";
        let file = File::parse(text, "f").unwrap();
        let chains = Chains { firewall: Firewall::IptablesLegacy, queue: 7010, v6: false };
        let explained = explain(&file, Some(&Rules { chains, interfaces: file.interfaces.clone() }));
        assert_eq!(explained["rules"]["ipv6"], json!([]));
        assert_eq!(explained["memory_most_bytes"], json!(TABLES + 2 * 101 * PACKET));
        // The kernel may hold what the discipline may, and more.
        assert_eq!(explained["forward"]["kernel_queue_packets"], 150_000 / 64 + 1024);
        assert_eq!([1000, u64::MAX].map(|most| kernel_queue(Limit::Packets(most))), [2024, 60_000]);
        assert_eq!([0, 1499, 1500].map(|bytes| packets(Limit::Bytes(Bytes::new(bytes)))), [1, 1, 2]);
        let text = super::text(&explained);
        assert!(!text.contains("budgets"));
        for expected in ["download, from the WAN: pink at 10 Mbit/s, limit 150", "80 ms", "-A OUTPUT -o w0"] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
    }

    fn way(rate: u64, limit: &str, packets: Option<u64>) -> Value {
        json!({"discipline": "codel", "rate_bps": rate, "limit": limit, "queue": 7, "kernel_queue_packets": packets})
    }

    /// Rates are in Mbit/s of a million bits, memory in MB of 2^20 bytes.
    #[test]
    fn people_read_what_would_be_installed() {
        let mut explained = json!({"wan": "w0", "patience_ms": 80.5, "firewall": "nft", "observe": true, "scone": true, "enforce": true,
            "rules": {"ipv4": ["a", "b"], "ipv6": []}, "memory_most_bytes": (25 << 20) + 1,
            "forward": way(12_500_000, "100p", Some(300)), "reverse": way(1_000_000, "10kB", None)});
        let queues = "download, from the WAN: codel at 12.5 Mbit/s, limit 100p; queue 7 of netfilter, 300 packets at most\n\
            upload, to the WAN: codel at 1 Mbit/s, limit 10kB\n";
        let rest = "the guard lets packets pass after 80.5 ms without a sign of life\n\
            memory: up to 25 MB when queues are full of packets of 1500 bytes\n\
            rules of IPv4 in the table mangle, by nft:\n  a\n  b\n\
            rules of IPv6 in the table mangle, by nft:\n";
        let observe = "observe: packets pass at once and unchanged\n";
        let held = "uploads of hosts are held to the budgets of their sessions; hosts without one share the rest\n";
        assert_eq!(text(&explained), [queues, observe, held, rest].concat());
        (explained["observe"], explained["enforce"]) = (json!(false), json!(false));
        let scone = "SCONE: flows of QUIC that ask for it are told their part\n";
        let free = "hosts get budgets, and nobody holds them to these (enforce = false)\n";
        assert_eq!(text(&explained), [queues, scone, free, rest].concat());
        (explained["scone"], explained["enforce"]) = (json!(false), Value::Null);
        assert_eq!(text(&explained), [queues, rest].concat());
    }

    #[test]
    fn people_read_what_would_be_in_the_kernel() {
        let text = "datapath = 'kernel'\n[interfaces]\nwan = 'w0'\n[link]\nrate = '20Mbit/s'\n\
            reverse_rate = '2500kbit/s'\nlimit = '150p'\n";
        let explained = in_the_kernel(&File::parse(text, "f").unwrap());
        let expected = "download, from the WAN: pink at 20 Mbit/s before a queue of 150p\n\
            upload, to the WAN: pink at 2.5 Mbit/s before a queue of 150p\n\
            programs `outward` and `inward` at w0, by TCX, or by filters of clsact where there is no TCX\n\
            they write windows into ACKs and drop nothing; without a sign of life for 1 s they pass everything untouched\n\
            memory: 20 MB in the kernel for 65536 connections\n";
        assert_eq!(kernel_text(&explained), expected);
        let held = kernel_text(&json!({"wan": "w0", "enforced_at": "l0"}));
        assert!(held.contains("`answer` at l0, by TCX: they drop what hosts send to w0 "), "{held}");
    }
}
