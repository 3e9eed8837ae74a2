//! The log of changes: a file that only grows, a line of JSON for each change. A line is written by one call, so that a
//! power cut leaves whole lines and at most one that is cut off.

use crate::socket::server::Peer;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The log of an appliance; without a path nobody keeps it.
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

/// Returns a time in UTC as RFC 3339 has it, with milliseconds.
fn date(time: SystemTime) -> String {
    Timestamp::try_from(time).map_or_else(|_| String::new(), |time| format!("{time:.3}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// The numbers of seconds are those of `date -u -d ... +%s`.
    #[test]
    fn dates_are_in_utc_with_milliseconds() {
        for (time, expected) in [
            (Duration::ZERO, "1970-01-01T00:00:00.000Z"),
            (Duration::new(951_782_400, 78_999_999), "2000-02-29T00:00:00.078Z"),
            (Duration::from_secs(4_107_542_400), "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(date(SystemTime::UNIX_EPOCH + time), expected);
        }
    }
}
