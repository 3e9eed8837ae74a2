//! The loop of the emulator: reads packets that arrived, writes packets that are due, and sleeps until the next event.
//! It uses one thread, or one for each wire. What is slow waits for it: clients of the control socket, signals, the file of packets.

use crate::answers;
use crate::carried::Carried;
use crate::cli::Plan;
use crate::end::{self, End, Interface, Read};
use crate::ended::Ended;
use crate::error::Error;
use crate::outputs::Outputs;
use crate::packets::{Closed, Lines};
use crate::report::{Observed, Report};
use crate::through::{INTERFACES, Through};
use crate::waits::{Pause, Waits};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::time::TimeSpec;
use penstock_appliance::change::Change;
use penstock_appliance::output::Offers;
use penstock_appliance::socket::server::Server;
use penstock_core::packet::FlowId;
use penstock_core::rng::Streams;
use penstock_core::units::{Instant, Span};
use penstock_core::wire::RealPacket;
use penstock_grammar::stations::StationSpec;
use penstock_linux::links::LinkWatch;
use penstock_linux::netns::Namespace;
use penstock_linux::random;
use penstock_linux::scheduling::{self, Awake};
use penstock_linux::signals::{Request, Signals};
use penstock_linux::stalls::{LONGEST_SLEEP, ProcessorWait, Stalls, Suspension};
use penstock_shaper::bottleneck::Delivery;
use penstock_shaper::classify::Classifier;
use penstock_shaper::direction::Direction;
use penstock_shaper::emissions::{Emissions, Stopwatch};
use penstock_shaper::intake::Intake;
use penstock_shaper::keys::Keys;
use penstock_shaper::path::Path;
use penstock_shaper::pool::{LARGEST, Pool};
use penstock_shaper::sheet::ENTRIES;
use penstock_shaper::talkers::Talkers;
use std::io::Write as _;
use std::num::NonZero;
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::Duration;

/// Largest number of packets read from one side before the other side and the clock get their turn.
const BATCH: usize = 32;
/// How often counters are asked for, and rates computed.
const TICK: Span = Span::from_secs(1);
/// Shortest time between two turns of what is slow: clients, however many ask, cannot take the processor from packets.
const BETWEEN_SLOW: Span = Span::from_millis(1);
/// How long the file of packets may delay the report.
const FILE_PATIENCE: Duration = Duration::from_secs(1);

/// A running bottleneck between two interfaces.
pub struct Emulator {
    pub(crate) plan: Plan,
    pub(crate) path: Path<Carried>,
    ends: [End; 2],
    /// The queues of the kernel before those of `path`.
    through: [Option<Through>; 2],
    /// Takes what comes from them.
    rest: Box<[u8]>,
    pub(crate) classifier: Classifier,
    pub(crate) pool: Pool,
    emissions: [Emissions; 2],
    /// The time that disciplines take, if one of them is of somebody's own crate.
    stopwatch: Option<Stopwatch>,
    intakes: [Intake; 2],
    links: [LinkWatch; 2],
    stalls: Stalls,
    suspension: Suspension,
    processor: ProcessorWait,
    waits: Waits,
    short_of_memory: u64,
    awake: Option<Awake>,
    /// Numbers of packets that were forwarded at once.
    bare: [u64; 2],
    outputs: Outputs,
    pub(crate) talkers: Talkers,
    pub(crate) changes: Vec<Change>,
    pub(crate) snapshot: answers::Snapshot,
    signals: Signals,
    server: Option<Server>,
    /// Readable if there is something for `serve_slow`.
    slow: Epoll,
    printer: Offers,
    epoch: std::time::Instant,
    next_tick: Instant,
    /// When the loop last came back from its sleep.
    woken: Instant,
    /// Nothing slow is done before this time.
    next_slow: Instant,
}

