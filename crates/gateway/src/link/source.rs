//! Where the rates come from, and what holds when they do not come. Sans-IO: the caller runs the script and reads the
//! clock.

use crate::link::script::Told;
use crate::link::timetable::Timetable;
use jiff::civil::Time;
use penstock_appliance::live::Words;
use penstock_core::config::ConfigError;
use penstock_core::estimate::Known;
use penstock_core::units::{Instant, Rate, Span};
use penstock_grammar::link::{MAX_DELAY, MAX_RATE};
use penstock_grammar::range::within;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::ops::RangeInclusive;

/// What tells the rates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum From {
    /// The file, and whoever sets another one.
    File,
    Timetable,
    /// A command that prints them.
    Command,
    /// The traffic.
    Estimate,
}

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
            table.rates().try_for_each(|rate| Words::GATEWAY.rate(key, rate))?;
        }
        for (key, rate) in [("lowest", self.lowest), ("reverse_lowest", self.reverse_lowest)] {
            rate.map_or(Ok(()), |rate| Words::GATEWAY.rate(key, rate))?;
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
            let (around, (lowest, highest)) = (Known::around(rates[at]), given[at]);
            lowest.unwrap_or(around.lowest.max(Words::GATEWAY.least))..=highest.unwrap_or(around.highest.min(MAX_RATE))
        });
        let keys =
            [("rate", "timetable", &self.timetable), ("reverse_rate", "reverse_timetable", &self.reverse_timetable)];
        for (at, (key, table, timetable)) in keys.into_iter().enumerate() {
            let (lowest, highest) = (bounds[at].start(), bounds[at].end());
            let mut told = std::iter::once((key, rates[at])).chain(timetable.rates().map(|rate| (table, rate)));
            if let Some((key, rate)) = told.find(|(_, rate)| !bounds[at].contains(rate)) {
                let what = format!("{key} has {rate}; allowed are `lowest` to `highest`, {lowest} to {highest}");
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

#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// What tells the rates.
    pub from: From,
    /// The rates of the file, which hold until the source has told others.
    pub rates: [Rate; 2],
    /// Rates outside of these are wrong.
    pub bounds: [RangeInclusive<Rate>; 2],
    pub keys: Keys,
}

/// How the source stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    Good,
    /// It has told nothing yet: the rates of the file hold.
    Waiting,
    Stale,
    Plain,
    ByHand,
}

#[derive(Debug)]
pub struct Source {
    pub settings: Settings,
    good: [Rate; 2],
    /// When the last good value came, or the run began.
    since: Instant,
    told: bool,
    wrong: Option<String>,
    /// True while a rate holds that somebody has set.
    pub by_hand: bool,
}

impl Source {
    pub fn new(settings: Settings, now: Instant) -> Self {
        Self { good: settings.rates, settings, since: now, told: false, wrong: None, by_hand: false }
    }

    pub fn offer(&mut self, told: Result<Told, String>, now: Instant) {
        match told.and_then(|told| self.checked(told)) {
            Ok(rates) => (self.good, self.since, self.told, self.wrong) = (rates, now, true, None),
            Err(why) => self.wrong = Some(why),
        }
    }

    fn checked(&self, told: Told) -> Result<[Rate; 2], String> {
        let mut rates = self.good;
        for (at, rate) in told.into_iter().enumerate() {
            let Some(rate) = rate else { continue };
            let bounds = &self.settings.bounds[at];
            if !bounds.contains(&rate) {
                return Err(format!("it told {rate}; allowed are {} to {}", bounds.start(), bounds.end()));
            }
            rates[at] = rate;
        }
        Ok(rates)
    }

    /// Takes the time of day; `None` if the clock was not set.
    pub fn clock(&mut self, clock: Option<Time>, now: Instant) {
        let Settings { from, rates, keys, .. } = &self.settings;
        if *from != From::Timetable {
            return;
        }
        let Some(clock) = clock else {
            self.wrong = Some("the clock of this machine was not set; the timetable waits for it".into());
            return;
        };
        let at = |table: &Timetable, rate: Rate| table.at(clock).or(Some(rate));
        let told = [at(&keys.timetable, rates[0]), at(&keys.reverse_timetable, rates[1])];
        self.offer(Ok(told), now);
    }

    pub fn standing(&self, now: Instant) -> Standing {
        let silent = now.since(self.since);
        let may_be_silent = matches!(self.settings.from, From::File | From::Estimate);
        let waits = self.settings.from == From::Timetable;
        match () {
            () if self.by_hand => Standing::ByHand,
            () if may_be_silent => Standing::Good,
            () if !waits && silent >= self.settings.keys.plain_after => Standing::Plain,
            () if !self.told => Standing::Waiting,
            () if silent >= self.settings.keys.stale_after => Standing::Stale,
            () => Standing::Good,
        }
    }

    /// Returns the rates for the shaper; `None` if those that are set stay.
    pub fn rates(&self, now: Instant) -> Option<[Rate; 2]> {
        match self.standing(now) {
            _ if self.settings.from == From::File => None,
            Standing::ByHand => None,
            Standing::Plain => Some([MAX_RATE; 2]),
            Standing::Good | Standing::Waiting | Standing::Stale => Some(self.good),
        }
    }

