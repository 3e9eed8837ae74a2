//! The target of the controller: a scheduler with the queues of its flows, or the queues alone, whose cost is that of
//! the harness.

use crate::meter::Meter;
use crate::queues::Queues;
use penstock_core::sched::Scheduler;
use penstock_core::sched::modular::Modular;
use penstock_core::units::Bytes;

/// A target that takes packets of flows and returns them in some order.
pub(crate) trait Target {
    /// Number of packets of a flow that wait.
    fn waiting(&self, flow: u32) -> u32;
    /// Enqueues a packet of this flow.
    fn put(&mut self, flow: u32);
    /// Dequeues a packet and returns its flow; `None` if no packet may be sent.
    fn take(&mut self) -> Option<u32>;
}

/// The scheduler container (002 §4.3.2.3): as little code as possible around a scheduler.
#[derive(Debug)]
pub(crate) struct Container<S, M> {
    pub scheduler: S,
    pub meter: M,
    queues: Queues,
    size: Bytes,
}

impl<S: Scheduler, M: Meter> Container<S, M> {
    /// Creates a container for packets of `size`.
    pub fn new(scheduler: S, meter: M, queues: Queues, size: Bytes) -> Self {
        Self { scheduler, meter, queues, size }
    }
}

impl<S: Scheduler, M: Meter> Target for Container<S, M> {
    #[inline]
    fn waiting(&self, flow: u32) -> u32 {
        self.queues.waiting(flow)
    }

    #[inline]
    fn put(&mut self, flow: u32) {
        let packet = self.queues.push(flow);
        let waiting = self.queues.waiting(flow);
        self.scheduler.enqueue(flow, self.size, waiting == 1);
        self.meter.arrived(flow, packet, waiting);
    }

    #[inline]
    fn take(&mut self) -> Option<u32> {
        let flow = self.scheduler.dequeue()?;
        let packet = self.queues.pop(flow);
        let waiting = self.queues.waiting(flow);
        self.scheduler.served(flow, self.size, (waiting > 0).then_some(self.size));
        self.meter.left(flow, packet, waiting);
        Some(flow)
    }
}

/// The container of the double mode: two schedulers, which keep the packets themselves. Packets still come from a free
/// list and return to it.
#[derive(Debug)]
pub(crate) struct Cascade<Q, M, T> {
    layers: Modular<u32, Q, M>,
    pub meter: T,
    free: Vec<u32>,
    waiting: Vec<u32>,
    size: Bytes,
}

impl<Q: Scheduler, M: Scheduler, T: Meter> Cascade<Q, M, T> {
    /// Creates a container for at most `packets` packets of `size`.
    pub fn new(layers: Modular<u32, Q, M>, meter: T, packets: usize, size: Bytes) -> Self {
        let waiting = vec![0; layers.qos().scheduler().classes()];
        Self { layers, meter, free: (0..packets as u32).rev().collect(), waiting, size }
    }
}

impl<Q: Scheduler, M: Scheduler, T: Meter> Target for Cascade<Q, M, T> {
    #[inline]
    fn waiting(&self, flow: u32) -> u32 {
        self.waiting[flow as usize]
    }

    #[inline]
    fn put(&mut self, flow: u32) {
        let Some(packet) = self.free.pop() else { return };
        let waiting = &mut self.waiting[flow as usize];
        *waiting += 1;
        let waiting = *waiting;
        let taken = self.layers.enqueue(flow, self.size, packet);
        debug_assert!(taken.is_ok(), "the layers have no limits but those that the plan was checked for");
        self.meter.arrived(flow, packet, waiting);
    }

    #[inline]
    fn take(&mut self) -> Option<u32> {
        let served = self.layers.dequeue()?;
        let waiting = &mut self.waiting[served.class as usize];
        *waiting -= 1;
        let waiting = *waiting;
        self.free.push(served.packet);
        self.meter.left(served.class, served.packet, waiting);
        Some(served.class)
    }
}

/// The queues without a scheduler: flows with packets leave in turn, which is the cheapest order to find.
#[derive(Debug)]
pub(crate) struct Bare {
    queues: Queues,
    flows: u32,
    turn: u32,
    left: u64,
}

impl Bare {
    /// Creates the target; `flows` is the number of flows in `queues`.
    pub fn new(queues: Queues, flows: usize) -> Self {
        Self { queues, flows: flows as u32, turn: 0, left: 0 }
    }
}

impl Target for Bare {
    #[inline]
    fn waiting(&self, flow: u32) -> u32 {
        self.queues.waiting(flow)
    }

    #[inline]
    fn put(&mut self, flow: u32) {
        self.queues.push(flow);
        self.left += 1;
    }

    #[inline]
    fn take(&mut self) -> Option<u32> {
        self.left = self.left.checked_sub(1)?;
        loop {
            let flow = self.turn;
            self.turn = if flow + 1 == self.flows { 0 } else { flow + 1 };
            if self.queues.waiting(flow) > 0 {
                self.queues.pop(flow);
                return Some(flow);
            }
        }
    }
}
