//! Time, span, size and rate: newtypes over integers, so that a number cannot be used as the wrong thing.
//!
//! Only meaningful arithmetic exists (`Instant - Instant = Span`, `Rate::time_for(Bytes) = Span`). In files, options
//! and output every value is a string with its unit, and what is printed parses back to an equal value:
//!
//! ```
//! use penstock_core::units::{Bytes, Limit, Rate, Span};
//! assert_eq!("5ms".parse::<Span>().unwrap(), Span::from_millis(5));
//! assert_eq!("10Mbit/s".parse::<Rate>().unwrap(), Rate::from_bps(10_000_000));
//! assert_eq!("125kB".parse::<Bytes>().unwrap(), Bytes::new(125_000));
//! assert_eq!("1000p".parse::<Limit>().unwrap(), Limit::Packets(1000));
//! assert_eq!(Span::from_micros(1500).to_string(), "1.5ms");
//! ```

use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Rem, Sub, SubAssign};
use std::str::FromStr;

const NS_PER_S: u64 = 1_000_000_000;

/// A text that is not a quantity of the expected kind; the message says what is allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not {what}; {}write {example}", near.as_ref().map(|near| format!("did you mean {near:?}? ")).unwrap_or_default())]
pub struct UnitError {
    text: String,
    what: &'static str,
    near: Option<String>,
    example: &'static str,
}

/// A point in time, in nanoseconds since the start of the run (or since boot, on a real box).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

/// A length of time in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(u64);

/// A size in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(u64);

/// A rate in bits per second; never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

/// How much a queue may hold, in packets or in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Limit {
    /// At most this many packets.
    Packets(u64),
    /// At most this many bytes.
    Bytes(Bytes),
}

impl Instant {
    /// The start of the run.
    pub const ZERO: Self = Self(0);
    /// A time after every event; it stands for "never".
    pub const MAX: Self = Self(u64::MAX);

    /// Makes the point in time `ns` nanoseconds after the start.
    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns)
    }
    /// Returns the nanoseconds since the start.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// Returns the seconds since the start, for display and statistics.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NS_PER_S as f64
    }
    /// Returns the time since `earlier`; zero if `earlier` is after this time.
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// A span of length zero.
    pub const ZERO: Self = Self(0);
    /// A span which is longer than any run; it stands for "for ever".
    pub const MAX: Self = Self(u64::MAX);

    /// Makes a span of `ns` nanoseconds.
    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns)
    }
    /// Makes a span of `us` microseconds.
    pub const fn from_micros(us: u64) -> Self {
        Self(us * 1_000)
    }
    /// Makes a span of `ms` milliseconds.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }
    /// Makes a span of `s` seconds.
    pub const fn from_secs(s: u64) -> Self {
        Self(s * NS_PER_S)
    }
    /// Rounds `s` seconds to the nearest nanosecond; negative and NaN become zero.
    pub fn from_secs_f64(s: f64) -> Self {
        Self((s * NS_PER_S as f64 + 0.5) as u64)
    }
    /// Returns the length in nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// Returns how long the transmission takes at `rate` that takes this span at the rate `before`, rounded down.
    pub fn at_rate(self, before: Rate, rate: Rate) -> Self {
        let took = u128::from(self.0) * u128::from(before.0) / u128::from(rate.0);
        Self(u64::try_from(took).unwrap_or(u64::MAX))
    }
    /// Returns the length in seconds, for equations and display.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NS_PER_S as f64
    }
    /// Returns the length in milliseconds, for display.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// Divides the span by a whole number above zero and rounds down.
    pub const fn div(self, by: u64) -> Self {
        Self(self.0 / by)
    }
    /// Subtracts `other`; the result is zero if `other` is longer.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Bytes {
    /// A size of zero bytes.
    pub const ZERO: Self = Self(0);
    /// The largest size. As a threshold or a limit it means that there is none.
    pub const MAX: Self = Self(u64::MAX);

    /// Makes a size of `n` bytes.
    pub const fn new(n: u64) -> Self {
        Self(n)
    }
    /// Returns the number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }
    /// Converts to a real number of bytes, for equations.
    pub const fn as_f64(self) -> f64 {
        self.0 as f64
    }
    /// Subtracts `other`; the result is zero if `other` is larger.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Rate {
    /// Makes a rate of `bps` bits per second. Zero becomes 1 bit/s, since a rate is never zero (parsing refuses zero).
    pub const fn from_bps(bps: u64) -> Self {
        Self(if bps == 0 { 1 } else { bps })
    }
    /// Returns the rate in bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }
    /// Returns the rate in bytes per second, for equations.
    pub fn bytes_per_sec(self) -> f64 {
        self.0 as f64 / 8.0
    }
    /// Returns the time for which `size` occupies a link of this rate, rounded down. A [`Serializer`] keeps the
    /// remainder.
    pub fn time_for(self, size: Bytes) -> Span {
        Span((u128::from(size.0) * 8 * u128::from(NS_PER_S) / u128::from(self.0)) as u64)
    }
    /// Returns the bytes which this rate carries in `span`, rounded down. With a round trip time this is the BDP.
    #[inline]
    pub fn bytes_in(self, span: Span) -> Bytes {
        Bytes((u128::from(self.0) * u128::from(span.0) / (8 * u128::from(NS_PER_S))) as u64)
    }
}

