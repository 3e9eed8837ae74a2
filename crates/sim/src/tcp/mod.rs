//! TCP as a modern host has it: sans-IO endpoints that are given segments and times and asked for segments.
//!
//! [`Endpoint`] is one side of a connection, both directions at once: it owns the handshake, the close and the
//! timers, and joins a `sender.rs` (windows, loss recovery) to a `receiver.rs` (reassembly, ACK policy). Which window
//! algorithm runs is the business of `penstock_core::cc`.

mod config;
mod endpoint;
mod ern;
mod needs;
mod prr;
mod rack;
mod ranges;
mod receiver;
mod rtt;
mod scoreboard;
mod sender;
mod sequence;
mod snapshot;

pub use config::{SillyWindow, TcpConfig};
pub use endpoint::{Endpoint, Role, State};
pub use snapshot::{Counters, Growth, Snapshot};
