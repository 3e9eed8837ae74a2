//! The life of a link: its interface goes and comes, and what passes beside the gateway is told.

use crate::lab::{Gateway, Lab, passes};
use crate::link::body;
use nix::sys::signal::Signal;
use penstock_core::rng::Rng;
use penstock_linux::testing::{bpf, wait_until};
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const ROUTER: &str = "patience = \"10s\"\n[interfaces]\nwan = \"eth0\"\n[link]\nrate = \"10Mbit/s\"\n\
                      [discipline]\nname = \"fq-codel\"\n";
const KERNEL: &str =
    "datapath = \"kernel\"\n[interfaces]\nwan = \"eth0\"\n[link]\nrate = \"10Mbit/s\"\nlimit = \"125kB\"\n";
const BRIDGE: &str = "mode = \"bridge\"\npatience = \"10s\"\n[interfaces]\nwan = \"eth0\"\nlan = \"eth1\"\n\
                      [link]\nrate = \"10Mbit/s\"\n[discipline]\nname = \"fq-codel\"\n";

/// Waits until the status has this state and, if it governs, nothing is wrong; returns for how long that took.
fn until(lab: &Lab, state: &str) -> Duration {
    let (begin, mut status) = (Instant::now(), Value::Null);
    wait_until(&format!("it is {state}"), || {
        status = lab.status();
        status["state"] == state && (state != "governing" || status["marks"] == serde_json::json!([]))
    });
    begin.elapsed()
}

fn came(lab: &Lab) -> u64 {
    lab.status()["reverse"]["arrived"]["packets"].as_u64().unwrap()
}

/// Asserts that packets pass, and that the gateway has them.
fn governs(lab: &Lab, to: &str) {
    let took = until(lab, "governing");
    assert!(took < Duration::from_secs(5), "{took:?}");
    let from = "0.0.0.0:0";
    let (client, server) = (lab.socket("c", from), lab.socket("s", to));
    let before = came(lab);
    wait_until("packets pass the gateway", || passes(&client, &server, to) && came(lab) > before);
}

const TO: &str = "10.77.0.2:9999";

/// The interface to the link is removed and made, has another name, and is down: each time it is governed again.
fn goes_and_comes(lab: &Lab, text: &str) {
    lab.dial();
    let gateway = lab.govern(text);
    governs(lab, TO);
    for _ in 0..2 {
        lab.sh("r", "ip link del eth0");
        until(lab, "waiting");
        assert!(lab.status()["marks"].to_string().contains("eth0 is gone"), "{}", lab.status());
        lab.dial();
        governs(lab, TO);
    }
    let line = "ip link set eth0 down; ip link set eth0 name other";
    lab.sh("r", line);
    until(lab, "waiting");
    lab.sh("r", "ip link set other name eth0");
    assert_eq!(lab.status()["state"], "waiting", "it is down");
    lab.sh("r", "ip link set eth0 up");
    governs(lab, TO);
    lab.sh("s", "ip link set eth0 down");
    until(lab, "waiting");
    assert!(lab.status()["marks"].to_string().contains("eth0 has no carrier"), "{}", lab.status());
    lab.sh("s", "ip link set eth0 up; ip route replace default via 10.77.0.1");
    governs(lab, TO);
    let status = gateway.end();
    assert_eq!(status["account"]["upload"]["beside_bytes"].as_u64().unwrap() / 10_000, 0, "{}", status["account"]);
}

#[test]
fn a_router_governs_an_interface_that_comes_back() {
    let Some(lab) = Lab::on_a_cable() else { return };
    goes_and_comes(&lab, ROUTER);
}

#[test]
fn the_kernel_governs_an_interface_that_comes_back() {
    if bpf().is_none() {
        return;
    }
    let Some(lab) = Lab::on_a_cable() else { return };
    goes_and_comes(&lab, KERNEL);
}

