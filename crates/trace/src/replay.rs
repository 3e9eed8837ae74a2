//! Replay: recorded arrivals pass through any queue discipline before a link of a given rate.
//!
//! The link is a [`Server`], which defines the order of events at the same time. A packet leaves the queue when its
//! transmission begins, so its sojourn time is the queueing delay that an AQM sees.
//!
//! After the last arrival the queue is drained. Packets are reported in the order of their arrival, and only those
//! whose fate is open are kept in memory. Random numbers come from the stream `replay/<algorithm>`, or from a list that
//! the caller gives, and the discipline's clock may be ahead of that of the trace ([`Conditions`]), so that a replay can
//! be compared with one by another program. A discipline is told the owner of a flow before the first packet of the
//! flow, if the trace knows the owner ([`Arrival::node`]), and the class of a flow whose number in the trace could not be
//! kept. A trace has one direction and no headers, so the effect of an algorithm on ACKs is not visible here
//! ([`segments`] shows it). Of the headers only the rates of explicit rate notification are kept.

use crate::arrival::{Arrival, MAX_SIZE, MAX_TIME};
use crate::error::{ReadError, ReplayError};
use crate::record::{COLUMNS, Fate, Record};
use crate::summary::{Summary, Tally};
use penstock_core::config::LinkFacts;
use penstock_core::fact::Fact;
use penstock_core::link_layer::LinkLayer;
use penstock_core::packet::{Ecn, Ern, FlowId, NoTcp, Packet};
use penstock_core::qdisc::{DropReason, PacketObserver, Qdisc};
use penstock_core::registry::{AnyConfig, AnyQdisc};
use penstock_core::rng::{Rng, Streams};
use penstock_core::server::{Observer, Server};
use penstock_core::units::{Bytes, Instant, Rate, Span};
use std::collections::VecDeque;
use std::io::{self, Write};

pub mod segments;

/// What a replay takes besides the trace, the discipline and the link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conditions {
    /// Seed of the discipline's random numbers, if `draws` is `None`.
    pub seed: u64,
    /// The time that the discipline's clock shows at the beginning of the trace. It is built at zero of its clock. Records
    /// have the times of the trace.
    pub clock_offset: Span,
    /// What the link adds to each packet.
    pub layer: LinkLayer,
    /// The random numbers that the discipline draws; `None` is the stream of the algorithm.
    pub draws: Option<Rng>,
}

impl Conditions {
    /// Random numbers by a seed, and a clock that begins with the trace.
    pub fn seeded(seed: u64) -> Self {
        Self { seed, clock_offset: Span::ZERO, layer: LinkLayer::default(), draws: None }
    }

    /// Builds the discipline for the rate at which packets pass.
    fn build<P: Packet>(&self, config: &AnyConfig, link: LinkFacts) -> AnyQdisc<P> {
        config.build(&LinkFacts { rate: self.layer.of_packets(link.rate), ..link })
    }

    fn rng(&self, name: &str) -> Rng {
        match &self.draws {
            Some(draws) => draws.clone(),
            None => Streams::new(self.seed).get(&format!("replay/{name}")),
        }
    }
}

/// The result of a replay.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// All packets, in the order of arrival.
    pub packets: Vec<Record>,
    /// Totals of the replay.
    pub summary: Summary,
}

impl Outcome {
    /// Writes all packets as CSV with the columns [`COLUMNS`].
    ///
    /// # Errors
    /// Returns the error of the writer.
    pub fn write_csv(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "{COLUMNS}")?;
        self.packets.iter().zip(0..).try_for_each(|(packet, id)| packet.write_csv(id, out))
    }
}

/// Replays a trace and keeps a record of every packet.
///
/// # Errors
/// Returns an error of the trace, of a configuration that is not valid, or of arrivals that are out of order.
pub fn replay(
    arrivals: impl IntoIterator<Item = Result<Arrival, ReadError>>,
    config: &AnyConfig,
    link: LinkFacts,
    seed: u64,
) -> Result<Outcome, ReplayError> {
    let mut packets = Vec::new();
    let summary = replay_each(arrivals, config, link, seed, |packet| packets.push(*packet))?;
    Ok(Outcome { packets, summary })
}

