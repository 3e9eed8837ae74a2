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

/// The keys of the source.
#[derive(Debug, Clone, Deserialize)]
pub struct Keys {
    rate_from: Option<From>,
    #[serde(default)]
    timetable: Timetable,
    #[serde(default)]
    reverse_timetable: Timetable,
    #[serde(default)]
    command: Vec<String>,
    #[serde(default = "ten_seconds")]
    every: Span,
    #[serde(default = "a_minute")]
    stale_after: Span,
    #[serde(default = "a_quarter")]
    plain_after: Span,
    lowest: Option<Rate>,
    highest: Option<Rate>,
    reverse_lowest: Option<Rate>,
    reverse_highest: Option<Rate>,
    round_trip: Option<Span>,
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
    /// Checks the keys; `rates` are `rate` and `reverse_rate`.
    ///
    /// # Errors
    /// Returns the first key that is wrong.
    pub fn settings(self, rates: [Rate; 2]) -> Result<Settings, ConfigError> {
        let from = self.from()?;
        for (key, table) in [("timetable", &self.timetable), ("reverse_timetable", &self.reverse_timetable)] {
            table.entries().try_for_each(|(_, rate)| link::rate(key, rate))?;
        }
        let day = Span::from_secs(86_400);
        within("every", &self.every, Span::from_secs(1)..=day)?;
        within("stale_after", &self.stale_after, self.every..=day)?;
        within("plain_after", &self.plain_after, self.stale_after..=Span::from_secs(7 * 86_400))?;
        if let Some(round_trip) = &self.round_trip {
            within("round_trip", round_trip, Span::from_millis(1)..=MAX_DELAY)?;
        }
        let lowest = |rate: Rate| Rate::from_bps((rate.as_bps() / FACTOR).max(1));
        let highest = |rate: Rate| Rate::from_bps(rate.as_bps().saturating_mul(FACTOR).min(MAX_RATE.as_bps()));
        let bounds = [
            ("rate", self.lowest.unwrap_or(lowest(rates[0])), self.highest.unwrap_or(highest(rates[0]))),
            (
                "reverse_rate",
                self.reverse_lowest.unwrap_or(lowest(rates[1])),
                self.reverse_highest.unwrap_or(highest(rates[1])),
            ),
        ];
        for ((key, lowest, highest), rate) in bounds.into_iter().zip(rates) {
            if !(lowest.as_bps()..=highest.as_bps()).contains(&rate.as_bps()) {
                return Err(ConfigError::new(
                    key,
                    format!("{key} is {rate}; allowed are `lowest` to `highest`, {lowest} to {highest}"),
                ));
            }
        }
        Ok(Settings {
            from,
            rates,
            lowest: bounds.map(|(_, lowest, _)| lowest),
            highest: bounds.map(|(_, _, highest)| highest),
            timetables: [self.timetable, self.reverse_timetable],
            command: self.command,
            every: self.every,
            stale_after: self.stale_after,
            plain_after: self.plain_after,
            round_trip: self.round_trip,
        })
    }

    /// Returns the source, which `timetable` and `command` tell by themselves.
    fn from(&self) -> Result<From, ConfigError> {
        let timetable = !self.timetable.is_empty() || !self.reverse_timetable.is_empty();
        let told = match (timetable, !self.command.is_empty()) {
            (true, true) => {
                return Err(ConfigError::new(
                    "command",
                    "rates come from `timetable` or from `command`, not from both",
                ));
            }
            (true, false) => Some(From::Timetable),
            (false, true) => Some(From::Command),
            (false, false) => None,
        };
        match (self.rate_from, told) {
            (None, told) => Ok(told.unwrap_or_default()),
            (Some(from), told) if told == Some(from) => Ok(from),
            (Some(from @ (From::File | From::Estimate)), None) => Ok(from),
            (Some(From::Timetable), None) => Err(ConfigError::new(
                "rate_from",
                "the key `timetable` is missing; write for example timetable = { \"06:00\" = \"8Mbit/s\", \"22:00\" = \"50Mbit/s\" }",
            )),
            (Some(From::Command), None) => Err(ConfigError::new(
                "rate_from",
                "the key `command` is missing; write for example command = [\"/usr/local/bin/modem-rate\"]",
            )),
            (Some(_), Some(_)) => Err(ConfigError::new(
                "rate_from",
                "another source than the one whose keys are there; remove one of them",
            )),
        }
    }
}
