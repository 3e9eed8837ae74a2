//! The guard of an agent keeps the kernel's program attached after the agent is gone, until the program has freed every
//! connection. Without it, connections would keep their last limit.
//!
//! The program frees a connection at its next round trip, once its order has ended (2 s after the agent's last sign of
//! life). A connection that is silent keeps the guard; after an hour it goes in any case. The guard of a later agent
//! takes its place.

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use penstock_appliance::guard::{self, Guard};
use penstock_core::units::Span;
use penstock_linux::limit::{Limit, census_of};
use std::convert::Infallible;
use std::ffi::OsStr;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The longest time for which a guard stays without its agent.
const LONGEST: Duration = Duration::from_secs(3600);
/// How often it looks.
const LOOK: Duration = Duration::from_millis(200);

/// The options of the guard's process.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// File descriptor of the map that counts connections
    #[arg(long)]
    census: i32,
    /// Lock file of the guard
    #[arg(long)]
    lock: PathBuf,
}

/// Starts the guard of a limit.
pub(crate) fn start(limit: &Limit, lock: &Path) -> io::Result<Guard> {
    let kept = limit.for_guard();
    let inherit = |yes: bool| {
        let flag = if yes { FdFlag::empty() } else { FdFlag::FD_CLOEXEC };
        kept.iter().try_for_each(|one| fcntl(one, FcntlArg::F_SETFD(flag)).map(drop))
    };
    inherit(true)?;
    let census = kept[1].as_raw_fd().to_string();
    let words = [OsStr::new("--census"), OsStr::new(&census), OsStr::new("--lock"), lock.as_os_str()];
    let guard = Guard::start(words);
    inherit(false)?;
    guard
}

/// The guard's process; returns its exit code.
pub fn run(options: &Options) -> u8 {
    let Ok(_lock) = guard::take_over(&options.lock) else { return 1 };
    // An agent that hangs gives no orders, which end by themselves: it never arms its guard.
    let freed = || {
        let start = Instant::now();
        while start.elapsed() < LONGEST && census_of(options.census).is_ok_and(|census| census.held > 0) {
            std::thread::sleep(LOOK);
        }
        Ok::<(), Infallible>(())
    };
    let Ok(()) = guard::watch(Span::ZERO, || Ok(()), freed);
    0
}