/// Computes transmission times of packets on a wire and keeps the remainder of each division, so that `n` packets take
/// exactly the time of the sum of their bytes.
///
/// ```
/// use penstock_core::units::{Bytes, Rate, Serializer};
/// let mut wire = Serializer::new(Rate::from_bps(3_000_000_000));
/// let ns: u64 = (0..3).map(|_| wire.send(Bytes::new(1)).as_nanos()).sum();
/// assert_eq!(ns, 8); // 24 bits at 3 Gbit/s, though one byte alone takes 2.67 ns
/// ```
#[derive(Debug, Clone)]
pub struct Serializer {
    pace: Pace,
    remainder: u64,
}

impl Serializer {
    /// Creates a wire of the given rate, with no remainder.
    pub fn new(rate: Rate) -> Self {
        Self { pace: Pace::new(rate), remainder: 0 }
    }
    /// Returns the rate of the wire.
    pub fn rate(&self) -> Rate {
        self.pace.rate
    }
    /// Returns what the divisions so far left over, in billionths of a bit: the last packet ends this much later than
    /// its time, which is in whole nanoseconds, says.
    pub fn left_over(&self) -> u64 {
        self.remainder
    }
    /// Returns the time until the last bit of a packet of `size` is on the wire. `size` is capped at 1 GiB.
    #[inline]
    pub fn send(&mut self, size: Bytes) -> Span {
        self.pace.send(size, &mut self.remainder)
    }
}

/// What all wires of the same rate have in common: a [`Serializer`] without its remainder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    rate: Rate,
    /// Nanoseconds per byte if that is a whole number, which it is at most common rates; otherwise 0.
    per_byte: u64,
}

impl Pace {
    /// Creates the pace of wires of the given rate.
    pub fn new(rate: Rate) -> Self {
        let whole = rate.0 > 0 && (8 * NS_PER_S).is_multiple_of(rate.0);
        Self { rate, per_byte: if whole { 8 * NS_PER_S / rate.0 } else { 0 } }
    }
    /// Returns the time until the last bit of a packet of `size` is on a wire, whose `remainder` is that of its last packet, zero
    /// before the first. `size` is capped at 1 GiB.
    #[inline]
    pub fn send(self, size: Bytes, remainder: &mut u64) -> Span {
        let size = size.0.min(1 << 30);
        if self.per_byte > 0 {
            return Span(size * self.per_byte); // there is never a remainder, so no division is needed
        }
        let work = size * (8 * NS_PER_S) + *remainder;
        *remainder = work % self.rate.0;
        Span(work / self.rate.0)
    }
}

macro_rules! arithmetic {
    ($lhs:ty, $op:ident, $f:ident, $rhs:ty, $out:ident, $how:ident) => {
        impl $op<$rhs> for $lhs {
            type Output = $out;
            #[inline]
            fn $f(self, rhs: $rhs) -> $out {
                $out(self.0.$how(rhs.0))
            }
        }
    };
}
arithmetic!(Instant, Add, add, Span, Instant, saturating_add);
arithmetic!(Instant, Sub, sub, Span, Instant, saturating_sub);
arithmetic!(Instant, Sub, sub, Instant, Span, saturating_sub);
arithmetic!(Span, Add, add, Span, Span, saturating_add);
arithmetic!(Span, Sub, sub, Span, Span, saturating_sub);
arithmetic!(Bytes, Add, add, Bytes, Bytes, saturating_add);
arithmetic!(Bytes, Sub, sub, Bytes, Bytes, saturating_sub);

