//! Paths on which recovery must converge, and the control's own law beside each of them.
//!
//! A path is a control, the ways in which its host detects and repairs losses, a link and a queue. It is run for a while;
//! what is before the warm-up, slow start, is left out. Two laws judge it, and both are the control's own code, driven
//! without TCP around it:
//!
//! | queue | law |
//! |---|---|
//! | drop-tail | [`Path::ideal_pipe`]: one flow with its share of the rate and of the buffer, losses known after a round trip |
//! | CoDel, PIE | [`Path::at_loss`]: windows with one loss after every `1/p` segments, at the run's mean round trip time |
//!
//! In the first one a round trip time is heard when what measured it is acknowledged. In the second one, losses of one window are
//! one signal, as they are for a control: a run whose windows are too large for its losses is counted again by signals
//! ([`Path::signals`]).
//!
//! What must hold, where product and buffer give each flow at least 20 segments ([`Finding::broken`]):
//!
//! - the loss is at most twice the law's and 0.5 % more, and below 10 %, or the law's if that is more;
//! - the link's use is at least 0.95 of the law's.
//!
//! With less than 20 segments a flow, only the law's factor is checked. [`Path::beyond_law`] names what a law does not
//! know.

use penstock_core::cc::{Ack, AnyCc, AnyControlConfig, CongestionControl, Loss, Setup};
use penstock_core::units::{Bytes, Instant, Span};
use penstock_sim::summary::Summary;
use penstock_sim::{Scenario, Simulation};
use std::collections::VecDeque;
use std::fmt;

const MSS: u64 = 1448;
const PACKET: f64 = 1500.0;
/// Segments for each flow below which only the law's factor is checked.
const ENOUGH: f64 = 20.0;
/// Signals for each flow below which a use of the link says nothing of a law that needs many.
const SIGNALS: f64 = 4.0;

/// Controls without a law for the paths of this file, with the reason.
pub const EXEMPT: &[(&str, &str)] = &[
    (
        "bbr",
        "goes by its model of the path and not by losses: below 1.5 products of buffer it loses what the buffer cannot hold",
    ),
    ("bbr3", "goes by its model of the path, which losses only bound"),
    ("dctcp", "is made for marks, and there are none"),
    ("prague", "is made for marks, and there are none"),
    ("ledbat-pp", "gives way to a queue of 60 ms before it is full, and slows down for a tenth of the time"),
    ("noordwijk", "sends bursts by a timer, on satellite links of its own"),
];

/// A queue in front of the link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Queue {
    /// Drop-tail with this many bandwidth-delay products.
    DropTail(f64),
    CoDel,
    Pie,
}

/// How a host detects and repairs losses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Repair {
    pub sack: bool,
    pub rack: bool,
    pub prr: bool,
    pub delayed_acks: bool,
}

/// Every combination that a host can have: RACK and PRR need SACK.
pub fn repairs() -> impl Iterator<Item = Repair> {
    (0..16).map(|n| Repair { sack: n & 1 == 0, rack: n & 2 != 0, prr: n & 4 == 0, delayed_acks: n & 8 == 0 }).filter(
        |r| r.sack || (!r.rack && r.prr), // without SACK there is one way
    )
}

/// One path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Path {
    pub cc: &'static str,
    pub repair: Repair,
    pub flows: u32,
    pub mbit: f64,
    /// Round trip time without queueing, in milliseconds.
    pub rtt_ms: f64,
    pub queue: Queue,
    /// Slow start ends when product and buffer are full, before anything is lost.
    pub calm: bool,
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Repair { sack, rack, prr, delayed_acks } = self.repair;
        let queue = match self.queue {
            Queue::DropTail(products) => format!("drop-tail of {products:.2} products"),
            Queue::CoDel => "CoDel".into(),
            Queue::Pie => "PIE".into(),
        };
        write!(f, "{} {} x {} Mbit/s, {} ms, {queue};", self.flows, self.cc, self.mbit, self.rtt_ms)?;
        for (name, there) in [("SACK", sack), ("RACK", rack), ("PRR", sack && prr), ("delayed ACKs", delayed_acks)] {
            write!(f, " {}{name}", if there { "" } else { "no " })?;
        }
        Ok(())
    }
}

