//! Scripted ladders of segments: given arrivals, they check departures with numbers, flags, windows, options and times.
//!
//! Each file of `ladders/` holds ladders that begin with `== title (source)`. A line is `TIME OP ...`, in order of time:
//!
//! | op | meaning |
//! |---|---|
//! | `tcp key = value, ...` | options of the endpoint (without time, before all others) |
//! | `client`, `server` | the side under test (without time) |
//! | `open`, `write N`, `close`, `stop`, `abort`, `manual`, `read N` | what its application does |
//! | `connect RTT [WIN]` | a whole handshake that ends after RTT; the peer's window is WIN (default 65535) |
//! | `< SEGMENT` | the peer's segment arrives |
//! | `> SEGMENT` | the endpoint sent this, exactly then |
//! | `quiet` | it sent nothing that was not named |
//! | `cwnd N`, `ssthresh N`, `delivered N`, `acked N`, `state S`, `done` | what must be true |
//!
//! SEGMENT is `FLAGS START:END [ack N] [win N] [mss N] [ws N] [sackok] [sack A-B ...] [ts VAL:ECR] [ect0|ect1|ce]
//! [ern BITS] [rate CWND/MS] [accecn0 E0/CE/E1] [accecn1 E1/CE/E0] [size N]`. Flags are those of tcpdump (S F R P E W, A for
//! AE, and `.` for ACK, `-` for none); PSH is
//! compared only if it is named. Numbers count from each side's SYN, which is 0. SACK blocks, ERN's bits (00 if not
//! named) and its option are always compared, other options when they are named.

use penstock_core::packet::{AccEcn, ByteCounters, Ecn, Packet, TcpFlags, TcpView, Timestamps};
use penstock_core::units::{Instant, Span};
use penstock_sim::segment::{Segment, SynOptions};
use penstock_sim::tcp::{Endpoint, Role, State, TcpConfig};
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::Arc;

/// Near the wrap of sequence numbers, so that every ladder of some length crosses it.
const OUR_ISS: u32 = u32::MAX - 2000;
const PEER_ISS: u32 = u32::MAX - 5;

struct Ladder {
    endpoint: Endpoint,
    config: TcpConfig,
    role: Role,
    now: Instant,
    sent: VecDeque<(Instant, Segment)>,
}

impl Ladder {
    fn new(config: TcpConfig, role: Role) -> Self {
        let endpoint = Endpoint::new(Arc::new(config.clone()), 0, role, OUR_ISS);
        Self { endpoint, config, role, now: Instant::ZERO, sent: VecDeque::new() }
    }

    /// Fires timers up to `at`, each at its own time.
    fn advance(&mut self, at: Instant) {
        while let Some(deadline) = self.endpoint.deadline().filter(|d| *d <= at) {
            self.now = self.now.max(deadline);
            self.endpoint.on_timer(self.now);
            self.drain();
        }
        self.now = at;
    }

    fn drain(&mut self) {
        while let Some(segment) = self.endpoint.transmit(self.now) {
            self.sent.push_back((self.now, segment));
        }
    }

    fn arrive(&mut self, segment: &Segment) {
        self.endpoint.on_segment(segment, self.now);
        self.drain();
    }

