//! Answers keep their keys: `answers-*.txt` have those of a session that was recorded with the version before `crates/net` and
//! `crates/gateway` were divided into today's crates. New keys may come.

use crate::lab::{Lab, transfer};
use penstock_linux::testing::{Keys, bpf};
use serde_json::Value;

const LINK: &str = "--rate 10Mbit/s --delay 5ms";
const ROUTER: &str = "[interfaces]\nwan = \"eth0\"\n[link]\nrate = \"8Mbit/s\"\n";
const KERNEL: &str =
    "datapath = \"kernel\"\n[interfaces]\nwan = \"eth0\"\n[link]\nrate = \"8Mbit/s\"\nlimit = \"125kB\"\n";
const BRIDGE: &str = "mode = \"bridge\"\n[interfaces]\nwan = \"eth0\"\nlan = \"eth1\"\n[link]\nrate = \"8Mbit/s\"\n";
const SUBSCRIBERS: &str = "[subscribers.home]\nprefixes = [\"10.88.0.2/32\"]\nceiling = \"6Mbit/s\"\n";

/// Asks a verb with `--json`; it must be answered.
fn asked(lab: &Lab, keys: &mut Keys, of: &str, words: &[&str]) {
    let (done, said) = lab.set(&[words, &["--json"]].concat());
    assert!(done, "{words:?}: {said}");
    let answer: Value = serde_json::from_str(&said).unwrap();
    keys.note(&format!("{of} {}", words[0]), &answer);
}

/// A session with every verb that is answered from the control socket, beside real traffic.
fn session(lab: &Lab, keys: &mut Keys, of: &str, text: &str) {
    let gateway = lab.govern(text);
    transfer(lab, "-t 1");
    asked(lab, keys, of, &["set", "rate=7Mbit/s", "--for", "60s"]);
    asked(lab, keys, of, &["status"]);
    asked(lab, keys, of, &["rollback"]);
    // Programs of the kernel count no flows by rate, and say so.
    if of != "kernel" {
        asked(lab, keys, of, &["top"]);
    }
    let file = lab.file("gateway.toml");
    asked(lab, keys, of, &["apply", file.to_str().unwrap()]);
    keys.note(&format!("{of} run"), &gateway.end());
}

#[test]
fn a_router_and_the_kernel_keep_the_keys_of_a_recorded_session() {
    if bpf().is_none() {
        return;
    }
    let Some(lab) = Lab::new(LINK) else { return };
    let mut keys = Keys::default();
    session(&lab, &mut keys, "router", ROUTER);
    session(&lab, &mut keys, "kernel", KERNEL);
    session(&lab, &mut keys, "subscribers", &format!("{ROUTER}{SUBSCRIBERS}"));
    keys.has_all_of(include_str!("answers-router.txt"));
}

#[test]
fn a_bridge_keeps_the_keys_of_a_recorded_session() {
    let Some(lab) = Lab::on_a_bridge() else { return };
    let mut keys = Keys::default();
    session(&lab, &mut keys, "bridge", BRIDGE);
    keys.has_all_of(include_str!("answers-bridge.txt"));
}
