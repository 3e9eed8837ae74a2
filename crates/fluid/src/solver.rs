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
    use differential_equations::prelude::*;
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

    const RATE: f64 = 100.0; // packets per second
    const BASE: f64 = 0.1; // seconds
    const FLOWS: f64 = 5.0;

    /// Reno behind a controller whose probability is the queue over 500 packets: smooth, with a delay that depends on
    /// the queue. y has a window and a queue, in packets.
    fn reno(y: [f64; 2], then: [f64; 2]) -> [f64; 2] {
        let (trip, before) = (BASE + y[1] / RATE, BASE + then[1] / RATE);
        [1.0 / trip - y[0] / 2.0 * then[0] / before * then[1] / 500.0, FLOWS * y[0] / trip - RATE]
    }

    struct Ours;

    impl System for Ours {
        fn slopes(&self, t: f64, y: &[f64], past: &History, dy: &mut [f64]) {
            let then = past.find(t - BASE - y[1] / RATE);
            dy.copy_from_slice(&reno([y[0], y[1]], [past.value(&then, 0, 4.0), past.value(&then, 1, 20.0)]));
        }
    }

    struct Theirs;

    impl DDE<1, f64, Vec<f64>> for Theirs {
        fn diff(&self, _: f64, y: &Vec<f64>, then: &[Vec<f64>; 1], dy: &mut Vec<f64>) {
            dy.copy_from_slice(&reno([y[0], y[1]], [then[0][0], then[0][1]]));
        }

        fn lags(&self, _: f64, y: &Vec<f64>, lags: &mut [f64; 1]) {
            lags[0] = BASE + y[1] / RATE;
        }
    }

    #[test]
    fn a_solver_of_others_has_the_same_windows_and_queues() {
        let method = ExplicitRungeKutta::dopri5().rtol(1e-10).atol(1e-10).max_delay(2.0);
        let problem = IVP::dde(&Theirs, 0.0, 20.0, vec![4.0, 20.0], |_| vec![4.0, 20.0]);
        let theirs = problem.even(1.0).method(method).solve().expect("the library solves it");
        let mut ours = Solver::new(&Ours, vec![4.0, 20.0], 1e-3, 2.0);
        let mut least = f64::MAX;
        for (t, y) in theirs.iter() {
            while ours.now() < t - 1e-9 {
                ours.step(&mut Ours, |_, _, _, _| {});
            }
            assert!((ours.y[0] - y[0]).abs() < 1e-5 && (ours.y[1] - y[1]).abs() < 1e-4, "{t}: {:?} {y:?}", ours.y);
            least = least.min(y[1]);
        }
        assert!(least > 0.0 && (ours.y[1] - 20.0).abs() > 1.0, "the queue neither runs empty nor stands still");
    }
}
