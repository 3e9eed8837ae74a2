//! CHOKe: an arrival is compared with a packet drawn from the queue; if both are of one flow, both are dropped.
//!
//! Source: Pan, Prabhakar, Psounis, "CHOKe, a stateless active queue management scheme for approximating fair bandwidth
//! allocation", INFOCOM 2000, §II. A flow that fills the queue is drawn often: if a part h of the queue is its own,
//! each of its arrivals is dropped with probability h, together with another of its packets. No state per flow is kept.
//!
//! ```text
//! avg as in RED
//! avg <= min         admit
//! else               draw one packet; of the same flow: drop both
//!                    else as RED does: drop or mark with pa below max, drop above
//! ```
//!
//! CHOKe is a discipline that owns its queue, unlike most of `aqm/`, because it removes packets from the middle of the
//! queue. [`Red`] is that of `red.rs`. The draw is uniform over the waiting packets, since `choke/line.rs` keeps them
//! in an array without holes.
//!
//! One random number is drawn to choose a packet if avg > min and a packet waits; then those of RED, unless both
//! packets were dropped. The arrival's fate is `drop_early`, the fate of the packet drawn is `drop_dequeue`. Defaults
//! are those of the paper's simulations, at 1 Mbit/s with a limit of 300 packets. Cost: O(1).
//!
//! With `ecn`, RED marks where it would drop below max; two packets of one flow are dropped nevertheless, as in Linux.
//!
//! DIFFERENCE: the paper also describes drawing several packets; here one is drawn. A match does not change RED's count
//! of packets since the last drop, as in Linux. Pinned by `a_match_is_no_drop_of_red`.

use super::Meta;
use super::red::{self, Red};
use crate::ack_path::AckPath;
use crate::config::{AqmConfig, ConfigError, Discipline, LinkFacts};
use crate::fact::Fact;
use crate::judge::Aqm;
use crate::packet::Packet;
use crate::qdisc::{Backlog, DropReason, Enqueued, PacketObserver, Qdisc, Stats, Verdict};
use crate::rng::Rng;
use crate::units::{Bytes, Instant, Limit, Span};
use line::Line;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod line;

/// Parameters of CHOKe. Defaults are those of the paper's simulations (§III).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Average queue above which arrivals are compared with packets of the queue (§III: 100 packets).
    pub min_threshold: Limit,
    /// Average queue above which every arrival is dropped (§III: 200 packets).
    pub max_threshold: Limit,
    /// RED's probability at max_threshold, max_p (§III: 0.02).
    pub max_probability: f64,
    /// Weight of the newest queue length in the average (§III: 0.002).
    pub weight: f64,
    /// Mean packet size: converts thresholds in bytes, and gives the time unit of idle compensation.
    pub mean_packet: Bytes,
    /// Let RED's probability rise to 1 between max_threshold and twice that.
    pub gentle: bool,
    /// Mark ECN-capable packets where RED would drop them below max_threshold.
    pub ecn: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            min_threshold: Limit::Packets(100),
            max_threshold: Limit::Packets(200),
            max_probability: 0.02,
            weight: 0.002,
            mean_packet: Bytes::new(1000),
            gentle: false,
            ecn: false,
        }
    }
}

impl Config {
    fn red(&self) -> red::Config {
        red::Config {
            min_threshold: self.min_threshold,
            max_threshold: self.max_threshold,
            max_probability: self.max_probability,
            weight: self.weight,
            mean_packet: self.mean_packet,
            gentle: self.gentle,
            ecn: self.ecn,
            ..red::Config::default()
        }
    }
}

impl Discipline for Config {
    type Queue<P: Packet> = Choke<P>;

    fn validate(&self) -> Result<(), ConfigError> {
        AqmConfig::validate(&self.red())
    }

    fn build<P: Packet>(&self, link: &LinkFacts) -> Choke<P> {
        Choke::new(self, link)
    }
}

/// The queue with its packets, and the RED that judges arrivals.
#[derive(Debug, Clone)]
pub struct Choke<P> {
    line: Line<P>,
    limit: Limit,
    backlog: Backlog,
    stats: Stats,
    red: Red,
}

