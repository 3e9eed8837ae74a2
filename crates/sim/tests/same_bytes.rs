//! The same bytes on every machine: hashes of what examples give in two seconds, which were written once. On a computer of
//! another kind, in an emulator or in a page, `tools/check/same-bytes` compares with the same file.
//!
//! If results were meant to change: `PENSTOCK_WRITE=1 cargo test -p penstock-sim --test same_bytes`, and a line in
//! CHANGELOG.md that says why.

use penstock_core::units::Span;
use penstock_sim::{Scenario, Simulation};
use sha2::{Digest, Sha256};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Examples with different senders, disciplines and links.
const NAMES: [&str; 10] = [
    "changing-link",
    "cooperating-sessions",
    "dualpi2-prague-and-cubic",
    "fq-minstrel-pie-home",
    "handover",
    "lte-cell",
    "pie",
    "pie-overload",
    "red-ern-two-distances",
    "shadowed-satellite",
];

/// A file in memory.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn line(name: &str, what: &str, bytes: &[u8]) -> String {
    let hash: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{name} {what} {hash}\n")
}

/// The lines of one example: its summary, and the capture of its packets.
fn lines(name: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../examples/{name}.toml"));
    let text = std::fs::read_to_string(file).unwrap();
    let text = text.replacen("duration = \"", "duration = \"2s\" # \"", 1).replacen("warmup", "# warmup", 1);
    let scenario = Scenario::parse(&text, "scenario.toml").unwrap_or_else(|e| panic!("{e}"));
    let (mut simulation, kept) = (Simulation::new(&scenario), Kept::default());
    simulation.capture_to(Box::new(kept.clone()), &scenario).unwrap();
    while !simulation.advance(Span::MAX).unwrap() {}
    simulation.finish_capture().unwrap();
    let summary = serde_json::to_string(&simulation.summary()).unwrap();
    line(name, "summary", summary.as_bytes()) + &line(name, "packets", &kept.0.lock().unwrap())
}

#[test]
fn examples_give_the_bytes_that_were_written() {
    let now: String = NAMES.iter().map(|name| lines(name)).collect();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/same_bytes.txt");
    if std::env::var_os("PENSTOCK_WRITE").is_some() {
        std::fs::write(&golden, &now).unwrap();
    }
    let then = std::fs::read_to_string(&golden).unwrap();
    let changed: Vec<&str> = now.lines().filter(|line| !then.lines().any(|then| then == *line)).collect();
    assert!(
        changed.is_empty() && now.lines().count() == then.lines().count(),
        "{golden:?} has other bytes: {changed:#?}"
    );
}
