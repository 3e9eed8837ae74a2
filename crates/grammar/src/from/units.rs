//! The units of tc(8), which are not those of Penstock: `kbps` are bytes, `kb` are 1024 bytes, a bare time is of
//! microseconds.

use penstock_core::units::{Bytes, Rate, Span};

const MIB: f64 = 1024.0 * 1024.0;
const GIB: f64 = 1024.0 * MIB;

/// Splits a text into a number and its unit in small letters.
fn parts(text: &str) -> Option<(f64, String)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: f64 = number.parse().ok()?;
    Some((number, unit.to_ascii_lowercase()))
}

/// Rounds to a whole number, if it is one of 64 bits.
fn whole(value: f64) -> Option<u64> {
    (value.is_finite() && (0.0..9e18).contains(&value)).then(|| value.round() as u64)
}

/// A rate: `20Mbit`, `2.5mbps` (bytes), `1kibit`, a bare number of bits.
pub(super) fn rate(text: &str) -> Result<Rate, String> {
    let wrong = || {
        if text.ends_with('%') {
            return format!("{text} is a part of the rate of an interface, which is not known here; write the rate");
        }
        format!("{text:?} is no rate of tc, such as 20Mbit (bits) or 2500kbps (bytes)")
    };
    let (number, unit) = parts(text).ok_or_else(wrong)?;
    let (prefix, bits) = match unit.as_str() {
        "" => ("", 1.0),
        unit => match (unit.strip_suffix("bit"), unit.strip_suffix("bps")) {
            (Some(prefix), _) => (prefix, 1.0),
            (_, Some(prefix)) => (prefix, 8.0),
            _ => (unit, 0.0),
        },
    };
    let scale = match prefix {
        "" => 1.0,
        "k" => 1e3,
        "m" => 1e6,
        "g" => 1e9,
        "t" => 1e12,
        "ki" => 1024.0,
        "mi" => MIB,
        "gi" => GIB,
        "ti" => GIB * 1024.0,
        _ => 0.0,
    };
    let bps = whole(number * scale * bits).filter(|bps| *bps > 0 && scale * bits > 0.0).ok_or_else(wrong)?;
    if bps > crate::link::MAX_RATE.as_bps() {
        return Err(format!("{text} is more than a link here can have, 1Tbit/s"));
    }
    Ok(Rate::from_bps(bps))
}

/// A size: `1514`, `1600b`, `4Mb` and `4m` (1024 * 1024), `32kbit`.
pub(super) fn size(text: &str) -> Result<Bytes, String> {
    let wrong = || format!("{text:?} is no size of tc, such as 1514, 32k (32768 bytes) or 4Mb");
    let (number, unit) = parts(text).ok_or_else(wrong)?;
    let scale = match unit.as_str() {
        "" | "b" => 1.0,
        "k" | "kb" => 1024.0,
        "m" | "mb" => MIB,
        "g" | "gb" => GIB,
        "kbit" => 1024.0 / 8.0,
        "mbit" => MIB / 8.0,
        "gbit" => GIB / 8.0,
        _ => return Err(wrong()),
    };
    whole(number * scale).filter(|bytes| *bytes <= u64::from(u32::MAX)).map(Bytes::new).ok_or_else(wrong)
}

/// A time: `5ms`, `100us`, `1s`, a bare number of microseconds.
pub(super) fn time(text: &str) -> Result<Span, String> {
    let wrong = || format!("{text:?} is no time of tc, such as 5ms, 1s or 100 (microseconds)");
    let (number, unit) = parts(text).ok_or_else(wrong)?;
    let scale = match unit.as_str() {
        "s" | "sec" | "secs" => 1e9,
        "ms" | "msec" | "msecs" => 1e6,
        "" | "us" | "usec" | "usecs" => 1e3,
        "ns" | "nsec" | "nsecs" => 1.0,
        _ => return Err(wrong()),
    };
    let most = 4_294_967_295.0 * 1e3; // tc has microseconds in 32 bits
    whole(number * scale).filter(|ns| *ns as f64 <= most).map(Span::from_nanos).ok_or_else(wrong)
}

/// A part of one: `1%`, or `0.01` where tc takes a number.
pub(super) fn share(text: &str) -> Result<f64, String> {
    let wrong = || format!("{text:?} is no part, such as 1%");
    let value = text.strip_suffix('%').unwrap_or(text).parse::<f64>().map_err(|_| wrong())? / 100.0;
    // Two decimals more than tc has digits: 0.3 / 100 is 0.003, not 0.0029999999999999996.
    let value = (value * 1e12).round() / 1e12;
    if (0.0..=1.0).contains(&value) { Ok(value) } else { Err(wrong()) }
}

