//! The windows of the flows: their slopes, and what a loss does to them.

use crate::model::{Class, Control, Losses};

/// Numbers of a class in the state: its window, and CUBIC's W_max and time since the last loss.
pub(crate) const SLOTS: usize = 3;

/// The state of a class that does not follow a differential equation and changes at losses.
#[derive(Debug, Clone)]
pub(crate) struct Phase {
    /// The flows are in slow start.
    pub slow_start: bool,
    /// Losses felt in slow start so far, per flow.
    pub felt: f64,
    /// Time of the last cut, for flows that single drops hit.
    pub cut: f64,
}

/// What a class observes at a time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    /// Round trip time in seconds.
    pub rtt: f64,
    /// Losses felt per second by one flow.
    pub losses: f64,
    /// The link sends all the time.
    pub full: bool,
}

impl Seen {
    /// Returns the rate of cuts. A window is cut once in a round trip if there is a loss in it: with losses at random
    /// that is (1 - exp(-losses rtt)) per round trip.
    ///
    /// DIFFERENCE: eq. (3.1) cuts for each loss. Pinned by `a_round_of_many_losses_is_one_cut`.
    fn cuts(&self, how: Losses) -> f64 {
        match how {
            Losses::Document => self.losses,
            Losses::Rounds => -libm::expm1(-self.losses * self.rtt) / self.rtt,
        }
    }
}

impl Class {
    /// Computes the slopes of the numbers of a class.
    pub(crate) fn slopes(&self, phase: &Phase, y: &[f64], seen: &Seen, how: Losses, dy: &mut [f64]) {
        dy.fill(0.0);
        let (window, top, since) = (y[0], y[1], y[2]);
        if phase.slow_start {
            // A window that doubles in a round trip grows by ln 2 of itself; if the link is full, ACKs come at its pace
            // and each adds a packet.
            let growth = if seen.full { 1.0 } else { std::f64::consts::LN_2 };
            dy[0] = growth * window / seen.rtt;
            return;
        }
        let cuts = seen.cuts(how);
        match self.control {
            Control::Reno => dy[0] = 1.0 / seen.rtt - window / 2.0 * cuts,
            Control::Cubic { c, beta } => {
                dy[1] = (window - top) * cuts;
                dy[2] = 1.0 - since * cuts;
                let ahead = 1e-4;
                let then = Control::cubic_window(c, beta, top + ahead * dy[1], since + ahead * dy[2], seen.rtt);
                dy[0] = (then - Control::cubic_window(c, beta, top, since, seen.rtt)) / ahead;
            }
            Control::Constant(_) => {}
        }
        if window >= self.most {
            dy[0] = dy[0].min(0.0);
        }
    }

    /// Cuts the window once, as for a loss.
    pub(crate) fn cut(&self, phase: &mut Phase, y: &mut [f64]) {
        if matches!(self.control, Control::Constant(_)) {
            return;
        }
        phase.slow_start = false;
        (y[1], y[2]) = (y[0], 0.0);
        y[0] = (y[0] * self.control.kept()).max(1.0);
    }

    /// Ends slow start without a loss: CUBIC stands on its plateau.
    fn end_slow_start(&self, phase: &mut Phase, y: &mut [f64]) {
        phase.slow_start = false;
        if let Control::Cubic { c, beta } = self.control {
            (y[1], y[2]) = (y[0], libm::cbrt(y[0] * (1.0 - beta) / c));
        }
    }

    /// Keeps the numbers within their bounds after a step of `step` seconds.
    pub(crate) fn settle(&self, phase: &mut Phase, y: &mut [f64], seen: &Seen, step: f64) {
        if phase.slow_start {
            phase.felt += seen.losses * step;
            if phase.felt >= 1.0 {
                self.cut(phase, y);
            } else if y[0] >= self.threshold {
                self.end_slow_start(phase, y);
            }
        }
        if let Control::Cubic { c, beta } = self.control
            && !phase.slow_start
        {
            y[0] = Control::cubic_window(c, beta, y[1], y[2], seen.rtt);
        }
        y[0] = y[0].clamp(1.0_f64.min(self.most), self.most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(control: Control) -> Class {
        Class {
            count: 1.0,
            control,
            base_rtt: 0.1,
            packet: 1000.0,
            payload: 960.0,
            initial_window: 2.0,
            threshold: f64::INFINITY,
            most: 1e9,
            slow_start: false,
            ecn: false,
            start: 0.0,
            stop: f64::INFINITY,
            group: 0,
        }
    }

    const IN_AVOIDANCE: Phase = Phase { slow_start: false, felt: 0.0, cut: f64::NEG_INFINITY };

    #[test]
    fn a_round_of_many_losses_is_one_cut() {
        let seen = Seen { rtt: 0.1, losses: 1000.0, full: true };
        assert!((seen.cuts(Losses::Rounds) - 10.0).abs() < 1e-9);
        assert_eq!(seen.cuts(Losses::Document), 1000.0);
        // Where losses are rare, both are the same.
        let rare = Seen { losses: 0.01, ..seen };
        assert!((rare.cuts(Losses::Rounds) / rare.cuts(Losses::Document) - 1.0).abs() < 1e-3);
    }

    #[test]
    fn reno_balances_at_the_square_root_law() {
        // dW/dt = 0: 1 / R = W / 2 x W p / R, so W = sqrt(2 / p) (Misra, Gong and Towsley 2000).
        let p = 0.001_f64;
        let window = (2.0 / p).sqrt();
        let mut dy = [0.0; 3];
        let seen = Seen { rtt: 0.1, losses: window * p / 0.1, full: true };
        class(Control::Reno).slopes(&IN_AVOIDANCE, &[window, 0.0, 0.0], &seen, Losses::Document, &mut dy);
        assert!(dy[0].abs() < 1e-9);
    }

    #[test]
    fn cubic_is_back_at_its_top_after_k() {
        let (c, beta, top) = (0.4, 0.7, 100.0_f64);
        let k = (top * 0.3 / c).cbrt();
        assert!((Control::cubic_window(c, beta, top, 0.0, 10.0) - 70.0).abs() < 1e-9);
        assert!((Control::cubic_window(c, beta, top, k, 10.0) - top).abs() < 1e-9);
        // On a short path Reno's estimate is above the curve.
        assert!(Control::cubic_window(c, beta, 10.0, 1.0, 0.01) > 50.0);
    }

    #[test]
    fn slow_start_doubles_in_a_round_trip_and_ends_at_a_loss() {
        let class = class(Control::Cubic { c: 0.4, beta: 0.7 });
        let mut phase = Phase { slow_start: true, ..IN_AVOIDANCE };
        let (mut y, mut dy, step) = ([10.0, 0.0, 0.0], [0.0; 3], 1e-4);
        let seen = Seen { rtt: 0.1, losses: 0.0, full: false };
        for _ in 0..1000 {
            class.slopes(&phase, &y, &seen, Losses::Rounds, &mut dy);
            y[0] += step * dy[0];
            class.settle(&mut phase, &mut y, &seen, step);
        }
        assert!((y[0] - 20.0).abs() < 0.01);
        class.settle(&mut phase, &mut y, &Seen { losses: 1.0 / step, ..seen }, step);
        assert!(!phase.slow_start);
        assert!((y[0] - 14.0).abs() < 0.02 && (y[1] - 20.0).abs() < 0.01);
    }
}
