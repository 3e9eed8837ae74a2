//! Recorded links: the texts of traces and tables, converted to series.
//!
//! A Mahimahi trace (described in the manual page of `mm-link` and in the README of its traces) has a line for each
//! opportunity to send 1500 B, with its time in milliseconds. Bytes are counted: two smaller packets can share a line,
//! and a packet can begin with the bytes that the packet before it left. After its last line the trace begins again,
//! shifted by the time of that line.
//!
//! DIFFERENCE: a link has a rate here and no list of opportunities. A trace is converted to rates, each of which sends
//! as many bits as the trace does in an interval of at least one bin (`a_stretch_carries_as_many_packets_as_the_trace`,
//! and in `tests/series.rs` `a_busy_link_sends_as_many_packets_as_its_trace_has_chances`). An outage has the rate that
//! follows from the packet at its end, so that a link stands still for no longer than the trace does
//! (`an_outage_is_a_stretch_of_its_own`).
//! DIFFERENCE: empty lines are allowed (`a_stretch_ends_with_a_packet_and_all_of_its_millisecond`).
//!
//! A table is CSV with a header: `t_s`, and the values of the link from that time on.

use crate::lines::{Mistake, RecordedError, lines};
use crate::measured;
use crate::series::{Point, Series, Values, Way};
use penstock_core::units::{Rate, Span};

pub use crate::lines::{MAX_BYTES, MAX_LINES};

/// Latest time of a line in seconds.
const MAX_TIME_S: u64 = 24 * 3600;
const MAX_RATE_BPS: f64 = 1e12;
const MAX_DELAY_MS: f64 = 600_000.0;
const PACKET_BITS: u64 = 1500 * 8;

/// Reads the Mahimahi trace in the file called `file`; each rate holds for at least `bin`, except around outages.
///
/// # Errors
/// Returns what is wrong, with file and line.
pub fn mahimahi(text: &str, file: &str, bin: Span) -> Result<Series, RecordedError> {
    chances(text).and_then(|chances| rates(&chances, bin)).map_err(|mistake| mistake.in_file(file))
}

/// Reads the table in the file called `file`, or the delays of a direction that others have measured
/// (`measured`). With `every` the series repeats, otherwise it ends with the last row.
///
/// # Errors
/// Returns what is wrong, with file and line.
pub fn table(text: &str, file: &str, every: Option<Span>, way: Way) -> Result<Series, RecordedError> {
    let found = measured::read(text, way).unwrap_or_else(|| rows(text).map(|points| (points, None)));
    let (points, own) = found.map_err(|mistake| mistake.in_file(file))?;
    let every = every.or(own);
    let last = points.last().map_or(Span::ZERO, |point| point.at);
    match every {
        Some(every) if every <= last => {
            let what = format!("its last row is at {last}, which is not before `every`, {every}");
            Err(Mistake::from(what).in_file(file))
        }
        _ => Ok(Series::new(points, every)),
    }
}

/// Quotes a line in a message, shortened because a line of a wrong file may be long.
fn quoted(text: &str) -> String {
    let short: String = text.chars().take(40).collect();
    if short.len() < text.len() { format!("{short:?}...") } else { format!("{short:?}") }
}

/// Reads the times of a trace in milliseconds, in order.
fn chances(text: &str) -> Result<Vec<u64>, Mistake> {
    let mut chances: Vec<u64> = Vec::new();
    for (number, line) in lines(text)? {
        let told = |what: String| Mistake::from(what).in_line(number);
        // Only digits are allowed, because `parse` would accept a sign.
        let digits = line.bytes().all(|byte| byte.is_ascii_digit());
        let Some(ms) = line.parse::<u64>().ok().filter(|_| digits) else {
            return Err(told(format!("{} is not a whole number of milliseconds", quoted(line))));
        };
        if ms > MAX_TIME_S * 1000 {
            return Err(told(format!("{ms} ms is too late; allowed are 0 to {} ms", MAX_TIME_S * 1000)));
        }
        if let Some(before) = chances.last().filter(|before| **before > ms) {
            return Err(told(format!("{ms} ms comes before {before} ms")));
        }
        chances.push(ms);
    }
    if chances.last().is_none_or(|last| *last == 0) {
        return Err("needs a packet later than 0 ms".to_owned().into());
    }
    Ok(chances)
}

