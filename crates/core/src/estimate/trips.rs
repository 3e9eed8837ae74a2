//! The queues beyond a shaper, from the TCP segments that pass: by how much a segment takes longer than the fastest of its kind.
//!
//! A segment that leaves is recorded, and the answer to it ends a sample:
//! - A segment with payload is answered by the acknowledgment whose last segment it is. A delayed ACK waits for the second
//!   segment, which our own shaper may have held; so a sample begins when that one left.
//! - An acknowledgment is answered by the data that echoes its timestamp (RFC 7323 §4.1). After a pause the far end had nothing
//!   to send, and its answer tells only that the path takes no longer.
//!
//! Nothing that our shaper did is in a sample: packets are shown as they leave it. What it dropped has never left, and shows as a
//! hole; the segment that fills the hole left once, so its sample is right, while those that waited for it show nothing. A
//! segment that leaves twice ends all samples (Karn, RFC 6298 §3): then something beyond the shaper lost it, and it counts as
//! *lost beyond*.
//!
//! A receiver holds the acknowledgment of a single segment back for up to `DELAYED`. Where that fits the queue that stands
//! better, it is subtracted.
//!
//! The smallest sample is kept for each flow and each kind: a full packet takes longer than a small one by its own transmission,
//! 24 ms at 0.5 Mbit/s. Once the rate of the link is known, that of full packets is at most the one of small packets, such as those
//! of the handshake, and their own transmission. A flow is *sure* of it if a packet was alone: so little had passed that the link had
//! sent it already.
//! Flows that are sure tell the queue; the others, which may have begun in a queue, take their smallest times from them.
//!
//! The clock of the far end, which segments carry, splits a sample: what an arriving segment takes longer than the fastest since
//! its timestamp is the queue of the way in; the rest is the queue of the way out (LEDBAT, RFC 6817 §2.2). Ticks of 1 ms and of
//! 1 us are recognized. Without such a clock both directions that are loaded have the queue.
//!
//! State: a table of fixed size with a place for each hash. The flow of a place keeps it until it is silent for `SILENT`.

use super::{Known, Way};
use crate::packet::{TcpFlags, TcpView};
use crate::units::{Bytes, Instant, Rate, Span};

/// Number of places, a power of two.
const PLACES: usize = 256;
/// The place of a flow that is silent for so long is free.
const SILENT: Span = Span::from_secs(5);
/// Segments that wait for their answers. When there are more, every second one is forgotten.
const RECORDS: usize = 64;
/// Holes that the shaper made and nothing has filled yet.
const HOLES: usize = 8;
/// Flows whose samples count in a step.
const COUNTED: usize = 32;
/// For so long a receiver holds back the acknowledgment of a single segment (Linux, TCP_DELACK_MIN).
const DELAYED: i64 = 40_000_000;
/// A packet of more bytes is a full one.
const FULL: u64 = 600;
/// Bytes of the largest one that is common.
const PACKET: f64 = 1500.0;
/// An acknowledgment of up to so many bytes is one of a single segment.
const SINGLE: u32 = 1500;
/// After this time the tick of a far end's clock shows.
const TICKS: Span = Span::from_millis(100);
/// After so many comparisons with flows that are sure of their smallest time, a flow is sure as well.
const SURE: u8 = 24;
/// Bytes that may stand before a packet that is alone.
const ALONE: f64 = 200.0;
/// Seconds of the capacity that are counted for what stands before a packet at most.
const COUNTS: f64 = 0.05;
/// The smallest times grow by this part of the time that passes: clocks drift, and routes change.
const DRIFT: f64 = 1e-4;

/// A segment that left.
#[derive(Debug, Clone, Copy)]
struct Record {
    /// What answers it: an acknowledgment of this number, or the echo of this timestamp.
    number: u32,
    echo: bool,
    full: bool,
    /// True if nothing can have stood before it.
    alone: bool,
    left: Instant,
    /// What had left by then, with this packet.
    bytes: u64,
}

