//! What an emulator does with packets: reads those that arrived, writes those that are due, and sleeps until the next event. It
//! uses one thread, or one for each wire. What is slow waits for it: clients of the control socket, signals, the file of packets.

use crate::carried::Carried;
use crate::changes::Playing;
use crate::cli::{Options, Plan};
use crate::end::{self, End, Interface, Read};
use crate::error::Error;
use crate::machine::{Machine, Wakeup};
use crate::outputs::Outputs;
use crate::packets::{Lines, Written};
use crate::report::Report;
use crate::settings::Settings;
use crate::through::{INTERFACES, Through};
use crate::waits::Pause;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::time::{ClockId, clock_gettime};
use penstock_appliance::appliance::{Appliance, Clock, Desk, Rest};
use penstock_appliance::log::Log;
use penstock_appliance::output::Offers;
use penstock_appliance::record::Place;
use penstock_appliance::run::{Ended, run};
use penstock_appliance::socket::message::{By, Refusal};
use penstock_appliance::socket::server::Server;
use penstock_core::packet::{Carrier as _, FlowId};
use penstock_core::rng::Streams;
use penstock_core::units::{Bytes, Instant, Rate, Span};
use penstock_core::wire::RealPacket;
use penstock_grammar::stations::StationSpec;
use penstock_linux::links::LinkWatch;
use penstock_linux::netns::Namespace;
use penstock_linux::random;
use penstock_linux::scheduling::{self, Awake};
use penstock_linux::signals::Signals;
use penstock_linux::stalls::LONGEST_SLEEP;
use penstock_shaper::bottleneck::Delivery;
use penstock_shaper::classify::Classifier;
use penstock_shaper::direction::Direction;
use penstock_shaper::emissions::{AlgorithmTime, Emissions, Stopwatch};
use penstock_shaper::intake::Intake;
use penstock_shaper::keys::Keys;
use penstock_shaper::path::Path;
use penstock_shaper::pool::{LARGEST, Pool};
use penstock_shaper::report::{DISTURBED_ABOVE, DirectionReport};
use penstock_shaper::sheet::ENTRIES;
use penstock_shaper::talkers::Talkers;
use serde_json::Value;
use std::io::Write as _;
use std::os::fd::AsFd;
use std::time::Duration;

/// Largest number of packets read from one side before the other side and the clock get their turn.
const BATCH: usize = 32;
/// How long the file of packets may delay the report.
const FILE_PATIENCE: Duration = Duration::from_secs(1);

/// A bottleneck between two interfaces.
pub struct Emulator {
    plan: Plan,
    settings: Settings,
    path: Path<Carried>,
    /// The direction from left to right, and the other.
    ways: [Way; 2],
    playing: Playing,
    /// Takes what comes from queues of the kernel.
    rest: Box<[u8]>,
    classifier: Classifier,
    pool: Pool,
    machine: Machine,
    /// The time that disciplines take, if one of them is of somebody's own crate.
    stopwatch: Option<Stopwatch>,
    outputs: Outputs,
    talkers: Talkers,
    clock: Clock,
}

/// What packets of a direction pass beside their queue.
struct Way {
    end: End,
    link: LinkWatch,
    /// The queue of the kernel before that of the path.
    through: Option<Through>,
    intake: Intake,
    emissions: Emissions,
    bare: u64,
}

/// A run that has ended. Its interfaces are gone.
pub struct Finished {
    /// The results of the run.
    pub report: Report,
    /// What made the run end before it should, as a sentence.
    pub failure: Option<String>,
    /// The files of packets, which may still be written.
    pub(crate) files: Vec<Written>,
}

