//! A wireless link: packets for different stations are lost with different probabilities, and the discipline is told.
//!
//! Flow i belongs to station i modulo the number of stations, and a flow in a class to that of its class, as in the
//! disciplines that know stations.
//! The knowledge of the channels ([`Csi`]) is updated whenever the discipline is asked for a packet, and
//! this needs no event of its own, with one exception: a discipline that returns no packet because every station with
//! packets is in a bad state is asked again when a channel changes.

use super::{Channel, Csi};
use crate::rng::Rng;
use crate::units::Instant;
use std::collections::BTreeMap;

/// The stations behind one direction of a link.
#[derive(Debug)]
pub struct Stations {
    csi: Csi,
    /// When the channels began: their time 0.
    begin: Instant,
    /// The classes that were told, by flow.
    classes: BTreeMap<u32, u32>,
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
        (!csi.is_empty())
            .then(|| Box::new(Self { csi, begin: Instant::ZERO, classes: BTreeMap::new(), changes, fates }))
    }

    /// Returns how many stations there are.
    pub fn count(&self) -> usize {
        self.csi.len()
    }

    /// Gives the stations other channels, whose time 0 is now. There must be as many as there are stations.
    pub fn begin(&mut self, channels: Vec<Channel>, now: Instant) {
        debug_assert_eq!(channels.len(), self.csi.len(), "a flow stays with its station");
        (self.csi, self.begin) = (Csi::new(channels, &mut self.changes), now);
    }

    /// Tells the class of a flow.
    pub fn set_class(&mut self, flow: u32, class: u32) {
        self.classes.insert(flow, class);
    }

    /// Calls `tell` with each station and its current probability of loss.
    pub fn tell(&self, mut tell: impl FnMut(u32, f64)) {
        (0..self.csi.len()).for_each(|station| tell(station as u32, self.csi.loss(station)));
    }

    /// Lets the channels change up to `now`, and calls `tell` for each station whose probability of loss has changed.
    #[inline]
    pub fn advance(&mut self, now: Instant, mut tell: impl FnMut(u32, f64)) {
        let since_begin = Instant::ZERO + now.since(self.begin);
        self.csi.advance(since_begin, &mut self.changes, |station, loss| tell(station as u32, loss));
    }

    /// Replaces the probabilities of loss of all stations, and calls `tell` for each that has changed.
    pub fn replace(&mut self, losses: &[f64], mut tell: impl FnMut(u32, f64)) {
        self.csi.replace(losses, |station, loss| tell(station as u32, loss));
    }

    /// Returns when a channel changes next; `None` if no channel will.
    pub fn next_change(&self) -> Option<Instant> {
        let next = Some(self.csi.next_change()).filter(|at| *at != Instant::MAX);
        next.map(|at| self.begin + at.since(Instant::ZERO))
    }

    /// Decides whether a packet of this flow which is sent now is lost.
    #[inline]
    pub fn strikes(&mut self, flow: u32) -> bool {
        let class = if self.classes.is_empty() { None } else { self.classes.get(&flow) };
        let loss = self.csi.loss(class.copied().unwrap_or(flow) as usize % self.csi.len());
        loss > 0.0 && self.fates.uniform() < loss
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Streams;
    use crate::units::Span;

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
                lost[flow as usize] += u32::from(link.strikes(flow));
            }
        }
        assert_eq!((lost[0], lost[3], lost[2], lost[5]), (0, 0, 20_000, 20_000));
        // The number of losses is binomial with mean 6000 and a standard deviation of 64.8; the bound is five of them.
        assert!([lost[1], lost[4]].iter().all(|n| n.abs_diff(6000) < 324), "{lost:?}");
    }

    #[test]
    fn a_flow_in_a_class_is_at_the_station_of_its_class() {
        let mut link = stations([0.0, 1.0].map(Channel::Fixed).to_vec()).unwrap();
        link.set_class(4, 3);
        assert_eq!([3, 4, 5, 6].map(|flow| link.strikes(flow)), [true, true, true, false]);
    }

    #[test]
    fn other_channels_begin_when_they_are_given() {
        let at = |ms| Instant::ZERO + Span::from_millis(ms);
        let mut link = stations(vec![Channel::Fixed(0.5)]).unwrap();
        link.begin(vec![Channel::Steps(vec![(at(3), 0.25)])], at(10));
        assert_eq!((link.count(), link.next_change()), (1, Some(at(13))));
        let mut told = Vec::new();
        link.advance(at(12), |station, loss| told.push((station, loss)));
        assert_eq!(told, []);
        link.advance(at(13), |station, loss| told.push((station, loss)));
        assert_eq!((told, link.next_change()), (vec![(0, 0.25)], None));
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
