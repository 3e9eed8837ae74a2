//! Several wires in one process: two links in a row between three namespaces.

use crate::lab::EMULATOR;
use nix::sys::signal::Signal;
use penstock_linux::testing::{Ended, PATIENCE, Program, Testbed};
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Output};

/// The namespaces a, b and c, of which b forwards.
fn testbed() -> Option<Testbed> {
    let bed = Testbed::new(&["a", "b", "c"], &[])?;
    bed.forward("b");
    Some(bed)
}

/// Path of something of a testbed.
fn path(bed: &Testbed, name: &str) -> String {
    bed.file(name).to_str().unwrap().to_owned()
}

/// A file of two wires.
fn text(bed: &Testbed) -> String {
    let wire = |name: &str, [left, right]: [&str; 2], net: u8| {
        let socket = path(bed, &format!("{name}.sock"));
        let end = |side: &str, interface: &str, host: u8| {
            let netns = bed.namespace(side);
            format!("{{ netns = {netns:?}, interface = {interface:?}, address = \"10.66.{net}.{host}/24\" }}")
        };
        format!(
            "[[wire]]\nname = {name:?}\nsocket = {socket:?}\nlink = {{ rate = \"10Mbit/s\", delay = \"1ms\" }}\n\
             aqm = {{ name = \"codel\" }}\nleft = {}\nright = {}\n",
            end(left, "out", 1),
            end(right, "in", 2)
        )
    };
    format!("seed = 1\nduration = \"60s\"\n{}{}", wire("first", ["a", "b"], 1), wire("second", ["b", "c"], 2))
}

fn command(bed: &Testbed, text: &str) -> Command {
    let file = bed.file("wires.toml");
    std::fs::write(&file, text).unwrap();
    let mut command = Command::new(EMULATOR);
    command.arg("--config").arg(&file).arg("--json");
    command
}

/// Starts both wires, and makes the routes; returns how many bytes were said until then, too.
fn start(bed: &Testbed) -> (Program, usize) {
    let last = format!("control socket {}", path(bed, "second.sock"));
    let program = Program::ready(command(bed, &text(bed)), &[&last]);
    let told = program.said();
    let said: Vec<&str> = told.lines().collect();
    assert!(said.len() == 3 && said[0] == "ready: 2 wires; Ctrl-C ends the run", "{said:?}");
    assert!(said[1].starts_with("  first: out 10.66.1.1 -> in 10.66.1.2; there 10Mbit/s"), "{said:?}");
    assert!(said[2].ends_with(&last), "{said:?}");
    bed.sh("a", "ip route add 10.66.2.0/24 dev out");
    bed.sh("c", "ip route add 10.66.1.0/24 dev in");
    (program, told.len())
}

/// The reports of both wires.
fn reports(ended: &Ended) -> Value {
    let last = ended.stdout.lines().last().unwrap_or_default();
    let reports: Value = serde_json::from_str(last).unwrap_or_else(|e| panic!("{e}: {ended:?}"));
    reports["wires"].clone()
}

fn ask(socket: &str, words: &[&str]) -> Output {
    let mut command = Command::new(EMULATOR);
    command.args(&words[..1]).args(["--socket", socket]).args(&words[1..]).output().unwrap()
}