/// Segments in the order in which they left.
#[derive(Debug, Clone)]
struct Records {
    all: [Record; RECORDS],
    first: usize,
    len: usize,
    /// Segments that leave sooner after the last recorded one are not recorded.
    gap: Span,
}

impl Default for Records {
    fn default() -> Self {
        let none = Record { number: 0, echo: false, full: false, alone: false, left: Instant::ZERO, bytes: 0 };
        Self { all: [none; RECORDS], first: 0, len: 0, gap: Span::ZERO }
    }
}

impl Records {
    fn clear(&mut self) {
        self.len = 0;
    }

    fn at(&self, place: usize) -> &Record {
        &self.all[(self.first + place) % RECORDS]
    }

    fn push(&mut self, record: Record) {
        if self.len > 0 && record.left.since(self.at(self.len - 1).left) < self.gap {
            return;
        }
        if self.len == RECORDS {
            self.thin_out();
        }
        self.all[(self.first + self.len) % RECORDS] = record;
        self.len += 1;
    }

    /// Forgets every second record.
    fn thin_out(&mut self) {
        let span = self.at(self.len - 1).left.since(self.at(0).left);
        self.gap = span.div(RECORDS as u64 / 2);
        for place in 0..RECORDS / 2 {
            let kept = *self.at(2 * place + 1);
            self.all[(self.first + place) % RECORDS] = kept;
        }
        self.len = RECORDS / 2;
    }

    /// Takes out those that a segment answers, from the oldest on; returns the last of them.
    fn answered<S: TcpView>(&mut self, segment: &S) -> Option<Record> {
        let (ack, echo) = (segment.ack(), segment.timestamps().map(|stamps| stamps.ecr));
        let mut last = None;
        while self.len > 0 {
            let first = *self.at(0);
            let proven = if first.echo { echo.filter(|_| segment.payload_len() > 0) } else { Some(ack) };
            if proven.is_none_or(|number| is_before(number, first.number)) {
                break;
            }
            // An echo of a later timestamp was sent for a later segment, which was not recorded.
            last = (!first.echo || proven == Some(first.number)).then_some(first);
            (self.first, self.len) = ((self.first + 1) % RECORDS, self.len - 1);
        }
        if self.len < RECORDS / 4 {
            self.gap = self.gap.div(2);
        }
        last
    }
}

/// The smallest times of a kind of packets, in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
struct Least {
    least: Option<i64>,
    /// In how many steps it was compared with flows that are sure; [`SURE`] for one that is.
    sure: u8,
}

impl Least {
    /// Takes a sample; returns by how much it is above the smallest, which is no more than `most`. The first one has waited for
    /// `queue`; one that was alone has not waited.
    fn above(&mut self, sample: i64, queue: i64, alone: bool, most: i64) -> i64 {
        let least = match self.least {
            None if alone => sample,
            None => sample - queue,
            Some(least) => least.min(sample),
        };
        if alone {
            self.sure = SURE;
        }
        self.least = Some(least);
        sample - least.min(most)
    }

    /// Returns what a packet takes at most whose transmission takes `more`; no bound if nothing is known.
    fn and(&self, more: Option<i64>) -> i64 {
        self.least.zip(more).map_or(i64::MAX, |(least, more)| least.saturating_add(more))
    }

    fn raise(&mut self, by: i64) {
        self.least = self.least.map(|least| least + by);
    }

    /// Takes over what flows that are sure show: by so much more does this one.
    fn agree(&mut self, more: i64) {
        self.raise(more / 4);
        self.sure = (self.sure + 1).min(SURE);
    }
}

/// Nanoseconds of a tick.
const TICK_NS: [i64; 2] = [1_000_000, 1000];

/// The clock of a far end: how late its segments arrive.
#[derive(Debug, Clone, Default)]
struct Clock {
    begun: Option<Instant>,
    newest: u32,
    /// Ticks since the first segment.
    ticks: i64,
    /// Which tick it has; `None` until it shows, or if it is another.
    tick: Option<usize>,
    /// The smallest lateness with each tick, of small and of full packets.
    least: [[Least; 2]; 2],
}

