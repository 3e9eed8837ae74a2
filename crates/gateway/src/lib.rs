//! `penstock-gateway`: a queue discipline of the registry before the link of a Linux router or bridge.
//!
//! Follow one packet by opening the files in this order:
//!
//! 1. [`cli`] has the verbs, [`file`](mod@file) the TOML file with all settings, `subscribers` who gets what of the link, `error` what
//!    can be wrong.
//! 2. `rules` are the lines of a router's firewall that hand packets over; a rule lets them pass when nobody takes them. On a
//!    bridge, `penstock_linux::bpf::bridge` takes frames from the kernel.
//! 3. `gate` takes charge of them: it reads a packet from `penstock_linux::nfqueue` or `penstock_linux::port`,
//!    `penstock_shaper::classify` gives it a flow, and [`held`] is the packet until it is due.
//! 4. `penstock_shaper::path` has the discipline and the rate of both directions, the same that the emulator has.
//! 5. `daemon` reads, sleeps until a packet is due and lets it go on, in the loop of `penstock_appliance::run`. Observers
//!    (`tap`, `taps`) are shown each packet: `windows` and `calls` count, [`enforce`] tells the discipline of the upload
//!    the budgets of hosts with sessions, `scone` tells flows of QUIC their part.
//! 6. `link` knows the rate of the link, or where to get it, and where the bottleneck is.
//! 7. `guard` is a second process: when the first one hangs or dies, it lets packets pass. `watch` reads the rules
//!    back. `life` is the state of the link, whatever the data path, and `account` what passed beside the gateway.
//! 8. [`settings`] can change while it runs, `apply` reads them of another file. `report` is the
//!    status. `ask` is the side that asks, `explain` what a run would do, `from` makes a file of those of other tools, and
//!    [`command`] is the program.
//! 9. `page` is what the gateway adds to `penstock_appliance::page`: a process of its own that asks this socket once a second,
//!    and serves what it learns to browsers and to Prometheus.
//! 10. `kernel` is a gateway with `datapath = "kernel"`, where programs of the kernel do the work.
//! 11. `alone` is a gateway that gives budgets to hosts and touches no packet.

mod account;
mod alone;
mod apply;
mod ask;
mod calls;
pub mod cli;
pub mod command;
mod daemon;
pub mod enforce;
mod error;
mod explain;
pub mod file;
mod from;
mod gate;
mod guard;
pub mod held;
mod hosts;
mod kernel;
mod life;
mod link;
mod offloaded;
mod page;
mod report;
mod rules;
mod scone;
pub mod settings;
mod short;
mod subscribers;
mod surroundings;
mod tap;
mod taps;
mod voice;
mod watch;
mod windows;
