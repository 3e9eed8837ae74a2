//! The rate of one direction: the capacity of the link, less what brings the queue beyond the shaper to a small target.
//!
//! With R the shaper's rate, C the link's, m what it is thought to be, q the queue beyond, P the time of a full packet at m:
//!
//! - (1) delivered d = (b2 - b1) / (e2 - e1): bytes between two packets by the time between their ends at the link. For a packet
//!   that left our shaper at l and waited for q, e = l + q; for one that arrived, e is its arrival. So our own spacing is none
//!   of the link's.
//! - (2) d = C while the link is busy, which is while q >= q0 / 3 in all samples between. Then m = d if d > m, or if q has
//!   changed by more than `MOVES` meanwhile: within `NOISE` as a mean over `MEAN`, and at once beyond. Otherwise d is no
//!   more than what we let out, and m = max(m, d). A queue that does not move may be none, and then d is what we let out; so it
//!   never lowers m.
//! - (3) target q0 = `TARGET` + P / 2. With it the link is busy, so that (2) measures it all the time.
//! - (4) R = m (1 + (q0 - q) / T), the rate that brings q to q0 within T (ABC, eq. 1). q is predicted. For uploads it is what has
//!   left since, q + (B - b) / m - (now - l). For downloads it is q less what our shaper has sent on below m in the last round
//!   trip, as senders answer to that. What the shaper's discipline drops comes in besides what it sends on; so R is divided by
//!   the quotient of both, as the keyword `ingress` of CAKE counts drops.
//! - (5) While q < q0 / 2 and our shaper is occupied, R = m (1 + g). g doubles with each round trip, from q0 / T to `FASTEST`:
//!   a link that is faster than m is found within a bounded number of round trips. Before the first full link, g is `START`.
//!   While nobody answers, R <= m.
//! - (6) Uploads: `CYCLE` after a queue was seen the target is below zero for a moment, so that the smallest times are seen again.
//!   Downloads come in bursts, which wait before the link whatever we do; so after a queue was seen R <= `CRUISE` m, but for a probe
//!   now and then. Until a queue shows, R stays above m while the shaper is occupied for half of the time: senders grow slowly.
//! - (7) A queue that does not fall while we send less is none: the path has become longer, or the smallest time was wrong. By so
//!   much it would have fallen: the time less what we sent by the rate that passed before. Then m is what it was before, and the
//!   smallest times grow by q. A queue at the target must fall as well while (6) sends less.
//!
//! Without traffic nothing is learned, and nothing changes.

use super::trips::Sample;
use super::{Known, Way};
use crate::units::{Instant, Rate, Span};

/// Seconds of the target of the queue beyond the shaper, besides half a packet.
const TARGET: f64 = 0.003;
/// Seconds within which the queue is brought to the target: half of those of downloads.
const HORIZON: f64 = 0.2;
/// The rate is at least this part of the capacity, and above it by at most this part, to reach the target.
const LEAST: f64 = 0.3;
const MORE: f64 = 0.03;
/// Shortest time in seconds over which delivery is measured, and packets that it has at least.
const WINDOW: f64 = 0.2;
const PACKETS: f64 = 16.0;
/// The same while a queue is longer than the target by [`MUCH`] seconds, or before the first full link.
const SHORT: f64 = 0.1;
const FEW: f64 = 6.0;
const MUCH: f64 = 0.02;
/// A queue that grows slowly shows over so many windows.
const LONG: f64 = 4.0;
/// What is delivered differs by this part without a change of the link.
const NOISE: f64 = 0.1;
/// Seconds of the mean of what is delivered.
const MEAN: f64 = 0.5;
/// Our shaper holds traffic back from this part of the time on, as a mean over these seconds.
const OCCUPIED: f64 = 0.85;
const OCCUPIED_MEAN: f64 = 0.1;
/// g is at most this, and this before the first full link.
const FASTEST: f64 = 0.5;
const START: f64 = 1.0;
/// Seconds without an answer, besides two round trips and [`PACKETS`], after which the rate is no more than the capacity.
const SILENT: f64 = 0.1;
/// Seconds between two drains, and round trips at least.
const CYCLE: f64 = 4.0;
const TRIPS: f64 = 16.0;
/// Seconds in which downloads are sent on a little slower.
const CRUISES: f64 = 2.0;
/// Seconds of a drain besides a round trip, and those below zero at which it aims, besides packets.
const DRAIN: f64 = 0.15;
const DRAINED: f64 = 0.008;
const DRAINED_PACKETS: f64 = 3.0;
/// Seconds of a probe of downloads, besides two round trips. One that finds so much more goes on.
const PROBE: f64 = 0.3;
const FOUND: f64 = 1.02;
/// Between probes downloads are sent on with this part of the capacity, and the target of their queue is this part of q0.
const CRUISE: f64 = 0.97;
const CRUISE_TARGET: f64 = 0.5;
/// Seconds of the means of what arrives and of what is sent on, and the largest quotient of them.
const SHARES: f64 = 3.0;
const MOST_WASTED: f64 = 1.5;
/// Seconds by which a queue changes if it is one, and the part of it.
const MOVES: f64 = 0.002;
const FLAT: f64 = 0.03;
/// A test takes these seconds at least, the queue must fall by these, and what we send is less by this part.
const LEAST_TEST: f64 = 0.25;
const LEAST_FALL: f64 = 0.008;
const LESS: f64 = 0.05;
/// A path does not become longer by more than these seconds at once, and half of what it takes.
const MOST_LONGER: f64 = 0.06;
/// Steps in which a queue begins to show.
const BEFORE: usize = 20;
/// Bytes of a full packet.
const PACKET: f64 = 1514.0;
/// Samples whose smallest one stands.
const STANDS: usize = 3;
/// Samples and steps that are kept.
const MARKS: usize = 64;
const PASTS: usize = 64;

