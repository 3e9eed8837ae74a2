//! Episodes: runs in which an agent outside decides at equal intervals, for learned congestion controls and AQMs.
//!
//! The scenario names the agent: `cc = "agent"` for the control of its first flow, or `name = "agent"` for the AQM of its
//! first bottleneck. At each decision the agent gives one number, the run goes on for an interval, and the agent gets
//! [`WIDTH`] numbers about that interval and a reward:
//!
//! | agent | its number `a` | what becomes of it |
//! |---|---|---|
//! | [`Agent::Control`] | -1 to 1 | the window is multiplied by 2^`a`; a timeout alone sets it otherwise, to one segment |
//! | [`Agent::Aqm`] | 0 to 1 | a share `a`² of arriving packets is marked, or dropped if it is not ECN-capable |
//!
//! The reward of an interval is `throughput · U - delay · D - loss · L` with the [`Weights`], where
//!
//! | | [`Agent::Control`] | [`Agent::Aqm`] |
//! |---|---|---|
//! | U | payload acknowledged over the flow's share of the link, at most 1; all flows have equal shares | bits sent over what the link could send |
//! | D | mean queueing delay at the bottleneck over the round trip time of the first flow's path without queues | the same |
//! | L | retransmissions over segments sent | packets dropped over packets that arrived |
//!
//! What was not measured in an interval counts as in the last one in which it was (a delay), or as zero (a share).
//! An episode at which nobody acts (`a` = 0) has the results of a run of its scenario.

mod algorithms;

pub use algorithms::{Agents, NAME};

use crate::live::QueueNow;
use crate::run::{Broken, Simulation};
use crate::scenario::Scenario;
use penstock_core::cc::Advice;
use penstock_core::fact::Fact;
use penstock_core::units::{Bytes, Limit, Rate, Span};
use penstock_grammar::Diagnosis;

/// How many numbers an agent observes.
pub const WIDTH: usize = 8;

/// A packet of a queue whose limit is in packets, to tell how many bytes it holds.
const FRAME: u64 = 1514;

/// Windows that are always allowed, in segments.
const ALLOWED: f64 = 40.0;

/// What decides outside of the simulator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agent {
    /// The congestion control of the first flow.
    Control,
    /// The AQM of the first bottleneck.
    Aqm,
}

impl Agent {
    /// Returns the names of what the agent observes, with their units, in the order of a row.
    pub const fn observed(self) -> [&'static str; WIDTH] {
        match self {
            Self::Control => [
                "throughput_mbps",
                "sent_mbps",
                "rtt_ms",
                "min_rtt_ms",
                "loss_share",
                "timeouts",
                "cwnd_packets",
                "in_flight_packets",
            ],
            Self::Aqm => [
                "load_mbps",
                "throughput_mbps",
                "rate_mbps",
                "queue_delay_ms",
                "backlog_ms",
                "drop_share",
                "mark_share",
                "probability",
            ],
        }
    }
}

/// The weights of a reward; each is 0 or more.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weights {
    /// What a link in full use is worth.
    pub throughput: f64,
    /// What a queueing delay of a round trip costs.
    pub delay: f64,
    /// What it costs to lose everything.
    pub loss: f64,
}

/// What all episodes of an environment have in common.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Who decides.
    pub agent: Agent,
    /// Time between two decisions.
    pub interval: Span,
    /// The weights of the reward.
    pub weights: Weights,
    /// A control paces at this many windows per smoothed round trip time, told at each decision; `None` if it does not pace.
    pub pacing: Option<f64>,
}

