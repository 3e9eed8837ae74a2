//! The queue discipline: it stands before a link and decides which packet waits, which goes next and which is dropped.
//!
//! A discipline owns packets, while an [`Aqm`](crate::aqm::Aqm) only judges them. [`Fifo`](crate::queue::Fifo) is the
//! discipline which joins one queue and one AQM.

use crate::fact::Fact;
use crate::packet::{FlowId, Packet};
use crate::rng::Rng;
use crate::units::{Bytes, Instant, Limit};
use serde::Serialize;

/// Why a packet was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DropReason {
    /// The AQM refused the packet on arrival.
    Early,
    /// The queue had no room for the packet.
    Overflow,
    /// The AQM dropped the packet from the queue.
    Dequeue,
}

impl DropReason {
    /// Returns the word for this reason in traces and tables.
    pub const fn fate(self) -> &'static str {
        match self {
            Self::Early => "drop_early",
            Self::Overflow => "drop_overflow",
            Self::Dequeue => "drop_dequeue",
        }
    }
}

/// What an AQM decided about one packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The packet goes on unchanged.
    Pass,
    /// The packet goes on with CE set. An AQM gives this verdict only for ECN-capable packets.
    Mark,
    /// The packet is dropped.
    Drop,
}

/// What happened to a packet given to [`Qdisc::enqueue`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enqueued {
    /// The packet waits in the queue.
    Queued,
    /// The packet was dropped; the [`PacketObserver`] was told the reason.
    Dropped(DropReason),
}

/// Observes every packet that a discipline drops or marks. The observer `()` ignores them.
pub trait PacketObserver<P> {
    /// Called when `packet` was dropped.
    fn dropped(&mut self, packet: P, reason: DropReason, now: Instant);
    /// Called when `packet` was marked CE; the packet goes on.
    fn marked(&mut self, packet: &P, now: Instant);
}

impl<P> PacketObserver<P> for () {
    fn dropped(&mut self, _: P, _: DropReason, _: Instant) {}
    fn marked(&mut self, _: &P, _: Instant) {}
}

/// A number of packets and the sum of their bytes: what a queue holds, or what a counter counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Backlog {
    /// Number of packets.
    pub packets: u64,
    /// Sum of their sizes in bytes.
    pub bytes: u64,
}

impl Backlog {
    /// Adds one packet of `size`.
    #[inline]
    pub fn add(&mut self, size: Bytes) {
        self.packets += 1;
        self.bytes += size.get();
    }
    /// Returns true if a queue with this `limit` and this backlog has room for one more packet of `size`.
    #[inline]
    pub fn has_room(&self, size: Bytes, limit: Limit) -> bool {
        match limit {
            Limit::Packets(most) => self.packets < most,
            Limit::Bytes(most) => self.bytes + size.get() <= most.get(),
        }
    }

    /// Returns true if the backlog is above `limit`.
    #[inline]
    pub fn exceeds(&self, limit: Limit) -> bool {
        match limit {
            Limit::Packets(most) => self.packets > most,
            Limit::Bytes(most) => self.bytes > most.get(),
        }
    }

    /// Subtracts one packet of `size`, which must have been added before.
    #[inline]
    pub fn remove(&mut self, size: Bytes) {
        self.packets -= 1;
        self.bytes -= size.get();
    }
}

impl std::ops::Add for Backlog {
    type Output = Self;

    #[inline]
    fn add(self, other: Self) -> Self {
        Self { packets: self.packets + other.packets, bytes: self.bytes + other.bytes }
    }
}

/// Counters of a discipline contradict each other, so its code has a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ConservationError {
    /// The packets that arrived are not those that were sent, dropped or taken out, or that wait.
    #[error("conservation is broken: {arrived} {unit} arrived, {accounted} are accounted for")]
    Unbalanced {
        /// The unit of both numbers: "packets" or "bytes".
        unit: &'static str,
        /// How many packets or bytes arrived.
        arrived: u64,
        /// How many packets or bytes were sent, dropped or taken out, or wait.
        accounted: u64,
    },
    /// The queues hold another backlog than the counter of the discipline says.
    #[error("the queues hold {held:?}, but {counted:?} is counted")]
    Miscounted {
        /// The sum of the backlogs of all queues.
        held: Backlog,
        /// The backlog which the discipline counts.
        counted: Backlog,
    },
    /// The upper of two layers sent other packets than arrived at the lower one.
    #[error("the QoS layer gave {given:?}, but the MAC-SAL got {taken:?}")]
    BetweenLayers {
        /// What the upper layer sent.
        given: Backlog,
        /// What arrived at the lower layer.
        taken: Backlog,
    },
    /// The lower of two layers dropped packets, which it must not.
    #[error("the MAC-SAL dropped {packets} packets")]
    DroppedBelow {
        /// The number of packets which the lower layer dropped.
        packets: u64,
    },
}

