//! When windows step: with "steady", a window is one of the two numbers of whole segments next to what is due, and keeps
//! it for as long as its flow is owed little. A flow steps up when another has stepped down.
//!
//! Every step disturbs. Data that a window of fixed size lets go arrive one round trip after those before, so flows with
//! fixed windows whose sum is the bandwidth-delay product find their places between each other, and no queue stands. A
//! step up puts a segment where others are, and a step down leaves a hole. If each flow steps by its own account, as with
//! "dither", the sum of the windows varies with the root of their number, and both a queue and holes remain: with 64
//! flows whose shares are 1.4 segments, 7 ms of queue and 3 % of the link.
//!
//! ```text
//! owed = sum over flows of (due - given), as far as it is not settled by a step; 1/16 is forgotten with each round
//! up   if  due + credit - window >=  r * 3/2 step          r = 1/2 - owed / (4 segments), within 0 and 1
//! down if  due + credit - window <= -(1 - r) * 3/2 step
//! ```

use super::Pink;
use super::flow::{Flow, in_units, up};
use crate::units::Span;

/// A flow that is owed this much, in halves of a step, steps up whatever is owed to others. Steps down are alike.
const FARTHEST: i64 = 3;
/// Number of segments owed to all flows together over which the readiness to step goes from 0 to 1.
const RANGE: i64 = 4;
/// Largest number of segments owed to all flows together that is remembered; a few flows can settle it.
const MEMORY: i64 = 16;
/// Each round of a flow forgets one part in this many of what is owed to all; the credits of the flows still have it.
const FORGET: i64 = 16;
/// Denominator of the readiness to step.
const WHOLE: i64 = 1024;
/// The queue is long if it holds more than one part in this many of its room.
const LONG: u64 = 3;

/// Bytes that are due to all flows together and that no step has settled yet.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Owed(i64);

impl Owed {
    /// Notes that a flow ended a round by which `more` was owed to it, and that its window stepped down by `down`.
    pub fn note(&mut self, more: i64, down: i64, segment: u64) {
        let owed = self.0 + more + down;
        let most = MEMORY * segment as i64;
        self.0 = (owed - owed / FORGET).clamp(-most, most);
    }

    /// Returns r, in parts of [`WHOLE`]: 0 if flows shall step up, [`WHOLE`] if they shall step down.
    fn reluctance(self, segment: u64) -> i64 {
        (WHOLE / 2 - self.0 * WHOLE / (RANGE * segment.max(1) as i64)).clamp(0, WHOLE)
    }
}

/// Returns the bytes of a step of one segment. A unit of the window field that is more than two thirds of a segment can
/// write no whole segments. A sender that `splits` segments fills what is left over: a step is then the units that hold a
/// segment, so that each window is a whole number of steps. One that sends whole segments alone leaves it.
pub(super) fn stride(segment: u64, unit: u64, splits: bool) -> u64 {
    let whole = 3 * unit <= 2 * segment || !splits && unit <= segment;
    if whole { segment } else { up(segment, unit) }
}

/// The inputs of the decision about a step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    /// Window in bytes that the flow would have without steps.
    pub share: u64,
    /// Bytes due in the round that ended with this ACK; `None` amid a round.
    pub due: Option<u64>,
    /// Window in bytes before this ACK.
    pub before: u64,
    /// Bytes of a step of one segment: [`stride`].
    pub segment: u64,
    /// True while a long queue waits. What is owed is not paid then.
    pub crowded: bool,
}

impl Flow {
    /// Returns the largest error in bytes that a step of `segment` bytes waits for: a window one step beyond what is due steps up
    /// again if this much is owed. With less the flow would stay there, whatever it lacks.
    pub(super) fn most_owed(&self, segment: u64) -> u64 {
        let step = if self.wants_pairs() { 2 * segment } else { segment };
        step + FARTHEST as u64 * step / 2
    }

    /// Returns the window of whole segments next to that before the ACK, and the window from now on.
    pub(super) fn step(&self, at: &Step, reluctance: i64) -> (u64, u64) {
        let segment = at.segment;
        let pairs = self.wants_pairs();
        // Below two segments a round is a lone segment, for which the receiver waits, or a pair.
        let few = pairs && at.share < 2 * segment;
        let step = if pairs && !few { 2 * segment } else { segment };
        let nearest = |bytes: u64| ((bytes + step / 2) / step).max(1) * step;
        let current = nearest(at.before);
        let window = match at.due {
            _ if at.crowded => (at.share / step).max(1) * step,
            Some(due) => {
                stepped(if few { at.share } else { due }, step, few, current, i64::from(self.credit), reluctance)
            }
            // Shares change amid rounds when flows come and go.
            None if current + 2 * step >= at.share && current <= at.share + at.share / 8 + step => current,
            None => nearest(at.share),
        };
        (current, if few { window.min(2 * segment) } else { window })
    }
}

