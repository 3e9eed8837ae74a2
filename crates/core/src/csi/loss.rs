//! Random loss on a wire: each packet is lost with the same probability, independent of all others. Beside that several
//! may be lost in a row, and behind a wireless link it may also be lost with the probability of its station.
//!
//! The loss comes after the queue: a lost packet was sent and took its time on the wire, but did not arrive, so the
//! counters of the queue balance as they do without loss.

use super::Stations;
use crate::impair::{Gilbert, Losses};
use crate::rng::Rng;

/// The loss of one direction of a link.
#[derive(Debug)]
pub struct Loss {
    probability: f64,
    rng: Rng,
    /// Number of packets lost so far.
    pub lost: u64,
    /// Losses in a row.
    rows: Option<Losses>,
    /// The stations behind a wireless link; `None` for other links.
    pub stations: Option<Box<Stations>>,
}

impl Loss {
    /// Creates a loss with this probability, within [0, 1]. `rng` is a random stream of its own.
    pub fn new(probability: f64, rng: Rng) -> Self {
        Self { probability, rng, lost: 0, rows: None, stations: None }
    }

    /// Returns the probability, without that of stations.
    pub fn probability(&self) -> f64 {
        self.probability
    }

    /// Sets the probability, within [0, 1].
    pub fn set(&mut self, probability: f64) {
        self.probability = probability;
    }

    /// Sets by which model packets are lost in a row, which begins in its good state.
    pub fn set_rows(&mut self, model: Option<Gilbert>) {
        self.rows = model.map(|model| Losses::new(model, self.rng.branch("gilbert")));
    }

    /// Decides whether the packet of this flow that is being sent now is lost.
    #[inline]
    pub fn strikes(&mut self, flow: u32) -> bool {
        let mut lost = self.probability > 0.0 && self.rng.uniform() < self.probability;
        if let Some(rows) = &mut self.rows {
            lost |= rows.strikes();
        }
        if let Some(stations) = &mut self.stations {
            lost |= stations.strikes(flow);
        }
        self.lost += u64::from(lost);
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Streams;

    #[test]
    fn as_many_are_lost_as_the_probability_says() {
        let mut loss = Loss::new(0.01, Streams::new(1).get("bottleneck/loss"));
        let n = 200_000;
        let struck = (0..n).filter(|_| loss.strikes(0)).count() as f64;
        assert_eq!(struck, loss.lost as f64);
        // The number of losses is binomial with mean 2000 and standard deviation 44.5; the bound is five of them.
        assert!((struck - 2000.0).abs() < 223.0, "{struck} of {n}");
    }

    /// With probability 0 only the model of rows loses packets, and without it none again.
    #[test]
    fn rows_are_lost_beside_single_packets() {
        let mut loss = Loss::new(0.0, Streams::new(1).get("bottleneck/loss"));
        let model = Gilbert { to_bad: 1.0, to_good: 1.0, bad: 1.0, good: 0.0 };
        loss.set_rows(Some(model));
        let struck: Vec<bool> = (0..4).map(|_| loss.strikes(0)).collect();
        assert_eq!((struck, loss.lost), (vec![false, true, false, true], 2));
        loss.set_rows(None);
        assert!((0..10).all(|_| !loss.strikes(0)));
    }

    #[test]
    fn a_wire_that_loses_all_loses_all() {
        let mut loss = Loss::new(1.0, Streams::new(1).get("bottleneck/loss"));
        assert!((0..10_000).all(|_| loss.strikes(0)));
    }

    #[test]
    fn nothing_is_lost_without_probability() {
        let mut loss = Loss::new(0.0, Streams::new(1).get("bottleneck/loss"));
        assert!((0..10_000).all(|_| !loss.strikes(0)));
    }
}
