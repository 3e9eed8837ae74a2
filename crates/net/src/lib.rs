//! Real packets: a userspace bottleneck between two network namespaces, which runs the queue disciplines of the
//! registry.
//!
//! Follow one packet by opening the files in this order:
//!
//! 1. [`cli`] has the options of the command, [`file`](mod@file) the same settings in a file, and [`error`] what can be
//!    wrong with them and what to do about it.
//! 2. [`netns`] and `tun` create an interface in each namespace, whose packets come to this process.
//! 3. [`emulator`] is the loop that reads packets, sleeps until the next event and writes what is due; [`pool`] has the
//!    buffers; [`classify`] makes packets with flows from bytes; [`nodes`] finds the node to which a flow belongs.
//! 4. [`path`] has two bottlenecks, one for each [`direction`]; a [`bottleneck`] is a queue discipline, a wire and a
//!    delay line. Neither uses a clock or a file descriptor, so both are tested in virtual time.
//! 5. `report` has the results of a run, `emissions` how late this machine wrote its packets, `journal` the fate of
//!    each packet.

pub mod bottleneck;
pub mod classify;
pub mod cli;
pub mod direction;
mod emissions;
pub mod emulator;
pub mod error;
pub mod file;
mod histogram;
mod journal;
pub mod netns;
pub mod nodes;
pub mod path;
pub mod pool;
mod report;
mod scheduling;
mod tun;
