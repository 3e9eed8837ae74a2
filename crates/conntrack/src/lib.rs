//! A table of connections that survives hostility: what passes a gateway, in a fixed number of lines.
//!
//! Follow one packet: [`segment`] reads it, [`table`] answers; `half` are connections whose SYN was seen, `entry` those
//! whose data were acknowledged, `sets` the lines of both, [`subscribers`] who they belong to, `pool` the indices,
//! [`gauges`] what is counted. No part reads a clock or draws a number: the caller hands in the time and the secret keys.
//!
//! # Rules
//!
//! 1. Only TCP has lines. Every other packet gets an index by a keyed hash, out of a range of its own, as a fair queue
//!    needs it. Such packets are never shown to elements that read segments.
//! 2. A SYN is remembered in a ring of its own: fixed size, the newest overwrites the oldest (of those in the two sets
//!    that its hash selects), so a flood of SYNs overwrites the ring and nothing else.
//! 3. A connection gets a line when data are acknowledged that the table saw, after SYN, SYN-ACK and an ACK of both, with
//!    the right numbers, each end on its own side of the gateway. Who sends from forged addresses cannot acknowledge what
//!    it does not see, and cannot play the other end.
//! 4. A line is free at once after an RST with the exact number of its sender, after the ACK of the second FIN, and after
//!    `idle` without a segment that fits. The line of a segment that does not fit is left as it is.
//! 5. A newcomer always gets a line. If its subscriber has `quota` lines, one of its own goes. If both sets of its hash
//!    are full, the line goes that was silent for longest, of the subscriber with most lines among those in both sets.
//!    (Who never had data acknowledged has no line to lose.)
//! 6. An index belongs to one connection at a time, from its SYN until it is freed; it passes to another one with
//!    [`fresh`](table::Seen::fresh), which the owner tells as [`Fact::FlowGone`](penstock_core::fact::Fact::FlowGone).
//!
//! # What elements see of a connection that opens
//!
//! PINK needs both window scales, both MSS options and the round trip time of the handshake, and limits the first flight
//! by the window of the SYN-ACK. So a half-open connection has an index, which it keeps when it becomes an entry, and its
//! handshake is shown. Its first data are not: what asks once and goes, a thousand times a second, must not count as a
//! flow that may use its share. When data are acknowledged, the begin with these data is handed over
//! ([`Opening`](penstock_core::fact::Opening)), and everything is shown from there on.
//!
//! At most `shown` half-open connections have an index. Those which come while more are half-open, as in a flood, are only
//! remembered, and their handshake is handed over with their first data. The price in a flood is that a first flight
//! passes as if there were no PINK. Indices are taken from one pool, so they are dense and need no renumbering.
//!
//! # Cost
//!
//! A look-up is a hash, one or two heads of 64 bytes, a line of 64 bytes, and the heads of two sets in order (for what is
//! idle). Nothing is allocated after the start, there are no lists, and a victim is found among 16 lines. The quota walks
//! heads and lines until it finds one of its own. With the default sizes 16 MB are used.

#![cfg_attr(not(test), deny(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

mod config;
mod entry;
pub mod gauges;
mod half;
pub mod hardware;
mod mac;
mod pool;
pub mod segment;
mod sets;
pub mod subscribers;
pub mod table;

pub use config::Config;
pub use gauges::Gauges;
pub use mac::Mac;
pub use penstock_core::siphash::SipHash;
pub use segment::{Arrived, Segment};
pub use subscribers::{Named, Prefix, PrefixError, STRANGERS, Subscribers};
pub use table::{FlowTable, Seen, State};