/// What a run of a path showed after the warm-up, and what the law says.
#[derive(Debug, Clone, Copy)]
pub struct Finding {
    /// Packets dropped of those sent.
    pub loss: f64,
    /// Bits sent of those that the link could have sent.
    pub link_use: f64,
    pub law_loss: f64,
    /// `None` if the run is too short for the law to say it.
    pub law_use: Option<f64>,
    segments: f64,
}

/// What does not hold on a path.
#[derive(Debug, Clone, PartialEq)]
pub enum Broken {
    Loss(String),
    Use(String),
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Loss(text) | Self::Use(text) => f.write_str(text),
        }
    }
}

impl Finding {
    /// Returns what does not hold, if anything.
    pub fn broken(&self) -> Option<Broken> {
        let most = 2.0 * self.law_loss + 0.005;
        if self.loss > most {
            let text = format!("loses {:.2} %, twice the law and 0.5 % are {:.2} %", 100.0 * self.loss, 100.0 * most);
            return Some(Broken::Loss(text));
        }
        if self.segments < ENOUGH {
            return None;
        }
        if self.loss > self.law_loss.max(0.1) {
            return Some(Broken::Loss(format!("loses {:.2} %", 100.0 * self.loss)));
        }
        let law_use = self.law_use?;
        (self.link_use < 0.95 * law_use)
            .then(|| Broken::Use(format!("uses {:.3} of the link, the law {law_use:.3}", self.link_use)))
    }
}

