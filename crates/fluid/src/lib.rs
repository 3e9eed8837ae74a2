//! Fluid models of TCP and queue disciplines.
//!
//! A flow is a window and not packets, a queue is a number of bytes, and both follow delay-differential equations: those
//! of Misra, Gong and Towsley (2000) in the form of document 004, chapter 3.
//!
//! | file | |
//! |---|---|
//! | `model` | what is solved: link, discipline, classes of flows |
//! | `flows` | windows of Reno and CUBIC, with slow start |
//! | `laws/` | RED, ARED, PI, PIE, CoDel, Modified CoDel as equations |
//! | `run` | queue, losses and their way back to the flows |
//! | `solver`, `history` | Runge-Kutta of order 4 with an interpolated past |
//! | `scenario`, `summary` | a scenario as a model, and the results in the form of a run's |
//!
//! ```
//! use penstock_fluid::{Class, Control, Discipline, Losses, Model, Run};
//! let flow = Class {
//!     count: 5.0, control: Control::Reno, base_rtt: 0.1, packet: 1000.0, payload: 960.0, initial_window: 2.0,
//!     threshold: f64::INFINITY, most: 1e6, slow_start: true, ecn: false, start: 0.0, stop: f64::INFINITY, group: 0,
//! };
//! let discipline = Discipline::Codel(Default::default());
//! let model = Model { rate: 1.25e6, room: 1e6, discipline, classes: vec![flow], losses: Losses::Rounds, seed: 1 };
//! let step = model.step();
//! let mut run = Run::new(model, step);
//! let late = (0..20_000).filter(|_| run.step().sojourn > 0.02).count();
//! assert!(late < 2_000);
//! ```

#![cfg_attr(not(test), deny(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

mod flows;
mod history;
mod laws;
mod model;
mod run;
mod scenario;
mod solver;
mod summary;

pub use history::{History, PastTime};
pub use laws::{Gaps, drop_time, root_sum_constant};
pub use model::{Class, Control, Discipline, Losses, Model};
pub use run::{Moment, Run, Totals};
pub use scenario::{Read, read};
pub use solver::{Solver, System};
pub use summary::{Outcome, outcome};
