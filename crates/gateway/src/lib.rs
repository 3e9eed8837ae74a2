//! `penstock-gateway`: a queue discipline of the registry before the link of a Linux router.
//!
//! Follow one packet by opening the files in this order:
//!
//! 1. [`cli`] has the verbs, [`file`](mod@file) the TOML file with all settings, [`error`] what can be wrong.
//! 2. [`rules`] are the lines of the firewall that hand packets over; a rule lets them pass when nobody takes them.
//! 3. `penstock_net::nfqueue` reads a packet, `penstock_net::classify` gives it a flow, and [`held`] is the packet until its
//!    verdict.
//! 4. `penstock_net::path` has the discipline and the rate of both directions, the same that the emulator has.
//! 5. [`daemon`] is the loop that reads, sleeps until a packet is due and gives verdicts.
//! 6. [`guard`] is a second process: when the first one hangs or dies, it lets packets pass. [`watch`] reads the rules back.
//! 7. [`answers`] is what the control socket says; [`history`] lets former values return; [`log`] has who changed what;
//!    [`report`] is the status. [`alone`] is a gateway that gives budgets to hosts and touches no packet. [`ask`] is the side that asks, [`explain`] what a run would do, and [`command`] the program.

pub mod alone;
pub mod answers;
pub mod ask;
pub mod cli;
pub mod command;
pub mod daemon;
pub mod error;
pub mod explain;
pub mod file;
pub mod guard;
pub mod held;
pub mod history;
pub mod log;
pub mod report;
pub mod rules;
pub mod watch;
