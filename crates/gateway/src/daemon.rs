//! A gateway whose packets pass this process: reads those that the kernel hands over, gives verdicts when packets are due, and
//! sleeps until the next event. It uses one thread; clients of the control socket and signals wait for it.

mod answers;

use crate::account::Allowed;
use crate::apply::Read;
use crate::enforce::{Enforcer, UP};
use crate::error::Error;
use crate::file::{File, Interfaces, Keys, Mode};
use crate::gate::{self, Arrived, Traffic};
use crate::held::{Held, Origin};
use crate::life::{Life, Sight};
use crate::link::source::From;
use crate::link::steer::{Passed, Steer};
use crate::offloaded::Offloaded;
use crate::report::{self, Common, Delays, Status};
use crate::scone::Advice;
use crate::settings::Settings;
use crate::tap::{Around, Entries, Known, Tap as _};
use crate::taps::Taps;
use crate::voice::Voice;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use penstock_appliance::appliance::{Appliance, Clock, Desk, Rest};
use penstock_appliance::run::{Ended, run};
use penstock_appliance::socket::message::{By, Refusal};
use penstock_budgets::served::Served;
use penstock_conntrack::Mac;
use penstock_core::fact::Fact;
use penstock_core::packet::{NodeId, Packet};
use penstock_core::qdisc::Backlog;
use penstock_core::registry::tree::Tree;
use penstock_core::rng::Streams;
use penstock_core::server::Server;
use penstock_core::units::{Bytes, Instant, Rate, Span};
use penstock_linux::links::Passed as Seen;
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

/// Number of names of subscribers that one run may have seen: each keeps its number.
const MOST_NAMES: usize = 65_536;
/// Largest number of packets read before the clock gets its turn.
const BATCH: usize = 32;
/// Size of the buffers at the start, for packets of Ethernet.
const BUFFER: usize = 2048;

/// A gateway whose packets pass this process.
pub struct Daemon {
    settings: Settings,
    path: Path<Held>,
    traffic: Traffic,
    classifier: Classifier,
    keys: Keys,
    interfaces: Interfaces,
    life: Life,
    /// Gives budgets to hosts, if the file says so.
    c2ml: Option<Served>,
    offloaded: Offloaded,
    own: Own,
    clock: Clock,
}

#[derive(Default)]
struct Own {
    emissions: [Emissions; 2],
    observed: [Backlog; 2],
    stalls: Stalls,
    short_of_memory: u64,
    /// When the last sleep ended, and whether because packets have come.
    woken: Instant,
    has_packets: bool,
    /// When the next sign of life is due.
    beat: Instant,
}

fn taps(file: &File, hashes: HashKeys, nodes: usize) -> Result<Taps, Error> {
    let upload = file.settings.ways[UP.index()].rate;
    let enforcer = Enforcer::new(file.enforces() && !file.keys.observe, upload, nodes);
    let scone = (file.keys.scone && !file.keys.observe).then(Advice::default);
    let steer = Steer::start(file.settings.source.clone(), hashes.talkers)?;
    Ok(Taps::new(steer, Talkers::new(hashes.talkers), file.c2ml.as_ref().map(|_| enforcer), scone))
}

fn number(classifier: &Classifier, name: &str) -> NodeId {
    classifier.table.subscribers.number_of(name).unwrap_or(NodeId::NOBODY)
}