/// Replays a trace of any length in little memory: calls `each` for every packet, in the order of arrival, as soon as
/// the fates of this packet and of all before it are known.
///
/// # Errors
/// Returns the errors of [`replay`].
pub fn replay_each(
    arrivals: impl IntoIterator<Item = Result<Arrival, ReadError>>,
    config: &AnyConfig,
    link: LinkFacts,
    seed: u64,
    each: impl FnMut(&Record),
) -> Result<Summary, ReplayError> {
    replay_under(arrivals, config, link, &Conditions::seeded(seed), each)
}

/// Replays a trace as [`replay_each`] does, under conditions that include the clock and the random numbers.
///
/// # Errors
/// Returns the errors of [`replay`], and [`ReplayError::Draws`] if the given random numbers run out.
pub fn replay_under(
    arrivals: impl IntoIterator<Item = Result<Arrival, ReadError>>,
    config: &AnyConfig,
    link: LinkFacts,
    conditions: &Conditions,
    each: impl FnMut(&Record),
) -> Result<Summary, ReplayError> {
    config.validate()?;
    run(Run::new(config.name(), conditions.build(config, link), link.rate, conditions, each), arrivals)
}

/// Replays a trace up to the time `at` and returns the state of the discipline then, for people to read. Packet `last` and
/// all before it have arrived, and of later packets those that come before `at`; what the link and timers do at `at` has
/// happened.
///
/// # Errors
/// Returns the errors of [`replay`].
pub fn state_at(
    arrivals: impl IntoIterator<Item = Result<Arrival, ReadError>>,
    config: &AnyConfig,
    link: LinkFacts,
    conditions: &Conditions,
    last: u64,
    at: Instant,
) -> Result<String, ReplayError> {
    config.validate()?;
    let queue = conditions.build(config, link);
    let mut run = Run::new(config.name(), queue, link.rate, conditions, |_: &Record| ());
    for (id, arrival) in (0..).zip(arrivals) {
        let arrival = arrival?;
        if id > last && arrival.t >= at {
            break;
        }
        run.advance_to(arrival.t)?;
        run.arrive(&arrival)?;
    }
    run.advance_to(at)?;
    Ok(run.server.qdisc().state())
}

fn run<Q: Qdisc<Job>, F: FnMut(&Record)>(
    mut run: Run<Q, F>,
    arrivals: impl IntoIterator<Item = Result<Arrival, ReadError>>,
) -> Result<Summary, ReplayError> {
    for arrival in arrivals {
        let arrival = arrival?;
        run.advance_to(arrival.t)?;
        run.arrive(&arrival)?;
        run.has_draws()?;
    }
    run.drain()?;
    run.has_draws()?;
    run.finish()
}

/// A packet of the trace, as the discipline gets it.
#[derive(Debug, Clone, Copy)]
struct Job {
    id: u64,
    size: Bytes,
    flow: FlowId,
    ecn: Ecn,
    ern: Ern,
    dscp: Option<u8>,
}

impl Packet for Job {
    type Tcp = NoTcp;

    fn size(&self) -> Bytes {
        self.size
    }
    fn flow(&self) -> FlowId {
        self.flow
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn mark_ce(&mut self) {
        self.ecn = Ecn::Ce;
    }
    fn tcp(&mut self) -> Option<&mut NoTcp> {
        None
    }
    fn dscp(&self) -> Option<u8> {
        self.dscp
    }
    fn explicit_rate(&self) -> Ern {
        self.ern
    }
}

/// The packets whose own fate, or that of a packet before them, is open.
struct Ledger<F> {
    open: VecDeque<(Record, bool)>,
    /// Id of the first of these packets.
    first: u64,
    tally: Tally,
    each: F,
    /// See [`Conditions::clock_offset`].
    clock_offset: Span,
    /// A packet that was sent or dropped twice, or that never arrived.
    stray: Option<u64>,
}

impl<F: FnMut(&Record)> Ledger<F> {
    fn next_id(&self) -> u64 {
        self.first + self.open.len() as u64
    }

    fn open(&mut self, arrival: &Arrival) {
        let record = Record {
            t_arr: arrival.t,
            t_fate: arrival.t,
            flow: arrival.label,
            size: arrival.size.get() as u32,
            fate: Fate::Sent,
            ecn_out: arrival.ecn,
        };
        self.open.push_back((record, false));
    }