/// A sample that was taken: when its packet ended at the link, in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
struct Mark {
    end: i64,
    bytes: u64,
    queue: f64,
    left: Instant,
}

/// What held after a step.
#[derive(Debug, Clone, Copy, Default)]
struct Past {
    at: Instant,
    /// By how many seconds of the capacity our shaper had sent less than it.
    held: f64,
    /// What it had sent.
    bits: f64,
    capacity: f64,
}

/// A test whether a queue is one.
#[derive(Debug, Clone, Copy)]
struct Test {
    at: Instant,
    bits: f64,
    /// What was thought before, and what passed, in bit/s.
    capacity: f64,
    passes: f64,
    /// Smallest and largest queue since.
    queues: [f64; 2],
}

/// What the shaper is to find out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Whether the link is faster.
    Probe,
    /// Nothing: downloads are sent on a little slower than the link, because bursts of senders wait before it.
    Cruise,
    /// What round trips take without a queue.
    Drain,
}

/// What was delivered in a time.
#[derive(Debug, Clone, Copy)]
struct Delivered {
    /// In bit/s.
    rate: f64,
    /// The smallest queue meanwhile, in seconds, and by how much it grew.
    least: f64,
    moved: f64,
}

impl Delivered {
    /// True if the link was busy all the time.
    fn is_busy(&self, target: f64) -> bool {
        self.least >= target / 3.0
    }

    /// True if it is the rate of the link, and not that with which we sent while something else than a queue took time.
    fn tells(&self, capacity: f64) -> bool {
        self.rate > capacity || self.moved.abs() > MOVES
    }
}

/// What was seen in a step.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    /// When it ends.
    pub now: Instant,
    /// Its length.
    pub span: Span,
    /// The queue beyond the shaper, if a connection shows it.
    pub sample: Option<Sample>,
    /// The part of the step in which our shaper transmitted.
    pub busy: f64,
    /// What has passed since the run began.
    pub bytes: u64,
    /// The smallest round trip of the connections that answered.
    pub trip: Option<Span>,
}

/// The law of one direction.
#[derive(Debug)]
pub struct Govern {
    way: Way,
    bounds: [f64; 2],
    /// R, in bit/s.
    rate: f64,
    /// m, in bit/s.
    capacity: f64,
    measured: bool,
    occupied: f64,
    trip: f64,
    newest_trip: f64,
    answered: Instant,
    marks: [Mark; MARKS],
    count: usize,
    /// g, and when it doubles next.
    growth: f64,
    doubles: Instant,
    phase: Phase,
    /// True once a queue was seen in this phase.
    filled: bool,
    /// Means of the bits of a step that passed, and of those that our shaper sent.
    shares: [f64; 2],
    /// Mean of what our shaper sends, in bit/s.
    passes: f64,
    bytes: u64,
    /// When the phase began, and what the capacity was.
    since: Instant,
    before: f64,
    test: Option<Test>,
    /// What held after each of the last steps.
    past: [Past; PASTS],
    steps: usize,
    /// Mean length of a step, in seconds.
    pace: f64,
}

