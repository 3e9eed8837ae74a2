//! What all appliances have in common, whatever they do with packets.
//!
//! - [`socket`] is how one asks an appliance that runs, and [`ask`] prints its answers; [`cli`] has the options of that.
//! - [`live`] is what can be set while packets pass, [`change`] what was set.
//! - [`page`] is the live page, a process of its own; [`second`] starts such a process; [`guard`] is one that acts when
//!   the first one hangs or is gone.
//! - [`record`] keeps headers of packets for `penstock what-if`, [`support`] packs what is needed to find a fault.
//! - [`log`] is the file of events, [`service`] what a service manager is told, [`output`] prints reports.

pub mod ask;
pub mod change;
pub mod cli;
pub mod error;
pub mod guard;
pub mod live;
pub mod log;
pub mod output;
pub mod page;
pub mod record;
pub mod second;
pub mod service;
pub mod socket;
pub mod support;