impl Emulator {
    /// Creates the interfaces and an idle bottleneck between them, for this thread. `options` are those that the plan was made
    /// of. Reports that are asked for meanwhile go to `printer`. The error says what is missing, and what to do about it.
    pub fn open(
        plan: Plan,
        options: &Options,
        namespaces: &[Namespace; 2],
        signals: Signals,
        server: Option<Server>,
        printer: Offers,
    ) -> Result<(Self, Desk<Self>), Error> {
        let [here, there] = namespaces;
        let [left, right] = &plan.interfaces;
        if here.is(there) && matches!((left, right), (Interface::Port(one), Interface::Port(other)) if one == other) {
            let name = left.name();
            let message = format!("{name} cannot be both ends: all that comes from its network would go back there");
            return Err(Error::User(message));
        }
        if here.is(there) && matches!(left, Interface::Tun(_)) {
            let message = "left and right must be in two namespaces, for packets between addresses of one never leave \
                           its kernel; give --left-netns and --right-netns (`ip netns add NAME` makes one)";
            return Err(Error::User(message.into()));
        }
        let desk = Desk::open(signals, server, Log::nowhere())?.printing(printer, plan.file.run.duration);
        let (own, began) = (plan.clone(), options.clone());
        let file = options.config.clone().unwrap_or_default();
        let desk = desk.reads(&file, move |name, text| own.again(&began, name, text))?;
        let ends = [End::open(&plan.interfaces[0], here)?, End::open(&plan.interfaces[1], there)?];
        end::same_mtu(&plan.interfaces, &ends)?;
        let mtu = ends[0].mtu;
        let ways = ways(&plan, ends, namespaces)?;
        ways.iter().try_for_each(|way| desk.watch(&way.link))?;
        // Threads are started before this one gets a priority, which they would inherit.
        let outputs = Outputs::open(&plan, desk.clock.epoch())?;
        scheduling::prompt(plan.file.run.realtime)?;
        let awake = (plan.file.run.realtime || plan.file.run.spin).then(Awake::keep).flatten();
        let [forward, reverse] = &plan.settings.0;
        let mut path = Path::new(&forward.config, &reverse.config, Streams::new(plan.seed()));
        path.direction_mut(Direction::Forward).set_loss(forward.loss);
        for (direction, way) in Direction::BOTH.into_iter().zip([forward, reverse]) {
            path.impair(direction, &way.impairments, Streams::new(plan.seed()), "impaired", Instant::ZERO);
        }
        path.serve(forward.stations.iter().map(StationSpec::channel).collect(), Streams::new(plan.seed()));
        outputs.fill_from(&mut path);
        let keys = keys(&plan)?;
        let foreign = plan.settings.0.iter().any(|way| way.config.aqm.is_foreign());
        let emulator = Self {
            settings: plan.settings.clone(),
            path,
            ways,
            playing: Playing::new(&plan.file.changes),
            rest: vec![0; LARGEST].into_boxed_slice(),
            classifier: classifier(&plan, keys),
            pool: Pool::new(mtu),
            machine: Machine::new(plan.wires, awake),
            stopwatch: foreign.then(Stopwatch::default),
            outputs,
            talkers: Talkers::new(keys.talkers),
            clock: desk.clock,
            plan,
        };
        Ok((emulator, desk))
    }

    /// Moves packets until the duration is over, a signal comes or an interface is gone. Returns the report in any case, and
    /// the signals, which still end nothing by themselves.
    pub fn run(mut self, mut desk: Desk<Self>) -> (Finished, Signals) {
        self.machine.woken = self.now();
        let ended = run(&mut self, &mut desk);
        self.flush();
        self.ways.iter_mut().for_each(|way| way.link.refresh());
        self.note_facts();
        let elapsed = self.now().since(Instant::ZERO);
        self.outputs.exchange(&mut self.path, 1, None);
        let (lines, files) = std::mem::take(&mut self.outputs).close(FILE_PATIENCE);
        let report = self.report(&desk, &ended, elapsed, lines);
        (Finished { report, failure: ended.failure(), files }, desk.signals)
    }