impl Path {
    /// Returns why a law says nothing of what is broken here; `None` if it does.
    pub fn beyond_law(&self, broken: &Broken) -> Option<&'static str> {
        let Repair { sack, rack, .. } = self.repair;
        match broken {
            Broken::Loss(_) if self.cc == "cubic-linux" && !sack => {
                Some("without SACK, timeouts end recoveries; then a Linux form keeps its threshold, as Linux")
            }
            Broken::Loss(_) if !sack && self.holds_with(false) => {
                Some("without SACK, timeouts end recoveries, and what had arrived is sent again; with SACK it holds")
            }
            Broken::Loss(_) if !rack && self.holds_with(true) => {
                Some("without RACK, a retransmission that is lost ends in a timeout; with RACK it holds")
            }
            Broken::Loss(_) => self
                .is_full_of_vegas()
                .then_some("Vegas keeps up to four packets a flow in the queue, and there is room for no more"),
            Broken::Use(_) if !sack => Some("without SACK, a recovery takes a round trip for each loss"),
            Broken::Use(_) if !matches!(self.queue, Queue::DropTail(_)) => {
                Some("an AQM drops in clumps, and the law spaces losses evenly")
            }
            Broken::Use(_) => self.twin_that_holds().or_else(|| {
                (self.cc == "westwood")
                    .then_some("its estimate of the rate depends on the spacing of ACKs in slow start")
            }),
        }
    }

    /// True if the same path with SACK and PRR, and with RACK if asked, follows the law. Its slow start ends as that of this one.
    fn holds_with(&self, rack: bool) -> bool {
        let repair = Repair { sack: true, rack, prr: true, ..self.repair };
        Self { repair, calm: self.calm || !self.repair.sack, ..*self }.judge(1).broken().is_none()
    }

    /// Returns what a law does not know of, if a path without it follows the law: both are run.
    fn twin_that_holds(&self) -> Option<&'static str> {
        let with_prr = |path: Self| Self { repair: Repair { prr: true, ..path.repair }, ..path };
        let holds = |path: Self| path.judge(1).broken().is_none();
        let Repair { rack, prr, .. } = self.repair;
        if !prr && holds(with_prr(*self)) {
            return Some(if rack {
                "without PRR a recovery begins with a burst, whose losses RACK finds; with PRR it holds"
            } else {
                "without PRR a recovery begins with a burst, whose losses end in a timeout; with PRR it holds"
            });
        }
        if holds(Self { calm: true, ..*self }) {
            return Some(
                "slow start sends at twice the link's rate and fills the buffer too early; begun calmly it holds",
            );
        }
        let roomy = Self { queue: Queue::DropTail(1.0), ..*self };
        if roomy != *self && (holds(roomy) || holds(with_prr(roomy))) {
            return Some(
                "slow start sends at twice the link's rate and fills the buffer too early; with one product it holds",
            );
        }
        None
    }

    /// True if the flows of Vegas together want all of the buffer: each of them has up to `beta`, four, packets in it, and two for
    /// what an ACK lets go.
    fn is_full_of_vegas(&self) -> bool {
        let room = self.buffer() / PACKET / f64::from(self.flows);
        self.cc == "vegas" && self.flows > 1 && matches!(self.queue, Queue::DropTail(_)) && room < 4.0 + 2.0
    }

    /// Returns how many signals the losses after the warm-up are. Losses of one window of a flow are one; those of one round
    /// trip may concern any of the flows.
    fn signals(&self, seed: u64) -> f64 {
        let scenario = Scenario::parse(&self.scenario(seed), "paths.toml").unwrap_or_else(|e| panic!("{self}: {e}"));
        let mut simulation = Simulation::new(&scenario);
        let (warmup, duration) = self.seconds();
        simulation.advance(Span::from_secs_f64(warmup)).unwrap();
        let window = self.rtt_ms / 1e3 + self.buffer() * 8.0 / self.rate();
        let flows = f64::from(self.flows);
        let mut drops = Totals::of(&simulation.summary()).drops;
        (0..((duration - warmup) / window) as u64)
            .map(|_| {
                simulation.advance(Span::from_secs_f64(window)).unwrap();
                let before = std::mem::replace(&mut drops, Totals::of(&simulation.summary()).drops);
                flows * (1.0 - (1.0 - 1.0 / flows).powf(drops - before))
            })
            .sum()
    }

    fn rate(&self) -> f64 {
        self.mbit * 1e6
    }

    /// Bytes in flight that fill the link.
    fn product(&self) -> f64 {
        self.rate() / 8.0 * self.rtt_ms / 1e3
    }

    /// Bytes that the queue holds, or the delay that the AQM aims at, in bytes.
    fn buffer(&self) -> f64 {
        match self.queue {
            Queue::DropTail(products) => (self.product() * products).max(4.0 * PACKET),
            Queue::CoDel => self.rate() / 8.0 * 0.005,
            Queue::Pie => self.rate() / 8.0 * 0.015,
        }
    }

    /// The limit of a queue with an AQM: two products, and at least 100 packets.
    fn room(&self) -> String {
        format!("{:.0}B", (2.0 * self.product()).max(100.0 * PACKET))
    }

    /// Seconds of warm-up and of the whole run.
    pub fn seconds(&self) -> (f64, f64) {
        let warmup = (self.rtt_ms / 10.0).max(15.0);
        (warmup, warmup + (self.rtt_ms / 5.0).max(45.0))
    }

    /// Returns the scenario, with a seed.
    pub fn scenario(&self, seed: u64) -> String {
        let Self { cc, flows, mbit, rtt_ms, .. } = self;
        let Repair { sack, rack, prr, delayed_acks } = self.repair;
        let (limit, aqm) = match self.queue {
            Queue::DropTail(_) => (format!("{:.0}B", self.buffer()), "droptail"),
            Queue::CoDel => (self.room(), "codel"),
            Queue::Pie => (self.room(), "pie"),
        };
        let (warmup, duration) = self.seconds();
        let delay = rtt_ms / 2.0;
        let threshold =
            self.first_threshold().map_or(String::new(), |bytes| format!(", initial_ssthresh = \"{}B\"", bytes.get()));
        format!(
            r#"
            duration = "{duration}s"
            warmup = "{warmup}s"
            seed = {seed}
            topology = {{ kind = "dumbbell", rate = "{mbit}Mbit/s", delay = "{delay}ms", limit = "{limit}", access_rate = "10Gbit/s" }}
            aqm = "{aqm}"
            tcp = {{ cc = "{cc}", sack = {sack}, rack = {rack}, prr = {prr}, ack_every_segment = {}, receive_buffer = "64MB"{threshold} }}
            flows = [{{ kind = "bulk", count = {flows}, start_spread = "1s" }}]
            output = {{ series = false }}"#,
            !delayed_acks,
        )
    }

    /// Returns the use of the link over the first `seconds`, slow start included.
    #[allow(dead_code, reason = "the grid has no need of it")]
    pub fn use_from_the_start(&self, seconds: f64) -> f64 {
        let scenario = Scenario::parse(&self.scenario(1), "paths.toml").unwrap_or_else(|e| panic!("{self}: {e}"));
        let mut simulation = Simulation::new(&scenario);
        simulation.advance(Span::from_secs_f64(seconds)).unwrap();
        simulation.summary().bottlenecks[0].utilization
    }

    /// Runs the path and asks the law.
    pub fn judge(&self, seed: u64) -> Finding {
        let scenario = Scenario::parse(&self.scenario(seed), "paths.toml").unwrap_or_else(|e| panic!("{self}: {e}"));
        let mut simulation = Simulation::new(&scenario);
        let (warmup, duration) = self.seconds();
        simulation.advance(Span::from_secs_f64(warmup)).unwrap();
        let before = Totals::of(&simulation.summary());
        simulation.advance(Span::MAX).unwrap();
        let summary = simulation.summary();
        let run = Totals::of(&summary).since(&before);
        let rtt = self.rtt_ms / 1e3 + summary.bottlenecks[0].queue_delay_ms.mean / 1e3;
        let measured = duration - warmup;
        let window = run.delivered * rtt / measured / MSS as f64 / f64::from(self.flows);
        let loss = run.drops / (run.delivered / MSS as f64 + run.drops).max(1.0);
        let link_use = run.sent * 8.0 / measured / self.rate();
        let signals = run.drops / f64::from(self.flows);
        let (law_loss, law_use) = match self.queue {
            Queue::DropTail(_) => {
                let law = self.ideal_pipe();
                (law.0, Some(law.1))
            }
            _ if signals < SIGNALS => (1.0, None),
            _ => {
                let holds =
                    |loss: f64| loss <= 0.005 || window <= self.at_loss(((loss - 0.005) / 2.0).max(1e-4), rtt).0;
                let held = holds(loss) || holds(loss * self.signals(seed) / run.drops);
                (if held { 1.0 } else { 0.0 }, Some(self.at_loss(loss, rtt).1))
            }
        };
        let segments = (self.product() + self.buffer()) / PACKET / f64::from(self.flows);
        Finding { loss, link_use, law_loss, law_use, segments }
    }

    /// Without SACK a sender repairs one loss per round trip (RFC 6582), and the losses at the end of slow start end in
    /// timeouts. There, and on calm paths, slow start ends when the pipe is full.
    fn first_threshold(&self) -> Option<Bytes> {
        let share = (self.product() + self.buffer()) / PACKET / f64::from(self.flows);
        (self.calm || !self.repair.sack).then(|| Bytes::new((share as u64).max(2) * MSS))
    }

    fn control(&self) -> AnyCc {
        let initial_ssthresh = self.first_threshold().unwrap_or(Bytes::MAX);
        let setup = Setup {
            mss: Bytes::new(MSS),
            initial_window: Bytes::new(10 * MSS),
            initial_ssthresh,
            paced: false,
            seed: 1,
        };
        AnyControlConfig::default_of(self.cc).unwrap().build(&setup)
    }

    /// Loss and use of the link when the control's windows alone decide: each ACK comes when the pipe delivers a segment,
    /// and what exceeds product and buffer is lost, which the control learns a round trip later.
    fn ideal_pipe(&self) -> (f64, f64) {
        let (warmup, duration) = self.seconds();
        let (base, flows) = (self.rtt_ms / 1e3, f64::from(self.flows));
        let per_second = self.rate() / flows / 8.0 / PACKET;
        let capacity = (self.product() + self.buffer()) / PACKET / flows;
        let mut pipe = Driven::new(self.control(), base, self.repair.delayed_acks);
        let mut measuring = VecDeque::new();
        let mut heard = base;
        let (mut sent, mut lost, mut measured) = (0.0, 0.0, 0.0);
        while pipe.now < duration {
            let window = pipe.window();
            let rtt = (window / per_second).max(base).min(capacity / per_second);
            measuring.push_back((pipe.now + rtt, rtt));
            while let Some((_, rtt)) = measuring.pop_front_if(|(due, _)| *due <= pipe.now) {
                heard = rtt;
            }
            let excess = pipe.window() - capacity;
            if excess > 0.0 {
                pipe.round(rtt);
                let excess = (pipe.window() - capacity).max(1.0);
                pipe.lose();
                lost += if pipe.now > warmup { excess } else { 0.0 };
            }
            let before = pipe.now;
            let segments = pipe.acknowledge(heard, rtt / window.min(capacity));
            if before > warmup {
                sent += segments;
                measured = duration - warmup;
            }
        }
        (lost / (sent + lost).max(1.0), (sent / measured.max(1e-9) / per_second).min(1.0))
    }

    /// Mean window in segments, and the use of the link, with one loss after every `1/p` segments. Losses in the same
    /// window are one signal.
    fn at_loss(&self, p: f64, rtt: f64) -> (f64, f64) {
        let mut pipe = Driven::new(self.control(), self.rtt_ms / 1e3, self.repair.delayed_acks);
        let least_gap = PACKET * 8.0 * f64::from(self.flows) / self.rate();
        let (mut sent, mut begin, mut windows) = (0.0, 0.0, 0.0);
        for period in 0..15 {
            if period == 5 {
                (sent, begin, windows) = (0.0, pipe.now, 0.0);
            }
            let mut left = (1.0 / p).max(pipe.window());
            while left > 0.0 {
                let (window, before) = (pipe.window(), pipe.now);
                let segments = pipe.acknowledge(rtt, (rtt / window).max(least_gap));
                (left, sent) = (left - segments, sent + segments);
                windows += window * (pipe.now - before);
            }
            pipe.lose();
        }
        let time = pipe.now - begin;
        (windows / time, (sent * least_gap / time).min(1.0))
    }
}

