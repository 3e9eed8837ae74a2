//! `penstock-emulate`: a bottleneck between two interfaces, with the disciplines of the library.
//!
//! Follow one packet by opening the files in this order:
//!
//! 1. [`cli`] has the options of the command, `file` the same settings in a file with the `changes` of the link, and `error`
//!    what can be wrong with them.
//! 2. An `end` is an interface of `penstock-linux`: a TUN interface that it makes, or a port that is there.
//! 3. [`emulator`] is the loop that reads packets, sleeps until the next event (`waits`) and writes what is due; a `carried`
//!    packet has its lead with it. Its queues are those of `penstock-shaper`. Before them there may be one of the kernel,
//!    `through` which packets go.
//! 4. [`report`] has the results of a run; `packets` writes what became of packets to the files of `outputs`, in the forms of
//!    `pcapng` and `mahimahi`.
//! 5. `settings` is what can be changed while it runs, `ask` asks for that. [`command`] is the whole program, and `wires`
//!    runs several emulators in it, each in a thread.

mod ask;
mod carried;
mod changes;
pub mod cli;
pub mod command;
pub mod emulator;
mod end;
mod error;
mod file;
mod machine;
mod mahimahi;
mod outputs;
mod packets;
mod pcapng;
pub mod report;
mod settings;
mod through;
mod waits;
mod wires;