impl Daemon {
    /// Takes charge of packets of the interface to the link, which may come later. Nothing of a start that failed
    /// remains.
    pub fn open(file: &File, desk: &mut Desk<Self>) -> Result<Self, Error> {
        let allowed = match (file.keys.mode, &file.interfaces.lan) {
            (Mode::Bridge, _) => Allowed::Groups,
            // What the router itself sends is not governed if the file has a LAN.
            (Mode::Router, Some(_)) => Allowed::Others,
            (Mode::Router, None) => Allowed::Little,
        };
        let life = Life::watch(&file.interfaces.wan, file.keys.observe, allowed)?;
        desk.watch(&life)?;
        let hashes = random::bytes().map(|bytes| HashKeys::from_random(&bytes));
        let hashes = hashes.map_err(Error::io("cannot draw random numbers"))?;
        let upload = file.settings.ways[UP.index()].rate;
        let c2ml = file.c2ml.as_ref().map(|keys| Served::start(keys, upload, true));
        let c2ml = c2ml.transpose().map_err(Error::budgets)?;
        let offloaded = Offloaded::watch(file);
        let (gate, begun) = gate::open(file)?;
        begun.into_iter().for_each(|what| desk.begun(what));
        let config =
            penstock_conntrack::Config { subscribers: file.settings.subscribers.named(), ..Default::default() };
        let classifier = Classifier::new(config, hashes, Side::Right);
        desk.log("start", &json!({"wan": file.interfaces.wan, "version": env!("CARGO_PKG_VERSION")}));
        let settings = file.settings.clone();
        let [down, up] = Direction::BOTH.map(|d| settings.way(d, |name| number(&classifier, name)));
        Ok(Self {
            path: Path::new(&down, &up, Streams::new(1)),
            settings,
            traffic: Traffic {
                gate,
                pool: Pool::new(BUFFER),
                taps: taps(file, hashes, classifier.table.subscribers.numbers())?,
            },
            classifier,
            keys: file.keys.clone(),
            interfaces: file.interfaces.clone(),
            life,
            c2ml,
            offloaded,
            own: Own::default(),
            clock: desk.clock,
        })
    }

    /// Moves packets until a signal comes or something fails, then removes the rules; returns the last status and why
    /// the run failed, if it did.
    pub fn run(mut self, mut desk: Desk<Self>) -> (Status, Option<String>) {
        self.own.woken = self.now();
        self.traffic.gate.begin();
        let ended = run(&mut self, &mut desk);
        let closed = self.traffic.gate.close();
        self.let_go();
        desk.log("end", &json!({ "why": Ended::failure(&ended) }));
        let status = self.status(&desk);
        self.traffic.gate.retire();
        (status, ended.failure().or_else(|| closed.err().map(|error| error.to_string())))
    }

    fn let_go(&mut self) {
        let end = self.now() + Span::from_secs(3600);
        while let Some((direction, delivery)) = self.path.poll(end, &mut self.traffic) {
            let due = delivery.due;
            self.deliver(direction, delivery, due);
        }
        let Traffic { gate, pool, .. } = &mut self.traffic;
        gate.flush(pool);
        gate.empty(pool);
    }

    fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Gives the verdict of all packets that are due; returns the time up to which everything was done.
    fn release(&mut self) -> Instant {
        loop {
            let now = self.now();
            let Some((direction, delivery)) = self.path.poll(now, &mut self.traffic) else { return now };
            self.deliver(direction, delivery, now);
        }
    }

    fn deliver(&mut self, direction: Direction, delivery: Delivery<Held>, now: Instant) {
        let Delivery { due, packet, .. } = delivery;
        let late = now.since(due);
        self.own.emissions[direction.index()].lateness.record(late);
        let Traffic { gate, pool, taps } = &mut self.traffic;
        taps.leaves(direction, &packet, now);
        gate.accept(direction, packet, late, pool);
    }