    fn report(&self, desk: &Desk<Self>, ended: &Ended, elapsed: Span, lines: [Option<Lines>; 2]) -> Report {
        let (plan, machine, [there, back]) = (&self.plan, &self.machine, &self.ways);
        let [forward, reverse] = Direction::BOTH.map(|direction| {
            let (way, config) = (&self.ways[direction.index()], &self.settings.0[direction.index()].config);
            let report = DirectionReport::new(config, self.path.direction(direction), &way.emissions, &way.intake);
            let through = way.through.as_ref().map(|through| through.loans.counters);
            DirectionReport { frames: way.end.frames(), through, ..report }
        });
        let place = |at: usize| Place {
            interface: plan.interfaces[at].name().to_owned(),
            netns: plan.file.ends[at].netns.clone(),
        };
        let [packets_file, pcapng_file] = lines;
        Report {
            wire: plan.wire.clone(),
            ends: [place(0), place(1)],
            elapsed_s: elapsed.as_secs_f64(),
            seed: plan.seed(),
            ended: ended.text(),
            disturbed: false,
            disturbed_by: Vec::new(),
            disturbed_above_us: DISTURBED_ABOVE.as_nanos() as f64 / 1e3,
            unclassified: self.classifier.unclassified(),
            stalled: machine.stalls,
            short_of_memory: machine.short_of_memory,
            packets_file,
            pcapng_file,
            algorithm: self.stopwatch.as_ref().map(|watch| self.algorithm(watch)),
            changes: desk.chronicle.changes.clone(),
            cpu_s: clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID)
                .map_or(0.0, |time| Duration::from(time).as_secs_f64()),
            awake: machine.awake.is_some(),
            bare: plan.bare.then_some([there.bare, back.bare]),
            flows: self.classifier.table.gauges(),
            forward,
            reverse,
        }
        .judged()
    }

    /// Returns the time that the disciplines take, and the budget of this path.
    fn algorithm(&self, watch: &Stopwatch) -> AlgorithmTime {
        let arrived = Direction::BOTH.map(|direction| self.path.direction(direction).server.stats().arrived);
        let (packets, bytes) = arrived.iter().fold((0, 0), |sum, one| (sum.0 + one.packets, sum.1 + one.bytes));
        let rate = self.settings.0.iter().map(|way| way.config.rate.as_bps()).max().unwrap_or_default();
        watch.read(Bytes::new(bytes / packets.max(1)), Rate::from_bps(rate))
    }

    fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Writes all packets that are due; returns the time up to which everything has been written.
    fn write_what_is_due(&mut self, is_asked: bool) -> Instant {
        loop {
            let now = self.now();
            let works = self.stopwatch.is_some() && self.path.is_due(now);
            // What was due before a change of the link happens under the old values.
            let change = self.playing.next().filter(|at| *at <= now);
            let polled = self.path.poll(change.unwrap_or(now), &mut self.pool);
            if works {
                self.time_since(now, Stopwatch::add);
            }
            let Some((direction, Delivery { due, packet, twice })) = polled else {
                if let Some(at) = change {
                    self.playing.play(at, &mut self.path, &mut self.settings);
                    continue;
                }
                self.outputs.exchange(&mut self.path, ENTRIES, None);
                return now;
            };
            if is_asked {
                self.talkers.count(direction, packet.carried(), now);
            }
            let copy = if twice { packet.copy(&mut self.pool) } else { None };
            self.machine.short_of_memory += u64::from(twice && copy.is_none());
            let (way, other) = both(&mut self.ways, direction);
            for packet in std::iter::once(packet).chain(copy) {
                other.end.write(due, packet, now, &mut way.emissions, &mut self.pool);
            }
            self.outputs.exchange(&mut self.path, ENTRIES, None);
        }
    }

    /// Writes the packets that ends have kept to write them together.
    fn flush(&mut self) {
        let now = self.now();
        for direction in Direction::BOTH {
            let (way, other) = both(&mut self.ways, direction);
            other.end.flush(now, &mut way.emissions, &mut self.pool);
        }
    }

    /// Gives the stopwatch the time since `begin`, if there is a stopwatch.
    fn time_since(&mut self, begin: Instant, add: fn(&mut Stopwatch, Span)) {
        if self.stopwatch.is_some() {
            let took = self.now().since(begin);
            self.stopwatch.iter_mut().for_each(|watch| add(watch, took));
        }
    }

    /// Reads packets that travel in `direction` from the interface where this direction begins. `came` is when the first of
    /// them came, as far as it is known.
    fn read_from(&mut self, direction: Direction, mut came: Option<Instant>, is_asked: bool) -> std::io::Result<()> {
        let at = direction.index();
        // Who is stopped after the look, and before the time is taken, must not believe that nothing came since then.
        let mut looked = self.now();
        for _ in 0..BATCH {
            let way = &mut self.ways[at];
            let (buffer, len, lead) = match way.end.read(&mut self.pool)? {
                Read::Packet(buffer, len, lead) => (buffer, len, lead),
                Read::NoMemory => {
                    self.machine.short_of_memory += 1;
                    return Ok(());
                }
                Read::Nothing => {
                    way.intake.note_empty(looked);
                    return Ok(());
                }
            };
            way.intake.oversize += u64::from(len > way.end.mtu);
            if self.plan.bare {
                let (packet, (way, other)) = (RealPacket::new(buffer, FlowId(0)), both(&mut self.ways, direction));
                way.bare += 1;
                other.end.write(looked, Carried::new(packet, lead), looked, &mut way.emissions, &mut self.pool);
                continue;
            }
            let now = self.write_what_is_due(is_asked);
            let way = &mut self.ways[at];
            if way.through.is_none()
                && let Some(idle_since) = self.path.direction(direction).server.idle_since()
            {
                way.intake.note_idle(idle_since, came, now);
            }
            // The packets behind this one have waited as well, but for them the wire is busy now.
            came = Some(now);
            let (packet, facts) = self.classifier.packet(direction, buffer, len, now, &mut self.pool);
            self.path.tell(&facts, now);
            if let Some(warning) = self.classifier.warning() {
                let _ = writeln!(std::io::stderr(), "{warning}");
            }
            self.arrive(direction, Carried::new(packet, lead), now);
            looked = now;
        }
        Ok(())
    }

    /// A packet arrives at the queue of the kernel, or at ours.
    fn arrive(&mut self, direction: Direction, packet: Carried, now: Instant) {
        let begin = self.stopwatch.as_ref().map_or(now, |_| self.now());
        let stays = match &mut self.ways[direction.index()].through {
            Some(through) => through.lend(packet, now),
            None => Some(packet),
        };
        if let Some(packet) = stays {
            self.path.arrive(direction, packet, now, &mut self.pool);
        }
        self.time_since(begin, Stopwatch::arrived);
    }

    /// Reads packets that travel in `direction` and that the queue of the kernel has let go, and notes those that it dropped.
    fn read_what_was_let_go(&mut self, direction: Direction, is_asked: bool) -> std::io::Result<()> {
        let at = direction.index();
        for _ in 0..BATCH {
            let Some(through) = &self.ways[at].through else { return Ok(()) };
            let Some(len) = through.read(&mut self.rest)? else { return Ok(()) };
            let now = self.write_what_is_due(is_asked);
            let Some(through) = &mut self.ways[at].through else { return Ok(()) };
            let back = through.loans.take_back(&self.rest[..len]);
            let bottleneck = self.path.direction_mut(direction);
            while let Some(lost) = through.loans.lost.pop() {
                let packet = bottleneck.note_dropped(lost.packet, lost.since, now, through.drops);
                self.pool.give(packet.into_bytes());
            }
            if let Some(loan) = back {
                if let Some(idle_since) = bottleneck.server.idle_since() {
                    self.ways[at].intake.note_starved(now.since(idle_since.max(loan.since)));
                }
                bottleneck.arrive_since(loan.packet, loan.since, now, &mut self.pool);
            }
        }
        Ok(())
    }

    fn note_facts(&mut self) {
        for way in &mut self.ways {
            way.intake.unread = way.end.unread(way.link.facts().unread);
            way.intake.unread += way.through.as_mut().map_or(0, Through::unread);
        }
        self.machine.stalls.note_suspended(self.machine.suspension.so_far());
    }

    /// Returns how to wait from now on for a packet, or for the next event of the path or of the loop.
    fn pause(&mut self, rest: &Rest<'_>) -> Pause {
        if self.plan.file.run.spin {
            return Pause::default();
        }
        let others = rest.until.min(rest.now + LONGEST_SLEEP).min(self.playing.next().unwrap_or(Instant::MAX));
        self.machine.waits.pause(rest.now, self.path.next_due(), others)
    }

    /// Changes one direction, and nothing that is as it was.
    fn change(&mut self, direction: Direction, wanted: &Settings, now: Instant) -> Result<(), Refusal> {
        let (old, new) = (&self.settings.0[direction.index()], &wanted.0[direction.index()]);
        let bottleneck = self.path.direction_mut(direction);
        if old.config.rate != new.config.rate {
            bottleneck.set_rate(new.config.rate, now);
        }
        if old.config.layer != new.config.layer {
            bottleneck.set_layer(new.config.layer, now);
        }
        bottleneck.line.delay = new.config.delay;
        if old.loss != new.loss {
            bottleneck.set_loss(new.loss);
        }
        if old.impairments != new.impairments {
            let of = format!("impaired/{}", now.as_nanos());
            self.path.impair(direction, &new.impairments, Streams::new(self.plan.seed()), &of, now);
        }
        let bottleneck = self.path.direction_mut(direction);
        if old.stations != new.stations {
            let channels = new.stations.iter().map(StationSpec::channel).collect();
            bottleneck.set_stations(channels, now, &mut self.pool);
        }
        if old.replaces(new) {
            bottleneck.replace(&new.config.aqm, new.config.limit, now).map_err(|e| Refusal::of(&e))?;
            self.classifier.tell_again();
        }
        Ok(())
    }
}

