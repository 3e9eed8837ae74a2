//! Rates by the time of day: each holds from its time until the next one, and the last one holds over midnight.

use jiff::civil::Time;
use penstock_core::units::Rate;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A clock that shows an earlier time was not set: seconds since 1970. A build tells its own time by SOURCE_DATE_EPOCH.
pub const EARLIEST: i64 = match option_env!("SOURCE_DATE_EPOCH") {
    Some(text) => match i64::from_str_radix(text, 10) {
        Ok(seconds) => seconds,
        Err(_) => WRITTEN,
    },
    None => WRITTEN,
};
/// 2026-11-01, when this was written.
const WRITTEN: i64 = 1_793_491_200;

/// A time of day, in whole minutes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
struct TimeOfDay(Time);

impl TryFrom<String> for TimeOfDay {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let read = Time::strptime("%H:%M", &text).ok().filter(|time| time.strftime("%H:%M").to_string() == text);
        read.map(Self).ok_or_else(|| format!("{text:?} is no time of day; allowed are \"00:00\" to \"23:59\""))
    }
}

/// A timetable of one direction.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "BTreeMap<TimeOfDay, Rate>")]
pub struct Timetable(BTreeMap<TimeOfDay, Rate>);

impl TryFrom<BTreeMap<TimeOfDay, Rate>> for Timetable {
    type Error = &'static str;

    fn try_from(rates: BTreeMap<TimeOfDay, Rate>) -> Result<Self, &'static str> {
        let empty = "a timetable has a rate for a time at least; write for example { \"06:00\" = \"8Mbit/s\" }";
        if rates.is_empty() { Err(empty) } else { Ok(Self(rates)) }
    }
}

impl Timetable {
    /// Returns the rate at a time of day; `None` if the timetable is empty.
    pub fn at(&self, now: Time) -> Option<Rate> {
        let (_, rate) = self.0.range(..=TimeOfDay(now)).next_back().or_else(|| self.0.last_key_value())?;
        Some(*rate)
    }

    pub fn rates(&self) -> impl Iterator<Item = Rate> {
        self.0.values().copied()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Returns the time by the clock and the time zone of this machine; `None` if the clock was not set.
pub fn clock() -> Option<Time> {
    let now = jiff::ZonedDateTime::now();
    (now.timestamp().as_second() >= EARLIEST).then(|| now.time())
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::time;

    #[test]
    fn a_rate_holds_until_the_next_one_and_over_midnight() {
        let mbps = |n: u64| Rate::from_bps(n * 1_000_000);
        let table: Timetable = serde_json::from_str(r#"{"06:30": "8Mbit/s", "22:00": "50Mbit/s"}"#).unwrap();
        for ((hour, minute), expected) in
            [((0, 0), 50), ((6, 29), 50), ((6, 30), 8), ((21, 59), 8), ((22, 0), 50), ((23, 59), 50)]
        {
            assert_eq!(table.at(time(hour, minute, 0, 0)), Some(mbps(expected)), "{hour}:{minute}");
        }
        assert_eq!(Timetable::default().at(time(1, 2, 0, 0)), None);
    }

    #[test]
    fn only_times_of_day_are_read() {
        let read = |text: &str| TimeOfDay::try_from(text.to_owned());
        assert_eq!(read("07:05"), Ok(TimeOfDay(time(7, 5, 0, 0))));
        for wrong in ["24:00", "12:60", "7:05", "0705", "07:5", "+7:05", ""] {
            assert!(read(wrong).unwrap_err().contains("\"23:59\""), "{wrong}");
        }
    }
}
