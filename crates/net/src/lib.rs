//! Real packets: a userspace bottleneck between two network namespaces that runs the queue disciplines of the registry.
//!
//! Follow one packet by opening the files in this order:
//!
//! 1. [`cli`]: what a person asks for, [`file`](mod@file): the same in a file; [`error`]: what can be wrong with it and what to do about it.
//! 2. [`netns`] and `tun`: an interface in each namespace, whose packets come to this process.
//! 3. [`emulator`]: the loop that reads packets, sleeps until the next event and writes what is due; [`pool`]: buffers;
//!    [`classify`]: from bytes to a packet with a flow; [`nodes`]: whose it is.
//! 4. [`path`]: two bottlenecks, one for each [`direction`]; [`bottleneck`]: a queue discipline, a wire and a delay line.
//!    Neither knows a clock or a file descriptor, so both are tested in virtual time.
//! 5. `report`: what happened, with `emissions`: how late this machine wrote its packets; `journal`: what became of
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
