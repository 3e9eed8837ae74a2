//! Cooperative control: a gateway tells the nodes behind it how much of its bottleneck each of them may use.
//!
//! This module is the protocol part of C²ML (dissertation *Communication Networks for Public Protection and Disaster
//! Relief Systems*, 2.2) with DyBRA (2.3). `docs/reference/c2lp.md` specifies the protocol. How a node keeps to its budget is
//! decided by its congestion control.
//!
//! Follow one client by opening the files in this order:
//!
//! 1. [`state`]: the signed state of a client, which travels with it; [`keys`]: the keys that sign it; [`floor`]: what it
//!    has in any case.
//! 2. [`message`]: the six messages and their encoding.
//! 3. [`client`]: joins, reports what it can use, and uses its budget as long as its lease runs.
//! 4. [`gateway`]: admits, answers and forgets clients, and broadcasts the levels.
//! 5. [`policy`]: the share of each client.
//!
//! All are state machines without a clock, a socket or randomness: each call takes messages and the time, and returns
//! messages and the time of the next call.

pub mod client;
pub mod floor;
pub mod gateway;
pub mod keys;
pub mod message;
pub mod policy;
pub mod state;

pub use floor::{Floor, Floors};
pub use keys::{Key, Keyring};
pub use state::{Claim, NodeId, Share, Signed, State, Status};
