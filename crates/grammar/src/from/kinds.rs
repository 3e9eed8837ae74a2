//! The words of disciplines of `tc`, and what they are here.

use super::units::{count, rate, size, time};
use super::{Key, Note, Text, Way, quoted};
use crate::named::Disciplines;
use crate::{Diagnosis, Source};
use penstock_core::link_layer::{Framing, LinkLayer};
use penstock_core::suggest::unknown_name;
use penstock_core::units::{Bytes, Limit, Rate};

/// What a word takes, and what its key gets.
#[derive(Debug, Clone, Copy)]
pub(super) enum How {
    Time,
    Size,
    Count,
    /// A number in sixteenths.
    Sixteenth,
    /// The word alone gives the key this value.
    Is(&'static str),
    /// A limit in packets.
    Packets,
    /// A limit in bytes.
    Octets,
    /// So many further words, which say what is so anyway.
    Nothing(usize),
    /// So many further words; why there is no counterpart, and what to do.
    Listed(usize, &'static str, &'static str),
}

type Row = (&'static str, &'static str, How);

/// A discipline: its name here, its words, and keys whose defaults in the kernel are others than here.
struct Kind {
    name: &'static str,
    words: &'static [&'static [Row]],
    limit: Limit,
    has: &'static [(&'static str, &'static str)],
}

const LINUX: (&str, &str) = ("compat", "\"linux\"");
const NO_FILTER: &str = "leave it out";

const CODEL: &[Row] = &[
    ("limit", "limit", How::Packets),
    ("target", "target", How::Time),
    ("interval", "interval", How::Time),
    ("ecn", "ecn", How::Is("true")),
    ("noecn", "ecn", How::Is("false")),
    ("ce_threshold", "ce_threshold", How::Time),
];
const QUEUES: &[Row] =
    &[("flows", "flows", How::Count), ("quantum", "quantum", How::Size), ("memory_limit", "memory_limit", How::Size)];