    fn connect(&mut self, rtt: Span, window: u16) -> Result<(), String> {
        let mut syn = Segment::tcp(0, self.role == Role::Server, TcpFlags::SYN);
        syn.seq = PEER_ISS;
        syn.window = window;
        let mut room = 0; // of the options of a segment (RFC 6691)
        if self.config.timestamps {
            syn.set_timestamps(Timestamps { val: 1, ecr: self.now.as_nanos() as u32 / 1000 });
            room = 12;
        }
        let window_scale = self.config.window_scaling.then_some(0);
        syn.set_syn_options(SynOptions {
            mss: self.config.mss.get() as u16 + room,
            window_scale,
            sack_permitted: self.config.sack,
        });
        if self.role == Role::Client {
            self.endpoint.open();
            self.drain();
            self.advance(self.now + rtt);
            syn.flags = syn.flags.with(TcpFlags::ACK);
            if self.config.ecn {
                syn.flags = syn.flags.with(TcpFlags::ECE);
            }
            syn.ack = OUR_ISS.wrapping_add(1);
            self.arrive(&syn);
        } else {
            if self.config.ecn {
                syn.flags = syn.flags.with(TcpFlags::ECE).with(TcpFlags::CWR);
            }
            self.arrive(&syn);
            let tsval = self.now.as_nanos() as u32 / 1000;
            self.advance(self.now + rtt);
            let mut ack = Segment::tcp(0, true, TcpFlags::ACK);
            (ack.seq, ack.ack, ack.window) = (PEER_ISS.wrapping_add(1), OUR_ISS.wrapping_add(1), window);
            if self.config.timestamps {
                ack.set_timestamps(Timestamps { val: 2, ecr: tsval });
            }
            self.arrive(&ack);
        }
        self.sent.clear();
        let state = self.endpoint.state();
        if state == State::Established { Ok(()) } else { Err(format!("connect ended in {state:?}")) }
    }

    /// Runs one line at its time.
    fn step(&mut self, at: Instant, op: &str, rest: &str) -> Result<(), String> {
        let number = || rest.parse::<u64>().map_err(|_| format!("{rest:?} is not a number"));
        let equal = |what: &str, got: u64, want: u64| {
            if got == want { Ok(()) } else { Err(format!("{what} is {got}, not {want}")) }
        };
        if op == ">" {
            return self.expect(at, rest);
        }
        self.advance(at);
        match op {
            "<" => {
                let segment = build(rest, self.role == Role::Server)?;
                self.arrive(&segment);
            }
            "open" => self.endpoint.open(),
            "write" => self.endpoint.write(number()?),
            "close" => self.endpoint.close(),
            "stop" => self.endpoint.stop(),
            "abort" => self.endpoint.abort(),
            "manual" => self.endpoint.read_by_hand(),
            "read" => self.endpoint.read(number()?),
            "connect" => {
                let (rtt, window) = rest.split_once(' ').unwrap_or((rest, "65535"));
                let rtt = rtt.parse().map_err(|e| format!("{e}"))?;
                self.connect(rtt, window.parse().map_err(|_| "bad window")?)?;
            }
            "quiet" => {
                if let Some((time, segment)) = self.sent.front() {
                    return Err(format!("sent {} at {}", show(segment), time.since(Instant::ZERO)));
                }
            }
            "cwnd" => equal("cwnd", self.endpoint.windows().0, number()?)?,
            "ssthresh" => equal("ssthresh", self.endpoint.windows().1, number()?)?,
            "delivered" => equal("delivered", self.endpoint.delivered(), number()?)?,
            "acked" => equal("acked", self.endpoint.acked(), number()?)?,
            "state" => {
                let state = format!("{:?}", self.endpoint.state()).to_lowercase();
                if state != rest {
                    return Err(format!("state is {state}"));
                }
            }
            "done" => equal("done", u64::from(self.endpoint.is_done()), 1)?,
            other => return Err(format!("no op {other:?}")),
        }
        self.drain();
        Ok(())
    }

    fn expect(&mut self, at: Instant, text: &str) -> Result<(), String> {
        if self.sent.is_empty() {
            self.advance(at);
        }
        let Some((time, got)) = self.sent.pop_front() else { return Err("nothing was sent".into()) };
        let want = Expected::parse(text)?;
        let mismatch = want.compare(&got);
        if time != at || mismatch.is_some() {
            let why = mismatch.unwrap_or_else(|| "time".into());
            return Err(format!("{why}: sent {} at {}", show(&got), time.since(Instant::ZERO)));
        }
        Ok(())
    }
}

/// A segment as a line of a ladder writes it.
#[derive(Default)]
struct Expected {
    flags: u8,
    push: bool,
    start: u32,
    end: u32,
    ack: Option<u32>,
    window: Option<u16>,
    mss: Option<u16>,
    scale: Option<u8>,
    sack_ok: Option<bool>,
    sacks: Vec<(u32, u32)>,
    timestamps: Option<Timestamps>,
    ecn: Option<Ecn>,
    ern: u8,
    rate: Option<(u64, u16)>,
    ae: bool,
    accecn: Option<AccEcn>,
    size: Option<u32>,
}