/// A rate of LibreQoS, in Mbit/s; `None` for 0 and for nothing.
pub(super) fn mbps(text: &str) -> Result<Option<u64>, String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let wrong = || format!("{text:?} is no rate in Mbit/s, such as 100 or 0.5");
    let number: f64 = text.parse().map_err(|_| wrong())?;
    let most = crate::link::MAX_RATE.as_bps() as f64;
    let bps = (number * 1e6).round();
    if (0.0..=most).contains(&bps) { Ok(Some(bps as u64).filter(|bps| *bps > 0)) } else { Err(wrong()) }
}

/// A whole number, decimal, or hexadecimal with `0x`; `p` and `b` behind it are what `tc` shows.
pub(super) fn count(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(['p', 'b']);
    let read = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => digits.parse(),
    };
    read.ok().filter(|n| *n <= u64::from(u32::MAX)).ok_or_else(|| format!("{text:?} is no whole number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// tc(8): bit and bps are a factor of 8 apart, SI prefixes are of 1000, IEC ones of 1024. 1.5 kibps are 1536 B/s, as
    /// `tc qdisc add ... cake bandwidth 1.5kibps` sends to the kernel (0x600).
    #[test]
    fn rates() {
        let bps = |text| rate(text).map(Rate::as_bps);
        for (text, expected) in [
            ("20Mbit", 20_000_000),
            ("20mbit", 20_000_000),
            ("1.5mbit", 1_500_000),
            ("64000", 64_000),
            ("64000bit", 64_000),
            ("2500kbps", 20_000_000),
            ("1mbps", 8_000_000),
            ("10bps", 80),
            ("1kibit", 1024),
            ("2mibit", 2 * 1_048_576),
            ("1.5kibps", 1536 * 8),
            ("1gbit", 1_000_000_000),
            ("1Tbit", 1_000_000_000_000),
            ("6250Kbit", 6_250_000),
        ] {
            assert_eq!(bps(text), Ok(expected), "{text}");
        }
        for text in ["", "mbit", "10x", "10 mbit", "-1mbit", "0", "0mbit", "2tbit", "10b", "1e9mbit", "nan"] {
            assert!(bps(text).is_err(), "{text}");
        }
        assert!(rate("5%").unwrap_err().contains("rate of an interface"));
    }

    /// tc(8): a kilobyte has 1024 bytes, and so has a kilobit 1024 bits; `memlimit 1kbit` is 128 bytes for the kernel (0x80).
    #[test]
    fn sizes() {
        let bytes = |text| size(text).map(Bytes::get);
        for (text, expected) in [
            ("1514", 1514),
            ("1600b", 1600),
            ("3k", 3072),
            ("32Kb", 32_768),
            ("4Mb", 4_194_304),
            ("4m", 4_194_304),
            ("1kbit", 128),
            ("32kbit", 4096),
            ("1mbit", 131_072),
            ("1g", 1 << 30),
            ("1.5k", 1536),
        ] {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
        for text in ["", "k", "5g", "10p", "1 k", "1kib"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }

    /// tc(8): a bare number is of microseconds; `cake rtt 50` sends 50 to the kernel, which counts microseconds.
    #[test]
    fn times() {
        let ns = |text| time(text).map(Span::as_nanos);
        for (text, expected) in [
            ("5ms", 5_000_000),
            ("5.0ms", 5_000_000),
            ("50", 50_000),
            ("100us", 100_000),
            ("1s", 1_000_000_000),
            ("2secs", 2_000_000_000),
            ("999us", 999_000),
            ("4.99ms", 4_990_000),
        ] {
            assert_eq!(ns(text), Ok(expected), "{text}");
        }
        for text in ["", "ms", "5m", "5min", "5000s", "-5ms"] {
            assert!(ns(text).is_err(), "{text}");
        }
    }

    #[test]
    fn parts_and_counts() {
        assert_eq!((share("1%"), share("0.3%"), share("100%"), share("25")), (Ok(0.01), Ok(0.003), Ok(1.0), Ok(0.25)));
        assert!(share("101%").is_err() && share("-1%").is_err() && share("NaN").is_err() && share("").is_err());
        assert_eq!((count("10240p"), count("0x10"), count("1514b")), (Ok(10_240), Ok(16), Ok(1514)));
        assert!(count("5000000000").is_err() && count("x").is_err() && count("").is_err());
    }
}
