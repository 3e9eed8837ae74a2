//! TCP as in a modern host: sans-IO endpoints which take segments and times and return segments.
//!
//! [`Endpoint`] is one side of a connection with both directions: it implements the handshake, the close and the
//! timers, and contains a sender (`sender.rs`: windows, loss recovery; `silent.rs` as long as there is nothing to send) and a
//! receiver (`receiver.rs`: reassembly, ACK policy). The algorithms of the congestion window are in `penstock_core::cc`.

mod accecn;
mod config;
mod ecn;
mod endpoint;
mod ern;
mod growing;
mod ledger;
mod needs;
mod peer;
mod prr;
mod quick;
mod rack;
mod ranges;
mod receiver;
mod rtt;
mod scone;
mod scoreboard;
mod sender;
mod sequence;
mod silent;
mod snapshot;

pub use config::{Acknowledging, ReceiveWindow, SillyWindow, TcpConfig, WithoutSack};
pub use ecn::{EcnLost, EcnUse};
pub use endpoint::{Endpoint, Outgoing, Role, State};
pub use snapshot::{Counters, Growth, Snapshot, TcpInfo};