const BATCH: &[Row] = &[("drop_batch", "drop_batch", How::Count)];
const PIE: &[Row] = &[
    ("limit", "limit", How::Packets),
    ("target", "target", How::Time),
    ("tupdate", "tupdate", How::Time),
    ("alpha", "alpha", How::Sixteenth),
    ("beta", "beta", How::Sixteenth),
    ("ecn", "ecn", How::Is("true")),
    ("noecn", "ecn", How::Is("false")),
    ("bytemode", "bytemode", How::Is("true")),
    ("nobytemode", "bytemode", How::Is("false")),
    ("dq_rate_estimator", "estimator", How::Is("\"departure-rate\"")),
    ("no_dq_rate_estimator", "estimator", How::Is("\"timestamps\"")),
];
const MARKS: &[Row] = &[(
    "ecn_prob",
    "ecn_threshold",
    How::Listed(1, "with the kernel's rules it is 10 % here", "write ecn_threshold, without compat"),
)];
const IN_CLASSES: How = How::Listed(0, "sfq has no RED here", "take fq-codel for short queues");
const IN_CLASSES_1: How = How::Listed(1, "sfq has no RED here", "take fq-codel for short queues");
const SFQ: &[Row] = &[
    ("limit", "limit", How::Packets),
    ("quantum", "quantum", How::Size),
    ("divisor", "buckets", How::Count),
    (
        "perturb",
        "perturb",
        How::Listed(
            1,
            "the key of the hash changes after packets here, not after seconds",
            "set `perturb` to a number of packets",
        ),
    ),
    ("flows", "flows", How::Listed(1, "as many flows as there are have a queue here", NO_FILTER)),
    ("depth", "class_limit", How::Packets),
    ("headdrop", "headdrop", How::Listed(0, "sfq drops arrivals here", "take fq-codel, which drops heads")),
    ("ecn", "ecn", IN_CLASSES),
    ("harddrop", "harddrop", IN_CLASSES),
    ("redflowlimit", "redflowlimit", IN_CLASSES_1),
    ("min", "min", IN_CLASSES_1),
    ("max", "max", IN_CLASSES_1),
    ("avpkt", "avpkt", IN_CLASSES_1),
    ("burst", "burst", IN_CLASSES_1),
    ("probability", "probability", IN_CLASSES_1),
    ("ewma", "ewma", IN_CLASSES_1),
];
const BANDS: &str = "packets are not divided among bands by their precedence here";
const PFIFO: &[Row] = &[("limit", "limit", How::Packets)];
const PFIFO_FAST: &[Row] = &[("bands", "bands", How::Nothing(1)), ("priomap", "priomap", How::Nothing(16))];
const BFIFO: &[Row] = &[("limit", "limit", How::Octets)];
const CAKE: &[Row] = &[
    ("besteffort", "tins", How::Is("\"besteffort\"")),
    ("diffserv3", "tins", How::Is("\"diffserv3\"")),
    ("diffserv4", "tins", How::Is("\"diffserv4\"")),
    ("diffserv8", "tins", How::Is("\"diffserv8\"")),
    ("precedence", "tins", How::Is("\"precedence\"")),
    ("flowblind", "isolation", How::Is("\"flowblind\"")),
    ("srchost", "isolation", How::Is("\"srchost\"")),
    ("dsthost", "isolation", How::Is("\"dsthost\"")),
    ("hosts", "isolation", How::Is("\"hosts\"")),
    ("flows", "isolation", How::Is("\"flows\"")),
    ("dual-srchost", "isolation", How::Is("\"dual-srchost\"")),
    ("dual-dsthost", "isolation", How::Is("\"dual-dsthost\"")),
    ("triple-isolate", "isolation", How::Is("\"triple-isolate\"")),
    ("rtt", "rtt", How::Time),
    ("datacentre", "rtt", How::Is("\"100us\"")),
    ("lan", "rtt", How::Is("\"1ms\"")),
    ("metro", "rtt", How::Is("\"10ms\"")),
    ("regional", "rtt", How::Is("\"30ms\"")),
    ("internet", "rtt", How::Is("\"100ms\"")),
    ("oceanic", "rtt", How::Is("\"300ms\"")),
    ("satellite", "rtt", How::Is("\"1000ms\"")),
    ("interplanetary", "rtt", How::Is("\"1000s\"")), // the manual says 3600 s, tc sends 10^9 us
    ("wash", "wash", How::Is("true")),
    ("nowash", "wash", How::Is("false")),
    ("ack-filter", "ack_filter", How::Is("\"yes\"")),
    ("ack-filter-aggressive", "ack_filter", How::Is("\"aggressive\"")),
    ("no-ack-filter", "ack_filter", How::Is("\"no\"")),
    ("memlimit", "memory_limit", How::Size),
    ("ingress", "ingress", How::Is("true")),
    ("egress", "ingress", How::Is("false")),
    ("nonat", "nat", How::Nothing(0)),
    ("split-gso", "split-gso", How::Nothing(0)),
    (
        "nat",
        "nat",
        How::Listed(
            0,
            "cake looks up no translated addresses here",
            "write `lan` in [interfaces]: what is forwarded is seen with the addresses of the LAN",
        ),
    ),
    ("no-split-gso", "no-split-gso", How::Listed(0, "packets that were merged are always taken apart here", NO_FILTER)),
    (
        "fwmark",
        "fwmark",
        How::Listed(1, "tins are not chosen by marks of the firewall here", "set the DSCP of these packets"),
    ),
    (
        "autorate-ingress",
        "autorate-ingress",
        How::Listed(0, "cake does not estimate the rate here", "write rate_from = \"estimate\" in [link]"),
    ),
];

/// What cake knows of its rate and of the line below, and a few of the presets.
const LAYER: [&str; 11] =
    ["bandwidth", "unlimited", "overhead", "mpu", "atm", "ptm", "noatm", "raw", "conservative", "pppoe-ptm", "docsis"];