    fn settle(&mut self, job: &Job, fate: Fate, now: Instant) {
        let place = job.id.checked_sub(self.first).and_then(|at| self.open.get_mut(at as usize));
        let Some((record, settled)) = place.filter(|(_, settled)| !settled) else {
            self.stray = Some(job.id);
            return;
        };
        *settled = true;
        (record.fate, record.t_fate, record.ecn_out) = (fate, now - self.clock_offset, job.ecn);
        while let Some((record, true)) = self.open.front() {
            self.tally.count(record);
            (self.each)(record);
            self.open.pop_front();
            self.first += 1;
        }
    }
}

impl<F: FnMut(&Record)> PacketObserver<Job> for Ledger<F> {
    fn dropped(&mut self, job: Job, reason: DropReason, now: Instant) {
        self.settle(&job, Fate::Dropped(reason), now);
    }
    fn marked(&mut self, _: &Job, _: Instant) {}
}

impl<F: FnMut(&Record)> Observer<Job> for Ledger<F> {
    fn sent(&mut self, job: Job, _: bool, end: Instant, now: Instant) {
        self.tally.busy_until(end - self.clock_offset);
        self.settle(&job, Fate::Sent, now);
    }
}

/// A replay in progress.
struct Run<Q, F> {
    name: String,
    server: Server<Job, Q>,
    ledger: Ledger<F>,
    now: Instant,
    /// The largest number of a flow so far, and one more. New flows are told of; their numbers grow, apart from numbers
    /// of a CSV file that were kept, of which there is nothing to tell.
    flows: u32,
}

impl<Q: Qdisc<Job>, F: FnMut(&Record)> Run<Q, F> {
    fn new(name: &str, queue: Q, rate: Rate, conditions: &Conditions, each: F) -> Self {
        let (tally, clock_offset) = (Tally::new(name, rate, conditions.layer), conditions.clock_offset);
        Self {
            name: name.to_owned(),
            server: Server::new(queue, rate, conditions.rng(name)).over(conditions.layer),
            ledger: Ledger { open: VecDeque::new(), first: 0, tally, each, clock_offset, stray: None },
            now: Instant::ZERO,
            flows: 0,
        }
    }

    fn broken(&self, what: impl Into<String>) -> ReplayError {
        ReplayError::Broken { name: self.name.clone(), what: what.into() }
    }

    /// Fails if the discipline has drawn more random numbers than were given.
    fn has_draws(&self) -> Result<(), ReplayError> {
        let rng = self.server.rng();
        match rng.missing() {
            0 => Ok(()),
            missing => {
                let (id, given) = (self.ledger.next_id().saturating_sub(1), rng.drawn().unwrap_or(0));
                Err(ReplayError::Draws { id, given, asked: given + missing })
            }
        }
    }

    /// Handles everything that happens before an arrival at `t` of the trace.
    fn advance_to(&mut self, t: Instant) -> Result<(), ReplayError> {
        let (id, t_ns) = (self.ledger.next_id(), t.as_nanos());
        if t > MAX_TIME {
            return Err(ReplayError::OutOfRange { id });
        }
        let t = t + self.ledger.clock_offset;
        if t < self.now {
            return Err(ReplayError::Backwards { id, t_ns });
        }
        while self.step(t + Span::from_nanos(1)) {}
        self.now = t;
        Ok(())
    }

    /// Handles the next timer or departure; returns false if there is none before `end`.
    fn step(&mut self, end: Instant) -> bool {
        let at = self.server.step(self.now, end, &mut self.ledger);
        self.now = at.unwrap_or(self.now);
        at.is_some()
    }