impl Clock {
    /// Takes a segment that arrives; returns by how much it is later than the fastest. `queue` is the queue that stands, `more` what
    /// a full packet takes longer.
    fn late<S: TcpView>(
        &mut self,
        segment: &S,
        full: bool,
        (queue, alone, more): (i64, bool, Option<i64>),
        now: Instant,
    ) -> Option<i64> {
        let val = segment.timestamps()?.val;
        let begun = *self.begun.get_or_insert_with(|| {
            self.newest = val;
            now
        });
        let span = now.since(begun);
        self.ticks += i64::from(val.wrapping_sub(self.newest) as i32);
        self.newest = val;
        if self.tick.is_none() && span >= TICKS {
            let is = |tick: &i64| {
                let told = self.ticks * tick;
                2 * told > span.as_nanos() as i64 && told < 2 * span.as_nanos() as i64
            };
            self.tick = TICK_NS.iter().position(is);
        }
        let mut late = [0; 2];
        for (tick, ns) in TICK_NS.iter().enumerate() {
            let sample = (span.as_nanos() as i64).wrapping_sub(self.ticks.wrapping_mul(*ns));
            let most = if full { self.least[tick][0].and(more.map(|more| more + ns)) } else { i64::MAX };
            late[tick] = self.least[tick][usize::from(full)].above(sample, queue, alone, most);
        }
        self.tick.map(|tick| late[tick])
    }

    fn is_sure(&self, full: bool) -> bool {
        self.tick.is_some_and(|tick| self.least[tick][..=usize::from(full)].iter().any(|least| least.sure == SURE))
    }
}

#[derive(Debug, Clone, Default)]
struct Flow {
    key: u64,
    seen: Instant,
    /// The sequence number after the newest segment that left.
    end: Option<u32>,
    /// The newest timestamp that left.
    val: Option<u32>,
    /// The newest acknowledgment that arrived.
    acked: Option<u32>,
    /// When data arrived last.
    sent: Instant,
    holes: [(u32, u32); HOLES],
    records: Records,
    clock: Clock,
    /// The smallest round trips: of packets that are small or full as they leave, and as they arrive.
    least: [[Least; 2]; 2],
}

/// How a segment stands to those that left before.
#[derive(Debug, PartialEq, Eq)]
enum Leaves {
    New,
    /// It fills a hole, so it leaves for the first time.
    Fills,
    /// It leaves again.
    Again,
}

impl Flow {
    /// Takes the numbers of a segment that leaves.
    fn leaves(&mut self, seq: u32, end: u32) -> Leaves {
        let Some(newest) = self.end else {
            self.end = Some(end);
            return Leaves::New;
        };
        if !is_before(seq, newest) {
            if seq != newest {
                let free = self.holes.iter().position(|(from, to)| from == to).unwrap_or(0);
                self.holes[free] = (newest, seq);
            }
            self.end = Some(end);
            return Leaves::New;
        }
        let hole = self.holes.iter_mut().find(|(from, to)| !is_before(seq, *from) && is_before(seq, *to));
        let Some(hole) = hole else { return Leaves::Again };
        // What comes before it in the hole is thought to have left: fills come in order.
        hole.0 = if is_before(end, hole.1) { end } else { hole.1 };
        Leaves::Fills
    }
}

/// A sample: a packet that left the shaper, and by how much it took longer than the fastest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// The queue, in nanoseconds.
    pub queue: i64,
    /// When the packet left our shaper, or arrived.
    pub at: Instant,
    /// What had left or arrived by then, with this packet, in bytes.
    pub bytes: u64,
}

/// Which smallest time a sample is above of.
#[derive(Debug, Clone, Copy, Default)]
struct Of {
    place: usize,
    out_full: bool,
    in_full: bool,
}

/// The smallest samples of the flows that answered in a step.
#[derive(Debug, Clone)]
struct Round {
    flows: [(Of, Sample, bool); COUNTED],
    len: usize,
}