impl Appliance for Emulator {
    type Settings = Settings;
    type File = Settings;
    type Status = Report;

    fn turn(&mut self, desk: &mut Desk<Self>) -> Result<Instant, String> {
        let now = self.write_what_is_due(desk.is_asked());
        self.flush();
        Ok(now)
    }

    /// Waits for a packet, a signal, the next packet that is due or the end, whichever comes first.
    fn sleep(&mut self, rest: &Rest<'_>) -> Result<bool, String> {
        let (now, pause) = (rest.now, self.pause(rest));
        // Without memory packets stay in the kernel until a buffer is free, and clients get their turn once in a while.
        let looks = self.pool.has_buffer() && pause.looks;
        let idle = pause.timeout > Span::ZERO
            && Direction::BOTH.into_iter().any(|d| self.path.direction(d).server.idle_since().is_some());
        let sleep = self.machine.sleep(now, pause.timeout, idle);
        let if_true = |is| if is { PollFlags::POLLIN } else { PollFlags::empty() };
        let [there, back] = &self.ways;
        let mut fds = [
            PollFd::new(rest.slow, if_true(rest.serves)),
            PollFd::new(there.end.as_fd(), if_true(looks)),
            PollFd::new(back.end.as_fd(), if_true(looks)),
            let_go(there),
            let_go(back),
        ];
        let polled = ppoll(&mut fds, Some(Duration::from_nanos(pause.timeout.as_nanos()).into()), None);
        let woken = self.clock.now();
        self.machine.wake(&sleep, woken);
        match polled {
            Err(Errno::EINTR) => return Ok(false),
            other => other.map_err(|error| format!("cannot wait for packets: {error}"))?,
        };
        let ready = fds.each_ref().map(|fd| fd.revents().is_some_and(|events| !events.is_empty()));
        let failed = fds.each_ref().map(|fd| fd.revents().is_some_and(|events| events.contains(PollFlags::POLLERR)));
        let [slow, readable @ .., _, _] = ready;
        self.ways.iter().zip(&failed[1..]).filter(|(_, failed)| **failed).for_each(|(way, _)| way.end.calm());
        for (way, _) in self.ways.iter_mut().zip(readable).filter(|(_, readable)| looks && !readable) {
            way.intake.note_empty(woken);
        }
        let packets = readable.contains(&true);
        self.machine.waits.note(&pause, woken, sleep.was(woken), packets);
        let processor = || self.machine.processor.so_far();
        let came = if packets { sleep.came(woken, processor) } else { Some(woken) };
        self.machine.wakeup = Wakeup { readable, let_go: [ready[3], ready[4]], came };
        Ok(slow)
    }

