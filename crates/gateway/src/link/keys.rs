//! The keys of `[link]` that say where rates come from.

use crate::link::source::{From, Settings};
use crate::link::timetable::Timetable;
use penstock_core::config::ConfigError;
use penstock_core::units::{Rate, Span};
use penstock_grammar::link::{self, MAX_DELAY, MAX_RATE};
use penstock_grammar::range::within;
use serde::Deserialize;

/// Without `lowest` and `highest`, rates up to so many times lower or higher than `rate` are right.
const FACTOR: u64 = 20;

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Keys {
    rate_from: Option<From>,
    #[serde(default)]
    pub timetable: Timetable,
    #[serde(default)]
    pub reverse_timetable: Timetable,
    #[serde(default)]
    pub command: Vec<String>,
    /// How often the command runs.
    #[serde(default = "ten_seconds")]
    pub every: Span,
    /// After this time without a good value the source is said to be silent.
    #[serde(default = "a_minute")]
    pub stale_after: Span,
    /// After this time without a good value packets pass as if there were no shaper.
    #[serde(default = "a_quarter")]
    pub plain_after: Span,
    lowest: Option<Rate>,
    highest: Option<Rate>,
    reverse_lowest: Option<Rate>,
    reverse_highest: Option<Rate>,
    /// What a round trip over the link takes at least, such as 500 ms of a geostationary satellite.
    pub round_trip: Option<Span>,
}

fn ten_seconds() -> Span {
    Span::from_secs(10)
}
fn a_minute() -> Span {
    Span::from_secs(60)
}
fn a_quarter() -> Span {
    Span::from_secs(900)
}

impl Keys {
    /// Checks the keys; `rates` are `rate` and `reverse_rate`. The error names the first key that is wrong.
    pub fn settings(self, rates: [Rate; 2]) -> Result<Settings, ConfigError> {
        let from = self.from()?;
        for (key, table) in [("timetable", &self.timetable), ("reverse_timetable", &self.reverse_timetable)] {
            table.rates().try_for_each(|rate| link::rate(key, rate))?;
        }
        let day = Span::from_secs(86_400);
        within("every", &self.every, Span::from_secs(1)..=day)?;
        within("stale_after", &self.stale_after, self.every..=day)?;
        within("plain_after", &self.plain_after, self.stale_after..=Span::from_secs(7 * 86_400))?;
        if let Some(round_trip) = &self.round_trip {
            within("round_trip", round_trip, Span::from_millis(1)..=MAX_DELAY)?;
        }
        let given = [(self.lowest, self.highest), (self.reverse_lowest, self.reverse_highest)];
        let bounds = [0, 1].map(|at| {
            let (bps, (lowest, highest)) = (rates[at].as_bps(), given[at]);
            let most = Rate::from_bps(bps.saturating_mul(FACTOR)).min(MAX_RATE);
            lowest.unwrap_or(Rate::from_bps((bps / FACTOR).max(1)))..=highest.unwrap_or(most)
        });
        for (at, key) in ["rate", "reverse_rate"].into_iter().enumerate() {
            let (rate, lowest, highest) = (rates[at], bounds[at].start(), bounds[at].end());
            if !bounds[at].contains(&rate) {
                let what = format!("{key} is {rate}; allowed are `lowest` to `highest`, {lowest} to {highest}");
                return Err(ConfigError::new(key, what));
            }
        }
        Ok(Settings { from, rates, bounds, keys: self })
    }

    /// Returns the source, which `timetable` and `command` tell by themselves.
    fn from(&self) -> Result<From, ConfigError> {
        let wrong = |key, what: &str| Err(ConfigError::new(key, what));
        let timetable = !self.timetable.is_empty() || !self.reverse_timetable.is_empty();
        let told = match (timetable, !self.command.is_empty()) {
            (true, true) => return wrong("command", "rates come from `timetable` or from `command`, not from both"),
            (true, false) => From::Timetable,
            (false, true) => From::Command,
            (false, false) => From::File,
        };
        let missing = match (self.rate_from.unwrap_or(told), told) {
            (from, told) if from == told => return Ok(told),
            (From::Estimate, From::File) => return Ok(From::Estimate),
            (From::Timetable, From::File) => {
                "the key `timetable` is missing; write for example timetable = { \"06:00\" = \"8Mbit/s\", \"22:00\" = \"50Mbit/s\" }"
            }
            (From::Command, From::File) => {
                "the key `command` is missing; write for example command = [\"/usr/local/bin/modem-rate\"]"
            }
            _ => "another source than the one whose keys are there; remove one of them",
        };
        wrong("rate_from", missing)
    }
}
