//! A gateway whose packets pass this process: reads those that the kernel hands over, gives verdicts when packets are due, and
//! sleeps until the next event. It uses one thread; clients of the control socket and signals wait for it.

mod answers;

use crate::apply::Read;
use crate::enforce::{Enforcer, UP};
use crate::error::Error;
use crate::file::{File, Keys};
use crate::gate::{Arrived, Gate, Verdicts};
use crate::held::{Held, Origin};
use crate::link::source::From;
use crate::link::steer::{self, Passed, Steer};
use crate::report::{self, Delays, State, Status, Subscriber};
use crate::scone::Advice;
use crate::settings::Settings;
use crate::tap::{Around, Entries, Known, Tap as _};
use crate::taps::Taps;
use crate::voice::Voice;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use penstock_appliance::appliance::{Appliance, Clock, Desk, How, Rest};
use penstock_appliance::run::{Ended, run};
use penstock_appliance::socket::message::{By, Refusal};
use penstock_budgets::served::{Keys as C2ml, Served};
use penstock_conntrack::Mac;
use penstock_core::fact::Fact;
use penstock_core::packet::{NodeId, Packet};
use penstock_core::qdisc::Backlog;
use penstock_core::registry::tree::Tree;
use penstock_core::rng::Streams;
use penstock_core::units::{Bytes, Instant, Rate, Span};
use penstock_linux::links::LinkWatch;
use penstock_linux::random;
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
use serde_json::{Value, json};
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

/// Largest number of packets read before the clock gets its turn.
const BATCH: usize = 32;
/// Size of the buffers at the start, for packets of Ethernet.
const BUFFER: usize = 2048;

/// A gateway whose packets pass this process.
pub struct Daemon {
    pub(crate) settings: Settings,
    pub(crate) path: Path<Held>,
    pub(crate) gate: Gate,
    pub(crate) classifier: Classifier,
    pub(crate) pool: Pool,
    pub(crate) taps: Taps,
    keys: Keys,
    wan: Wan,
    /// Gives budgets to hosts, if the file says so.
    pub(crate) c2ml: Option<(C2ml, Served)>,
    own: Own,
    clock: Clock,
    due: Due,
}

/// The interfaces.
struct Wan {
    name: String,
    lan: Option<String>,
    watch: LinkWatch,
}

/// What the gateway measures of itself.
#[derive(Default)]
struct Own {
    emissions: [Emissions; 2],
    /// Packets that were only observed.
    observed: [Backlog; 2],
    stalls: Stalls,
    short_of_memory: u64,
    /// When the last sleep ended.
    woken: Instant,
    /// True if it ended because packets have come.
    has_packets: bool,
}

/// When things are done the next time.
#[derive(Debug, Default)]
struct Due {
    step: Instant,
    beat: Instant,
}

/// Starts to give budgets to hosts, if the file says so.
fn serving(file: &File) -> Result<Option<(C2ml, Served)>, Error> {
    let served =
        |keys: &C2ml| Served::start(keys, file.bottlenecks[UP.index()].rate, true).map(|one| (keys.clone(), one));
    file.c2ml.as_ref().map(served).transpose().map_err(Error::Hosts)
}

/// Returns the observers that a file asks for.
fn taps(file: &File, hashes: HashKeys, nodes: usize) -> Result<Taps, Error> {
    let upload = file.bottlenecks[UP.index()].rate;
    let enforcer = |keys: &C2ml| Enforcer::new(keys.enforce && !file.keys.observe, upload, nodes);
    let scone = (file.keys.scone && !file.keys.observe).then(Advice::default);
    let steer = Steer::start(file.source.clone(), hashes.talkers)?;
    Ok(Taps::new(steer, Talkers::new(hashes.talkers), file.c2ml.as_ref().map(enforcer), scone))
}

/// Returns the number of a subscriber by its name.
pub(crate) fn number(classifier: &Classifier, name: &str) -> NodeId {
    classifier.table.subscribers.number_of(name).unwrap_or(NodeId::NOBODY)
}

