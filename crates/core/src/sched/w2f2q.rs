//! W²F²Q: WF²Q+ for a wireless link. A class whose channel is bad is skipped, keeps its timestamps and is served first
//! when its channel is good again.
//!
//! Source: Yi, Seok, Kwon, Choi, Park, "W²F²Q: packet fair queuing in wireless packet networks", WoWMoM 2000, of which
//! only the abstract was available; 002 §4.2.5 for the two-state channel and for the cost. According to the abstract,
//! the algorithm is based on WF²Q+, in which timestamps stay within a bound of V, so that timestamps beyond the bound
//! identify lagging and leading classes; it has a readjustment and graceful degradation. This implementation reads it
//! as follows:
//!
//! ```text
//! S, F:              as in WF²Q+, for all classes, whatever their channel;  V as there, as packets are sent
//! V:                 at least the least S of all classes with packets, good and bad
//! dequeue:           of the good classes with S <= V that with the least F
//!                    else, as only bad ones have S <= V: the good class with the least S; it leads from now on
//! lag:               while a channel is bad, S = max(S, V - lag / weight): a class is paid back at most `lag` bytes
//! lead:              after a packet, S = min(S, V + lead / weight): a class pays back at most `lead` bytes
//! ```
//!
//! The two bounds are the readjustment. The bound `lead` also makes the degradation graceful, since a leading class
//! waits for at most that much. If all channels are good, the algorithm equals WF²Q+ packet by packet:
//! `without_errors_it_is_wf2q_plus`. If all classes with packets have bad channels, no class is served. Cost: O(n), as
//! in the source.

use super::virtual_time::{Clock, before, later, span};
use super::{Scheduler, SchedulerConfig, Setup, Weight, no_class};
use crate::config::ConfigError;
use crate::units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of W²F²Q.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The most bytes that a class whose channel was bad is compensated with; the default is 16 largest packets.
    pub lag: Option<Bytes>,
    /// The most bytes that a class which was served in place of others has to give back; the default is 16 largest
    /// packets.
    pub lead: Option<Bytes>,
}

/// The largest value of `lag` and `lead`: the bytes must fit virtual time.
const MAX_BYTES: u64 = 1 << 25;
const DEFAULT_PACKETS: u64 = 16;

impl SchedulerConfig for Config {
    type Scheduler = W2f2q;

    fn validate(&self, setup: &Setup<'_>) -> Result<(), ConfigError> {
        setup.validate()?;
        for (key, bytes) in [("lag", self.lag), ("lead", self.lead)] {
            if bytes.is_some_and(|bytes| bytes < setup.max_packet || bytes.get() > MAX_BYTES) {
                let message = format!("must be {} (the largest packet) to {}", setup.max_packet, Bytes::new(MAX_BYTES));
                return Err(ConfigError::new(key, message));
            }
        }
        Ok(())
    }

