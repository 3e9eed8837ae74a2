//! Rates by the time of day: each holds from its time until the next one, and the last one holds over midnight.

use penstock_core::units::Rate;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

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

/// A time of day, in minutes after midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct TimeOfDay(u16);

impl FromStr for TimeOfDay {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str, most: u16| {
            let plain = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse::<u16>().ok().filter(|n| plain && *n <= most)
        };
        let read = || {
            let (hour, minute) = text.split_once(':')?;
            Some(Self(number(hour, 23)? * 60 + number(minute, 59)?))
        };
        read().ok_or_else(|| format!("{text:?} is no time of day; allowed are \"00:00\" to \"23:59\""))
    }
}

impl TryFrom<String> for TimeOfDay {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.0 / 60, self.0 % 60)
    }
}

/// A timetable of one direction.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Timetable(BTreeMap<TimeOfDay, Rate>);

impl Timetable {
    /// Returns the rate at a time of day; `None` if the timetable is empty.
    pub fn at(&self, hour: u8, minute: u8) -> Option<Rate> {
        let now = TimeOfDay(u16::from(hour) * 60 + u16::from(minute));
        let (_, rate) = self.0.range(..=now).next_back().or_else(|| self.0.last_key_value())?;
        Some(*rate)
    }

    /// Returns all times with their rates, in order.
    pub fn entries(&self) -> impl Iterator<Item = (TimeOfDay, Rate)> {
        self.0.iter().map(|(time, rate)| (*time, *rate))
    }

    /// True if no time is there.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Returns the hour and the minute by the clock and the time zone of this machine; `None` if the clock was not set.
pub fn clock() -> Option<(u8, u8)> {
    let now = jiff::ZonedDateTime::now();
    (now.timestamp().as_second() >= EARLIEST).then(|| (now.hour() as u8, now.minute() as u8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_holds_until_the_next_one_and_over_midnight() {
        let mbps = |n: u64| Rate::from_bps(n * 1_000_000);
        let table = [("06:30", 8), ("22:00", 50)].map(|(at, n)| (at.parse().unwrap(), mbps(n)));
        let table = Timetable(BTreeMap::from(table));
        for ((hour, minute), expected) in
            [((0, 0), 50), ((6, 29), 50), ((6, 30), 8), ((21, 59), 8), ((22, 0), 50), ((23, 59), 50)]
        {
            assert_eq!(table.at(hour, minute), Some(mbps(expected)), "{hour}:{minute}");
        }
        assert_eq!(Timetable::default().at(1, 2), None);
    }

    #[test]
    fn only_times_of_day_are_read() {
        assert_eq!("07:05".parse::<TimeOfDay>().unwrap().to_string(), "07:05");
        for wrong in ["24:00", "12:60", "7:05", "0705", "07:5", "+7:05", ""] {
            assert!(wrong.parse::<TimeOfDay>().unwrap_err().contains("\"23:59\""), "{wrong}");
        }
    }
}