/// Why a sleep ended: which interfaces have packets, and whether something slow is ready.
#[derive(Debug, Default)]
struct Wakeup {
    readable: [bool; 2],
    /// Whether the queues of the kernel have let packets go.
    let_go: [bool; 2],
    slow: bool,
    /// For how long the process, which slept until now, had no processor; `None` if it did not sleep.
    waited: Option<Span>,
}

/// What a run has to do with besides packets.
pub struct Outside {
    /// End the run, or ask for a report.
    pub signals: Signals,
    /// The control socket; `None` without one.
    pub server: Option<Server>,
    /// Prints reports that are asked for meanwhile.
    pub printer: Offers,
}

/// A run that has ended. Its interfaces are gone.
pub struct Finished {
    /// The results of the run.
    pub report: Report,
    /// What made the run end before it should, as a sentence.
    pub failure: Option<String>,
    /// The files of `--packets` and `--pcapng`, which may still be written.
    pub files: Vec<Closed>,
}

impl Emulator {
    /// Creates the interfaces and an idle bottleneck between them, for this thread.
    ///
    /// # Errors
    /// Returns what is missing, and what to do about it.
    pub fn open(plan: Plan, namespaces: &[Namespace; 2], outside: Outside) -> Result<Self, Error> {
        let (Outside { signals, server, printer }, [here, there]) = (outside, namespaces);
        let makes = plan.interfaces.iter().any(|interface| matches!(interface, Interface::Tun(_)));
        if makes && here.is(there) {
            let message = "left and right must be in two namespaces, for packets between addresses of one never leave \
                           its kernel; give --left-netns and --right-netns (`ip netns add NAME` makes one)";
            return Err(Error::Options(message.into()));
        }
        let epoch = std::time::Instant::now();
        let ends = [End::open(&plan.interfaces[0], here)?, End::open(&plan.interfaces[1], there)?];
        end::same_mtu(&plan.interfaces, &ends)?;
        let links = [LinkWatch::open(here, ends[0].index())?, LinkWatch::open(there, ends[1].index())?];
        let through =
            |at: usize| plan.through[at].as_ref().map(|one| Through::open(one, ends[0].mtu() as u16)).transpose();
        let through = [through(0)?, through(1)?];
        let slow = slow_events(&signals, &links, server.as_ref()).map_err(Error::io("cannot wait for signals"))?;
        // Threads are started before this one gets a priority, which they would inherit.
        let outputs = Outputs::open(&plan, epoch)?;
        scheduling::prompt(plan.realtime)?;
        let awake = (plan.realtime || plan.spin).then(Awake::keep).flatten();
        let mut path = Path::new(&plan.bottlenecks[0], &plan.bottlenecks[1], Streams::new(plan.seed));
        path.direction_mut(Direction::Forward).set_loss(plan.loss);
        path.serve(plan.stations.iter().map(StationSpec::channel).collect(), Streams::new(plan.seed));
        outputs.fill_from(&mut path);
        let keys = keys(&plan)?;
        Ok(Self {
            path,
            through,
            rest: vec![0; LARGEST].into_boxed_slice(),
            classifier: classifier(&plan, keys),
            pool: Pool::new(ends[0].mtu()),
            ends,
            emissions: Default::default(),
            stopwatch: plan.bottlenecks.iter().any(|bottleneck| bottleneck.aqm.is_foreign()).then(Stopwatch::default),
            intakes: Default::default(),
            links,
            stalls: Stalls::default(),
            suspension: Suspension::default(),
            processor: ProcessorWait::open(),
            waits: Waits::among(plan.wires, thread::available_parallelism().map_or(1, NonZero::get)),
            short_of_memory: 0,
            awake,
            bare: [0; 2],
            outputs,
            talkers: Talkers::new(keys.talkers),
            changes: Vec::new(),
            snapshot: answers::Snapshot::default(),
            signals,
            server,
            slow,
            printer,
            epoch,
            next_tick: Instant::ZERO + TICK,
            woken: Instant::ZERO,
            next_slow: Instant::ZERO,
            plan,
        })
    }

