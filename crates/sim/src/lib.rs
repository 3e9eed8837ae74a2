//! The packet simulator: virtual time, links, hosts, TCP, traffic.
//!
//! Deterministic for (scenario, seed): one thread, integer time, events of equal time in the order of their sources, a
//! named random stream per consumer. Follow one packet by opening the files in this order:
//!
//! 1. [`scenario`]: what is to be simulated; [`network`] makes links, routes and flows of it, [`numbers`] lays out who has
//!    which number.
//! 2. [`run`]: the loop takes [`event`]s in order; [`world`] moves packets between links.
//! 3. [`flow`]: the two hosts of an application, [`actors::application`]; each kind of [`actors::Traffic`] has its file.
//! 4. [`tcp`]: the endpoint that makes a [`segment`].
//! 5. [`link`]: where it waits and travels, [`loss`], [`stations`]: or dies; [`probe`] measures, [`capture`] writes it down.
//! 6. Who else acts, by [`actors::action`]s that the loop applies: [`actors::changes`] of links (a [`series`] of steps, from
//!    an [`orbit`] or as [`recorded`]), [`actors::handovers`] of hosts, [`actors::cooperation`] of a gateway with clients,
//!    [`actors::connections`] that sessions open.
//! 7. [`digest`], [`quantiles`] and [`seconds`] count what arrives, [`summary`] and [`table`] tell it; [`tcp_trace`] looks
//!    at windows from outside.
//!
//! A scenario is a text, and its run answers with a summary. Here one TCP connection fills a link of 10 Mbit/s:
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

pub mod actors;
pub mod capture;
pub mod digest;
pub mod event;
pub mod flow;
pub mod link;
pub mod loss;
pub mod network;
pub mod numbers;
pub mod orbit;
pub mod probe;
pub mod quantiles;
pub mod recorded;
pub mod run;
pub mod scenario;
pub mod seconds;
pub mod segment;
pub mod series;
pub mod stations;
pub mod summary;
pub mod table;
pub mod tcp;
pub mod tcp_trace;
pub mod world;

pub use run::{Broken, Simulation};
pub use scenario::Scenario;
pub use table::{Column, Table};
pub use tcp_trace::TcpTrace;
