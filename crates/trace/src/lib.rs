//! Traces: pcap, pcapng and CSV in, pcapng out, and replay of arrivals through any queue discipline.
//!
//! Follow a trace by opening the files in this order:
//!
//! 1. [`arrival`]: what a replay needs of a packet; [`mod@read`]: any trace file, told apart by its first bytes.
//! 2. [`capture`]: frames of pcap and pcapng files; [`link`]: the IP packet inside a frame; [`table`]: CSV.
//! 3. [`replay`](mod@replay): arrivals through a queue discipline at the rate of a link; [`record`]: what became of one
//!    packet; [`summary`]: the run in numbers.
//! 4. [`control`]: a script of events through a congestion control.
//! 5. [`pcapng`]: a capture that says why each packet died; [`headers`]: the bytes of simulated packets.
//!
//! Nothing here reads a clock: the time of a trace is the time in its file.

#![cfg_attr(not(test), deny(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

pub mod arrival;
pub mod capture;
pub mod control;
pub mod error;
pub mod headers;
pub mod link;
pub mod pcapng;
pub mod read;
pub mod record;
pub mod replay;
pub mod summary;
pub mod table;
