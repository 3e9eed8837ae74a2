//! Reading of `stations`.

use super::{Check, Checker};
use crate::scenario::StationSpec;

const MAX_STATIONS: usize = 10_000;

impl Checker<'_> {
    pub(super) fn stations(&self, path: &[&str], stations: &[StationSpec]) -> Check<Vec<StationSpec>> {
        let path: Vec<&str> = path.iter().copied().chain(["stations"]).collect();
        if stations.len() > MAX_STATIONS {
            let message = format!("a link has up to {MAX_STATIONS} stations, not {}", stations.len());
            return Err(self.source.at(&path, &message));
        }
        match stations.iter().find_map(StationSpec::mistake) {
            Some(message) => Err(self.source.at(&path, &message)),
            None => Ok(stations.to_vec()),
        }
    }

    /// Reads the losses that a change gives to the stations of a link.
    pub(super) fn new_losses(&self, path: &[&str], losses: &[f64], known: usize) -> Check<Vec<f64>> {
        if losses.len() != known {
            let message = format!("{} losses for the {known} stations of the link", losses.len());
            return Err(self.source.at(path, &message));
        }
        match losses.iter().find(|loss| !(0.0..=1.0).contains(*loss)) {
            Some(loss) => Err(self.source.at(path, &format!("a loss is {loss}; allowed is a probability from 0 to 1"))),
            None => Ok(losses.to_vec()),
        }
    }
}