    /// Moves packets until the duration is over, a signal comes or an interface is gone. Returns the report in any case, and
    /// the signals, which still end nothing by themselves.
    pub fn run(mut self) -> (Finished, Signals) {
        let ended = catch_unwind(AssertUnwindSafe(|| self.forward())).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            Ended::Failed(format!("a fault of this program: {}", text.unwrap_or_default()))
        });
        self.finish(&ended)
    }

    fn finish(mut self, ended: &Ended) -> (Finished, Signals) {
        self.flush();
        self.links.iter_mut().for_each(LinkWatch::refresh);
        self.note_facts();
        let elapsed = self.now().since(Instant::ZERO);
        self.outputs.exchange(&mut self.path, 1, None);
        let closed = self.outputs.close(FILE_PATIENCE);
        let report = Report::new(&self.plan, &self.path, self.observed(ended, elapsed, closed.lines()));
        let files = closed.all();
        (Finished { report, failure: ended.failure(), files }, self.signals)
    }

    /// The loop; returns why it ended.
    fn forward(&mut self) -> Ended {
        let end = self.plan.duration.map(|duration| Instant::ZERO + duration);
        self.woken = self.now();
        loop {
            let now = self.write_what_is_due();
            self.flush();
            if end.is_some_and(|end| now >= end) {
                return Ended::Duration;
            }
            if now >= self.next_tick {
                self.tick(now);
            }
            let wakeup = match self.sleep(now, end) {
                Ok(wakeup) => wakeup,
                Err(error) => return Ended::Failed(format!("cannot wait for packets: {error}")),
            };
            if wakeup.slow
                && let Some(ended) = self.serve_slow()
            {
                return ended;
            }
            for from in Direction::BOTH {
                let at = from.index();
                let removed = |name: &str, error| {
                    Ended::Failed(format!("cannot read from the interface {name}; was it removed? ({error})"))
                };
                if wakeup.readable[at]
                    && let Err(error) = self.read_what_came(from, wakeup.waited)
                {
                    return removed(self.plan.interfaces[at].name(), error);
                }
                if (wakeup.readable[at] || wakeup.let_go[at])
                    && let Err(error) = self.read_what_was_let_go(from)
                {
                    return removed(INTERFACES[1], error);
                }
            }
        }
    }

    /// Returns the report up to now.
    pub(crate) fn report(&self) -> Report {
        let lines = self.outputs.lines();
        let elapsed = self.now().since(Instant::ZERO);
        Report::new(&self.plan, &self.path, self.observed(&Ended::Not, elapsed, lines))
    }

    fn observed(&self, ended: &Ended, elapsed: Span, lines: [Option<Lines>; 2]) -> Observed<'_> {
        Observed {
            emissions: &self.emissions,
            intakes: &self.intakes,
            frames: [0, 1].map(|side| self.ends[side].frames()),
            unclassified: self.classifier.unclassified(),
            flows: self.classifier.gauges(),
            stalls: self.stalls,
            short_of_memory: self.short_of_memory,
            awake: self.awake.is_some(),
            bare: self.plan.bare.then_some(self.bare),
            lines,
            stopwatch: self.stopwatch.as_ref(),
            changes: &self.changes,
            through: self.through.each_ref().map(|through| through.as_ref().map(Through::counters)),
            ended: ended.text(),
            elapsed,
        }
    }

    /// Returns the time since the start by CLOCK_MONOTONIC.
    pub(crate) fn now(&self) -> Instant {
        Instant::from_nanos(u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Writes all packets that are due; returns the time up to which everything has been written.
    pub(crate) fn write_what_is_due(&mut self) -> Instant {
        loop {
            let now = self.now();
            let works = self.stopwatch.is_some() && self.path.next_event().is_some_and(|at| at <= now);
            let polled = self.path.poll(now, &mut self.pool);
            if works {
                self.time_since(now, Stopwatch::add);
            }
            let Some((direction, Delivery { due, packet })) = polled else {
                self.outputs.exchange(&mut self.path, ENTRIES, None);
                return now;
            };
            if self.server.is_some() {
                self.talkers.count(direction, packet.packet(), now);
            }
            let end = &mut self.ends[direction.opposite().index()];
            end.write(due, packet, now, &mut self.emissions[direction.index()], &mut self.pool);
            self.outputs.exchange(&mut self.path, ENTRIES, None);
        }
    }

    /// Writes the packets that ends have kept to write them together.
    fn flush(&mut self) {
        let now = self.now();
        for direction in Direction::BOTH {
            let end = &mut self.ends[direction.opposite().index()];
            end.flush(now, &mut self.emissions[direction.index()], &mut self.pool);
        }
    }

    /// Gives the stopwatch the time since `begin`, if there is a stopwatch.
    fn time_since(&mut self, begin: Instant, add: fn(&mut Stopwatch, Span)) {
        if self.stopwatch.is_some() {
            let took = self.now().since(begin);
            self.stopwatch.iter_mut().for_each(|watch| add(watch, took));
        }
    }

    /// Reads packets that travel in `direction` from the interface where this direction begins. `waited` is how long the
    /// first of them had waited to be read when the loop woke up, as far as it is known.
    fn read_what_came(&mut self, direction: Direction, mut waited: Option<Span>) -> std::io::Result<()> {
        let at = direction.index();
        // Who is stopped after the look, and before the time is taken, must not believe that nothing came since then.
        let mut looked = self.now();
        let mut since = self.woken;
        for _ in 0..BATCH {
            let (buffer, len, lead) = match self.ends[at].read(&mut self.pool)? {
                Read::Packet(buffer, len, lead) => (buffer, len, lead),
                Read::NoMemory => {
                    self.short_of_memory += 1;
                    return Ok(());
                }
                Read::Nothing => {
                    self.intakes[at].note_empty(looked);
                    return Ok(());
                }
            };
            if len > self.ends[at].mtu() {
                self.intakes[at].oversize += 1;
            }
            if self.plan.bare {
                self.forward_at_once(direction, Carried::new(RealPacket::new(buffer, FlowId(0)), lead), looked);
                continue;
            }
            let now = self.write_what_is_due();
            if self.through[at].is_none()
                && let Some(idle_since) = self.path.direction(direction).idle_since()
            {
                let waited = waited.map(|waited| waited + now.since(since));
                self.intakes[at].note_idle(idle_since, waited, now);
            }
            // The packets behind this one have waited as well, but for them the wire is busy now.
            (waited, since) = (Some(Span::ZERO), now);
            let (packet, facts) = self.classifier.packet(direction, buffer, len, now, &mut self.pool);
            self.path.tell(&facts, now);
            if let Some(warning) = self.classifier.warning() {
                let _ = writeln!(std::io::stderr(), "{warning}");
            }
            let begin = self.stopwatch.as_ref().map_or(now, |_| self.now());
            let packet = Carried::new(packet, lead);
            let stays = match &mut self.through[at] {
                Some(through) => through.lend(packet, now),
                None => Some(packet),
            };
            if let Some(packet) = stays {
                self.path.arrive(direction, packet, now, &mut self.pool);
            }
            self.time_since(begin, Stopwatch::arrived);
            looked = now;
        }
        Ok(())
    }

    fn forward_at_once(&mut self, direction: Direction, packet: Carried, now: Instant) {
        self.bare[direction.index()] += 1;
        let end = &mut self.ends[direction.opposite().index()];
        end.write(now, packet, now, &mut self.emissions[direction.index()], &mut self.pool);
    }

    /// Reads packets that travel in `direction` and that the queue of the kernel has let go, and notes those that it dropped.
    fn read_what_was_let_go(&mut self, direction: Direction) -> std::io::Result<()> {
        let at = direction.index();
        for _ in 0..BATCH {
            let Some(through) = &self.through[at] else { return Ok(()) };
            let Some(len) = through.read(&mut self.rest)? else { return Ok(()) };
            let now = self.write_what_is_due();
            let Some(through) = &mut self.through[at] else { return Ok(()) };
            let back = through.take_back(&self.rest[..len]);
            let bottleneck = self.path.direction_mut(direction);
            while let Some(lost) = through.next_lost() {
                let packet = bottleneck.note_dropped(lost.packet, lost.since, now, through.drops());
                self.pool.give(packet.into_bytes());
            }
            if let Some(loan) = back {
                if let Some(idle_since) = bottleneck.idle_since() {
                    self.intakes[at].note_starved(now.since(idle_since.max(loan.since)));
                }
                bottleneck.arrive_since(loan.packet, loan.since, now, &mut self.pool);
            }
        }
        Ok(())
    }

    /// What is done once a second.
    fn tick(&mut self, now: Instant) {
        self.next_tick = now + TICK;
        self.links.iter().for_each(LinkWatch::ask);
        self.note_facts();
        self.talkers.tick(now);
        self.path.direction_mut(Direction::Forward).look_at_channels(now);
        self.outputs.exchange(&mut self.path, 1, Some(now));
        if let Some(server) = &mut self.server {
            server.tidy(std::time::Instant::now());
        }
    }

    fn note_facts(&mut self) {
        for ((intake, link), end) in self.intakes.iter_mut().zip(&self.links).zip(&mut self.ends) {
            intake.unread = end.unread(link.facts().unread);
        }
        for (intake, through) in self.intakes.iter_mut().zip(&mut self.through) {
            intake.unread += through.as_mut().map_or(0, Through::unread);
        }
        self.stalls.note_suspended(self.suspension.so_far());
    }

    /// Does what is slow and ready, a little of it; returns why the run ends, if it does.
    fn serve_slow(&mut self) -> Option<Ended> {
        while let Some(request) = self.signals.next() {
            match request {
                Request::End(signal) => return Some(Ended::Signal(signal)),
                Request::Report => {
                    self.links.iter_mut().for_each(LinkWatch::refresh);
                    self.note_facts();
                    // If earlier reports are still being printed, one more would say little else.
                    if let Ok(text) = self.report().text(self.plan.json) {
                        self.printer.offer(text);
                    }
                }
            }
        }
        self.links.iter_mut().for_each(LinkWatch::read);
        // A TUN interface that is gone tells it when it is read; the socket of a port does not.
        if let Some(side) = self.links.iter().position(|link| link.facts().gone) {
            let name = self.plan.interfaces[side].name();
            return Some(Ended::Failed(format!("cannot read from the interface {name}; was it removed?")));
        }
        if let Some(mut server) = self.server.take() {
            server.turn(std::time::Instant::now(), &mut |_, request| answers::answer(self, request));
            self.server = Some(server);
        }
        self.next_slow = self.now() + BETWEEN_SLOW;
        None
    }

    /// Waits from `now` on for a packet, a signal, the next packet that is due or the end, whichever comes first.
    fn sleep(&mut self, now: Instant, end: Option<Instant>) -> Result<Wakeup, Errno> {
        let pause = if self.plan.spin {
            Pause::default()
        } else {
            self.waits.pause(now, self.path.next_due(), self.next_of_others(now, end))
        };
        let timeout = pause.timeout;
        // Without memory packets stay in the kernel until a buffer is free, and clients get their turn once in a while.
        let looks = self.pool.has_buffer() && pause.looks;
        let if_true = |is| if is { PollFlags::POLLIN } else { PollFlags::empty() };
        let (reads, serves) = (if_true(looks), if_true(now >= self.next_slow));
        let mut fds = [
            PollFd::new(self.slow.0.as_fd(), serves),
            PollFd::new(self.ends[0].as_fd(), reads),
            PollFd::new(self.ends[1].as_fd(), reads),
            let_go(&self.through[0], &self.ends[0]),
            let_go(&self.through[1], &self.ends[1]),
        ];
        let idle =
            timeout > Span::ZERO && Direction::BOTH.into_iter().any(|d| self.path.direction(d).idle_since().is_some());
        let before = if idle { self.processor.so_far() } else { Span::ZERO };
        self.stalls.note(self.woken, now);
        let polled = ppoll(&mut fds, Some(timespec(timeout)), None);
        let woken = self.now();
        self.stalls.note(now + timeout, woken);
        self.woken = woken;
        match polled {
            Err(Errno::EINTR) => return Ok(Wakeup::default()),
            other => other?,
        };
        let ready = |i: usize| fds[i].revents().is_some_and(|events| !events.is_empty());
        for (end, fd) in self.ends.iter().zip(&fds[1..]) {
            if fd.revents().is_some_and(|events| events.contains(PollFlags::POLLERR)) {
                end.calm();
            }
        }
        let mut wakeup = Wakeup {
            slow: ready(0),
            readable: [ready(1), ready(2)],
            let_go: [ready(3), ready(4)],
            waited: Some(Span::ZERO),
        };
        let slept = woken.since(now) > NO_SLEEP;
        if looks {
            for (intake, readable) in self.intakes.iter_mut().zip(wakeup.readable) {
                if !readable {
                    intake.note_empty(if slept { woken } else { now });
                }
            }
        }
        let came = wakeup.readable.contains(&true);
        self.waits.note(&pause, woken, slept, came);
        if idle && came {
            // Linux from 6.12 on does not count every wait: then it is at least what the sleep was too long.
            let too_long = woken.since(now + timeout);
            wakeup.waited = slept.then(|| too_long.max(self.processor.so_far() - before));
        }
        Ok(wakeup)
    }

    /// Returns when there is something to do besides packets.
    fn next_of_others(&self, now: Instant, end: Option<Instant>) -> Instant {
        let next_slow = (self.next_slow > now).then_some(self.next_slow);
        let next = [next_slow, end, Some(self.next_tick)].into_iter().flatten().min();
        next.map_or(now + LONGEST_SLEEP, |next| next.min(now + LONGEST_SLEEP))
    }
}

/// A call of `ppoll` that took no longer has not slept: a packet was there before.
const NO_SLEEP: Span = Span::from_micros(5);
/// Returns the keys of hashes: those of the seed, if one was given.
fn keys(plan: &Plan) -> Result<Keys, Error> {
    match plan.keys {
        Some(seed) => Ok(Keys::from_seed(seed)),
        None => random::bytes().map(|bytes| Keys::from_random(&bytes)).map_err(Error::io("cannot draw random numbers")),
    }
}

fn classifier(plan: &Plan, keys: Keys) -> Classifier {
    let config =
        penstock_conntrack::Config { subscribers: plan.subscribers.clone(), ..penstock_conntrack::Config::default() };
    Classifier::new(config, keys, plan.nodes).with_hosts(&plan.hosts)
}

/// Returns what to wait for of a queue of the kernel: nothing, if there is none; `end` is any interface then.
fn let_go<'a>(through: &'a Option<Through>, end: &'a End) -> PollFd<'a> {
    match through {
        Some(through) => PollFd::new(through.as_fd(), PollFlags::POLLIN),
        None => PollFd::new(end.as_fd(), PollFlags::empty()),
    }
}

fn timespec(span: Span) -> TimeSpec {
    Duration::from_nanos(span.as_nanos()).into()
}

/// Returns a descriptor that is readable if one of these is: most turns of the loop then poll one descriptor less for
/// each of them.
fn slow_events(signals: &Signals, links: &[LinkWatch; 2], server: Option<&Server>) -> Result<Epoll, Errno> {
    let slow = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
    let readable = EpollEvent::new(EpollFlags::EPOLLIN, 0);
    slow.add(signals, readable)?;
    links.iter().try_for_each(|link| slow.add(link, readable))?;
    server.map_or(Ok(()), |server| slow.add(server, readable))?;
    Ok(slow)
}