#[test]
fn a_bridge_governs_ports_that_come_back() {
    let Some(lab) = Lab::on_a_bridge() else { return };
    let gateway = lab.govern(BRIDGE);
    governs(&lab, TO);
    for (side, port, own) in [("s", "eth0", "10.77.0.2/24"), ("c", "eth1", "10.77.0.1/24")] {
        lab.sh("r", &format!("ip link del {port}"));
        until(&lab, "waiting");
        lab.veth([side, "eth0"], ["r", port]);
        lab.up(side, "eth0", &[own]);
        lab.sh("r", &format!("ip link set {port} up"));
        until(&lab, "open");
        lab.sh("r", &format!("ip link set {port} master br0"));
        governs(&lab, TO);
    }
    lab.sh("r", "ip link set eth1 nomaster");
    until(&lab, "open");
    assert!(lab.status()["marks"].to_string().contains("eth1 has left its bridge"), "{}", lab.status());
    lab.sh("r", "ip link set eth1 master br0");
    governs(&lab, TO);
    lab.sh("r", "ip link set eth0 down; ip link set eth0 name other");
    until(&lab, "waiting");
    lab.sh("r", "ip link set other name eth0; ip link set eth0 up");
    governs(&lab, TO);
    gateway.end();
}

#[test]
fn a_gateway_waits_for_its_interface() {
    for (text, needs_bpf) in [(ROUTER, false), (KERNEL, true)] {
        if needs_bpf && bpf().is_none() {
            return;
        }
        let Some(lab) = Lab::on_a_cable() else { return };
        let gateway = lab.start(&[], text, "waiting: the interface eth0 is gone:");
        assert!(gateway.0.said().contains("there is no interface \"eth0\""), "{}", gateway.0.said());
        assert_eq!(lab.status()["state"], "waiting");
        lab.dial();
        governs(&lab, TO);
        gateway.end();
    }
}

#[test]
fn a_bridge_waits_for_its_ports() {
    let Some(lab) = Lab::on_a_bridge() else { return };
    lab.sh("r", "ip link set eth0 down; ip link set eth0 name other");
    let gateway = lab.start(&[], BRIDGE, "waiting: the interface eth0 is gone:");
    lab.sh("r", "ip link set other name eth0; ip link set eth0 up");
    governs(&lab, TO);
    gateway.end();
}

