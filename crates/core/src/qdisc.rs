//! The queue discipline: what stands before a link and decides what goes next, what waits and what dies.
//!
//! A discipline owns packets; an [`Aqm`](crate::aqm::Aqm) only judges them. [`Fifo`](crate::queue::Fifo) joins the two.

use crate::fact::Fact;
use crate::packet::{FlowId, Packet};
use crate::rng::Rng;
use crate::units::{Bytes, Instant, Limit};
use serde::Serialize;

/// Why a packet was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DropReason {
    /// The AQM refused it on arrival.
    Early,
    /// There was no room.
    Overflow,
    /// The AQM dropped it from the queue.
    Dequeue,
}

impl DropReason {
    /// The word used in traces and tables.
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
    /// Let it go on.
    Pass,
    /// Let it go on with CE set; given only for ECN-capable packets.
    Mark,
    /// Drop it.
    Drop,
}

/// What happened to a packet given to [`Qdisc::enqueue`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enqueued {
    /// It waits in the queue.
    Queued,
    /// It is gone; the [`PacketObserver`] was told the reason.
    Dropped(DropReason),
}

/// Observes every packet that a discipline drops or marks. `()` ignores them.
pub trait PacketObserver<P> {
    /// `packet` was dropped.
    fn dropped(&mut self, packet: P, reason: DropReason, now: Instant);
    /// `packet` was marked CE and goes on.
    fn marked(&mut self, packet: &P, now: Instant);
}

impl<P> PacketObserver<P> for () {
    fn dropped(&mut self, _: P, _: DropReason, _: Instant) {}
    fn marked(&mut self, _: &P, _: Instant) {}
}

/// How much a queue holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Backlog {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Backlog {
    /// One packet more.
    #[inline]
    pub fn add(&mut self, size: Bytes) {
        self.packets += 1;
        self.bytes += size.get();
    }
    /// True when a queue of this `limit` that holds this much has room for one more packet of `size`.
    #[inline]
    pub fn has_room(&self, size: Bytes, limit: Limit) -> bool {
        match limit {
            Limit::Packets(most) => self.packets < most,
            Limit::Bytes(most) => self.bytes + size.get() <= most.get(),
        }
    }

    /// True when this is more than `limit`.
    #[inline]
    pub fn exceeds(&self, limit: Limit) -> bool {
        match limit {
            Limit::Packets(most) => self.packets > most,
            Limit::Bytes(most) => self.bytes > most.get(),
        }
    }

    /// One packet less.
    #[inline]
    pub fn remove(&mut self, size: Bytes) {
        self.packets -= 1;
        self.bytes -= size.get();
    }
}

/// Numbers that should be equal are not: the code of a discipline has a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ConservationError {
    /// What arrived is not what was sent, dropped, taken out and waits.
    #[error("conservation is broken: {arrived} {unit} arrived, {accounted} are accounted for")]
    Unbalanced {
        /// "packets" or "bytes".
        unit: &'static str,
        /// How many arrived.
        arrived: u64,
        /// How many were sent, dropped or taken out, or wait.
        accounted: u64,
    },
    /// What the queues hold is not what is counted.
    #[error("the queues hold {held:?}, but {counted:?} is counted")]
    Miscounted {
        /// The sum over the queues.
        held: Backlog,
        /// What the counter says.
        counted: Backlog,
    },
    /// What one of two layers gave is not what the other got.
    #[error("the QoS layer gave {given:?}, but the MAC-SAL got {taken:?}")]
    BetweenLayers {
        /// Sent by the upper layer.
        given: Backlog,
        /// Arrived at the lower layer.
        taken: Backlog,
    },
    /// The lower of two layers dropped packets, which it must not.
    #[error("the MAC-SAL dropped {packets} packets")]
    DroppedBelow {
        /// How many.
        packets: u64,
    },
}

/// Counters of a discipline, in packets and bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Stats {
    /// Given to `enqueue`.
    pub arrived: Backlog,
    /// Returned by `dequeue`.
    pub sent: Backlog,
    /// Dropped by the AQM on arrival.
    pub dropped_early: Backlog,
    /// Dropped for want of room.
    pub dropped_overflow: Backlog,
    /// Dropped by the AQM from the queue.
    pub dropped_dequeue: Backlog,
    /// Marked CE (and sent, unless they were dropped later).
    pub marked: Backlog,
    /// Taken out, as their flow goes on elsewhere.
    pub taken_out: Backlog,
}

impl Stats {
    /// Counts a drop.
    pub fn count_drop(&mut self, reason: DropReason, size: Bytes) {
        match reason {
            DropReason::Early => self.dropped_early.add(size),
            DropReason::Overflow => self.dropped_overflow.add(size),
            DropReason::Dequeue => self.dropped_dequeue.add(size),
        }
    }

    /// Dropped by the AQM, on arrival or from the queue, in packets.
    pub fn dropped_by_aqm(&self) -> u64 {
        self.dropped_early.packets + self.dropped_dequeue.packets
    }

    /// Conservation: arrived = sent + dropped + taken out + queued, in packets and in bytes.
    ///
    /// # Errors
    /// The numbers when they do not add up.
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

/// A queue discipline over packets of type `P`.
pub trait Qdisc<P: Packet> {
    /// True for a discipline that ever asks to be woken; the others need not be asked when.
    const WAKES: bool = false;

    /// True for a discipline that can give up a flow ([`Qdisc::take_out`]).
    const GIVES_UP: bool = false;

    /// Takes a packet. Other packets may be dropped to make room; each is told to `observer`.
    fn enqueue<O: PacketObserver<P>>(&mut self, packet: P, now: Instant, rng: &mut Rng, observer: &mut O) -> Enqueued;

    /// The next packet for the link, if any. Packets the AQM drops on the way are told to `observer`.
    fn dequeue<O: PacketObserver<P>>(&mut self, now: Instant, rng: &mut Rng, observer: &mut O) -> Option<P>;

    /// When `dequeue` or a timer wants to be called though no packet arrived; `None` when only arrivals matter.
    /// Changes only inside `enqueue`, `dequeue` and [`Qdisc::on_wakeup`].
    fn next_wakeup(&self) -> Option<Instant> {
        None
    }

    /// The time told by [`Qdisc::next_wakeup`] has come.
    fn on_wakeup(&mut self, now: Instant) {
        let _ = now;
    }

    /// Something changed outside the queue. Most disciplines use few facts or none; one that wraps others passes on all.
    fn on_fact(&mut self, fact: &Fact, now: Instant);

    /// Takes out what waits of `flow`, which goes on elsewhere, the oldest first. Nothing unless [`Qdisc::GIVES_UP`].
    fn take_out(&mut self, flow: FlowId, taken: &mut Vec<P>) {
        let _ = (flow, taken);
    }

    /// What waits.
    fn backlog(&self) -> Backlog;

    /// Counters since the start.
    fn stats(&self) -> &Stats;

    /// What else the algorithm has to tell at the end of a run.
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
        (Stats { arrived, sent, dropped_early, dropped_overflow, dropped_dequeue, marked, taken_out }, of(1))
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