impl Govern {
    /// Begins with the first rate.
    pub fn new(way: Way, known: &Known) -> Self {
        let bps = |rate: Rate| rate.as_bps() as f64;
        Self {
            way,
            bounds: [bps(known.lowest), bps(known.highest)],
            rate: bps(known.first),
            capacity: bps(known.first),
            measured: false,
            occupied: 0.0,
            trip: 0.1,
            newest_trip: 0.1,
            answered: Instant::ZERO,
            marks: [Mark::default(); MARKS],
            count: 0,
            growth: START,
            doubles: Instant::ZERO,
            shares: [0.0; 2],
            passes: 0.0,
            bytes: 0,
            phase: Phase::Probe,
            filled: false,
            since: Instant::ZERO,
            before: bps(known.first),
            test: None,
            past: [Past::default(); PASTS],
            steps: 0,
            pace: 0.025,
        }
    }

    /// Returns the rate for the shaper.
    pub fn rate(&self) -> Rate {
        Rate::from_bps(self.rate as u64)
    }

    /// Returns what the link is thought to carry.
    pub fn capacity(&self) -> Rate {
        Rate::from_bps(self.capacity as u64)
    }

    /// True once a full link was seen.
    pub fn measured(&self) -> bool {
        self.measured
    }

    /// Takes a step. Returns by how much the path has become longer, if it has.
    pub fn step(&mut self, step: &Step) -> Option<Span> {
        let dt = step.span.as_secs_f64();
        self.account(step, dt);
        let taken = step.sample.is_some_and(|sample| self.mark(&sample));
        if !taken {
            if step.now.since(self.answered).as_secs_f64() > 2.0 * self.trip + SILENT + PACKETS * self.packet() {
                self.rate = self.rate.min(self.capacity);
            }
            return None;
        }
        self.answered = step.now;
        self.learn(dt);
        let longer = self.check(step.now);
        self.govern(step);
        longer
    }

    /// Counts what has passed and what we have sent on.
    fn account(&mut self, step: &Step, dt: f64) {
        self.occupied += (step.busy - self.occupied) * dt / (dt + OCCUPIED_MEAN);
        self.pace += (dt - self.pace) / 16.0;
        let kept = dt / (dt + SHARES);
        let passed = 8.0 * (step.bytes - self.bytes) as f64;
        self.bytes = step.bytes;
        self.shares[0] += (passed - self.shares[0]) * kept;
        self.shares[1] += (step.busy * self.rate * dt - self.shares[1]) * kept;
        let less = dt * (1.0 - (step.busy * self.rate * self.wasted() / self.capacity).min(2.0));
        let sent = if self.way == Way::In { step.busy * self.rate * self.wasted() * dt } else { passed };
        self.passes += (sent / dt.max(1e-9) - self.passes) * dt / (dt + MEAN);
        let Past { held, bits, .. } = self.past[(self.steps + PASTS - 1) % PASTS];
        self.past[self.steps % PASTS] =
            Past { at: step.now, held: held + less, bits: bits + sent, capacity: self.capacity };
        self.steps += 1;
        if let Some(trip) = step.trip {
            self.newest_trip = trip.as_secs_f64();
            self.trip += (trip.as_secs_f64() - self.trip) * dt / (dt + 1.0);
        }
    }

    fn nth(&self, back: usize) -> &Mark {
        &self.marks[(self.count - 1 - back) % MARKS]
    }

    fn known(&self) -> usize {
        self.count.min(MARKS)
    }

    /// Notes a sample; returns false for one that is older than the last.
    fn mark(&mut self, sample: &Sample) -> bool {
        let waits = if self.way == Way::Out { sample.queue } else { 0 };
        let end = sample.at.as_nanos() as i64 + waits;
        if self.count > 0 && (end <= self.nth(0).end || sample.bytes <= self.nth(0).bytes) {
            return false;
        }
        let queue = sample.queue as f64 / 1e9;
        self.marks[self.count % MARKS] = Mark { end, bytes: sample.bytes, queue, left: sample.at };
        self.count += 1;
        true
    }

    /// Returns the time of a full packet at the capacity, in seconds.
    fn packet(&self) -> f64 {
        8.0 * PACKET / self.capacity
    }

    /// Equation (3).
    fn target(&self) -> f64 {
        TARGET + self.packet() / 2.0
    }

