//! Cooperative control: the nodes behind a gateway are told how much of its bottleneck each may use.
//!
//! The protocol half of C²ML (dissertation *Communication Networks for Public Protection and Disaster Relief Systems*,
//! 2.2) and DyBRA (2.3). `docs/c2lp.md` specifies the protocol; what a node does with its budget is the business of its
//! congestion control.
//!
//! Follow one client by opening the files in this order:
//!
//! 1. [`state`]: what is known of a client and travels with it, signed; [`keys`]: what signs it.
//! 2. [`message`]: the six messages and their bytes.
//! 3. [`client`]: joins, tells what it can use, believes its budget as long as its lease runs.
//! 4. [`gateway`]: admits, answers, forgets, and tells everyone the levels.
//! 5. [`policy`]: who gets how much.
//!
//! All are state machines without a clock, a socket or randomness: messages and the time come in, messages and the time
//! of the next call go out.

pub mod client;
pub mod gateway;
pub mod keys;
pub mod message;
pub mod policy;
pub mod state;

pub use keys::{Key, Keyring};
pub use state::{Claim, NodeId, Share, Signed, State, Status};
