//! A second process of this program, which does what the first one must not, or what has to be done when it is gone.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A second process. Its standard input ends with the first process, and tells it so.
#[derive(Debug)]
pub struct Second {
    child: Child,
    pub life: ChildStdin,
}

impl Second {
    /// Starts this program with a verb and its arguments, under the name that it has in lists of processes.
    pub fn start(verb: &str, words: impl IntoIterator<Item = impl AsRef<OsStr>>, output: Stdio) -> io::Result<Self> {
        let own = std::env::args_os().next().unwrap_or_default();
        let mut command = Command::new("/proc/self/exe");
        command.arg0(Path::new(&own).file_name().unwrap_or(&own)).arg(verb).args(words);
        // Ctrl-C at a terminal is for the first process.
        let mut child = command.process_group(0).stdin(Stdio::piped()).stdout(output).spawn()?;
        let life = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self { child, life })
    }

    /// Takes what it prints, if its output is a pipe.
    pub fn output(&mut self) -> io::Result<ChildStdout> {
        self.child.stdout.take().ok_or_else(|| io::ErrorKind::BrokenPipe.into())
    }

    /// Returns how it ended; `None` if it still runs.
    pub fn ended(&mut self) -> Option<String> {
        self.child.try_wait().map_or_else(|error| Some(error.to_string()), |status| status.map(|one| one.to_string()))
    }

    /// Ends its standard input, and waits until it has ended.
    pub fn wait(mut self) {
        drop(self.life);
        let _ = self.child.wait();
    }

    pub fn kill(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
