//! A server that never blocks. Its owner polls the descriptor of [`Server::as_fd`] beside its own and calls
//! [`Server::turn`] when it is readable: one turn accepts one client, or reads at most 4096 bytes and answers at most
//! one request.

use crate::socket::message::{Answer, LONGEST_REQUEST, Refusal, Request, answer_line};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
pub use penstock_linux::local::{Error, Peer};
use penstock_linux::local::{Listener, Stream};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::{Duration, Instant};

/// Largest number of clients at a time.
pub const MOST_CLIENTS: usize = 16;
/// A client that has neither asked nor read for so long is disconnected.
pub const PATIENCE: Duration = Duration::from_secs(30);

const LISTENER: u64 = MOST_CLIENTS as u64;
/// How long no client is accepted after the system had no descriptor for one.
const PAUSE: Duration = Duration::from_secs(1);

/// A listening socket with its clients. The socket is removed when this value is dropped.
#[derive(Debug)]
pub struct Server {
    listener: Listener,
    epoll: Epoll,
    clients: [Option<Client>; MOST_CLIENTS],
    /// Number of clients that there were.
    admitted: u64,
    /// No client is accepted before this time.
    paused: Option<Instant>,
}

/// Who asks, and may be answered later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asker {
    /// The process that asks.
    pub peer: Peer,
    place: usize,
    /// Tells it from others that had this place.
    number: u64,
}

#[derive(Debug)]
struct Client {
    stream: Stream,
    asker: Asker,
    /// True while its request waits for [`Server::answer`].
    waits: bool,
    input: Vec<u8>,
    output: Vec<u8>,
    /// When the client last sent or took something.
    active: Instant,
    /// True if the client has sent its last byte, or one too many: it is disconnected when all is answered.
    last: bool,
}

impl Server {
    /// Listens at `path`, which only this user may use (mode 0600). Removes the socket of a process that died; fails if
    /// another one is in charge of the path.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let failed = |source| Error::Io(path.to_owned(), source);
        let listener = Listener::open(path)?;
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(|e| failed(e.into()))?;
        epoll.add(&listener, EpollEvent::new(EpollFlags::EPOLLIN, LISTENER)).map_err(|e| failed(e.into()))?;
        Ok(Self { listener, epoll, clients: Default::default(), admitted: 0, paused: None })
    }

    /// Returns the path of the socket.
    pub fn path(&self) -> &Path {
        self.listener.path()
    }

    /// Returns the number of clients.
    pub fn clients(&self) -> usize {
        self.clients.iter().flatten().count()
    }

    /// Does what is ready, at most one thing. `answer` is called with who asks and what; a request for which it returns `None`
    /// is answered later, by [`Server::answer`].
    pub fn turn(&mut self, now: Instant, answer: &mut dyn FnMut(Asker, Request) -> Option<Answer>) {
        let mut events = [EpollEvent::empty()];
        if self.epoll.wait(&mut events, EpollTimeout::ZERO) != Ok(1) {
            return;
        }
        match events[0].data() {
            LISTENER => self.accept(now),
            at => self.serve(at as usize, now, answer),
        }
    }

    /// Answers a request that was not answered at once. Does nothing if the client has gone.
    pub fn answer(&mut self, asker: Asker, answer: &Answer, now: Instant) {
        let client = self.clients.get_mut(asker.place).and_then(Option::as_mut);
        let Some(client) = client.filter(|client| client.asker == asker && client.waits) else { return };
        (client.waits, client.active, client.output) = (false, now, answer_line(answer).into_bytes());
        self.goes_on(asker.place, true);
    }

    /// Disconnects clients that have been silent for too long. Must be called once in a while, such as every second.
    pub fn tidy(&mut self, now: Instant) {
        for client in &mut self.clients {
            // A stream that is closed is not polled any more.
            client.take_if(|client| now.saturating_duration_since(client.active) > PATIENCE);
        }
        if self.paused.is_some_and(|until| now >= until) {
            self.paused = None;
            let _ = self.epoll.add(&self.listener, EpollEvent::new(EpollFlags::EPOLLIN, LISTENER));
        }
    }

    fn accept(&mut self, now: Instant) {
        match unless_busy(self.listener.accept()) {
            Ok(stream) => stream.into_iter().for_each(|stream| self.admit(stream, now)),
            Err(_) => {
                // Too few descriptors, or too little memory: the listener would be ready at once again, and again.
                let _ = self.epoll.delete(&self.listener);
                self.paused = Some(now + PAUSE);
            }
        }
    }

    fn admit(&mut self, mut stream: Stream, now: Instant) {
        let Some(at) = self.clients.iter().position(Option::is_none) else {
            let busy = Refusal::new(format!("there are {MOST_CLIENTS} clients already; try again later"));
            let _ = stream.write(answer_line(&Err(busy)).as_bytes());
            return;
        };
        if self.epoll.add(&stream, EpollEvent::new(EpollFlags::EPOLLIN, at as u64)).is_ok() {
            let asker = Asker { peer: Peer::of(&stream), place: at, number: self.admitted };
            let (waits, last, input, output) = Default::default();
            self.admitted += 1;
            self.clients[at] = Some(Client { stream, asker, waits, input, output, active: now, last });
        }
    }

    fn serve(&mut self, at: usize, now: Instant, answer: &mut dyn FnMut(Asker, Request) -> Option<Answer>) {
        let Some(client) = self.clients.get_mut(at).and_then(Option::as_mut) else { return };
        client.active = now;
        let goes_on = client.turn(answer).is_ok() && !client.is_done();
        self.goes_on(at, goes_on);
    }

    /// Waits for what a client does next, or disconnects it.
    fn goes_on(&mut self, at: usize, goes_on: bool) {
        let Some(client) = &self.clients[at] else { return };
        let mut interest = EpollEvent::new(client.interest(), at as u64);
        if !goes_on || self.epoll.modify(&client.stream, &mut interest).is_err() {
            self.clients[at] = None;
        }
    }
}

