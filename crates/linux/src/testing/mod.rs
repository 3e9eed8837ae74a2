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
mod name;
mod needs;
mod program;
mod transfer;
mod verbs;

pub use bed::Testbed;
pub use keys::Keys;
pub use name::mark;
pub use needs::{bpf, impossible, skip};
pub use program::{Ended, Program};
pub use transfer::{Sender, Transfer};
pub use verbs::has_examples;

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
