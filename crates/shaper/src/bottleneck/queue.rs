//! A discipline, what it was built of, and its last wake-up.

use crate::records::Stamped;
use penstock_core::packet::Packet;
use penstock_core::qdisc::Qdisc;
use penstock_core::registry::{AnyConfig, AnyQdisc};
use penstock_core::units::{Instant, Limit};

/// A discipline with the time of its last wake-up.
#[derive(Debug)]
pub(super) struct Queue<P: Packet> {
    /// What it was built of.
    pub built: (AnyConfig, Limit),
    pub qdisc: AnyQdisc<Stamped<P>>,
    /// When `on_wakeup` was called last; it is called only once for each time.
    pub woken: Option<Instant>,
}

impl<P: Packet> Queue<P> {
    /// Creates the queue of a discipline, which was built of this configuration.
    pub fn new(qdisc: AnyQdisc<Stamped<P>>, aqm: &AnyConfig, limit: Limit) -> Self {
        Self { built: (aqm.clone(), limit), qdisc, woken: None }
    }

    /// Returns when the discipline wants to be woken next.
    pub fn next_wakeup(&self) -> Option<Instant> {
        self.qdisc.next_wakeup().filter(|at| self.woken.is_none_or(|woken| *at > woken))
    }

    /// Wakes the discipline if it wants to be woken at `at`; returns whether it did.
    pub fn wake(&mut self, at: Instant) -> bool {
        let due = self.next_wakeup().is_some_and(|wakeup| wakeup <= at);
        if due {
            self.woken = Some(at);
            self.qdisc.on_wakeup(at);
        }
        due
    }
}