    fn arrive(&mut self, arrival: &Arrival) -> Result<(), ReplayError> {
        if arrival.size == Bytes::ZERO || arrival.size > MAX_SIZE {
            return Err(ReplayError::OutOfRange { id: self.ledger.next_id() });
        }
        let Arrival { size, flow, ecn, ern, dscp, .. } = *arrival;
        let job = Job { id: self.ledger.next_id(), size, flow, ecn, ern, dscp };
        self.ledger.open(arrival);
        if flow.0 >= self.flows {
            self.flows = flow.0.saturating_add(1);
            arrival.node.iter().for_each(|node| self.server.on_fact(&Fact::Owner { flow, node: *node }, self.now));
            // Classes follow from the numbers in the trace. One beyond 32 bits has the class of its flow.
            if let Some(class) = u32::try_from(arrival.label).ok().filter(|class| *class != flow.0) {
                self.server.on_fact(&Fact::Class { flow, class }, self.now);
            }
        }
        self.server.enqueue(job, self.now, &mut self.ledger);
        self.server.offer(self.now, &mut self.ledger);
        Ok(())
    }

    /// Continues until no packet waits and the link is idle. Timers that would fire for ever are then ignored.
    fn drain(&mut self) -> Result<(), ReplayError> {
        let begin = self.now;
        loop {
            let held = self.server.backlog().packets;
            match self.server.idle_since() {
                Some(_) if held == 0 => return Ok(()),
                Some(since) if self.now.since(since.max(begin)) > MAX_TIME.since(Instant::ZERO) => {
                    return Err(self.broken(format!("it kept {held} packets from an idle link for a million seconds")));
                }
                _ => {}
            }
            if !self.step(Instant::MAX) {
                return Err(self.broken(match self.server.qdisc().next_wakeup() {
                    Some(at) => format!("it asks for ever to be woken at {} ns", at.as_nanos()),
                    None => format!("it keeps {held} packets and does not say when to ask again"),
                }));
            }
        }
    }

