//! CHOKe: an arrival is compared with a packet drawn from the queue; if both are of one flow, both die.
//!
//! Source: Pan, Prabhakar, Psounis, "CHOKe, a stateless active queue management scheme for approximating fair bandwidth
//! allocation", INFOCOM 2000, §II. A flow that fills the queue is drawn often: with a share h of the queue, each of its
//! arrivals dies with probability h and takes another of its packets along. No state per flow is kept.
//!
//! ```text
//! avg as in RED
//! avg <= min         admit
//! else               draw one packet; of the same flow: drop both
//!                    else as RED does: drop or mark with pa below max, drop above
//! ```
//!
//! It owns its queue: others in `aqm/` judge packets they are shown, this one takes packets out of the middle. [`Red`] is
//! the one of `red.rs`. The draw is uniform over what waits, since `choke/line.rs` keeps packets without holes.
//!
//! One random number for a draw, where avg > min and a packet waits; then those of RED, unless both packets died. The
//! arrival's fate is `drop_early`, that of the packet drawn `drop_dequeue`. Defaults are those of the paper's simulations,
//! at 1 Mbit/s with a limit of 300 packets. Cost: O(1).
//!
//! With `ecn`, RED marks where it would drop below max; two packets of one flow die all the same, as in Linux.
//!
//! DIFFERENCE: the paper describes drawing several packets as well; here it is one. A match leaves RED's count of packets
//! since the last drop alone, as in Linux. Pinned by `a_match_is_no_drop_of_red`.

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

/// Parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Average queue above which packets are compared (§III: 100 packets).
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
    /// Mark ECN-capable packets instead of RED's drops below max_threshold.
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

/// The discipline.
#[derive(Debug, Clone)]
pub struct Choke<P> {
    line: Line<P>,
    limit: Limit,
    backlog: Backlog,
    stats: Stats,
    red: Red,
}

impl<P: Packet> Choke<P> {
    /// An empty, idle queue.
    pub fn new(config: &Config, link: &LinkFacts) -> Self {
        Self {
            line: Line::new(),
            limit: link.limit,
            backlog: Backlog::default(),
            stats: Stats::default(),
            red: Red::new(&config.red(), link),
        }
    }

    /// The average queue.
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

    /// A packet of the same flow, drawn and taken from the queue.
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

    /// Tells RED that a packet left, or that the queue is as empty as before.
    #[inline]
    fn note_departure(&mut self, packet: &Meta, now: Instant, rng: &mut Rng) {
        // RED passes every departure; it only wants to know since when the queue is empty.
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
        if let Some(drawn) = self.take_match(&packet, rng) {
            self.note_departure(&Meta::of(&drawn), now, rng);
            self.drop(drawn, DropReason::Dequeue, now, observer);
            return self.drop(packet, DropReason::Early, now, observer);
        }
        let verdict = self.red.judge(&meta, rng);
        if verdict == Verdict::Drop {
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
