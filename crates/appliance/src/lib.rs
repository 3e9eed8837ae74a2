//! What all appliances have in common, whatever they do with packets.
//!
//! - [`run`](mod@run) is the loop of each [`appliance`], and [`desk`] what it has beside its packets.
//! - [`setting`] changes its [`settings`] while it runs, [`reader`] reads the files that it applies, [`history`] has what held before.
//! - [`socket`] is how one asks an appliance that runs, and [`ask`] prints its answers; [`cli`] has the options of that.
//! - [`live`] is what can be set of a bottleneck, [`change`] what was set, [`events`] what happened.
//! - [`log`] is the file of changes, [`service`] what a service manager is told, [`output`] prints reports.

pub mod appliance;
pub mod ask;
pub mod change;
pub mod cli;
pub mod desk;
pub mod error;
pub mod events;
pub mod history;
pub mod live;
pub mod log;
pub mod output;
pub mod reader;
pub mod run;
pub mod service;
pub mod setting;
pub mod settings;
pub mod socket;
