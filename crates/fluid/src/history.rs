//! The past of a solution: values and slopes on the grid of steps, and cubic Hermite polynomials between them.

/// The last values of a solution, as far back as its longest delay.
#[derive(Debug, Clone)]
pub struct History {
    dimension: usize,
    step: f64,
    /// Number of grid points that were kept since the beginning.
    kept: usize,
    /// Number of grid points in the ring.
    room: usize,
    values: Vec<f64>,
    slopes: Vec<f64>,
}

/// A time in the past: the grid point before it and the weights of the four numbers around it.
#[derive(Debug, Clone, Copy)]
pub struct PastTime {
    /// Place of the earlier grid point in the ring; `None` before the beginning, at `before` seconds.
    at: Option<(usize, usize)>,
    weights: [f64; 4],
}

impl History {
    /// Creates the empty history of `dimension` numbers for steps of `step` seconds and delays up to `horizon` seconds.
    pub fn new(dimension: usize, step: f64, horizon: f64) -> Self {
        let room = (horizon / step).ceil() as usize + 4;
        Self {
            dimension,
            step,
            kept: 0,
            room,
            values: vec![0.0; room * dimension],
            slopes: vec![0.0; room * dimension],
        }
    }

    /// Adds the values and slopes at the next grid point; the first one is at time 0.
    pub fn push(&mut self, values: &[f64], slopes: &[f64]) {
        let begin = self.kept % self.room * self.dimension;
        self.values[begin..begin + self.dimension].copy_from_slice(values);
        self.slopes[begin..begin + self.dimension].copy_from_slice(slopes);
        self.kept += 1;
    }

    /// Finds the time `t` in the history. A time beyond the newest grid point is taken for that point, and one that is
    /// older than the horizon for the oldest point.
    pub fn find(&self, t: f64) -> PastTime {
        let newest = self.kept.saturating_sub(1);
        if t < 0.0 || self.kept == 0 {
            return PastTime { at: None, weights: [0.0; 4] };
        }
        let place = t / self.step;
        let oldest = self.kept.saturating_sub(self.room);
        let left = (place as usize).clamp(oldest, newest.saturating_sub(1).max(oldest));
        let right = (left + 1).min(newest);
        let s = (place - left as f64).clamp(0.0, 1.0);
        let (s2, s3) = (s * s, s * s * s);
        let weights =
            [2.0 * s3 - 3.0 * s2 + 1.0, (s3 - 2.0 * s2 + s) * self.step, 3.0 * s2 - 2.0 * s3, (s3 - s2) * self.step];
        PastTime { at: Some((left % self.room * self.dimension, right % self.room * self.dimension)), weights }
    }

    /// Returns the number with this index at a time that was found; `before` if the time is before the beginning.
    #[inline]
    pub fn value(&self, time: &PastTime, index: usize, before: f64) -> f64 {
        let Some((left, right)) = time.at else { return before };
        let [a, b, c, d] = time.weights;
        a * self.values[left + index]
            + b * self.slopes[left + index]
            + c * self.values[right + index]
            + d * self.slopes[right + index]
    }
}