fn kind(name: &str) -> Option<Kind> {
    let kind = |name, words, limit, has| Some(Kind { name, words, limit: Limit::Packets(limit), has });
    match name {
        "codel" => kind("codel", &[CODEL], 1000, &[LINUX]),
        "fq_codel" => kind("fq-codel", &[CODEL, QUEUES, BATCH], 10_240, &[LINUX]),
        "pie" => kind("pie", &[PIE], 1000, &[LINUX]),
        "fq_pie" => kind("fq-pie", &[PIE, QUEUES, MARKS], 10_240, &[LINUX]),
        // Each flow is a class of its own.
        "sfq" => kind("sfq", &[SFQ], 127, &[("flows", "65536"), ("classify", "\"hash\""), ("class_limit", "\"127p\"")]),
        "pfifo" => kind("droptail", &[PFIFO], 1000, &[]),
        "pfifo_fast" => kind("droptail", &[PFIFO_FAST], 1000, &[]),
        "bfifo" => {
            Some(Kind { name: "droptail", words: &[BFIFO], limit: Limit::Bytes(Bytes::new(1_514_000)), has: &[] })
        }
        // In packets cake has no limit; this many of 1514 bytes is the most that its memory has.
        "cake" => {
            Some(Kind { name: "cake", words: &[CAKE], limit: Limit::Bytes(Bytes::new(10_240 * 1514)), has: &[LINUX] })
        }
        _ => None,
    }
}

/// True if a discipline of this name is one queue for a link here.
pub(super) fn is_known(name: &str) -> bool {
    name == "red" || kind(name).is_some()
}

/// The words of a discipline, one after another.
pub(super) struct Args<'a> {
    pub text: &'a Text<'a>,
    pub line: usize,
    pub kind: &'a str,
    words: std::slice::Iter<'a, String>,
    pub notes: &'a mut Vec<Note>,
}

impl<'a> Args<'a> {
    pub fn new(text: &'a Text<'a>, line: usize, kind: &'a str, words: &'a [String], notes: &'a mut Vec<Note>) -> Self {
        Self { text, line, kind, words: words.iter(), notes }
    }

    pub fn next(&mut self) -> Option<&'a str> {
        self.words.next().map(String::as_str)
    }

    /// Returns the next word, if it is one that this takes, and goes on behind it.
    pub fn next_if(&mut self, takes: impl Fn(&str) -> bool) -> Option<&'a str> {
        let word = self.words.as_slice().first().filter(|word| takes(word))?;
        self.words.next();
        Some(word)
    }

    pub fn wrong(&self, what: &str) -> Diagnosis {
        self.text.wrong(self.line, &format!("{}: {what}", self.kind))
    }

    /// Reads the value behind a word.
    pub fn value<T>(&mut self, word: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<T, Diagnosis> {
        let Some(value) = self.next() else { return Err(self.wrong(&format!("{word} has no value"))) };
        read(value).map_err(|what| self.wrong(&format!("{word}: {what}")))
    }

    pub fn note(&mut self, word: &str, why: &str, instead: &str) {
        let word = format!("{} {word}", self.kind);
        let word = word.trim_end();
        self.notes.push(self.text.note(self.line, word, why, instead));
    }

    pub fn unknown(&self, word: &str, known: &[&str]) -> Diagnosis {
        self.wrong(&unknown_name("word", word, known))
    }

    pub fn from(&self, words: &str) -> String {
        format!("line {}: {} {words}", self.line, self.kind).trim_end().to_owned()
    }
}

/// Puts a key in the place of one of the same name.
pub(super) fn put(keys: &mut Vec<Key>, key: Key) {
    match keys.iter_mut().find(|other| other.key == key.key) {
        Some(place) => *place = key,
        None => keys.push(key),
    }
}

