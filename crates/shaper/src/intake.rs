//! Measurements of the emulator when it reads the packets of one direction.

use penstock_core::units::{Instant, Span};

/// Bound of the lateness of packets. If more than one packet of a hundred was later than this, the run is disturbed:
/// its numbers depend on the machine as much as on the discipline.
pub const DISTURBED_ABOVE: Span = Span::from_millis(1);
/// A shorter wait delays a packet no more than the lateness that a run may have.
const USUAL: Span = DISTURBED_ABOVE;

/// What can go wrong before a packet arrives at the discipline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Intake {
    /// Number of packets larger than the MTU with which the run began. They are forwarded whole.
    pub oversize: u64,
    /// Number of packets that the kernel dropped because they were not read in time.
    pub unread: u64,
    /// For how long the wire was idle although a packet waited in the kernel; waits of up to 1 ms do not count.
    pub starved: Span,
    /// When there was last nothing to read.
    emptied: Instant,
}

impl Intake {
    /// Notes that nothing was left to read at `now`.
    pub fn note_empty(&mut self, now: Instant) {
        self.emptied = now;
    }

    /// Notes that a packet was read at `now` for a wire which has been idle since `idle_since`. If the process slept until the
    /// packet came, `came` is when that was, without the time without a processor; if it did not sleep, `came` is `None`, and
    /// the packet may be as old as the last look at an empty queue.
    pub fn note_idle(&mut self, idle_since: Instant, came: Option<Instant>, now: Instant) {
        self.note_starved(now.since(idle_since.max(self.emptied).max(came.unwrap_or(Instant::ZERO))));
    }

    /// Notes that a packet came so late to a wire that was idle.
    pub fn note_starved(&mut self, starved: Span) {
        if starved > USUAL {
            self.starved = self.starved + starved;
        }
    }
}