/// Counters of a discipline, in packets and bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Stats {
    /// Packets given to `enqueue`.
    pub arrived: Backlog,
    /// Packets returned by `dequeue`.
    pub sent: Backlog,
    /// Packets dropped by the AQM on arrival.
    pub dropped_early: Backlog,
    /// Of those, the packets that were forced: above a limit from which the AQM lets no packet pass.
    pub dropped_forced: Backlog,
    /// Packets dropped because the queue had no room.
    pub dropped_overflow: Backlog,
    /// Packets dropped from the queue by the AQM.
    pub dropped_dequeue: Backlog,
    /// Packets marked CE. They also count as sent, or as dropped if they were dropped later.
    pub marked: Backlog,
    /// Packets taken out because their flow goes on elsewhere ([`Qdisc::take_out`]).
    pub taken_out: Backlog,
}

impl Stats {
    /// Counts the drop of a packet of `size` under its reason.
    pub fn count_drop(&mut self, reason: DropReason, size: Bytes) {
        match reason {
            DropReason::Early => self.dropped_early.add(size),
            DropReason::Overflow => self.dropped_overflow.add(size),
            DropReason::Dequeue => self.dropped_dequeue.add(size),
        }
    }

    /// Counts the drop of a packet of `size` on arrival as forced, if it was.
    #[inline]
    pub fn count_forced(&mut self, forced: bool, size: Bytes) {
        if forced {
            self.dropped_forced.add(size);
        }
    }

    /// Returns the number of packets dropped by the AQM, on arrival or from the queue.
    pub fn dropped_by_aqm(&self) -> u64 {
        self.dropped_early.packets + self.dropped_dequeue.packets
    }

    /// Checks conservation: arrived = sent + dropped + taken out + queued, in packets and in bytes.
    ///
    /// # Errors
    /// Returns the numbers if they do not add up.
    pub fn check(&self, queued: Backlog) -> Result<(), ConservationError> {
        let sum = |of: fn(&Backlog) -> u64| {
            let dropped =
                [&self.dropped_early, &self.dropped_overflow, &self.dropped_dequeue].map(of).iter().sum::<u64>();
            (of(&self.arrived), dropped + [&self.sent, &self.taken_out, &queued].map(of).iter().sum::<u64>())
        };
        for (unit, (arrived, accounted)) in [("packets", sum(|b| b.packets)), ("bytes", sum(|b| b.bytes))] {
            if arrived != accounted {
                return Err(ConservationError::Unbalanced { unit, arrived, accounted });
            }
        }
        Ok(())
    }
}

/// The counters of two disciplines together.
impl std::ops::Add for Stats {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            arrived: self.arrived + other.arrived,
            sent: self.sent + other.sent,
            dropped_early: self.dropped_early + other.dropped_early,
            dropped_forced: self.dropped_forced + other.dropped_forced,
            dropped_overflow: self.dropped_overflow + other.dropped_overflow,
            dropped_dequeue: self.dropped_dequeue + other.dropped_dequeue,
            marked: self.marked + other.marked,
            taken_out: self.taken_out + other.taken_out,
        }
    }
}

/// A queue discipline over packets of type `P`.
pub trait Qdisc<P: Packet> {
    /// True for a discipline which may ask to be woken. If false, [`Qdisc::next_wakeup`] need not be called.
    const WAKES: bool = false;

    /// True for a discipline which can give up the waiting packets of a flow ([`Qdisc::take_out`]).
    const GIVES_UP: bool = false;

