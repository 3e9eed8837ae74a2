//! The largest of the last rounds, in constant space: Kathleen Nichols' windowed filter, as Linux has it
//! (`lib/win_minmax.c`). It keeps the best, the second and the third best sample, each later than the one before.

/// A sample and its round.
type Sample = (u64, f64);

/// The largest sample of a window of rounds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct WindowedMax {
    window: u64,
    best: [Sample; 3],
}

impl WindowedMax {
    pub fn new(window: u64) -> Self {
        Self { window, best: [(0, 0.0); 3] }
    }

    #[inline]
    pub fn get(&self) -> f64 {
        self.best[0].1
    }

    pub fn update(&mut self, round: u64, value: f64) {
        let new = (round, value);
        if value >= self.best[0].1 || round - self.best[2].0 > self.window {
            self.best = [new; 3];
            return;
        }
        if value >= self.best[1].1 {
            (self.best[1], self.best[2]) = (new, new);
        } else if value >= self.best[2].1 {
            self.best[2] = new;
        }
        self.expire(new);
    }

    fn expire(&mut self, new: Sample) {
        let [first, second, third] = self.best;
        let age = new.0 - first.0;
        if age > self.window {
            self.best = [second, third, new];
            if new.0 - self.best[0].0 > self.window {
                self.best = [third, new, new];
            }
        } else if second.0 == first.0 && age > self.window / 4 {
            // A quarter of the window without a second best: this is it.
            self.best = [first, new, new];
        } else if third.0 == second.0 && age > self.window / 2 {
            self.best[2] = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_leaves_after_its_window() {
        let mut filter = WindowedMax::new(10);
        filter.update(1, 50.0);
        (2..=11).for_each(|round| filter.update(round, 20.0));
        assert_eq!(filter.get(), 50.0);
        filter.update(12, 20.0);
        assert_eq!(filter.get(), 20.0);
    }

    #[test]
    fn the_second_best_follows_the_best() {
        let mut filter = WindowedMax::new(10);
        filter.update(1, 50.0);
        filter.update(5, 40.0);
        (6..=11).for_each(|round| filter.update(round, 20.0));
        filter.update(12, 20.0);
        assert_eq!(filter.get(), 40.0);
        filter.update(13, 60.0);
        assert_eq!(filter.get(), 60.0);
    }

    proptest::proptest! {
        /// Never below the newest sample, never above the largest of the window, and never older than it.
        #[test]
        fn it_is_within_the_samples_of_its_window(samples in proptest::collection::vec((0u64..4, 1u32..1000), 1..200)) {
            let mut filter = WindowedMax::new(10);
            let mut seen: Vec<(u64, f64)> = vec![];
            let mut round = 1;
            for (step, value) in samples {
                round += step;
                seen.push((round, value.into()));
                filter.update(round, value.into());
                let largest = seen.iter().filter(|s| round - s.0 <= 10).map(|s| s.1).fold(0.0, f64::max);
                proptest::prop_assert!((f64::from(value)..=largest).contains(&filter.get()));
            }
        }
    }
}
