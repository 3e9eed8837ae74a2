//! The shaper of cake: when the next packet may go.
//!
//! Source: Høiland-Jørgensen, Täht, Morton 2018, §III-A; `cake_advance_shaper()` of sch_cake.c. There is no bucket of
//! tokens: after an idle time the next packet may go at once, and no more.
//!
//! ```text
//! adjusted   what a packet takes of the link below (`link_layer`)
//! sent       next += adjusted * pace; failsafe += 1.5 * that
//! blocked    now < next and now < failsafe
//! ```

use crate::aqm::cobalt::linux::Pace;
use crate::units::{Instant, Span};

/// When the next packet may go.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Shaper {
    pace: Pace,
    next: Instant,
    failsafe: Instant,
}

impl Shaper {
    pub fn new(pace: Pace) -> Self {
        Self { pace, next: Instant::ZERO, failsafe: Instant::ZERO }
    }

    /// Begins anew when a packet comes to an idle shaper.
    pub fn refresh(&mut self, now: Instant) {
        if self.next < now {
            (self.next, self.failsafe) = (now, now);
        }
    }

    /// Returns when to ask again; `None` if a packet may go now.
    pub fn blocked_until(&self, now: Instant) -> Option<Instant> {
        let until = self.next.min(self.failsafe);
        (until > now).then_some(until)
    }

    /// Charges a packet, or one that was dropped and is charged nevertheless (`ingress`).
    pub fn charge(&mut self, adjusted: u64, is_dropped: bool) {
        let time = self.pace.time_for(adjusted);
        self.next += Span::from_nanos(time);
        if !is_dropped {
            self.failsafe += Span::from_nanos(time + (time >> 1));
        }
    }
}

/// The threshold of a tin: by its own rate, when its next packet would be due.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Threshold {
    pace: Pace,
    next: Instant,
}

impl Threshold {
    pub fn new(pace: Pace) -> Self {
        Self { pace, next: Instant::ZERO }
    }

    /// Begins anew when a packet comes to an empty tin.
    pub fn refresh(&mut self, now: Instant) {
        self.next = self.next.max(now);
    }

    /// Returns how far in the future the next packet is due; below zero if it is late.
    pub fn due_in(&self, now: Instant) -> i64 {
        self.next.as_nanos() as i64 - now.as_nanos() as i64
    }

    /// Charges a packet. A tin that is late catches up; one that is early is at most one packet ahead.
    pub fn charge(&mut self, adjusted: u64, now: Instant) {
        let time = Span::from_nanos(self.pace.time_for(adjusted));
        if self.next < now {
            self.next += time;
        } else {
            self.next = self.next.max(now + time);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 MB/s: 1000 B take 1 ms. The failsafe is later, so `next` decides; after an idle time nothing is saved up.
    #[test]
    fn an_idle_time_is_not_saved_up() {
        let (mut shaper, at) = (Shaper::new(Pace::of(1_000_000)), |ms| Instant::ZERO + Span::from_millis(ms));
        shaper.refresh(at(10));
        assert_eq!(shaper.blocked_until(at(10)), None);
        shaper.charge(1000, false);
        assert_eq!(shaper.blocked_until(at(10)), Some(at(11)));
        assert_eq!(shaper.blocked_until(at(11)), None);
        shaper.refresh(at(50));
        shaper.charge(1000, false);
        assert_eq!(shaper.blocked_until(at(50)), Some(at(51)));
    }

    /// Drops that are charged cannot stop a link: what is sent at two thirds of the rate may always go.
    #[test]
    fn the_failsafe_lets_two_thirds_of_the_rate_through() {
        let (mut shaper, at) = (Shaper::new(Pace::of(1_000_000)), |ms| Instant::ZERO + Span::from_millis(ms));
        shaper.refresh(at(10));
        (0..100).for_each(|_| shaper.charge(1000, true));
        assert_eq!(shaper.blocked_until(at(10)), None);
        shaper.charge(2000, false);
        assert_eq!(shaper.blocked_until(at(10)), Some(at(13)));
    }

    /// 1000 B are 1 ms. Late by 5 ms it catches up 1 ms per packet; early, it is at most one packet ahead.
    #[test]
    fn a_tin_is_at_most_one_packet_ahead() {
        let (mut tin, at) = (Threshold::new(Pace::of(1_000_000)), |ms| Instant::ZERO + Span::from_millis(ms));
        tin.refresh(at(10));
        tin.charge(1000, at(15));
        assert_eq!(tin.due_in(at(15)), -4_000_000);
        tin.refresh(at(15));
        tin.charge(1000, at(15));
        tin.charge(1000, at(15));
        assert_eq!(tin.due_in(at(15)), 1_000_000);
    }
}
