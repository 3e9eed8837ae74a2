//! Penstock's algorithms: sans-IO state machines that judge, schedule and rewrite packets.
//!
//! Nothing in this crate reads a clock, a socket or a global random source, or starts a thread. To follow one packet
//! through the code, open the files in this order:
//!
//! 1. [`units`]: time, span, size, rate; [`rng`]: named random streams.
//! 2. [`packet`]: what an algorithm may see of a packet; `rtt`: round trip times as a gateway sees them.
//! 3. [`qdisc`]: the trait of queue disciplines, drop reasons, conservation; `judge`: the trait of AQMs;
//!    `ack_path`: the trait of elements which see both directions; [`fact`]: what disciplines are told of the world;
//!    [`queue`]: the shared FIFO.
//! 4. [`config`]: configurations, which validate themselves and build an algorithm; [`listing`]: their description.
//! 5. [`aqm`]: the algorithms that judge packets in a queue.
//! 6. [`sched`]: schedulers, which choose the class or flow that is served next; [`fq`]: flow queueing, with a queue
//!    and an AQM for each flow; [`csi`]: what a scheduler knows of a radio channel; [`impair`]: what a link does to packets
//!    besides; [`server`]: a discipline and the transmitter that asks it.
//! 7. [`ack`]: elements that see both directions and edit ACKs (PINK), or read them (QRM).
//! 8. [`cc`]: congestion control.
//! 9. [`coop`]: protocols by which nodes and a gateway agree on the rate of each node.
//! 10. [`wire`]: the views of packets and segments over real bytes; [`advice`]: what flows of QUIC are told;
//!     [`emodel`]: the quality of a call; [`estimate`]: the rate of a link that nobody tells.
//! 11. [`registry`]: every algorithm by name, for parsing, documentation and bindings; [`settings`] and
//!     [`key_value`]: parameters from `key=value` texts; [`suggest`]: "did you mean" for misspelt names; [`foreign`]:
//!     algorithms from outside this crate, which a library finds by name.
//!
//! A file imports from its own step and from earlier ones, never from later ones; the registry imports from all.
//!
//! A discipline is built from its configuration. Its owner passes in the time, packets and random numbers, and asks the
//! discipline when it wants to be called next:
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
//! // Two packets arrive while one leaves, so the queue grows and CoDel begins to drop from its head.
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
mod ack_path;
pub mod advice;
pub mod allocation;
pub mod aqm;
pub mod cc;
mod classify;
pub mod config;
pub mod coop;
pub mod csi;
pub mod emodel;
pub mod estimate;
pub mod fact;
pub mod foreign;
pub mod fq;
pub mod impair;
mod judge;
pub mod key_value;
pub mod link_layer;
pub mod listing;
pub mod packet;
pub mod qdisc;
pub mod queue;
mod recency;
pub mod registry;
pub mod rng;
pub mod rtt;
pub mod sched;
pub mod server;
pub mod settings;
pub mod siphash;
mod slab;
pub mod stack;
mod succession;
pub mod suggest;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod units;
pub mod weir;
pub mod wire;