/// Reads the words of a discipline into a direction. `is_shown` is true for what `tc` has shown.
pub(super) fn read(args: &mut Args<'_>, way: &mut Way) -> Result<(), Diagnosis> {
    let Some(kind) = kind(args.kind) else { return Ok(()) };
    let of_tc = args.from("");
    let default = |key, value: String| Key { key, value, from: format!("the default of {}", args.kind) };
    way.discipline = vec![Key { key: "name", value: quoted(kind.name), from: of_tc }];
    way.discipline.extend(kind.has.iter().map(|(key, value)| match *key {
        "compat" => Key { key, value: (*value).into(), from: "the kernel's rules".into() },
        _ => default(key, (*value).into()),
    }));
    way.limit = Some(default("limit", quoted(&kind.limit.to_string())));
    // What is around it shapes as well.
    let around = way.rate.take();
    if args.kind == "pfifo_fast" {
        args.note("", BANDS, "take cake, which has tins");
    }
    while let Some(word) = args.next() {
        if args.kind == "cake" && layer(args, way, word)? {
            continue;
        }
        if word == "ce_threshold_selector" && kind.words.len() > 2 && kind.name == "fq-codel" {
            selector(args, way)?;
            continue;
        }
        let Some((_, key, how)) = kind.words.iter().copied().flatten().find(|(known, ..)| *known == word) else {
            let known = kind.words.iter().copied().flatten().map(|(word, ..)| *word);
            let more = LAYER.into_iter().filter(|_| args.kind == "cake");
            return Err(args.unknown(word, &known.chain(more).collect::<Vec<_>>()));
        };
        take(args, way, (word, key, *how))?;
    }
    if args.kind == "cake"
        && let Some(memory) = way.discipline.iter().find(|key| key.key == "memory_limit")
    {
        way.limit = Some(Key { key: "limit", ..memory.clone() });
    }
    if args.kind == "cake" {
        shaper(way);
    }
    way.rate = match (around, way.rate.take()) {
        (Some(around), Some(own)) => Some(if own.0 < around.0 { own } else { around }),
        (around, own) => around.or(own),
    };
    validate(args, way)
}

/// Gives cake the rate and the layer of its link, from which it has the thresholds of its tins.
fn shaper(way: &mut Way) {
    let key = |key, value, from: &str| Key { key, value, from: from.to_owned() };
    if let Some((rate, from)) = &way.rate {
        way.discipline.push(key("bandwidth", quoted(&rate.to_string()), from));
    }
    if !way.layer.is_plain() {
        let LinkLayer { overhead, mpu, framing } = way.layer;
        let framing = if framing == Framing::None { "none".into() } else { framing.to_string() };
        let of = [("overhead", overhead.to_string()), ("mpu", mpu.to_string()), ("framing", quoted(&framing))];
        way.discipline.extend(of.map(|(name, value)| key(name, value, &way.layer_from)));
    }
}

/// Gives a key what a word says.
fn take(args: &mut Args<'_>, way: &mut Way, (word, key, how): (&str, &'static str, How)) -> Result<(), Diagnosis> {
    let value = match how {
        How::Time => quoted(&args.value(word, time)?.to_string()),
        How::Size => quoted(&args.value(word, size)?.to_string()),
        How::Count => args.value(word, count)?.to_string(),
        How::Sixteenth => (args.value(word, count)? as f64 / 16.0).to_string(),
        How::Is(value) => value.to_owned(),
        How::Packets => quoted(&format!("{}p", args.value(word, count)?)),
        How::Octets => quoted(&args.value(word, size)?.to_string()),
        How::Nothing(further) | How::Listed(further, ..) => {
            let values: Vec<&str> = (0..further).filter_map(|_| args.next()).collect();
            let same = [("perturb", "0"), ("perturb", "0sec"), ("ecn_prob", "10")];
            let is_off = values.first().is_some_and(|value| same.contains(&(word, value)));
            if let How::Listed(_, why, instead) = how
                && !is_off
            {
                args.note(&[&[word], values.as_slice()].concat().join(" "), why, instead);
            }
            return Ok(());
        }
    };
    let key = Key { key, value, from: args.from(word) };
    if matches!(key.value.as_str(), "\"0p\"" | "\"0B\"") {
        return Err(args.wrong(&format!("{word} is 0; a queue holds a packet or more")));
    }
    if key.key == "limit" {
        way.limit = Some(key)
    } else {
        put(&mut way.discipline, key)
    }
    Ok(())
}