const LETTERS: [(char, TcpFlags); 7] = [
    ('S', TcpFlags::SYN),
    ('F', TcpFlags::FIN),
    ('R', TcpFlags::RST),
    ('P', TcpFlags::PSH),
    ('.', TcpFlags::ACK),
    ('E', TcpFlags::ECE),
    ('W', TcpFlags::CWR),
];

impl Expected {
    fn parse(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let mut this = Self::default();
        for letter in words.next().unwrap_or("").chars().filter(|c| *c != '-') {
            if letter == 'A' {
                this.ae = true;
                continue;
            }
            let (_, flag) = LETTERS.iter().find(|(l, _)| *l == letter).ok_or(format!("no flag {letter:?}"))?;
            this.flags |= flag.0;
        }
        this.push = this.flags & TcpFlags::PSH.0 != 0;
        let range = words.next().and_then(|w| w.split_once(':')).ok_or("no START:END")?;
        (this.start, this.end) = (number(range.0)?, number(range.1)?);
        let mut words = words.peekable();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} needs a value"));
            match word {
                "ack" => this.ack = Some(number(value()?)?),
                "win" => this.window = Some(number(value()?)? as u16),
                "mss" => this.mss = Some(number(value()?)? as u16),
                "ws" => this.scale = Some(number(value()?)? as u8),
                "sackok" => this.sack_ok = Some(true),
                "nosack" => this.sack_ok = Some(false),
                "ts" => {
                    let (val, ecr) = value()?.split_once(':').ok_or("ts VAL:ECR")?;
                    this.timestamps = Some(Timestamps { val: number(val)?, ecr: number(ecr)? });
                }
                "sack" => {
                    while let Some((a, b)) = words.peek().and_then(|w| w.split_once('-')) {
                        this.sacks.push((number(a)?, number(b)?));
                        words.next();
                    }
                }
                "ern" => this.ern = u8::from_str_radix(value()?, 2).map_err(|e| format!("ern: {e}"))?,
                "rate" => {
                    let (cwnd, ms) = value()?.split_once('/').ok_or("rate CWND/MS")?;
                    this.rate = Some((number(cwnd)?.into(), number(ms)? as u16));
                }
                "accecn0" | "accecn1" => {
                    let told = value()?;
                    let fields = told.split('/').filter(|field| *field != "-").map(number);
                    this.accecn = Some(option_of(word == "accecn1", &fields.collect::<Result<Vec<_>, _>>()?));
                }
                "size" => this.size = Some(number(value()?)?),
                "ect0" => this.ecn = Some(Ecn::Ect0),
                "ect1" => this.ecn = Some(Ecn::Ect1),
                "notect" => this.ecn = Some(Ecn::NotEct),
                "ce" => this.ecn = Some(Ecn::Ce),
                other => return Err(format!("no field {other:?}")),
            }
        }
        Ok(this)
    }

    fn compare(&self, got: &Segment) -> Option<String> {
        let sacks: Vec<_> =
            got.sacks().iter().map(|(a, b)| (a.wrapping_sub(PEER_ISS), b.wrapping_sub(PEER_ISS))).collect();
        let mask = if self.push { 0xff } else { !TcpFlags::PSH.0 };
        let start = got.seq.wrapping_sub(if got.flags.has(TcpFlags::RST) && got.seq == 0 { 0 } else { OUR_ISS });
        let differs = |field: &str, same: bool| (!same).then(|| field.to_owned());
        let (options, told) = (got.syn_options(), got.explicit_rate());
        differs("flags", got.flags.0 & mask == self.flags && (got.ace() & 4 != 0) == self.ae)
            .or(differs("accecn", got.accecn() == self.accecn))
            .or(differs("numbers", (start, start.wrapping_add(u32::from(got.len))) == (self.start, self.end)))
            .or(differs("ack", self.ack.is_none_or(|a| got.ack.wrapping_sub(PEER_ISS) == a)))
            .or(differs("win", self.window.is_none_or(|w| got.window == w)))
            .or(differs("mss", self.mss.is_none_or(|m| options.is_some_and(|o| o.mss == m))))
            .or(differs("ws", self.scale.is_none_or(|s| options.is_some_and(|o| o.window_scale == Some(s)))))
            .or(differs("sackok", self.sack_ok.is_none_or(|s| options.is_some_and(|o| o.sack_permitted == s))))
            .or(differs("sack", self.sacks == sacks))
            .or(differs("ts", self.timestamps.is_none_or(|t| got.timestamps() == Some(t))))
            .or(differs("ecn", self.ecn.is_none_or(|e| got.ecn() == e)))
            .or(differs("ern", u8::from(told.capable) << 1 | u8::from(told.tells_rate) == self.ern))
            .or(differs("rate", told.rate.map(|r| (r.cwnd().get(), r.rtt_ms())) == self.rate))
            .or(differs("size", self.size.is_none_or(|s| got.size().get() == u64::from(s))))
    }
}