/// Computes the rate of each interval. An interval ends with a packet and contains all packets of that millisecond. It
/// may be shorter than a bin if no packet follows for the length of a bin: an outage is an interval of its own.
fn rates(chances: &[u64], bin: Span) -> Result<Series, Mistake> {
    let bin_ms = bin.as_nanos().div_ceil(1_000_000).max(1);
    let mut points = Vec::new();
    let (mut begin, mut packets) = (0, 0);
    for (index, at) in chances.iter().enumerate() {
        packets += 1;
        let next = chances.get(index + 1);
        let goes_on = |next: &u64| next == at || *at == begin || (at - begin < bin_ms && next - at < bin_ms);
        if next.is_some_and(goes_on) {
            continue;
        }
        let bps = packets * PACKET_BITS * 1000 / (at - begin).max(1);
        if bps as f64 > MAX_RATE_BPS {
            return Err(format!("{packets} packets from {begin} to {at} ms; allowed is up to 1Tbit/s").into());
        }
        let values = Values { rate: Some(Rate::from_bps(bps)), ..Values::default() };
        points.push(Point { at: Span::from_millis(begin), values });
        (begin, packets) = (*at, 0);
    }
    Ok(Series::new(points, chances.last().map(|last| Span::from_millis(*last))))
}

/// A column of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Time,
    Rate,
    Delay,
    Loss,
}