/// `ce_threshold_selector VALUE/MASK`, of which the bits of ECN count here.
fn selector(args: &mut Args<'_>, way: &mut Way) -> Result<(), Diagnosis> {
    let word = "ce_threshold_selector";
    let both = |text: &str| {
        let (value, mask) = text.split_once('/').ok_or("write VALUE/MASK, such as 0x1/0x3")?;
        Ok((count(value)?, count(mask)?))
    };
    let (value, mask) = args.value(word, both)?;
    if value > 3 || mask > 3 {
        args.note(
            word,
            "codepoints of DSCP do not choose what is marked here",
            "take a mask of up to 0x3, the bits of ECN",
        );
        return Ok(());
    }
    for (key, number) in [("ce_threshold_selector", value), ("ce_threshold_mask", mask)] {
        put(&mut way.discipline, Key { key, value: number.to_string(), from: args.from(word) });
    }
    Ok(())
}

/// Reads what cake knows of its rate and of the line below; true if this was such a word.
fn layer(args: &mut Args<'_>, way: &mut Way, word: &str) -> Result<bool, Diagnosis> {
    let Way { layer, .. } = way;
    match word {
        "unlimited" => way.rate = None,
        "bandwidth" => {
            let unlimited = args.next_if(|word| word == "unlimited").is_some();
            way.rate = if unlimited { None } else { Some((args.value(word, rate)?, args.from(word))) };
        }
        "overhead" | "mpu" => {
            let read = |text: &str| text.parse::<i32>().map_err(|_| format!("{text:?} is no number of bytes"));
            let bytes = args.value(word, read)?;
            let wrong = LinkLayer { mpu: 0, overhead: bytes, framing: Framing::None }.mistake();
            if let Some((_, what)) = wrong.filter(|_| word == "overhead" || bytes > 256) {
                return Err(args.wrong(&format!("{word} is {bytes}; it {what}")));
            }
            match u32::try_from(bytes) {
                _ if word == "overhead" => layer.overhead = bytes,
                Ok(bytes) => layer.mpu = bytes,
                Err(_) => return Err(args.wrong("mpu must be 0 or more")),
            }
        }
        "atm" => layer.framing = Framing::Atm,
        "ptm" => layer.framing = Framing::Ptm,
        "noatm" => layer.framing = Framing::None,
        // As in tc: these set, the others add.
        "raw" => *layer = LinkLayer { mpu: layer.mpu, ..LinkLayer::default() },
        "conservative" => (layer.overhead, layer.framing) = (48, Framing::Atm),
        "ether-vlan" => layer.overhead += 4,
        "ethernet" => (layer.overhead, layer.mpu) = (layer.overhead + 38, 84),
        "docsis" => *layer = LinkLayer { overhead: layer.overhead + 18, mpu: 64, framing: Framing::None },
        preset => match LinkLayer::preset(preset) {
            Some(of) => (layer.overhead, layer.framing) = (layer.overhead + of.overhead, of.framing),
            None => return Ok(false),
        },
    }
    if let Some((key, what)) = layer.mistake() {
        return Err(args.wrong(&format!("{word}: {key} {what}")));
    }
    if !["unlimited", "bandwidth"].contains(&word) {
        way.layer_from = args.from("");
    }
    // Without a word for overhead, or with `raw` before it, tc counts the header of the interface as well.
    if word == "raw" {
        way.is_raw = true;
    } else if !["unlimited", "bandwidth", "mpu", "atm", "ptm", "noatm"].contains(&word) {
        way.counts_ip = true;
    }
    Ok(true)
}

