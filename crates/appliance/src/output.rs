//! Prints reports. A thread of its own writes to the standard output, because that may block: packets do not wait for a
//! terminal or a pipe.

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::stat::{fstat, major, minor};
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Writes texts to the standard output, one after another.
#[derive(Debug)]
pub struct Printer {
    texts: SyncSender<String>,
    thread: JoinHandle<io::Result<()>>,
}

impl Printer {
    /// Starts the thread. So many texts may wait for the one that is being printed.
    pub fn open(waiting: usize) -> io::Result<Self> {
        let (texts, orders): (_, Receiver<String>) = sync_channel(waiting);
        let print_all = move || orders.iter().map(|text| print(&text)).last().unwrap_or(Ok(()));
        let thread = std::thread::Builder::new().name("printer".into()).spawn(print_all)?;
        Ok(Self { texts, thread })
    }

    /// Returns what offers texts while others may do so as well.
    pub fn offers(&self) -> Offers {
        Offers(self.texts.clone())
    }

    /// Prints the last text and waits until all is printed, or until `give_up` returns true. Nobody has [`Offers`] any more.
    /// The error says why the last text was not printed.
    pub fn finish(self, mut text: String, mut give_up: impl FnMut() -> bool) -> io::Result<()> {
        let mut wait = || {
            std::thread::sleep(Duration::from_millis(2));
            let given_up = || io::Error::new(io::ErrorKind::TimedOut, "it takes no more output");
            if give_up() { Err(given_up()) } else { Ok(()) }
        };
        while let Err(TrySendError::Full(back)) = self.texts.try_send(text) {
            wait()?;
            text = back;
        }
        drop(self.texts);
        while !self.thread.is_finished() {
            wait()?;
        }
        self.thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread that prints has failed")))
    }
}

/// Offers texts to a printer.
#[derive(Debug, Clone)]
pub struct Offers(SyncSender<String>);

impl Offers {
    /// Prints a text soon. Never waits: returns false if the texts before it are still being printed.
    pub fn offer(&self, text: String) -> bool {
        self.0.try_send(text).is_ok()
    }
}

/// Prints a line on the standard error. If nobody can be told, nobody is.
pub fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Prints a text, all of it; fails as when the disk is full or the reader has gone.
pub fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// True if the standard output was closed when the program started: Rust then opens /dev/null in its place, for reading
/// and writing, where a shell opens it for writing.
pub fn stdout_is_nowhere() -> bool {
    let stdout = io::stdout();
    let device = fstat(&stdout).map(|stat| (major(stat.st_rdev), minor(stat.st_rdev)));
    let flags = fcntl(&stdout, FcntlArg::F_GETFL).map(OFlag::from_bits_truncate);
    device == Ok((1, 3)) && flags.is_ok_and(|flags| flags & OFlag::O_ACCMODE == OFlag::O_RDWR)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread that takes no text, as when nobody reads a pipe; it ends after ten seconds or with the test.
    #[test]
    fn who_gives_up_does_not_wait_until_all_is_printed() {
        for full in [true, false] {
            let (texts, orders) = sync_channel(1);
            let (end, ended) = sync_channel::<()>(0);
            let thread = std::thread::spawn(move || {
                let _ = ended.recv_timeout(Duration::from_secs(10));
                drop(orders);
                Ok(())
            });
            let printer = Printer { texts, thread };
            if full {
                assert!(printer.offers().offer("first".into()));
            }
            let given_up = printer.finish("last".into(), || true).unwrap_err();
            assert_eq!(given_up.kind(), io::ErrorKind::TimedOut);
            drop(end);
        }
    }
}