impl Default for Round {
    fn default() -> Self {
        let none = Sample { queue: 0, at: Instant::ZERO, bytes: 0 };
        Self { flows: [(Of::default(), none, false); COUNTED], len: 0 }
    }
}

impl Round {
    fn add(&mut self, of: Of, sample: Sample, sure: bool) {
        let known = self.flows[..self.len].iter_mut().find(|(flow, ..)| flow.place == of.place);
        match known {
            Some(least) if sample.queue <= least.1.queue => *least = (of, sample, sure),
            Some(_) => {}
            None if self.len < COUNTED => {
                self.flows[self.len] = (of, sample, sure);
                self.len += 1;
            }
            None => {}
        }
    }

    /// Returns the sample of the flow in the middle, the lower one of two, of those that are sure if there are some. Tells the
    /// others by how much they show more.
    fn take(&mut self, mut others: impl FnMut(Of, i64)) -> Option<Sample> {
        let flows = &mut self.flows[..std::mem::take(&mut self.len)];
        flows.sort_unstable_by_key(|(of, sample, sure)| (!sure, sample.queue, of.place));
        let sure = flows.iter().filter(|(.., sure)| *sure).count();
        let middle = if sure > 0 { sure } else { flows.len() }.checked_sub(1)? / 2;
        let found = flows[middle].1;
        if sure > 0 {
            flows[sure..].iter().for_each(|(of, sample, _)| others(*of, sample.queue - found.queue));
        }
        Some(found)
    }
}

/// What was seen of one direction in a step.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Seen {
    /// The queue beyond the shaper; `None` if no connection shows it.
    pub sample: Option<Sample>,
    /// True if the clocks of far ends told the directions apart.
    pub apart: bool,
    /// The smallest round trip of the flows that answered.
    pub trip: Option<Span>,
    /// Bytes that left twice, so that something beyond the shaper lost them.
    pub lost: u64,
}

/// The connections that pass.
#[derive(Debug)]
pub struct Trips {
    places: Box<[Flow]>,
    /// What arrived and what left, in bytes.
    bytes: [u64; 2],
    /// Queues of the way in by clocks, of the way out by the rest, and of both together where clocks tell nothing.
    rounds: [Round; 3],
    standing: [i64; 2],
    /// What may stand before a packet, in bytes, and when that was so.
    before: [(f64, Instant); 2],
    /// Bytes per second that the link carries at least, and what it is thought to carry.
    carries: [[f64; 2]; 2],
    /// What a full packet takes longer than a small one, if the rate of the link is known.
    longer: [Option<i64>; 2],
    /// The smallest round trip of all, in nanoseconds.
    floor: i64,
    trip: Option<Span>,
    lost: u64,
    drifted: Instant,
}

impl Default for Trips {
    fn default() -> Self {
        Self {
            places: vec![Flow::default(); PLACES].into_boxed_slice(),
            bytes: [0; 2],
            rounds: Default::default(),
            standing: [0; 2],
            before: Default::default(),
            carries: [[1.0; 2]; 2],
            longer: [None; 2],
            floor: i64::MAX,
            trip: None,
            lost: 0,
            drifted: Instant::ZERO,
        }
    }
}

impl Trips {
    /// Returns what has passed, in bytes.
    pub fn bytes(&self) -> [u64; 2] {
        self.bytes
    }

    /// Notes what the link is thought to carry in a direction, and whether that was measured.
    pub fn carries(&mut self, way: Way, rate: Rate, measured: bool) {
        let bytes = rate.as_bps() as f64 / 8.0;
        self.carries[way as usize] = [bytes / if measured { 2.0 } else { Known::FACTOR as f64 }, bytes];
        self.longer[way as usize] = measured.then_some((1e9 * PACKET / bytes) as i64);
    }

    /// Shows a packet as it leaves the shaper or arrives from the link.
    pub fn pass<S: TcpView>(&mut self, way: Way, flow: u64, size: Bytes, segment: Option<&S>, now: Instant) {
        self.bytes[way as usize] += size.get();
        let alone = self.is_alone(way, size, now);
        let Some(segment) = segment.filter(|segment| !segment.flags().has(TcpFlags::RST)) else { return };
        let Some(place) = self.place(flow, now) else { return };
        match way {
            Way::Out => self.leaves(place, (size, alone), segment, now),
            Way::In => self.arrives(place, (size, alone), segment, now),
        }
    }

