//! TEMPEST: the test environment for packet schedulers (document 002, section 4.3). A controller brings packets of many
//! flows to a scheduler and takes them back, so that what is measured is the scheduler and little else: how long an
//! enqueue and a dequeue take, and how well the flows are served.
//!
//! Follow a run by opening the files in this order:
//!
//! 1. [`request`](Request): what is asked, as the command line says it; [`plan`](Plan): the same, checked. `numbers`: its numbers.
//! 2. `run`: once without a scheduler, once with it for the time, once more for the measures, and again for repetitions.
//! 3. `controller`: who comes when; `queues`: packets and the free list; `container`: a scheduler with its queues.
//! 4. `meter` and `pairs`: delay, worst-case fair indices and the relative fairness index, exact and online.
//! 5. `probe`: the clock, the processor's counters, energy. Nothing else here looks at the machine.
//! 6. [`report`]: the run in numbers.
//!
//! A request has the flags of the command line. Two flows of weights 1 and 3 through DRR, with the measures of fairness alone:
//!
//! ```
//! use penstock_tempest::{Plan, Request, run};
//!
//! let flag = |text: &str| Some(text.to_owned());
//! let request = Request {
//!     alg: flag("drr"),
//!     flowsets: flag("1::1,3::1"),
//!     n: flag("4000"),
//!     measure: flag("fairness"),
//!     ..Request::default()
//! };
//! let report = run(&Plan::of(&request).unwrap()).unwrap();
//! assert_eq!(report.flows, 2);
//! assert_eq!(report.flows_detail[1].weight, 3);
//! ```

#![cfg_attr(not(test), deny(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

mod container;
mod controller;
mod meter;
mod mistake;
mod numbers;
mod pairs;
mod plan;
mod probe;
mod queues;
pub mod report;
mod request;
mod run;

pub use mistake::Mistake;
pub use plan::{Mode, Plan};
pub use report::Report;
pub use request::Request;
pub use run::{RunError, run};
