//! The queues of all classes, together with the scheduler which picks among them.

use super::Scheduler;
use crate::qdisc::{Backlog, ConservationError, DropReason, Stats};
use crate::slab::{List, Slab, Taken};
use crate::units::{Bytes, Limit};

/// How much may wait. `None` means no limit except 4 GiB and 2^32 - 1 packets in each class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// The limit of all classes together.
    pub total: Option<Limit>,
    /// The limit of each class.
    pub per_class: Option<Limit>,
}

/// Why a packet was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// There is no class of this index.
    Class,
    /// The packet has 0 bytes, or more than the largest packet of the scheduler.
    Size,
    /// The queue of the packet's class is full.
    ClassFull,
    /// All queues together are full.
    Full,
}

/// A packet that was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused<P> {
    /// The packet, which goes back to its owner.
    pub packet: P,
    /// The reason of the refusal.
    pub reason: Reason,
}

/// A packet that was dequeued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Served<P> {
    /// The packet itself.
    pub packet: P,
    /// The class in whose queue the packet was.
    pub class: u32,
    /// The size of the packet.
    pub size: Bytes,
}

/// The queue of one class: 16 bytes, so that serving a class touches little memory.
#[derive(Debug, Clone, Copy, Default)]
struct Queue {
    list: List,
    packets: u32,
    bytes: u32,
}

/// A limit in packets and in bytes, so that a check is two comparisons.
#[derive(Debug, Clone, Copy)]
struct Room {
    packets: u64,
    bytes: u64,
}

impl Room {
    fn new(limit: Option<Limit>, most: u64) -> Self {
        let (packets, bytes) = match limit {
            None => (most, most),
            Some(Limit::Packets(n)) => (n, most),
            Some(Limit::Bytes(n)) => (most, n.get()),
        };
        Self { packets: packets.min(most), bytes: bytes.min(most) }
    }

    #[inline]
    fn fits(&self, packets: u64, bytes: u64, size: u64) -> bool {
        packets < self.packets && size <= self.bytes.saturating_sub(bytes)
    }
}

/// Queues of classes, served in the order that the scheduler `S` decides. `P` is what the caller keeps of a packet.
///
/// Packets of one class leave in the order of their arrival. [`Scheduled::check`] verifies conservation.
#[derive(Debug, Clone)]
pub struct Scheduled<P, S> {
    scheduler: S,
    queues: Vec<Queue>,
    slab: Slab<P, u32>,
    max_packet: u64,
    total: Room,
    per_class: Room,
    backlog: Backlog,
    stats: Stats,
}

impl<P, S: Scheduler> Scheduled<P, S> {
    /// Creates empty queues, one for each class of `scheduler`.
    pub fn new(scheduler: S, limits: Limits) -> Self {
        Self {
            queues: vec![Queue::default(); scheduler.classes()],
            slab: Slab::new(),
            max_packet: scheduler.max_packet().get().min(u64::from(u32::MAX)),
            total: Room::new(limits.total, u64::MAX),
            per_class: Room::new(limits.per_class, u64::from(u32::MAX)),
            backlog: Backlog::default(),
            stats: Stats::default(),
            scheduler,
        }
    }

    /// Puts a packet of `size` into the queue of `class`.
    ///
    /// # Errors
    /// The packet comes back when its size is not allowed, there is no room, or there is no such class.
    #[inline]
    pub fn enqueue(&mut self, class: u32, size: Bytes, packet: P) -> Result<(), Refused<P>> {
        self.put(class, size, packet, |_| ())
    }

    /// Puts a packet into the queue of `class` as [`Scheduled::enqueue`] does. `sent` is how much of the packet dequeued
    /// last has been sent; it is asked for only if the scheduler may need it.
    ///
    /// # Errors
    /// Those of [`Scheduled::enqueue`].
    #[inline]
    pub fn enqueue_during(
        &mut self,
        class: u32,
        size: Bytes,
        packet: P,
        sent: impl FnOnce() -> Bytes,
    ) -> Result<(), Refused<P>> {
        self.put(class, size, packet, |scheduler| scheduler.progress(sent()))
    }

