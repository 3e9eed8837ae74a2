//! Delays that others have measured, as points of a series: the tables of LENS (irtt and ping), the results of irtt, and the
//! files of delays of LeoCC.
//!
//! | file | is known by | read as |
//! |---|---|---|
//! | LENS, irtt | `timestamp,rtt,uplink,downlink` | nanoseconds since 1970, milliseconds; -1 is a lost probe |
//! | LENS, ping | `timestamp,rtt` | seconds since 1970, milliseconds |
//! | irtt | JSON with `round_trips` | nanoseconds; times of the client's clock |
//! | LeoCC | a number in each line | milliseconds one way, each for 10 ms; then it begins again |
//!
//! The first probe is at time zero. A link has the delay of a probe until the next one; of a lost one nothing is known, so it
//! is passed over. From the first end of a link to the second it has the uplink of who measured, and back the downlink, for
//! which the clocks of both ends must agree; both directions have half of the round trip.

use crate::lines::{MAX_BYTES, Mistake, lines};
use crate::series::{Point, Values, Way};
use penstock_core::units::Span;
use serde::Deserialize;

const MOST_MS: f64 = 600_000.0;
const MAX_DURATION: Span = Span::from_secs(24 * 3600);
/// For how long a line of LeoCC's holds.
const SLICE: Span = Span::from_millis(10);

/// The delays of a file, and after which time they begin again.
pub(crate) type Found = (Vec<Point>, Option<Span>);

/// Reads the delays of a file of others; `None` if it is none of these files.
pub(crate) fn read(text: &str, way: Way) -> Option<Result<Found, Mistake>> {
    let first = text.trim_start_matches('\u{feff}').lines().map(str::trim).find(|line| !line.is_empty())?;
    let header: Vec<&str> = first.split(',').map(str::trim).collect();
    if first.starts_with('{') {
        return Some(irtt(text, way));
    }
    if header.first() == Some(&"timestamp") {
        return Some(lens(text, &header, way));
    }
    first.parse::<f64>().ok().map(|_| slices(text))
}

/// A probe: when it was sent, in nanoseconds since any time, and its delay in milliseconds; `None` if it was lost.
type Probe = (i128, Option<f64>);

/// Makes points of probes in their order, with the number of the line or of the probe. Of several at one time the last counts.
fn points(probes: impl Iterator<Item = Result<(usize, Probe), Mistake>>) -> Result<Found, Mistake> {
    let (mut found, mut begin) = (Vec::<Point>::new(), None);
    for probe in probes {
        let (number, (at, delay)) = probe?;
        let since = at - *begin.get_or_insert(at);
        let told = |what: String| Mistake::from(what).in_line(number);
        let Some(delay) = delay else { continue };
        let Some(at) = u64::try_from(since).ok().map(Span::from_nanos).filter(|at| *at <= MAX_DURATION) else {
            let seconds = since as f64 / 1e9;
            return Err(told(format!("is {seconds} s after the first; allowed are 0 to 86400, in order")));
        };
        if !(0.0..=MOST_MS).contains(&delay) {
            let clocks = "; if the clocks of both ends differ, take the round trip: direction = \"both\"";
            return Err(told(format!("a delay of {delay} ms; allowed are 0 to {MOST_MS}{clocks}")));
        }
        let values = Values { delay: Some(Span::from_secs_f64(delay / 1e3)), ..Values::default() };
        match found.last_mut() {
            Some(last) if last.at == at => last.values = values,
            Some(last) if last.at > at => return Err(told(format!("{at} does not come after {}", last.at))),
            _ => found.push(Point { at, values }),
        }
    }
    if found.is_empty() { Err("has no probe that arrived".to_owned().into()) } else { Ok((found, None)) }
}

/// Returns the nanoseconds of a time whose unit shows in its size: it is between 1973 and 5138.
fn nanoseconds(field: &str) -> Option<i128> {
    let (whole, fraction) = field.split_once('.').unwrap_or((field, ""));
    let count: u64 = whole.parse().ok()?;
    let unit: i128 = match count {
        100_000_000_000_000_000.. => 1,
        100_000_000_000_000.. => 1000,
        100_000_000_000.. => 1_000_000,
        _ => 1_000_000_000,
    };
    let part: f64 = if fraction.is_empty() { 0.0 } else { format!("0.{fraction}").parse().ok()? };
    Some(i128::from(count) * unit + (part * unit as f64).round() as i128)
}

