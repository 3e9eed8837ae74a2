//! Where packets come from, and how they go on: the loop of `daemon` has them in between.

mod router;

use crate::error::Error;
use crate::file::File;
use crate::held::Held;
use crate::report::Past;
use penstock_core::units::{Instant, Limit};
use penstock_net::direction::Direction;
use penstock_net::nfqueue::{Listed, Ticket};
use penstock_net::pool::Pool;
use router::Router;
pub use router::kernel_queue;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// How packets come to this process and go on.
pub enum Gate {
    /// The kernel routes, and its firewall hands packets over.
    Router(Router),
}

/// What is needed to let a packet go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The kernel keeps the packet until its verdict.
    Verdict {
        /// The name of the packet in the kernel.
        ticket: Ticket,
        /// False if the kernel gave only the beginning of the packet: then its bytes stay as they are.
        whole: bool,
    },
}

/// A packet that has come.
#[derive(Debug)]
pub struct Arrived<'a> {
    /// The direction in which it travels.
    pub direction: Direction,
    /// What is needed to let it go on.
    pub origin: Origin,
    /// The packet, beginning with its IP header.
    pub bytes: &'a [u8],
}

/// What the status tells of the way of packets.
#[derive(Debug, Default)]
pub struct Told {
    /// What went past the shaper.
    pub past: Past,
    /// The queues of the kernel.
    pub kernel_queues: Vec<Listed>,
    /// Number of verdicts that the kernel refused.
    pub refused_verdicts: u64,
    /// Number of packets that the kernel dropped in each direction, because they were not read in time.
    pub unread: [u64; 2],
}

impl Gate {
    /// Takes charge of what packets pass; returns what happened as well. From here on packets come.
    ///
    /// # Errors
    /// Returns what is missing, and what to do about it. Nothing of a start that failed remains.
    pub fn open(file: &File) -> Result<(Self, Vec<String>), Error> {
        let (router, events) = Router::open(file)?;
        Ok((Self::Router(router), events))
    }

    /// The loop begins.
    pub fn begin(&mut self) {
        match self {
            Self::Router(router) => router.begin(),
        }
    }

    /// Reads the next packet; `None` if none waits.
    ///
    /// # Errors
    /// Returns the error of the system.
    pub fn read(&mut self) -> io::Result<Option<Arrived<'_>>> {
        match self {
            Self::Router(router) => router.read(),
        }
    }

    /// Lets a packet go on. It leaves with the next [`Gate::flush`].
    pub fn accept(&mut self, held: Held, pool: &mut Pool) {
        match self {
            Self::Router(router) => router.accept(&held),
        }
        pool.give(held.into_bytes());
    }

    /// Lets a packet go on that is not held, as it came.
    pub fn pass(&mut self, origin: &Origin) {
        match (self, origin) {
            (Self::Router(router), Origin::Verdict { ticket, .. }) => router.pass(*ticket),
        }
    }

    /// Hears that a packet was dropped.
    pub fn dropped(&mut self, origin: &Origin) {
        match (self, origin) {
            (Self::Router(router), Origin::Verdict { ticket, .. }) => router.dropped(*ticket),
        }
    }

    /// Sends what waits to leave.
    pub fn flush(&mut self) {
        match self {
            Self::Router(router) => router.flush(),
        }
    }

    /// Gives a sign of life; returns what happened.
    pub fn beat(&mut self, now: Instant) -> Vec<String> {
        match self {
            Self::Router(router) => router.beat(now),
        }
    }

    /// Looks, once a second, whether packets still come this way.
    pub fn look(&mut self, now: Instant) {
        match self {
            Self::Router(router) => router.look(now),
        }
    }

    /// The limit of a direction is now another one.
    pub fn lengthen(&mut self, direction: Direction, limit: Limit) {
        match self {
            Self::Router(router) => router.lengthen(direction, limit),
        }
    }

    /// Lets packets pass from now on, and those that have come and are not read.
    ///
    /// # Errors
    /// Returns what remains.
    pub fn close(&mut self) -> Result<(), Error> {
        match self {
            Self::Router(router) => router.close(),
        }
    }

    /// Lets those packets go on that have come and are not read; [`Gate::close`] was called before.
    pub fn empty(&mut self) {
        match self {
            Self::Router(router) => router.empty(),
        }
    }

    /// Ends; packets already pass.
    pub fn retire(self) {
        match self {
            Self::Router(router) => router.retire(),
        }
    }

    /// True while packets pass ungoverned.
    pub fn is_open(&self) -> bool {
        match self {
            Self::Router(router) => router.is_open(),
        }
    }

    /// Returns what is wrong now, as sentences.
    pub fn marks(&self) -> Vec<String> {
        match self {
            Self::Router(router) => router.marks(),
        }
    }

    /// Returns what the status tells.
    pub fn told(&self) -> Told {
        match self {
            Self::Router(router) => router.told(),
        }
    }
}

impl AsFd for Gate {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Router(router) => router.as_fd(),
        }
    }
}