/// Makes an option of Accurate ECN with these fields in their order.
fn option_of(ect1_first: bool, fields: &[u32]) -> AccEcn {
    let [first, ce, last] = [0, 1, 2].map(|place| fields.get(place).copied().unwrap_or(0));
    let (ect0, ect1) = if ect1_first { (last, first) } else { (first, last) };
    AccEcn::new(ect1_first, fields.len() as u8, &ByteCounters { ect0, ce, ect1 })
}

fn number(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("{text:?} is not a number"))
}

/// Makes the segment of the peer.
fn build(text: &str, from_client: bool) -> Result<Segment, String> {
    let want = Expected::parse(text)?;
    let mut segment = Segment::tcp(0, from_client, TcpFlags(want.flags));
    segment.seq = PEER_ISS.wrapping_add(want.start);
    segment.len = (want.end - want.start) as u16;
    segment.ack = want.ack.map_or(0, |a| OUR_ISS.wrapping_add(a));
    segment.window = want.window.unwrap_or(65535);
    if let Some(timestamps) = want.timestamps {
        segment.set_timestamps(timestamps);
    }
    if segment.flags.has(TcpFlags::SYN) {
        segment.set_syn_options(SynOptions {
            mss: want.mss.unwrap_or(0),
            window_scale: want.scale,
            sack_permitted: want.sack_ok == Some(true),
        });
    }
    for (a, b) in want.sacks {
        segment.add_sack((OUR_ISS.wrapping_add(a), OUR_ISS.wrapping_add(b)));
    }
    if let Some(option) = want.accecn {
        segment.set_accecn(&option);
    }
    if want.ae {
        segment.set_ace(segment.ace() | 4);
    }
    segment.set_ecn(want.ecn.unwrap_or_default());
    Ok(segment)
}

fn show(segment: &Segment) -> String {
    let mut text: String = LETTERS.iter().filter(|(_, f)| segment.flags.has(*f)).map(|(l, _)| *l).collect();
    if segment.ace() & 4 != 0 {
        text.push('A');
    }
    let start = segment.seq.wrapping_sub(OUR_ISS);
    let _ = write!(text, " {start}:{}", start.wrapping_add(segment.len.into()));
    let _ = write!(text, " ack {} win {}", segment.ack.wrapping_sub(PEER_ISS), segment.window);
    for (a, b) in segment.sacks() {
        let _ = write!(text, " sack {}-{}", a.wrapping_sub(PEER_ISS), b.wrapping_sub(PEER_ISS));
    }
    if let Some(Timestamps { val, ecr }) = segment.timestamps() {
        let _ = write!(text, " ts {val}:{ecr}");
    }
    if let Some(o) = segment.syn_options() {
        let _ = write!(text, " mss {} ws {:?} sackok {}", o.mss, o.window_scale, o.sack_permitted);
    }
    if let Some(option) = segment.accecn() {
        let _ = write!(text, " accecn{} {:?}", u8::from(option.ect1_first()), option.fields());
    }
    let told = segment.explicit_rate();
    let _ = write!(text, " ern {}{}", u8::from(told.capable), u8::from(told.tells_rate));
    if let Some(rate) = told.rate {
        let _ = write!(text, " rate {}/{}", rate.cwnd().get(), rate.rtt_ms());
    }
    format!("{text} size {} {:?}", segment.size().get(), segment.ecn())
}

