//! What PINK stands before: a FIFO, or a queue for each flow, so that those who obey no window harm only themselves.

use super::{Config, Pink};
use crate::ack::AckPath;
use crate::ack::gate::Gate;
use crate::aqm::codel::{self, Codel};
use crate::aqm::droptail::DropTail;
use crate::fq::{FlowQueue, Parameters};
use crate::packet::Packet;
use crate::qdisc::{Backlog, Enqueued, Fates, Qdisc, Stats};
use crate::queue::Fifo;
use crate::registry::{AqmConfig, ConfigError, Discipline, LinkFacts};
use crate::rng::Rng;
use crate::units::Instant;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The discipline that keeps the packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Behind {
    /// One queue.
    #[default]
    Fifo,
    /// A queue for each flow, without any AQM.
    Fq,
    /// FQ-CoDel with its defaults.
    FqCodel,
}

/// A [`Behind`], built.
#[derive(Debug, Clone)]
pub enum Queue<P: Packet> {
    /// One queue.
    Fifo(Fifo<P, DropTail>),
    /// A queue for each flow.
    Fq(FlowQueue<P, DropTail>),
    /// FQ-CoDel.
    FqCodel(FlowQueue<P, Codel>),
}

impl Behind {
    fn build<P: Packet>(self, link: &LinkFacts) -> Queue<P> {
        let mut parameters = Parameters::default();
        match self {
            Self::Fifo => Queue::Fifo(Fifo::new(link.limit, DropTail)),
            Self::Fq => Queue::Fq(FlowQueue::new(link.limit, &parameters, DropTail)),
            Self::FqCodel => {
                let codel = codel::Config::per_flow(&mut parameters).aqm(link);
                Queue::FqCodel(FlowQueue::new(link.limit, &parameters, codel))
            }
        }
    }
}

macro_rules! each {
    ($self:ident, $queue:ident => $call:expr) => {
        match $self {
            Self::Fifo($queue) => $call,
            Self::Fq($queue) => $call,
            Self::FqCodel($queue) => $call,
        }
    };
}

impl<P: Packet> Qdisc<P> for Queue<P> {
    #[inline]
    fn enqueue<F: Fates<P>>(&mut self, packet: P, now: Instant, rng: &mut Rng, fates: &mut F) -> Enqueued {
        each!(self, queue => queue.enqueue(packet, now, rng, fates))
    }
    #[inline]
    fn dequeue<F: Fates<P>>(&mut self, now: Instant, rng: &mut Rng, fates: &mut F) -> Option<P> {
        each!(self, queue => queue.dequeue(now, rng, fates))
    }
    #[inline]
    fn backlog(&self) -> Backlog {
        each!(self, queue => queue.backlog())
    }
    fn stats(&self) -> &Stats {
        each!(self, queue => queue.stats())
    }
}

/// None of them looks at segments.
impl<P: Packet> AckPath for Queue<P> {}

impl Discipline for Config {
    type Queue<P: Packet> = Gate<Pink, Queue<P>>;

    fn validate(&self) -> Result<(), ConfigError> {
        self.check()
    }

    fn build<P: Packet>(&self, link: &LinkFacts) -> Gate<Pink, Queue<P>> {
        Gate::new(Pink::new(self, link.rate), self.queue.build(link))
    }
}
