//! The simulator for a page in a browser: it opens a scenario, advances it in steps, tells what happens in rows of
//! numbers, and takes changes of the link while it goes on.
//!
//! Results are those of the native simulator: it is the same code, which uses whole numbers for time and its own
//! logarithms. Open the files in this order:
//!
//! 1. [`session`] is a run that somebody watches and steers.
//! 2. [`samples`] turns its state into rows of numbers for drawing.
//! 3. [`packets`] tells what became of single packets.
//! 4. [`edit`] sets values in the text of a scenario and leaves the rest of the text as it is.
//! 5. `exports.rs` has the functions that WebAssembly exports; only that target compiles it.

pub mod edit;
pub mod packets;
pub mod samples;
pub mod session;

#[cfg(target_arch = "wasm32")]
mod exports;

pub use session::{Mistake, Session};
