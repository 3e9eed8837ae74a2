//! The propagation delay of a path over a satellite, from the geometry of its orbit.
//!
//! Satellites have equal distances on one circular orbit over the equator, and both ground stations see them. The
//! serving satellite is the one nearest to the middle between the stations; half-way to the next satellite the terminal
//! changes over. With make-before-break both satellites are connected during the change and have the same distance, so
//! the delay has a turning point and no jump. The path is a bent pipe: uplink, downlink, and the processing of modems
//! and gateways.
//!
//! Kepler's third law gives the period, the law of cosines the length of the path. Cosines are computed by `libm`, so
//! that every machine gets the same delays.

use penstock_core::units::Span;
use penstock_trace::series::{Point, Series, Values};
use std::f64::consts::TAU;

/// Equatorial radius of the earth in km (WGS 84).
const EARTH_KM: f64 = 6378.137;
/// Gravitational constant of the earth in km^3/s^2 (WGS 84).
const GRAVITY: f64 = 398_600.441_8;
/// One rotation of the earth (a sidereal day) in seconds.
const DAY_S: f64 = 86_164.090_5;
const LIGHT_KM_S: f64 = 299_792.458;

/// A ring of satellites and the positions of the ground stations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Orbit {
    /// Altitude over the equator in km.
    pub altitude_km: f64,
    /// Number of satellites.
    pub satellites: u32,
    /// Latitude of both stations in degrees.
    pub latitude: f64,
    /// Difference of the stations' longitudes in degrees.
    pub apart: f64,
    /// One-way delay of modems, gateways and framing.
    pub processing: Span,
}

impl Orbit {
    /// One-way processing delay with which the round trip times over [`Orbit::PRESETS`] match those of the
    /// architecture's source.
    pub const PROCESSING: Span = Span::from_millis(35);
    /// Well-known orbits: geostationary; O3b (MEO); the altitude of Iridium and the number of satellites in one of its
    /// planes (LEO).
    pub const PRESETS: [(&str, Self); 3] =
        [("geo", Self::over(35_786.0, 1)), ("meo", Self::over(8_063.0, 8)), ("leo", Self::over(780.0, 11))];

    /// Creates an orbit with both ground stations at one place on the equator.
    pub const fn over(altitude_km: f64, satellites: u32) -> Self {
        Self { altitude_km, satellites, latitude: 0.0, apart: 0.0, processing: Self::PROCESSING }
    }

    fn radius_km(&self) -> f64 {
        EARTH_KM + self.altitude_km
    }

    /// Returns the duration of one turn around the earth in seconds.
    pub fn period_s(&self) -> f64 {
        let radius = self.radius_km();
        TAU * (radius * radius * radius / GRAVITY).sqrt()
    }

    /// True if the satellite stays over one place: its period is within a minute of the earth's rotation.
    pub fn is_fixed(&self) -> bool {
        (self.period_s() - DAY_S).abs() < 60.0
    }

    /// Returns the time in seconds from one satellite to the next, for an observer on the earth; infinite if the
    /// satellites are geostationary.
    pub fn handover_s(&self) -> f64 {
        if self.is_fixed() {
            return f64::INFINITY;
        }
        let turns_per_s = (1.0 / self.period_s() - 1.0 / DAY_S).abs();
        1.0 / turns_per_s / f64::from(self.satellites)
    }

    /// Returns the one-way delay in milliseconds, `t_s` seconds after a satellite began to serve.
    pub fn delay_ms(&self, t_s: f64) -> f64 {
        let passed = t_s / self.handover_s();
        let angle = if self.is_fixed() { 0.0 } else { self.spacing() * (passed - passed.floor() - 0.5) };
        let ways = self.slant_km(angle - self.apart / 2.0) + self.slant_km(angle + self.apart / 2.0);
        ways / LIGHT_KM_S * 1e3 + self.processing.as_millis_f64()
    }

    /// True if the serving satellite is always above the horizon of both stations.
    pub fn is_seen(&self) -> bool {
        let furthest = if self.is_fixed() { 0.0 } else { self.spacing() / 2.0 } + self.apart.abs() / 2.0;
        self.cosine(furthest) > EARTH_KM / self.radius_km()
    }

