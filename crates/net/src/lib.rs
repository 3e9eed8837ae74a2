//! Real packets: a userspace bottleneck between two network namespaces, which runs the queue disciplines of the
//! registry.
//!
//! Follow one packet by opening the files in this order:
//!
//! 1. [`cli`] has the options of the command, [`file`](mod@file) the same settings in a file, and [`error`] what can be
//!    wrong with them and what to do about it.
//! 2. [`netns`] and `tun` create an interface in each namespace, whose packets come to this process, or a [`port`] reads the
//!    frames of one that is there, of which `offloads` tells what it merges: an [`end`](mod@end) is one of both.
//! 3. [`emulator`] is the loop that reads packets, sleeps until the next event and writes what is due; [`pool`] has the
//!    buffers; [`lead`] is what stands before a packet in a frame, and [`segments`] takes merged frames apart; a `carried`
//!    packet has its lead with it; [`classify`] makes packets with flows from bytes, by the table of `penstock-flows`,
//!    whose hashes have the [`keys`]; [`nodes`] knows the node to which a flow belongs, and
//!    [`numbered`] the class of its host.
//! 4. [`path`] has two bottlenecks, one for each [`direction`]; a [`bottleneck`] is a queue discipline, a wire and a
//!    delay line. Neither uses a clock or a file descriptor, so both are tested in virtual time. Before a bottleneck there
//!    may be a queue of the kernel, [`through`] which packets go.
//! 5. `report` has the results of a run, `intake` and `emissions` how late this machine read and wrote its packets,
//!    `stalls` whether it ran at all, `waits` how it waits, and `links` what the kernel tells of the interfaces. `records` keeps what is wanted
//!    of each packet: `journal` has its fate, `tap` its headers as well and `mahimahi` the log of a link, and `packets`
//!    writes them to the files of `outputs`.
//! 6. `signals` end a run or ask for a report, which `output` prints; [`live`] is what can be set while packets pass,
//!    [`talkers`] knows who carries most, and `answers` gives both to the control socket. [`command`] is the whole program,
//!    and `wires` runs several emulators in it, each in a thread.
//!
//! [`announced`] is what packets tell of the rates of their flows.
//!
//! A gateway (`penstock-gateway`) uses the same parts with packets of the kernel's firewall ([`nfqueue`]), or
//! with frames of two interfaces of a bridge ([`port`]).

pub mod announced;
mod answers;
pub mod ask;
pub mod bottleneck;
pub mod carried;
pub mod classify;
pub mod cli;
pub mod command;
pub mod direction;
pub mod emissions;
pub mod emulator;
pub mod end;
pub mod error;
pub mod file;
pub mod histogram;
pub mod intake;
mod journal;
pub mod keys;
pub mod lead;
pub mod links;
pub mod live;
mod mahimahi;
mod netlink;
pub mod netns;
pub mod nfqueue;
pub mod nodes;
pub mod numbered;
mod offloads;
pub mod output;
mod outputs;
mod packets;
pub mod path;
pub mod pool;
pub mod port;
mod records;
pub mod report;
pub mod scheduling;
pub mod segments;
pub mod signals;
pub mod stalls;
pub mod talkers;
mod tap;
pub mod through;
mod tun;
mod waits;
mod wires;
