//! `[[flows]]`: what each kind of traffic needs and may have.

use super::paths;
use super::raw::{RawFlow, text};
use super::{Check, Checker, FlowSpec, LinkSpec, MAX_DURATION};
use crate::actors::Traffic;
use crate::actors::bulk::{Bulk, Transfer};
use crate::actors::cbr::{Cbr, OnOff};
use crate::actors::sessions::{Http, Idle, Web};
use crate::actors::synflood::SynFlood;
use crate::actors::video::Video;
use crate::actors::voip::{P59, Voip};
use crate::tcp::TcpConfig;
use penstock_core::units::{Bytes, Rate, Span};
use std::ops::RangeInclusive;
use toml::{Table, Value};

const SIZES: RangeInclusive<u64> = 1..=1 << 50;
/// Transfers per second of one flow.
const MAX_PER_SECOND: f64 = 10_000.0;

/// A flow of the file, to be checked.
pub(super) struct Flow<'a> {
    pub check: &'a Checker<'a>,
    pub index: &'a str,
    pub raw: &'a RawFlow,
}

/// A key, whether it is there, which kinds need it, which others may have it.
type Key = (&'static str, bool, &'static [&'static str], &'static [&'static str]);

impl Flow<'_> {
    fn refuse<T>(&self, key: &str, message: &str) -> Check<T> {
        Err(self.check.source.at(&["flows", self.index, key], message))
    }

    fn span(&self, key: &str, value: Option<Span>, default: Span, least: Span) -> Check<Span> {
        let value = value.unwrap_or(default);
        self.check.within_span(key, &["flows", self.index, key], value, least, MAX_DURATION).map(|()| value)
    }

    fn number(&self, key: &str, value: f64, allowed: RangeInclusive<f64>) -> Check<f64> {
        if allowed.contains(&value) {
            return Ok(value);
        }
        self.refuse(key, &format!("{key} is {value}; allowed are {} to {}", allowed.start(), allowed.end()))
    }

    fn word(&self, key: &str, value: Option<&str>, allowed: [&'static str; 2]) -> Check<bool> {
        let value = value.unwrap_or(allowed[0]);
        match allowed.iter().position(|word| *word == value) {
            Some(index) => Ok(index == 1),
            None => Err(self.check.source.unknown(&["flows", self.index, key], key, value, &allowed)),
        }
    }

    fn size(&self, key: &str, value: Bytes) -> Check<Bytes> {
        if SIZES.contains(&value.get()) {
            return Ok(value);
        }
        self.refuse(key, "a transfer has 1B to 1PB")
    }

    fn keys(&self) -> [Key; 21] {
        let raw = self.raw;
        [
            ("size", raw.size.is_some(), &["transfer"], &["http"]),
            ("packets", raw.packets.is_some(), &[], &["http"]),
            ("idle", raw.idle.is_some(), &[], &["http"]),
            ("idle_distribution", raw.idle_distribution.is_some(), &[], &["http"]),
            ("connection", raw.connection.is_some(), &[], &["http"]),
            ("rate", raw.rate.is_some(), &["cbr", "onoff", "video"], &[]),
            ("packet_size", raw.packet_size.is_some(), &[], &["cbr", "onoff", "video"]),
            ("packet_weights", raw.packet_weights.is_some(), &[], &["cbr", "onoff"]),
            ("per_second", raw.per_second.is_some(), &["synflood"], &["web"]),
            ("load", raw.load.is_some(), &[], &["web"]),
            ("mean_size", raw.mean_size.is_some(), &[], &["web"]),
            ("shape", raw.shape.is_some(), &[], &["web"]),
            ("max_size", raw.max_size.is_some(), &[], &["web"]),
            ("mean_on", raw.mean_on.is_some(), &["onoff"], &["voip"]),
            ("mean_off", raw.mean_off.is_some(), &["onoff"], &["voip"]),
            ("talk_spurts", raw.talk_spurts.is_some(), &[], &["voip"]),
            ("fps", raw.fps.is_some(), &[], &["video"]),
            ("gop", raw.gop.is_some(), &[], &["video"]),
            ("i_frame_ratio", raw.i_frame_ratio.is_some(), &[], &["video"]),
            ("spread", raw.spread.is_some(), &[], &["video"]),
            ("deadline", raw.deadline.is_some(), &[], &["video"]),
        ]
    }

    /// Checks that all keys are there which the kind needs, and no others; gives the settings of the kinds that need
    /// nothing but their own keys.
    pub fn keys_belong(&self) -> Check<Option<Traffic>> {
        let raw = self.raw;
        let kind = raw.kind.as_str();
        if !Traffic::NAMES.contains(&kind) {
            return Err(self.check.source.unknown(&["flows", self.index, "kind"], "kind", kind, Traffic::NAMES));
        }
        for (key, given, needed, allowed) in self.keys() {
            if given && !needed.contains(&kind) && !allowed.contains(&kind) {
                return self.refuse(key, &format!("`{key}` means nothing for kind {kind:?}"));
            }
            if !given && needed.contains(&kind) {
                return self.refuse("kind", &format!("kind {kind:?} needs `{key}`"));
            }
        }
        if let Some(rate) = raw.rate {
            self.check.rate(&["flows", self.index, "rate"], rate)?;
        }
        let simple = self.simple(kind)?;
        let on = self.packets()?;
        Ok(match kind {
            "cbr" => Some(Traffic::Cbr(on)),
            "onoff" => {
                let (mean_on, mean_off) = (raw.mean_on.unwrap_or_default(), raw.mean_off.unwrap_or_default());
                Some(Traffic::OnOff(OnOff { on, mean_on, mean_off }))
            }
            _ => simple,
        })
    }

    fn simple(&self, kind: &str) -> Check<Option<Traffic>> {
        let raw = self.raw;
        match kind {
            "bulk" => Ok(Some(Traffic::Bulk(Bulk))),
            "transfer" if raw.stop.is_some() => self.refuse("stop", "a transfer stops by itself; leave `stop` out"),
            "transfer" => {
                let size = self.size("size", raw.size.unwrap_or_default())?;
                Ok(Some(Traffic::Transfer(Transfer { size })))
            }
            "synflood" => match raw.per_second {
                Some(n) if (1.0..=1e6).contains(&n) && n.fract() == 0.0 => {
                    Ok(Some(Traffic::SynFlood(SynFlood { per_second: n as u32 })))
                }
                _ => self.refuse("per_second", "a flood has 1 to 1000000 SYNs per second, a whole number"),
            },
            _ => Ok(None),
        }
    }

    /// The settings of the application; `simple` has those of the kinds that need nothing but their own keys.
    pub fn traffic(
        &self,
        simple: Option<Traffic>,
        tcp: &TcpConfig,
        links: &[LinkSpec],
        way: [&str; 2],
    ) -> Check<Traffic> {
        match (simple, self.raw.kind.as_str()) {
            (Some(simple), _) => Ok(simple),
            (None, "http") => self.http(tcp).map(Traffic::Http),
            (None, "web") => self.web(links, way).map(Traffic::Web),
            (None, "voip") => self.voip().map(Traffic::Voip),
            (None, _) => self.video().map(Traffic::Video),
        }
    }

    fn http(&self, tcp: &TcpConfig) -> Check<Http> {
        let raw = self.raw;
        let size = match (raw.size, raw.packets) {
            (Some(_), Some(_)) => return self.refuse("packets", "give `size` or `packets`, not both"),
            (Some(size), None) => self.size("size", size)?,
            (None, packets) => {
                let packets = packets.unwrap_or(30);
                if !(1..=1_000_000).contains(&packets) {
                    return self.refuse("packets", "a transfer has 1 to 1000000 packets");
                }
                Bytes::new(packets * tcp.mss.get())
            }
        };
        let idle = self.span("idle", raw.idle, Span::from_secs(5), Span::ZERO)?;
        let exponential =
            self.word("idle_distribution", raw.idle_distribution.as_deref(), ["constant", "exponential"])?;
        Ok(Http {
            size,
            idle: if exponential { Idle::Exponential(idle) } else { Idle::Constant(idle) },
            same_connection: self.word("connection", raw.connection.as_deref(), ["new", "same"])?,
        })
    }

    fn web(&self, links: &[LinkSpec], [from, to]: [&str; 2]) -> Check<Web> {
        let raw = self.raw;
        let mean_size = self.size("mean_size", raw.mean_size.unwrap_or(Bytes::new(50_000)))?;
        let shape = raw.shape.unwrap_or(1.3);
        if !(shape > 1.0 && shape <= 100.0) {
            return self.refuse("shape", &format!("shape is {shape}; allowed is above 1 (or there is no mean) to 100"));
        }
        if raw.max_size.is_some_and(|most| most < mean_size || !SIZES.contains(&most.get())) {
            return self.refuse("max_size", &format!("max_size is at least mean_size ({mean_size}) and at most 1PB"));
        }
        let (key, per_second) = match (raw.per_second, raw.load) {
            (Some(per_second), None) => ("per_second", per_second),
            (None, Some(load)) => {
                self.number("load", load, 1e-6..=10.0)?;
                let rate = paths::slowest(links, from, to).unwrap_or(Rate::from_bps(1)).as_bps() as f64;
                ("load", load * rate / (8 * mean_size.get()) as f64 / raw.count.max(1) as f64)
            }
            (Some(_), Some(_)) => return self.refuse("load", "give `per_second` or `load`, not both"),
            (None, None) => return self.refuse("kind", "kind \"web\" needs `per_second` or `load`"),
        };
        if !(per_second > 0.0 && per_second <= MAX_PER_SECOND) {
            let message = format!("{per_second} transfers per second; allowed is above 0 to {MAX_PER_SECOND}");
            return self.refuse(key, &message);
        }
        Ok(Web { per_second, mean_size, shape, max_size: raw.max_size })
    }

    fn voip(&self) -> Check<Voip> {
        let raw = self.raw;
        let named = raw.mean_on.is_some() || raw.mean_off.is_some();
        if named && raw.talk_spurts == Some(false) {
            return self.refuse("talk_spurts", "`mean_on` and `mean_off` are those of talk spurts; leave them out");
        }
        let least = Span::from_millis(1);
        let on = self.span("mean_on", raw.mean_on, P59.0, least)?;
        let off = self.span("mean_off", raw.mean_off, P59.1, least)?;
        Ok(Voip { spurts: (named || raw.talk_spurts == Some(true)).then_some((on, off)) })
    }

    fn video(&self) -> Check<Video> {
        let raw = self.raw;
        let gop = raw.gop.unwrap_or(25);
        if !(1..=10_000).contains(&gop) {
            return self.refuse("gop", "a group of pictures has 1 to 10000 frames");
        }
        let packet_size = match raw.packet_size.as_ref().map(|sizes| sizes.0.as_slice()) {
            None => Bytes::new(1200),
            Some([size]) if (100..=65_000).contains(&size.get()) => *size,
            Some(_) => return self.refuse("packet_size", "a packet of video carries 100B to 65kB, all the same"),
        };
        let video = Video {
            rate: raw.rate.unwrap_or(Rate::from_bps(1)),
            fps: self.number("fps", raw.fps.unwrap_or(25.0), 1.0..=1000.0)?,
            gop,
            i_ratio: self.number("i_frame_ratio", raw.i_frame_ratio.unwrap_or(5.0), 1.0..=100.0)?,
            spread: self.number("spread", raw.spread.unwrap_or(0.2), 0.0..=2.0)?,
            packet_size,
            deadline: self.span("deadline", raw.deadline, Span::from_millis(150), Span::from_millis(1))?,
        };
        if video.largest_mean() > video.largest_frame() {
            return self
                .refuse("rate", "a frame has at most 65535 packets: lower `rate`, raise `fps` or `packet_size`");
        }
        Ok(video)
    }

    /// Rate, sizes and weights of the packets of `cbr` and `onoff`.
    fn packets(&self) -> Check<Cbr> {
        let sizes = self.raw.packet_size.as_ref().map_or(vec![Bytes::new(1200)], |sizes| sizes.0.clone());
        if sizes.is_empty() || sizes.iter().any(|size| !(1..=65_000).contains(&size.get())) {
            return self.refuse("packet_size", "a packet carries 1B to 65kB");
        }
        let weights = self.raw.packet_weights.clone().unwrap_or_else(|| vec![1.0; sizes.len()]);
        if weights.len() != sizes.len() {
            let message = format!("{} weights for {} sizes; give one for each", weights.len(), sizes.len());
            return self.refuse("packet_weights", &message);
        }
        if weights.iter().any(|weight| !(1e-9..=1e9).contains(weight)) {
            return self.refuse("packet_weights", "a weight is above 0, up to 1e9");
        }
        let rate = self.raw.rate.unwrap_or(Rate::from_bps(1));
        Ok(Cbr { rate, packet_size: sizes, packet_weights: weights })
    }
}

/// What is written back of a flow besides what all have.
pub(super) fn write(spec: &FlowSpec, table: &mut Table) {
    if spec.traffic.uses_tcp() {
        table.insert("tcp".to_owned(), Value::try_from(&spec.tcp).unwrap_or(Value::Table(Table::new())));
    }
    table.extend(settings(&spec.traffic).into_iter().map(|(key, value)| (key.to_owned(), value)));
}

fn settings(traffic: &Traffic) -> Vec<(&'static str, Value)> {
    match traffic {
        Traffic::Bulk(_) => Vec::new(),
        Traffic::Transfer(transfer) => vec![("size", text(transfer.size))],
        Traffic::Cbr(cbr) => datagrams(cbr),
        Traffic::OnOff(onoff) => {
            let means = [("mean_on", text(onoff.mean_on)), ("mean_off", text(onoff.mean_off))];
            datagrams(&onoff.on).into_iter().chain(means).collect()
        }
        Traffic::SynFlood(flood) => vec![("per_second", Value::Integer(flood.per_second.into()))],
        Traffic::Http(http) => {
            let (idle, distribution) = match http.idle {
                Idle::Constant(idle) => (idle, "constant"),
                Idle::Exponential(idle) => (idle, "exponential"),
            };
            vec![
                ("size", text(http.size)),
                ("idle", text(idle)),
                ("idle_distribution", text(distribution)),
                ("connection", text(if http.same_connection { "same" } else { "new" })),
            ]
        }
        Traffic::Web(web) => {
            let mut keys = vec![
                ("per_second", Value::Float(web.per_second)),
                ("mean_size", text(web.mean_size)),
                ("shape", Value::Float(web.shape)),
            ];
            keys.extend(web.max_size.map(|size| ("max_size", text(size))));
            keys
        }
        Traffic::Voip(voip) => {
            let spurts = voip.spurts.map(|(on, off)| [("mean_on", text(on)), ("mean_off", text(off))]);
            spurts.into_iter().flatten().collect()
        }
        Traffic::Video(video) => vec![
            ("rate", text(video.rate)),
            ("fps", Value::Float(video.fps)),
            ("gop", Value::Integer(video.gop.into())),
            ("i_frame_ratio", Value::Float(video.i_ratio)),
            ("spread", Value::Float(video.spread)),
            ("packet_size", text(video.packet_size)),
            ("deadline", text(video.deadline)),
        ],
    }
}

fn datagrams(cbr: &Cbr) -> Vec<(&'static str, Value)> {
    let rate = ("rate", text(cbr.rate));
    if let [size] = cbr.packet_size.as_slice() {
        return vec![rate, ("packet_size", text(size))];
    }
    let sizes = cbr.packet_size.iter().map(text).collect();
    let weights = cbr.packet_weights.iter().map(|weight| Value::Float(*weight)).collect();
    vec![rate, ("packet_size", Value::Array(sizes)), ("packet_weights", Value::Array(weights))]
}