    /// True if nothing can stand before a packet: so little has passed that the link has sent it already.
    fn is_alone(&mut self, way: Way, size: Bytes, now: Instant) -> bool {
        let [least, thought] = self.carries[way as usize];
        let (before, since) = self.before[way as usize];
        let stands = (before - least * now.since(since).as_secs_f64()).max(0.0);
        self.before[way as usize] = ((stands + size.as_f64()).min(COUNTS * thought + size.as_f64()), now);
        stands < ALONE
    }

    fn place(&mut self, key: u64, now: Instant) -> Option<usize> {
        let place = key as usize % PLACES;
        let flow = &mut self.places[place];
        if flow.key != key || flow.seen == Instant::ZERO {
            if flow.seen != Instant::ZERO && now.since(flow.seen) < SILENT {
                return None;
            }
            *flow = Flow { key, ..Flow::default() };
        }
        flow.seen = now.max(Instant::from_nanos(1));
        Some(place)
    }

    fn leaves<S: TcpView>(&mut self, place: usize, (size, alone): (Bytes, bool), segment: &S, now: Instant) {
        let flow = &mut self.places[place];
        let (syn, payload) = (segment.flags().has(TcpFlags::SYN), segment.payload_len());
        let full = size.get() > FULL;
        let bytes = self.bytes[Way::Out as usize];
        if payload > 0 || syn {
            let end = segment.seq().wrapping_add(payload.max(u32::from(syn)));
            match flow.leaves(segment.seq(), end) {
                Leaves::New => {}
                Leaves::Fills => flow.records.clear(),
                Leaves::Again => {
                    self.lost += size.get();
                    return flow.records.clear();
                }
            }
            flow.records.push(Record { number: end, echo: false, full, alone, left: now, bytes });
        } else if let Some(stamps) = segment.timestamps()
            && flow.val.is_none_or(|newest| is_before(newest, stamps.val))
        {
            flow.val = Some(stamps.val);
            flow.records.push(Record { number: stamps.val, echo: true, full, alone, left: now, bytes });
        }
    }

    fn arrives<S: TcpView>(&mut self, place: usize, (size, alone): (Bytes, bool), segment: &S, now: Instant) {
        let (flow, full) = (&mut self.places[place], size.get() > FULL);
        let [more_in, more_out] = self.longer;
        let pause = now.since(flow.sent);
        if segment.payload_len() > 0 {
            flow.sent = now;
        }
        let late = flow.clock.late(segment, full, (self.standing[Way::In as usize], alone, more_in), now);
        if let Some(queue) = late {
            let sure = flow.clock.is_sure(full);
            let sample = Sample { queue, at: now, bytes: self.bytes[Way::In as usize] };
            self.rounds[Way::In as usize].add(Of { place, in_full: full, out_full: false }, sample, sure);
        }
        if !segment.flags().has(TcpFlags::ACK) {
            return;
        }
        let step = flow.acked.map_or(u32::MAX, |acked| segment.ack().wrapping_sub(acked));
        flow.acked = Some(segment.ack());
        let Some(record) = flow.records.answered(segment) else { return };
        let trip = now.since(record.left);
        let standing: i64 = self.standing.iter().sum();
        // A full packet takes its own transmission longer than a small one, so the handshake tells what it takes at most.
        let of = |is: bool, more: Option<i64>| if is { more } else { Some(0) };
        let more = of(record.full, more_out).zip(of(full, more_in)).map(|(out, inward)| out + inward);
        let small = flow.least[0][0];
        let least = &mut flow.least[usize::from(record.full)][usize::from(full)];
        let alone = record.alone && alone && !record.echo;
        let ns = trip.as_nanos() as i64;
        self.floor = self.floor.min(ns);
        let above = least.above(ns, standing.min(ns - self.floor), alone, small.and(more));
        if record.echo && 4 * pause.as_nanos() > 3 * trip.as_nanos() {
            return; // the far end had nothing to send
        }
        self.trip = Some(self.trip.map_or(trip, |before| before.min(trip)));
        let mut queue = (above - late.unwrap_or(0)).max(0);
        // An acknowledgment of a single segment may have been held back: what fits the queue that stands counts.
        let fits = self.standing[Way::Out as usize];
        if !record.echo && step <= SINGLE && (queue - DELAYED - fits).abs() < (queue - fits).abs() {
            queue = (queue - DELAYED).max(0);
        }
        let round = if late.is_some() { Way::Out as usize } else { 2 };
        let of = Of { place, out_full: record.full, in_full: full };
        let sure = (least.sure == SURE || small.sure == SURE && more.is_some())
            && (late.is_none() || flow.clock.is_sure(full));
        self.rounds[round].add(of, Sample { queue, at: record.left, bytes: record.bytes }, sure);
    }

