//! Channel state information: the probability that a packet to each station is lost, and how it changes.
//!
//! Source: document 002 §4.1.3.1, §4.2.3.3 (a base station or an access point and its stations), §4.3.2.1 (the CSI
//! block of TEMPEST). Each station has one [`Channel`], whose state is a probability of loss; [`snr`] derives it from
//! signal-to-noise ratios and distances. The caller passes in time and random numbers.
//!
//! | channel | changes |
//! |---|---|
//! | [`Channel::Fixed`] | never |
//! | [`Channel::Markov`] | between a good and a bad state, each of which lasts an exponential time (Gilbert 1960) |
//! | [`Channel::Steps`] | at given times |
//! | [`Channel::Moving`] | as the station moves back and forth between two distances |
//!
//! Cost: [`Csi::advance`] is O(stations) if a channel changes, else O(1).

mod loss;
pub mod snr;
mod stations;

pub use loss::Loss;
pub use stations::Stations;

use crate::rng::Rng;
use crate::units::{Bytes, Instant, Span};
use snr::Technology;
use std::ops::RangeInclusive;

/// The largest loss at which a station counts as in good condition (§4.2.3.3).
pub const GOOD_LOSS: f64 = 0.2;

/// The interval at which the distance of a moving station is updated.
const LOOK: Span = Span::from_millis(100);
/// The packet size for which the loss of a moving station is computed (§4.2.3.1).
const PACKET: Bytes = Bytes::new(1700);

/// The channel to one station.
#[derive(Debug, Clone, PartialEq)]
pub enum Channel {
    /// A constant probability of loss.
    Fixed(f64),
    /// The channel of Gilbert and Elliott: two states, each with a loss and a mean duration. The initial state is
    /// random, with each state weighted by its share of time.
    Markov {
        /// Probability of loss in the good state.
        good: f64,
        /// Probability of loss in the bad state.
        bad: f64,
        /// Mean duration of the good state.
        mean_good: Span,
        /// Mean duration of the bad state.
        mean_bad: Span,
    },
    /// Probabilities of loss from given times on, in order of time; 0 before the first time.
    Steps(Vec<(Instant, f64)>),
    /// The station moves from the near distance to the far one and back, periodically.
    Moving {
        /// The radio technology.
        technology: Technology,
        /// The smallest distance in metres.
        near_m: f64,
        /// The largest distance in metres.
        far_m: f64,
        /// Duration of the way there and back.
        period: Span,
    },
}

#[derive(Debug, Clone)]
struct Station {
    channel: Channel,
    loss: f64,
    /// The state of a Markov channel, or the number of steps that are past.
    state: usize,
    next: Instant,
}

impl Station {
    fn new(channel: Channel, rng: &mut Rng) -> Self {
        let mut station = Self { channel, loss: 0.0, state: 0, next: Instant::MAX };
        match &station.channel {
            Channel::Fixed(loss) => station.loss = *loss,
            Channel::Markov { mean_good, mean_bad, .. } => {
                let (good, bad) = (mean_good.as_secs_f64(), mean_bad.as_secs_f64());
                // An exponential time has no memory: what is left of a state has the distribution of a whole one.
                station.enter(usize::from(rng.uniform() * (good + bad) >= good), Instant::ZERO, rng);
            }
            Channel::Steps(steps) => station.next = steps.first().map_or(Instant::MAX, |(at, _)| *at),
            Channel::Moving { .. } => station.change(Instant::ZERO, rng),
        }
        station
    }

    /// Enters a state of a Markov channel at `now` and draws its duration.
    fn enter(&mut self, state: usize, now: Instant, rng: &mut Rng) {
        if let Channel::Markov { good, bad, mean_good, mean_bad } = self.channel {
            let (loss, mean) = if state == 0 { (good, mean_good) } else { (bad, mean_bad) };
            (self.state, self.loss) = (state, loss);
            self.next = now + Span::from_secs_f64(rng.exponential(mean.as_secs_f64()));
        }
    }

    /// Makes the change that is due at `now`.
    fn change(&mut self, now: Instant, rng: &mut Rng) {
        match &self.channel {
            Channel::Fixed(_) => self.next = Instant::MAX,
            Channel::Markov { .. } => self.enter(1 - self.state, now, rng),
            Channel::Steps(steps) => {
                self.loss = steps.get(self.state).map_or(self.loss, |(_, loss)| *loss);
                self.state += 1;
                self.next = steps.get(self.state).map_or(Instant::MAX, |(at, _)| *at);
            }
            Channel::Moving { technology, near_m, far_m, period } => {
                let distance = near_m + (far_m - near_m) * way(now, *period);
                self.loss = technology.loss(technology.snr_db(distance), PACKET);
                self.next = now + LOOK;
            }
        }
    }
}

/// The position of a moving station: from 0 to 1 in the first half of the period, and back in the second.
fn way(now: Instant, period: Span) -> f64 {
    let period = period.as_nanos().max(2);
    let phase = (now.as_nanos() % period) as f64 / period as f64;
    1.0 - (1.0 - 2.0 * phase).abs()
}

