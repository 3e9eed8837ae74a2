//! The algorithms of agents: a congestion control and an AQM that do what they were told last, and decide nothing.

use penstock_core::aqm::Meta;
use penstock_core::cc::{self, Ack, Advice, CongestionControl, Loss, Requirements, Setup};
use penstock_core::config::LinkFacts;
use penstock_core::fact::Fact;
use penstock_core::foreign::{Config, Control, ForeignAqm, ForeignCc, Library, LibraryError, MakeAqm, MakeCc};

use penstock_core::qdisc::{Backlog, Verdict};
use penstock_core::rng::Rng;
use penstock_core::units::{Bytes, Instant, Rate, Span};
use serde_json::{Map, Value};
use std::sync::Arc;

/// The name of both in scenarios.
pub const NAME: &str = "agent";

/// The library with the two algorithms, and no other.
#[derive(Debug, Clone, Copy)]
pub struct Agents;

fn without_parameters(parameters: &Map<String, Value>) -> Result<(), LibraryError> {
    match parameters.keys().next() {
        Some(key) => Err(LibraryError(format!("an agent has no parameter {key:?}"))),
        None => Ok(()),
    }
}

impl Library for Agents {
    fn control(&self, name: &str, parameters: &Map<String, Value>) -> Option<Result<Control, LibraryError>> {
        let made = || Control::new(NAME, Map::new(), Arc::new(Maker));
        (name == NAME).then(|| without_parameters(parameters).map(|()| made()))
    }

    fn aqm(&self, name: &str, parameters: &Map<String, Value>) -> Option<Result<Config, LibraryError>> {
        let made = || Config::new(NAME, Map::new(), Arc::new(Maker));
        (name == NAME).then(|| without_parameters(parameters).map(|()| made()))
    }
}

#[derive(Debug)]
struct Maker;

/// What the control requires: rate samples, and with them a pacer. Controls in Python require the same, so that a policy
/// finds the same endpoint as an agent and as a control of its own.
const REQUIREMENTS: Requirements = Requirements {
    rate: true,
    own_recovery: false,
    ack_per_segment: false,
    accurate_ecn: false,
    ect1: false,
    segments: false,
    kernel: false,
    falls_at_once: false,
};

impl MakeCc for Maker {
    fn make(&self, setup: &Setup, _: u64) -> Box<dyn ForeignCc> {
        Box::new(AgentControl { mss: setup.mss.max(Bytes::new(1)), cwnd: setup.initial_window, pacing: None })
    }
    fn requirements(&self) -> Requirements {
        REQUIREMENTS
    }
}

impl MakeAqm for Maker {
    fn make(&self, _: &LinkFacts) -> Box<dyn ForeignAqm> {
        Box::new(AgentAqm { odds: 0.0 })
    }
}

/// A control whose window is told. Losses and marks leave it where it is; after a timeout it is one segment, as with every TCP
/// (RFC 5681 §3.1), until it is told another.
#[derive(Debug, Clone)]
struct AgentControl {
    mss: Bytes,
    cwnd: Bytes,
    pacing: Option<Rate>,
}

impl CongestionControl for AgentControl {
    cc::without!(recovery, bursts);

    fn cwnd(&self) -> Bytes {
        self.cwnd
    }
    fn ssthresh(&self) -> Bytes {
        self.cwnd
    }
    fn pacing_rate(&self) -> Option<Rate> {
        self.pacing
    }
    fn requirements(&self) -> Requirements {
        REQUIREMENTS
    }
    fn on_ack(&mut self, _: &Ack) {}
    fn on_loss(&mut self, _: &Loss) {}
    fn on_recovered(&mut self, _: Instant) {}
    fn on_rto(&mut self, _: &Loss) {
        self.cwnd = self.mss;
    }
    fn on_idle(&mut self, _: Instant, _: Bytes) {}
    fn advise(&mut self, advice: Advice) {
        match advice {
            Advice::Adopt { cwnd, .. } => self.cwnd = cwnd,
            Advice::Pace(rate) => self.pacing = rate,
            Advice::LimitBursts(_) | Advice::WithoutEcn => {}
        }
    }
}

impl ForeignCc for AgentControl {
    fn copy(&self) -> Box<dyn ForeignCc> {
        Box::new(self.clone())
    }
}

/// An AQM whose odds are told: so large a share of arriving packets it marks, or drops if they are not ECN-capable.
#[derive(Debug, Clone)]
struct AgentAqm {
    odds: f64,
}

impl ForeignAqm for AgentAqm {
    fn on_enqueue(&mut self, _: &Meta, _: Backlog, _: Instant, rng: &mut Rng) -> Verdict {
        let hit = self.odds > 0.0 && rng.uniform() < self.odds;
        if hit { Verdict::Mark } else { Verdict::Pass } // the queue drops what cannot be marked
    }
    fn on_dequeue(&mut self, _: &Meta, _: Span, _: Backlog, _: Instant, _: &mut Rng) -> Verdict {
        Verdict::Pass
    }
    fn on_fact(&mut self, fact: &Fact, _: Instant) {
        if let Fact::Odds(odds) = fact {
            self.odds = *odds;
        }
    }
    fn copy(&self) -> Box<dyn ForeignAqm> {
        Box::new(self.clone())
    }
}