fn run(body: &[(usize, &str)]) -> Result<(), (usize, String)> {
    let mut options = String::new();
    let mut role = Role::Client;
    let mut lines = body.iter().peekable();
    while let Some((_, line)) = lines.peek() {
        match line.split_once(' ').unwrap_or((line, "")) {
            ("tcp", rest) => options = rest.to_owned(),
            ("client", _) => role = Role::Client,
            ("server", _) => role = Role::Server,
            _ => break,
        }
        lines.next();
    }
    let first = body.first().map_or(0, |l| l.0);
    let table: toml::Table = format!("tcp = {{ {options} }}").parse().map_err(|e| (first, format!("{e}")))?;
    let config: TcpConfig = table["tcp"].clone().try_into().map_err(|e| (first, format!("{e}")))?;
    config.validate().map_err(|e| (first, e.to_string()))?;
    let mut ladder = Ladder::new(config, role);
    for (number, line) in lines {
        let mut words = line.splitn(3, ' ');
        let time: Span = words.next().unwrap_or("").parse().map_err(|e| (*number, format!("{e}")))?;
        let (op, rest) = (words.next().unwrap_or(""), words.next().unwrap_or("").trim());
        ladder.step(Instant::ZERO + time, op, rest).map_err(|e| (*number, format!("{line}\n        {e}")))?;
    }
    let last = body.last().map_or(0, |l| l.0);
    ladder.step(ladder.now, "quiet", "").map_err(|e| (last, format!("after the last line: {e}")))
}

/// Runs every ladder of a file; returns how many there were.
fn run_file(name: &str) -> usize {
    let path = format!("{}/tests/ladders/{name}.ladder", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let mut ladders: Vec<(&str, Vec<(usize, &str)>)> = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or("").trim();
        if let Some(title) = line.strip_prefix("== ") {
            ladders.push((title, Vec::new()));
        } else if let (false, Some((_, body))) = (line.is_empty(), ladders.last_mut()) {
            body.push((i + 1, line));
        }
    }
    let failures: Vec<String> = ladders
        .iter()
        .filter_map(|(title, body)| run(body).err().map(|(n, why)| format!("{name}.ladder:{n}: {title}\n    {why}")))
        .collect();
    assert!(failures.is_empty(), "{} of {} ladders fail\n{}", failures.len(), ladders.len(), failures.join("\n"));
    ladders.len()
}

macro_rules! files {
    ($($name:ident)*) => {
        $(#[test] fn $name() { assert!(run_file(stringify!($name)) > 0); })*

        /// A file that is not named here would never be run.
        #[test]
        fn every_file_is_run() {
            let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ladders");
            let names = std::fs::read_dir(directory).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
            let there: Vec<String> = names.filter_map(|name| name.strip_suffix(".ladder").map(str::to_owned)).collect();
            assert!(there.iter().all(|name| [$(stringify!($name)),*].contains(&name.as_str())), "{there:?}");
        }

        #[test]
        fn there_are_at_least_sixty() {
            let count: usize = [$(stringify!($name)),*].iter().map(|name| {
                let path = format!("{}/tests/ladders/{name}.ladder", env!("CARGO_MANIFEST_DIR"));
                std::fs::read_to_string(path).unwrap().lines().filter(|l| l.starts_with("== ")).count()
            }).sum();
            assert!(count >= 60, "{count} ladders");
        }
    };
}

files! { handshake windows receiver sack rack newreno timeout flow_control ecn accecn ern closing timestamps controls kernel }
