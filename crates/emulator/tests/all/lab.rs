//! The emulator on a testbed, and what it reports.

use penstock_linux::testing::{Program, Testbed};
use serde_json::Value;
use std::process::Command;

pub const EMULATOR: &str = env!("CARGO_BIN_EXE_penstock-emulate");

/// The command of an emulator between the sides `l` and `r`. The duration is only for safety: the report comes at SIGTERM.
pub fn emulator(bed: &Testbed, arguments: &[&str]) -> Command {
    let mut command = Command::new(EMULATOR);
    command.args(["--left-netns", &bed.namespace("l"), "--right-netns", &bed.namespace("r"), "--json"]);
    if !arguments.contains(&"--duration") {
        command.args(["--duration", "60s"]);
    }
    command.args(arguments);
    command
}

/// Ends an emulator with the signal a user would send; returns its report.
pub fn report(emulator: Program) -> Value {
    let ended = emulator.end();
    assert_eq!(ended.code, Some(0), "{} {}", ended.stdout, ended.stderr);
    report_in(&ended.stdout)
}

/// Returns the last report in a text, in which every packet is accounted for.
pub fn report_in(text: &str) -> Value {
    let line = text.lines().rfind(|line| line.starts_with('{')).unwrap_or_else(|| panic!("no report in {text:?}"));
    let report: Value = serde_json::from_str(line).unwrap();
    for way in ["forward", "reverse"] {
        let of = |key: &str| number(&report, &format!("/{way}/{key}"));
        let ends = ["delivered/packets", "dropped/early", "dropped/overflow", "dropped/dequeue", "in_flight", "lost"];
        let all: u64 = ends.iter().map(|end| of(end)).sum::<u64>() + of("waiting/packets");
        assert_eq!(of("arrived/packets"), all, "{way}: {report}");
    }
    report
}

/// Returns a number of a report.
pub fn number(report: &Value, pointer: &str) -> u64 {
    report.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("{pointer}: {report}"))
}

/// Returns the hundredths of a second for which a process had a processor, and the policy by which it gets one: fields 14, 15
/// and 41 of proc_pid_stat(5).
pub fn processor(pid: u32) -> (u64, u64) {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap(); // from field 3 on
    let field = |number: usize| fields.split(' ').nth(number - 3).unwrap().parse::<u64>().unwrap();
    (field(14) + field(15), field(41))
}