    /// Returns the queue that stands: the smallest of the last samples.
    fn standing(&self) -> f64 {
        (0..self.known().min(STANDS)).map(|back| self.nth(back).queue).fold(f64::MAX, f64::min)
    }

    /// Returns what was delivered in at least `window` seconds. It is no more than what we let out, if there was a time in which
    /// the queue was below `idle`.
    fn delivered(&self, window: f64, idle: f64) -> Option<Delivered> {
        let newest = *self.nth(0);
        let mut least = newest.queue;
        for back in 1..self.known() {
            let mark = self.nth(back);
            least = least.min(mark.queue);
            let span = (newest.end - mark.end) as f64 / 1e9;
            if span >= window {
                let ours = newest.left.since(mark.left).as_secs_f64();
                let span = if least < idle { span.max(ours) } else { span };
                let rate = 8.0 * (newest.bytes - mark.bytes) as f64 / span;
                return Some(Delivered { rate, least, moved: newest.queue - mark.queue });
            }
        }
        None
    }

    /// Equation (2).
    fn learn(&mut self, dt: f64) {
        let (target, packet) = (self.target(), self.packet());
        let long = self.standing() > target + MUCH + packet;
        let (window, packets) = if long || !self.measured { (SHORT, FEW) } else { (WINDOW, PACKETS) };
        let Some(found) = self.delivered(window.max(packets * packet), target / 3.0) else { return };
        if found.least < target / 3.0 {
            self.capacity = self.capacity.max(found.rate);
            return;
        }
        // A queue that grows slowly shows over a longer time.
        let slow =
            || self.delivered(LONG * window.max(packets * packet), target / 3.0).filter(|slow| slow.is_busy(target));
        let found =
            if found.tells(self.capacity) { Some(found) } else { slow().filter(|slow| slow.tells(self.capacity)) };
        if let Some(found) = found {
            self.measured = true;
            let part = if (found.rate / self.capacity - 1.0).abs() > NOISE { 1.0 } else { dt / (dt + MEAN) };
            self.capacity += (found.rate - self.capacity) * part;
        }
        self.capacity = self.capacity.clamp(self.bounds[0], self.bounds[1]);
    }

    /// Equation (7).
    fn check(&mut self, now: Instant) -> Option<Span> {
        let (queue, least) = (self.nth(0).queue, self.standing());
        // While less is sent on purpose a queue at the target must fall as well.
        let less = self.phase != Phase::Probe || now.since(self.since).as_secs_f64() < self.trip + SHORT;
        if least <= if less { MOVES } else { self.target() + MOVES } {
            self.test = None;
            return None;
        }
        let felt = self.past((self.newest_trip / self.pace) as usize);
        let test = self.test.unwrap_or_else(|| {
            let (capacity, passes) = (self.before(), self.passes.max(1.0));
            Test { at: felt.at, bits: felt.bits, capacity, passes, queues: [queue; 2] }
        });
        let queues = [test.queues[0].min(queue), test.queues[1].max(queue)];
        let moves = queues[1] - queues[0];
        if moves > MOVES + FLAT * queue {
            self.test = Some(Test { at: felt.at, bits: felt.bits, queues: [queue; 2], ..test });
            return None;
        }
        self.test = Some(Test { queues, ..test });
        // By so much a queue would have become shorter.
        let span = felt.at.since(test.at).as_secs_f64();
        let fall = span - (felt.bits - test.bits) / test.passes;
        let enough = queues[1].max(3.0 * moves).max(LEAST_FALL) + 2.0 * self.packet();
        let (shortest, part) = if less { (LEAST_TEST / 2.0, LESS / 5.0) } else { (LEAST_TEST, LESS) };
        if span < shortest || fall < enough.max(part * span) || queues[0] > MOST_LONGER + self.newest_trip / 2.0 {
            return None;
        }
        (self.capacity, self.rate) = (test.capacity, test.capacity);
        self.test = None;
        self.marks.iter_mut().for_each(|mark| mark.queue = (mark.queue - queues[0]).max(0.0));
        if self.way == Way::Out {
            self.count = 0;
        }
        Some(Span::from_secs_f64(queues[0]))
    }

    /// Returns what the capacity was thought to be before a queue began to show.
    fn before(&self) -> f64 {
        (0..self.steps.min(BEFORE)).map(|back| self.past(back).capacity).fold(self.capacity, f64::max)
    }