/// Returns the window after a round in which `due` was due.
fn stepped(due: u64, step: u64, few: bool, current: u64, credit: i64, reluctance: i64) -> u64 {
    let lower = (due / step).max(1) * step;
    let upper = lower + step;
    let (least, most) = if few { (step, 2 * step) } else { (lower.saturating_sub(step).max(step), upper + step) };
    let current = current.clamp(least, most);
    let owed = due as i64 + credit - current as i64;
    let part = |part: i64| FARTHEST * step as i64 * part / (2 * WHOLE);
    let up_at = part(if current <= lower { reluctance } else { WHOLE });
    let down_at = part(if current >= upper { WHOLE - reluctance } else { WHOLE });
    if owed >= up_at {
        (current + step).min(most)
    } else if owed <= -down_at {
        current.saturating_sub(step).max(least)
    } else {
        current
    }
}

impl Pink {
    /// Returns the window of a flow at an ACK, with "steady". `owed` is what was owed to the flow before the ACK.
    pub(super) fn step(&mut self, id: usize, at: &Step, owed: i16, unit: u64) -> u64 {
        let flow = &self.flows[id];
        let (current, window) = flow.step(at, self.owed.reluctance(at.segment));
        if at.due.is_some() {
            let more = i64::from(flow.credit) - i64::from(owed);
            self.owed.note(more, current as i64 - window as i64, at.segment);
        }
        in_units(window, at.segment, unit, flow)
    }

    /// Returns true while the queue is long.
    pub(super) fn is_crowded(&self, full: u64, rtt: Option<Span>) -> bool {
        self.backlogs.lately() > self.burst_room(full, rtt.unwrap_or(Span::ZERO)) / LONG
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A share of 2.75 segments of 1000 bytes, and a flow that has 2 or 3.
    fn after(current: u64, credit: i64, owed: i64) -> u64 {
        stepped(2750, 1000, false, current, credit, Owed(owed).reluctance(1000))
    }

    /// In between, it takes a flow 750 bytes to step: half of a step and a half.
    #[test]
    fn a_flow_steps_up_when_others_have_stepped_down() {
        assert_eq!((after(2000, -10, 0), after(2000, 0, 0)), (2000, 3000));
        assert_eq!((after(3000, -490, 0), after(3000, -500, 0)), (3000, 2000));
        // Two segments are owed to all: who is owed anything steps up, and none steps down before it has 1500 too much.
        assert_eq!((after(2000, -760, 2000), after(2000, -750, 2000)), (2000, 3000));
        assert_eq!((after(3000, -1240, 2000), after(3000, -1250, 2000)), (3000, 2000));
        // All have two segments too much: the reverse.
        assert_eq!((after(2000, 740, -2000), after(2000, 750, -2000)), (2000, 3000));
        assert_eq!((after(3000, 260, -2000), after(3000, 250, -2000)), (3000, 2000));
    }

    /// 512 bytes are half of a segment of 1000, so two segments are written as 2048; 1024 are more than two thirds.
    #[test]
    fn a_step_is_the_units_that_hold_a_segment_where_no_segment_can_be_written() {
        assert_eq!(
            [stride(1000, 1, true), stride(1000, 512, true), stride(1536, 1024, true), stride(1448, 512, true)],
            [1000, 1000, 1536, 1448]
        );
        assert_eq!(
            [stride(1000, 1024, true), stride(1448, 1024, true), stride(536, 512, true), stride(1448, 1 << 14, true)],
            [1024, 2048, 1024, 1 << 14]
        );
        assert_eq!(
            [stride(1448, 1024, false), stride(1024, 1024, false), stride(1000, 1024, false)],
            [1448, 1024, 1024],
            "who sends whole segments alone"
        );
    }

    #[test]
    fn a_window_far_from_its_share_comes_near_at_once() {
        assert_eq!(after(9000, 0, 0), 4000 - 1000, "4000 at most, and that is 1250 too much");
        assert_eq!(after(9000, 2000, 0), 4000);
        assert_eq!(after(1000, 0, 0), 2000);
    }

    /// Two flows, alike in all: what one steps up the other has stepped down, so their sum stays within one segment.
    #[test]
    fn the_sum_of_windows_stays_that_of_the_shares() {
        let (share, mut owed) = (2300i64, Owed::default());
        let mut flows: Vec<(u64, i64)> = vec![(2000, 0); 10];
        for turn in 0..5000 {
            let (window, credit) = &mut flows[turn % 10];
            let more = share - *window as i64;
            *credit += more;
            let next = stepped(share as u64, 1000, false, *window, *credit, owed.reluctance(1000));
            owed.note(more, *window as i64 - next as i64, 1000);
            *window = next;
            let sum: u64 = flows.iter().map(|flow| flow.0).sum();
            assert!(turn < 500 || sum.abs_diff(23_000) <= 2000, "{sum} after {turn}");
            assert!(flows.iter().all(|flow| flow.1.abs() <= 3000), "{flows:?}");
        }
    }
}
