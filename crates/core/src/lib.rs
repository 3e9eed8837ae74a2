//! Penstock's algorithms: sans-IO state machines that judge, schedule and rewrite packets.
//!
//! Nothing here reads a clock, a socket, a thread or a global random source. Follow one packet by opening the files
//! in this order:
//!
//! 1. [`units`]: time, span, size, rate; [`rng`]: named random streams.
//! 2. [`packet`]: what an algorithm may see of a packet.
//! 3. [`qdisc`]: the queue discipline trait, drop reasons, conservation; [`queue`]: the shared FIFO.
//! 4. [`aqm`]: the algorithms that judge packets in a queue.
//! 5. [`fq`]: flow queueing, a queue and an AQM for each flow; [`sched`]: whose turn it is; [`csi`]: what a scheduler knows
//!    of a radio channel.
//! 6. [`ack`]: elements that see both directions and edit ACKs (PINK).
//! 7. [`cc`]: congestion control.
//! 8. [`coop`]: nodes and a gateway agree on who may send how much.
//! 9. [`wire`]: the same views over real bytes.
//! 10. [`registry`]: every algorithm by name; listings, parsing, docs and bindings read it; [`settings`]: parameters
//!     from `key=value` texts; [`foreign`]: algorithms that are not here, found by a library.

pub mod ack;
pub mod aqm;
pub mod cc;
pub mod coop;
pub mod csi;
pub mod foreign;
pub mod fq;
pub mod packet;
mod pool;
pub mod qdisc;
pub mod queue;
mod recency;
pub mod registry;
pub mod rng;
pub mod sched;
pub mod settings;
mod slab;
#[cfg(test)]
mod testing;
pub mod units;
pub mod wire;