fn lens(text: &str, header: &[&str], way: Way) -> Result<Found, Mistake> {
    let wanted = match way {
        Way::Forward => "uplink",
        Way::Reverse => "downlink",
        Way::Both => "rtt",
    };
    let has_ways = header.contains(&"uplink");
    let wanted = if has_ways { wanted } else { "rtt" };
    let Some(place) = header.iter().position(|name| *name == wanted) else {
        return Err(Mistake::from(format!("has no column {wanted:?} beside timestamp")).in_line(1));
    };
    let halves = if wanted == "rtt" { 2.0 } else { 1.0 };
    let rows = lines(text)?.skip(1).map(|(number, line)| {
        let told = |what: String| Mistake::from(what).in_line(number);
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        if fields.len() != header.len() {
            return Err(told(format!("has {} fields; the header has {}", fields.len(), header.len())));
        }
        let at = nanoseconds(fields[0]).ok_or_else(|| told(format!("{:?} is no time since 1970", fields[0])))?;
        let numbers = fields[1..].iter().map(|field| field.parse::<f64>());
        let numbers: Vec<f64> =
            numbers.collect::<Result<_, _>>().map_err(|_| told(format!("{line:?} has no numbers")))?;
        // Of a lost probe one column is -1 and the others are 0.
        let is_lost = numbers.contains(&-1.0);
        Ok((number, (at, (!is_lost).then(|| numbers[place - 1] / halves))))
    });
    points(rows)
}

#[derive(Deserialize)]
struct Measurement {
    round_trips: Vec<RoundTrip>,
}

#[derive(Deserialize)]
struct RoundTrip {
    lost: String,
    timestamps: Timestamps,
    #[serde(default)]
    delay: Delay,
}

#[derive(Deserialize)]
struct Timestamps {
    client: Client,
}

#[derive(Deserialize)]
struct Client {
    send: Clock,
}

#[derive(Deserialize)]
struct Clock {
    /// Nanoseconds of a clock that runs evenly, or of the time of day.
    monotonic: Option<i64>,
    wall: Option<i64>,
}

/// Nanoseconds.
#[derive(Deserialize, Default)]
struct Delay {
    rtt: Option<i64>,
    send: Option<i64>,
    receive: Option<i64>,
}

fn irtt(text: &str, way: Way) -> Result<Found, Mistake> {
    if text.len() > MAX_BYTES {
        return Err(format!("has {} bytes; allowed are {}", text.len(), MAX_BYTES).into());
    }
    let measured: Measurement = serde_json::from_str(text.trim_start_matches('\u{feff}'))
        .map_err(|e| Mistake::from(format!("is no result of irtt: {e}")).in_line(e.line().max(1)))?;
    let probes = measured.round_trips.iter().zip(1..).map(|(one, number)| {
        let told = |what: &str| Mistake::from(format!("round trip {number} {what}"));
        let Clock { monotonic, wall } = one.timestamps.client.send;
        let at = monotonic.or(wall).ok_or_else(|| told("has no time at which it was sent"))?;
        let delay = match way {
            Way::Forward => one.delay.send,
            Way::Reverse => one.delay.receive,
            Way::Both => one.delay.rtt.map(|ns| ns / 2),
        };
        let delay = delay.filter(|_| one.lost == "false").map(|ns| ns as f64 / 1e6);
        Ok((1, (i128::from(at), delay)))
    });
    points(probes)
}

