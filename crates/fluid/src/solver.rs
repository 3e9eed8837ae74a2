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

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::FRAC_PI_2;

    /// y'(t) = -pi/2 y(t - 1) with y = cos(pi t / 2) before 0, which goes on as the same cosine.
    struct Cosine;

    impl System for Cosine {
        fn slopes(&self, t: f64, _: &[f64], past: &History, dy: &mut [f64]) {
            let then = t - 1.0;
            dy[0] = -FRAC_PI_2 * past.value(&past.find(then), 0, (FRAC_PI_2 * then).cos());
        }
    }

    /// Returns the largest error until time 10 with steps of `step`.
    fn error(step: f64) -> f64 {
        let mut solver = Solver::new(&Cosine, vec![1.0], step, 1.0);
        let mut worst = 0.0_f64;
        while solver.now() < 10.0 {
            solver.step(&mut Cosine, |_, _, _, _| {});
            worst = worst.max((solver.y[0] - (FRAC_PI_2 * solver.now()).cos()).abs());
        }
        worst
    }

    #[test]
    fn halving_the_step_divides_the_error_by_two_to_the_fourth() {
        for step in [0.05, 0.025] {
            let ratio = error(step) / error(step / 2.0);
            assert!((14.0..18.0).contains(&ratio), "{ratio}");
        }
        assert!(error(0.0125) < 1e-7);
    }

    /// y' = y(t - 1) with y = 1 before 0 is a polynomial between whole times (Bellman and Cooke 1963): 1 + t, then
    /// 2 + (t - 1) + (t - 1)^2 / 2, ...
    #[test]
    fn a_past_that_the_method_represents_is_solved_exactly() {
        struct Steps;
        impl System for Steps {
            fn slopes(&self, t: f64, _: &[f64], past: &History, dy: &mut [f64]) {
                dy[0] = past.value(&past.find(t - 1.0), 0, 1.0);
            }
        }
        let mut solver = Solver::new(&Steps, vec![1.0], 0.125, 1.0);
        (0..16).for_each(|_| solver.step(&mut Steps, |_, _, _, _| {}));
        assert!((solver.y[0] - 3.5).abs() < 1e-3, "{}", solver.y[0]);
    }
}
