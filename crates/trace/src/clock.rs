//! The times of a capture since its first packet, when its clock was set or its packets are not in order.
//!
//! A packet may have an earlier time than one before it for two reasons. Files that were merged, and network cards with several
//! queues, have packets out of order: their times are right. A clock that was set back has them in order: then later packets
//! keep their distances. A step of up to [`DISORDER`] is always disorder. For a longer one the packet itself tells: if its
//! connection goes on (its numbers are those that follow), the clock was set; if it is older than what was seen of
//! its connection, or of a flow that was not seen before, the file is out of order. What is before the first packet was not
//! in order either way, and a step of more than [`LEAP`] forward is a clock that was set as well.

use crate::arrival::MAX_TIME;
use crate::link::FlowKey;
use crate::notes::ClockSet;
use penstock_core::units::{Instant, Span};
#[expect(clippy::disallowed_types, reason = "keys are looked up, and never iterated")]
use std::collections::HashMap;

/// A packet this much earlier than the one before it is out of order.
const DISORDER: i128 = 50_000_000;
/// A gap that no capture has.
const LEAP: i128 = MAX_TIME.as_nanos() as i128 / 2;

/// Which connection a packet is of, in which direction, and how far it has got: sequence and acknowledgment number of TCP.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// The connection.
    pub key: FlowKey,
    /// True if the packet goes from the smaller end to the larger.
    pub forward: bool,
    /// Sequence and acknowledgment number; `None` without TCP.
    pub numbers: Option<(u32, u32)>,
}

/// Turns the times of a file into times since its first packet.
#[derive(Debug, Default)]
pub struct Clock {
    /// What is taken from a time of the file; `None` before the first packet.
    begin: Option<i128>,
    /// The time of the packet before, by the file, and the gap before it.
    before: i128,
    gap: i128,
    /// The latest time so far, since the first packet.
    latest: i128,
    #[expect(clippy::disallowed_types, reason = "keys are looked up, and never iterated")]
    seen: HashMap<(FlowKey, bool), Option<(u32, u32)>>,
    /// What was found.
    pub set: ClockSet,
    /// Number of packets that were earlier than one before them.
    pub out_of_order: u64,
}

impl Clock {
    /// Returns the time of a packet since the first one. It is not negative, but may be earlier than those before.
    pub fn time(&mut self, epoch_ns: i128, of: &Progress) -> Instant {
        let begin = *self.begin.get_or_insert_with(|| {
            self.before = epoch_ns;
            epoch_ns
        });
        let step = epoch_ns - self.before;
        let mut since = epoch_ns - begin;
        if step > LEAP || (step < -DISORDER && (since < 0 || self.goes_on(of))) {
            let meant = self.latest + self.gap;
            self.begin = Some(epoch_ns - meant);
            self.set.times += 1;
            let seconds = step as f64 / 1e9;
            if seconds.abs() > self.set.seconds.abs() {
                self.set.seconds = seconds;
            }
            since = meant;
        } else if step >= 0 {
            self.gap = step;
        }
        self.set.packets += u64::from(self.set.times > 0);
        self.before = epoch_ns;
        self.out_of_order += u64::from(since < self.latest);
        self.latest = self.latest.max(since);
        self.seen.insert((of.key, of.forward), of.numbers);
        Instant::ZERO + Span::from_nanos(since.clamp(0, MAX_TIME.as_nanos().into()) as u64)
    }

    /// Returns true if the packet is newer than what was seen of its connection.
    fn goes_on(&self, of: &Progress) -> bool {
        match (self.seen.get(&(of.key, of.forward)), of.numbers) {
            (None, _) => false,
            (Some(Some((seq, ack))), Some(numbers)) => {
                // What acknowledges as much may be sent again.
                let [sent, acked] = [numbers.0.wrapping_sub(*seq), numbers.1.wrapping_sub(*ack)].map(|n| n as i32);
                acked > 0 || (acked == 0 && sent >= 0)
            }
            (Some(_), _) => true,
        }
    }
}