    fn finish(self) -> Result<Summary, ReplayError> {
        if let Some(id) = self.ledger.stray {
            return Err(self.broken(format!("packet {id} was sent or dropped twice, or never came")));
        }
        if !self.ledger.open.is_empty() {
            return Err(self.broken(format!("packet {} was neither sent nor dropped", self.ledger.first)));
        }
        let stats = self.server.stats();
        stats.check(self.server.backlog()).map_err(|error| self.broken(error.to_string()))?;
        let summary = self.ledger.tally.finish(stats.marked.packets, stats.dropped_forced.packets);
        let counted = (summary.packets, summary.sent, summary.bytes, summary.sent_bytes);
        let told = (stats.arrived.packets, stats.sent.packets, stats.arrived.bytes, stats.sent.bytes);
        if counted != told {
            let what = format!("it counted {told:?} packets and bytes in and out, of which {counted:?} happened");
            return Err(ReplayError::Broken { name: self.name, what });
        }
        Ok(summary)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_core::qdisc::{Backlog, Enqueued, Stats};

    const MS: u64 = 1_000_000;
    /// At this rate 1000 bytes take a millisecond.
    const RATE: Rate = Rate::from_bps(8_000_000);

    /// Releases packets only at whole multiples of 10 ms, one each time, and records the calls it gets.
    #[derive(Default)]
    struct Gate {
        waiting: VecDeque<Job>,
        open: bool,
        next: Option<Instant>,
        stats: Stats,
        log: Vec<(u64, &'static str)>,
        /// If true, it never asks to be woken.
        mute: bool,
        /// If true, it asks to be woken at the same time for ever.
        frantic: bool,
        /// If true, it reports each packet twice.
        doubles: bool,
    }

    impl Qdisc<Job> for Gate {
        fn enqueue<F: PacketObserver<Job>>(&mut self, job: Job, now: Instant, _: &mut Rng, fates: &mut F) -> Enqueued {
            self.log.push((now.as_nanos() / MS, "arrival"));
            self.stats.arrived.add(job.size);
            self.waiting.push_back(job);
            let boundary = (now.as_nanos() / (10 * MS) + 1) * 10 * MS;
            self.next = self.next.or(Some(Instant::from_nanos(boundary)));
            if self.doubles {
                fates.dropped(job, DropReason::Early, now);
            }
            Enqueued::Queued
        }
        fn dequeue<F: PacketObserver<Job>>(&mut self, now: Instant, _: &mut Rng, _: &mut F) -> Option<Job> {
            self.log.push((now.as_nanos() / MS, "departure"));
            let job = if std::mem::take(&mut self.open) { self.waiting.pop_front() } else { None }?;
            self.stats.sent.add(job.size);
            Some(job)
        }
        fn on_fact(&mut self, _: &Fact, _: Instant) {}
        fn next_wakeup(&self) -> Option<Instant> {
            self.next.filter(|_| !self.mute)
        }
        fn on_wakeup(&mut self, now: Instant) {
            self.log.push((now.as_nanos() / MS, "timer"));
            if self.frantic {
                return;
            }
            self.open = true;
            self.next = Some(Instant::from_nanos(now.as_nanos() + 10 * MS)).filter(|_| !self.waiting.is_empty());
        }
        fn backlog(&self) -> Backlog {
            let bytes = self.waiting.iter().map(|job| job.size.get()).sum();
            Backlog { packets: self.waiting.len() as u64, bytes }
        }
        fn stats(&self) -> &Stats {
            &self.stats
        }
    }

    fn at(ms: u64) -> Arrival {
        let t = Instant::from_nanos(ms * MS);
        Arrival {
            t,
            flow: FlowId(0),
            label: 0,
            node: None,
            size: Bytes::new(10_000),
            ecn: Ecn::NotEct,
            ern: Ern::default(),
            dscp: None,
        }
    }

    fn fails(gate: Gate, arrivals: &[Arrival]) -> String {
        run(Run::new("gate", gate, RATE, &Conditions::seeded(1), |_: &Record| ()), arrivals.iter().copied().map(Ok))
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn at_one_instant_the_timer_comes_before_the_departure_and_that_before_the_arrival() {
        let mut run = Run::new("gate", Gate::default(), RATE, &Conditions::seeded(1), |_: &Record| ());
        for arrival in [at(1), at(2), at(20)] {
            run.advance_to(arrival.t).unwrap();
            run.arrive(&arrival).unwrap();
        }
        // Until 20 ms the link transmits the packet it got at 10 ms: in the meantime there are only timers and
        // arrivals.
        let expected = [
            (1, "arrival"),
            (1, "departure"),
            (2, "arrival"),
            (2, "departure"),
            (10, "timer"),
            (10, "departure"),
            (20, "timer"),
            (20, "departure"),
            (20, "arrival"),
        ];
        assert_eq!(run.server.qdisc().log, expected);
    }

    #[test]
    fn what_is_held_back_is_drained_at_the_times_the_discipline_names() {
        let mut sent = Vec::new();
        let each = |packet: &Record| sent.push((packet.fate, packet.t_fate.as_nanos() / MS));
        let arrivals = [at(1), at(2), at(20)].map(Ok);
        let summary = run(Run::new("gate", Gate::default(), RATE, &Conditions::seeded(1), each), arrivals).unwrap();
        assert_eq!(sent, [(Fate::Sent, 10), (Fate::Sent, 20), (Fate::Sent, 30)]);
        // The run lasts from 1 ms to 40 ms; the last 30 ms are three transmissions.
        assert_eq!((summary.duration_s, summary.sojourn_ms.max), (0.039, 18.0));
        assert!((summary.utilization.unwrap() - 30.0 / 39.0).abs() < 1e-12);
    }

    #[test]
    fn a_discipline_that_breaks_its_contract_is_found_out() {
        let mute = fails(Gate { mute: true, ..Gate::default() }, &[at(1)]);
        assert!(mute.contains("keeps 1 packets and does not say when to ask again"), "{mute}");
        let frantic = fails(Gate { frantic: true, ..Gate::default() }, &[at(1)]);
        assert!(frantic.contains("for ever to be woken at 10000000 ns"), "{frantic}");
        let doubles = fails(Gate { doubles: true, ..Gate::default() }, &[at(1)]);
        assert!(doubles.contains("packet 0 was sent or dropped twice"), "{doubles}");
    }

    #[test]
    fn arrivals_that_no_trace_may_hold_are_refused() {
        let backwards = fails(Gate::default(), &[at(5), at(4)]);
        assert_eq!(backwards, "packet 1 arrives at 4000000 ns, before its predecessor; sort the arrivals by time");
        let empty = fails(Gate::default(), &[Arrival { size: Bytes::ZERO, ..at(5) }]);
        assert!(empty.contains("packet 0"), "{empty}");
        let late = fails(Gate::default(), &[Arrival { t: Instant::MAX, ..at(5) }]);
        assert!(late.contains("10^15"), "{late}");
    }
}
