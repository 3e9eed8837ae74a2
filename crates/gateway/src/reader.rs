//! Reads files that are to be applied on a thread of its own: one with a thousand subscribers takes milliseconds, in which
//! packets would wait.

use crate::apply::{self, Own, Read};
use crate::error::Error;
use penstock_control::message::{Apply, Refusal};
use penstock_control::server::Asker;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

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
    /// Refuses it if too many wait.
    pub fn read(&self, order: Order) -> Result<(), Refusal> {
        let busy = |_| Refusal::new(format!("{MOST} files wait to be applied already; try again"));
        self.orders.try_send(order).map_err(busy)
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
