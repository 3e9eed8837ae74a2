//! Reads files that are to be applied on a thread of its own: one with a thousand subscribers takes milliseconds, in which
//! packets would wait.

use crate::apply::{self, Own, Read};
use crate::error::Error;
use penstock_appliance::socket::message::{Apply, Refusal};
use penstock_appliance::socket::server::Asker;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

/// Number of files that wait to be read.
const MOST: usize = 4;

/// A file to read: that of a client, or that with which the run began.
type Order = Option<(Asker, Apply)>;

/// Who asked for a file, and what was read; without a client it was SIGHUP.
pub type Answer = (Option<Asker>, Result<Read, Refusal>);

/// The thread that reads. It ends with its owner, when it has read what was asked.
#[derive(Debug)]
pub struct Reader {
    orders: SyncSender<Order>,
    answers: Receiver<Answer>,
    /// Has a byte for each answer.
    bell: UnixStream,
}

impl Reader {
    /// Starts the thread, of normal priority if this one still has it.
    ///
    /// # Errors
    /// Returns the error of the system.
    pub fn start(own: Own) -> Result<Self, Error> {
        let (orders, todo) = sync_channel::<Order>(MOST);
        let (done, answers) = sync_channel(MOST);
        let bells = UnixStream::pair().and_then(|(bell, ringer)| bell.set_nonblocking(true).map(|()| (bell, ringer)));
        let (bell, mut ringer) = bells.map_err(Error::io("cannot start a thread"))?;
        let work = move || {
            for order in todo {
                let answer = match order {
                    Some((asker, file)) => (Some(asker), Read::of(file, &own.file)),
                    None => (None, apply::again(&own)),
                };
                if done.send(answer).is_err() || ringer.write_all(&[1]).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("files".into()).spawn(work).map_err(Error::io("cannot start a thread"))?;
        Ok(Self { orders, answers, bell })
    }

    /// Asks for a file to be read. Never waits.
    ///
    /// # Errors
    /// Refuses it if too many wait, or if the thread has ended.
    pub fn read(&self, order: Order) -> Result<(), Refusal> {
        self.orders.try_send(order).map_err(|why| match why {
            TrySendError::Full(_) => Refusal::new(format!("{MOST} files wait to be applied already; try again")),
            TrySendError::Disconnected(_) => {
                Refusal::new("files are not read any more, by a fault of this program; start it anew")
            }
        })
    }

    /// Returns the files that were read since the last call.
    pub fn finished(&self) -> impl Iterator<Item = Answer> {
        // Before answers are taken: whoever rings later is heard again.
        let _ = (&self.bell).read(&mut [0; 2 * MOST]);
        self.answers.try_iter()
    }
}

impl AsFd for Reader {
    /// The descriptor is readable when [`Reader::finished`] has something.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::File;
    use std::time::{Duration, Instant};

    const FILE: &str = "[interfaces]\nwan = \"eth0\"\n[link]\nrate = \"20Mbit/s\"\n";

    /// Waits for the next answer.
    fn next(reader: &Reader) -> Answer {
        let begin = Instant::now();
        loop {
            if let Some(answer) = reader.finished().next() {
                return answer;
            }
            assert!(begin.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The file with which the run began is read anew each time, and what differs and cannot change is refused.
    #[test]
    fn files_are_read_when_they_are_asked_for() {
        let path = std::env::temp_dir().join(format!("penstock-reader-{}.toml", std::process::id()));
        let reader = Reader::start(Own { path: path.clone(), file: File::parse(FILE, "f").unwrap() }).unwrap();
        assert!(reader.finished().next().is_none());
        reader.read(None).unwrap();
        let (asker, read) = next(&reader);
        assert!(asker.is_none() && read.unwrap_err().what.contains("cannot read"));
        for (text, said) in [(FILE.replace("20M", "10M"), None), (FILE.replace("eth0", "eth1"), Some(":2:7"))] {
            std::fs::write(&path, text).unwrap();
            reader.read(None).unwrap();
            let refused = next(&reader).1.err().map(|refusal| refusal.what);
            assert_eq!(refused.is_none(), said.is_none());
            assert!(said.is_none_or(|said| refused.unwrap().contains(said)));
        }
        std::fs::remove_file(path).unwrap();
    }
}