    /// Puts a packet into the queue of `class`; `before` sees the scheduler before it is told of a class that was idle.
    #[inline]
    fn put(&mut self, class: u32, size: Bytes, packet: P, before: impl FnOnce(&mut S)) -> Result<(), Refused<P>> {
        self.stats.arrived.add(size);
        let bytes = size.get();
        let reason = match self.queues.get_mut(class as usize) {
            None => Reason::Class,
            Some(_) if bytes.wrapping_sub(1) >= self.max_packet => Reason::Size,
            Some(_) if !self.total.fits(self.backlog.packets, self.backlog.bytes, bytes) => Reason::Full,
            Some(queue) if !self.per_class.fits(queue.packets.into(), queue.bytes.into(), bytes) => Reason::ClassFull,
            Some(queue) => match self.slab.push(&mut queue.list, packet, bytes as u32) {
                Err(packet) => return Err(self.refuse(packet, size, Reason::Full)),
                Ok(_) => {
                    let idle = queue.packets == 0;
                    queue.packets += 1;
                    queue.bytes += bytes as u32;
                    self.backlog.add(size);
                    if idle {
                        before(&mut self.scheduler);
                    }
                    self.scheduler.enqueue(class, size, idle);
                    return Ok(());
                }
            },
        };
        Err(self.refuse(packet, size, reason))
    }

    #[cold]
    fn refuse(&mut self, packet: P, size: Bytes, reason: Reason) -> Refused<P> {
        self.stats.count_drop(DropReason::Overflow, size);
        Refused { packet, reason }
    }

    /// Takes the packet that the scheduler serves next; `None` if no packet may be served.
    #[inline]
    pub fn dequeue(&mut self) -> Option<Served<P>> {
        let class = self.scheduler.dequeue()?;
        let queue = self.queues.get_mut(class as usize)?;
        let Taken { packet, note, .. } = self.slab.pop(&mut queue.list)?;
        queue.packets -= 1;
        queue.bytes -= note;
        let (size, head) = (Bytes::new(note.into()), self.slab.first(&queue.list).map(|head| Bytes::new(head.into())));
        self.scheduler.served(class, size, head);
        self.backlog.remove(size);
        self.stats.sent.add(size);
        Some(Served { packet, class, size })
    }

    /// The scheduler, to read its state.
    pub fn scheduler(&self) -> &S {
        &self.scheduler
    }

    /// The scheduler, to change weights and channels.
    pub fn scheduler_mut(&mut self) -> &mut S {
        &mut self.scheduler
    }

    /// The backlog of all classes.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// The backlog of one class; zero for a class which does not exist.
    #[inline]
    pub fn class_backlog(&self, class: u32) -> Backlog {
        let queue = self.queues.get(class as usize).copied().unwrap_or_default();
        Backlog { packets: queue.packets.into(), bytes: queue.bytes.into() }
    }

    /// Counters since the start. Refused packets count as dropped for lack of room.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Verifies conservation: arrived = sent + refused + waiting, in packets and bytes.
    ///
    /// # Errors
    /// Contains the numbers when they do not add up.
    pub fn check(&self) -> Result<(), ConservationError> {
        let mut waiting = Backlog::default();
        for queue in &self.queues {
            waiting.packets += u64::from(queue.packets);
            waiting.bytes += u64::from(queue.bytes);
        }
        if waiting != self.backlog {
            return Err(ConservationError::Miscounted { held: waiting, counted: self.backlog });
        }
        self.stats.check(waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fifo::Fifo;
    use super::*;

    fn queues(limits: Limits) -> Scheduled<char, Fifo> {
        Scheduled::new(Fifo::new(2, Bytes::new(1500)), limits)
    }

    #[test]
    fn packets_of_two_classes_are_kept_apart() {
        let mut queues = queues(Limits::default());
        for (class, size, packet) in [(1, 100, 'a'), (0, 200, 'b'), (1, 300, 'c')] {
            queues.enqueue(class, Bytes::new(size), packet).unwrap();
        }
        assert_eq!(queues.class_backlog(1), Backlog { packets: 2, bytes: 400 });
        assert_eq!(queues.class_backlog(2), Backlog::default());
        assert_eq!(queues.dequeue(), Some(Served { packet: 'a', class: 1, size: Bytes::new(100) }));
        assert_eq!(queues.backlog(), Backlog { packets: 2, bytes: 500 });
        queues.check().unwrap();
    }

    #[test]
    fn what_does_not_fit_comes_back_and_is_counted() {
        let limits = Limits { total: Some(Limit::Packets(3)), per_class: Some(Limit::Bytes(Bytes::new(2000))) };
        let mut queues = queues(limits);
        let mut offer = |class, size| queues.enqueue(class, Bytes::new(size), 'p').err().map(|refused| refused.reason);
        assert_eq!(offer(2, 100), Some(Reason::Class));
        assert_eq!(offer(0, 0), Some(Reason::Size));
        assert_eq!(offer(0, 1501), Some(Reason::Size));
        assert_eq!(offer(0, 1500), None);
        assert_eq!(offer(0, 501), Some(Reason::ClassFull));
        assert_eq!(offer(0, 500), None);
        assert_eq!(offer(1, 1), None);
        assert_eq!(offer(1, 1), Some(Reason::Full));
        assert_eq!(queues.stats().dropped_overflow.packets, 5);
        queues.check().unwrap();
    }
}
