//! TEMPEST: the test environment for packet schedulers (document 002, section 4.3). A controller enqueues packets of
//! many flows at a scheduler and dequeues them again. It measures how long an enqueue and a dequeue take and how fairly
//! the flows are served, with as little code as possible besides the scheduler.
//!
//! Follow a run by opening the files in this order:
//!
//! 1. [`request`](Request): the flags of the command line as text; [`plan`](Plan): the checked request; `numbers`: the
//!    notation of numbers.
//! 2. `run`: one run without a scheduler, one with it for the time, one more for the measures, and repetitions.
//! 3. `controller`: the pattern of arrivals; `queues`: packets and the free list; `container`: a scheduler with its
//!    queues.
//! 4. `meter` and `pairs`: delay, worst-case fairness indices and the relative fairness index, computed exactly and
//!    online.
//! 5. `probe`: the clock, the processor's counters, energy. No other file accesses the machine.
//! 6. [`report`]: the results of the run.
//!
//! A request has the flags of the command line. This one sends two flows of weights 1 and 3 through DRR and measures
//! only fairness:
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