    /// Returns what was seen since the last call, in the order of [`Way`]. `loaded` says which directions may have a queue, if
    /// clocks do not tell.
    pub fn take(&mut self, loaded: [bool; 2], now: Instant) -> [Seen; 2] {
        self.drift(now);
        let places = &mut self.places;
        let [inward, outward, both] = &mut self.rounds;
        let inward = inward.take(|of, more| {
            let clock = &mut places[of.place].clock;
            let tick = clock.tick.unwrap_or_default();
            clock.least[tick][usize::from(of.in_full)].agree(more);
        });
        let mut agree = |of: Of, more: i64| {
            places[of.place].least[usize::from(of.out_full)][usize::from(of.in_full)].agree(more);
        };
        let (outward, both) = (outward.take(&mut agree), both.take(&mut agree));
        let (trip, lost) = (self.trip.take(), std::mem::take(&mut self.lost));
        let arrived = Sample { queue: 0, at: now, bytes: self.bytes[Way::In as usize] };
        let of = |apart: Option<Sample>, way: Way| {
            let sample = apart.or(both.map(|both| {
                let queue = if loaded[way as usize] { both.queue } else { 0 };
                if way == Way::In { Sample { queue, ..arrived } } else { Sample { queue, ..both } }
            }));
            Seen { sample, apart: apart.is_some(), trip, lost: if way == Way::Out { lost } else { 0 } }
        };
        let seen = [of(inward, Way::In), of(outward, Way::Out)];
        for (standing, seen) in self.standing.iter_mut().zip(&seen) {
            *standing = seen.sample.map_or(*standing, |sample| sample.queue.max(0));
        }
        seen
    }

    /// Notes that what stood for a queue is the path, which has become longer by `by`.
    pub fn longer(&mut self, way: Way, by: Span) {
        let by = by.as_nanos() as i64;
        for flow in &mut self.places {
            flow.least.as_flattened_mut().iter_mut().for_each(|least| least.raise(by));
            if way == Way::In {
                flow.clock.least.as_flattened_mut().iter_mut().for_each(|least| least.raise(by));
            }
        }
        self.standing[way as usize] = (self.standing[way as usize] - by).max(0);
    }

    fn drift(&mut self, now: Instant) {
        let span = now.since(self.drifted);
        if span < Span::from_secs(1) {
            return;
        }
        self.drifted = now;
        let by = (span.as_nanos() as f64 * DRIFT) as i64;
        self.floor = self.floor.saturating_add(by);
        for flow in self.places.iter_mut().filter(|flow| now.since(flow.seen) < SILENT) {
            flow.least.as_flattened_mut().iter_mut().for_each(|least| least.raise(by));
            flow.clock.least.as_flattened_mut().iter_mut().for_each(|least| least.raise(by));
        }
    }
}

/// Returns true if `a` is before `b` in a number space that wraps around (RFC 9293 §3.4, RFC 7323 §5.2).
fn is_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

#[cfg(test)]
mod tests;
