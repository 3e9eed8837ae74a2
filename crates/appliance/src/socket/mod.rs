//! The control socket: how one asks an appliance that runs (`status`, `top`) and changes it (`set`).
//!
//! One versioned protocol for all appliances, which docs/reference/control-socket.md describes. Read the files in this order:
//!
//! 1. [`message`] has requests and answers: one line of JSON each. Reading one never panics.
//! 2. [`place`] has the paths at which appliances listen, and finds those that do.
//! 3. [`server`] listens without ever blocking: its owner polls it beside its packets.
//! 4. [`client`] asks one question and waits for the answer.

pub mod client;
pub mod message;
pub mod place;
pub mod server;
