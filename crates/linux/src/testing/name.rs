//! Names that tell who made something. docs/architecture.md describes them ("Testbeds"); `python/penstock/testbed.py` makes the
//! same ones, and finds what is left of killed processes by them.

use std::fs;
use std::os::unix::fs::MetadataExt;

/// Returns the beginning of the names of all that this process makes: `penstock-KIND-PID-START-SPACE`.
pub fn mark(kind: &str) -> String {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap(); // from field 3 on
    let start = fields.split(' ').nth(22 - 3).unwrap();
    let space = fs::metadata("/proc/self/ns/pid").unwrap().ino();
    format!("penstock-{kind}-{}-{start}-{space:x}", std::process::id())
}