    fn past(&self, back: usize) -> Past {
        self.past[(self.steps + PASTS - 1 - back.min(self.steps.min(PASTS) - 1)) % PASTS]
    }

    /// Returns by how many seconds of the capacity we had sent less than it, so long ago.
    fn held(&self, ago: f64) -> f64 {
        self.past((ago / self.pace) as usize).held
    }

    /// Equations (4) to (6).
    fn govern(&mut self, step: &Step) {
        if self.count == 0 {
            return;
        }
        let (target, standing) = (self.target(), self.standing());
        self.turn(step.now);
        let horizon = if self.way == Way::In { 2.0 * HORIZON } else { HORIZON };
        let (wanted, most, horizon) = match (self.phase, self.way) {
            // What is felt of a drain is its length, so that of a long path is gentle.
            (Phase::Drain, _) => (-DRAINED - DRAINED_PACKETS * self.packet(), 1.0, horizon.max(DRAIN + self.trip)),
            (Phase::Cruise, Way::In) => (target * CRUISE_TARGET, CRUISE, horizon),
            _ => (target, 1.0 + MORE, horizon),
        };
        if standing < target / 2.0 && self.phase == Phase::Probe {
            self.grow(step.now, (target / HORIZON).min(MORE));
        } else {
            if standing >= target / 2.0 {
                self.growth = 0.0;
                if !std::mem::replace(&mut self.filled, true) && self.phase == Phase::Probe {
                    (self.since, self.before) = (step.now, self.capacity);
                }
            }
            let part = 1.0 + (wanted - self.predicted(step)) / horizon;
            self.rate = self.capacity * part.clamp(LEAST, most) / self.wasted();
        }
        self.rate = self.rate.clamp(self.bounds[0], self.bounds[1]);
    }

    /// Returns what arrives as a multiple of what we send on: the shaper's discipline drops a part of it.
    fn wasted(&self) -> f64 {
        let [passed, sent] = self.shares;
        if self.way == Way::In && sent > 0.0 { (passed / sent).clamp(1.0, MOST_WASTED) } else { 1.0 }
    }

    /// Goes on to the next phase, when it is time.
    fn turn(&mut self, now: Instant) {
        // Until a queue shows there is nothing to drain, and senders may need longer to fill the link.
        if self.phase == Phase::Probe && !self.filled {
            return;
        }
        let lasts = match (self.phase, self.way) {
            (Phase::Drain, _) => DRAIN + self.trip,
            (Phase::Probe, Way::In) => PROBE + 2.0 * self.trip,
            (Phase::Probe, Way::Out) => CYCLE.max(TRIPS * self.trip),
            (Phase::Cruise, _) => CRUISES,
        };
        if now.since(self.since).as_secs_f64() < lasts {
            return;
        }
        let found = self.capacity > FOUND * self.before;
        (self.since, self.before, self.filled) = (now, self.capacity, false);
        self.phase = match (self.phase, self.way) {
            (Phase::Probe, Way::In) if found => Phase::Probe,
            (Phase::Probe, Way::In) => Phase::Cruise,
            (Phase::Probe, Way::Out) => Phase::Drain,
            (Phase::Drain | Phase::Cruise, _) => Phase::Probe,
        };
    }

    fn grow(&mut self, now: Instant, slowest: f64) {
        if self.occupied < OCCUPIED {
            self.rate = if self.occupied < OCCUPIED / 2.0 { self.capacity } else { self.rate.max(self.capacity) };
            return;
        }
        if now >= self.doubles {
            let most = if self.measured { FASTEST } else { START };
            self.growth = (2.0 * self.growth).clamp(slowest, most);
            self.doubles = now + Span::from_secs_f64(self.trip + WINDOW / 2.0);
        }
        self.rate = self.capacity * (1.0 + self.growth) / self.wasted();
    }

    fn predicted(&self, step: &Step) -> f64 {
        let mark = self.nth(0);
        if self.way == Way::In {
            return (self.standing() - self.held_back()).max(0.0);
        }
        let after = 8.0 * (step.bytes - mark.bytes) as f64 / self.capacity;
        (mark.queue + after - step.now.since(mark.left).as_secs_f64()).max(0.0)
    }

    /// Returns the queue that is not there yet: by what we have sent on less than the capacity in the last round trip, which is
    /// what is sent to us in the next one.
    fn held_back(&self) -> f64 {
        self.held(0.0) - self.held(self.newest_trip)
    }
}

#[cfg(test)]
mod tests;