    fn read_what_came(&mut self, desk: &mut Desk<Self>) -> Result<(), String> {
        let Wakeup { readable, let_go, came } = std::mem::take(&mut self.machine.wakeup);
        for from in Direction::BOTH {
            let at = from.index();
            let removed =
                |name: &str, error| format!("cannot read from the interface {name}; was it removed? ({error})");
            if readable[at]
                && let Err(error) = self.read_from(from, came, desk.is_asked())
            {
                return Err(removed(self.plan.interfaces[at].name(), error));
            }
            if (readable[at] || let_go[at])
                && let Err(error) = self.read_what_was_let_go(from, desk.is_asked())
            {
                return Err(removed(INTERFACES[1], error));
            }
        }
        Ok(())
    }

    /// A TUN interface that is gone tells it when it is read; the socket of a port does not.
    fn look(&mut self, _: &mut Desk<Self>) -> Result<(), String> {
        self.ways.iter_mut().for_each(|way| _ = way.link.read());
        let gone = self.ways.iter().position(|way| way.link.facts().gone);
        let name = |side: usize| self.plan.interfaces[side].name();
        gone.map_or(Ok(()), |side| Err(format!("cannot read from the interface {}; was it removed?", name(side))))
    }

    fn tick(&mut self, now: Instant, _: &mut Desk<Self>) -> Result<(), String> {
        self.ways.iter().for_each(|way| way.link.ask());
        self.note_facts();
        self.talkers.tick(now);
        self.path.direction_mut(Direction::Forward).server.look_at_channels(now);
        self.outputs.exchange(&mut self.path, 1, Some(now));
        Ok(())
    }