/// The channels of all stations.
#[derive(Debug, Clone)]
pub struct Csi {
    stations: Vec<Station>,
    next: Instant,
}

impl Csi {
    /// Creates one station for each channel, at time 0.
    pub fn new(channels: impl IntoIterator<Item = Channel>, rng: &mut Rng) -> Self {
        let stations: Vec<Station> = channels.into_iter().map(|channel| Station::new(channel, rng)).collect();
        let next = stations.iter().map(|s| s.next).min().unwrap_or(Instant::MAX);
        Self { stations, next }
    }

    /// Number of stations.
    pub fn len(&self) -> usize {
        self.stations.len()
    }

    /// True if there are no stations.
    pub fn is_empty(&self) -> bool {
        self.stations.is_empty()
    }

    /// The probability that a packet to `station` is lost, as of the last [`Csi::advance`].
    #[inline]
    pub fn loss(&self, station: usize) -> f64 {
        self.stations[station].loss
    }

    /// The time of the next change; [`Instant::MAX`] if there is none. Only [`Csi::advance`] and [`Csi::replace`]
    /// change it.
    #[inline]
    pub fn next_change(&self) -> Instant {
        self.next
    }

    /// Makes the changes that are due up to `now`, and calls `tell` with each station whose loss changed, and that
    /// loss.
    #[inline]
    pub fn advance(&mut self, now: Instant, rng: &mut Rng, tell: impl FnMut(usize, f64)) {
        if self.next <= now {
            self.make_changes(now, rng, tell);
        }
    }

    fn make_changes(&mut self, now: Instant, rng: &mut Rng, mut tell: impl FnMut(usize, f64)) {
        for (at, station) in self.stations.iter_mut().enumerate() {
            let before = station.loss;
            while station.next <= now {
                station.change(station.next, rng);
            }
            if station.loss != before {
                tell(at, station.loss);
            }
        }
        self.next = self.stations.iter().map(|s| s.next).min().unwrap_or(Instant::MAX);
    }

    /// Replaces the channels of all stations by constant `losses`, and calls `tell` for each loss that changed.
    pub fn replace(&mut self, losses: &[f64], mut tell: impl FnMut(usize, f64)) {
        for (at, (station, loss)) in self.stations.iter_mut().zip(losses).enumerate() {
            let before = station.loss;
            *station = Station { channel: Channel::Fixed(*loss), loss: *loss, state: 0, next: Instant::MAX };
            if *loss != before {
                tell(at, *loss);
            }
        }
        self.next = self.stations.iter().map(|s| s.next).min().unwrap_or(Instant::MAX);
    }
}

/// Losses that fall linearly from the first station to the last: one reading of §4.2.3.3, "ranging linearly from 10^0
/// to 10^-4". With it no weights of stations that the document defines give the document's results.
pub fn linear(stations: usize, ends: RangeInclusive<f64>) -> Vec<f64> {
    let (first, last) = ends.into_inner();
    let steps = stations.saturating_sub(1).max(1) as f64;
    let between = |x: f64| first * (1.0 - x) + last * x;
    (0..stations).map(|i| between(i as f64 / steps)).collect()
}