/// Why there is no episode.
#[derive(Debug, thiserror::Error)]
pub enum NoEpisode {
    /// The scenario cannot be run.
    #[error("{0}")]
    Scenario(#[from] Box<Diagnosis>),
    /// Nobody in the scenario would do what the agent decides.
    #[error("the scenario has no place for the agent: {0}")]
    NoAgent(&'static str),
}

/// The counters at the last decision.
#[derive(Debug, Clone, Copy, Default)]
struct Counted {
    acked: u64,
    segments: u64,
    retransmits: u64,
    timeouts: u64,
    rtts: u64,
    rtts_ns: u64,
    sent_bits: f64,
    arrived: (u64, u64),
    dropped: u64,
    marked: u64,
    left: u64,
    delays_ns: u128,
}

/// One run in which an agent decides.
#[derive(Debug)]
pub struct Episode {
    settings: Settings,
    simulation: Simulation,
    over: bool,
    base_rtt: Span,
    /// Number of flows, which have equal shares of the link.
    flows: f64,
    /// The window in bytes, and the most that it may become.
    window: f64,
    most: f64,
    /// The share of packets that is marked or dropped.
    odds: f64,
    before: Counted,
    /// The last measured mean of round trip times and of queueing delays, in milliseconds.
    rtt_ms: f64,
    delay_ms: f64,
}

/// `a` of `b` as a share; zero of nothing.
fn share(a: u64, b: u64) -> f64 {
    if b == 0 { 0.0 } else { a as f64 / b as f64 }
}

impl Episode {
    /// Reads a scenario in which `agent` is a control or an AQM, and begins it with this seed. `file` is its name in messages.
    ///
    /// # Errors
    /// A mistake in the scenario, or a scenario without a place for the agent.
    pub fn new(text: &str, file: &str, seed: u64, settings: Settings) -> Result<Self, NoEpisode> {
        let mut scenario = Scenario::parse_with(text, file, &Agents).map_err(Box::new)?;
        scenario.seed = seed;
        let simulation = Simulation::new(&scenario);
        match settings.agent {
            Agent::Control if simulation.flows().next().is_none_or(|(_, cc)| cc != NAME) => {
                return Err(NoEpisode::NoAgent("its first flow needs cc = \"agent\""));
            }
            Agent::Aqm if simulation.queues().first().is_none_or(|queue| queue.aqm != NAME) => {
                return Err(NoEpisode::NoAgent("the AQM of its first bottleneck needs name = \"agent\""));
            }
            Agent::Control | Agent::Aqm => {}
        }
        let mut episode = Self {
            settings,
            base_rtt: simulation.base_rtt(0),
            flows: simulation.flows().count() as f64,
            simulation,
            over: false,
            window: 0.0,
            most: 0.0,
            odds: 0.0,
            before: Counted::default(),
            rtt_ms: 0.0,
            delay_ms: 0.0,
        };
        (episode.window, episode.most) = episode.windows();
        Ok(episode)
    }

    /// Returns the window now, and the largest one that is allowed: twice what path and queue hold, and [`ALLOWED`] segments.
    fn windows(&self) -> (f64, f64) {
        let Some(tcp) = self.simulation.actors.flows.first().and_then(|flow| flow.tcp()) else { return (0.0, 0.0) };
        let rate = self.queue().map_or(0.0, |queue| queue.rate.as_bps() as f64);
        let held = match self.simulation.queues().first().map(|queue| queue.limit) {
            Some(Limit::Packets(packets)) => (packets * FRAME) as f64,
            Some(Limit::Bytes(bytes)) => bytes.as_f64(),
            None => 0.0,
        };
        let path = rate * self.base_rtt.as_secs_f64() / 8.0;
        (tcp.client.windows().0 as f64, 2.0 * (path + held) + ALLOWED * tcp.client.mss() as f64)
    }

    /// True if the run is over; no more decisions are taken.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Returns the run.
    pub fn simulation(&self) -> &Simulation {
        &self.simulation
    }

    /// Writes what the agent observes before its first decision into `row`, which has [`WIDTH`] numbers.
    pub fn begin(&mut self, row: &mut [f32]) {
        self.observe(row);
    }

    /// Lets the agent act and the run go on for an interval; writes what the agent observes into `row` and returns the reward. A
    /// number outside of the allowed ones counts as the next that is allowed. After the end of the run nothing happens.
    ///
    /// # Errors
    /// Fails if an invariant of the scenario is violated.
    pub fn step(&mut self, action: f32, row: &mut [f32]) -> Result<f64, Broken> {
        if self.over {
            return Ok(0.0);
        }
        match self.settings.agent {
            Agent::Control => self.set_window(f64::from(action).clamp(-1.0, 1.0)),
            Agent::Aqm => self.set_odds(f64::from(action).clamp(0.0, 1.0)),
        }
        self.over = self.simulation.advance(self.settings.interval)?;
        Ok(self.observe(row))
    }

    /// Takes the window of the control if a timeout has changed it.
    fn follow_timeouts(&mut self) {
        let flow = self.simulation.actors.flows.first().and_then(|flow| flow.tcp());
        if let Some((cwnd, _)) = flow.map(|tcp| tcp.client.windows())
            && cwnd != self.window as u64
        {
            self.window = cwnd as f64;
        }
    }

    fn set_window(&mut self, action: f64) {
        let Some(tcp) = self.simulation.actors.flows[0].tcp() else { return };
        let (before, least, srtt) = (self.window, tcp.client.mss() as f64, tcp.client.srtt());
        self.window = (before * libm::exp2(action)).min(self.most).max(least);
        if self.window as u64 != before as u64 {
            let cwnd = Bytes::new(self.window as u64);
            self.simulation.advise(0, Advice::Adopt { cwnd, ssthresh: cwnd });
        }
        if let Some(gain) = self.settings.pacing.filter(|_| srtt > Span::ZERO) {
            let bps = (gain * self.window * 8.0 / srtt.as_secs_f64()).clamp(1000.0, 1e12);
            self.simulation.advise(0, Advice::Pace(Some(Rate::from_bps(bps as u64))));
        }
    }

    fn set_odds(&mut self, action: f64) {
        let odds = action * action;
        if odds.to_bits() != self.odds.to_bits() {
            self.odds = odds;
            self.simulation.tell(0, &Fact::Odds(odds));
        }
    }

    fn queue(&self) -> Option<QueueNow> {
        self.simulation.queues_now().next()
    }

    fn counted(&self, queue: &QueueNow) -> Counted {
        let flow = self.simulation.actors.flows.first();
        let sender = flow.map(|flow| (flow.application.get().counters(), &flow.rtt));
        let (counters, rtt) = sender.map_or((Default::default(), None), |(counters, rtt)| (counters, Some(rtt)));
        Counted {
            acked: flow.and_then(|flow| flow.tcp()).map_or(0, |tcp| tcp.client.acked()),
            segments: counters.segments,
            retransmits: counters.retransmits,
            timeouts: counters.timeouts.into(),
            rtts: rtt.map_or(0, |rtt| rtt.count()),
            rtts_ns: rtt.map_or(0, |rtt| rtt.sum_ns()),
            sent_bits: queue.sent_bits,
            arrived: (queue.arrived.packets, queue.arrived.bytes),
            dropped: queue.dropped,
            marked: queue.marked,
            left: queue.left,
            delays_ns: queue.delays_ns,
        }
    }

    /// Writes what happened since the last decision into `row`, and returns its reward.
    fn observe(&mut self, row: &mut [f32]) -> f64 {
        let Some(queue) = self.queue() else { return 0.0 };
        let now = self.counted(&queue);
        let last = std::mem::replace(&mut self.before, now);
        self.follow_timeouts();
        if now.rtts > last.rtts {
            self.rtt_ms = (now.rtts_ns - last.rtts_ns) as f64 / (now.rtts - last.rtts) as f64 / 1e6;
        }
        if now.left > last.left {
            self.delay_ms = (now.delays_ns - last.delays_ns) as f64 / (now.left - last.left) as f64 / 1e6;
        }
        let (seen, used, lost) = match self.settings.agent {
            Agent::Control => self.seen_by_control(&queue, &now, &last),
            Agent::Aqm => self.seen_by_aqm(&queue, &now, &last),
        };
        for (place, value) in row.iter_mut().zip(seen) {
            *place = value as f32;
        }
        let Weights { throughput, delay, loss } = self.settings.weights;
        let waited = self.delay_ms / self.base_rtt.as_millis_f64().max(1e-3);
        throughput * used - delay * waited - loss * lost
    }

    /// Returns what a control observes, how much it used of its share, and the share it lost.
    fn seen_by_control(&self, queue: &QueueNow, now: &Counted, last: &Counted) -> ([f64; WIDTH], f64, f64) {
        let per_second = |bits: f64| bits / self.settings.interval.as_secs_f64();
        let flow = &self.simulation.actors.flows[0];
        let tcp = flow.tcp().map(|tcp| &tcp.client);
        let mss = tcp.map_or(1.0, |client| client.mss() as f64);
        let in_flight = tcp.and_then(|client| client.snapshot()).map_or(0, |state| state.in_flight);
        let (acked, sent) = (now.acked - last.acked, now.segments - last.segments);
        let lost = share(now.retransmits - last.retransmits, sent);
        let goodput = per_second(acked as f64 * 8.0);
        let seen = [
            goodput / 1e6,
            per_second(sent as f64 * mss * 8.0) / 1e6,
            self.rtt_ms,
            flow.rtt.min().as_millis_f64(),
            lost,
            (now.timeouts - last.timeouts) as f64,
            self.window / mss,
            in_flight as f64 / mss,
        ];
        (seen, (goodput * self.flows / queue.rate.as_bps() as f64).min(1.0), lost)
    }

    /// Returns what an AQM observes, the use of the link, and the share of packets that were dropped.
    fn seen_by_aqm(&self, queue: &QueueNow, now: &Counted, last: &Counted) -> ([f64; WIDTH], f64, f64) {
        let per_second = |bits: f64| bits / self.settings.interval.as_secs_f64();
        let rate = queue.rate.as_bps() as f64;
        let arrived = now.arrived.0 - last.arrived.0;
        let lost = share(now.dropped - last.dropped, arrived);
        let sent = per_second(now.sent_bits - last.sent_bits);
        let seen = [
            per_second((now.arrived.1 - last.arrived.1) as f64 * 8.0) / 1e6,
            sent / 1e6,
            rate / 1e6,
            self.delay_ms,
            queue.backlog.bytes as f64 * 8.0 / rate * 1e3,
            lost,
            share(now.marked - last.marked, arrived),
            self.odds,
        ];
        (seen, sent / rate, lost)
    }
}

#[cfg(test)]
mod tests;
