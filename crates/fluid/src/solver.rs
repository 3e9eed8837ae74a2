//! Delay-differential equations by the classic Runge-Kutta method of order 4 with a fixed step.
//!
//! Source: Bellen and Zennaro, "Numerical Methods for Delay Differential Equations", 2003: a method of order 4 whose
//! past is interpolated by cubic Hermite polynomials keeps its order where the solution is smooth.

use crate::history::History;

/// A system of delay-differential equations y'(t) = f(t, y(t), y of the past).
pub trait System {
    /// Computes the slopes `dy` at time `t`, in seconds, from `y` and the past. Delays must be at least one step.
    fn slopes(&self, t: f64, y: &[f64], past: &History, dy: &mut [f64]);
}

/// A solution that grows step by step.
#[derive(Debug, Clone)]
pub struct Solver {
    /// The values now.
    pub y: Vec<f64>,
    /// The past, up to and including now.
    pub past: History,
    step: f64,
    steps: u64,
    stages: [Vec<f64>; 4],
    at: Vec<f64>,
}

impl Solver {
    /// Begins at time 0 with the values `y`, for steps of `step` seconds and delays of at most `horizon` seconds.
    pub fn new(system: &impl System, y: Vec<f64>, step: f64, horizon: f64) -> Self {
        let zeros = vec![0.0; y.len()];
        let past = History::new(y.len(), step, horizon);
        let mut solver = Self { y, past, step, steps: 0, stages: std::array::from_fn(|_| zeros.clone()), at: zeros };
        solver.keep(system);
        solver
    }

    /// Time of the newest values, in seconds.
    pub fn now(&self) -> f64 {
        self.steps as f64 * self.step
    }

    /// Goes one step forward. `settle` may then change the values, before they become part of the past: that is how
    /// bounds are kept and what happens at one instant is applied.
    pub fn step<S: System>(&mut self, system: &mut S, settle: impl FnOnce(&mut S, f64, &mut [f64], &History)) {
        let (t, h) = (self.now(), self.step);
        for stage in 0..4 {
            let part = [0.0, 0.5, 0.5, 1.0][stage];
            for i in 0..self.y.len() {
                let before = if stage == 0 { 0.0 } else { self.stages[stage - 1][i] };
                self.at[i] = self.y[i] + part * h * before;
            }
            system.slopes(t + part * h, &self.at, &self.past, &mut self.stages[stage]);
        }
        let [k1, k2, k3, k4] = &self.stages;
        for i in 0..self.y.len() {
            self.y[i] += h / 6.0 * (k1[i] + 2.0 * (k2[i] + k3[i]) + k4[i]);
        }
        self.steps += 1;
        settle(system, self.now(), &mut self.y, &self.past);
        self.keep(system);
    }

    fn keep(&mut self, system: &impl System) {
        let now = self.now();
        system.slopes(now, &self.y, &self.past, &mut self.stages[0]);
        self.past.push(&self.y, &self.stages[0]);
    }
}