impl Column {
    const ALL: [(&'static str, Self); 4] =
        [("t_s", Self::Time), ("rate_mbit_s", Self::Rate), ("delay_ms", Self::Delay), ("loss", Self::Loss)];

    fn names() -> [&'static str; 4] {
        Self::ALL.map(|(name, _)| name)
    }
}

/// Reads the columns that the header of a table names.
fn header(line: &str) -> Result<Vec<Column>, Mistake> {
    let names = Column::names();
    let mut columns = Vec::new();
    for name in line.split(',').map(str::trim) {
        let Some((_, column)) = Column::ALL.into_iter().find(|(known, _)| *known == name) else {
            return Err(format!("no column {}; there are {}", quoted(name), names.join(", ")).into());
        };
        if columns.contains(&column) {
            return Err(format!("column {name:?} is there twice").into());
        }
        columns.push(column);
    }
    if !columns.contains(&Column::Time) || columns.len() < 2 {
        return Err(format!("the header needs t_s and at least one of {}", names[1..].join(", ")).into());
    }
    Ok(columns)
}

fn rows(text: &str) -> Result<Vec<Point>, Mistake> {
    let mut lines = lines(text)?.filter(|(_, line)| !line.starts_with('#'));
    let Some((number, first)) = lines.next() else {
        return Err(Mistake::from(format!(
            "is empty; it needs a header with columns of {}",
            Column::names().join(", ")
        )));
    };
    let columns = header(first).map_err(|mistake| mistake.in_line(number))?;
    let mut points: Vec<Point> = Vec::new();
    for (number, line) in lines {
        let told = |what: String| Mistake::from(what).in_line(number);
        let point = row(line, &columns).map_err(|mistake| mistake.in_line(number))?;
        if let Some(before) = points.last().filter(|before| before.at >= point.at) {
            return Err(told(format!("{} does not come after {}", point.at, before.at)));
        }
        points.push(point);
    }
    if points.is_empty() { Err("has a header and no rows".to_owned().into()) } else { Ok(points) }
}

fn row(line: &str, columns: &[Column]) -> Result<Point, Mistake> {
    let fields = line.split(',').count();
    if fields != columns.len() {
        return Err(format!("has {fields} fields; the header has {}", columns.len()).into());
    }
    let mut point = Point { at: Span::ZERO, values: Values::default() };
    for (column, field) in columns.iter().zip(line.split(',').map(str::trim)) {
        let number = field.parse().map_err(|_| format!("{} is not a number", quoted(field)))?;
        let within = |what: &str, low: f64, high: f64| match number {
            number if (low..=high).contains(&number) => Ok(number),
            _ => Err(format!("{what} is {field}; allowed are {low} to {high}")),
        };
        match column {
            Column::Time => point.at = Span::from_secs_f64(within("t_s", 0.0, MAX_TIME_S as f64)?),
            Column::Rate => {
                let bps = within("rate_mbit_s", 1e-6, MAX_RATE_BPS / 1e6)? * 1e6;
                point.values.rate = Some(Rate::from_bps(bps.round() as u64));
            }
            Column::Delay => {
                point.values.delay = Some(Span::from_secs_f64(within("delay_ms", 0.0, MAX_DELAY_MS)? / 1e3));
            }
            Column::Loss if (0.0..=1.0).contains(&number) => point.values.loss = Some(number),
            Column::Loss => {
                return Err(format!("loss is {field}; allowed is a probability from 0 to 1").into());
            }
        }
    }
    Ok(point)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn played(series: &Series) -> Vec<(u64, u64)> {
        let rate = |point: &Point| point.values.rate.map_or(0, Rate::as_bps);
        series.points().iter().map(|point| (point.at.as_nanos() / 1_000_000, rate(point))).collect()
    }

    fn trace(text: &str, bin_ms: u64) -> Result<Series, RecordedError> {
        mahimahi(text, "cell.mahi", Span::from_millis(bin_ms))
    }

    /// 10 packets go in 100 ms, none for 400 ms, then two at 500 ms: 10 x 12 kbit / 0.1 s, then 2 x 12 kbit / 0.4 s.
    #[test]
    fn a_stretch_carries_as_many_packets_as_the_trace() {
        let series = trace("10\n20\n30\n40\n50\n60\n70\n80\n90\n100\n500\n500\n", 100).unwrap();
        assert_eq!(played(&series), [(0, 1_200_000), (100, 60_000)]);
        assert_eq!(series.every(), Some(Span::from_millis(500)));
    }

    /// Intervals last at least 25 ms: 10, 20 and 30 are in the first, which has two packets at 30; 60 and 61 are in a
    /// shorter interval, the last one.
    #[test]
    fn a_stretch_ends_with_a_packet_and_all_of_its_millisecond() {
        let series = trace("10\n20\n30\n30\n\n60\n61\n", 25).unwrap();
        assert_eq!(played(&series), [(0, 4 * 12_000_000 / 30), (30, 12_000_000 / 30), (60, 12_000_000)]);
        assert_eq!(trace("0\n0\n1\n", 1).map(|series| played(&series)), Ok(vec![(0, 36_000_000)]));
    }

    /// No packet goes for 50 ms after 30 ms: the interval of 10 ms before the outage stands alone, and so does the
    /// outage.
    #[test]
    fn an_outage_is_a_stretch_of_its_own() {
        let series = trace("10\n20\n30\n80\n90\n100\n", 20).unwrap();
        let expected = [(0, 2 * 12_000_000 / 20), (20, 1_200_000), (30, 12_000_000 / 50), (80, 2 * 12_000_000 / 20)];
        assert_eq!(played(&series), expected);
        assert_eq!(played(&trace("0\n50\n", 20).unwrap()), [(0, 2 * 12_000_000 / 50)]);
    }

    /// From the README of the Mahimahi traces: a file with the single line "1" is a link of 12 Mbit/s.
    #[test]
    fn one_line_is_a_link_of_one_rate() {
        let series = trace("1", 100).unwrap();
        assert_eq!((played(&series), series.every()), (vec![(0, 12_000_000)], Some(Span::from_millis(1))));
    }

    #[test]
    fn what_is_no_trace() {
        let told = |text, bin_ms, expected: &str| {
            assert_eq!(trace(text, bin_ms).unwrap_err().to_string(), format!("cell.mahi{expected}"))
        };
        told("1\nx\n", 100, ":2: \"x\" is not a whole number of milliseconds");
        told("1\n+2\n", 100, ":2: \"+2\" is not a whole number of milliseconds");
        told("1\n2.5\n", 100, ":2: \"2.5\" is not a whole number of milliseconds");
        told("5\n\n3\n", 100, ":3: 3 ms comes before 5 ms");
        told("86400001\n", 100, ":1: 86400001 ms is too late; allowed are 0 to 86400000 ms");
        told("", 100, ": needs a packet later than 0 ms");
        told("0\n0\n", 100, ": needs a packet later than 0 ms");
        let long = "9".repeat(1000);
        told(&long, 100, &format!(":1: \"{}\"... is not a whole number of milliseconds", "9".repeat(40)));
    }

    /// 84,000 packets in one millisecond are 1.008 Tbit/s.
    #[test]
    fn a_trace_is_no_faster_than_a_link_can_be() {
        let told = trace(&"1\n".repeat(84_000), 1).unwrap_err().to_string();
        assert_eq!(told, "cell.mahi: 84000 packets from 0 to 1 ms; allowed is up to 1Tbit/s");
        assert!(trace(&"1\n".repeat(83_000), 1).is_ok());
    }

    #[test]
    fn long_texts_are_refused() {
        let told = trace(&"\n".repeat(MAX_LINES + 1), 1).unwrap_err().to_string();
        assert_eq!(told, "cell.mahi: has more than 10000000 lines, which is the most that is allowed");
        let told = trace(&" ".repeat(MAX_BYTES + 1), 1).unwrap_err().to_string();
        assert_eq!(told, "cell.mahi: has 67108865 bytes; allowed are 67108864");
    }

    #[test]
    fn a_table_says_what_its_columns_say() {
        let text = "# measured by hand\nt_s, delay_ms, rate_mbit_s, loss\n\n0, 25.5, 100, 0\n1.5,30,0.25,0.01\n";
        let series = table(text, "sky.csv", Some(Span::from_secs(2)), Way::Both).unwrap();
        let values = |delay_us, bps, loss| Values {
            delay: Some(Span::from_micros(delay_us)),
            rate: Some(Rate::from_bps(bps)),
            loss: Some(loss),
        };
        let first = Point { at: Span::ZERO, values: values(25_500, 100_000_000, 0.0) };
        let second = Point { at: Span::from_millis(1500), values: values(30_000, 250_000, 0.01) };
        assert_eq!(series, Series::new(vec![first, second], Some(Span::from_secs(2))));
        let alone = table("\u{feff}loss,t_s\r\n0.5,3\r\n", "sky.csv", None, Way::Both).unwrap();
        let values = Values { loss: Some(0.5), ..Values::default() };
        assert_eq!(alone, Series::new(vec![Point { at: Span::from_secs(3), values }], None));
    }

    #[test]
    fn what_is_no_table() {
        let told = |text: &str, expected: &str| {
            let every = Some(Span::from_secs(9));
            assert_eq!(table(text, "sky.csv", every, Way::Both).unwrap_err().to_string(), format!("sky.csv{expected}"));
        };
        let columns = "t_s, rate_mbit_s, delay_ms, loss";
        told("", &format!(": is empty; it needs a header with columns of {columns}"));
        told("t_s,rate\n", &format!(":1: no column \"rate\"; there are {columns}"));
        told("0,1\n", &format!(":1: no column \"0\"; there are {columns}"));
        told("t_s,loss,t_s\n", ":1: column \"t_s\" is there twice");
        told("t_s\n", ":1: the header needs t_s and at least one of rate_mbit_s, delay_ms, loss");
        told("t_s,loss\n", ": has a header and no rows");
        told("t_s,loss\n0\n", ":2: has 1 fields; the header has 2");
        told("t_s,loss\n0,much\n", ":2: \"much\" is not a number");
        told("t_s,loss\n0,1.01\n", ":2: loss is 1.01; allowed is a probability from 0 to 1");
        told("t_s,loss\n0,nan\n", ":2: loss is nan; allowed is a probability from 0 to 1");
        told("t_s,loss\n-1,0\n", ":2: t_s is -1; allowed are 0 to 86400");
        told("t_s,rate_mbit_s\n0,0\n", ":2: rate_mbit_s is 0; allowed are 0.000001 to 1000000");
        told("t_s,delay_ms\n0,inf\n", ":2: delay_ms is inf; allowed are 0 to 600000");
        told("# sky\nt_s,loss\n1,0\n1,0\n", ":4: 1s does not come after 1s");
        told("t_s,loss\n9,0\n", ": its last row is at 9s, which is not before `every`, 9s");
    }

    #[test]
    fn a_text_may_have_as_many_lines_as_are_allowed() {
        let mut text = "\n".repeat(MAX_LINES);
        assert!(lines(&text).is_ok());
        text.push('\n');
        assert!(lines(&text).is_err());
    }
}
