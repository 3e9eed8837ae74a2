//! The values of a link over time: points of a series in order, and states which follow each other at random. Two
//! states, good and bad, are how Lutz et al. describe the channel from a satellite to a car ("The Land Mobile Satellite
//! Communication Channel", IEEE Trans. Veh. Technol. 40(2), 1991); here the states concern packets, not signals.
//!
//! A series may be long. All players of a series share it, each with a position of its own, and every step has the same
//! cost.

use penstock_core::rng::Rng;
use penstock_core::units::{Instant, Rate, Span};
use std::sync::Arc;

/// New values of a link; a value which is `None` stays as it is.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Values {
    /// The new rate in both directions or in one, as the change says.
    pub rate: Option<Rate>,
    /// The new one-way delay.
    pub delay: Option<Span>,
    /// The new probability that the wire loses a packet.
    pub loss: Option<f64>,
}

/// The directions of a link that a change concerns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// Both directions.
    #[default]
    Both,
    /// The direction from the first end to the second.
    Forward,
    /// The direction from the second end to the first.
    Reverse,
}

impl Way {
    /// All variants with their words in scenarios.
    pub const ALL: [(&'static str, Self); 3] =
        [("both", Self::Both), ("forward", Self::Forward), ("reverse", Self::Reverse)];

    /// Returns the word in scenarios.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, way)| *way == self).map_or("both", |(name, _)| name)
    }
}

/// A point of a series: new values at a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Time since the beginning of the series.
    pub at: Span,
    /// The values from this time on.
    pub values: Values,
}

/// Points in the order of their times. After the last point the link keeps its values, or the series begins again.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    points: Vec<Point>,
    every: Option<Span>,
}

impl Series {
    /// Creates a series. The times of `points` increase, and all are before `every`, the time after which the series
    /// repeats.
    pub fn new(points: Vec<Point>, every: Option<Span>) -> Self {
        debug_assert!(points.is_sorted_by(|a, b| a.at < b.at), "points are in order");
        debug_assert!(points.last().zip(every).is_none_or(|(last, every)| last.at < every), "points fit in a round");
        Self { points, every }
    }

    /// Returns the points of the series.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Returns the time after which the series begins again; `None` if it does not repeat.
    pub fn every(&self) -> Option<Span> {
        self.every
    }

    /// Returns the series as it continues after `since` of its period: the point in force at that time comes first, at
    /// time zero.
    pub fn entered(self, since: Span) -> Self {
        let Some(every) = self.every else { return self };
        let since = Span::from_nanos(since.as_nanos() % every.as_nanos().max(1));
        let passed = self.points.partition_point(|point| point.at <= since);
        let (before, after) = self.points.split_at(passed);
        let now = before.last().or(after.last()).map(|point| Point { at: Span::ZERO, values: point.values });
        let rest = after.iter().map(|point| Point { at: point.at - since, values: point.values });
        let again = before.iter().map(|point| Point { at: point.at + every - since, values: point.values });
        let points = now.into_iter().chain(rest).chain(again).filter(|point| point.at < every);
        Self { points: points.collect(), every: self.every }
    }
}

/// A state of a link which has several states.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct State {
    /// The values of the link in this state.
    pub values: Values,
    /// Mean time for which the state lasts.
    pub lasts: Span,
}

/// A random walk through states: each lasts for an exponentially distributed time, and each of the other states follows
/// with equal probability.
#[derive(Debug, Clone)]
pub struct Walk {
    states: Arc<[State]>,
    /// Index of the state that comes next.
    state: usize,
    rng: Rng,
}

impl Walk {
    /// Creates a walk that begins in the first of the states, of which there is at least one. Two walks with equal
    /// random streams take the same steps.
    pub fn new(states: Arc<[State]>, rng: Rng) -> Self {
        Self { states, state: 0, rng }
    }

    /// Returns the values of the state that begins now, and how long it lasts.
    fn step(&mut self) -> (Values, Span) {
        let state = self.states[self.state];
        let lasts = Span::from_secs_f64(self.rng.exponential(state.lasts.as_secs_f64())).max(Span::from_nanos(1));
        let others = self.states.len().saturating_sub(1).max(1);
        let next = self.state + 1 + self.rng.below(others as u64) as usize;
        self.state = next % self.states.len();
        (state.values, lasts)
    }
}