/// Sends datagrams of 1028 bytes, 10 Mbit/s of IP, from the client while something is done.
fn flooded(lab: &Lab, work: impl FnOnce()) {
    /// Ends the flood, also if the work panics.
    struct Ends<'a>(&'a AtomicBool);
    impl Drop for Ends<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let (client, over) = (lab.socket("c", "0.0.0.0:0"), AtomicBool::new(false));
    std::thread::scope(|threads| {
        threads.spawn(|| {
            let (begin, mut sent) = (Instant::now(), 0u32);
            while !over.load(Ordering::Relaxed) {
                while f64::from(sent) < begin.elapsed().as_secs_f64() * 1250.0 {
                    let _ = client.send_to(&[7; 1000], TO);
                    sent += 1;
                }
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        let _ends = Ends(&over);
        work();
    });
}

/// How often an interface goes and comes; `PENSTOCK_REDIALS=50` is the long form.
fn redials() -> u32 {
    std::env::var("PENSTOCK_REDIALS").map_or(3, |many| many.parse().expect("PENSTOCK_REDIALS is a number"))
}

/// Under load an interface goes at random moments and stays away for a random time. Each time it is governed again within five
/// seconds, no answer says so while it is away for more than a second, and what passes meanwhile is told.
fn comes_back_each_time(lab: &Lab, text: &str, port: &str, dial: impl Fn()) {
    let gateway = lab.govern(text);
    governs(lab, TO);
    let (mut rng, mut worst) = (Rng::split_mix(u64::from(std::process::id())), Duration::ZERO);
    let mut random = |below: f64| Duration::from_secs_f64(below * rng.uniform());
    flooded(lab, || {
        for _ in 0..redials() {
            std::thread::sleep(random(1.5));
            lab.sh("r", &format!("ip link del {port}"));
            let (gone, away) = (Instant::now(), random(2.5));
            while gone.elapsed() < away {
                let status = lab.status();
                let late = gone.elapsed() > Duration::from_secs(1);
                assert!(!late || status["state"] != "governing", "{:?} after it went: {status}", gone.elapsed());
                std::thread::sleep(Duration::from_millis(100));
            }
            dial();
            let took = until(lab, "governing");
            assert!(took < Duration::from_secs(5), "{took:?}");
            worst = worst.max(took);
        }
    });
    println!("{} times it came back; the longest time until it was governed was {worst:?}", redials());
    assert_eq!(lab.status()["marks"], serde_json::json!([]), "nothing is wrong any more");
    gateway.end();
}

#[test]
fn a_router_governs_each_time_under_load() {
    let Some(lab) = Lab::on_a_cable() else { return };
    lab.dial();
    comes_back_each_time(&lab, ROUTER, "eth0", || lab.dial());
}

#[test]
fn the_kernel_governs_each_time_under_load() {
    if bpf().is_none() {
        return;
    }
    let Some(lab) = Lab::on_a_cable() else { return };
    lab.dial();
    comes_back_each_time(&lab, KERNEL, "eth0", || lab.dial());
}

#[test]
fn a_bridge_governs_each_time_under_load() {
    let Some(lab) = Lab::on_a_bridge() else { return };
    comes_back_each_time(&lab, BRIDGE, "eth0", || {
        lab.veth(["s", "eth0"], ["r", "eth0"]);
        lab.up("s", "eth0", &["10.77.0.2/24"]);
        lab.sh("r", "ip link set eth0 up; ip link set eth0 master br0");
    });
}

/// Waits until the account is that of the kernel: what went through and beside is what the interface has sent. Returns
/// the account of the upload.
fn agrees(lab: &Lab, before: u64) -> Value {
    std::thread::sleep(Duration::from_millis(1500));
    let (kernel, status) = ((lab.sent_to_link() - before) as f64, lab.status());
    let account = &status["account"]["upload"];
    let of = |key: &str| account[key].as_f64().unwrap();
    let delivered = status["reverse"]["delivered"]["bytes"].as_f64().unwrap_or(of("through_bytes"));
    for (what, sum) in [("account", of("through_bytes") + of("beside_bytes")), ("own", delivered + of("beside_bytes"))]
    {
        assert!((sum / kernel - 1.0).abs() < 0.001, "{what}: {sum} of {kernel}: {status}");
    }
    let causes: f64 = account["causes"].as_object().unwrap().values().map(|bytes| bytes.as_f64().unwrap()).sum();
    assert_eq!(causes, of("beside_bytes"), "{account}");
    account.clone()
}

/// What passes while the process is stopped for four seconds is told, by bytes and seconds.
fn hangs(lab: &Lab, gateway: &Gateway, seconds: f64) {
    let before = lab.sent_to_link();
    let mut status = Value::Null;
    flooded(lab, || {
        std::thread::sleep(Duration::from_secs(2));
        gateway.send(Signal::SIGSTOP);
        std::thread::sleep(Duration::from_secs(4));
        gateway.send(Signal::SIGCONT);
        std::thread::sleep(Duration::from_secs(1));
        status = lab.status();
    });
    assert_eq!(status["state"], "partly", "{status}");
    assert!(status["marks"].to_string().contains("passed beside the shaper: this process did not run"), "{status}");
    assert!(status["marks"].to_string().contains("starved: this process did not run for"), "{status}");
    let account = agrees(lab, before);
    let hung = account["causes"]["hung"].as_f64().unwrap();
    // A busy machine stops the process at other times, too: they are told as well, and are opened as well.
    let told = lab.status();
    let (open, stalled) = (told["past"]["open_s"].as_f64().unwrap(), &told["stalled"]);
    let (longest, total) = (stalled["longest_s"].as_f64().unwrap(), stalled["total_s"].as_f64().unwrap());
    assert!((longest - 4.0).abs() < 0.3, "{stalled}");
    assert!(open > seconds - 0.3 && open < seconds + 0.3 + total - longest, "{} {stalled}", told["past"]);
    let expected = open * 1250.0 * 1028.0;
    assert!((hung / expected - 1.0).abs() < 0.15, "{hung} of {expected}: {account}");
    assert_eq!(told["account"]["seconds"]["hung"].as_f64(), Some(open));
}

#[test]
fn four_seconds_without_the_process_are_told_as_four_seconds() {
    let Some(lab) = Lab::on_a_cable() else { return };
    lab.dial();
    let gateway = lab.govern(&(ROUTER.replace("10s", "100ms").replace("10Mbit/s", "20Mbit/s") + "[page]\n"));
    hangs(&lab, &gateway, 3.9);
    let status = lab.status();
    let answer = lab.page("GET /metrics HTTP/1.1");
    let metrics = body(&answer);
    let account = &status["account"];
    let state = status["state"].as_str().unwrap();
    for (name, value) in [
        (format!("state{{state=\"{state}\"}}"), 1.0),
        ("beside_bytes_total{direction=\"upload\"}".into(), account["upload"]["beside_bytes"].as_f64().unwrap()),
        ("beside_seconds_total{cause=\"hung\"}".into(), account["seconds"]["hung"].as_f64().unwrap()),
    ] {
        let line = metrics.lines().find_map(|line| line.strip_prefix(&format!("penstock_gateway_{name} ")));
        let told: f64 = line.unwrap_or_else(|| panic!("{name}: {metrics}")).parse().unwrap();
        assert!((told - value).abs() <= 0.001 * value, "{name}: {told} and {value}");
    }
    assert!(gateway.0.said().contains("partly: "), "the log: {}", gateway.0.said());
}

/// A process that gets a processor now and then: the queue of the kernel is full, and packets pass.
#[test]
fn what_passes_a_starved_process_is_told() {
    let Some(lab) = Lab::on_a_cable() else { return };
    lab.dial();
    let gateway = lab.govern(&ROUTER.replace("rate = \"10Mbit/s\"", "rate = \"20Mbit/s\"\nlimit = \"10p\""));
    let before = lab.sent_to_link();
    let mut marks = Value::Null;
    flooded(&lab, || {
        for _ in 0..5 {
            gateway.send(Signal::SIGSTOP);
            // The kernel holds 1034 packets, of which 1250 come in a second.
            std::thread::sleep(Duration::from_millis(1500));
            gateway.send(Signal::SIGCONT);
            std::thread::sleep(Duration::from_millis(300));
        }
        std::thread::sleep(Duration::from_secs(1));
        let status = lab.status();
        assert_eq!(status["state"], "partly", "{status}");
        marks = status["marks"].clone();
    });
    assert!(marks.to_string().contains("starved"), "{marks}");
    let account = agrees(&lab, before);
    assert!(account["causes"]["full"].as_f64().unwrap() > 500e3, "{account}");
    gateway.end();
}

/// Rules before ours let all pass, as flow tables and virtual networks do: no rule is missing.
#[test]
fn what_others_let_pass_is_told() {
    let Some(lab) = Lab::on_a_cable() else { return };
    lab.dial();
    let gateway = lab.govern(ROUTER);
    lab.sh("r", "iptables-legacy -t mangle -I FORWARD -j ACCEPT");
    let before = lab.sent_to_link();
    flooded(&lab, || {
        until(&lab, "partly");
        assert!(lab.status()["marks"].to_string().contains("somebody lets them pass"), "{}", lab.status());
    });
    agrees(&lab, before);
    gateway.end();
}

/// Somebody flushes the firewall under load: that is seen within a second, the rules come back, and what passed is
/// told.
#[test]
fn what_passes_while_rules_are_missing_is_told() {
    let Some(lab) = Lab::on_a_cable() else { return };
    lab.dial();
    let gateway = lab.govern(&ROUTER.replace("10Mbit/s", "20Mbit/s"));
    let before = lab.sent_to_link();
    flooded(&lab, || {
        std::thread::sleep(Duration::from_secs(3));
        lab.sh("r", "iptables-legacy -t mangle -F");
        std::thread::sleep(Duration::from_secs(1));
        assert_ne!(lab.status()["state"], "governing", "{}", lab.status());
        wait_until("the rules are back", || lab.rules().contains("NFQUEUE"));
        std::thread::sleep(Duration::from_secs(1));
    });
    let account = agrees(&lab, before);
    assert!(account["causes"]["missing"].as_f64().unwrap() > 100e3, "{account}");
    gateway.end();
}