impl<P: Packet> Choke<P> {
    /// Creates an empty, idle queue.
    pub fn new(config: &Config, link: &LinkFacts) -> Self {
        Self {
            line: Line::new(),
            limit: link.limit,
            backlog: Backlog::default(),
            stats: Stats::default(),
            red: Red::new(&config.red(), link),
        }
    }

    /// Returns RED's average of the queue, in packets.
    pub fn average(&self) -> f64 {
        self.red.average()
    }

    fn has_room(&self, size: Bytes) -> bool {
        self.backlog.has_room(size, self.limit) && !self.line.is_full()
    }

    fn drop<O: PacketObserver<P>>(
        &mut self,
        packet: P,
        reason: DropReason,
        now: Instant,
        observer: &mut O,
    ) -> Enqueued {
        self.stats.count_drop(reason, packet.size());
        observer.dropped(packet, reason, now);
        Enqueued::Dropped(reason)
    }

    /// Draws a packet from the queue; if it is of the flow of `packet`, removes and returns it.
    #[inline]
    fn take_match(&mut self, packet: &P, rng: &mut Rng) -> Option<P> {
        if self.red.is_calm() || self.line.len() == 0 {
            return None;
        }
        let place = rng.below(self.line.len() as u64) as usize;
        let drawn = self.line.get(place)?;
        if drawn.flow() != packet.flow() {
            return None;
        }
        let drawn = self.line.remove(place)?;
        self.backlog.remove(drawn.size());
        Some(drawn)
    }

    /// Tells RED that a packet left the queue or was refused, so that an empty queue counts as idle.
    #[inline]
    fn note_departure(&mut self, packet: &Meta, now: Instant, rng: &mut Rng) {
        // RED passes every departure; it only notes since when the queue is empty.
        let _ = self.red.on_dequeue(packet, Span::ZERO, self.backlog, now, rng);
    }
}

impl<P: Packet> Qdisc<P> for Choke<P> {
    fn enqueue<O: PacketObserver<P>>(
        &mut self,
        mut packet: P,
        now: Instant,
        rng: &mut Rng,
        observer: &mut O,
    ) -> Enqueued {
        let meta = Meta::of(&packet);
        self.stats.arrived.add(meta.size);
        self.red.observe(self.backlog, now);
        // §II: two packets of one flow are both dropped.
        if let Some(drawn) = self.take_match(&packet, rng) {
            self.note_departure(&Meta::of(&drawn), now, rng);
            self.drop(drawn, DropReason::Dequeue, now, observer);
            return self.drop(packet, DropReason::Early, now, observer);
        }
        let verdict = self.red.judge(&meta, rng);
        if verdict == Verdict::Drop {
            self.stats.count_forced(self.red.was_forced(), meta.size);
            self.note_departure(&meta, now, rng);
            return self.drop(packet, DropReason::Early, now, observer);
        }
        if !self.has_room(meta.size) {
            self.red.on_overflow(now);
            return self.drop(packet, DropReason::Overflow, now, observer);
        }
        if verdict == Verdict::Mark {
            packet.mark_ce();
            self.stats.marked.add(meta.size);
            observer.marked(&packet, now);
        }
        self.backlog.add(meta.size);
        self.line.push_back(packet);
        Enqueued::Queued
    }

    #[inline]
    fn dequeue<O: PacketObserver<P>>(&mut self, now: Instant, rng: &mut Rng, _: &mut O) -> Option<P> {
        let packet = self.line.pop_front()?;
        let meta = Meta::of(&packet);
        self.backlog.remove(meta.size);
        self.note_departure(&meta, now, rng);
        self.stats.sent.add(meta.size);
        Some(packet)
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn stats(&self) -> &Stats {
        &self.stats
    }

    fn on_fact(&mut self, _: &Fact, _: Instant) {}
}

impl<P> AckPath for Choke<P> {}

#[cfg(test)]
mod tests;