    /// Returns the number of steps of at most `step` in one passage of a satellite.
    pub fn steps(&self, step: Span) -> u64 {
        if self.is_fixed() { 1 } else { (self.handover_s() / step.as_secs_f64()).ceil() as u64 }
    }

    /// Returns the delay as a series of steps of at most `step`; each step has the delay at its middle, rounded to a
    /// microsecond. At the begin of the series the first satellite has already served for `served`.
    pub fn series(&self, step: Span, served: Span) -> Series {
        let at = |t_s| Span::from_micros((self.delay_ms(t_s) * 1e3).round() as u64);
        let delay = |t_s| Values { delay: Some(at(t_s)), ..Values::default() };
        if self.is_fixed() {
            return Series::new(vec![Point { at: Span::ZERO, values: delay(0.0) }], None);
        }
        let (steps, passage) = (self.steps(step), self.handover_s());
        let step_s = passage / steps as f64;
        let point = |i| Point { at: Span::from_secs_f64(i as f64 * step_s), values: delay((i as f64 + 0.5) * step_s) };
        Series::new((0..steps).map(point).collect(), Some(Span::from_secs_f64(passage))).entered(served)
    }

    /// Returns the angle between two satellites in degrees.
    fn spacing(&self) -> f64 {
        360.0 / f64::from(self.satellites)
    }

    /// Returns the cosine of the angle between a station and the point below the satellite, seen from the centre of the
    /// earth.
    fn cosine(&self, longitude: f64) -> f64 {
        libm::cos(self.latitude.to_radians()) * libm::cos(longitude.to_radians())
    }

    fn slant_km(&self, longitude: f64) -> f64 {
        let (station, satellite) = (EARTH_KM, self.radius_km());
        (station * station + satellite * satellite - 2.0 * station * satellite * self.cosine(longitude)).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GEO: Orbit = Orbit::PRESETS[0].1;
    const MEO: Orbit = Orbit::PRESETS[1].1;
    const LEO: Orbit = Orbit::PRESETS[2].1;

    fn near(found: f64, expected: f64, by: f64) {
        assert!((found - expected).abs() <= by, "{found} is not {expected}");
    }

    /// Lists the times in seconds and the delays in milliseconds of a series.
    fn times(series: &Series) -> Vec<(f64, f64)> {
        let delay = |point: &Point| point.values.delay.map_or(0.0, Span::as_millis_f64);
        series.points().iter().map(|point| (point.at.as_secs_f64(), delay(point))).collect()
    }

    #[test]
    fn orbits_turn_as_kepler_says() {
        near(GEO.period_s(), DAY_S, 1.0);
        assert!(GEO.is_fixed() && GEO.handover_s() == f64::INFINITY);
        near(LEO.period_s() / 60.0, 100.4, 0.2); // Iridium's
    }

    #[test]
    fn an_o3b_satellite_rises_every_45_minutes() {
        near(MEO.handover_s(), 45.0 * 60.0, 1.0);
    }

    /// The source of the architecture (2.1.2.6) gives GEO at least 500 to 550 ms, MEO 200 ms on average, LEO less than
    /// 100 ms.
    #[test]
    fn round_trips_are_those_of_the_source() {
        let mean = |orbit: Orbit| {
            let passage = if orbit.is_fixed() { 1.0 } else { orbit.handover_s() };
            (0..100).map(|i| 2.0 * orbit.delay_ms((f64::from(i) + 0.5) / 100.0 * passage)).sum::<f64>() / 100.0
        };
        assert!((500.0..=550.0).contains(&mean(GEO)), "{}", mean(GEO));
        near(mean(MEO), 200.0, 20.0);
        assert!(mean(LEO) < 100.0, "{}", mean(LEO));
    }

    /// Overhead, the path goes up and down: 2 x 8063 km. Half-way to the next of 8 satellites, the law of cosines
    /// applies with 22.5 degrees.
    #[test]
    fn delay_at_the_zenith_and_at_handover() {
        near(MEO.delay_ms(MEO.handover_s() / 2.0) - 35.0, 2.0 * 8063.0 / 299.792_458, 1e-9);
        let (station, satellite) = (6378.137_f64, 14_441.137_f64);
        let cosine = (std::f64::consts::PI / 8.0).cos();
        let slant = (station.powi(2) + satellite.powi(2) - 2.0 * station * satellite * cosine).sqrt();
        near(MEO.delay_ms(0.0) - 35.0, 2.0 * slant / 299.792_458, 1e-9);
    }

    #[test]
    fn the_next_satellite_is_as_far_as_the_last() {
        let apart = Orbit { latitude: 30.0, apart: 20.0, ..MEO };
        near(apart.delay_ms(0.0), apart.delay_ms(apart.handover_s() - 1e-6), 1e-6);
        assert!(apart.delay_ms(0.0) > apart.delay_ms(apart.handover_s() / 2.0) + 1.0);
    }

    #[test]
    fn who_turns_slower_than_the_earth_passes_the_other_way() {
        let high = Orbit::over(45_000.0, 4);
        assert!(high.period_s() > DAY_S);
        near(high.handover_s(), high.period_s() * DAY_S / (high.period_s() - DAY_S) / 4.0, 1e-6);
    }

    #[test]
    fn what_cannot_be_seen() {
        assert!(MEO.is_seen() && LEO.is_seen());
        assert!(!Orbit::over(780.0, 4).is_seen(), "45 degrees away; the horizon is at 27");
        assert!(!Orbit { latitude: 80.0, ..MEO }.is_seen());
    }

    #[test]
    fn steps_repeat_with_each_satellite() {
        let series = LEO.series(Span::from_secs(5), Span::ZERO);
        assert_eq!(series.every(), Some(Span::from_secs_f64(LEO.handover_s())));
        let times = times(&series);
        assert_eq!(times[0].0, 0.0);
        assert!(times.windows(2).all(|pair| (0.0..=5.0).contains(&(pair[1].0 - pair[0].0))));
        assert!(LEO.handover_s() - times[times.len() - 1].0 <= 5.0);
        let lowest = times.iter().min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0.0, |low| low.0);
        near(lowest, LEO.handover_s() / 2.0, 5.0);
    }

