//! A discipline, and those that it replaced and that still hold packets: their packets leave first.
//!
//! Each is woken only once for each time, also if it does not note that it was.

use crate::packet::Packet;
use crate::qdisc::{Backlog, PacketObserver, Qdisc, Stats};
use crate::rng::Rng;
use crate::units::Instant;
use std::collections::VecDeque;
use std::iter::once;
use std::marker::PhantomData;

/// A discipline, and when it was woken last.
type Queue<Q> = (Q, Option<Instant>);

/// A discipline and its predecessors.
#[derive(Debug, Clone)]
pub(crate) struct Succession<P, Q> {
    present: Queue<Q>,
    /// Those that hold packets, the oldest first. The first one is never empty.
    former: VecDeque<Queue<Q>>,
    /// The counters of those that are gone.
    past: Stats,
    packets: PhantomData<P>,
}

impl<P: Packet, Q: Qdisc<P>> Succession<P, Q> {
    pub fn new(qdisc: Q) -> Self {
        Self { present: (qdisc, None), former: VecDeque::new(), past: Stats::default(), packets: PhantomData }
    }

    /// Puts a discipline in the place of the present one, which keeps its packets.
    pub fn replace(&mut self, qdisc: Q) {
        self.former.push_back(std::mem::replace(&mut self.present, (qdisc, None)));
        self.forget_empty();
    }

    /// The discipline that packets enter.
    #[inline]
    pub fn present(&self) -> &Q {
        &self.present.0
    }

    /// The discipline that packets enter.
    #[inline]
    pub fn present_mut(&mut self) -> &mut Q {
        &mut self.present.0
    }

    /// How many were replaced and hold packets.
    pub fn former(&self) -> usize {
        self.former.len()
    }

    fn queues(&mut self) -> impl Iterator<Item = &mut Queue<Q>> {
        self.former.iter_mut().chain(once(&mut self.present))
    }

    /// All disciplines, the oldest first.
    pub fn each(&mut self) -> impl Iterator<Item = &mut Q> {
        self.queues().map(|(qdisc, _)| qdisc)
    }

    /// What waits in all of them.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        self.former.iter().fold(self.present.0.backlog(), |all, (old, _)| all + old.backlog())
    }

    /// True if a packet waits.
    #[inline]
    pub fn waits(&self) -> bool {
        self.present.0.backlog().packets > 0 || !self.former.is_empty()
    }

    /// The counters of all that there were.
    pub fn stats(&self) -> Stats {
        self.former.iter().chain([&self.present]).fold(self.past, |all, (qdisc, _)| all + *qdisc.stats())
    }

    /// When the first of them wants to be woken; [`Instant::MAX`] for never.
    #[inline]
    pub fn next_wakeup(&self) -> Instant {
        let first = Self::wakeup(&self.present);
        if self.former.is_empty() { first } else { self.first_wakeup(first) }
    }

    #[cold]
    fn first_wakeup(&self, first: Instant) -> Instant {
        self.former.iter().map(Self::wakeup).fold(first, Instant::min)
    }

    #[inline]
    fn wakeup((qdisc, woken): &Queue<Q>) -> Instant {
        match (qdisc.next_wakeup(), woken) {
            (Some(at), Some(woken)) if at <= *woken => Instant::MAX,
            (at, _) => at.unwrap_or(Instant::MAX),
        }
    }

    /// Wakes those that want to be woken up to this time.
    pub fn wake(&mut self, at: Instant) {
        for queue in self.queues().filter(|queue| Self::wakeup(queue) <= at) {
            queue.1 = Some(at);
            queue.0.on_wakeup(at);
        }
    }

    /// The present one may be woken once more at the time of its last wake-up.
    pub fn wake_again(&mut self) {
        self.present.1 = None;
    }

    /// Takes the next packet out of the oldest discipline that gives one. One that holds its packets back until a time is
    /// waited for; one that refuses because of the channels is passed over.
    #[inline]
    pub fn dequeue<O: PacketObserver<P>>(&mut self, now: Instant, rng: &mut Rng, observer: &mut O) -> Option<P> {
        if self.former.is_empty() {
            return self.present.0.dequeue(now, rng, observer);
        }
        self.dequeue_oldest(now, rng, observer)
    }

    #[cold]
    fn dequeue_oldest<O: PacketObserver<P>>(&mut self, now: Instant, rng: &mut Rng, observer: &mut O) -> Option<P> {
        let mut next = None;
        for qdisc in self.each() {
            next = qdisc.dequeue(now, rng, observer);
            if next.is_some() || qdisc.backlog().packets > 0 && qdisc.next_wakeup().is_some() {
                break;
            }
        }
        self.forget_empty();
        next
    }

    /// Forgets the oldest that are empty, except their counters.
    fn forget_empty(&mut self) {
        while let Some((old, _)) = self.former.front().filter(|(old, _)| old.backlog().packets == 0) {
            self.past = self.past + *old.stats();
            self.former.pop_front();
        }
    }
}