impl Mul<u64> for Span {
    type Output = Span;
    fn mul(self, by: u64) -> Span {
        Span(self.0.saturating_mul(by))
    }
}
impl AddAssign<Span> for Instant {
    fn add_assign(&mut self, rhs: Span) {
        *self = *self + rhs;
    }
}
/// A multiple of a size, at most [`Bytes::MAX`].
impl Mul<u64> for Bytes {
    type Output = Bytes;
    #[inline]
    fn mul(self, by: u64) -> Bytes {
        Bytes(self.0.saturating_mul(by))
    }
}
/// A multiple of a size, at most [`Bytes::MAX`].
impl Mul<Bytes> for u64 {
    type Output = Bytes;
    #[inline]
    fn mul(self, size: Bytes) -> Bytes {
        size * self
    }
}
/// An equal part of a size, rounded down.
impl Div<u64> for Bytes {
    type Output = Bytes;
    #[inline]
    fn div(self, by: u64) -> Bytes {
        Bytes(self.0 / by)
    }
}
/// How many times one size fits into another, rounded down.
impl Div for Bytes {
    type Output = u64;
    #[inline]
    fn div(self, size: Self) -> u64 {
        self.0 / size.0
    }
}
/// The rest of a division of one size by another.
impl Rem for Bytes {
    type Output = Bytes;
    #[inline]
    fn rem(self, size: Self) -> Bytes {
        Bytes(self.0 % size.0)
    }
}
impl AddAssign for Bytes {
    fn add_assign(&mut self, rhs: Self) {
        *self = *self + rhs;
    }
}
impl SubAssign for Bytes {
    fn sub_assign(&mut self, rhs: Self) {
        *self = *self - rhs;
    }
}

// Text. A quantity is a decimal number and a unit; the value must be a whole number of the base unit.

/// Splits `text` into the digits before the point, those after it and the unit, and scales by `unit(suffix)`. `None` if
/// the text is not a quantity, or its value is not a whole number of base units or above 64 bits.
fn parse_scaled(text: &str, unit: impl Fn(&str) -> Option<u64>) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let scale = unit(suffix.trim())?;
    let (whole, frac) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || frac.len() > 18 || (number.contains('.') && frac.is_empty()) {
        return None;
    }
    let whole = whole.parse::<u64>().ok()?.checked_mul(scale)?;
    let frac_value = if frac.is_empty() { 0 } else { frac.parse::<u128>().ok()? };
    let below = 10u128.pow(frac.len() as u32);
    let scaled = frac_value * u128::from(scale);
    (scaled % below == 0).then(|| whole.checked_add((scaled / below) as u64)).flatten()
}

/// The same number with the unit that was meant, if the text with it is a quantity: `10mbit/s`, `10M`, `30 seconds`.
fn near(text: &str, units: &[&str], reads: impl Fn(&str) -> bool) -> Option<String> {
    let text = text.trim().replace(',', ".");
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let suffix = suffix.trim().replace("bps", "bit/s").to_ascii_lowercase();
    let lower = |unit: &&&str| unit.to_ascii_lowercase();
    let same = units.iter().find(|unit| lower(unit) == suffix);
    let longer = || units.iter().find(|unit| !suffix.is_empty() && lower(unit).starts_with(&suffix));
    let word = || units.iter().filter(|unit| suffix.starts_with(&lower(unit))).max_by_key(|unit| unit.len());
    let whole = format!("{number}{}", same.or_else(longer).or_else(word)?);
    reads(&whole).then_some(whole)
}

/// Writes `value` with the largest unit in which it has at most three decimals.
fn write_scaled(f: &mut fmt::Formatter<'_>, value: u64, units: &[(u64, &str)]) -> fmt::Result {
    let (scale, name) = units
        .iter()
        .find(|(scale, _)| value >= *scale && (*scale < 1000 || value.is_multiple_of(scale / 1000)))
        .unwrap_or(&units[units.len() - 1]);
    let (whole, rest) = (value / scale, value % scale);
    if rest == 0 {
        return write!(f, "{whole}{name}");
    }
    let digits = scale.ilog10() as usize;
    let frac = format!("{rest:0digits$}");
    write!(f, "{whole}.{}{name}", frac.trim_end_matches('0'))
}

