//! The packet simulator: virtual time, links, hosts, TCP and applications.
//!
//! A run is deterministic for (scenario, seed): it uses one thread and integer time, handles events of equal time in
//! the order of their sources, and gives each consumer of random numbers a named stream. To follow one packet, open the
//! files in this order:
//!
//! 1. [`scenario`] says what is simulated; `network` makes links, routes and flows of it; `numbers` lays out the
//!    numbers of sources and owners.
//! 2. `run` is the loop, which takes `event`s in order; `world` moves packets between links.
//! 3. `flow` has the two hosts of an application, `actors::application`; each kind of `actors::Traffic` has its
//!    file.
//! 4. [`tcp`] is the endpoint which makes a [`segment`].
//! 5. `access` is the link of a host, `link` is where a packet waits and travels; [`Loss`](penstock_core::csi::Loss)
//!    decides whether the wire loses it, core's `impair` whether it is policed, held, late, overtaken or there twice;
//!    `probe` measures queues, and [`capture`] writes packets to a file.
//! 6. The remaining actors push `actors::action`s, which the loop applies: `actors::changes` of links (a series
//!    of steps from an [`orbit`] or from a file), `actors::handovers` of hosts, `actors::cooperation`
//!    of a gateway with clients, and `actors::connections` which sessions open.
//! 7. `digest`, `quantiles` and `seconds` count what arrives, `delays` are distributions; [`summary`] and [`table`]
//!    are the results; [`tcp_trace`] samples the windows of connections, [`live`] is the state of a run for whoever
//!    shows it, [`ahead`] what is decided before its first event, and [`audit`] follows every packet and tells what
//!    broke a rule.
//! 8. [`agents`] are controls and AQMs outside the simulator, which decide at intervals.
//! 9. `command` is the main of programs with algorithms of their own.
//!
//! A scenario is a text, and a run of it returns a summary. In this example one TCP connection fills a link of 10
//! Mbit/s:
//!
//! ```
//! use penstock_core::units::Span;
//! use penstock_sim::{Scenario, Simulation};
//!
//! let text = r#"
//! duration = "10s"
//!
//! [topology]
//! kind = "dumbbell"
//! rate = "10Mbit/s"
//! delay = "10ms"
//! limit = "100p"
//!
//! [aqm]
//! name = "codel"
//!
//! [tcp]
//! cc = "cubic"
//!
//! [[flows]]
//! kind = "bulk"
//! "#;
//! let scenario = Scenario::parse(text, "example.toml").unwrap();
//! let mut simulation = Simulation::new(&scenario);
//! simulation.advance(Span::MAX).unwrap();
//! let summary = simulation.summary();
//! assert!(summary.flows[0].goodput_bps > 9e6);
//! ```

#![cfg_attr(not(test), deny(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

mod access;
mod actors;
mod advice;
pub mod agents;
pub mod ahead;
pub mod audit;
mod audited;
pub mod capture;
mod command;
mod digest;
mod estimate;
mod event;
mod flow;
mod link;
pub mod live;
mod network;
mod numbers;
pub mod orbit;
mod probe;
mod quantiles;
mod run;
pub mod scenario;
mod seconds;
pub mod segment;
pub mod summary;
pub mod table;
pub mod tcp;
pub mod tcp_trace;
mod world;

pub use command::main_with;
pub use network::Bottleneck;
pub use run::{Broken, Simulation};
pub use scenario::Scenario;
pub use table::{Column, Table};
pub use tcp_trace::TcpTrace;
