//! What all appliances have in common, whatever they do with packets.
//!
//! - [`run`](mod@run) is the loop of each [`appliance`], at whose desk is what it has beside its packets.
//! - `setting` changes its [`settings`] while it runs, `reader` reads the files that it applies, [`history`] has what held before.
//! - [`socket`] is how one asks an appliance that runs, and [`ask`] prints its answers; [`cli`] has the options of that.
//! - [`live`] is what can be set of a bottleneck, [`change`] what was set and what happened.
//! - [`page`] is the live page, a process of its own; `second` starts such a process; [`guard`] is one that acts when the
//!   first one hangs or is gone.
//! - [`record`] keeps headers of packets for `penstock what-if`, [`support`] packs what is needed to find a fault.
//! - [`log`] is the file of changes, [`output`] prints reports, [`command`] runs a command of a file.

pub mod appliance;
pub mod ask;
pub mod change;
pub mod cli;
pub mod command;
pub mod error;
pub mod guard;
pub mod history;
pub mod live;
pub mod log;
pub mod output;
pub mod page;
mod reader;
pub mod record;
pub mod run;
mod second;
mod setting;
pub mod settings;
pub mod socket;
pub mod support;
