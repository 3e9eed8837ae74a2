//! Arrivals from CSV. The header row names the columns `t_ns`, `flow`, `size` and `ecn` in any order. Three further
//! columns are optional, and an empty cell in them means 0; all others are ignored.
//!
//! | column | meaning | allowed |
//! |---|---|---|
//! | `t_ns` | time of arrival in nanoseconds since the start of the trace | 0 to 10^15, never less than the line before |
//! | `flow` | the number of the flow it belongs to; see below | 0 to 2^64 - 1 |
//! | `size` | bytes without link header | 1 to 1048560 |
//! | `ecn` | the ECN field: 0 not capable, 1 ECT(1), 2 ECT(0), 3 CE | 0 to 3 |
//! | `ern` | the header bits ERC and ENR of explicit rate notification: 2 for ERC, 1 for ENR | 0 to 3 |
//! | `ern_cwnd` | the congestion window in the ERN option, in bytes; rounded down to what it can hold | 0 to 2147450880 |
//! | `ern_rtt_ms` | the round trip time in the ERN option; 0 means no option | 0 to 4095 |
//!
//! Lines that begin with `#` are comments.
//!
//! Flows below 65,536 keep their numbers, so that the class of a flow, its queue and its station do not depend on the
//! order of the lines. Algorithms have tables with a place for each number; therefore larger numbers, such as hashes, get
//! the numbers from 65,536 on in the order in which they appear, and a replay tells their classes.

use crate::arrival::{Arrival, FlowTable, MAX_SIZE, MAX_TIME};
use crate::error::ReadError;
use csv::{ByteRecord, ErrorKind, ReaderBuilder, Trim};
use penstock_core::packet::{Ecn, Ern, FlowId, RateNotice};
use penstock_core::units::{Bytes, Instant, Span};
use std::io::Read;
use std::ops::RangeInclusive;

const COLUMNS: [&str; 7] = ["t_ns", "flow", "size", "ecn", "ern", "ern_cwnd", "ern_rtt_ms"];
/// Number of columns that must be present, the first ones of the list.
const REQUIRED: usize = 4;
/// Flows below this number keep it.
const KEPT: u32 = 1 << 16;

/// A table of arrivals which is being read.
#[derive(Debug)]
pub struct Table<R> {
    reader: csv::Reader<R>,
    /// The place of each of [`COLUMNS`] in a row; `None` if the table does not have it.
    at: [Option<usize>; COLUMNS.len()],
    record: ByteRecord,
    /// The flows whose numbers are too large to be kept.
    others: FlowTable<u64>,
    last: u64,
}

impl<R: Read> Table<R> {
    /// Reads the header row.
    ///
    /// # Errors
    /// Returns [`ReadError::Table`] if a column is missing or present twice.
    pub fn new(reader: R) -> Result<Self, ReadError> {
        let mut reader = ReaderBuilder::new().flexible(true).trim(Trim::All).comment(Some(b'#')).from_reader(reader);
        let header = reader.byte_headers().map_err(|e| failure(&e))?.clone();
        let line = header.position().map_or(1, csv::Position::line);
        let at = places(&header, line, COLUMNS, REQUIRED)?;
        Ok(Self { reader, at, record: ByteRecord::new(), others: FlowTable::default(), last: 0 })
    }

    /// Returns the next arrival; `None` at the end of the table.
    ///
    /// # Errors
    /// Returns [`ReadError::Table`] with the line, the column and what is allowed. After an error this function must
    /// not be called again.
    pub fn next_arrival(&mut self) -> Result<Option<Arrival>, ReadError> {
        if !self.reader.read_byte_record(&mut self.record).map_err(|e| failure(&e))? {
            return Ok(None);
        }
        let t_ns = self.number(0, 0..=MAX_TIME.as_nanos())?;
        let label = self.number(1, 0..=u64::MAX)?;
        let size = self.number(2, 1..=MAX_SIZE.get())?;
        let ecn = self.number(3, 0..=3)?;
        let ern = self.ern()?;
        if t_ns < self.last {
            let what = format!("t_ns is {t_ns}, but the line before has {}; times must not go backwards", self.last);
            return Err(ReadError::Table { line: self.line(), what });
        }
        self.last = t_ns;
        Ok(Some(Arrival {
            t: Instant::from_nanos(t_ns),
            flow: self.flow(label),
            label,
            node: None,
            size: Bytes::new(size),
            ecn: Ecn::from_bits(ecn as u8),
            ern,
            dscp: None,
        }))
    }