/// A control without TCP around it.
struct Driven {
    cc: AnyCc,
    now: f64,
    base: f64,
    delivered: u64,
    per_ack: u64,
}

impl Driven {
    fn new(cc: AnyCc, base: f64, delayed_acks: bool) -> Self {
        Self { cc, now: 0.0, base, delivered: 0, per_ack: if delayed_acks { 2 } else { 1 } }
    }

    fn window(&self) -> f64 {
        (self.cc.cwnd() / Bytes::new(MSS)).max(1) as f64
    }

    fn at(&self) -> Instant {
        Instant::ZERO + Span::from_secs_f64(self.now)
    }

    /// One ACK, of segments that came one `gap` after the other; returns their number.
    fn acknowledge(&mut self, rtt: f64, gap: f64) -> f64 {
        let acked = self.per_ack.min(self.window() as u64);
        self.now += gap * acked as f64;
        self.delivered += acked * MSS;
        let span = |seconds| Span::from_secs_f64(seconds);
        let (now, acked_bytes, in_flight) = (self.at(), Bytes::new(acked * MSS), self.cc.cwnd());
        self.cc.on_ack(&Ack {
            now,
            acked: acked_bytes,
            rtt: Some(span(rtt)),
            srtt: span(rtt),
            min_rtt: span(self.base),
            in_flight,
            cwnd_limited: true,
            delivered: Bytes::new(self.delivered),
            marked: Bytes::ZERO,
            rate: None,
        });
        acked as f64
    }

    /// ACKs of one window.
    fn round(&mut self, rtt: f64) {
        let end = self.now + rtt;
        while self.now < end {
            self.acknowledge(rtt, rtt / self.window());
        }
    }

    fn lose(&mut self) {
        let loss = Loss { now: self.at(), in_flight: self.cc.cwnd(), ecn: false };
        self.cc.on_loss(&loss);
        self.cc.on_recovered(loss.now);
    }
}

/// What counters said at some time.
struct Totals {
    drops: f64,
    delivered: f64,
    sent: f64,
}

impl Totals {
    fn of(summary: &Summary) -> Self {
        let link = &summary.bottlenecks[0];
        Self {
            drops: (link.drops_overflow + link.drops_aqm) as f64,
            delivered: summary.flows.iter().map(|flow| flow.delivered_bytes as f64).sum(),
            sent: link.throughput_bps / 8.0 * summary.duration_s,
        }
    }

    fn since(self, before: &Self) -> Self {
        Self {
            drops: self.drops - before.drops,
            delivered: self.delivered - before.delivered,
            sent: self.sent - before.sent,
        }
    }
}
