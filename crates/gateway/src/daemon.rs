//! The loop: reads packets that the kernel hands over, gives verdicts when packets are due, and sleeps until the next
//! event. It uses one thread; clients of the control socket and signals wait for it.

use crate::answers;
use crate::apply::{self, Own};
use crate::calls::{Call, Calls, Voice};
use crate::enforce::Enforcer;
use crate::error::Error;
use crate::file::{File, Keys};
use crate::gate::{Arrived, Gate, Verdicts};
use crate::held::{Held, Origin, Windows};
use crate::history::{History, Settings};
use crate::link::source::From;
use crate::link::steer::{self, Passed, Steer};
use crate::reader::Reader;
use crate::report::{self, Caller, Delays, Event, State, Status, Subscriber, add_event};
use crate::scone::Advice;
use crate::setting;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::signal::Signal;
use penstock_appliance::change::Change;
use penstock_appliance::log::Log;
use penstock_appliance::page::process::Process;
use penstock_appliance::service;
use penstock_appliance::socket::message::Answer;
use penstock_appliance::socket::server::{Asker, Server};
use penstock_budgets::served::{Keys as C2ml, Served};
use penstock_conntrack::Mac;
use penstock_core::packet::{NodeId, Packet};
use penstock_core::qdisc::Backlog;
use penstock_core::rng::Streams;
use penstock_core::units::{Bytes, Instant, Rate, Span};
use penstock_linux::links::LinkWatch;
use penstock_linux::random;
use penstock_linux::signals::{Request, Signals, is_orderly};
use penstock_linux::stalls::{LONGEST_SLEEP, Stalls};
use penstock_shaper::bottleneck::Delivery;
use penstock_shaper::classify::Classifier;
use penstock_shaper::direction::Direction;
use penstock_shaper::emissions::Emissions;
use penstock_shaper::intake::Intake;
use penstock_shaper::keys::Keys as HashKeys;
use penstock_shaper::nodes::Side;
use penstock_shaper::path::Path;
use penstock_shaper::pool::Pool;
use penstock_shaper::report::DirectionReport;
use penstock_shaper::talkers::Talkers;
use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// Largest number of packets read before the clock gets its turn.
const BATCH: usize = 32;
/// How often counters are read and rates computed.
const TICK: Span = Span::from_secs(1);
/// Shortest time between two turns of what is slow.
const BETWEEN_SLOW: Span = Span::from_millis(1);
/// Size of the buffers at the start, for packets of Ethernet.
const BUFFER: usize = 2048;
/// A gateway that runs.
pub struct Daemon {
    pub(crate) settings: Settings,
    pub(crate) path: Path<Held>,
    pub(crate) gate: Gate,
    pub(crate) talkers: Talkers,
    pub(crate) history: History,
    pub(crate) log: Log,
    pub(crate) changes: Vec<Change>,
    pub(crate) steer: Steer,
    pub(crate) snapshot: Option<(Instant, String)>,
    pub(crate) own: Own,
    pub(crate) reader: Reader,
    keys: Keys,
    interfaces: [String; 2],
    pub(crate) classifier: Classifier,
    pub(crate) pool: Pool,
    emissions: [Emissions; 2],
    observed: [Backlog; 2],
    windows: [Windows; 2],
    pub(crate) calls: Calls,
    stalls: Stalls,
    short_of_memory: u64,
    events: Vec<Event>,
    wan: LinkWatch,
    page: Option<Process>,
    signals: Signals,
    server: Option<Server>,
    /// Gives budgets to hosts, if the file says so.
    pub(crate) c2ml: Option<(C2ml, Served)>,
    /// Counts who keeps to its budget, if the file has budgets, and holds hosts to them if it says so.
    pub(crate) enforcer: Option<Enforcer>,
    /// Tells flows of QUIC their part, if the file says so.
    scone: Option<Advice>,
    /// Readable if there is something for `serve_slow`.
    slow: Epoll,
    epoch: std::time::Instant,
    due: Due,
    woken: Instant,
}