    fn flow(&mut self, label: u64) -> FlowId {
        match u32::try_from(label) {
            Ok(number) if number < KEPT => FlowId(number),
            _ => FlowId(KEPT.saturating_add(self.others.id(label).0)),
        }
    }

    fn ern(&self) -> Result<Ern, ReadError> {
        let bits = self.optional(4, 0..=3)?;
        let cwnd = self.optional(5, 0..=RateNotice::MAX_CWND.get())?;
        let rtt_ms = self.optional(6, 0..=4095)?;
        let rate = (rtt_ms > 0).then(|| RateNotice::new(Bytes::new(cwnd), Span::from_millis(rtt_ms)));
        Ok(Ern { capable: bits & 2 != 0, tells_rate: bits & 1 != 0, rate })
    }

    fn line(&self) -> u64 {
        self.record.position().map_or(0, csv::Position::line)
    }

    fn cell(&self, column: usize) -> &[u8] {
        self.at[column].and_then(|at| self.record.get(at)).unwrap_or_default()
    }

    fn optional(&self, column: usize, allowed: RangeInclusive<u64>) -> Result<u64, ReadError> {
        if self.cell(column).is_empty() { Ok(0) } else { self.number(column, allowed) }
    }

    fn number(&self, column: usize, allowed: RangeInclusive<u64>) -> Result<u64, ReadError> {
        number(&self.record, self.at[column], COLUMNS[column], allowed)
    }
}

/// Returns the place of each of the columns; the first `required` of them must be present.
pub(crate) fn places<const N: usize>(
    header: &ByteRecord,
    line: u64,
    names: [&str; N],
    required: usize,
) -> Result<[Option<usize>; N], ReadError> {
    let mut at = [None; N];
    for (i, (slot, name)) in at.iter_mut().zip(names).enumerate() {
        let mut places = header.iter().enumerate().filter(|(_, cell)| *cell == name.as_bytes());
        *slot = match (places.next(), places.next()) {
            (Some((place, _)), None) => Some(place),
            (None, _) if i >= required => None,
            (None, _) => return Err(missing(line, name, header)),
            _ => return Err(ReadError::Table { line, what: format!("the column {name} is there twice") }),
        };
    }
    Ok(at)
}

/// Returns the number in a cell; a cell that is missing is empty.
pub(crate) fn number(
    record: &ByteRecord,
    place: Option<usize>,
    name: &str,
    allowed: RangeInclusive<u64>,
) -> Result<u64, ReadError> {
    let text = String::from_utf8_lossy(place.and_then(|at| record.get(at)).unwrap_or_default());
    text.parse().ok().filter(|value| allowed.contains(value)).ok_or_else(|| {
        let (low, high) = (allowed.start(), allowed.end());
        let shown: String = text.chars().take(40).collect();
        let what = format!("{name} is {shown:?}; whole numbers from {low} to {high} are allowed");
        ReadError::Table { line: record.position().map_or(0, csv::Position::line), what }
    })
}

fn missing(line: u64, name: &str, header: &ByteRecord) -> ReadError {
    let there: Vec<_> = header.iter().take(20).map(|c| String::from_utf8_lossy(&c[..c.len().min(40)])).collect();
    let what = format!("the column {name} is missing from the header row; there are: {}", there.join(", "));
    ReadError::Table { line, what }
}

