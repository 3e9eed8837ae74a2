//! The loop of the emulator: reads packets that arrived, writes packets that are due, and sleeps until the next event.
//! It uses one thread.

use crate::bottleneck::Delivery;
use crate::classify::Classifier;
use crate::cli::Plan;
use crate::direction::Direction;
use crate::emissions::Emissions;
use crate::error::Error;
use crate::journal;
use crate::netns::Namespace;
use crate::path::Path;
use crate::pool::Pool;
use crate::report::Report;
use crate::scheduling;
use crate::tun::Tun;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::time::TimeSpec;
use penstock_core::packet::Packet;
use penstock_core::rng::Streams;
use penstock_core::units::{Instant, Span};
use penstock_core::wire::RealPacket;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::fd::AsFd;

/// Largest number of packets read from one side before the other side and the clock get their turn.
const BATCH: usize = 32;

/// A running bottleneck between two interfaces.
pub struct Emulator {
    plan: Plan,
    path: Path<RealPacket>,
    tuns: [Tun; 2],
    classifier: Classifier,
    pool: Pool,
    emissions: [Emissions; 2],
    signals: SignalFd,
    epoch: std::time::Instant,
}

/// Why a sleep ended: which interfaces have packets, and whether a signal asks to stop.
#[derive(Debug, Default)]
struct Wakeup {
    readable: [bool; 2],
    stop: bool,
}

impl Emulator {
    /// Creates the interfaces and an idle bottleneck between them. From here on SIGINT and SIGTERM end the run.
    ///
    /// # Errors
    /// Returns what is missing, and what to do about it.
    pub fn open(plan: Plan, namespaces: &[Namespace; 2]) -> Result<Self, Error> {
        if namespaces[0].is(&namespaces[1]) {
            let message = "left and right must be in two namespaces, for packets between addresses of one never leave \
                           its kernel; give --left-netns and --right-netns (`ip netns add NAME` makes one)";
            return Err(Error::Options(message.into()));
        }
        let tuns = [Tun::open(&plan.interfaces[0], &namespaces[0])?, Tun::open(&plan.interfaces[1], &namespaces[1])?];
        let signals = termination_signals()?;
        if plan.realtime {
            scheduling::realtime()?;
        }
        scheduling::exact_timers()?;
        let streams = Streams::new(plan.seed);
        let mtu = usize::from(plan.interfaces[0].mtu);
        let mut path = Path::new(&plan.bottlenecks[0], &plan.bottlenecks[1], streams);
        path.lose(plan.loss, streams);
        if plan.packets.is_some() {
            path.keep_journals();
        }
        Ok(Self {
            path,
            tuns,
            classifier: Classifier::new(streams, plan.nodes),
            pool: Pool::new(mtu),
            emissions: Default::default(),
            signals,
            epoch: std::time::Instant::now(),
            plan,
        })
    }

    /// Moves packets until the duration is over or a signal comes.
    ///
    /// # Errors
    /// Fails if an interface was removed or the system refuses to wait.
    pub fn run(mut self) -> Result<Report, Error> {
        let end = self.plan.duration.map(|duration| Instant::ZERO + duration);
        loop {
            let now = self.write_what_is_due();
            if end.is_some_and(|end| now >= end) {
                break;
            }
            let wakeup = self.sleep(now, end)?;
            if wakeup.stop {
                break;
            }
            for from in Direction::BOTH {
                if wakeup.readable[from.index()] {
                    self.read_what_came(from)?;
                }
            }
        }
        let elapsed = self.now().since(Instant::ZERO);
        self.write_journals().map_err(Error::io("cannot write the file of --packets"))?;
        Ok(Report::new(&self.plan, &self.path, &self.emissions, self.classifier.unclassified(), elapsed))
    }

    fn write_journals(&self) -> std::io::Result<()> {
        let Some(file) = &self.plan.packets else { return Ok(()) };
        let mut out = BufWriter::new(File::create(file)?);
        writeln!(out, "{}", journal::CSV_HEADER)?;
        for (direction, name) in Direction::BOTH.into_iter().zip(["forward", "reverse"]) {
            if let Some(journal) = self.path.direction(direction).journal() {
                journal.write(name, &mut out)?;
            }
        }
        out.flush()
    }

    /// Returns the time since the start by CLOCK_MONOTONIC.
    fn now(&self) -> Instant {
        Instant::from_nanos(u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Writes all packets that are due; returns the time up to which everything has been written.
    fn write_what_is_due(&mut self) -> Instant {
        loop {
            let now = self.now();
            let Some((direction, Delivery { due, packet })) = self.path.poll(now, &mut self.pool) else { return now };
            let emissions = &mut self.emissions[direction.index()];
            emissions.lateness.record(now.since(due));
            let len = packet.size().get() as usize;
            let tun = &self.tuns[direction.opposite().index()];
            if tun.write(&packet.bytes()[..len]).is_err() {
                emissions.refused += 1;
            }
            self.pool.give(packet.into_bytes());
        }
    }

    /// Reads packets that travel in `direction` from the interface where this direction begins.
    fn read_what_came(&mut self, direction: Direction) -> Result<(), Error> {
        for _ in 0..BATCH {
            let mut buffer = self.pool.take();
            let read = self.tuns[direction.index()].read(&mut buffer);
            let Some(len) = read.map_err(Error::io("cannot read from an interface; was it removed?"))? else {
                self.pool.give(buffer);
                break;
            };
            let now = self.write_what_is_due();
            let (packet, owner) = self.classifier.packet(direction, buffer, len, now, &mut self.pool);
            owner.iter().for_each(|owner| self.path.set_owner(owner, now));
            self.path.arrive(direction, packet, now, &mut self.pool);
        }
        Ok(())
    }

    /// Waits from `now` on for a packet, a signal, the next packet that is due or the end, whichever comes first.
    fn sleep(&self, now: Instant, end: Option<Instant>) -> Result<Wakeup, Error> {
        let readable = PollFlags::POLLIN;
        let mut fds = [
            PollFd::new(self.tuns[0].as_fd(), readable),
            PollFd::new(self.tuns[1].as_fd(), readable),
            PollFd::new(self.signals.as_fd(), readable),
        ];
        match ppoll(&mut fds, self.timeout(now, end).map(timespec), None) {
            Err(Errno::EINTR) => return Ok(Wakeup::default()),
            other => other.map_err(Error::io("cannot wait for packets"))?,
        };
        let ready = |i: usize| fds[i].revents().is_some_and(|events| !events.is_empty());
        Ok(Wakeup { readable: [ready(0), ready(1)], stop: ready(2) })
    }

    /// Returns how long to sleep; `None` without a limit.
    fn timeout(&self, now: Instant, end: Option<Instant>) -> Option<Span> {
        if self.plan.spin {
            return Some(Span::ZERO);
        }
        let next = [self.path.next_due(), end].into_iter().flatten().min()?;
        Some(next.since(now))
    }
}

fn timespec(span: Span) -> TimeSpec {
    std::time::Duration::from_nanos(span.as_nanos()).into()
}

/// Returns a descriptor that becomes readable at SIGINT or SIGTERM, which no longer end the process.
fn termination_signals() -> Result<SignalFd, Error> {
    let mut set = SigSet::empty();
    set.add(Signal::SIGINT);
    set.add(Signal::SIGTERM);
    set.thread_block().map_err(Error::io("cannot block signals"))?;
    SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)
        .map_err(Error::io("cannot open a signalfd"))
}