/// Checks that the discipline is one that is allowed here.
pub(super) fn validate(args: &Args<'_>, way: &Way) -> Result<(), Diagnosis> {
    let lines: String = way.discipline.iter().map(|key| format!("{} = {}\n", key.key, key.value)).collect();
    let text = format!("[d]\n{lines}");
    let source = Source::parse(&text, "d").map_err(|mistake| args.wrong(&mistake.what))?;
    let Some(value) = source.get(&["d"]) else { return Ok(()) };
    source.named(value, &Disciplines::built_in()).map(drop).map_err(|mistake| args.wrong(&mistake.what))
}

/// Token bucket filter: a rate, and a limit that a latency may tell.
pub(super) fn tbf(args: &mut Args<'_>, way: &mut Way) -> Result<(), Diagnosis> {
    let (mut of, mut peak, mut burst, mut minburst, mut latency, mut limit) = (None, None, 0, 0, None, None);
    let cells = |text: &str| size(text.split('/').next().unwrap_or(text));
    while let Some(word) = args.next() {
        match word {
            "rate" => of = Some((args.value(word, rate)?, args.from(word))),
            "peakrate" => peak = Some(args.value(word, rate)?),
            "burst" | "buffer" | "maxburst" => burst = args.value(word, cells)?.get(),
            "mtu" | "minburst" => minburst = args.value(word, cells)?.get(),
            "latency" | "lat" => latency = Some((args.value(word, time)?, args.from(word))),
            "limit" => limit = Some((args.value(word, size)?.get(), args.from(word))),
            "mpu" => way.layer.mpu = u32::try_from(args.value(word, size)?.get()).unwrap_or(u32::MAX),
            "overhead" => {
                way.layer.overhead =
                    args.value(word, |text| text.parse().map_err(|_| format!("{text:?} is no number")))?
            }
            "linklayer" => way.layer.framing = args.value(word, framing)?,
            _ => {
                return Err(args.unknown(
                    word,
                    &["rate", "burst", "latency", "limit", "mpu", "peakrate", "mtu", "overhead", "linklayer"],
                ));
            }
        }
    }
    if let Some((key, what)) = way.layer.mistake() {
        return Err(args.wrong(&format!("{key} {what}")));
    }
    if !way.layer.is_plain() {
        way.layer_from = args.from("");
    }
    let Some((rate, from)) = of else { return Err(args.wrong("rate is missing, which tc needs")) };
    if burst > 0 {
        args.note("burst", "a link sends one packet after another here, and no burst at once", NO_FILTER);
    }
    if peak.is_some() {
        args.note("peakrate", "a link has one rate here", NO_FILTER);
    }
    // tc: the limit is what passes in the latency, and the burst.
    let of_latency = |(latency, from): (penstock_core::units::Span, String)| {
        let holds = |rate: Rate, more: u64| (rate.bytes_per_sec() * latency.as_secs_f64()) as u64 + more;
        let peak = peak.map_or(u64::MAX, |peak| holds(peak, minburst));
        (holds(rate, burst).min(peak).max(1), from)
    };
    let around = way.rate.take().filter(|around| around.0 < rate);
    way.rate = Some(around.unwrap_or((rate, from)));
    way.discipline = vec![Key { key: "name", value: quoted("droptail"), from: "tbf has one queue".into() }];
    way.limit = limit.or_else(|| latency.map(of_latency)).map(|(bytes, from)| Key {
        key: "limit",
        value: quoted(&Bytes::new(bytes.max(1)).to_string()),
        from,
    });
    Ok(())
}

/// What `linklayer` says.
pub(super) fn framing(text: &str) -> Result<Framing, String> {
    match text {
        "ethernet" => Ok(Framing::None),
        "atm" | "adsl" => Ok(Framing::Atm),
        _ => Err(unknown_name("link layer", text, &["ethernet", "atm", "adsl"])),
    }
}