pub(crate) fn failure(error: &csv::Error) -> ReadError {
    let (line, byte) = error.position().map_or((0, 0), |p| (p.line(), p.byte()));
    match error.kind() {
        ErrorKind::Io(e) => ReadError::Io { offset: byte, source: std::io::Error::new(e.kind(), e.to_string()) },
        _ => ReadError::Table { line, what: error.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Result<Vec<Arrival>, ReadError> {
        let mut table = Table::new(text.as_bytes())?;
        std::iter::from_fn(|| table.next_arrival().transpose()).collect()
    }

    fn error(text: &str) -> String {
        all(text).unwrap_err().to_string()
    }

    #[test]
    fn rates_are_read_where_there_are_columns_for_them() {
        let text =
            "ern_rtt_ms,t_ns,flow,size,ecn,ern,ern_cwnd\n100,0,1,40,2,3,10720\n,1,1,40,2,2,\n0,2,1,40,2,0,10720\n";
        let told: Vec<_> = all(text).unwrap().iter().map(|a| a.ern).collect();
        let rate = RateNotice::new(Bytes::new(10_720), Span::from_millis(100));
        let capable = Ern { capable: true, ..Ern::default() };
        assert_eq!(told, [Ern { tells_rate: true, rate: Some(rate), ..capable }, capable, Ern::default()]);
        assert_eq!(all("t_ns,flow,size,ecn\n0,1,40,2\n").unwrap()[0].ern, Ern::default());
        let head = "t_ns,flow,size,ecn,ern,ern_cwnd,ern_rtt_ms\n";
        for (row, column) in
            [("0,1,40,0,4,,", "ern is"), ("0,1,40,0,3,-1,1", "ern_cwnd is"), ("0,1,40,0,3,1,4096", "ern_rtt_ms is")]
        {
            let message = error(&format!("{head}{row}\n"));
            assert!(message.contains(column) && message.contains("line 2"), "{message}");
        }
        assert!(error("t_ns,flow,size,ecn,ern,ern\n").contains("ern is there twice"));
    }

    #[test]
    fn columns_come_in_any_order_among_others() {
        let text = "# made by hand\nnote,ecn, size ,t_ns,flow\n\"a, b\",2,1500,0,900\n,0,40,10,7\n,3,1,10,900\n";
        let seen: Vec<_> =
            all(text).unwrap().iter().map(|a| (a.t.as_nanos(), a.flow.0, a.label, a.size.get(), a.ecn)).collect();
        assert_eq!(seen, [(0, 900, 900, 1500, Ecn::Ect0), (10, 7, 7, 40, Ecn::NotEct), (10, 900, 900, 1, Ecn::Ce)]);
    }

    #[test]
    fn small_numbers_of_flows_are_kept_and_large_ones_are_counted() {
        let labels = [7, 65_536, u64::MAX, 0, 65_535, 65_536, 7];
        let rows: String = labels.iter().map(|label| format!("0,{label},40,0\n")).collect();
        let seen = all(&format!("t_ns,flow,size,ecn\n{rows}")).unwrap();
        assert!(seen.iter().map(|arrival| arrival.label).eq(labels));
        let flows: Vec<u32> = seen.iter().map(|arrival| arrival.flow.0).collect();
        assert_eq!(flows, [7, 65_536, 65_537, 0, 65_535, 65_536, 7]);
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_header() {
        assert_eq!(all("\u{feff}t_ns,flow,size,ecn\n1,2,3,0\n").unwrap().len(), 1);
    }

    #[test]
    fn mistakes_name_line_column_and_what_is_allowed() {
        let head = "t_ns,flow,size,ecn\n";
        for (lines, expected) in [
            ("0,1,40,0\n5,1,zwei,0\n", "CSV line 3: size is \"zwei\"; whole numbers from 1 to 1048560 are allowed"),
            ("0,1,0,0\n", "CSV line 2: size is \"0\"; whole numbers from 1 to 1048560 are allowed"),
            ("0,1,1048561,0\n", "CSV line 2: size is \"1048561\"; whole numbers from 1 to 1048560 are allowed"),
            ("0,1,40,4\n", "CSV line 2: ecn is \"4\"; whole numbers from 0 to 3 are allowed"),
            ("0,1,40\n", "CSV line 2: ecn is \"\"; whole numbers from 0 to 3 are allowed"),
            ("-1,1,40,0\n", "CSV line 2: t_ns is \"-1\"; whole numbers from 0 to 1000000000000000 are allowed"),
            ("7,1,40,0\n6,1,40,0\n", "CSV line 3: t_ns is 6, but the line before has 7; times must not go backwards"),
        ] {
            assert_eq!(error(&format!("{head}{lines}")), expected);
        }
        let message = error("t_ns,flow,bytes,ecn\n");
        assert!(
            message.contains("line 1") && message.contains("size is missing") && message.contains("bytes"),
            "{message}"
        );
        assert!(error("t_ns,flow,size,ecn,size\n").contains("size is there twice"));
    }
}