/// Starts to give budgets to hosts, if the file says so.
fn serving(file: &File) -> Result<Option<(C2ml, Served)>, Error> {
    let upload = file.bottlenecks[Direction::Reverse.index()].rate;
    let served = |keys: &C2ml| Served::start(keys, upload, true).map(|served| (keys.clone(), served));
    file.c2ml.as_ref().map(served).transpose().map_err(Error::Hosts)
}

/// Descriptors of what is slow.
fn slow_events(signals: &Signals, wan: &LinkWatch, reader: &Reader, server: Option<&Server>) -> Result<Epoll, Errno> {
    let slow = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
    let readable = EpollEvent::new(EpollFlags::EPOLLIN, 0);
    slow.add(signals, readable)?;
    slow.add(wan, readable)?;
    slow.add(reader, readable)?;
    server.map_or(Ok(()), |server| slow.add(server, readable))?;
    Ok(slow)
}

/// Returns what tells whose a packet is, and what holds hosts to their budgets or only counts, if the file has budgets.
fn classifying(file: &File, hashes: HashKeys) -> (Classifier, Option<Enforcer>) {
    let config = penstock_conntrack::Config { subscribers: file.subscribers.named(), ..Default::default() };
    let classifier = Classifier::new(config, hashes, Side::Right);
    let upload = file.bottlenecks[Direction::Reverse.index()].rate;
    let enforcer = |keys: &C2ml| Enforcer::new(keys.enforce && !file.keys.observe, upload, classifier.nodes());
    let enforcer = file.c2ml.as_ref().map(enforcer);
    (classifier, enforcer)
}

/// Returns the number of a subscriber by its name.
pub(crate) fn number(classifier: &Classifier, name: &str) -> NodeId {
    classifier.number_of(name).unwrap_or(NodeId::NOBODY)
}

/// When things are done the next time.
#[derive(Debug, Default)]
struct Due {
    tick: Instant,
    step: Instant,
    beat: Instant,
    slow: Instant,
}

/// Which descriptors are ready.
#[derive(Debug, Default)]
struct Wakeup {
    packets: bool,
    slow: bool,
}

impl Daemon {
    /// Takes charge of packets; `own` is the file without options. From here on signals end the run.
    ///
    /// # Errors
    /// Returns what is missing, and what to do about it. Nothing of a start that failed remains.
    pub fn open(file: &File, own: Own, wan: u32, server: Option<Server>, page: Option<Process>) -> Result<Self, Error> {
        let signals = Signals::open()?;
        let keys = file.keys.clone();
        let wan = LinkWatch::here(wan)?;
        // Before this thread gets its priority, which another one would inherit.
        let reader = Reader::start(own.clone())?;
        let slow = slow_events(&signals, &wan, &reader, server.as_ref());
        let slow = slow.map_err(Error::io("cannot wait for signals"))?;
        let hashes = random::bytes()
            .map(|bytes| HashKeys::from_random(&bytes))
            .map_err(Error::io("cannot draw random numbers"))?;
        let c2ml = serving(file)?;
        let (gate, begun) = Gate::open(file)?;
        let mut events = Vec::new();
        begun.into_iter().for_each(|what| add_event(&mut events, 0.0, what));
        let mut log = Log::new(keys.log.clone());
        let (talkers, (classifier, enforcer)) = (hashes.talkers, classifying(file, hashes));
        log.add(None, "start", &serde_json::json!({"wan": file.interfaces.wan, "version": env!("CARGO_PKG_VERSION")}));
        let settings = Settings::of(file);
        let [down, up] = Direction::BOTH.map(|d| settings.way(d, |name| number(&classifier, name)));
        Ok(Self {
            path: Path::new(&down, &up, Streams::new(1)),
            settings,
            gate,
            talkers: Talkers::new(talkers),
            history: History::default(),
            log,
            changes: Vec::new(),
            steer: Steer::start(file.source.clone(), talkers)?,
            snapshot: None,
            own,
            reader,
            interfaces: [file.interfaces.wan.clone(), file.interfaces.lan.clone().unwrap_or_default()],
            classifier,
            pool: Pool::new(BUFFER),
            emissions: Default::default(),
            observed: Default::default(),
            windows: Default::default(),
            calls: Calls::default(),
            stalls: Stalls::default(),
            short_of_memory: 0,
            events,
            wan,
            page,
            signals,
            server,
            c2ml,
            enforcer,
            scone: (keys.scone && !keys.observe).then(Advice::default),
            slow,
            epoch: std::time::Instant::now(),
            due: Due::default(),
            woken: Instant::ZERO,
            keys,
        })
    }

