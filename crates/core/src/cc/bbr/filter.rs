//! The largest sample of the last rounds in constant space: the windowed filter of Kathleen Nichols, as in Linux
//! (`lib/win_minmax.c`). It keeps the best, the second best and the third best sample; each is later than the better
//! one.

/// The round of a sample and its value.
type Sample = (u64, f64);

/// The largest sample of a window of rounds.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::cc) struct WindowedMax {
    /// Length of the window in rounds.
    window: u64,
    /// Best, second best and third best sample.
    best: [Sample; 3],
}

impl WindowedMax {
    /// Creates an empty filter over `window` rounds.
    pub fn new(window: u64) -> Self {
        Self { window, best: [(0, 0.0); 3] }
    }

    /// Sets the length of the window in rounds, from the next sample on.
    pub fn set_window(&mut self, window: u64) {
        self.window = window;
    }

    /// The largest sample of the window; 0 before the first one.
    #[inline]
    pub fn get(&self) -> f64 {
        self.best[0].1
    }

    /// Takes a sample. Rounds never decrease.
    pub fn update(&mut self, round: u64, value: f64) {
        let new = (round, value);
        // A new maximum, or nothing left in the window: forget all earlier samples.
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

    /// Drops samples that left the window (minmax_subwin_update).
    fn expire(&mut self, new: Sample) {
        let [first, second, third] = self.best;
        let age = new.0 - first.0;
        if age > self.window {
            self.best = [second, third, new];
            if new.0 - self.best[0].0 > self.window {
                self.best = [third, new, new];
            }
        } else if second.0 == first.0 && age > self.window / 4 {
            // A quarter of the window passed without a second best sample: take the newest.
            self.best = [first, new, new];
        } else if third.0 == second.0 && age > self.window / 2 {
            // Half of the window passed without a third best sample.
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
