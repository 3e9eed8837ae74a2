//! The last hour in seconds and the last day in steps of ten seconds, in bounded memory: 0.8 MB. If the file names a place,
//! the day is kept there: a file of fixed size, to which six rows are written each minute (26 kB per hour).

use serde_json::{Value, json};
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// What a row has, in its order; the first value is the time in seconds since 1970.
pub const COLUMNS: [&str; 16] = [
    "down_bps",
    "up_bps",
    "down_set_bps",
    "up_set_bps",
    "down_delay_ms",
    "up_delay_ms",
    "down_drops",
    "up_drops",
    "wan_ms",
    "wan_least_ms",
    "lan_least_ms",
    "queue_ms",
    "down_window",
    "up_window",
    "flows",
    "past",
];
/// Columns whose value over ten seconds is the sum, and those whose value is the largest; of others it is the mean.
const SUMS: [usize; 3] = [6, 7, 15];
const LARGEST: [usize; 4] = [4, 5, 8, 11];
const SECONDS: usize = 3600;
const TENS: usize = 8640;
const STEP: i64 = 10;
/// Number of rows that are written at once.
const AT_ONCE: usize = 6;
const MAGIC: &[u8; 16] = b"penstock-day-1\0\0";
const ROW: usize = 8 + 4 * COLUMNS.len();

/// A second, or ten: the time and the values; NaN stands for what is not known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// Seconds since 1970.
    pub at: i64,
    /// The values of [`COLUMNS`].
    pub values: [f32; COLUMNS.len()],
}

/// The rows of a day.
#[derive(Debug, Default)]
pub struct History {
    seconds: VecDeque<Row>,
    tens: VecDeque<Row>,
    /// The seconds of the step that has not ended.
    open: Vec<Row>,
    file: Option<File>,
    unwritten: usize,
    /// Number of bytes written.
    pub written: u64,
}

impl History {
    /// Begins with the rows of a file, which it keeps, as far as they are of the day before `now`.
    pub fn with(file: Option<File>, now: i64) -> Self {
        let mut tens: Vec<Row> = file.as_ref().map(|file| load(file, now)).unwrap_or_default();
        tens.sort_by_key(|row| row.at);
        Self { file, tens: tens.into(), ..Self::default() }
    }

    /// Adds a second.
    pub fn add(&mut self, row: Row) {
        if self.seconds.len() == SECONDS {
            self.seconds.pop_front();
        }
        self.seconds.push_back(row);
        if self.open.first().is_some_and(|first| first.at.div_euclid(STEP) != row.at.div_euclid(STEP)) {
            self.close();
        }
        self.open.push(row);
    }

    /// Ends a step of ten seconds.
    fn close(&mut self) {
        let column = |at: usize| {
            let known = self.open.iter().map(|row| row.values[at]).filter(|value| !value.is_nan());
            let count = known.clone().count();
            match count {
                0 => f32::NAN,
                _ if SUMS.contains(&at) => known.sum(),
                _ if LARGEST.contains(&at) => known.fold(f32::MIN, f32::max),
                _ => known.sum::<f32>() / count as f32,
            }
        };
        let at = self.open[0].at.div_euclid(STEP) * STEP;
        let row = Row { at, values: std::array::from_fn(column) };
        self.open.clear();
        if self.tens.len() == TENS {
            self.tens.pop_front();
        }
        self.tens.push_back(row);
        self.unwritten += 1;
        if self.unwritten >= AT_ONCE {
            self.unwritten = 0;
            if self.write().is_err() {
                // The day is still in memory; the file keeps what it has.
                self.file = None;
            }
        }
    }

    /// Writes the newest rows to their places, which their times tell.
    fn write(&mut self) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        file.write_all_at(MAGIC, 0)?;
        for row in self.tens.iter().rev().take(AT_ONCE) {
            let place = MAGIC.len() + (row.at.div_euclid(STEP) as usize % TENS) * ROW;
            file.write_all_at(&bytes(row), place as u64)?;
            self.written += ROW as u64;
        }
        Ok(())
    }

    /// Returns the rows of the last `span` seconds: seconds up to an hour, steps of ten seconds beyond.
    pub fn last(&self, span: i64) -> Value {
        let newest = self.seconds.back().map_or(0, |row| row.at);
        let since = newest - span;
        let seconds = || self.seconds.iter().filter(|row| row.at > since);
        let rows: Vec<Value> = if span <= SECONDS as i64 {
            seconds().map(shown).collect()
        } else {
            let begin = self.tens.back().map_or(since, |row| row.at + STEP - 1);
            let newer = self.seconds.iter().filter(|row| row.at > begin && row.at > since);
            self.tens.iter().filter(|row| row.at > since).chain(newer).map(shown).collect()
        };
        json!({"columns": COLUMNS, "rows": rows})
    }
}