impl Daemon {
    /// Takes charge of packets of the interface with the number `wan`.
    ///
    /// # Errors
    /// Returns what is missing, and what to do about it. Nothing of a start that failed remains.
    pub fn open(file: &File, wan: u32, desk: &mut Desk<Self>) -> Result<Self, Error> {
        let watch = LinkWatch::here(wan)?;
        desk.watch(&watch)?;
        let hashes = random::bytes().map(|bytes| HashKeys::from_random(&bytes));
        let hashes = hashes.map_err(Error::io("cannot draw random numbers"))?;
        let c2ml = serving(file)?;
        let (gate, begun) = Gate::open(file)?;
        begun.into_iter().for_each(|what| desk.begun(what));
        let config = penstock_conntrack::Config { subscribers: file.subscribers.named(), ..Default::default() };
        let classifier = Classifier::new(config, hashes, Side::Right);
        desk.log("start", &json!({"wan": file.interfaces.wan, "version": env!("CARGO_PKG_VERSION")}));
        let settings = Settings::of(file);
        let [down, up] = Direction::BOTH.map(|d| settings.way(d, |name| number(&classifier, name)));
        Ok(Self {
            path: Path::new(&down, &up, Streams::new(1)),
            settings,
            gate,
            taps: taps(file, hashes, classifier.table.subscribers.numbers())?,
            classifier,
            pool: Pool::new(BUFFER),
            keys: file.keys.clone(),
            wan: Wan { name: file.interfaces.wan.clone(), lan: file.interfaces.lan.clone(), watch },
            c2ml,
            own: Own::default(),
            clock: desk.clock(),
            due: Due::default(),
        })
    }

    /// Moves packets until a signal comes or something fails, then removes the rules; returns the last status and why
    /// the run failed, if it did.
    pub fn run(mut self, mut desk: Desk<Self>) -> (Status, Option<String>) {
        self.own.woken = self.now();
        self.gate.begin();
        let ended = run(&mut self, &mut desk);
        let closed = self.gate.close();
        self.let_go();
        desk.log("end", &json!({ "why": Ended::failure(&ended) }));
        let status = self.status(&desk);
        self.gate.retire();
        (status, ended.failure().or_else(|| closed.err().map(|error| error.to_string())))
    }

    /// Lets all packets pass that are held.
    fn let_go(&mut self) {
        let end = self.now() + Span::from_secs(3600);
        while let Some((direction, delivery)) = self.poll(end) {
            let due = delivery.due;
            self.deliver(direction, delivery, due);
        }
        self.gate.flush(&mut self.pool);
        self.gate.empty(&mut self.pool);
    }

    /// Returns the time since the start.
    pub(crate) fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Returns the next packet that is due.
    fn poll(&mut self, now: Instant) -> Option<(Direction, Delivery<Held>)> {
        let mut verdicts = Verdicts { gate: &mut self.gate, pool: &mut self.pool, taps: &mut self.taps };
        self.path.poll(now, &mut verdicts)
    }

    /// Gives the verdict of all packets that are due; returns the time up to which everything was done.
    pub(crate) fn release(&mut self) -> Instant {
        loop {
            let now = self.now();
            let Some((direction, delivery)) = self.poll(now) else { return now };
            self.deliver(direction, delivery, now);
        }
    }

    fn deliver(&mut self, direction: Direction, delivery: Delivery<Held>, now: Instant) {
        let Delivery { due, packet } = delivery;
        let late = now.since(due);
        self.own.emissions[direction.index()].lateness.record(late);
        self.taps.leaves(direction, &packet, now);
        self.gate.accept(direction, packet, late, &mut self.pool);
    }