    fn scheduler(&self, setup: &Setup<'_>) -> W2f2q {
        let class =
            |weight: &Weight| Class { start: 0, finish: 0, head: Bytes::ZERO, weight: *weight, place: 0, good: true };
        let default = Bytes::new(DEFAULT_PACKETS * setup.max_packet.get());
        W2f2q {
            max_packet: setup.max_packet,
            lag: self.lag.unwrap_or(default),
            lead: self.lead.unwrap_or(default),
            clock: Clock::new(setup.weights),
            last_finish: 0,
            classes: setup.weights.iter().map(class).collect(),
            backlogged: Vec::with_capacity(setup.weights.len()),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
struct Class {
    start: u64,
    finish: u64,
    /// Size of the packet at the head of the queue; 0 without packets.
    head: Bytes,
    weight: Weight,
    /// The index of the class in the list of classes with packets.
    place: u32,
    good: bool,
}

impl Class {
    #[inline]
    fn stamp(&mut self, start: u64, head: Bytes) {
        self.start = start;
        self.head = head;
        self.finish = start.wrapping_add(span(head, self.weight));
    }

    /// Limits the lag to `lag` bytes: the virtual start becomes at least V - lag / weight.
    fn readjust(&mut self, now: u64, lag: Bytes) {
        let least = now.wrapping_sub(span(lag, self.weight));
        if before(self.start, least) {
            self.stamp(least, self.head);
        }
    }
}

/// The W²F²Q scheduler.
#[derive(Debug, Clone, PartialEq)]
pub struct W2f2q {
    max_packet: Bytes,
    lag: Bytes,
    lead: Bytes,
    clock: Clock,
    last_finish: u64,
    classes: Vec<Class>,
    /// Classes with packets, in no particular order.
    backlogged: Vec<u32>,
}

impl W2f2q {
    /// Returns the class with packets whose `time` is the earliest, and of equal ones the lowest; classes for which it is
    /// `None` are left out. Times are compared by what they are after V, which costs least in a loop over all classes.
    #[inline]
    fn earliest(&self, time: impl Fn(&Class) -> Option<u64>) -> Option<u32> {
        const NOBODY: (i64, u32) = (i64::MAX, u32::MAX);
        let now = self.clock.now;
        let after = |class: &u32| {
            time(&self.classes[*class as usize]).map_or(NOBODY, |at| (at.wrapping_sub(now) as i64, *class))
        };
        let first = self.backlogged.iter().map(after).min()?;
        (first != NOBODY).then_some(first.1)
    }
}

impl Scheduler for W2f2q {
    fn classes(&self) -> usize {
        self.classes.len()
    }

    fn max_packet(&self) -> Bytes {
        self.max_packet
    }

    fn enqueue(&mut self, class: u32, size: Bytes, idle: bool) {
        if idle {
            let place = self.backlogged.len() as u32;
            self.backlogged.push(class);
            let state = &mut self.classes[class as usize];
            state.place = place;
            // F is at most `lead` after V at the end of a packet, which is at most a packet after V at its begin.
            let ahead = span(self.lead, Weight::ONE) + span(self.max_packet, Weight::ONE);
            state.stamp(self.clock.start(class, state.finish, ahead), size);
            self.last_finish = later(self.last_finish, state.finish);
        }
    }

    fn dequeue(&mut self) -> Option<u32> {
        self.clock.finish();
        if self.backlogged.is_empty() {
            // The link is idle: V is at least every F.
            self.clock.at_least(self.last_finish);
            return None;
        }
        let (now, lag, mut least) = (self.clock.now, self.lag, i64::MAX);
        for class in &self.backlogged {
            let state = &mut self.classes[*class as usize];
            if !state.good {
                state.readjust(now, lag);
            }
            least = least.min(state.start.wrapping_sub(now) as i64);
        }
        // V is at least the smallest S of all classes with packets, whatever their channels.
        self.clock.at_least(now.wrapping_add_signed(least));
        let now = self.clock.now;
        let eligible = self.earliest(|class| (class.good && !before(now, class.start)).then_some(class.finish));
        // If only classes with bad channels have S <= V, the good class with the smallest S is served and leads.
        eligible.or_else(|| self.earliest(|class| class.good.then_some(class.start)))
    }

    fn served(&mut self, class: u32, size: Bytes, head: Option<Bytes>) {
        self.clock.advance(class, size);
        let now = self.clock.now;
        let state = &mut self.classes[class as usize];
        let most = now.wrapping_add(span(self.lead, state.weight));
        // Readjustment: a leading class gives back at most `lead` bytes.
        let start = if before(most, state.finish) { most } else { state.finish };
        match head {
            Some(head) => state.stamp(start, head),
            None => {
                (state.finish, state.head) = (start, Bytes::ZERO);
                let place = state.place;
                self.backlogged.swap_remove(place as usize);
                if let Some(moved) = self.backlogged.get(place as usize) {
                    self.classes[*moved as usize].place = place;
                }
            }
        }
        self.last_finish = later(self.last_finish, self.classes[class as usize].finish);
    }

    fn progress(&mut self, sent: Bytes) {
        self.clock.progress(sent);
    }

    fn set_weight(&mut self, class: u32, weight: Weight) -> Result<(), ConfigError> {
        let known = self.classes.len();
        let state = self.classes.get_mut(class as usize).ok_or_else(|| no_class(class, known))?;
        self.clock.change(state.weight, weight)?;
        state.weight = weight;
        Ok(())
    }

    fn set_channel(&mut self, class: u32, good: bool) {
        let now = self.clock.so_far();
        let Some(state) = self.classes.get_mut(class as usize) else { return };
        let was_good = std::mem::replace(&mut state.good, good);
        if good && !was_good && state.head != Bytes::ZERO {
            state.readjust(now, self.lag);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Queues, queues};
    use super::super::wf2q_plus;
    use super::*;
    use proptest::prelude::*;

    fn w2f2q(lag: u64, lead: u64, weights: &[u32]) -> Queues<W2f2q> {
        queues(&Config { lag: Some(Bytes::new(lag)), lead: Some(Bytes::new(lead)) }, weights)
    }

    fn counts(order: &[u32], classes: u32) -> Vec<usize> {
        (0..classes).map(|class| order.iter().filter(|served| **served == class).count()).collect()
    }

    /// While the channel of 1 is bad, class 0 has the link for 10 packets of 1500 B, which move V by 750 each (the sum
    /// of weights is 2). Class 1 then lags by 5 packets; class 0, which sent 10 packets and was due 5, leads by 5.
    /// Class 1 is served 10 packets in a row.
    #[test]
    fn a_class_is_paid_back_what_it_lost() {
        let mut queues = w2f2q(150_000, 150_000, &[1, 1]);
        (0..2).for_each(|class| queues.offer(class, &[1500; 40]));
        queues.queues.scheduler_mut().set_channel(1, false);
        assert_eq!(queues.serve_n(10), [0; 10]);
        queues.queues.scheduler_mut().set_channel(1, true);
        assert_eq!(queues.serve_n(10), [1; 10]);
        assert_eq!(counts(&queues.serve_n(20), 2), [10, 10]);
    }

    /// Lag and lead are bounded by two packets: two packets of lag are compensated, and no more than two packets of
    /// lead are given back.
    #[test]
    fn lag_and_lead_are_readjusted() {
        let mut queues = w2f2q(3000, 3000, &[1, 1]);
        (0..2).for_each(|class| queues.offer(class, &[1500; 60]));
        queues.queues.scheduler_mut().set_channel(1, false);
        assert_eq!(queues.serve_n(20), [0; 20]);
        queues.queues.scheduler_mut().set_channel(1, true);
        // Class 1 starts 3000 behind V and class 0 is 3000 ahead: class 1 sends 4 packets before the two meet.
        let order = queues.serve_n(20);
        assert_eq!(order[..4], [1; 4]);
        assert_eq!(counts(&order, 2), [8, 12]);
    }

    /// The channel of 1 is bad for so long that virtual time wraps. Class 0 is served alone; its weight is half of the
    /// sum.
    #[test]
    fn a_channel_that_is_bad_for_very_long_is_not_taken_for_a_leader() {
        let mut queues = w2f2q(3000, 3000, &[1, 1]);
        (0..2).for_each(|class| queues.offer(class, &[1500; 40]));
        queues.queues.scheduler_mut().set_channel(1, false);
        for _ in 0..20 {
            assert_eq!(queues.serve_n(1), [0]);
            let scheduler = queues.queues.scheduler_mut();
            scheduler.clock.begin(scheduler.clock.now.wrapping_add(1 << 60));
            scheduler.classes[0].stamp(scheduler.clock.now, Bytes::new(1500));
        }
        queues.queues.scheduler_mut().set_channel(1, true);
        assert_eq!(queues.serve_n(2), [1, 1]);
        assert_eq!(counts(&queues.serve_n(20), 2), [10, 10]);
    }

    #[test]
    fn none_is_served_while_all_channels_are_bad() {
        let mut queues = w2f2q(1500, 1500, &[1, 1]);
        queues.offer(0, &[100; 2]);
        queues.queues.scheduler_mut().set_channel(0, false);
        assert!(queues.serve().is_empty());
        queues.offer(1, &[100; 2]);
        assert_eq!(queues.serve(), [1, 1]);
        queues.queues.scheduler_mut().set_channel(0, true);
        assert_eq!(queues.serve(), [0, 0]);
    }

    #[test]
    fn bounds_below_a_packet_are_refused() {
        let setup = Setup { weights: &[Weight::ONE], max_packet: Bytes::new(1500) };
        for bytes in [0, 1499, MAX_BYTES + 1] {
            let config = Config { lag: None, lead: Some(Bytes::new(bytes)) };
            assert!(config.validate(&setup).unwrap_err().to_string().contains("lead: must be 1.5kB"));
        }
    }

    proptest! {
        #[test]
        fn without_errors_it_is_wf2q_plus(
            weights in prop::collection::vec(1u32..50, 2..8),
            events in prop::collection::vec((any::<bool>(), 0usize..8, 40u64..1500), 1..300),
        ) {
            let mut wireless = queues(&Config::default(), &weights);
            let mut wired = queues(&wf2q_plus::Config::default(), &weights);
            for (arrival, class, size) in events {
                if arrival {
                    let class = (class % weights.len()) as u32;
                    wireless.offer(class, &[size]);
                    wired.offer(class, &[size]);
                } else {
                    prop_assert_eq!(wireless.serve_n(1), wired.serve_n(1));
                }
            }
            prop_assert_eq!(wireless.serve(), wired.serve());
        }
    }
}
