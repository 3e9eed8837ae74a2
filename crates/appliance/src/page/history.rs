//! The last hour in seconds and the last day in steps of ten seconds, in bounded memory: 1.2 MB with 16 columns. If the file names a place,
//! the day is kept there: a file of fixed size, to which six rows are written each minute (26 kB per hour).

use crate::page::Content;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// What a step of ten seconds has of its seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// Their mean.
    Mean,
    /// Their sum.
    Sum,
    /// The largest one.
    Largest,
}

/// A column: its name, and what a step of ten seconds has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column(pub &'static str, pub Over);

const SECONDS: usize = 3600;
const TENS: usize = 8640;
const STEP: i64 = 10;
/// Number of rows that are written at once.
const AT_ONCE: usize = 6;

/// A second, or ten: the time and the values; NaN stands for what is not known.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Seconds since 1970.
    pub at: i64,
    /// The values of the columns.
    pub values: Box<[f32]>,
}

/// The rows of a day.
#[derive(Debug)]
pub struct History {
    columns: &'static [Column],
    magic: &'static [u8; 16],
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
    pub fn with(content: &Content, file: Option<File>, now: i64) -> Self {
        let Content { columns, magic, .. } = *content;
        let mut tens = file.as_ref().map(|file| load(file, magic, columns.len(), now)).unwrap_or_default();
        tens.sort_by_key(|row| row.at);
        let (seconds, open) = (VecDeque::new(), Vec::new());
        Self { columns, magic, seconds, tens: tens.into(), open, file, unwritten: 0, written: 0 }
    }

    /// Returns the length of a row in the file.
    fn row(&self) -> usize {
        8 + 4 * self.columns.len()
    }

    /// Adds a second.
    pub fn add(&mut self, row: Row) {
        if self.seconds.len() == SECONDS {
            self.seconds.pop_front();
        }
        self.seconds.push_back(row.clone());
        if self.open.first().is_some_and(|first| first.at.div_euclid(STEP) != row.at.div_euclid(STEP)) {
            self.close();
        }
        self.open.push(row);
    }

    /// Ends a step of ten seconds.
    fn close(&mut self) {
        let column = |(at, Column(_, over)): (usize, &Column)| {
            let known = self.open.iter().map(|row| row.values[at]).filter(|value| !value.is_nan());
            let count = known.clone().count();
            match over {
                _ if count == 0 => f32::NAN,
                Over::Sum => known.sum(),
                Over::Largest => known.fold(f32::MIN, f32::max),
                Over::Mean => known.sum::<f32>() / count as f32,
            }
        };
        let at = self.open[0].at.div_euclid(STEP) * STEP;
        let row = Row { at, values: self.columns.iter().enumerate().map(column).collect() };
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
        file.write_all_at(self.magic, 0)?;
        let length = self.row();
        for row in self.tens.iter().rev().take(AT_ONCE) {
            let place = self.magic.len() + (row.at.div_euclid(STEP) as usize % TENS) * length;
            file.write_all_at(&bytes(row), place as u64)?;
            self.written += length as u64;
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
            let newer = seconds().filter(|row| row.at > begin);
            self.tens.iter().filter(|row| row.at > since).chain(newer).map(shown).collect()
        };
        json!({"columns": names(self.columns), "rows": rows})
    }
}

/// Returns the names of columns.
pub fn names(columns: &[Column]) -> Vec<&'static str> {
    columns.iter().map(|Column(name, _)| *name).collect()
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

fn load(file: &File, magic: &[u8; 16], columns: usize, now: i64) -> Vec<Row> {
    let length = 8 + 4 * columns;
    let mut all = vec![0; magic.len() + TENS * length];
    let mut len = 0;
    while let Ok(read @ 1..) = file.read_at(&mut all[len..], len as u64) {
        len += read;
    }
    let Some(rows) = all[..len].strip_prefix(magic.as_slice()) else { return Vec::new() };
    let row = |bytes: &[u8]| {
        let (at, values) = bytes.split_at(8);
        let numbers = values.chunks_exact(4).map(|four| f32::from_le_bytes(four.try_into().expect("four bytes")));
        let at = i64::from_le_bytes(at.try_into().expect("eight bytes"));
        Row { at, values: numbers.collect() }
    };
    let day = TENS as i64 * STEP;
    rows.chunks_exact(length).map(row).filter(|row| row.at <= now && row.at > now - day).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 3] = [Column("a", Over::Mean), Column("b", Over::Sum), Column("c", Over::Largest)];

    fn row(at: i64, value: f32) -> Row {
        Row { at, values: [value; COLUMNS.len()].into() }
    }

    fn history(file: Option<File>, now: i64) -> History {
        let (name, html, script, magic) = ("test", "", "", b"penstock-test-1\0");
        let (row, metrics) = (|_: &Value, _: &Value| Vec::new(), |_: &Value| String::new());
        History::with(&Content { name, html, script, columns: &COLUMNS, row, magic, metrics }, file, now)
    }

    #[test]
    fn ten_seconds_have_the_mean_the_sum_or_the_largest() {
        let mut history = history(None, 0);
        (0..21).for_each(|at| history.add(row(1000 + at, at as f32)));
        let ten = &history.tens[0];
        assert_eq!((ten.at, &*ten.values), (1000, &[4.5, 45.0, 9.0][..]));
        assert_eq!(history.last(5)["rows"].as_array().unwrap().len(), 5);
        let long = history.last(86_400);
        let times: Vec<i64> = long["rows"].as_array().unwrap().iter().map(|row| row[0].as_i64().unwrap()).collect();
        assert_eq!(times, [1000, 1010, 1020]);
    }

    #[test]
    fn memory_and_what_is_written_are_bounded_and_a_day_comes_back() {
        let path = std::env::temp_dir().join(format!("penstock-day-{}", std::process::id()));
        let open = || File::options().read(true).write(true).create(true).truncate(false).open(&path).unwrap();
        let mut kept = history(Some(open()), 0);
        let begin = 1_800_000_000;
        (0..90_000).for_each(|second| kept.add(row(begin + second, (second / 10) as f32)));
        assert_eq!((kept.seconds.len(), kept.tens.len()), (SECONDS, TENS));
        assert!(kept.written <= 9000 * 20, "each row once: {}", kept.written);
        assert_eq!(std::fs::metadata(&path).unwrap().len(), (16 + TENS * 20) as u64);
        let again = history(Some(open()), begin + 90_000);
        // What was not written yet is lost: up to a minute.
        assert!((TENS - AT_ONCE - 2..=TENS).contains(&again.tens.len()), "{}", again.tens.len());
        assert_eq!(again.tens[100], *kept.tens.iter().find(|row| row.at == again.tens[100].at).unwrap());
        std::fs::write(&path, "something else").unwrap();
        assert!(history(Some(open()), begin).tens.is_empty());
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn what_is_not_known_is_null() {
        assert_eq!(shown(&row(5, f32::NAN))[1], Value::Null);
    }

    #[test]
    fn an_hour_is_told_by_the_second_and_more_by_ten() {
        let mut history = history(None, 0);
        (0..4000).for_each(|at| history.add(row(10_000 + at, at as f32)));
        let begin_and_step = |span: i64| {
            let rows = history.last(span)["rows"].as_array().unwrap().clone();
            let at = |n: usize| rows[n][0].as_i64().unwrap();
            (at(0), at(1) - at(0))
        };
        assert_eq!(begin_and_step(SECONDS as i64), (13_999 - 3600 + 1, 1));
        assert_eq!(begin_and_step(SECONDS as i64 + 1), (10_400, 10));
    }
}
