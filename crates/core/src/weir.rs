//! WEIR: one discipline without parameters. Hosts first and their connections second, receive windows for TCP, and fair
//! queues with an AQM for all else.
//!
//! Source: this project. Its parts are PINK (document 000) with shares among hosts (`pink/hosts.rs`), turns after DRR++
//! (RFC 8290 §4.2) whose members keep what they are owed (`weir/turns.rs`), COBALT as in cake (`aqm/cobalt/linux.rs`), and a
//! shallow threshold for ECT(1) (RFC 9331). `docs/algorithms/weir.md` has the equations, the reason of each part, and what
//! happens without it.
//!
//! ```text
//! ACK       window_i = RTT_i * L / (flows of its host), where L is max-min among hosts of C - what no window governs
//!           C is the link and up to a fourth of it more, as long as the link is idle now and then
//!           until 32 kB of a connection are acknowledged: a fourth of what young ones have left of their room, if that is more
//! enqueue   keeps to its window   the common queue, which has the turns of as many hosts as have governed flows
//!           the same, but the share is less than a segment and the host has several flows: the queue of its flow
//!           other TCP data        the queue of its flow
//!           all else              the queue of its flow, where COBALT judges it, and marks ECT(1) beyond 1 ms
//! no room   the head of a queue that holds at least half of what the fattest one holds
//! dequeue   hosts take turns of rate / 4096 s, and flows of a host of a packet; who sends less than its turn goes first, and
//!           so does whoever sends less than 100 kbit/s
//! rate      the one that is told, or what departures show if that differs by more than a sixteenth
//! ```
//!
//! Invariants: no window is raised; what windows govern is not judged and is dropped only for want of room; a host with
//! packets has a quantum in each round, and none has more than a quantum and a packet; the packets of all queues add up to
//! the backlog. State: about 0.4 kB per flow in the table, none per address. Cost: O(1) per packet, no allocation once the
//! tables have grown to the number of flows.

mod config;
mod fattest;
mod pace;
mod queues;
#[cfg(test)]
mod tests;
mod turns;

pub use config::{Config, Part};

use crate::ack::pink::{self, Pink, Standing};
use crate::ack_path::AckPath;
use crate::allocation::Members;
use crate::fact::Fact;
use crate::judge::{Aqm, Meta};
use crate::packet::{Packet, TcpView};
use crate::qdisc::{Backlog, DropReason, Enqueued, PacketObserver, Qdisc, Stats};
use crate::rng::Rng;
use crate::units::{Instant, Rate, Span};
use config::Parts;
use pace::Pace;
use queues::{Queues, Way};

/// Largest size of a segment in bytes.
const MTU: u64 = 1500;

/// Part of the link that is given out, headers included.
const C: f64 = 1.005;

/// WEIR with its packets.
#[derive(Debug, Clone)]
pub struct Weir<P> {
    pink: Pink,
    queues: Queues<P>,
    parts: Parts,
    pace: Pace,
}

impl<P: Packet> Weir<P> {
    /// Creates the discipline for a link.
    pub(crate) fn new(config: &Config, link: &crate::config::LinkFacts) -> Self {
        let parts = config.parts();
        let pink = Pink::new(&pink::Config { c: C, max_flows: 1 << 20, ..pink::Config::default() }, link.rate);
        Self {
            pink: pink.before(link.limit).among_hosts(!parts.without(Part::Young)),
            queues: Queues::new(link.limit, link.rate, !parts.without(Part::Floor)),
            parts,
            pace: Pace::new(link.rate),
        }
    }

    /// Where a packet waits, by what its segment showed.
    fn way(&mut self, packet: &P) -> Way {
        if self.parts.without(Part::Windows) {
            return Way::Judged;
        }
        match self.pink.standing(&Meta::of(packet)) {
            Standing::Kept { crowd: true, .. } => Way::Crowd,
            Standing::Kept { window, .. } if !self.parts.without(Part::Common) => {
                Way::Common { most: 2 * window + MTU }
            }
            Standing::Kept { .. } | Standing::Within => Way::Own,
            Standing::Young => Way::Young,
            Standing::Beyond => Way::Judged,
        }
    }
}

impl<P: Packet> Qdisc<P> for Weir<P> {
    #[inline]
    fn enqueue<O: PacketObserver<P>>(&mut self, packet: P, now: Instant, _: &mut Rng, observer: &mut O) -> Enqueued {
        let way = self.way(&packet);
        self.queues.set_common(self.pink.hosts_governed());
        let fate = self.queues.enqueue(packet, way, now, observer);
        if self.queues.had_no_room() {
            self.pink.note_no_room(now);
        }
        if fate == Enqueued::Dropped(DropReason::Overflow) {
            self.pink.on_overflow(now);
        }
        fate
    }

    #[inline]
    fn dequeue<O: PacketObserver<P>>(&mut self, now: Instant, rng: &mut Rng, observer: &mut O) -> Option<P> {
        let Some(left) = self.queues.dequeue(now, rng, observer) else {
            self.pace.empty();
            if !self.parts.without(Part::Gain) {
                self.pink.note_idle(now);
            }
            return None;
        };
        let waits = self.queues.backlog().packets > 0;
        if let Some(rate) = self.pace.departed(left.packet.size(), waits, now)
            && !self.parts.without(Part::Pace)
        {
            self.pink.on_fact(&Fact::Rate(rate), now);
            self.queues.set_rate(rate);
        }
        let free = left.free && !self.parts.without(Part::Others);
        self.pink.note_left(&Meta::of(&left.packet), free, left.last, self.queues.backlog().bytes, now);
        let backlog = Backlog { bytes: self.queues.governed(), ..self.queues.backlog() };
        let _ = self.pink.on_dequeue(&Meta::of(&left.packet), Span::ZERO, backlog, now, rng);
        Some(left.packet)
    }

    fn on_fact(&mut self, fact: &Fact, now: Instant) {
        if let Fact::Owner { .. } = fact
            && self.parts.without(Part::Hosts)
        {
            return;
        }
        self.pink.on_fact(fact, now);
        match *fact {
            Fact::Rate(rate) => {
                self.pace = Pace::new(rate);
                self.queues.set_rate(rate);
            }
            Fact::Owner { flow, node } => self.queues.set_owner(flow, node),
            _ => {}
        }
    }

    fn backlog(&self) -> Backlog {
        self.queues.backlog()
    }

    fn stats(&self) -> &Stats {
        self.queues.stats()
    }

    fn report(&self) -> Option<serde_json::Value> {
        self.pink.report()
    }
}

impl<P: Packet> AckPath for Weir<P> {
    const ACTIVE: bool = true;

    fn outbound<S: TcpView>(&mut self, segment: &mut S, now: Instant) {
        if !self.parts.without(Part::Windows) {
            self.pink.outbound(segment, now);
        }
    }

    fn inbound<S: TcpView>(&mut self, segment: &mut S, now: Instant) {
        if !self.parts.without(Part::Windows) {
            self.pink.inbound(segment, now);
        }
    }

    fn shares(&self) -> Option<(Rate, Members)> {
        self.pink.shares()
    }
}
