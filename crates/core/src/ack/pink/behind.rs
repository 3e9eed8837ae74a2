//! The discipline behind PINK: a FIFO, QRM, or a queue for each flow, so that flows which obey no window harm no
//! others.
//!
//! Fair queues keep bursts together: a lone packet passes those of a burst, so the burst is never spread over the round
//! trip, and its last packets wait for the packets of all others. In the order of their arrival packets of many flows
//! mix, and no burst survives for long. With "fq-others" segments that keep to their windows wait in the order of
//! arrival, and all else waits in a queue for each flow. A segment keeps to its window if it is new, not of the first
//! flight, and ends within the window; of no flow more than twice its window waits there, whatever its receiver
//! acknowledges (`who_keeps_to_its_window_shares_a_queue`, `a_receiver_that_acknowledges_too_early_gains_no_room`).

use super::Pink;
use super::config::{Behind, Config};
use super::share::CREDIT;
use crate::ack::gate::Gate;
use crate::ack::qrm::{self, Qrm};
use crate::ack_path::{AckPath, Kept};
use crate::aqm::codel::{self, Codel};
use crate::aqm::droptail::DropTail;
use crate::config::{AqmConfig, ConfigError, Discipline, LinkFacts};
use crate::fact::Fact;
use crate::fq::{FlowQueue, Parameters};
use crate::packet::{FlowId, Packet, TcpView};
use crate::qdisc::{Backlog, Enqueued, PacketObserver, Qdisc, Stats};
use crate::queue::Fifo;
use crate::rng::Rng;
use crate::units::{Bytes, Instant, Rate};

/// Largest size of a segment in bytes.
const MTU: u64 = 1500;

/// The discipline which a [`Behind`] names.
#[derive(Debug, Clone)]
pub enum Queue<P: Packet> {
    /// One FIFO queue without any AQM.
    Fifo(Fifo<P, DropTail>),
    /// A queue for each flow, without any AQM.
    Fq(FlowQueue<P, DropTail>),
    /// One FIFO queue for segments that keep to their windows, and a queue for each flow for all else, without any AQM.
    FqOthers(Others<P>),
    /// FQ-CoDel with its defaults.
    FqCodel(FlowQueue<P, Codel>),
    /// One queue with QRM.
    Qrm(Box<Fifo<P, Qrm>>),
}

/// A queue for each flow, and one for the segments that keep to their windows.
#[derive(Debug, Clone)]
pub struct Others<P: Packet> {
    queue: FlowQueue<P, DropTail>,
    /// What is known of the next packet.
    next: Option<Kept>,
}

impl<P: Packet> Qdisc<P> for Others<P> {
    #[inline]
    fn enqueue<O: PacketObserver<P>>(&mut self, packet: P, now: Instant, rng: &mut Rng, observer: &mut O) -> Enqueued {
        match self.next.take().filter(|kept| kept.flow == packet.flow()) {
            Some(Kept { window, flows, .. }) => {
                let most = Bytes::new(2 * window.get() + MTU);
                self.queue.enqueue_in_crowd(packet, flows, most, now, rng, observer)
            }
            None => self.queue.enqueue(packet, now, rng, observer),
        }
    }
    #[inline]
    fn dequeue<O: PacketObserver<P>>(&mut self, now: Instant, rng: &mut Rng, observer: &mut O) -> Option<P> {
        self.queue.dequeue(now, rng, observer)
    }
    #[inline]
    fn on_fact(&mut self, fact: &Fact, now: Instant) {
        self.queue.on_fact(fact, now);
    }
    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }
    fn stats(&self) -> &Stats {
        self.queue.stats()
    }
}

impl<P: Packet> AckPath for Others<P> {
    fn keep(&mut self, kept: Option<Kept>) {
        self.next = kept;
    }
}

impl Behind {
    fn build<P: Packet>(self, link: &LinkFacts) -> Queue<P> {
        let mut parameters = Parameters::default();
        match self {
            Self::Fifo => Queue::Fifo(Fifo::new(link.limit, DropTail)),
            Self::Qrm => {
                let qrm = qrm::Config { slack: Bytes::new(CREDIT * MTU), ..qrm::Config::default() };
                Queue::Qrm(Box::new(Fifo::new(link.limit, qrm.aqm(link))))
            }
            Self::Fq => Queue::Fq(FlowQueue::new(link.limit, &parameters, DropTail)),
            Self::FqOthers => {
                let queue = FlowQueue::new(link.limit, &parameters, DropTail).with_crowd();
                Queue::FqOthers(Others { queue, next: None })
            }
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
            Self::FqOthers($queue) => $call,
            Self::FqCodel($queue) => $call,
            Self::Qrm($queue) => $call,
        }
    };
}

impl<P: Packet> Qdisc<P> for Queue<P> {
    const WAKES: bool = <Fifo<P, DropTail> as Qdisc<P>>::WAKES
        || <FlowQueue<P, DropTail> as Qdisc<P>>::WAKES
        || <Others<P> as Qdisc<P>>::WAKES
        || <FlowQueue<P, Codel> as Qdisc<P>>::WAKES
        || <Fifo<P, Qrm> as Qdisc<P>>::WAKES;

    #[inline]
    fn enqueue<O: PacketObserver<P>>(&mut self, packet: P, now: Instant, rng: &mut Rng, observer: &mut O) -> Enqueued {
        each!(self, queue => queue.enqueue(packet, now, rng, observer))
    }
    #[inline]
    fn dequeue<O: PacketObserver<P>>(&mut self, now: Instant, rng: &mut Rng, observer: &mut O) -> Option<P> {
        each!(self, queue => queue.dequeue(now, rng, observer))
    }
    #[inline]
    fn backlog(&self) -> Backlog {
        each!(self, queue => queue.backlog())
    }
    fn stats(&self) -> &Stats {
        each!(self, queue => queue.stats())
    }
    fn on_fact(&mut self, fact: &Fact, now: Instant) {
        each!(self, queue => queue.on_fact(fact, now));
    }
    fn next_wakeup(&self) -> Option<Instant> {
        each!(self, queue => queue.next_wakeup())
    }
    fn on_wakeup(&mut self, now: Instant) {
        each!(self, queue => queue.on_wakeup(now));
    }
    fn report(&self) -> Option<serde_json::Value> {
        each!(self, queue => queue.report())
    }
}

/// Only QRM looks at segments; the others ignore them.
impl<P: Packet> AckPath for Queue<P> {
    const ACTIVE: bool = true;

    fn outbound<S: TcpView>(&mut self, segment: &mut S, now: Instant) {
        each!(self, queue => queue.outbound(segment, now));
    }

    fn inbound<S: TcpView>(&mut self, segment: &mut S, now: Instant) {
        each!(self, queue => queue.inbound(segment, now));
    }

    fn keep(&mut self, kept: Option<Kept>) {
        each!(self, queue => queue.keep(kept));
    }

    fn budget_of(&self, flow: FlowId) -> Option<Rate> {
        each!(self, queue => queue.budget_of(flow))
    }
}

impl Discipline for Config {
    type Queue<P: Packet> = Gate<Pink, Queue<P>>;

    fn validate(&self) -> Result<(), ConfigError> {
        self.check()
    }

    fn build<P: Packet>(&self, link: &LinkFacts) -> Gate<Pink, Queue<P>> {
        Gate::new(Pink::new(self, link.rate).before(link.limit), self.queue.build(link))
    }
}
