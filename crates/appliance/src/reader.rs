//! Reads files that are to be applied on a thread of its own: one with a thousand subscribers takes milliseconds, in which
//! packets would wait.

use crate::socket::message::{Apply, LONGEST_REQUEST, Refusal, Until};
use crate::socket::server::Asker;
use nix::fcntl::OFlag;
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

/// Number of files that wait to be read.
const MOST: usize = 4;

/// A file to read: that of a client, or that with which the run began.
pub type Order = Option<(Asker, Apply)>;

/// What a file says, and when the former values return; `None` if they do not.
pub type Read<R> = (R, Option<Until>);
/// Who asked for a file, and what was read; without a client it was SIGHUP.
pub type Answer<R> = (Option<Asker>, Result<Read<R>, Refusal>);

/// The thread that reads. It ends with its owner, when it has read what was asked.
#[derive(Debug)]
pub struct Reader<R> {
    orders: SyncSender<Order>,
    answers: Receiver<Answer<R>>,
    /// Rung after each answer.
    bell: Arc<EventFd>,
    /// Path of the file with which the run began.
    pub path: PathBuf,
}

impl<R: Send + 'static> Reader<R> {
    /// Starts the thread, of normal priority if this one still has it. `parse` gets the name and the text of a file; that
    /// with which the run began is at `path`.
    pub fn start(path: &Path, parse: impl Fn(&str, &str) -> Result<R, Refusal> + Send + 'static) -> io::Result<Self> {
        let (orders, todo) = sync_channel::<Order>(MOST);
        let (done, answers) = sync_channel(MOST);
        let bell = Arc::new(EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?);
        let ringer = bell.clone();
        let own = path.to_owned();
        let work = move || {
            for order in todo {
                let (asker, file) = order.map_or_else(|| (None, again(&own)), |(asker, file)| (Some(asker), Ok(file)));
                let read = file.and_then(|Apply { name, text, until }| Ok((parse(&name, &text)?, until)));
                if done.send((asker, read)).is_err() || ringer.write(1).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("files".into()).spawn(work)?;
        Ok(Self { orders, answers, bell, path: path.to_owned() })
    }

    /// Asks for a file to be read. Never waits, and refuses it if too many wait, or if the thread has ended.
    pub fn read(&self, order: Order) -> Result<(), Refusal> {
        self.orders.try_send(order).map_err(|why| match why {
            TrySendError::Full(_) => Refusal::new(format!("{MOST} files wait to be applied already; try again")),
            TrySendError::Disconnected(_) => {
                Refusal::new("files are not read any more, by a fault of this program; start it anew")
            }
        })
    }

    /// Returns the files that were read since the last call.
    pub fn finished(&self) -> impl Iterator<Item = Answer<R>> {
        // Before answers are taken: whoever rings later is heard again.
        let _ = self.bell.read();
        self.answers.try_iter()
    }
}

impl<R> AsFd for Reader<R> {
    /// The descriptor is readable when [`Reader::finished`] has something.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

fn again(path: &Path) -> Result<Apply, Refusal> {
    let name = path.to_string_lossy().into_owned();
    let text = regular(path).map_err(|e| Refusal::new(format!("cannot read {name}: {e}")))?;
    Ok(Apply { name, text, until: None })
}

/// Reads a file which must be a regular one, and no longer than one that a client may send: from a pipe nothing may
/// ever come, and from a device no end.
fn regular(path: &Path) -> io::Result<String> {
    let file = OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file, which could be read again"));
    }
    let mut text = String::new();
    file.take(LONGEST_REQUEST as u64 + 1).read_to_string(&mut text)?;
    if text.len() > LONGEST_REQUEST {
        return Err(io::Error::other("it is longer than 1 MiB"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn next(reader: &Reader<usize>) -> Answer<usize> {
        let begin = Instant::now();
        loop {
            if let Some(answer) = reader.finished().next() {
                return answer;
            }
            assert!(begin.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The file with which the run began is read anew each time.
    #[test]
    fn files_are_read_when_they_are_asked_for() {
        let path = std::env::temp_dir().join(format!("penstock-reader-{}.toml", std::process::id()));
        let parse =
            |name: &str, text: &str| text.trim().parse().map_err(|_| Refusal::new(format!("{name}: no number")));
        let reader = Reader::start(&path, parse).unwrap();
        assert!(reader.finished().next().is_none());
        reader.read(None).unwrap();
        let (asker, read) = next(&reader);
        assert!(asker.is_none() && read.unwrap_err().what.contains("cannot read"));
        for (text, number) in [("7\n", Some(7)), ("seven", None)] {
            std::fs::write(&path, text).unwrap();
            reader.read(None).unwrap();
            let read = next(&reader).1;
            assert_eq!(read.as_ref().ok().map(|read| read.0), number);
            assert!(number.is_some() || read.unwrap_err().what.ends_with(".toml: no number"));
        }
        std::fs::write(&path, vec![b'#'; LONGEST_REQUEST + 1]).unwrap();
        assert!(regular(&path).unwrap_err().to_string().contains("1 MiB"));
        std::fs::remove_file(&path).unwrap();
        // Nobody writes to this pipe, and the next file is read all the same.
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        reader.read(None).unwrap();
        assert!(next(&reader).1.unwrap_err().what.contains("no regular file"));
        std::fs::remove_file(path).unwrap();
        assert!(regular(Path::new("/dev/zero")).is_err() && regular(Path::new("/tmp")).is_err());
    }
}
