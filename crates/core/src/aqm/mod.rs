//! Active queue management, with one algorithm in each file. An AQM judges packets and owns no queue. Two files hold
//! disciplines which do own their queues: `choke.rs` and `dualpi2.rs`.

pub mod an_aqm;
pub mod ared;
mod average;
pub mod avq;
pub mod blue;
pub mod choke;
pub mod cobalt;
pub mod codel;
mod control;
pub mod droptail;
pub mod dualpi2;
pub mod feng_red;
pub mod foreign;
pub mod green;
pub mod lindrop;
pub mod minstrel_pie;
pub mod modified_codel;
pub mod nonlinear_red;
pub mod pi;
pub mod pi2;
pub mod pie;
pub mod red;
pub mod red_ern;
pub mod rem;
pub mod sfb;
mod ticks;

pub use crate::config::Compat;
pub use crate::judge::{Aqm, Meta};
