//! Answers keep their keys: `answers.txt` has those of a session that was recorded with the version before `crates/net` was
//! divided into today's crates. New keys may come.

use crate::lab::{EMULATOR, emulator, report};
use penstock_linux::testing::{Keys, Program, Testbed};
use serde_json::Value;

#[test]
fn an_emulator_keeps_the_keys_of_a_recorded_session() {
    let Some(bed) = Testbed::new(&["l", "r"], &["iperf3"]) else { return };
    let mut keys = Keys::default();
    let name = bed.name();
    let options = ["--rate", "10Mbit/s", "--delay", "5ms", "--aqm", "fq-codel", "--name", name];
    let running = Program::ready(emulator(&bed, &options), &["ready"]);
    bed.transfer("l", ["r", "10.77.0.2"], "-t 1");
    for words in [&["status"][..], &["top"], &["set", "rate=7Mbit/s"]] {
        let output = bed.command("l", &[&[EMULATOR], words, &["--json", "--name", name]].concat()).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        keys.note(words[0], &answer);
    }
    keys.note("run", &report(running));
    keys.has_all_of(include_str!("answers.txt"));
}
