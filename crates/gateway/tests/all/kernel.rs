//! The kernel data path on a router between namespaces, with real TCP.

use crate::lab::{Lab, signed, transfer};
use nix::sys::signal::Signal;
use penstock_linux::bpf::datapath::{Hook, programs_at};
use penstock_linux::testing::{bpf, wait_until};

/// A FIFO of the product of rate and delay: 10 Mbit/s, 100 ms.
const PRODUCT: &str = "--rate 10Mbit/s --delay 50ms --limit 125kB --reverse-limit 125kB";
const QUICK: &str = "--rate 10Mbit/s --delay 1ms";
const FILE: &str =
    "datapath = \"kernel\"\n[interfaces]\nwan = \"eth0\"\n[link]\nrate = \"10Mbit/s\"\nlimit = \"125kB\"\n";

/// Makes the network; `None` if this cannot be tested here.
fn lab(link: &str) -> Option<Lab> {
    bpf()?;
    Lab::new(link)
}

/// Names of the programs at the interface to the link.
fn programs(lab: &Lab) -> Vec<String> {
    let found = || {
        let hooks = [Hook::Egress, Hook::Ingress];
        hooks.into_iter().flat_map(|hook| programs_at("eth0", hook).unwrap_or_default()).collect()
    };
    lab.run("r", found)
}

/// Eight uploads and two downloads over a FIFO of one product behind PINK: no packet is dropped, and it stays short.
#[test]
fn pink_in_the_kernel_governs_real_tcp_without_a_drop() {
    let Some(mut lab) = lab(PRODUCT) else { return };
    let gateway = lab.govern(FILE);
    assert_eq!(programs(&lab), ["outward", "inward"]);
    transfer(&lab, "-C reno -P 8 -t 6");
    transfer(&lab, "-C cubic -P 2 -t 4 -R");
    let status = gateway.end();
    let link = lab.end_link();
    assert_eq!((status["attached"].as_str(), status["marks"].to_string().as_str()), (Some("tcx"), "[]"), "{status}");
    assert_eq!(status["capacity"], 65_536);
    for way in ["forward", "reverse"] {
        let pink = &status[way]["pink"];
        assert!(pink["rewritten"].as_u64() > Some(300), "{way}: {pink}");
        // A late segment of a connection that has ended is implausible.
        let [started, acks, odd] = ["started", "acks", "implausible"].map(|key| pink[key].as_u64().unwrap());
        assert!(started >= 4 && odd * 100 < acks, "{way}: {pink}");
    }
    let p90 = [link.forward.sojourn_ms.p90, link.reverse.sojourn_ms.p90];
    assert!(p90[0] < 60.0, "eight flows of Reno alone keep 125 kB waiting, which is 100 ms: {p90:?}");
    if link.disturbed {
        return eprintln!("disturbed: {:?}", link.disturbed_by);
    }
    let dropped =
        [&link.forward, &link.reverse].map(|way| (way.dropped.early, way.dropped.overflow, way.dropped.dequeue));
    assert_eq!(dropped, [(0, 0, 0); 2]);
    assert!(p90[0] <= 30.0, "{p90:?}");
}

#[test]
fn signed_connections_pass_untouched() {
    let Some(lab) = lab(QUICK) else { return };
    let gateway = lab.govern(FILE);
    assert_eq!(signed(&lab), [1_000_000, 0]);
    let status = gateway.end();
    assert!(status["table"]["signed"].as_u64() > Some(20), "offloads merge segments: {status}");
    assert_eq!(
        (&status["table"]["numbered"], &status["forward"]["pink"]["started"]),
        (&0.into(), &0.into()),
        "{status}"
    );
}

/// Links go with the process; a process that hangs lets everything pass, and governs again when it runs.
#[test]
fn the_programs_go_with_the_process_and_pass_all_when_it_hangs() {
    let Some(lab) = lab(QUICK) else { return };
    let gateway = lab.govern(FILE);
    transfer(&lab, "-t 1");
    let written = || lab.status()["reverse"]["pink"]["rewritten"].as_u64().unwrap();
    let before = written();
    assert!(before > 0);
    gateway.send(Signal::SIGSTOP);
    std::thread::sleep(std::time::Duration::from_millis(1200));
    transfer(&lab, "-t 1");
    gateway.send(Signal::SIGCONT);
    assert_eq!(written(), before, "nothing is written without a sign of life");
    wait_until("it tells that it hung", || lab.status()["events"].to_string().contains("hung"));
    transfer(&lab, "-t 1");
    assert!(written() > before);
    assert!(lab.set(&["set", "rate=8Mbit/s", "reverse_rate=3Mbit/s"]).0);
    assert_eq!(lab.status()["reverse"]["rate_bps"], 3_000_000);
    let (done, said) = lab.set(&["set", "discipline.c=0.9"]);
    assert!(!done && said.contains("pink keeps state"), "{said}");
    gateway.kill();
    wait_until("no program is left", || programs(&lab).is_empty());
    transfer(&lab, "-t 1");
}

#[test]
fn an_interface_that_is_down_is_told_until_it_is_up() {
    let Some(lab) = lab(QUICK) else { return };
    let gateway = lab.govern(FILE);
    for (state, told) in [("down", true), ("up", false)] {
        lab.sh("r", &format!("ip link set eth0 {state}"));
        let is_told = || lab.status()["marks"].to_string().contains("the interface eth0 is down");
        wait_until(&format!("eth0 is {state}"), || is_told() == told);
    }
    gateway.end();
}

/// Packets that this process never sees are recorded as well, and `support` packs what the kernel tells.
#[test]
fn headers_are_recorded_and_support_is_packed() {
    let Some(lab) = lab(QUICK) else { return };
    let gateway = lab.govern(FILE);
    let (done, said) = std::thread::scope(|threads| {
        let run = threads.spawn(|| lab.set(&["record", "3s", "--out", "r.pcap"]));
        std::thread::sleep(std::time::Duration::from_millis(500));
        transfer(&lab, "-t 1");
        run.join().unwrap()
    });
    assert!(done && said.contains("packets of eth0 in r.pcap, headers only"), "{said}");
    let packets: u64 = said.split(' ').next().unwrap().parse().unwrap();
    assert!(packets > 20, "{said}");
    let (done, said) = lab.set(&["support", "gateway.toml", "--out", "s.tar.gz"]);
    assert!(done, "{said}");
    let text = lab.sh("r", "tar -xzOf s.tar.gz support/status.json support/gateway.toml support/log.jsonl");
    for expected in ["\"datapath\": \"kernel\"", "datapath = \"kernel\"", "\"do\":\"start\""] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    gateway.end();
}