    /// A passage of 2700.05 s has 271 steps of at most 10 s; each step has the delay at its middle, rounded to a
    /// microsecond.
    #[test]
    fn a_step_has_the_delay_of_its_middle() {
        let (steps, times) = (MEO.steps(Span::from_secs(10)), times(&MEO.series(Span::from_secs(10), Span::ZERO)));
        assert_eq!((steps, times.len()), (271, 271), "{} s", MEO.handover_s());
        assert_eq!([times[0].1, times[1].1, times[134].1, times[270].1], [94.270, 94.194, 88.791, 94.270]);
        let step_s = MEO.handover_s() / 271.0;
        for (index, (at, delay)) in times.into_iter().enumerate() {
            near(at, index as f64 * step_s, 1e-9);
            near(delay, MEO.delay_ms((index as f64 + 0.5) * step_s), 0.5e-3 + 1e-9);
        }
    }

    /// This satellite serves for another 300 s, which are 31 steps of 9.96 s: the delay grows, and with the next
    /// satellite it falls again in the same way.
    #[test]
    fn a_run_can_begin_amid_a_passage() {
        let times = times(&MEO.series(Span::from_secs(10), Span::from_secs(2400)));
        let delays: Vec<f64> = times.iter().map(|(_, delay)| *delay).collect();
        assert!(delays[..31].is_sorted(), "{:?}", &delays[..31]);
        near(times[31].0, MEO.handover_s() - 2400.0, 1e-6);
        (0..30).for_each(|step| near(delays[31 + step], delays[30 - step], 1e-3 + 1e-9));
    }

    #[test]
    fn a_fixed_one_has_one_delay() {
        let series = GEO.series(Span::from_secs(10), Span::from_secs(3));
        assert_eq!((series.points().len(), series.every()), (1, None));
        near(times(&series)[0].1 - 35.0, 2.0 * 35_786.0 / 299.792_458, 1e-3);
    }
}
