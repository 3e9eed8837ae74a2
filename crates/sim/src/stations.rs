//! A wireless link: packets for different stations are lost with different probabilities, and the discipline is told.
//!
//! Flow i belongs to station i modulo the number of stations, like the classes in the disciplines that know stations.
//! The knowledge of the channels ([`penstock_core::csi`]) is updated whenever the discipline is asked for a packet, and
//! this needs no event of its own, with one exception: a discipline that returns no packet because every station with
//! packets is in a bad state is asked again when a channel changes.

use penstock_core::csi::{Channel, Csi};
use penstock_core::packet::FlowId;
use penstock_core::rng::Rng;
use penstock_core::units::Instant;

/// The stations behind one direction of a link.
#[derive(Debug)]
pub struct Stations {
    csi: Csi,
    /// Random stream for the changes of the channels.
    changes: Rng,
    /// Random stream for the losses of packets.
    fates: Rng,
}

impl Stations {
    /// Creates one station for each channel; returns `None` without channels. `changes` and `fates` are two random
    /// streams which belong to the stations alone.
    pub fn new(channels: Vec<Channel>, mut changes: Rng, fates: Rng) -> Option<Box<Self>> {
        let csi = Csi::new(channels, &mut changes);
        (!csi.is_empty()).then(|| Box::new(Self { csi, changes, fates }))
    }

    /// Calls `tell` with each station and its current probability of loss.
    pub fn tell(&self, mut tell: impl FnMut(u32, f64)) {
        (0..self.csi.len()).for_each(|station| tell(station as u32, self.csi.loss(station)));
    }

    /// Lets the channels change up to `now`, and calls `tell` for each station whose probability of loss has changed.
    #[inline]
    pub fn advance(&mut self, now: Instant, mut tell: impl FnMut(u32, f64)) {
        self.csi.advance(now, &mut self.changes, |station, loss| tell(station as u32, loss));
    }

    /// Replaces the probabilities of loss of all stations, and calls `tell` for each that has changed.
    pub fn replace(&mut self, losses: &[f64], mut tell: impl FnMut(u32, f64)) {
        self.csi.replace(losses, |station, loss| tell(station as u32, loss));
    }

    /// Returns when a channel changes next; `None` if no channel will.
    pub fn next_change(&self) -> Option<Instant> {
        Some(self.csi.next_change()).filter(|at| *at != Instant::MAX)
    }

    /// Decides whether a packet of this flow which is sent now is lost.
    #[inline]
    pub fn strikes(&mut self, flow: FlowId) -> bool {
        let loss = self.csi.loss(flow.0 as usize % self.csi.len());
        loss > 0.0 && self.fates.uniform() < loss
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_core::rng::Streams;
    use penstock_core::units::Span;

    fn stations(channels: Vec<Channel>) -> Option<Box<Stations>> {
        let streams = Streams::new(1);
        Stations::new(channels, streams.get("link/channels"), streams.get("link/stations"))
    }

    #[test]
    fn each_flow_is_lost_as_its_station_says() {
        assert!(stations(Vec::new()).is_none());
        let mut link = stations([0.0, 0.3, 1.0].map(Channel::Fixed).to_vec()).unwrap();
        let mut lost = [0u32; 6];
        for _ in 0..20_000 {
            for flow in 0..6 {
                lost[flow as usize] += u32::from(link.strikes(FlowId(flow)));
            }
        }
        assert_eq!((lost[0], lost[3], lost[2], lost[5]), (0, 0, 20_000, 20_000));
        // The number of losses is binomial with mean 6000 and a standard deviation of 64.8; the bound is five of them.
        assert!([lost[1], lost[4]].iter().all(|n| n.abs_diff(6000) < 324), "{lost:?}");
    }

    #[test]
    fn what_changes_is_told() {
        let at = |ms| Instant::ZERO + Span::from_millis(ms);
        let mut link = stations(vec![Channel::Fixed(0.5), Channel::Steps(vec![(at(7), 0.25)])]).unwrap();
        let mut told = Vec::new();
        link.tell(|station, loss| told.push((station, loss)));
        assert_eq!((told.as_slice(), link.next_change()), (&[(0, 0.5), (1, 0.0)][..], Some(at(7))));
        link.advance(at(8), |station, loss| told.push((station, loss)));
        link.replace(&[0.1, 0.25], |station, loss| told.push((station, loss)));
        assert_eq!((&told[2..], link.next_change()), (&[(1, 0.25), (0, 0.1)][..], None));
    }
}
