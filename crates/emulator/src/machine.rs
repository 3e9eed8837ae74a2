//! The machine on which an emulator runs: how it waits, whether it ran when it had to.

use penstock_core::units::{Instant, Span};
use penstock_linux::scheduling::Awake;
use penstock_linux::stalls::{ProcessorWait, Stalls, Suspension};
use std::num::NonZero;
use std::thread;

use crate::waits::Waits;

/// The machine as this thread has it.
pub struct Machine {
    /// Times in which the process did not run.
    pub stalls: Stalls,
    /// For how long the machine was suspended.
    pub suspension: Suspension,
    /// For how long this thread had no processor.
    pub processor: ProcessorWait,
    /// How the loop waits.
    pub waits: Waits,
    /// Number of times without memory for another packet.
    pub short_of_memory: u64,
    /// Keeps the processors awake.
    pub awake: Option<Awake>,
    /// When the loop last came back from its sleep.
    pub woken: Instant,
    /// Why it came back.
    pub wakeup: Wakeup,
}

/// Why a sleep ended: which interfaces have packets.
#[derive(Debug, Default)]
pub struct Wakeup {
    /// Whether packets of each direction can be read.
    pub readable: [bool; 2],
    /// Whether the queues of the kernel have let packets go.
    pub let_go: [bool; 2],
    /// For how long the process, which slept until now, had no processor; `None` if it did not sleep.
    pub waited: Option<Span>,
}

impl Machine {
    /// The machine, on which this process has so many wires; `awake` keeps its processors awake.
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
}