macro_rules! text {
    ($type:ty, $what:literal, $units:expr, $example:literal, $parse:expr, $write:expr) => {
        impl FromStr for $type {
            type Err = UnitError;
            fn from_str(text: &str) -> Result<Self, UnitError> {
                let parse: fn(&str) -> Option<Self> = $parse;
                parse(text).ok_or_else(|| UnitError {
                    text: text.to_owned(),
                    what: $what,
                    near: near(text, $units, |other| parse(other).is_some()),
                    example: $example,
                })
            }
        }
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let write: fn(&Self, &mut fmt::Formatter<'_>) -> fmt::Result = $write;
                write(self, f)
            }
        }
        impl Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }
        impl schemars::JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "format": $what })
            }
        }
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                struct Text;
                impl serde::de::Visitor<'_> for Text {
                    type Value = $type;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        write!(f, "{} in quotes with its unit, such as {}", $what, $example)
                    }
                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                d.deserialize_any(Text)
            }
        }
    };
}

fn span_unit(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => 1,
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        "s" => NS_PER_S,
        "min" => 60 * NS_PER_S,
        "h" => 3600 * NS_PER_S,
        _ => return None,
    })
}

fn bytes_unit(unit: &str) -> Option<u64> {
    Some(match unit {
        "B" => 1,
        "kB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return None,
    })
}

fn rate_unit(unit: &str) -> Option<u64> {
    // "Mbps", "Mbit/s" and "Mbit" are one; "Mb/s" is not read, because some mean bytes by it.
    let bits = unit.strip_suffix("bps").map(|scale| format!("{scale}bit"));
    let unit = bits.as_deref().unwrap_or(unit);
    Some(match unit.strip_suffix("/s").or_else(|| unit.strip_suffix("ps")).unwrap_or(unit) {
        "bit" => 1,
        "kbit" => 1_000,
        "Mbit" => 1_000_000,
        "Gbit" => 1_000_000_000,
        "Tbit" => 1_000_000_000_000,
        _ => return None,
    })
}