/// Returns a row as JSON: the time, then the values, `null` for what is not known.
pub fn shown(row: &Row) -> Value {
    let value = |value: &f32| {
        if value.is_finite() { json!((f64::from(*value) * 1000.0).round() / 1000.0) } else { Value::Null }
    };
    std::iter::once(json!(row.at)).chain(row.values.iter().map(value)).collect()
}

fn bytes(row: &Row) -> Vec<u8> {
    let values = row.values.iter().flat_map(|value| value.to_le_bytes());
    row.at.to_le_bytes().into_iter().chain(values).collect()
}

fn load(file: &File, now: i64) -> Vec<Row> {
    let mut all = vec![0; MAGIC.len() + TENS * ROW];
    let mut len = 0;
    while let Ok(read @ 1..) = file.read_at(&mut all[len..], len as u64) {
        len += read;
    }
    let Some(rows) = all[..len].strip_prefix(MAGIC.as_slice()) else { return Vec::new() };
    let row = |bytes: &[u8]| {
        let (at, values) = bytes.split_at(8);
        let mut numbers = values.chunks_exact(4).map(|four| f32::from_le_bytes(four.try_into().expect("four bytes")));
        let at = i64::from_le_bytes(at.try_into().expect("eight bytes"));
        Row { at, values: std::array::from_fn(|_| numbers.next().unwrap_or(f32::NAN)) }
    };
    let day = TENS as i64 * STEP;
    rows.chunks_exact(ROW).map(row).filter(|row| row.at <= now && row.at > now - day).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(at: i64, value: f32) -> Row {
        Row { at, values: [value; COLUMNS.len()] }
    }

    #[test]
    fn ten_seconds_have_the_mean_the_sum_or_the_largest() {
        let mut history = History::default();
        (0..21).for_each(|at| history.add(row(1000 + at, at as f32)));
        let ten = history.tens[0];
        assert_eq!((ten.at, ten.values[0], ten.values[6], ten.values[4]), (1000, 4.5, 45.0, 9.0));
        assert_eq!(history.last(5)["rows"].as_array().unwrap().len(), 5);
        let long = history.last(86_400);
        let times: Vec<i64> = long["rows"].as_array().unwrap().iter().map(|row| row[0].as_i64().unwrap()).collect();
        assert_eq!(times, [1000, 1010, 1020]);
    }

    #[test]
    fn memory_and_what_is_written_are_bounded_and_a_day_comes_back() {
        let path = std::env::temp_dir().join(format!("penstock-day-{}", std::process::id()));
        let open = || File::options().read(true).write(true).create(true).truncate(false).open(&path).unwrap();
        let mut history = History::with(Some(open()), 0);
        let begin = 1_800_000_000;
        (0..90_000).for_each(|second| history.add(row(begin + second, (second / 10) as f32)));
        assert_eq!((history.seconds.len(), history.tens.len()), (SECONDS, TENS));
        assert!(history.written < 25 * 1_000_000, "25 hours, 1 MB each");
        assert_eq!(std::fs::metadata(&path).unwrap().len(), (MAGIC.len() + TENS * ROW) as u64);
        let again = History::with(Some(open()), begin + 90_000);
        // What was not written yet is lost: up to a minute.
        assert!((TENS - AT_ONCE - 2..=TENS).contains(&again.tens.len()), "{}", again.tens.len());
        assert_eq!(again.tens[100], *history.tens.iter().find(|row| row.at == again.tens[100].at).unwrap());
        std::fs::write(&path, "something else").unwrap();
        assert!(History::with(Some(open()), begin).tens.is_empty());
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn what_is_not_known_is_null() {
        assert_eq!(shown(&row(5, f32::NAN))[1], Value::Null);
    }
}
