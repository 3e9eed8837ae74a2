//! Whether the gateway before this one is there: a standby serves only while it is not.
//!
//! ```text
//! every 250 ms   a long header of QUIC with a version that nobody has, and connection ids by chance
//! answer         a Version Negotiation packet with the same ids (RFC 9000, section 6), which needs no session
//! silent 1 s     the other one is gone: this one serves
//! answers 1 s    it is back: this one sends its nodes there
//! ```
//!
//! Only who sees the question can answer it.

use penstock_core::units::{Instant, Span};
use penstock_linux::random;
use penstock_linux::udp::Socket;
use std::io;
use std::net::SocketAddr;

/// How often the other gateway is asked.
const EVERY: Span = Span::from_millis(250);
/// For how long it must be silent, or answer, before that counts.
const SURE: Span = Span::from_secs(1);
/// A version of the form that is reserved to provoke an answer (RFC 9000, section 15).
const VERSION: [u8; 4] = [0x1a, 0x2a, 0x3a, 0x4a];
/// A server answers to no shorter datagram (RFC 9000, section 14.1).
const LENGTH: usize = 1200;
/// Bytes of each connection id.
const IDS: usize = 8;
/// Where the ids begin in question and answer: after the first byte, the version and a length.
const FIRST: usize = 6;

/// What is known of the other gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watch {
    ids: [u8; 2 * IDS],
    /// When it answered last; the beginning, before that.
    heard: Instant,
    /// When it was silent last for as long as three questions.
    gap: Instant,
    next: Instant,
    there: bool,
}

impl Watch {
    /// Begins to watch. The other gateway counts as there until it is silent.
    pub fn new(ids: [u8; 2 * IDS], now: Instant) -> Self {
        Self { ids, heard: now, gap: now, next: now, there: true }
    }

    /// The next question, if it is due.
    pub fn ask(&mut self, now: Instant) -> Option<Vec<u8>> {
        if now < self.next {
            return None;
        }
        self.next = now + EVERY;
        let mut question = vec![0; LENGTH];
        question[0] = 0xc0;
        question[1..5].copy_from_slice(&VERSION);
        for (at, id) in self.ids.chunks_exact(IDS).enumerate() {
            let from = FIRST + at * (IDS + 1);
            question[from - 1] = IDS as u8;
            question[from..from + IDS].copy_from_slice(id);
        }
        Some(question)
    }

    /// Takes what has come from the address of the other gateway.
    pub fn receive(&mut self, answer: &[u8], now: Instant) {
        let (ours, theirs) = self.ids.split_at(IDS);
        let id = |at: usize| answer.get(FIRST + at * (IDS + 1)..FIRST + at * (IDS + 1) + IDS);
        let negotiates = answer.first().is_some_and(|byte| byte & 0x80 != 0) && answer.get(1..5) == Some(&[0; 4]);
        // The answer has the ids the other way round.
        if negotiates && id(0) == Some(theirs) && id(1) == Some(ours) {
            if now > self.heard + EVERY * 3 {
                self.gap = now;
            }
            self.heard = now;
        }
    }

    /// True if the other gateway is there.
    pub fn is_there(&mut self, now: Instant) -> bool {
        if self.there {
            self.there = now < self.heard + SURE;
        } else {
            self.there = now < self.heard + EVERY * 3 && now >= self.gap + SURE;
        }
        self.there
    }

    /// When the next question is due.
    pub fn next_timeout(&self) -> Instant {
        self.next
    }
}

/// A watch with its socket.
#[derive(Debug)]
pub struct Watcher {
    watch: Watch,
    socket: Socket,
}

impl Watcher {
    /// Begins to watch the gateway at an address.
    pub fn open(of: SocketAddr, now: Instant) -> io::Result<Self> {
        let socket = Socket::connect(of)?;
        Ok(Self { watch: Watch::new(random::bytes()?, now), socket })
    }

    /// Asks and listens; returns true if the other gateway is there.
    pub fn turn(&mut self, now: Instant) -> bool {
        // Nobody at that port is silence as well.
        while let Some(datagram) = self.socket.receive() {
            self.watch.receive(datagram, now);
        }
        self.watch.ask(now).iter().for_each(|question| self.socket.send(question));
        self.watch.is_there(now)
    }

    /// When [`Watcher::turn`] is to be called next, if nothing arrives.
    pub fn next_timeout(&self) -> Instant {
        self.watch.next_timeout()
    }
}