    pub fn mark(&self, now: Instant) -> Option<String> {
        let silent = now.since(self.since).as_secs_f64();
        let why = self.wrong.as_ref().map_or(String::new(), |why| format!(" ({why})"));
        let [down, up] = self.good;
        let said = match self.standing(now) {
            Standing::ByHand => return None,
            Standing::Plain => format!("is silent for {silent:.0} s{why}: packets pass as if there were no shaper"),
            Standing::Stale => {
                format!("is silent for {silent:.0} s{why}: the last good rates hold, {down} down and {up} up")
            }
            Standing::Waiting if self.wrong.is_some() => {
                format!("has told nothing yet{why}: the rates of the file hold")
            }
            Standing::Good | Standing::Waiting => {
                format!("is wrong: {}; the last good rates hold", self.wrong.as_ref()?)
            }
        };
        Some(format!("the source of the rate {said}"))
    }

    /// Returns what the status tells: the last good rates, and for how long there has been no good value.
    pub fn report(&self, now: Instant) -> Value {
        let (from, state, silent) = (self.settings.from, self.standing(now), now.since(self.since).as_secs_f64());
        let silent = if from == From::File { 0.0 } else { silent };
        let rates = self.good.map(Rate::as_bps);
        json!({"from": from, "state": state, "rate_bps": rates, "silent_s": silent, "wrong": self.wrong})
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::time;

    fn mbps(n: u64) -> Rate {
        Rate::from_bps(n * 1_000_000)
    }

    fn at(s: u64) -> Instant {
        Instant::ZERO + Span::from_secs(s)
    }

    fn source(from: From) -> Source {
        let text = r#"{"timetable": {"06:00": "8Mbit/s", "22:00": "50Mbit/s"}}"#;
        let (rates, bounds) = ([mbps(20), mbps(2)], [(); 2].map(|()| mbps(1)..=mbps(100)));
        Source::new(Settings { from, rates, bounds, keys: serde_json::from_str(text).unwrap() }, at(0))
    }

    #[test]
    fn a_silent_source_falls_back_to_the_last_good_rate_and_then_to_plain_forwarding() {
        let mut source = source(From::Command);
        assert_eq!((source.standing(at(1)), source.rates(at(1))), (Standing::Waiting, Some([mbps(20), mbps(2)])));
        source.offer(Ok([Some(mbps(10)), None]), at(10));
        assert_eq!((source.standing(at(69)), source.mark(at(69))), (Standing::Good, None));
        assert_eq!(source.standing(at(70)), Standing::Stale);
        assert_eq!(source.rates(at(70)), Some([mbps(10), mbps(2)]));
        assert!(source.mark(at(70)).unwrap().contains("silent for 60 s: the last good rates hold, 10Mbit/s down"));
        assert_eq!(source.rates(at(910)), Some([MAX_RATE; 2]));
        assert!(source.mark(at(910)).unwrap().contains("as if there were no shaper"));
        source.offer(Ok([Some(mbps(12)), Some(mbps(3))]), at(1000));
        assert_eq!((source.rates(at(1001)), source.mark(at(1001))), (Some([mbps(12), mbps(3)]), None));
    }

    #[test]
    fn a_wrong_source_is_told_and_its_values_are_not_taken() {
        let mut source = source(From::Command);
        for wrong in [Ok([Some(mbps(500)), None]), Ok([Some(mbps(5)), Some(Rate::from_bps(0))]), Err("exit 3".into())] {
            source.offer(wrong, at(5));
            assert_eq!(source.rates(at(5)), Some([mbps(20), mbps(2)]));
            assert!(source.mark(at(5)).unwrap().contains("told nothing yet ("));
        }
        assert_eq!(source.standing(at(900)), Standing::Plain, "who never was good ends in plain forwarding as well");
    }

    #[test]
    fn a_timetable_waits_for_the_clock_and_never_ends_in_plain_forwarding() {
        let mut source = source(From::Timetable);
        source.clock(None, at(1));
        assert_eq!((source.standing(at(5000)), source.rates(at(5000))), (Standing::Waiting, Some([mbps(20), mbps(2)])));
        assert!(source.mark(at(1)).unwrap().contains("the timetable waits"));
        source.clock(Some(time(7, 30, 0, 0)), at(5001));
        assert_eq!((source.rates(at(5001)), source.mark(at(5001))), (Some([mbps(8), mbps(2)]), None));
        source.clock(Some(time(23, 0, 0, 0)), at(5002));
        assert_eq!(source.rates(at(5002)), Some([mbps(50), mbps(2)]));
    }

    #[test]
    fn what_somebody_set_holds_until_it_is_taken_back() {
        let mut source = source(From::Command);
        source.offer(Ok([Some(mbps(10)), None]), at(0));
        source.by_hand = true;
        assert_eq!((source.rates(at(5000)), source.standing(at(5000))), (None, Standing::ByHand));
        source.by_hand = false;
        assert_eq!(source.rates(at(1)), Some([mbps(10), mbps(2)]));
    }
}
