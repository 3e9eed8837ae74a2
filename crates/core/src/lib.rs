//! Penstock's algorithms: sans-IO state machines that judge, schedule and rewrite packets.
//!
//! Nothing here reads a clock, a socket, a thread or a global random source. Follow one packet by opening the files
//! in this order:
//!
//! 1. [`units`]: time, span, size, rate; [`rng`]: named random streams.
//! 2. [`packet`]: what an algorithm may see of a packet.
//! 3. [`qdisc`]: the queue discipline trait, drop reasons, conservation; [`queue`]: the shared FIFO.
//! 4. [`aqm`]: the algorithms that judge packets in a queue.
//! 5. [`fq`]: flow queueing, a queue and an AQM for each flow; [`sched`]: whose turn it is, packet
//!    schedulers and the queues of their classes; [`csi`]: what is known of the channels of a wireless link.
//! 6. [`ack`]: elements that see both directions and edit ACKs (PINK).
//! 7. [`cc`]: congestion control.
//! 8. [`wire`]: the same views over real bytes.
//! 9. [`registry`]: every algorithm by name; listings, parsing, docs and bindings read it; [`settings`]: parameters
//!    from `key=value` texts.

pub mod ack;
pub mod aqm;
pub mod cc;
pub mod csi;
pub mod fq;
pub mod packet;
pub mod qdisc;
pub mod queue;
mod recency;
pub mod registry;
pub mod rng;
pub mod sched;
pub mod settings;
mod slab;
pub mod units;
pub mod wire;