const SPANS: &[&str] = &["ns", "us", "ms", "s", "min", "h"];
const SIZES: &[&str] = &["B", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB"];
const RATES: &[&str] = &["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"];
const LIMITS: &[&str] = &["p", "B", "kB", "MB", "GB", "KiB", "MiB", "GiB"];

text!(
    Span,
    "a time",
    SPANS,
    "\"5ms\" (units: ns, us, ms, s, min, h)",
    |t| parse_scaled(t, span_unit).map(Span),
    |v, f| write_scaled(f, v.0, &[(NS_PER_S, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")])
);
text!(
    Bytes,
    "a size",
    SIZES,
    "\"125kB\" (units: B, kB = 1000 B, MB, GB, TB, KiB = 1024 B, MiB, GiB)",
    |t| parse_scaled(t, bytes_unit).map(Bytes),
    |v, f| write_scaled(f, v.0, &[(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB"), (1, "B")])
);
text!(
    Rate,
    "a rate above zero",
    RATES,
    "\"10Mbit/s\" (units: bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s)",
    |t| parse_scaled(t, rate_unit).filter(|bps| *bps > 0).map(Rate),
    |v, f| write_scaled(f, v.0, &[(1_000_000_000, "Gbit/s"), (1_000_000, "Mbit/s"), (1_000, "kbit/s"), (1, "bit/s")])
);
text!(
    Limit,
    "a queue limit above zero",
    LIMITS,
    "\"1000p\" (packets) or \"125kB\" (units: p, B, kB = 1000 B, MB, GB, KiB = 1024 B, MiB, GiB)",
    |t| match t.trim().strip_suffix('p') {
        Some(packets) => packets.trim().parse().ok().filter(|n| *n > 0).map(Limit::Packets),
        None => parse_scaled(t, bytes_unit).filter(|n| *n > 0).map(|n| Limit::Bytes(Bytes(n))),
    },
    |v, f| match v {
        Limit::Packets(n) => write!(f, "{n}p"),
        Limit::Bytes(bytes) => bytes.fmt(f),
    }
);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn serializer_loses_no_bit_over_a_long_run() {
        let mut wire = Serializer::new(Rate::from_bps(7_000_003));
        let total: u64 = (0..10_000).map(|_| wire.send(Bytes::new(1052)).as_nanos()).sum();
        let exact = 10_000u128 * 1052 * 8 * 1_000_000_000 / 7_000_003;
        assert_eq!(u128::from(total), exact);
        // What is sent is rate times time, and what the last division left over.
        let sent = u128::from(total) * 7_000_003 + u128::from(wire.left_over());
        assert_eq!(sent, 10_000 * 1052 * 8 * 1_000_000_000);
    }

    #[test]
    fn bdp_of_the_dsl_testbed_is_125_kb() {
        let bdp = Rate::from_bps(10_000_000).bytes_in(Span::from_millis(100));
        assert_eq!(bdp.to_string(), "125kB");
    }

    #[test]
    fn sizes_are_multiplied_divided_and_cut_into_pieces() {
        let (segment, window) = (Bytes::new(1448), Bytes::new(14_500));
        assert_eq!((window / segment, window % segment, window / 2), (10, Bytes::new(20), Bytes::new(7250)));
        assert_eq!((10 * segment, segment * 10), (Bytes::new(14_480), Bytes::new(14_480)));
        assert_eq!(
            (2 * Bytes::MAX, Bytes::MAX + segment),
            (Bytes::MAX, Bytes::MAX),
            "nothing is above the largest size"
        );
    }

    /// IEC 80000-13: a kibibyte is 2^10 bytes, a mebibyte 2^20, a gibibyte 2^30. The units of SI are powers of a thousand.
    #[test]
    fn units_of_sizes_are_powers_of_1000_or_of_1024() {
        let powers = |units: [&str; 4], base: u64| {
            for (power, unit) in (0..).zip(units) {
                assert_eq!(format!("3{unit}").parse::<Bytes>().unwrap(), Bytes::new(3 * base.pow(power)));
            }
        };
        powers(["B", "kB", "MB", "GB"], 1000);
        powers(["B", "KiB", "MiB", "GiB"], 1024);
        assert_eq!("3TB".parse::<Bytes>().unwrap(), Bytes::new(3_000_000_000_000));
    }

    #[test]
    fn a_number_without_unit_or_with_nonsense_is_refused() {
        for text in
            ["5", "", "ms", "-5ms", "5 parsecs", "1e3ms", "99999999999999999999s", "1.ms", ".5ms", "0.0000000001s"]
        {
            assert!(text.parse::<Span>().is_err(), "{text:?} must be refused");
        }
        assert!("0Mbit/s".parse::<Rate>().is_err());
        assert!("0p".parse::<Limit>().is_err());
        let message = "5".parse::<Span>().unwrap_err().to_string();
        assert!(message.contains("\"5ms\""), "{message}");
    }

    /// IEC 80000-13: "bit/s" is bits per second; "bps" is what data sheets of modems write for it.
    #[test]
    fn rates_are_read_as_modems_tell_them() {
        for (text, bps) in [("10Mbps", 10_000_000), ("64 kbps", 64_000), ("1.5Gbps", 1_500_000_000), ("9bps", 9)] {
            assert_eq!(text.parse::<Rate>().unwrap(), Rate(bps), "{text}");
        }
        assert!("10MBps".parse::<Rate>().is_err(), "bytes");
    }

    #[test]
    fn a_wrong_unit_comes_with_the_nearest_right_one() {
        let rate = |text: &str| text.parse::<Rate>().unwrap_err().to_string();
        for (text, near) in
            [("10M", "10Mbit/s"), ("10mbit/s", "10Mbit/s"), ("10mbps", "10Mbit/s"), ("1,5Mbit/s", "1.5Mbit/s")]
        {
            assert!(rate(text).contains(&format!("did you mean {near:?}?")), "{}", rate(text));
        }
        for text in ["0Mbit/s", "-5Mbit/s", "fast", "", "10"] {
            assert!(!rate(text).contains("did you mean"), "{}", rate(text));
        }
        assert!("2 minutes".parse::<Span>().unwrap_err().to_string().contains("did you mean \"2min\"?"));
        assert!("9packets".parse::<Limit>().unwrap_err().to_string().contains("did you mean \"9p\"?"));
        assert!("30 sec".parse::<Span>().unwrap_err().to_string().contains("did you mean \"30s\"?"));
        assert!("125KB".parse::<Limit>().unwrap_err().to_string().contains("did you mean \"125kB\"?"));
        assert!("5 kb".parse::<Bytes>().unwrap_err().to_string().contains("did you mean \"5kB\"?"));
    }

    proptest! {
        #[test]
        fn what_is_printed_parses_back(ns: u64, bps in 1u64.., size: u64) {
            prop_assert_eq!(Span(ns).to_string().parse::<Span>().unwrap(), Span(ns));
            prop_assert_eq!(Rate(bps).to_string().parse::<Rate>().unwrap(), Rate(bps));
            prop_assert_eq!(Bytes(size).to_string().parse::<Bytes>().unwrap(), Bytes(size));
        }
    }
}
