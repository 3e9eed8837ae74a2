//! The guard of an agent: a second process that keeps the kernel's program attached after the agent is gone, until the
//! program has freed every connection. Without it, connections would keep their last limit.
//!
//! The program frees a connection at its next round trip, once its order has ended (2 s after the agent's last sign of
//! life). A connection that is silent keeps the guard; after an hour it goes in any case. The guard of a later agent
//! takes its place.

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use penstock_linux::limit::{Limit, census_of};
use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

/// The longest time for which a guard stays without its agent.
const LONGEST: Duration = Duration::from_secs(3600);
/// How often it looks.
const LOOK: Duration = Duration::from_millis(200);
/// How long a new guard waits for the one before to go.
const PATIENCE: Duration = Duration::from_secs(5);

/// The options of the guard's process.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// The descriptor of the map with the census
    #[arg(long)]
    census: i32,
    /// The file that is locked by the guard of this agent
    #[arg(long)]
    lock: PathBuf,
}

/// The guard as the agent has it.
#[derive(Debug)]
pub struct Guard {
    child: Child,
    /// Its end tells the guard that the agent is gone.
    _life: Option<ChildStdin>,
}

impl Guard {
    /// Starts the guard of a limit.
    ///
    /// # Errors
    /// Returns the error of the system.
    pub fn start(limit: &Limit, lock: &Path) -> io::Result<Self> {
        let kept = limit.for_guard();
        let inherit = |yes: bool| {
            let flag = if yes { FdFlag::empty() } else { FdFlag::FD_CLOEXEC };
            kept.iter().try_for_each(|one| fcntl(one, FcntlArg::F_SETFD(flag)).map(drop))
        };
        inherit(true)?;
        let mut command = Command::new("/proc/self/exe");
        command.arg0("penstock-agent").arg("guard").args(["--census", &kept[1].as_raw_fd().to_string()]);
        command.arg("--lock").arg(lock).stdin(Stdio::piped()).stdout(Stdio::null());
        // Ctrl-C at a terminal is for the agent.
        let child = command.process_group(0).spawn();
        inherit(false)?;
        let mut child = child?;
        let life = child.stdin.take();
        Ok(Self { child, _life: life })
    }

    /// False if the guard has gone.
    pub fn is_there(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

/// The guard's process; returns its exit code.
pub fn run(options: &Options) -> u8 {
    let Ok(_lock) = take_over(&options.lock) else { return 1 };
    let mut bytes = [0; 64];
    loop {
        match io::stdin().read(&mut bytes) {
            Ok(0) => break,
            Err(e) if e.kind() != io::ErrorKind::Interrupted => break,
            _ => {}
        }
    }
    let start = Instant::now();
    while start.elapsed() < LONGEST && census_of(options.census).is_ok_and(|census| census.held > 0) {
        std::thread::sleep(LOOK);
    }
    0
}

/// Takes the lock; a guard that has it is ended first.
fn take_over(path: &Path) -> io::Result<File> {
    let mut file = File::options().create(true).read(true).write(true).truncate(false).open(path)?;
    let start = Instant::now();
    while let Err(error) = file.try_lock() {
        if matches!(error, TryLockError::Error(_)) || start.elapsed() > PATIENCE {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let mut text = String::new();
        file.rewind()?;
        file.read_to_string(&mut text)?;
        // Who has the lock has written this number, so it is that process and no other one.
        if let Ok(number) = text.trim().parse::<i32>()
            && number > 1
        {
            let _ = kill(Pid::from_raw(number), Signal::SIGTERM);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(std::process::id().to_string().as_bytes())?;
    Ok(file)
}