    fn status(&mut self, desk: &Desk<Self>) -> Report {
        self.report(desk, &Ended::Not, self.now().since(Instant::ZERO), self.outputs.lines())
    }

    fn text(&mut self, desk: &Desk<Self>) -> String {
        self.ways.iter_mut().for_each(|way| way.link.refresh());
        self.note_facts();
        self.status(desk).text(self.plan.json).unwrap_or_default()
    }

    fn top(&self, by: By, most: usize, now: Instant) -> Result<Value, Refusal> {
        let name = |address| self.classifier.table.subscribers.name_at(address, now);
        match by {
            By::Flow => serde_json::to_value(self.talkers.flows(most)),
            By::Node => serde_json::to_value(self.talkers.nodes(self.plan.nodes(), most, name)),
        }
        .map_err(|e| Refusal::of(&e))
    }

    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn read(&self, values: &[(String, String)]) -> Result<Settings, Refusal> {
        self.settings.with(values, Direction::BOTH.map(|d| self.path.direction(d).keeps_connections()))
    }

    fn wanted(&self, file: &Settings) -> Result<Settings, Refusal> {
        Ok(file.clone())
    }

    fn go_to(&mut self, wanted: &Settings) -> Result<Instant, Refusal> {
        for direction in Direction::BOTH {
            let (old, new) = (&self.settings.0[direction.index()], &wanted.0[direction.index()]);
            if old.replaces(new) {
                let may = self.path.direction(direction).may_replace(&new.config.aqm, new.config.limit);
                may.map_err(|why| Refusal::of(&why))?;
            }
        }
        // Events up to now happen under the old settings.
        let now = self.write_what_is_due(true);
        Direction::BOTH.into_iter().try_for_each(|direction| self.change(direction, wanted, now))?;
        self.settings.clone_from(wanted);
        Ok(now)
    }

    fn read_back(&self) -> Result<(), String> {
        let config = |d: Direction| &self.settings.0[d.index()].config;
        Direction::BOTH.into_iter().try_for_each(|d| self.path.direction(d).read_back(config(d)))
    }
}

/// Returns what a direction has, and what the other has, in which it ends.
fn both(ways: &mut [Way; 2], direction: Direction) -> (&mut Way, &mut Way) {
    let [there, back] = ways;
    if direction == Direction::Forward { (there, back) } else { (back, there) }
}

fn ways(plan: &Plan, [left, right]: [End; 2], namespaces: &[Namespace; 2]) -> Result<[Way; 2], Error> {
    let one = |end: End, at: usize| {
        Ok::<_, Error>(Way {
            link: LinkWatch::open(&namespaces[at], end.index)?,
            through: plan.file.through[at].as_ref().map(|keys| Through::open(keys, end.mtu as u16)).transpose()?,
            end,
            intake: Intake::default(),
            emissions: Emissions::default(),
            bare: 0,
        })
    };
    Ok([one(left, 0)?, one(right, 1)?])
}

/// Returns the keys of hashes: those of the seed, if one was given.
fn keys(plan: &Plan) -> Result<Keys, Error> {
    match plan.file.run.seed {
        Some(seed) => Ok(Keys::from_seed(seed)),
        None => random::bytes().map(|bytes| Keys::from_random(&bytes)).map_err(Error::io("cannot draw random numbers")),
    }
}

fn classifier(plan: &Plan, keys: Keys) -> Classifier {
    let config = penstock_conntrack::Config {
        subscribers: plan.file.subscribers.clone(),
        ..penstock_conntrack::Config::default()
    };
    Classifier::new(config, keys, plan.nodes()).with_hosts(&plan.file.hosts)
}

/// Returns what to wait for of a queue of the kernel: nothing, if there is none; `end` is any interface then.
fn let_go(way: &Way) -> PollFd<'_> {
    match &way.through {
        Some(through) => PollFd::new(through.as_fd(), PollFlags::POLLIN),
        None => PollFd::new(way.end.as_fd(), PollFlags::empty()),
    }
}