/// Losses whose logarithms fall linearly: the second reading, since both ends are powers of ten.
/// `docs/algorithms/hfs.md` has the arguments for it.
pub fn geometric(stations: usize, ends: RangeInclusive<f64>) -> Vec<f64> {
    let (first, last) = ends.into_inner();
    let steps = stations.saturating_sub(1).max(1) as f64;
    (0..stations).map(|i| first * libm::pow(last / first, i as f64 / steps)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Streams;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn losses_range_linearly_or_by_powers() {
        let losses = linear(20, 1.0..=1e-4);
        assert_eq!((losses.len(), losses[0], losses[19]), (20, 1.0, 1e-4));
        // Station 16 of 0..=19: 1 - 0.9999 * 16 / 19 = 0.15798, and the one before it 0.21061: four are good.
        assert!((losses[16] - 0.157_979).abs() < 1e-6, "{}", losses[16]);
        assert_eq!(losses.iter().filter(|loss| **loss <= GOOD_LOSS).count(), 4);
        // Two stations in three decades and five: 10^-2 is in the middle of 10^0 and 10^-4.
        assert!((geometric(3, 1.0..=1e-4)[1] - 1e-2).abs() < 1e-15);
        // 10^(-4 i / 19) <= 0.2 from i = 3.32 on: sixteen.
        assert_eq!(geometric(20, 1.0..=1e-4).iter().filter(|loss| **loss <= GOOD_LOSS).count(), 16);
        assert_eq!(linear(1, 0.5..=0.1), [0.5]);
    }

    #[test]
    fn steps_are_made_at_their_times() {
        let mut rng = Streams::new(1).get("csi");
        let steps = Channel::Steps(vec![(at(10), 0.5), (at(20), 0.1), (at(30), 0.1)]);
        let mut csi = Csi::new([Channel::Fixed(0.3), steps], &mut rng);
        assert_eq!((csi.loss(0), csi.loss(1), csi.next_change()), (0.3, 0.0, at(10)));
        let mut told = Vec::new();
        csi.advance(at(9), &mut rng, |station, loss| told.push((station, loss)));
        assert_eq!(told, []);
        csi.advance(at(10), &mut rng, |station, loss| told.push((station, loss)));
        csi.advance(at(25), &mut rng, |station, loss| told.push((station, loss)));
        csi.advance(at(40), &mut rng, |station, loss| told.push((station, loss)));
        assert_eq!(told, [(1, 0.5), (1, 0.1)], "what does not change is not told");
        assert_eq!(csi.next_change(), Instant::MAX);
    }

    /// 30 ms good, 10 ms bad: a quarter of the time is bad, and a bad period lasts 10 ms on average.
    #[test]
    fn a_markov_channel_spends_its_time_as_its_means_say() {
        let mut rng = Streams::new(1).get("csi");
        let channel =
            Channel::Markov { good: 0.01, bad: 0.9, mean_good: Span::from_millis(30), mean_bad: Span::from_millis(10) };
        let mut csi = Csi::new([channel], &mut rng);
        let (mut bad_ms, mut spells, mut was) = (0u32, 0u32, false);
        let total = 400_000;
        for ms in 0..total {
            csi.advance(at(ms), &mut rng, |_, _| ());
            let is = csi.loss(0) > 0.5;
            bad_ms += u32::from(is);
            spells += u32::from(is && !was);
            was = is;
        }
        // 10,000 cycles: the share of bad time has a standard deviation of 0.25 * 0.75 * sqrt(2 / 10,000) = 0.0027; the
        // tolerance is five of them.
        let share = f64::from(bad_ms) / total as f64;
        assert!((share - 0.25).abs() < 0.0135, "{share}");
        // Sampled every ms, a shorter bad period may be missed and two may merge: 10 % of a mean of 10.
        let mean_ms = f64::from(bad_ms) / f64::from(spells);
        assert!((mean_ms - 10.0).abs() < 1.5, "{mean_ms} ms");
    }

    /// 3 s good, 1 s bad: a quarter of the stations begin in the bad state. The share of a thousand has a standard deviation
    /// of sqrt(0.25 * 0.75 / 1000) = 0.014; the tolerance is five of them.
    #[test]
    fn a_markov_channel_begins_in_each_state_by_its_share_of_time() {
        let mut rng = Streams::new(1).get("csi");
        let (mean_good, mean_bad) = (Span::from_secs(3), Span::from_secs(1));
        let csi = Csi::new((0..1000).map(|_| Channel::Markov { good: 0.01, bad: 0.9, mean_good, mean_bad }), &mut rng);
        let share = (0..1000).filter(|station| csi.loss(*station) == 0.9).count() as f64 / 1000.0;
        assert!((share - 0.25).abs() < 0.07, "{share}");
    }

    #[test]
    fn a_station_goes_to_and_fro() {
        let mut rng = Streams::new(1).get("csi");
        let technology = Technology::Wifi;
        let (near_m, far_m) = (10.0, 110.0);
        let mut csi = Csi::new([Channel::Moving { technology, near_m, far_m, period: Span::from_secs(20) }], &mut rng);
        let loss_at = |metres| technology.loss(technology.snr_db(metres), PACKET);
        assert_eq!(csi.loss(0), loss_at(10.0));
        for (seconds, metres) in [(5, 60.0), (10, 110.0), (15, 60.0), (20, 10.0)] {
            csi.advance(at(1000 * seconds), &mut rng, |_, _| ());
            assert_eq!(csi.loss(0), loss_at(metres), "after {seconds} s");
        }
        assert!(loss_at(110.0) > loss_at(10.0));
    }

    #[test]
    fn other_losses_may_be_given() {
        let mut rng = Streams::new(1).get("csi");
        let mut csi = Csi::new([0.1, 0.2].map(Channel::Fixed), &mut rng);
        let mut told = Vec::new();
        csi.replace(&[0.1, 0.7], |station, loss| told.push((station, loss)));
        assert_eq!((told, csi.loss(1), csi.len()), (vec![(1, 0.7)], 0.7, 2));
    }

    /// Half a period after the nearest point a station is at the farthest, where the loss is steep enough to tell metres.
    #[test]
    fn a_station_turns_at_its_farthest_point() {
        let mut rng = Streams::new(1).get("csi");
        let technology = Technology::Wifi;
        let loss_at = |metres| technology.loss(technology.snr_db(metres), PACKET);
        let far_m = (10..10_000).map(f64::from).find(|metres| loss_at(*metres) > 0.3).expect("no link reaches so far");
        assert!(loss_at(far_m) < 0.9);
        for near_m in [far_m / 2.0, far_m] {
            let moving = Channel::Moving { technology, near_m, far_m, period: Span::from_secs(20) };
            let mut csi = Csi::new([moving], &mut rng);
            csi.advance(at(10_000), &mut rng, |_, _| ());
            assert_eq!(csi.loss(0), loss_at(far_m), "from {near_m} m to {far_m} m");
        }
    }
}