/// Plays a series or a walk: it knows the next step and its time. A clone takes the same steps.
#[derive(Debug, Clone)]
pub struct Player {
    /// When the next step is due; `Instant::MAX` if no step is left.
    pub due: Instant,
    what: What,
}

#[derive(Debug, Clone)]
enum What {
    Series { series: Arc<Series>, round: Instant, place: usize },
    Walk(Walk),
}

impl Player {
    /// Creates a player that begins the series at `begin`.
    pub fn of_series(series: Arc<Series>, begin: Instant) -> Self {
        let due = series.points.first().map_or(Instant::MAX, |point| begin + point.at);
        Self { due, what: What::Series { series, round: begin, place: 0 } }
    }

    /// Creates a player that begins the walk at `begin`.
    pub fn of_walk(walk: Walk, begin: Instant) -> Self {
        Self { due: begin, what: What::Walk(walk) }
    }

    /// Returns the player with every step later by `by`.
    pub fn later(mut self, by: Span) -> Self {
        self.due += by;
        if let What::Series { round, .. } = &mut self.what {
            *round += by;
        }
        self
    }

    /// Takes the step that is due; returns its values and sets the time of the next step.
    pub fn step(&mut self) -> Values {
        match &mut self.what {
            What::Walk(walk) => {
                let (values, lasts) = walk.step();
                self.due += lasts;
                values
            }
            What::Series { series, round, place } => {
                let Some(point) = series.points.get(*place) else { return Values::default() };
                *place += 1;
                if let Some(every) = series.every.filter(|_| *place == series.points.len()) {
                    (*round, *place) = (*round + every, 0);
                }
                self.due = series.points.get(*place).map_or(Instant::MAX, |next| *round + next.at);
                point.values
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_core::rng::Streams;

    fn loss(loss: f64) -> Values {
        Values { loss: Some(loss), ..Values::default() }
    }

    fn series(points: &[(u64, f64)], every: Option<u64>) -> Series {
        let points = points.iter().map(|(s, p)| Point { at: Span::from_secs(*s), values: loss(*p) }).collect();
        Series::new(points, every.map(Span::from_secs))
    }

    /// Lists the time in seconds and the loss of the first steps.
    fn steps(series: Series, begin: u64, count: usize) -> Vec<(f64, f64)> {
        let mut player = Player::of_series(Arc::new(series), Instant::ZERO + Span::from_secs(begin));
        let mut step = || (player.due.as_secs_f64(), player.step().loss.unwrap_or(-1.0));
        (0..count).map(|_| step()).collect()
    }

    #[test]
    fn a_series_begins_where_it_is_told_and_begins_again() {
        let points = series(&[(0, 0.1), (3, 0.2)], Some(5));
        assert_eq!(steps(points, 10, 5), [(10.0, 0.1), (13.0, 0.2), (15.0, 0.1), (18.0, 0.2), (20.0, 0.1)]);
    }

    #[test]
    fn without_a_period_it_ends_with_its_last_point() {
        let mut player = Player::of_series(Arc::new(series(&[(1, 0.1), (2, 0.2)], None)), Instant::ZERO);
        assert_eq!((player.step(), player.step()), (loss(0.1), loss(0.2)));
        assert_eq!((player.due, player.step()), (Instant::MAX, Values::default()));
    }

    /// A period of 10 s with points at 0, 4 and 8 s is entered after 5 s: the values of 4 s hold at once, those of 8 s
    /// come 3 s later, the next period 5 s later, and its second point 9 s later. Entering 10 s later changes nothing.
    #[test]
    fn a_series_can_be_entered_amid_its_round() {
        let amid = series(&[(0, 0.0), (4, 0.4), (8, 0.8)], Some(10)).entered(Span::from_secs(25));
        assert_eq!(steps(amid, 0, 5), [(0.0, 0.4), (3.0, 0.8), (5.0, 0.0), (9.0, 0.4), (10.0, 0.4)]);
        let whole = series(&[(0, 0.0), (4, 0.4), (8, 0.8)], Some(10));
        assert_eq!(whole.clone().entered(Span::from_secs(10)), whole, "a whole round later nothing differs");
        let at_a_point = whole.entered(Span::from_secs(4));
        assert_eq!(steps(at_a_point, 0, 4), [(0.0, 0.4), (4.0, 0.8), (6.0, 0.0), (10.0, 0.4)]);
    }

    #[test]
    fn a_series_whose_first_point_comes_late_is_entered_in_the_state_of_its_last() {
        let late = series(&[(4, 0.4), (8, 0.8)], Some(10)).entered(Span::from_secs(2));
        assert_eq!(steps(late, 0, 3), [(0.0, 0.8), (2.0, 0.4), (6.0, 0.8)]);
    }

    fn walk(means: &[u64]) -> Player {
        let states = means.iter().enumerate();
        let states = states.map(|(i, s)| State { values: loss(i as f64 / 10.0), lasts: Span::from_secs(*s) });
        Player::of_walk(Walk::new(states.collect(), Streams::new(1).get("sky/states")), Instant::ZERO)
    }

    /// The mean of n exponential times has a standard error of the mean over the square root of n.
    #[test]
    fn two_states_alternate_and_last_as_long_as_they_say() {
        let mut player = walk(&[20, 5]);
        let n = 40_000;
        let mut total = [0.0; 2];
        for step in 0..2 * n {
            let begin = player.due;
            assert_eq!(player.step(), loss((step % 2) as f64 / 10.0), "they alternate");
            total[step % 2] += player.due.since(begin).as_secs_f64();
        }
        for (total, mean) in total.into_iter().zip([20.0, 5.0]) {
            let (found, error) = (total / n as f64, mean / (n as f64).sqrt());
            assert!((found - mean).abs() < 4.0 * error, "{found} s instead of {mean} s");
        }
    }

    /// Of three states each is followed by either of the others with probability 1/2: the count over n steps has a
    /// standard deviation of half the square root of n.
    #[test]
    fn of_several_states_each_goes_to_every_other_with_equal_chance() {
        let mut player = walk(&[1, 1, 1]);
        let mut went = [[0.0; 3]; 3];
        let mut index = || (player.step().loss.unwrap_or(0.0) * 10.0).round() as usize;
        let mut here = index();
        assert_eq!(here, 0, "it begins in the first");
        for _ in 0..60_000 {
            let next = index();
            went[here][next] += 1.0;
            here = next;
        }
        for (from, to) in went.iter().enumerate() {
            assert_eq!(to[from], 0.0, "a state does not follow itself");
            let n: f64 = to.iter().sum();
            let other = to[(from + 1) % 3];
            assert!((other - n / 2.0).abs() < 4.0 * n.sqrt() / 2.0, "{other} of {n}");
        }
    }

    #[test]
    fn who_is_later_takes_the_same_steps() {
        let by = Span::from_millis(1500);
        let round = series(&[(0, 0.1), (3, 0.2)], Some(5));
        for mut one in [walk(&[3, 2, 1]), Player::of_series(Arc::new(round), Instant::ZERO)] {
            let mut other = one.clone().later(by);
            for _ in 0..1000 {
                assert_eq!((one.due + by, one.step()), (other.due, other.step()));
            }
        }
    }

    /// A player with one position takes 100,000 steps: each takes the next point, and no point is read twice.
    #[test]
    fn a_long_series_takes_one_step_at_a_time() {
        let points: Vec<_> = (0..100_000).map(|ms| Point { at: Span::from_millis(ms), values: loss(0.5) }).collect();
        let shared = Arc::new(Series::new(points, Some(Span::from_secs(100))));
        let mut player = Player::of_series(shared.clone(), Instant::ZERO);
        for ms in 0..250_000 {
            assert_eq!(player.due, Instant::ZERO + Span::from_millis(ms));
            player.step();
        }
        assert_eq!(Arc::strong_count(&shared), 2, "points are not copied");
    }
}
