//! The testbed of all tests with real packets: network namespaces, programs in them, and transfers between them. For tests
//! alone: what fails panics and says why.
//!
//! - [`Testbed`] has namespaces with unique names, a directory, and the lock by which runs do not disturb each other. All of it
//!   goes with the value, also in a panic. What a killed process left is found by its name ([`mark`]).
//! - [`Program`] is a program under test, which is waited for by what it prints.
//! - [`Transfer`] is one of iperf3.
//! - [`Keys`] are those of the answers of a session.
//! - [`has_examples`] looks at the help of a program.
//! - [`impossible`] says why nothing can be tested here, [`skip`] tells it.

mod bed;
mod keys;
mod needs;
mod program;
mod transfer;

pub use bed::Testbed;
pub use keys::Keys;
pub use needs::{bpf, impossible, skip};
pub use program::{Ended, Program};
pub use transfer::{Sender, Transfer};

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, Instant};

/// How long anything may take on a machine with much other work.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until something is so; panics if it is not within [`PATIENCE`].
pub fn wait_until(what: &str, mut is: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is() {
        assert!(begin.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Panics unless the command is well formed and the help of each verb has an example of it.
pub fn has_examples(command: &clap::Command) {
    command.clone().debug_assert();
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        let help = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
        let example = format!("{} {}", command.get_name(), verb.get_name());
        assert!(help.contains(&example), "no example: {example}");
    }
}

/// Returns the beginning of the names of all that this process makes, which tells who made it: `penstock-KIND-PID-START-SPACE`.
/// docs/tests.md describes it ("Testbeds"); `python/penstock/testbed.py` makes the same names, and finds by them what is left
/// of killed processes.
pub fn mark(kind: &str) -> String {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap(); // from field 3 on
    let start = fields.split(' ').nth(22 - 3).unwrap();
    let space = fs::metadata("/proc/self/ns/pid").unwrap().ino();
    format!("penstock-{kind}-{}-{start}-{space:x}", std::process::id())
}