    /// Moves packets until a signal comes or something fails, then removes the rules; returns the last status and why
    /// the run failed, if it did.
    pub fn run(mut self) -> (Status, Option<String>) {
        let failed = catch_unwind(AssertUnwindSafe(|| self.forward())).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            Some(format!("a fault of this program: {}", text.unwrap_or_default()))
        });
        service::stopping();
        self.page = None;
        let closed = self.gate.close();
        self.let_go();
        self.log.add(None, "end", &serde_json::json!({ "why": failed }));
        let status = self.status();
        self.gate.retire();
        (status, failed.or_else(|| closed.err().map(|error| error.to_string())))
    }

    /// Lets all packets pass that are held.
    fn let_go(&mut self) {
        let end = self.now() + Span::from_secs(3600);
        while let Some((direction, delivery)) = self.path.poll(
            end,
            &mut Verdicts { gate: &mut self.gate, pool: &mut self.pool, enforcer: None, calls: &mut self.calls },
        ) {
            let due = delivery.due;
            self.deliver(direction, delivery, due);
        }
        self.gate.flush(&mut self.pool);
        self.gate.empty(&mut self.pool);
    }

    /// The loop; returns what failed, if anything did.
    fn forward(&mut self) -> Option<String> {
        self.woken = self.now();
        self.gate.begin();
        service::ready();
        loop {
            let now = self.release();
            self.gate.flush(&mut self.pool);
            self.enforce(now);
            if now >= self.due.tick {
                self.tick(now);
            }
            if now >= self.due.step {
                self.step(now);
            }
            let wakeup = match self.sleep(now) {
                Ok(wakeup) => wakeup,
                Err(error) => return Some(format!("cannot wait for packets: {error}")),
            };
            // Before packets are read: if this process hung, they are old.
            if self.woken >= self.due.beat {
                self.beat(self.woken);
            }
            if wakeup.slow
                && let Some(ended) = self.serve_slow()
            {
                return ended;
            }
            if wakeup.packets
                && let Err(error) = self.read()
            {
                return Some(format!("cannot read packets: {error}"));
            }
        }
    }

    /// Returns the time since the start.
    pub(crate) fn now(&self) -> Instant {
        Instant::from_nanos(u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Gives the verdict of all packets that are due; returns the time up to which everything was done.
    pub(crate) fn release(&mut self) -> Instant {
        loop {
            let now = self.now();
            let enforcer = self.enforcer.as_mut();
            let mut verdicts =
                Verdicts { gate: &mut self.gate, pool: &mut self.pool, enforcer, calls: &mut self.calls };
            let Some((direction, delivery)) = self.path.poll(now, &mut verdicts) else { return now };
            self.deliver(direction, delivery, now);
        }
    }

    fn deliver(&mut self, direction: Direction, delivery: Delivery<Held>, now: Instant) {
        let Delivery { due, packet } = delivery;
        let late = now.since(due);
        self.emissions[direction.index()].lateness.record(late);
        self.talkers.count(direction, packet.packet(), now);
        if direction == Direction::Reverse {
            self.steer.show(direction, packet.packet(), now);
        }
        self.windows[direction.index()].count(&packet);
        if let Some(voice) = packet.call() {
            self.calls.passed(voice, now.since(voice.came));
        }
        self.gate.accept(direction, packet, late, &mut self.pool);
    }

    /// Reads packets that have come.
    fn read(&mut self) -> io::Result<()> {
        for _ in 0..BATCH {
            let Some(mut buffer) = self.pool.try_take() else {
                self.short_of_memory += 1;
                return Ok(());
            };
            let Some(Arrived { direction, origin, hardware, bytes }) = self.gate.read()? else {
                self.pool.give(buffer);
                return Ok(());
            };
            let len = bytes.len();
            if len > buffer.len() {
                self.pool.grow(len);
                buffer = self.pool.take();
            }
            buffer[..len].copy_from_slice(bytes);
            let now = self.release();
            self.arrive(direction, origin, hardware, (buffer, len), now);
        }
        Ok(())
    }

    fn arrive(
        &mut self,
        direction: Direction,
        origin: Origin,
        hardware: Option<Mac>,
        (buffer, len): (Box<[u8]>, usize),
        now: Instant,
    ) {
        let (packet, facts) = self.classifier.packet_of(hardware, direction, buffer, len, now, &mut self.pool);
        if let Some(warning) = self.classifier.warning() {
            self.note(now, warning);
        }
        if self.keys.observe || direction == Direction::Forward {
            self.steer.show(direction, &packet, now);
        }
        if self.keys.observe {
            self.observed[direction.index()].add(Bytes::new(len as u64));
            self.talkers.count(direction, &packet, now);
            self.gate.pass(&origin);
            self.pool.give(packet.into_bytes());
            return;
        }
        self.path.tell(&facts, now);
        let node = (direction == Direction::Reverse).then(|| self.node(&packet, &facts, now)).flatten();
        let node_of_flow = self.classifier.node_of(Packet::flow(&packet));
        let caller = self.classifier.name_of(node_of_flow).map_or(NodeId::NOBODY, |_| node_of_flow);
        let mut held = Held::new(packet, origin, node, Voice { direction, came: now, caller });
        if let Some(scone) = &mut self.scone {
            scone.arrives(direction, &mut held, &self.classifier, &self.path, now);
        }
        let enforcer = self.enforcer.as_mut();
        let mut verdicts = Verdicts { gate: &mut self.gate, pool: &mut self.pool, enforcer, calls: &mut self.calls };
        self.path.arrive(direction, held, now, &mut verdicts);
    }

    /// Answers a client whose request took long.
    pub(crate) fn tell(&mut self, asker: Asker, answer: &Answer) {
        let server = self.server.iter_mut();
        server.for_each(|server| server.answer(asker, answer, std::time::Instant::now()));
    }

    /// Gives a sign of life, and learns whether packets still come.
    fn beat(&mut self, now: Instant) {
        self.due.beat = now + Span::from_nanos(self.keys.patience.as_nanos() / 4);
        self.gate.beat(now).into_iter().for_each(|what| self.note(now, what));
    }

    /// Looks at the link, and gives the shaper the rates of their source.
    fn step(&mut self, now: Instant) {
        self.due.step = now + steer::STEP;
        let of = |d: Direction| (self.path.direction(d), self.observed[d.index()].bytes);
        let [(down, seen_down), (up, seen_up)] = Direction::BOTH.map(of);
        let bytes = [down.stats().arrived.bytes + seen_down, up.delivered().bytes + seen_up];
        let passed = Passed { bytes, busy: [down.busy(), up.busy()] };
        let set = [self.settings[0].rate, self.settings[1].rate];
        if let Some(rates) = self.steer.step(now, passed, set) {
            answers::steer(self, rates);
            if self.steer.from() != From::Estimate {
                let [down, up] = rates;
                self.note(now, format!("the rates are now {down} down and {up} up"));
            }
        }
    }

    /// What is done once a second.
    fn tick(&mut self, now: Instant) {
        self.due.tick = now + TICK;
        self.steer.tick(now);
        self.calls.tick(now);
        self.wan.ask();
        self.page.iter_mut().for_each(|page| page.tick(now));
        service::alive();
        self.talkers.tick(now);
        self.enforcer.iter_mut().for_each(|enforcer| enforcer.tick(now));
        self.scone.iter_mut().for_each(|scone| scone.tick(&mut self.path, now));
        if let Some(what) = self.gate.look(now) {
            self.note(now, what);
        }
        let told = self.c2ml.as_ref().map(|(_, served)| served.events()).unwrap_or_default();
        told.into_iter().for_each(|what| self.note(now, what));
        setting::lapse(self, now);
        if let Some(server) = &mut self.server {
            server.tidy(std::time::Instant::now());
        }
    }

    pub(crate) fn note(&mut self, now: Instant, what: String) {
        let _ = writeln!(io::stderr(), "{what}");
        self.log.add(None, "event", &serde_json::json!(what));
        add_event(&mut self.events, now.as_secs_f64(), what);
    }

    /// Does what is slow and ready, a little of it. Returns `Some` if the run ends, with what failed.
    fn serve_slow(&mut self) -> Option<Option<String>> {
        while let Some(request) = self.signals.next() {
            match request {
                Request::End(Signal::SIGHUP) => {
                    if let Err(busy) = self.reader.read(None) {
                        apply::apply_again(self, Err(busy));
                    }
                }
                Request::End(signal) if is_orderly(signal) => return Some(None),
                Request::End(signal) => return Some(Some(format!("the run was ended by {signal}"))),
                Request::Report => {
                    let text = serde_json::to_string(&self.status()).unwrap_or_default();
                    let _ = writeln!(io::stderr(), "{text}");
                }
            }
        }
        self.wan.read();
        answers::apply_what_was_read(self);
        if let Some(mut server) = self.server.take() {
            server.turn_later(std::time::Instant::now(), &mut |asker, request| answers::answer(self, asker, request));
            self.server = Some(server);
        }
        self.due.slow = self.now() + BETWEEN_SLOW;
        None
    }

    /// Waits from `now` on for packets, something slow, or the next thing that is due.
    fn sleep(&mut self, now: Instant) -> Result<Wakeup, Errno> {
        let if_true = |is| if is { PollFlags::POLLIN } else { PollFlags::empty() };
        let mut fds = [
            PollFd::new(self.slow.0.as_fd(), if_true(now >= self.due.slow)),
            PollFd::new(self.gate.as_fd(), if_true(self.pool.has_buffer())),
        ];
        let next_slow = (self.due.slow > now).then_some(self.due.slow);
        let own = [self.due.tick, self.due.step, self.due.beat, now + LONGEST_SLEEP].into_iter().min();
        let next = [self.path.next_due(), next_slow, own];
        let timeout = next.into_iter().flatten().min().map_or(LONGEST_SLEEP, |next| next.since(now));
        self.stalls.note(self.woken, now);
        let polled = ppoll(&mut fds, Some(Duration::from_nanos(timeout.as_nanos()).into()), None);
        self.woken = self.now();
        self.stalls.note(now + timeout, self.woken);
        match polled {
            Err(Errno::EINTR) => return Ok(Wakeup::default()),
            other => other?,
        };
        let ready = |i: usize| fds[i].revents().is_some_and(|events| !events.is_empty());
        Ok(Wakeup { slow: ready(0), packets: ready(1) })
    }

    /// Returns the status.
    pub(crate) fn status(&mut self) -> Status {
        let now = self.now();
        let told = self.gate.told();
        let one = |d: Direction| {
            let mut intake = Intake::default();
            intake.unread = told.unread[d.index()];
            let config = &self.settings[d.index()];
            DirectionReport::new(config, self.path.direction(d), &self.emissions[d.index()], &intake)
        };
        let [wan, lan] = self.interfaces.clone();
        Status {
            elapsed_s: now.as_secs_f64(),
            state: match (self.gate.is_open(), self.keys.observe) {
                (true, _) => State::Open,
                (false, true) => State::Observing,
                (false, false) => State::Governing,
            },
            marks: self.marks(),
            events: self.events.clone(),
            wan,
            lan: (!lan.is_empty()).then_some(lan),
            past: told.past,
            observed: self.observed,
            refused_verdicts: told.refused_verdicts,
            unclassified: self.classifier.unclassified(),
            flows: self.classifier.gauges(),
            stalled: self.stalls,
            short_of_memory: self.short_of_memory,
            changes: self.changes.clone(),
            lapse: self.history.lapse(now),
            link: self.steer.report(now),
            windows: self.windows,
            delays: Direction::BOTH.map(|d| Delays::of(self.path.direction(d).sojourn())),
            forward: one(Direction::Forward),
            reverse: one(Direction::Reverse),
            c2ml: self.c2ml.as_ref().and_then(|(_, served)| served.status()),
            enforcement: self.enforcer.as_ref().map(|enforcer| enforcer.report(&self.classifier)),
            calls: Direction::BOTH.map(|d| self.calls.estimate(d, self.steer.trip())),
            callers: self.callers(),
            scone: self.scone.as_ref().map(Advice::stats),
            subscribers: self.subscribers(),
            kernel_queues: told.kernel_queues,
            frames: told.frames,
        }
    }

    /// Returns how calls of subscribers would sound, the worst first; nothing if the file has no subscribers.
    fn callers(&self) -> Vec<Caller> {
        let of = |(node, [down, up]): (NodeId, [Option<Call>; 2])| Caller {
            name: self.classifier.name_of(node).map(str::to_owned),
            download: down,
            upload: up,
        };
        let all = self.calls.callers(self.steer.trip()).filter(|_| !self.settings.subscribers.is_empty());
        let mut all: Vec<Caller> = all.map(of).collect();
        all.sort_by(|a, b| a.worst().total_cmp(&b.worst()));
        all
    }

    fn subscribers(&self) -> Vec<Subscriber> {
        match Direction::BOTH.map(|d| self.path.direction(d).tree().map(|(_, accounts)| accounts)) {
            [Some(down), Some(up)] => report::subscribers([down, up]),
            _ => Vec::new(),
        }
    }

    /// Tells if what subscribers have guaranteed in a direction is more than the rate that holds now.
    fn cut(&self, direction: Direction) -> Option<String> {
        let (rate, guaranteed) =
            (self.settings[direction.index()].rate, self.settings.subscribers.guaranteed(direction));
        let way = ["download", "upload"][direction.index()];
        let all = Rate::from_bps(guaranteed);
        (guaranteed > rate.as_bps()).then(|| {
            format!("subscribers have {all} of the {way} guaranteed, but its rate is {rate}: all guarantees are cut in proportion")
        })
    }

    /// Returns what is wrong now.
    fn marks(&self) -> Vec<String> {
        let facts = self.wan.facts();
        let wan = &self.interfaces[0];
        let own = [
            facts.gone.then(|| format!("the interface {wan} is gone")),
            (!facts.gone && !facts.up).then(|| format!("the interface {wan} is down")),
            self.page.as_ref().and_then(Process::mark),
            self.log.error().map(|error| format!("the log cannot be written: {error}")),
            self.c2ml
                .as_ref()
                .filter(|(_, served)| served.has_failed())
                .map(|_| "budgets for hosts have stopped by a fault of this program; hosts go on without".to_owned()),
        ];
        let cut = Direction::BOTH.into_iter().filter_map(|direction| self.cut(direction));
        self.gate
            .marks()
            .into_iter()
            .chain(own.into_iter().flatten())
            .chain(cut)
            .chain(self.steer.marks(self.now()))
            .collect()
    }
}