    /// Reads packets that have come.
    fn read(&mut self, desk: &mut Desk<Self>) -> io::Result<()> {
        for _ in 0..BATCH {
            let Some(mut buffer) = self.pool.try_take() else {
                self.own.short_of_memory += 1;
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
            self.release();
            self.arrive(direction, origin, hardware, (buffer, len));
            if let Some(warning) = self.classifier.warning() {
                desk.note(warning);
            }
        }
        Ok(())
    }

    fn arrive(
        &mut self,
        direction: Direction,
        origin: Origin,
        hardware: Option<Mac>,
        (buffer, len): (Box<[u8]>, usize),
    ) {
        let now = self.release();
        let (packet, facts) = self.classifier.packet_of(hardware, direction, buffer, len, now, &mut self.pool);
        if self.keys.observe {
            self.own.observed[direction.index()].add(Bytes::new(len as u64));
            self.taps.passes(direction, &packet, now);
            self.gate.pass(&origin);
            self.pool.give(packet.into_bytes());
            return;
        }
        self.path.tell(&facts, now);
        let node = self.classifier.node_of(Packet::flow(&packet));
        let caller = self.classifier.table.subscribers.name_of(node).map_or(NodeId::NOBODY, |_| node);
        let mut held = Held::new(packet, origin, Voice { direction, came: now, caller });
        let mut around = Around { classifier: &self.classifier, path: &mut self.path, now };
        self.taps.arrives(direction, &mut held, &facts, &mut around);
        let mut verdicts = Verdicts { gate: &mut self.gate, pool: &mut self.pool, taps: &mut self.taps };
        self.path.arrive(direction, held, now, &mut verdicts);
    }

    /// Gives a sign of life, and learns whether packets still come.
    fn beat(&mut self, now: Instant, desk: &mut Desk<Self>) {
        self.due.beat = now + Span::from_nanos(self.keys.patience.as_nanos() / 4);
        self.gate.beat(now).into_iter().for_each(|what| desk.note(what));
    }

    /// Looks at the link, and gives the shaper the rates of their source.
    fn step(&mut self, now: Instant, desk: &mut Desk<Self>) {
        self.due.step = now + steer::STEP;
        let of = |d: Direction| (self.path.direction(d), self.own.observed[d.index()].bytes);
        let [(down, seen_down), (up, seen_up)] = Direction::BOTH.map(of);
        let bytes = [down.server.stats().arrived.bytes + seen_down, up.line.delivered.bytes + seen_up];
        let passed = Passed { bytes, busy: [down.server.busy(), up.server.busy()] };
        let Some(rates) = self.taps.steer.step(now, passed, self.settings.rates()) else { return };
        self.set_rates(rates);
        desk.forget_status();
        if self.taps.steer.from() != From::Estimate {
            let [down, up] = rates;
            desk.note(format!("the rates are now {down} down and {up} up"));
        }
    }

    /// The source of the rates has others; only the rates change.
    fn set_rates(&mut self, rates: [Rate; 2]) {
        let now = self.release();
        for direction in Direction::BOTH {
            let at = direction.index();
            self.path.direction_mut(direction).set_rate(rates[at], now);
            self.settings[at].rate = rates[at];
        }
        self.share(now);
    }

    /// Tells the role that gives budgets to hosts, and who enforces them, the rate of the upload.
    pub(crate) fn share(&mut self, now: Instant) {
        let upload = self.settings[UP.index()].rate;
        if let Some((keys, served)) = &mut self.c2ml {
            served.set_rate(keys.shared(upload));
        }
        if let Some(enforcer) = &mut self.taps.enforcer {
            enforcer.set_upload(upload, |fact: &Fact| self.path.direction_mut(UP).server.on_fact(fact, now));
        }
    }

    /// Tells the discipline of the upload the budgets that have changed.
    fn enforce(&mut self, now: Instant) {
        let (Some(enforcer), Some((_, served))) = (&mut self.taps.enforcer, &self.c2ml) else { return };
        if let Some(grants) = served.grants() {
            let tell = |fact: &Fact| self.path.direction_mut(UP).server.on_fact(fact, now);
            enforcer.set_budgets(grants, &self.classifier, tell);
        }
    }

    fn subscribers(&self) -> Vec<Subscriber> {
        match Direction::BOTH.map(|d| self.path.direction(d).tree().map(Tree::accounts)) {
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
    fn marks(&self, desk: &Desk<Self>) -> Vec<String> {
        let (facts, wan) = (self.wan.watch.facts(), &self.wan.name);
        let budgets = self.c2ml.as_ref().filter(|(_, served)| served.has_failed());
        let own = [
            facts.gone.then(|| format!("the interface {wan} is gone")),
            (!facts.gone && !facts.up).then(|| format!("the interface {wan} is down")),
            budgets.map(|_| "budgets for hosts have stopped by a fault of this program; hosts go on without".into()),
        ];
        let cut = Direction::BOTH.into_iter().filter_map(|direction| self.cut(direction));
        let marks = self.gate.marks().into_iter().chain(own.into_iter().flatten()).chain(desk.marks());
        marks.chain(cut).chain(self.taps.steer.marks(self.now())).collect()
    }

    fn state(&self) -> State {
        match (self.gate.is_open(), self.keys.observe) {
            (true, _) => State::Open,
            (false, true) => State::Observing,
            (false, false) => State::Governing,
        }
    }

    /// Returns what observers tell.
    fn observed_by(&self) -> Entries {
        let mut told = Entries::default();
        let has_subscribers = !self.settings.subscribers.is_empty();
        let (classifier, trip, now) = (&self.classifier, self.taps.steer.trip(), self.now());
        self.taps.status(&Known { classifier, trip, has_subscribers, now }, &mut told);
        told
    }
}

impl Appliance for Daemon {
    type Settings = Settings;
    type File = Read;
    type Status = Status;
    const APPLIES_AT_HANGUP: bool = true;

    fn turn(&mut self, desk: &mut Desk<Self>) -> Result<Instant, String> {
        let now = self.release();
        self.gate.flush(&mut self.pool);
        self.enforce(now);
        if now >= self.due.step {
            self.step(now, desk);
        }
        if self.own.woken >= self.due.beat {
            self.beat(self.own.woken, desk);
        }
        Ok(now)
    }

    fn sleep(&mut self, rest: &Rest<'_>) -> Result<bool, String> {
        let now = rest.now;
        let if_true = |is| if is { PollFlags::POLLIN } else { PollFlags::empty() };
        let mut fds = [
            PollFd::new(rest.slow, if_true(rest.serves)),
            PollFd::new(self.gate.as_fd(), if_true(self.pool.has_buffer())),
        ];
        let next = [Some(rest.until), self.path.next_due(), Some(self.due.step), Some(self.due.beat)];
        let next = next.into_iter().flatten().min().unwrap_or(rest.until).min(now + LONGEST_SLEEP);
        let timeout = next.since(now);
        self.own.stalls.note(self.own.woken, now);
        let polled = ppoll(&mut fds, Some(Duration::from_nanos(timeout.as_nanos()).into()), None);
        let ready = |i: usize| fds[i].revents().is_some_and(|events| !events.is_empty());
        let [slow, packets] = [ready(0), ready(1)];
        self.own.woken = self.now();
        self.own.stalls.note(now + timeout, self.own.woken);
        let came = match polled {
            Err(Errno::EINTR) => false,
            other => other.map_err(|error| format!("cannot wait for packets: {error}"))? > 0,
        };
        self.own.has_packets = came && packets;
        Ok(came && slow)
    }

    fn read_what_came(&mut self, desk: &mut Desk<Self>) -> Result<(), String> {
        // Before packets are read: if this process hung, they are old.
        if self.own.woken >= self.due.beat {
            self.beat(self.own.woken, desk);
        }
        let read = if self.own.has_packets { self.read(desk) } else { Ok(()) };
        read.map_err(|error| format!("cannot read packets: {error}"))
    }

    fn look(&mut self, _: &mut Desk<Self>) -> Result<(), String> {
        self.wan.watch.read();
        Ok(())
    }

    fn tick(&mut self, now: Instant, desk: &mut Desk<Self>) -> Result<(), String> {
        self.wan.watch.ask();
        self.taps.tick(&mut Around { classifier: &self.classifier, path: &mut self.path, now });
        self.gate.look(now).into_iter().for_each(|what| desk.note(what));
        let told = self.c2ml.as_ref().map(|(_, served)| served.events()).unwrap_or_default();
        told.into_iter().for_each(|what| desk.note(what));
        Ok(())
    }

    fn status(&mut self, desk: &Desk<Self>) -> Status {
        let told = self.gate.told();
        let one = |d: Direction| {
            let mut intake = Intake::default();
            intake.unread = told.unread[d.index()];
            let config = &self.settings[d.index()];
            DirectionReport::new(config, self.path.direction(d), &self.own.emissions[d.index()], &intake)
        };
        Status {
            elapsed_s: self.now().as_secs_f64(),
            state: self.state(),
            marks: self.marks(desk),
            events: desk.events().to_vec(),
            wan: self.wan.name.clone(),
            lan: self.wan.lan.clone(),
            observed: self.own.observed,
            unclassified: self.classifier.unclassified(),
            flows: self.classifier.table.gauges(),
            stalled: self.own.stalls,
            short_of_memory: self.own.short_of_memory,
            changes: desk.changes().to_vec(),
            lapse: desk.lapse(),
            delays: Direction::BOTH.map(|d| Delays::of(&self.path.direction(d).line.sojourn)),
            forward: one(Direction::Forward),
            reverse: one(Direction::Reverse),
            c2ml: self.c2ml.as_ref().and_then(|(_, served)| served.status()),
            observed_by: self.observed_by(),
            subscribers: self.subscribers(),
            past: told.past,
            refused_verdicts: told.refused_verdicts,
            kernel_queues: told.kernel_queues,
            frames: told.frames,
        }
    }

    fn top(&self, by: By, most: usize, _: Instant) -> Result<Value, Refusal> {
        match by {
            By::Flow => serde_json::to_value(self.taps.talkers.flows(most)),
            By::Node => Ok(answers::nodes(self, most)),
        }
        .map_err(|e| Refusal::new(e.to_string()))
    }

    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn read(&self, values: &[(String, String)]) -> Result<Settings, Refusal> {
        self.settings.with(values, Direction::BOTH.map(|d| self.path.direction(d).keeps_connections()))
    }

    fn wanted(&self, file: &Read) -> Result<Settings, Refusal> {
        file.wanted(&self.settings, |direction, wanted| self.refuses(direction, wanted))
    }

    fn go_to(&mut self, wanted: &Settings) -> Result<Instant, Refusal> {
        self.change(wanted)
    }

    fn read_back(&self) -> Result<(), String> {
        self.compare()
    }

    fn changed(&mut self, former: &Settings, how: How) {
        let other = former.rates() != self.settings.rates();
        match how {
            How::ByHand if other => self.taps.steer.by_hand(true),
            How::ByHand => {}
            How::ByFile | How::Back => self.taps.steer.by_hand(false),
        }
    }
}
