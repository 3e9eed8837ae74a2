//! Penstock's algorithms: sans-IO state machines that judge, schedule and rewrite packets.
//!
//! Nothing here reads a clock, a socket, a thread or a global random source. Follow one packet by opening the files
//! in this order:
//!
//! 1. [`units`]: time, span, size, rate; [`rng`]: named random streams.
//! 2. [`packet`]: what an algorithm may see of a packet; [`rtt`]: round trip times as a gateway sees them.
//! 3. [`qdisc`]: the trait of queue disciplines, drop reasons, conservation; [`judge`]: the trait of AQMs; [`ack_path`]: that
//!    of elements which see both directions; [`fact`]: what they are told of the world; [`queue`]: the shared FIFO.
//! 4. [`config`]: configurations validate themselves and build what they describe; [`listing`]: what is said of each.
//! 5. [`aqm`]: the algorithms that judge packets in a queue.
//! 6. [`sched`]: whose turn it is; [`fq`]: flow queueing, a queue and an AQM for each flow; [`csi`]: what a scheduler knows
//!    of a radio channel.
//! 7. [`ack`]: elements that see both directions and edit ACKs (PINK), or read them (QRM).
//! 8. [`cc`]: congestion control.
//! 9. [`coop`]: nodes and a gateway agree on who may send how much.
//! 10. [`wire`]: the same views over real bytes.
//! 11. [`registry`]: every algorithm by name; parsing, docs and bindings read it; [`settings`] and
//!     [`key_value`]: parameters from `key=value` texts; [`suggest`]: "did you mean"; [`foreign`]: algorithms that are not
//!     here, found by a library.
//!
//! A file imports what stands in earlier steps or in its own, never in later ones; the registry imports all.
//!
//! A discipline is built from its configuration. The owner hands it the time, packets and random numbers, and asks when to
//! call again:
//!
//! ```
//! use penstock_core::config::LinkFacts;
//! use penstock_core::packet::{Ecn, FlowId, NoTcp, Packet};
//! use penstock_core::qdisc::Qdisc;
//! use penstock_core::registry::AnyConfig;
//! use penstock_core::rng::Streams;
//! use penstock_core::units::{Bytes, Instant, Limit, Rate};
//!
//! struct Datagram;
//!
//! impl Packet for Datagram {
//!     type Tcp = NoTcp;
//!
//!     fn size(&self) -> Bytes {
//!         Bytes::new(1000)
//!     }
//!     fn flow(&self) -> FlowId {
//!         FlowId(0)
//!     }
//!     fn ecn(&self) -> Ecn {
//!         Ecn::NotEct
//!     }
//!     fn mark_ce(&mut self) {}
//!     fn tcp(&mut self) -> Option<&mut NoTcp> {
//!         None
//!     }
//! }
//!
//! let link = LinkFacts { rate: Rate::from_bps(1_000_000), limit: Limit::Packets(100) };
//! let mut queue = AnyConfig::default_of("codel").unwrap().build(&link);
//! let mut rng = Streams::new(1).get("example/codel");
//! let mut now = Instant::ZERO;
//! // Two packets come while one leaves, so the queue stands and CoDel begins to drop from its head.
//! for _ in 0..60 {
//!     queue.enqueue(Datagram, now, &mut rng, &mut ());
//!     queue.enqueue(Datagram, now, &mut rng, &mut ());
//!     queue.dequeue(now, &mut rng, &mut ());
//!     now += link.rate.time_for(Bytes::new(1000));
//! }
//! let stats = queue.stats();
//! assert_eq!(stats.arrived.packets, 120);
//! assert!(stats.dropped_dequeue.packets > 0);
//! stats.check(queue.backlog()).unwrap();
//! ```

#![cfg_attr(not(test), deny(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

pub mod ack;
pub mod ack_path;
pub mod aqm;
pub mod cc;
mod classify;
pub mod config;
pub mod coop;
pub mod csi;
pub mod fact;
pub mod foreign;
pub mod fq;
pub mod judge;
pub mod key_value;
pub mod listing;
pub mod packet;
pub mod qdisc;
pub mod queue;
mod recency;
mod redistribution;
pub mod registry;
pub mod rng;
pub mod rtt;
pub mod sched;
pub mod settings;
mod slab;
pub mod suggest;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod units;
pub mod wire;