impl AsFd for Server {
    /// The descriptor is readable when there is something for [`Server::turn`] to do.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.0.as_fd()
    }
}

/// Returns `None` for what only has to be tried again.
fn unless_busy<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(None),
        other => other.map(Some),
    }
}

impl Client {
    /// Answers one request that has come, or reads; then writes as much as the client takes.
    fn turn(&mut self, answer: &mut dyn FnMut(Asker, Request) -> Option<Answer>) -> io::Result<()> {
        if self.waits {
            // Nothing is expected of it, so it is gone.
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        if self.output.is_empty() {
            if !self.has_request() {
                self.read()?;
            }
            if let Some(end) = self.input.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.input.drain(..=end).collect();
                let told = Request::parse(&line).map_or_else(|no| Some(Err(no)), |request| answer(self.asker, request));
                self.waits = told.is_none();
                self.output = told.map_or_else(Vec::new, |told| answer_line(&told).into_bytes());
            } else if self.input.len() >= LONGEST_REQUEST {
                let refusal = Refusal::new(format!("a request has at most {LONGEST_REQUEST} bytes"));
                self.output = answer_line(&Err(refusal)).into_bytes();
                self.input.clear();
                self.last = true;
            }
        }
        self.write()
    }

    fn has_request(&self) -> bool {
        self.input.contains(&b'\n')
    }

    fn read(&mut self) -> io::Result<()> {
        let mut bytes = [0; 4096];
        if let Some(len) = unless_busy(self.stream.read(&mut bytes))? {
            self.input.extend_from_slice(&bytes[..len]);
            self.last |= len == 0;
        }
        Ok(())
    }

    fn write(&mut self) -> io::Result<()> {
        let len = unless_busy(self.stream.write(&self.output))?.unwrap_or_default();
        self.output.drain(..len).for_each(drop);
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.last && self.output.is_empty() && !self.has_request() && !self.waits
    }

    /// Nothing is read while an answer waits for the client, or a request for its answer.
    fn interest(&self) -> EpollFlags {
        if self.waits {
            return EpollFlags::empty();
        }
        if self.output.is_empty() && !self.has_request() { EpollFlags::EPOLLIN } else { EpollFlags::EPOLLOUT }
    }
}
