//! Where packets come from, and how they go on: the loop of `daemon` has them in between.

mod bridge;
mod neighbours;
mod router;

use crate::error::Error;
use crate::file::{File, Mode};
use crate::held::{Held, Origin};
use crate::report::{Frames, Past};
use crate::tap::Tap as _;
use crate::taps::Taps;
use bridge::Bridge;
use penstock_conntrack::Mac;
use penstock_core::qdisc::{DropReason, PacketObserver};
use penstock_core::units::{Instant, Limit, Span};
use penstock_linux::nfqueue::Listed;
use penstock_shaper::direction::Direction;
use penstock_shaper::pool::Pool;
use router::Router;
pub use router::kernel_queue;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// How packets come to this process and go on.
pub enum Gate {
    /// The kernel routes, and its firewall hands packets over.
    Router(Box<Router>),
    /// This process forwards between two ports of a bridge of the kernel.
    Bridge(Box<Bridge>),
}

/// A packet that has come.
#[derive(Debug)]
pub struct Arrived<'a> {
    /// The direction in which it travels.
    pub direction: Direction,
    /// What is needed to let it go on.
    pub origin: Origin,
    /// The hardware address of the host of the LAN that has sent it or is to get it, if that is known.
    pub hardware: Option<Mac>,
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
    /// What became of frames on a bridge.
    pub frames: Option<Frames>,
}

impl Gate {
    /// Takes charge of what packets pass; returns what happened as well. From here on packets come.
    ///
    /// # Errors
    /// Returns what is missing, and what to do about it. Nothing of a start that failed remains.
    pub fn open(file: &File) -> Result<(Self, Vec<String>), Error> {
        if file.keys.mode == Mode::Bridge {
            return Ok((Self::Bridge(Box::new(Bridge::open(file)?)), Vec::new()));
        }
        let (router, events) = Router::open(file)?;
        Ok((Self::Router(Box::new(router)), events))
    }

    /// The loop begins.
    pub fn begin(&mut self) {
        match self {
            Self::Router(router) => router.begin(),
            Self::Bridge(_) => {}
        }
    }

    /// Reads the next packet; `None` if none waits.
    ///
    /// # Errors
    /// Returns the error of the system.
    pub fn read(&mut self) -> io::Result<Option<Arrived<'_>>> {
        match self {
            Self::Router(router) => router.read(),
            Self::Bridge(bridge) => Ok(bridge.read()),
        }
    }

    /// Lets a packet go on, later than it was due by `late`. It leaves with the next [`Gate::flush`].
    pub fn accept(&mut self, direction: Direction, held: Held, late: Span, pool: &mut Pool) {
        match self {
            Self::Router(router) => {
                router.accept(&held);
                pool.give(held.into_bytes());
            }
            Self::Bridge(bridge) => bridge.accept(direction, held, late, pool),
        }
    }

    /// Lets a packet go on that was only observed. On a bridge it is the kernel's.
    pub fn pass(&mut self, origin: &Origin) {
        if let (Self::Router(router), Origin::Verdict { ticket, .. }) = (self, origin) {
            router.pass(*ticket);
        }
    }

    /// Hears that a packet was dropped.
    pub fn dropped(&mut self, origin: &Origin) {
        if let (Self::Router(router), Origin::Verdict { ticket, .. }) = (self, origin) {
            router.dropped(*ticket);
        }
    }

    /// Sends what waits to leave.
    pub fn flush(&mut self, pool: &mut Pool) {
        match self {
            Self::Router(router) => router.flush(),
            Self::Bridge(bridge) => bridge.flush(pool),
        }
    }

    /// Gives a sign of life; returns what happened.
    pub fn beat(&mut self, now: Instant) -> Vec<String> {
        match self {
            Self::Router(router) => router.beat(now),
            Self::Bridge(bridge) => bridge.beat(now),
        }
    }

    /// Looks, once a second, whether packets still come this way; returns what happened.
    pub fn look(&mut self, now: Instant) -> Option<String> {
        match self {
            Self::Router(router) => router.look(now),
            Self::Bridge(bridge) => return bridge.look(),
        }
        None
    }

    /// The limit of a direction is now another one.
    pub fn lengthen(&mut self, direction: Direction, limit: Limit) {
        if let Self::Router(router) = self {
            router.lengthen(direction, limit);
        }
    }

    /// Lets packets pass from now on that have not come yet.
    ///
    /// # Errors
    /// Returns what remains.
    pub fn close(&mut self) -> Result<(), Error> {
        match self {
            Self::Router(router) => router.close(),
            Self::Bridge(bridge) => bridge.close(),
        }
    }

    /// Lets those packets go on that have come and are not read; [`Gate::close`] was called before.
    pub fn empty(&mut self, pool: &mut Pool) {
        match self {
            Self::Router(router) => router.empty(),
            Self::Bridge(bridge) => bridge.empty(pool),
        }
    }

    /// Ends; packets already pass.
    pub fn retire(self) {
        if let Self::Router(router) = self {
            router.retire();
        }
    }

    /// True while packets pass ungoverned.
    pub fn is_open(&self) -> bool {
        match self {
            Self::Router(router) => router.is_open(),
            Self::Bridge(bridge) => bridge.is_open(),
        }
    }

    /// Returns what is wrong now, as sentences.
    pub fn marks(&self) -> Vec<String> {
        match self {
            Self::Router(router) => router.marks(),
            Self::Bridge(bridge) => bridge.marks(),
        }
    }

    /// Returns what the status tells.
    pub fn told(&self) -> Told {
        match self {
            Self::Router(router) => router.told(),
            Self::Bridge(bridge) => bridge.told(),
        }
    }
}

impl AsFd for Gate {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Router(router) => router.as_fd(),
            Self::Bridge(bridge) => bridge.as_fd(),
        }
    }
}

/// Gives the verdict of dropped packets, and their buffers back.
pub struct Verdicts<'a> {
    /// Where packets go on.
    pub gate: &'a mut Gate,
    /// Where buffers go.
    pub pool: &'a mut Pool,
    /// Who observes packets.
    pub taps: &'a mut Taps,
}

impl PacketObserver<Held> for Verdicts<'_> {
    fn dropped(&mut self, packet: Held, reason: DropReason, _: Instant) {
        self.taps.refused(&packet, reason);
        self.gate.dropped(packet.origin());
        self.pool.give(packet.into_bytes());
    }
    fn marked(&mut self, _: &Held, _: Instant) {}
}