    /// Takes a packet. Other packets may be dropped to make room; `observer` is told of each drop.
    fn enqueue<O: PacketObserver<P>>(&mut self, packet: P, now: Instant, rng: &mut Rng, observer: &mut O) -> Enqueued;

    /// Returns the next packet for the link, if there is one. `observer` is told of packets which the AQM drops on the
    /// way.
    fn dequeue<O: PacketObserver<P>>(&mut self, now: Instant, rng: &mut Rng, observer: &mut O) -> Option<P>;

    /// Returns the time at which the discipline wants to be woken although no packet arrived: then the owner calls
    /// [`Qdisc::on_wakeup`] and `dequeue`. `None` if only arrivals matter. The time changes only inside `enqueue`,
    /// `dequeue` and [`Qdisc::on_wakeup`].
    fn next_wakeup(&self) -> Option<Instant> {
        None
    }

    /// Called when the time told by [`Qdisc::next_wakeup`] has come.
    fn on_wakeup(&mut self, now: Instant) {
        let _ = now;
    }

    /// Called when something changed outside the queue. Most disciplines use few facts or none; a discipline which
    /// wraps others passes on all facts.
    fn on_fact(&mut self, fact: &Fact, now: Instant);

    /// Moves the waiting packets of `flow` to `taken`, the oldest first, because the flow goes on elsewhere. Does
    /// nothing unless [`Qdisc::GIVES_UP`] is true.
    fn take_out(&mut self, flow: FlowId, taken: &mut Vec<P>) {
        let _ = (flow, taken);
    }

    /// Returns what waits, in packets and bytes.
    fn backlog(&self) -> Backlog;

    /// Returns the counters since the start.
    fn stats(&self) -> &Stats;

    /// Returns further numbers of the algorithm for the results of a run; `None` if there are none.
    fn report(&self) -> Option<serde_json::Value> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten packets of 1000 B came; one or two ended in each way, and one waits.
    fn balanced() -> (Stats, Backlog) {
        let of = |packets| Backlog { packets, bytes: 1000 * packets };
        let (arrived, marked) = (of(10), of(3));
        let (sent, dropped_early, dropped_overflow, dropped_dequeue, taken_out) = (of(4), of(1), of(1), of(2), of(1));
        let dropped_forced = of(1); // which is the one that counts as early
        let stats = Stats {
            arrived,
            sent,
            dropped_early,
            dropped_forced,
            dropped_overflow,
            dropped_dequeue,
            marked,
            taken_out,
        };
        (stats, of(1))
    }

    #[test]
    fn a_packet_or_a_byte_too_many_breaks_conservation_wherever_it_is_counted() {
        let (stats, queued) = balanced();
        assert_eq!(stats.check(queued), Ok(()));
        let counters: [fn(&mut Stats) -> &mut Backlog; 6] = [
            |stats| &mut stats.arrived,
            |stats| &mut stats.sent,
            |stats| &mut stats.dropped_early,
            |stats| &mut stats.dropped_overflow,
            |stats| &mut stats.dropped_dequeue,
            |stats| &mut stats.taken_out,
        ];
        for counter in counters {
            let (mut packets, mut bytes) = (stats, stats);
            counter(&mut packets).packets += 1;
            counter(&mut bytes).bytes += 1;
            let is_told = |stats: Stats, wanted| matches!(stats.check(queued), Err(ConservationError::Unbalanced { unit, .. }) if unit == wanted);
            assert!(is_told(packets, "packets") && is_told(bytes, "bytes"));
        }
        assert!(stats.check(Backlog { bytes: queued.bytes - 1, ..queued }).is_err());
        assert!(stats.check(Backlog { packets: queued.packets - 1, ..queued }).is_err());
    }

    #[test]
    fn a_drop_is_counted_where_its_reason_says() {
        let mut stats = Stats::default();
        for (reason, size) in [(DropReason::Early, 1), (DropReason::Overflow, 20), (DropReason::Dequeue, 300)] {
            stats.count_drop(reason, Bytes::new(size));
        }
        let bytes =
            [stats.dropped_early, stats.dropped_overflow, stats.dropped_dequeue].map(|of| (of.packets, of.bytes));
        assert_eq!(bytes, [(1, 1), (1, 20), (1, 300)]);
        assert_eq!(stats.dropped_by_aqm(), 2);
    }
}
