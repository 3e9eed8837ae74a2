//! The machine on which an emulator runs: how it waits, whether it ran when it had to.

use crate::waits::Waits;
use penstock_core::units::{Instant, Span};
use penstock_linux::scheduling::Awake;
use penstock_linux::stalls::{ProcessorWait, Stalls, Suspension};
use std::num::NonZero;
use std::thread;

/// A call of `ppoll` that took no longer has not slept: a packet was there before.
const NO_SLEEP: Span = Span::from_micros(5);

/// The machine as this thread has it.
pub struct Machine {
    pub stalls: Stalls,
    pub suspension: Suspension,
    /// For how long this thread had no processor.
    pub processor: ProcessorWait,
    pub waits: Waits,
    /// Number of times without memory for another packet.
    pub short_of_memory: u64,
    pub awake: Option<Awake>,
    /// When the loop last came back from its sleep.
    pub woken: Instant,
    pub wakeup: Wakeup,
}

/// Why a sleep ended: which interfaces have packets.
#[derive(Debug, Default)]
pub struct Wakeup {
    pub readable: [bool; 2],
    /// Whether the queues of the kernel have let packets go.
    pub let_go: [bool; 2],
    /// When the first packet came; `None` if that is not known.
    pub came: Option<Instant>,
}

/// A sleep, or a look without one.
#[derive(Debug, Clone, Copy)]
pub struct Sleep {
    begin: Instant,
    timeout: Span,
    /// For how long the thread had waited for a processor before, if it sleeps while a wire has nothing to send.
    before: Option<Span>,
}

impl Machine {
    /// The machine, on which this process has so many wires.
    pub fn new(wires: usize, awake: Option<Awake>) -> Self {
        Self {
            stalls: Stalls::default(),
            suspension: Suspension::default(),
            processor: ProcessorWait::open(),
            waits: Waits::among(wires, thread::available_parallelism().map_or(1, NonZero::get)),
            short_of_memory: 0,
            awake,
            woken: Instant::ZERO,
            wakeup: Wakeup::default(),
        }
    }

    /// Begins a sleep; `idle` tells whether a wire has nothing to send.
    pub fn sleep(&mut self, begin: Instant, timeout: Span, idle: bool) -> Sleep {
        self.stalls.note(self.woken, begin);
        let before = (idle && timeout > Span::ZERO).then(|| self.processor.so_far());
        Sleep { begin, timeout, before }
    }

    pub fn wake(&mut self, sleep: &Sleep, woken: Instant) {
        self.stalls.note(sleep.begin + sleep.timeout, woken);
        (self.woken, self.wakeup) = (woken, Wakeup::default());
    }
}

impl Sleep {
    /// Returns whether it was one, if it ended then.
    pub fn was(&self, woken: Instant) -> bool {
        woken.since(self.begin) > NO_SLEEP
    }

    /// Returns when a packet came that ended it and was read at `woken`, as far as this matters: a wire was idle. The thread has
    /// waited for a processor for `processor` by now. `None` if it did not sleep: then it is not known.
    pub fn came(&self, woken: Instant, processor: impl FnOnce() -> Span) -> Option<Instant> {
        let Some(before) = self.before else { return Some(woken) };
        // Linux from 6.12 on does not count every wait: then it is at least what the sleep was too long.
        let too_long = woken.since(self.begin + self.timeout);
        let waited = || too_long.max(processor() - before);
        self.was(woken).then(|| Instant::ZERO + woken.since(Instant::ZERO + waited()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sleep of 100 us from 1 ms on, before which the thread had waited for 30 us; it ends after `took`, and the thread has
    /// waited for `processor` by then.
    #[test]
    fn a_packet_waits_for_a_processor_or_for_the_end_of_a_sleep() {
        let us = Span::from_micros;
        for (before, took, processor, expected) in [
            (Some(30), 50, 40, Some(10)),
            (Some(30), 170, 40, Some(70)),
            (Some(30), 6, 30, Some(0)),
            (Some(30), 5, 80, None),
            (None, 170, 40, Some(0)),
            (None, 2, 40, Some(0)),
        ] {
            let begin = Instant::ZERO + us(1000);
            let sleep = Sleep { begin, timeout: us(100), before: before.map(us) };
            let woken = begin + us(took);
            let came = sleep.came(woken, || us(processor));
            assert_eq!(came.map(|came| woken.since(came)), expected.map(us), "{before:?} {took} {processor}");
            assert!(came.is_none_or(|came| came <= woken));
            assert_eq!(sleep.was(woken), took > 5);
        }
    }

    /// Only a sleep of a loop whose wire is idle is looked at; what came before counts for none.
    #[test]
    fn a_loop_that_is_late_was_stopped() {
        let at = |ms: u64| Instant::ZERO + Span::from_millis(ms);
        let mut machine = Machine::new(1, None);
        for (idle, timeout, looked) in [(true, 10, true), (true, 0, false), (false, 10, false)] {
            let sleep = machine.sleep(Instant::ZERO, Span::from_millis(timeout), idle);
            assert_eq!(sleep.before.is_some(), looked);
        }
        assert!(!machine.stalls.any());
        let sleep = machine.sleep(at(200), Span::from_millis(10), true);
        assert_eq!((machine.stalls.times, machine.stalls.total_s), (1, 0.2));
        machine.wake(&sleep, at(510));
        assert_eq!((machine.stalls.times, machine.stalls.total_s, machine.woken), (2, 0.5, at(510)));
    }
}
