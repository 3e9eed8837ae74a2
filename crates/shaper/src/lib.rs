//! What decides about real packets, without a clock and without a descriptor: its caller hands in times and bytes.
//!
//! Follow one packet by opening the files in this order:
//!
//! 1. [`pool`] has its buffer. [`classify`] makes a packet with a flow from the bytes, by the table of `penstock-conntrack`,
//!    whose hashes have the [`keys`]; [`nodes`] has the sides whose hosts are nodes, [`numbered`] the class of a host, `told`
//!    what disciplines know of a flow, and [`announced`] what the packet tells of the rate of its flow. Its owner's
//!    [`Carrier`](penstock_core::packet::Carrier) is the packet with what lets it go on.
//! 2. [`path`] has two bottlenecks, one for each [`direction`]; a [`bottleneck`] is a queue discipline, a wire and a delay line.
//! 3. `records` keeps what is wanted of each packet on a [`sheet`]: [`journal`] its fate, [`tap`] its headers as well, [`log`]
//!    what happened on the link.
//! 4. [`intake`] and [`emissions`] are how late packets were read and written, in a [`histogram`]; [`talkers`] knows who carries
//!    most; [`report`] has the results of a direction.

#![cfg_attr(not(test), deny(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

pub mod announced;
pub mod bottleneck;
pub mod classify;
pub mod direction;
pub mod emissions;
pub mod histogram;
pub mod intake;
pub mod journal;
pub mod keys;
pub mod log;
pub mod nodes;
pub mod numbered;
pub mod path;
pub mod pool;
pub mod records;
pub mod report;
pub mod sheet;
pub mod talkers;
pub mod tap;
mod told;
