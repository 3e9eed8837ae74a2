//! GREEN: gives each flow the drop probability at which TCP, by its throughput equation, sends at the flow's fair
//! share.
//!
//! Source: Feng, Kapadia, Thulasidasan, "GREEN: proactive queue management over a best-effort network", GLOBECOM 2002,
//! eq. (1), (2). By the equation of Mathis a flow's rate is `MSS c / (RTT sqrt(p))`; set equal to `L / N` it gives
//!
//! ```text
//! p_i = (N MSS c / (L RTT_i))^2        MSS in bits, L in bit/s, RTT in s
//! ```
//!
//! with N the number of flows that sent within a sampling window, L the rate of the link, and c = 0.93 for delayed ACKs
//! and random loss (sqrt(3/2) for an ACK per segment).
//!
//! The paper leaves open, and this file chooses: the sampling window is 1 s, a parameter; N is the larger of the counts
//! in the last whole window and in the current one; MSS is the largest packet of these two windows, as document 000 §2
//! (ii) describes GREEN. The paper takes the RTT as known to the gateway; here it is measured on both halves of the
//! path (`rtt.rs`), and `rtt` is assumed until both are known.
//!
//! State: N, the largest packet, and 72 bytes per flow. Cost: O(1). One random number is drawn per packet with p < 1.
//!
//! DIFFERENCE: p is clipped to 1. Pinned by `a_share_below_what_the_law_allows_drops_everything`.

use super::{Aqm, Meta};
use crate::ack_path::AckPath;
use crate::config::{AqmConfig, ConfigError, LinkFacts};
use crate::fact::Fact;
use crate::packet::{FlowId, TcpView};
use crate::qdisc::{Backlog, Verdict};
use crate::rng::Rng;
use crate::rtt::RttProbe;
use crate::units::{Instant, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Flows beyond this index have no state: they do not count in N, and are judged with the assumed RTT.
const MAX_FLOWS: usize = 1 << 20;

/// Parameters of GREEN. The paper gives c; window and assumed RTT are chosen here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Constant c of the throughput equation of TCP (§II: 0.93; 1.22 with an ACK per segment).
    pub c: f64,
    /// Length of the sampling window in which sending flows are counted.
    pub window: Span,
    /// Round trip time assumed for a flow until it is measured.
    pub rtt: Span,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self { c: 0.93, window: Span::from_secs(1), rtt: Span::from_millis(100), ecn: false }
    }
}

impl AqmConfig for Config {
    type Aqm = Green;

    fn validate(&self) -> Result<(), ConfigError> {
        if !(self.c > 0.0 && self.c <= 10.0) {
            return Err(ConfigError::new("c", "must be above 0 and at most 10"));
        }
        if self.window == Span::ZERO {
            return Err(ConfigError::new("window", "must be above 0"));
        }
        if self.rtt == Span::ZERO {
            return Err(ConfigError::new("rtt", "must be above 0"));
        }
        Ok(())
    }