#[test]
fn packets_pass_two_wires_of_one_process_and_each_reports() {
    let Some(bed) = testbed() else { return };
    let (mut running, before) = start(&bed);
    let from = bed.udp("a", "10.66.1.1:0");
    let to = bed.udp("c", "10.66.2.2:9");
    to.set_read_timeout(Some(PATIENCE)).unwrap();
    for number in 0..20u8 {
        from.send_to(&[number; 400], "10.66.2.2:9").unwrap();
        let mut got = [0; 500];
        assert_eq!(to.recv_from(&mut got).unwrap().0, 400);
        assert_eq!(got[399], number);
    }
    let set = ask(&path(&bed, "second.sock"), &["set", "rate=2Mbit/s"]);
    assert!(set.status.success(), "{}", String::from_utf8_lossy(&set.stderr));
    let asked = ask(&path(&bed, "first.sock"), &["status", "--json"]);
    let first: Value = serde_json::from_slice(&asked.stdout).unwrap();
    assert_eq!((&first["wire"], &first["forward"]["rate_bps"]), (&"first".into(), &10_000_000.into()));

    // The report of each wire meanwhile.
    running.signal(Signal::SIGUSR1);
    let mut printed = BufReader::new(running.stdout.take().unwrap());
    let mut told: Vec<String> = (0..2)
        .map(|_| {
            let mut line = String::new();
            printed.read_line(&mut line).unwrap();
            let report: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(report["ended"], "running");
            report["wire"].as_str().unwrap().to_owned()
        })
        .collect();
    told.sort();
    assert_eq!(told, ["first", "second"]);
    running.stdout = Some(printed.into_inner());

    running.signal(Signal::SIGINT);
    let ended = running.ended();
    assert_eq!((ended.code, &ended.stderr[before..]), (Some(0), ""));
    let wires = reports(&ended);
    let names: Vec<&Value> = wires.as_array().unwrap().iter().map(|wire| &wire["wire"]).collect();
    assert_eq!(names, ["first", "second"]);
    for (wire, rate, changes) in [(&wires[0], 10_000_000, 0), (&wires[1], 2_000_000, 1)] {
        assert_eq!(wire["ended"], "SIGINT");
        assert_eq!(wire["forward"]["aqm"], "codel");
        assert_eq!(wire["forward"]["rate_bps"], rate);
        assert_eq!(wire["changes"].as_array().unwrap().len(), changes);
        // Each datagram has 28 bytes of headers. The kernels may send packets of their own.
        let delivered = &wire["forward"]["delivered"];
        assert!(delivered["packets"].as_u64().unwrap() >= 20 && delivered["bytes"].as_u64().unwrap() >= 20 * 428);
    }
    assert_eq!((&wires[0]["seed"], &wires[1]["seed"]), (&1.into(), &2.into()));
}

#[test]
fn a_wire_that_fails_ends_all_with_their_reports() {
    let Some(bed) = testbed() else { return };
    let (running, before) = start(&bed);
    bed.sh("c", "ip link delete in");
    let ended = running.ended();
    assert_eq!(ended.code, Some(1));
    let said = &ended.stderr[before..];
    assert!(said.starts_with("error: wire second: cannot read from the interface in"), "{said}");
    let wires = reports(&ended);
    assert_eq!(wires[0]["ended"], "SIGTERM");
    assert!(wires[1]["ended"].as_str().unwrap().contains("was it removed?"));
}

#[test]
fn all_wires_are_opened_or_none() {
    let Some(bed) = testbed() else { return };
    let refused = |text: &str| {
        let Output { status, stdout, stderr } = command(&bed, text).output().unwrap();
        assert_eq!((status.code(), stdout.len()), (Some(2), 0));
        String::from_utf8(stderr).unwrap()
    };
    let nowhere = refused(&text(&bed).replace(&format!("{:?}", bed.namespace("c")), "\"nowhere-at-all\""));
    assert!(nowhere.starts_with("error: there is no network namespace") && nowhere.contains("nowhere-at-all"));
    assert_eq!(bed.sh("a", "ip link show out || echo none"), "none\n", "nothing is left of the first wire");
    let key = refused(&text(&bed).replacen("aqm =", "amq =", 1));
    assert!(key.contains("wires.toml:7:1") && key.contains("did you mean `aqm`?"), "{key}");
    let both = command(&bed, &text(&bed)).args(["--rate", "1Mbit/s"]).output().unwrap();
    assert!(String::from_utf8_lossy(&both.stderr).starts_with("error: --rate is for one wire"));
}
