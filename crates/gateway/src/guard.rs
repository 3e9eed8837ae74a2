//! The guard of a router: it lets packets pass when the gateway hangs, and removes the rules when it dies.
//!
//! The kernel lets packets pass when nobody has a queue, but a process that hangs still has it. Then the guard takes the rules
//! away that hand packets over. When the gateway runs again, it learns of it and puts them back.

use crate::error::Error;
use crate::rules::Chains;
use nix::sys::signal::SigSet;
use penstock_appliance::guard::{self, Guard};
use penstock_core::units::Span;

#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    #[command(flatten)]
    chains: Chains,
    /// Time without a heartbeat after which the guard acts
    #[arg(long)]
    patience: Span,
}

pub fn start(chains: &Chains, patience: Span) -> Result<Guard, Error> {
    let (queue, patience) = (chains.queue.to_string(), patience.to_string());
    let mut words = vec!["--firewall", chains.firewall.name(), "--queue", &queue, "--patience", &patience];
    words.extend(chains.v6.then_some("--v6"));
    Guard::start(words).map_err(Error::io("cannot start the guard"))
}

/// The guard's process; returns its exit code.
pub fn run(Options { chains, patience }: &Options) -> u8 {
    // It ends with the first process, and not before it by a signal that is for both.
    let _ = SigSet::all().thread_block();
    // Rules that cannot be opened, as somebody changed them, are removed.
    u8::from(guard::watch(*patience, || chains.open(), || chains.remove().map(drop)).is_err())
}
