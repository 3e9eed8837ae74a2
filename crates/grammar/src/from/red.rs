//! RED: the words of `tc`, and what `tc` makes of them.

use super::kinds::{Args, validate};
use super::units::{count, rate, size};
use super::{Key, Way, quoted};
use crate::Diagnosis;
use penstock_core::units::{Bytes, Rate};

/// What the words of RED say.
struct Red {
    limit: Option<u64>,
    min: Option<u64>,
    max: Option<u64>,
    avpkt: Option<u64>,
    burst: Option<u64>,
    wlog: Option<u64>,
    probability: f64,
    bandwidth: Rate,
    ecn: bool,
}

const OF_RED: [&str; 11] =
    ["limit", "min", "max", "avpkt", "burst", "probability", "bandwidth", "ecn", "adaptive", "harddrop", "nodrop"];

impl Red {
    fn of(args: &mut Args<'_>) -> Result<Self, Diagnosis> {
        let mut red = Self {
            limit: None,
            min: None,
            max: None,
            avpkt: None,
            burst: None,
            wlog: None,
            probability: 0.02,
            bandwidth: Rate::from_bps(10_000_000),
            ecn: false,
        };
        while let Some(word) = args.next() {
            let bytes = |size: Bytes| Some(size.get()).filter(|bytes| *bytes > 0);
            match word {
                "limit" => red.limit = bytes(args.value(word, size)?),
                "min" => red.min = bytes(args.value(word, size)?),
                "max" => red.max = bytes(args.value(word, size)?),
                "avpkt" => red.avpkt = bytes(args.value(word, size)?),
                "burst" => red.burst = Some(args.value(word, count)?),
                "ewma" => red.wlog = Some(args.value(word, count)?),
                "probability" => {
                    red.probability =
                        args.value(word, |text| text.parse().map_err(|_| format!("{text:?} is no number")))?
                }
                "bandwidth" => red.bandwidth = args.value(word, rate)?,
                "ecn" => red.ecn = true,
                "Plog" | "Scell_log" => drop(args.next()),
                "adaptive" => args.note(word, "red keeps its probability here", "take name = \"ared\""),
                "harddrop" | "nodrop" => args.note(word, "red of the kernel is there without this", "leave it out"),
                "qevent" => {
                    args.next();
                    args.next_if(|word| word == "block");
                    args.next();
                    args.note(word, "no other block of filters is run here", "leave it out");
                }
                _ => return Err(args.unknown(word, &OF_RED)),
            }
        }
        Ok(red)
    }
}

/// RED of the kernel: `tc` makes a weight of a burst.
pub(super) fn read(args: &mut Args<'_>, way: &mut Way) -> Result<(), Diagnosis> {
    let Red { limit, min, max, avpkt, burst, wlog, probability, bandwidth, ecn } = Red::of(args)?;
    let Some(limit) = limit else { return Err(args.wrong("limit is missing, which tc needs")) };
    if avpkt.is_none() {
        args.note("avpkt", "tc does not show it", "1000 bytes are written; set `mean_packet` and `weight`");
    }
    // tc-red(8): max is a quarter of limit, min a third of max; the burst is that of the guideline.
    let avpkt = avpkt.unwrap_or(1000);
    let max = max.unwrap_or(limit / 4).max(1);
    let min = min.unwrap_or(max / 3).max(1);
    let burst = burst.unwrap_or((2 * min + max) / (3 * avpkt));
    let low = min as f64 / avpkt as f64;
    let Some(wlog @ 1..=31) = wlog.or_else(|| log_of_weight(low, burst)) else {
        let what = format!("burst {burst} is too small for min; tc-red(8) recommends (2 min + max) / (3 avpkt)");
        return Err(args.wrong(&what));
    };
    let from = args.from("");
    let key = |key, value: String| Key { key, value, from: from.clone() };
    let of_bytes = |bytes: u64| quoted(&Bytes::new(bytes).to_string());
    way.discipline = vec![
        key("name", quoted("red")),
        key("compat", quoted("linux")),
        key("min_threshold", of_bytes(min)),
        key("max_threshold", of_bytes(max)),
        key("max_probability", probability.to_string()),
        Key { from: format!("2^-{wlog}, from burst {burst}"), ..key("weight", weight(wlog).to_string()) },
        key("mean_packet", of_bytes(avpkt)),
        key("bandwidth", quoted(&bandwidth.to_string())),
        key("ecn", ecn.to_string()),
    ];
    way.limit = Some(key("limit", of_bytes(limit)));
    validate(args, way)
}

/// Returns 2^-log, which is exact.
fn weight(log: u64) -> f64 {
    1.0 / (1u64 << log) as f64
}

/// Returns a power, by squares.
fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut product = 1.0;
    while exponent > 0 {
        if exponent % 2 == 1 {
            product *= base;
        }
        base *= base;
        exponent /= 2;
    }
    product
}

/// Returns the weight 2^-n that `tc` makes of a burst: the first n with burst + 1 - low <= (1 - (1 - W)^burst) / W.
fn log_of_weight(low: f64, burst: u64) -> Option<u64> {
    let most = burst as f64 + 1.0 - low;
    let fits = |n: &u64| {
        let w = weight(*n);
        most <= (1.0 - power(1.0 - w, burst)) / w
    };
    if most < 1.0 { None } else { (1..32).find(fits) }
}
