//! Traces: reads pcap, pcapng and CSV, writes pcapng, and replays arrivals through any queue discipline.
//!
//! Follow a trace by opening the files in this order:
//!
//! 1. [`arrival`] is what a replay must know of a packet; [`mod@read`] reads any trace, whose format it recognizes by
//!    the first bytes.
//! 2. `capture` reads the frames of pcap and pcapng files, `encapsulation` and `link` find the IP packet inside a frame,
//!    `fields` those of its TCP. `clock` makes times of it, `copies` knows packets that are there twice, `window` puts
//!    packets in order and splits those that a network card had joined; [`notes`] tells what was changed. `table` reads CSV.
//!    [`packets`] has the headers of all packets as columns.
//! 3. [`replay`](mod@replay) passes arrivals through a queue discipline at the rate of a link; [`record`] is the fate
//!    of one packet; [`summary`] has the totals of a replay; [`draws`] reads random numbers for it.
//! 4. [`control`] plays a script of events to a congestion control.
//! 5. [`series`] has the values of a link over time; [`recorded`] reads them from traces of Mahimahi and from tables, and
//!    `measured` delays from the files of others.
//! 6. [`pcapng`] writes a capture that says why each packet was dropped; [`headers`] has the bytes of simulated
//!    packets.
//!
//! Nothing in this crate reads a clock: the time of a trace is the time in its file.
//!
//! A trace is replayed through a discipline before a link. In this example three packets of 1000 bytes arrive at once,
//! the link needs a millisecond for each, and the queue has room for one:
//!
//! ```
//! use penstock_core::config::LinkFacts;
//! use penstock_core::registry::AnyConfig;
//! use penstock_core::units::{Limit, Rate};
//! use penstock_trace::read::read;
//! use penstock_trace::replay::replay;
//!
//! let trace = "t_ns,flow,size,ecn\n0,7,1000,0\n0,7,1000,0\n0,7,1000,0\n";
//! let link = LinkFacts { rate: Rate::from_bps(8_000_000), limit: Limit::Packets(1) };
//! let droptail = AnyConfig::default_of("droptail").unwrap();
//! let outcome = replay(read(trace.as_bytes()).unwrap(), &droptail, link, 1).unwrap();
//!
//! let fates: Vec<_> = outcome.packets.iter().map(|packet| packet.fate.name()).collect();
//! assert_eq!(fates, ["sent", "sent", "drop_overflow"]);
//! assert_eq!(outcome.summary.duration_s, 0.002);
//! ```

#![cfg_attr(not(test), deny(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

pub mod arrival;
mod capture;
mod clock;
pub mod control;
mod copies;
pub mod draws;
mod encapsulation;
pub mod error;
mod fields;
pub mod headers;
mod lines;
mod link;
mod measured;
pub mod notes;
pub mod packets;
pub mod pcapng;
pub mod read;
pub mod record;
pub mod recorded;
pub mod replay;
pub mod series;
pub mod summary;
mod table;
mod window;