/// A delay in each line, for 10 ms each.
fn slices(text: &str) -> Result<Found, Mistake> {
    let mut found = Vec::new();
    for (number, line) in lines(text)? {
        let told = |what: String| Mistake::from(what).in_line(number);
        let ms: f64 = line.parse().map_err(|_| told(format!("{line:?} is not a number of milliseconds")))?;
        if !(0.0..=MOST_MS).contains(&ms) {
            return Err(told(format!("a delay of {ms} ms; allowed are 0 to {MOST_MS}")));
        }
        let values = Values { delay: Some(Span::from_secs_f64(ms / 1e3)), ..Values::default() };
        found.push(Point { at: SLICE * found.len() as u64, values });
    }
    let every = SLICE * found.len() as u64;
    Ok((found, Some(every)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::RecordedError;
    use crate::recorded::table;
    use proptest::prelude::*;

    /// Milliseconds and delays in microseconds, and the period in milliseconds.
    type Told = (Vec<(f64, f64)>, Option<u64>);

    fn delays(text: &str, way: Way) -> Result<Told, RecordedError> {
        let series = table(text, "sky.csv", None, way)?;
        let one = |point: &Point| (point.at.as_millis_f64(), point.values.delay.unwrap().as_nanos() as f64 / 1e3);
        Ok((series.points().iter().map(one).collect(), series.every().map(|every| every.as_nanos() / 1_000_000)))
    }

    /// Probes 10 ms apart, of which the first, the fourth and the last are lost; a nanosecond is kept at 1.7e18 ns.
    #[test]
    fn a_table_of_lens_has_both_directions() {
        let text = "timestamp,rtt,uplink,downlink\n1705744800616000000,0,0,-1\n1705744800626000001,120.5,72.5,48\n\
                    1705744800636000000,110,62.25,47.75\n1705744800646000000,-1,0,0\n1705744800656000000,90,42,48\n\
                    1705744800666000000,0,-1,0\n";
        let up = vec![(10.000001, 72_500.0), (20.0, 62_250.0), (40.0, 42_000.0)];
        assert_eq!(delays(text, Way::Forward).unwrap(), (up, None));
        let both = vec![(10.000001, 60_250.0), (20.0, 55_000.0), (40.0, 45_000.0)];
        assert_eq!(delays(text, Way::Both).unwrap().0, both);
        assert_eq!(delays(text, Way::Reverse).unwrap().0[0].1, 48_000.0);
    }

    #[test]
    fn pings_of_lens_have_round_trips_alone() {
        let text = "timestamp,rtt\n1705744800.5,91.8\n1705744800.55,96.5\n1705744800.55,111.0\n";
        let expected = vec![(0.0, 45_900.0), (50.0, 55_500.0)];
        assert_eq!(delays(text, Way::Forward).unwrap().0, expected, "of two at one time the last counts");
    }

    #[test]
    fn a_result_of_irtt_is_read_as_it_is() {
        let probe = |sent: u64, lost: &str, delay: &str| {
            format!(
                "{{\"seqno\":0,\"lost\":\"{lost}\",\"timestamps\":{{\"client\":{{\"send\":{{\"wall\":17072774407728337{sent},\
                 \"monotonic\":{sent}000000}}}}}},\"delay\":{{{delay}}},\"ipdv\":{{}}}}"
            )
        };
        let text = format!(
            "{{\"version\":{{\"irtt\":\"0.9.1\"}},\"round_trips\":[{},{},{}]}}",
            probe(22, "false", "\"receive\":7000000,\"rtt\":17000000,\"send\":10000000"),
            probe(32, "true_up", ""),
            probe(42, "false", "\"receive\":-470,\"rtt\":16000000,\"send\":9000000"),
        );
        assert_eq!(delays(&text, Way::Both).unwrap().0, [(0.0, 8500.0), (20.0, 8000.0)]);
        assert_eq!(delays(&text, Way::Forward).unwrap().0, [(0.0, 10_000.0), (20.0, 9000.0)]);
        let told = delays(&text, Way::Reverse).unwrap_err().to_string();
        assert!(told.contains("clocks of both ends differ"), "{told}");
        assert!(delays("{\"round_trips\":[]}", Way::Both).unwrap_err().to_string().contains("no probe that arrived"));
        assert!(delays("{\"a\":1}", Way::Both).unwrap_err().to_string().contains("no result of irtt"));
    }

    /// From the description of LeoCC's traces: line 1 is the delay from 0 to 10 ms, and after the last it begins again.
    #[test]
    fn a_number_in_each_line_is_a_delay_for_ten_milliseconds() {
        let expected = (vec![(0.0, 24_000.0), (10.0, 18_000.0), (20.0, 18_500.0)], Some(30));
        assert_eq!(delays("24\n18\n18.5\n", Way::Both).unwrap(), expected);
        let told = delays("24\nx\n", Way::Both).unwrap_err().to_string();
        assert_eq!(told, "sky.csv:2: \"x\" is not a number of milliseconds");
    }

    #[test]
    fn mistakes_are_told_with_their_line() {
        for (text, way, told) in [
            ("timestamp,rtt\n1,5\n0,5\n", Way::Both, "sky.csv:3: is -1 s after the first"),
            ("timestamp,rtt,uplink,downlink\n1,5,-2,3\n", Way::Forward, "sky.csv:2: a delay of -2 ms"),
            ("timestamp,rtt\n1,5,6\n", Way::Both, "sky.csv:2: has 3 fields; the header has 2"),
            ("timestamp,rtt\nyesterday,5\n", Way::Both, "\"yesterday\" is no time since 1970"),
            ("timestamp,loss\n1,5\n", Way::Both, "sky.csv:1: has no column \"rtt\""),
            ("timestamp,rtt\n1,-1\n", Way::Both, "has no probe that arrived"),
        ] {
            let found = delays(text, way).unwrap_err().to_string();
            assert!(found.contains(told), "{text}: {found}");
        }
    }

    proptest! {
        /// Any rows are read or refused with their line, and what is read is in order.
        #[test]
        fn any_table_is_read_or_refused(rows in prop::collection::vec((any::<i64>(), -2.0f64..1e6), 0..20), cut in 0usize..60) {
            let rows = rows.iter().map(|(at, rtt)| format!("{at},{rtt}\n")).collect::<String>();
            let text = format!("timestamp,rtt\n{rows}");
            let text = &text[..text.len().min(14 + cut * 7)];
            match table(text, "sky.csv", None, Way::Both) {
                Ok(series) => prop_assert!(series.points().is_sorted_by(|a, b| a.at < b.at)),
                Err(mistake) => prop_assert!(mistake.to_string().starts_with("sky.csv")),
            }
        }
    }
}
