//! The log of changes: a file that only grows, a line of JSON for each change. A line is written by one call, so that a
//! power cut leaves whole lines and at most one that is cut off.

use crate::socket::server::Peer;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The log of a gateway: a file to which each change of its settings is appended.
#[derive(Debug)]
pub struct Log {
    path: Option<PathBuf>,
    /// The last error.
    error: Option<String>,
}

impl Log {
    /// The log at this path, which is made at the first line.
    pub fn new(path: PathBuf) -> Self {
        Self { path: Some(path), error: None }
    }

    /// A log that nobody keeps.
    pub fn nowhere() -> Self {
        Self { path: None, error: None }
    }

    /// Adds a line: who did what, by the clock of the system. An error is kept for the status.
    pub fn add(&mut self, by: Option<Peer>, what: &str, details: &Value) {
        let Some(path) = &self.path else { return };
        let mut line = json!({"at": date(SystemTime::now()), "do": what});
        if let Some(Peer { uid, pid }) = by {
            let command = pid.and_then(|pid| std::fs::read_to_string(format!("/proc/{pid}/comm")).ok());
            line["by"] = json!({"uid": uid, "pid": pid, "command": command.as_deref().map(str::trim)});
        }
        if !details.is_null() {
            line["details"] = details.clone();
        }
        self.error = write(path, &format!("{line}\n")).err().map(|e| format!("{}: {e}", path.display()));
    }

    /// Returns why the last line is not in the file.
    pub fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }
}

/// Adds a line to the file at a path.
fn write(path: &Path, line: &str) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)?;
    }
    File::options().append(true).create(true).open(path)?.write_all(line.as_bytes())
}

/// Returns a time in UTC as RFC 3339 has it. The days are those of the Gregorian calendar since 1970, counted in years
/// that begin in March, so that a leap day is the last of its year.
fn date(time: SystemTime) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let (days, second) = (since.as_secs() / 86_400 + 719_468, since.as_secs() % 86_400);
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, late) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let (year, millis) = (400 * era + year + late, since.subsec_millis());
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of seconds are those of `date -u -d ... +%s`.
    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399, "2000-02-28T23:59:59.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (1_709_251_200, "2024-03-01T00:00:00.000Z"),
            (1_798_761_599, "2026-12-31T23:59:59.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(date(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)), expected);
        }
    }

    #[test]
    fn lines_are_added_and_an_error_is_told() {
        let directory = std::env::temp_dir().join(format!("penstock-log-{}", std::process::id()));
        let mut log = Log::new(directory.join("deep/log.jsonl"));
        let peer = Peer { uid: Some(0), pid: Some(std::process::id() as i32) };
        log.add(Some(peer), "set", &json!({"rate": "1Mbit/s"}));
        log.add(None, "lapse", &Value::Null);
        let text = std::fs::read_to_string(directory.join("deep/log.jsonl")).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((lines[0]["do"].as_str(), lines[0]["details"]["rate"].as_str()), (Some("set"), Some("1Mbit/s")));
        assert!(lines[0]["by"]["command"].is_string() && lines[1]["by"].is_null() && log.error().is_none());
        let mut full = Log::new("/dev/full".into());
        full.add(None, "x", &Value::Null);
        assert!(full.error().unwrap().starts_with("/dev/full: "));
        std::fs::remove_dir_all(directory).unwrap();
    }

    /// More than a whole cycle of 400 years, day by day. The rule is that of the calendar: every fourth year is a leap year,
    /// unless it ends a century that 4 does not divide.
    #[test]
    fn each_day_is_followed_by_the_next_one() {
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for count in 0..160_000 {
            let shown = date(SystemTime::UNIX_EPOCH + Duration::from_secs(86_400 * count));
            assert_eq!(shown, format!("{year:04}-{month:02}-{day:02}T00:00:00.000Z"));
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let last = match month {
                2 if leap => 29,
                2 => 28,
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            (month, day) = if day == last { (month + 1, 1) } else { (month, day + 1) };
            (year, month) = if month == 13 { (year + 1, 1) } else { (year, month) };
        }
    }

    #[test]
    fn a_time_of_day_has_milliseconds() {
        let time = Duration::new(23 * 3600 + 45 * 60 + 6, 78_999_999);
        assert_eq!(date(SystemTime::UNIX_EPOCH + time), "1970-01-01T23:45:06.078Z");
        assert_eq!(date(SystemTime::UNIX_EPOCH - Duration::from_secs(1)), "1970-01-01T00:00:00.000Z");
    }
}