    fn read(&mut self, desk: &mut Desk<Self>) -> io::Result<()> {
        for _ in 0..BATCH {
            let Traffic { gate, pool, .. } = &mut self.traffic;
            let Some(mut buffer) = pool.try_take() else {
                self.own.short_of_memory += 1;
                return Ok(());
            };
            let Some(arrived) = gate.read()? else {
                pool.give(buffer);
                return Ok(());
            };
            let Arrived { direction, origin, hardware, bytes } = arrived;
            let len = bytes.len();
            if len > buffer.len() {
                pool.grow(len);
                buffer = pool.take();
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

    fn arrive(&mut self, way: Direction, origin: Origin, hardware: Option<Mac>, (buffer, len): (Box<[u8]>, usize)) {
        let now = self.release();
        let Traffic { gate, pool, taps } = &mut self.traffic;
        let (packet, facts) = self.classifier.packet_of(hardware, way, buffer, len, now, pool);
        if self.keys.observe {
            self.own.observed[way.index()].add(Bytes::new(len as u64));
            taps.passes(way, &packet, now);
            gate.pass(&origin);
            pool.give(packet.into_bytes());
            return;
        }
        self.path.tell(&facts, now);
        let node = self.classifier.node_of(Packet::flow(&packet));
        let caller = self.classifier.table.subscribers.name_of(node).map_or(NodeId::NOBODY, |_| node);
        let mut held = Held::new(packet, origin, Voice { direction: way, came: now, caller });
        let mut around = Around { classifier: &self.classifier, path: &mut self.path, now };
        taps.arrives(way, &mut held, &facts, &mut around);
        self.path.arrive(way, held, now, &mut self.traffic);
    }

    fn beat(&mut self, now: Instant, desk: &mut Desk<Self>) {
        self.own.beat = now + Span::from_nanos(self.keys.patience.as_nanos() / 4);
        self.traffic.gate.beat(now).into_iter().for_each(|what| desk.note(what));
    }

    fn step(&mut self, now: Instant, desk: &mut Desk<Self>) {
        let [down, up] = Direction::BOTH.map(|d| self.path.direction(d));
        let bytes = self.taken().map(|taken| taken.bytes);
        let servers = [&down.server, &up.server];
        let passed = Passed { bytes, busy: servers.map(|one| one.busy_by(now)), layers: servers.map(Server::layer) };
        let Some(rates) = self.traffic.taps.steer.step(now, passed, self.settings.rates()) else { return };
        let follows = self.traffic.taps.steer.source.settings.from == From::Estimate;
        self.set_rates(rates, follows);
        desk.forget_status();
        if !follows {
            let [down, up] = rates;
            desk.note(format!("the rates are now {down} down and {up} up"));
        }
    }

    /// The source of the rates has others; only the rates change. An estimate is followed in small steps.
    fn set_rates(&mut self, rates: [Rate; 2], follows: bool) {
        let now = self.release();
        for direction in Direction::BOTH {
            let (at, one) = (direction.index(), self.path.direction_mut(direction));
            if follows {
                one.follow_rate(rates[at], now)
            } else {
                one.set_rate(rates[at], now)
            }
            self.settings.ways[at].rate = rates[at];
        }
        self.share(now);
    }

    /// Tells the role that gives budgets to hosts, and who enforces them, the rate of the upload.
    fn share(&mut self, now: Instant) {
        let upload = self.settings.ways[UP.index()].rate;
        self.c2ml.iter_mut().for_each(|served| served.set_upload(upload));
        if let Some(enforcer) = &mut self.traffic.taps.enforcer {
            enforcer.set_upload(upload, |fact: &Fact| self.path.direction_mut(UP).server.on_fact(fact, now));
        }
    }

    /// Tells the discipline of the upload the budgets that have changed.
    fn enforce(&mut self, now: Instant) {
        let (Some(enforcer), Some(served)) = (&mut self.traffic.taps.enforcer, &self.c2ml) else { return };
        if let Some(grants) = served.grants() {
            let tell = |fact: &Fact| self.path.direction_mut(UP).server.on_fact(fact, now);
            enforcer.set_budgets(grants, &self.classifier, tell);
        }
    }

    /// Tells if what subscribers have guaranteed in a direction is more than the rate that holds now.
    fn cut(&self, direction: Direction) -> Option<String> {
        let (at, guaranteed) = (direction.index(), self.settings.subscribers.guaranteed(direction));
        let (rate, all, way) = (self.settings.ways[at].rate, Rate::from_bps(guaranteed), ["download", "upload"][at]);
        let what = format!("subscribers have {all} of the {way} guaranteed, but its rate is {rate}");
        (guaranteed > rate.as_bps()).then(|| format!("{what}: all guarantees are cut in proportion"))
    }

    /// What came from the link, and what left to it.
    fn taken(&self) -> [Seen; 2] {
        let [down, up] = Direction::BOTH.map(|d| self.path.direction(d));
        let [seen_down, seen_up] = self.own.observed;
        let sum = |one: Backlog, other: Backlog| Seen {
            packets: one.packets + other.packets,
            bytes: one.bytes + other.bytes,
        };
        [sum(down.server.stats().arrived, seen_down), sum(up.line.delivered, seen_up)]
    }

    /// Bytes that the disciplines have dropped.
    fn refused(&self) -> [u64; 2] {
        Direction::BOTH.map(|d| {
            let stats = self.path.direction(d).server.stats();
            [stats.dropped_early, stats.dropped_overflow, stats.dropped_dequeue].iter().map(|drops| drops.bytes).sum()
        })
    }

    fn see(&mut self) {
        self.life.refresh();
        let gate = &self.traffic.gate;
        let (standing, past, late_s) = (gate.standing(), gate.past(), self.own.stalls.total_s);
        let taken = self.taken();
        self.life.see(Sight { standing, taken, past, late_s });
    }

    /// Looks whether packets come here and how many pass beside.
    fn look_at_link(&mut self, now: Instant, desk: &mut Desk<Self>) {
        self.see();
        if let Some(event) = self.life.look(now) {
            desk.note(event);
            desk.forget_status();
        }
        if self.life.doubts() {
            self.traffic.gate.doubt();
        }
    }

    fn marks(&self) -> impl Iterator<Item = String> {
        let Traffic { gate, taps, .. } = &self.traffic;
        let budgets = self.c2ml.iter().flat_map(Served::marks).chain(self.offloaded.mark());
        let marks = self.life.marks().chain(gate.marks()).chain(budgets);
        let cut = Direction::BOTH.into_iter().filter_map(|direction| self.cut(direction));
        marks.chain(cut).chain(taps.steer.marks(self.now()))
    }
}

impl Appliance for Daemon {
    type Settings = Settings;
    type File = Read;
    type Status = Status;
    const APPLIES_AT_HANGUP: bool = true;

    fn turn(&mut self, desk: &mut Desk<Self>) -> Result<Instant, String> {
        let now = self.release();
        self.traffic.gate.flush(&mut self.traffic.pool);
        self.enforce(now);
        if now >= self.traffic.taps.steer.due() {
            self.step(now, desk);
        }
        if now >= self.life.due {
            self.look_at_link(now, desk);
        }
        if self.own.woken >= self.own.beat {
            self.beat(self.own.woken, desk);
        }
        Ok(now)
    }

    fn sleep(&mut self, rest: &Rest<'_>) -> Result<bool, String> {
        let now = rest.now;
        let if_true = |is| if is { PollFlags::POLLIN } else { PollFlags::empty() };
        let mut fds = [
            PollFd::new(rest.slow, if_true(rest.serves)),
            PollFd::new(self.traffic.gate.as_fd(), if_true(self.traffic.pool.has_buffer())),
        ];
        let next = [
            Some(rest.until),
            self.path.next_due(),
            Some(self.traffic.taps.steer.due()),
            Some(self.own.beat.min(self.life.due)),
        ];
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
        if self.own.woken >= self.own.beat {
            self.beat(self.own.woken, desk);
        }
        let read = if self.own.has_packets { self.read(desk) } else { Ok(()) };
        read.map_err(|error| format!("cannot read packets: {error}"))
    }

    /// An interface has changed.
    fn look(&mut self, desk: &mut Desk<Self>) -> Result<(), String> {
        if self.life.has_news() {
            let now = self.now();
            self.traffic.gate.look(now).into_iter().for_each(|what| desk.note(what));
            self.look_at_link(now, desk);
        }
        Ok(())
    }

    fn standing(&self) -> String {
        self.life.sentence()
    }

    fn tick(&mut self, now: Instant, desk: &mut Desk<Self>) -> Result<(), String> {
        self.traffic.taps.tick(&mut Around { classifier: &self.classifier, path: &mut self.path, now });
        let told = self.c2ml.as_ref().map(Served::events).unwrap_or_default();
        self.traffic.gate.look(now).into_iter().chain(told).for_each(|what| desk.note(what));
        Ok(())
    }

    fn status(&mut self, desk: &Desk<Self>) -> Status {
        self.see();
        let (classifier, taps, now) = (&self.classifier, &self.traffic.taps, self.now());
        let (trip, has_subscribers) = (taps.steer.trip(), !self.settings.subscribers.list.is_empty());
        let mut observed_by = Entries::default();
        taps.status(&Known { classifier, trip, ways: &self.settings.ways, has_subscribers, now }, &mut observed_by);
        let accounts = Direction::BOTH.map(|d| self.path.direction(d).tree().map(Tree::accounts));
        let gate = self.traffic.gate.told();
        let one = |d: Direction| {
            let mut intake = Intake::default();
            intake.unread = gate.unread[d.index()];
            let config = &self.settings.ways[d.index()];
            DirectionReport::new(config, self.path.direction(d), &self.own.emissions[d.index()], &intake)
        };
        Status {
            common: Common::of(desk, self.marks()),
            state: self.life.state(),
            account: self.life.account(self.refused()),
            wan: self.interfaces.wan.clone(),
            lan: self.interfaces.lan.clone(),
            observed: self.own.observed,
            unclassified: self.classifier.unclassified(),
            flows: self.classifier.table.gauges(),
            stalled: self.own.stalls,
            short_of_memory: self.own.short_of_memory,
            delays: Direction::BOTH.map(|d| Delays::of(&self.path.direction(d).line.sojourn)),
            forward: one(Direction::Forward),
            reverse: one(Direction::Reverse),
            c2ml: self.c2ml.as_ref().and_then(Served::status),
            observed_by,
            subscribers: match accounts {
                [Some(down), Some(up)] => report::subscribers([down, up]),
                _ => Vec::new(),
            },
            gate,
        }
    }

    fn top(&self, by: By, most: usize, _: Instant) -> Result<Value, Refusal> {
        match by {
            By::Flow => serde_json::to_value(self.traffic.taps.talkers.flows(most)),
            By::Node => Ok(self.nodes(most)),
        }
        .map_err(|e| Refusal::of(&e))
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
        // Events up to now happen under the old settings.
        let now = self.release();
        if let Some(why) = Direction::BOTH.into_iter().find_map(|d| self.refuses(d, wanted)) {
            return Err(Refusal::new(why));
        }
        let others = self.settings.subscribers != wanted.subscribers;
        if others && self.classifier.table.subscribers.names() + wanted.subscribers.list.len() > MOST_NAMES {
            let why = format!("there were {MOST_NAMES} names of subscribers since the start; start anew");
            return Err(Refusal::new(why));
        }
        if self.settings.source != wanted.source {
            self.traffic.taps.steer.restart(wanted.source.clone(), now).map_err(|e| Refusal::of(&e))?;
        }
        let replaced = Direction::BOTH.map(|d| answers::differs(d, &self.settings, wanted));
        if others {
            self.classifier.table.subscribers.rename(&wanted.subscribers.named());
            self.traffic.taps.enforcer.iter_mut().for_each(|enforcer| enforcer.renumber(&self.classifier));
        }
        for direction in Direction::BOTH {
            let at = direction.index();
            if self.settings.ways[at].rate != wanted.ways[at].rate {
                self.path.direction_mut(direction).set_rate(wanted.ways[at].rate, now);
            }
            if self.settings.ways[at].layer != wanted.ways[at].layer {
                self.path.direction_mut(direction).set_layer(wanted.ways[at].layer, now);
            }
            if replaced[at] {
                self.replace(direction, wanted, now)?;
            }
        }
        self.traffic.taps.steer.source.by_hand = wanted.by_hand;
        self.settings.clone_from(wanted);
        self.share(now);
        Ok(now)
    }

    fn read_back(&self) -> Result<(), String> {
        for direction in Direction::BOTH {
            let meant = self.settings.way(direction, |name| number(&self.classifier, name));
            self.path.direction(direction).read_back(&meant)?;
        }
        if self.classifier.table.subscribers.are(&self.settings.subscribers.named()) {
            return Ok(());
        }
        Err("the prefixes of subscribers are others than were meant".into())
    }
}
