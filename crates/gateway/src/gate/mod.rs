//! Where packets come from, and how they go on: the loop of `daemon` has them in between.

mod bridge;
mod router;

use crate::error::Error;
use crate::file::{File, Mode};
use crate::held::{Held, Origin};
use crate::life::Standing;
use crate::report::{Past, Told};
use crate::tap::Tap as _;
use crate::taps::Taps;
use penstock_conntrack::Mac;
use penstock_core::qdisc::{DropReason, PacketObserver};
use penstock_core::units::{Instant, Limit, Span};
use penstock_shaper::direction::Direction;
use penstock_shaper::pool::Pool;
pub use router::kernel_queue;
use std::io;
use std::os::fd::AsFd;

#[derive(Debug)]
pub struct Arrived<'a> {
    pub direction: Direction,
    pub origin: Origin,
    /// The hardware address of the host of the LAN that has sent it or is to get it, if that is known.
    pub hardware: Option<Mac>,
    /// The packet, beginning with its IP header.
    pub bytes: &'a [u8],
}

/// How packets come to this process and go on. A method that a gate does not have does nothing.
pub trait Gate: AsFd {
    fn begin(&mut self) {}

    /// Reads the next packet; `None` if none waits.
    fn read(&mut self) -> io::Result<Option<Arrived<'_>>>;

    /// Lets a packet go on, later than it was due by `late`. It leaves with the next [`Gate::flush`].
    fn accept(&mut self, direction: Direction, held: Held, late: Span, pool: &mut Pool);

    /// Lets a packet go on that was only observed. On a bridge it is the kernel's.
    fn pass(&mut self, _: &Origin) {}

    /// Hears that a packet was dropped.
    fn dropped(&mut self, _: &Origin) {}

    /// Sends what waits to leave.
    fn flush(&mut self, pool: &mut Pool);

    /// Gives a sign of life; returns what happened.
    fn beat(&mut self, now: Instant) -> Vec<String>;

    /// Looks, once a second, whether packets still come this way; returns what happened.
    fn look(&mut self, now: Instant) -> Option<String>;

    /// The limit of a direction is now another one.
    fn lengthen(&mut self, _: Direction, _: Limit) {}

    /// Lets packets pass from now on that have not come yet; the error tells what remains.
    fn close(&mut self) -> Result<(), Error>;

    /// Lets those packets go on that have come and are not read; [`Gate::close`] was called before.
    fn empty(&mut self, pool: &mut Pool);

    /// Ends; packets already pass.
    fn retire(self: Box<Self>) {}

    /// Hears that packets seem to pass beside this process: looks closely, the next time.
    fn doubt(&mut self) {}

    /// Returns whether packets come here.
    fn standing(&self) -> Standing;

    /// Returns what has passed because this process hung.
    fn past(&self) -> Past;

    /// Returns what is wrong besides.
    fn marks(&self) -> Vec<String>;

    fn told(&self) -> Told;
}

/// Takes charge of what packets pass; returns what happened as well. From here on packets come. Nothing of a start that failed
/// remains.
pub fn open(file: &File) -> Result<(Box<dyn Gate>, Vec<String>), Error> {
    if file.keys.mode == Mode::Bridge {
        let (bridge, events) = bridge::Bridge::open(file)?;
        return Ok((Box::new(bridge), events));
    }
    let (router, events) = router::Router::open(file)?;
    Ok((Box::new(router), events))
}

/// Where packets go: on, or back as buffers. It gives the verdict of those that disciplines drop.
pub struct Traffic {
    pub gate: Box<dyn Gate>,
    pub pool: Pool,
    pub taps: Taps,
}

impl PacketObserver<Held> for Traffic {
    fn dropped(&mut self, packet: Held, reason: DropReason, _: Instant) {
        self.taps.refused(&packet, reason);
        self.gate.dropped(&packet.origin);
        self.pool.give(packet.into_bytes());
    }
    fn marked(&mut self, _: &Held, _: Instant) {}
}
