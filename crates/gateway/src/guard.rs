//! The guard of a router: it lets packets pass when the gateway hangs, and removes the rules when it dies.
//!
//! The kernel lets packets pass when nobody has a queue, but a process that hangs still has it. Then the guard takes the rules
//! away that hand packets over. When the gateway runs again, it learns of it and puts them back.

use crate::error::Error;
use crate::file::Firewall;
use crate::rules::{Chains, Family};
use nix::sys::signal::SigSet;
use penstock_appliance::guard::{self, Guard};
use penstock_core::units::Span;

/// The options of the guard's process.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Firewall programs to use
    #[arg(long, value_enum)]
    firewall: Firewall,
    /// Number of the first netfilter queue
    #[arg(long)]
    queue: u16,
    /// Handle the rules of IPv6 as well
    #[arg(long)]
    v6: bool,
    /// Time without a heartbeat after which the guard acts
    #[arg(long)]
    patience: Span,
}

/// Starts the guard of these chains.
///
/// # Errors
/// Returns the error of the system.
pub fn start(chains: &Chains, patience: Span) -> Result<Guard, Error> {
    let (queue, patience) = (chains.queue.to_string(), patience.to_string());
    let mut words = vec!["--firewall", chains.firewall.name(), "--queue", &queue, "--patience", &patience];
    words.extend(chains.families.contains(&Family::V6).then_some("--v6"));
    Guard::start(words).map_err(Error::io("cannot start the guard"))
}

/// The guard's process; returns its exit code.
pub fn run(options: &Options) -> u8 {
    let families = if options.v6 { vec![Family::V4, Family::V6] } else { vec![Family::V4] };
    let chains = Chains { firewall: options.firewall, families, queue: options.queue };
    // It ends with the first process, and not before it by a signal that is for both.
    let _ = SigSet::all().thread_block();
    // Rules that cannot be opened, as somebody changed them, are removed.
    u8::from(guard::watch(options.patience, || chains.open(), || chains.remove().map(drop)).is_err())
}