    fn aqm(&self, link: &LinkFacts) -> Green {
        Green::new(self.clone(), link)
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Flow {
    rtt: RttProbe,
    /// Number of the last window in which the flow sent, counted from 1; 0 if it never did.
    seen_in: u64,
}

/// The state of GREEN.
#[derive(Debug, Clone, PartialEq)]
pub struct Green {
    config: Config,
    rate_bps: f64,
    flows: Vec<Flow>,
    /// Bytes of the largest packet in the last window and in the current one.
    largest_packet: [u64; 2],
    /// Number of the current window, counted from 1.
    window: u64,
    /// Number of flows that sent in the last window.
    in_last: u64,
    /// Number of flows that sent in the current window so far.
    in_this: u64,
}

/// Computes eq. (2), clipped to 1.
fn drop_probability(n: u64, mss_bits: f64, c: f64, rate_bps: f64, rtt: Span) -> f64 {
    let root = n as f64 * mss_bits * c / (rate_bps * rtt.as_secs_f64());
    (root * root).min(1.0)
}

impl Green {
    /// Creates the state before the first packet of any flow.
    pub fn new(config: Config, link: &LinkFacts) -> Self {
        let rate_bps = link.rate.as_bps() as f64;
        Self { config, rate_bps, flows: Vec::new(), largest_packet: [0; 2], window: 0, in_last: 0, in_this: 0 }
    }

    fn flow(&mut self, id: FlowId) -> Option<&mut Flow> {
        let index = id.0 as usize;
        if index >= self.flows.len() && index < MAX_FLOWS {
            self.flows.resize_with(index + 1, Flow::default);
        }
        self.flows.get_mut(index)
    }

    /// Counts the packet's flow in the current window and returns the round trip time of that flow.
    fn note(&mut self, packet: &Meta, now: Instant) -> Span {
        let window = now.as_nanos() / self.config.window.as_nanos() + 1;
        if window != self.window {
            // A window in which no packet arrived leaves no count behind.
            let follows = window == self.window + 1;
            self.in_last = if follows { self.in_this } else { 0 };
            self.largest_packet = [if follows { self.largest_packet[1] } else { 0 }, 0];
            (self.window, self.in_this) = (window, 0);
        }
        self.largest_packet[1] = self.largest_packet[1].max(packet.size.get());
        let assumed = self.config.rtt;
        let Some(flow) = self.flow(packet.flow) else { return assumed };
        let news = std::mem::replace(&mut flow.seen_in, window) != window;
        let rtt = flow.rtt.whole().unwrap_or(assumed);
        self.in_this += u64::from(news);
        rtt
    }

    /// Returns N of eq. (2), the number of active flows.
    fn active(&self) -> u64 {
        self.in_last.max(self.in_this)
    }
}

impl Aqm for Green {
    fn on_enqueue(&mut self, packet: &Meta, _: Backlog, now: Instant, rng: &mut Rng) -> Verdict {
        let rtt = self.note(packet, now);
        let mss_bits = (self.largest_packet[0].max(self.largest_packet[1]) * 8) as f64;
        let p = drop_probability(self.active(), mss_bits, self.config.c, self.rate_bps, rtt);
        if p < 1.0 && rng.uniform() >= p {
            return Verdict::Pass;
        }
        if self.config.ecn && packet.ecn.is_capable() { Verdict::Mark } else { Verdict::Drop }
    }

    fn on_fact(&mut self, fact: &Fact, _: Instant) {
        if let Fact::FlowGone(flow) = fact
            && let Some(flow) = self.flows.get_mut(flow.0 as usize)
        {
            flow.rtt = RttProbe::default();
        }
    }
}

impl AckPath for Green {
    const ACTIVE: bool = true;

    fn outbound<S: TcpView>(&mut self, segment: &mut S, now: Instant) {
        if let Some(flow) = self.flow(segment.flow()) {
            flow.rtt.outbound(segment, now);
        }
    }

    fn inbound<S: TcpView>(&mut self, segment: &mut S, now: Instant) {
        if let Some(flow) = self.flow(segment.flow()) {
            flow.rtt.inbound(segment, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Ecn;
    use crate::rng::Streams;
    use crate::units::{Bytes, Limit, Rate};

    const LINK: LinkFacts = LinkFacts { rate: Rate::from_bps(10_000_000), limit: Limit::Packets(1000) };

    fn packet(flow: u32) -> Meta {
        Meta { size: Bytes::new(1000), ecn: Ecn::NotEct, flow: FlowId(flow) }
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(ms)
    }

    /// 10 flows of 8000-bit packets at 10 Mbit/s and 100 ms: (10 * 8000 * 0.93 / 10^6)^2 = 0.0744^2 = 0.005535.
    #[test]
    fn the_probability_is_that_of_equation_2() {
        let p = drop_probability(10, 8000.0, 0.93, 1e7, Span::from_millis(100));
        assert!((p - 0.005_535_36).abs() < 1e-12, "{p}");
    }

    #[test]
    fn a_share_below_what_the_law_allows_drops_everything() {
        assert_eq!(drop_probability(1000, 8000.0, 0.93, 1e7, Span::from_millis(100)), 1.0);
    }

    #[test]
    fn flows_count_while_they_send() {
        let mut green = Green::new(Config::default(), &LINK);
        (0..5).for_each(|flow| {
            green.note(&packet(flow), at(100));
        });
        (0..5).for_each(|flow| {
            green.note(&packet(flow), at(200));
        });
        assert_eq!(green.active(), 5);
        green.note(&packet(0), at(1500));
        assert_eq!(green.active(), 5, "those of the last window still count");
        green.note(&packet(0), at(2500));
        assert_eq!(green.active(), 1);
        green.note(&packet(1), at(9999));
        assert_eq!(green.active(), 1);
    }

    /// 0.0744^2 of 10,000 packets over ten flows is 55; five deviations are 37.
    #[test]
    fn drops_come_at_that_rate() {
        let (mut green, mut rng) = (Green::new(Config::default(), &LINK), Streams::new(1).get("t"));
        (0..10).for_each(|flow| {
            green.note(&packet(flow), at(0));
        });
        let mut judge = |i: u32| green.on_enqueue(&packet(i % 10), Backlog::default(), at(1), &mut rng);
        let drops = (0..10_000).filter(|i| judge(*i) == Verdict::Drop).count();
        assert!((18..=92).contains(&drops), "{drops}");
    }
}
