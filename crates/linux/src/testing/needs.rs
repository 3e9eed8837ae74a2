//! What a machine must have for tests with real packets.

use crate::bpf::{Control, Datapath, MISSING};
use std::fmt::Display;
use std::path::Path;
use std::process::{Command, Stdio};

/// What every testbed runs.
const PROGRAMS: [&str; 4] = ["ip", "nsenter", "ss", "timeout"];

/// Returns why no testbed can be made here, of which a test also needs these programs; `None` if it can.
pub fn impossible(programs: &[&str]) -> Option<String> {
    if !nix::unistd::geteuid().is_root() {
        return Some("not root".into());
    }
    if !Path::new("/dev/net/tun").exists() {
        return Some("no /dev/net/tun".into());
    }
    let found = |program: &&str| {
        let asked = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        asked.is_ok()
    };
    PROGRAMS.iter().chain(programs).find(|program| !found(program)).map(|program| format!("no {program}"))
}

/// Tells why a test is not run; returns nothing: `return skip(why)` ends it.
pub fn skip<Nothing: Default>(why: impl Display) -> Nothing {
    eprintln!("SKIPPED: {why}");
    Nothing::default()
}

/// Returns something if programs can be loaded into the kernel; else tells why not. It panics if the verifier refuses them, or
/// if they cannot be loaded although `PENSTOCK_BPF_NEEDED` is 1.
pub fn bpf() -> Option<()> {
    if !MISSING.is_empty() {
        return skip(MISSING);
    }
    match Datapath::load(Control::new(1, [0; 2], Default::default())) {
        Ok(_) => Some(()),
        Err(error) => {
            assert!(!std::env::var("PENSTOCK_BPF_NEEDED").is_ok_and(|v| v == "1"), "{error}");
            assert!(!error.is_of_verifier(), "{error}");
            skip(error)
        }
    }
}
