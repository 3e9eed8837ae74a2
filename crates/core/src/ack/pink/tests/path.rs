//! A small network around PINK: senders that only their windows hold back, a link whose rate may change, receivers.
//!
//! ```text
//! sender -- LAN/2 --> [queue] -- link -- WAN/2 --> receiver -- WAN/2 --> [PINK] -- LAN/2 --> sender
//! ```
//!
//! Nothing is ever lost (the queue is endless), so senders need no recovery: they double their own window each round
//! trip up to `cwnd_limit`, and are otherwise what PINK makes of them.

use super::*;
use crate::packet::Ecn;
use crate::qdisc::{Enqueued, Qdisc};
use crate::queue::Fifo;
use crate::rng::{Rng, Streams};
use crate::units::Limit;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

pub const PAYLOAD: u32 = 1448;
const HEADERS: u64 = 52;
const SCALE: u8 = 7;

impl Packet for Seg {
    type Tcp = Self;
    fn size(&self) -> Bytes {
        Bytes::new(u64::from(self.payload_len) + HEADERS)
    }
    fn flow(&self) -> FlowId {
        self.flow
    }
    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }
    fn mark_ce(&mut self) {}
    fn tcp(&mut self) -> Option<&mut Self> {
        Some(self)
    }
}

#[derive(Debug, Clone)]
pub struct Host {
    pub start: Instant,
    pub wan: Span,
    pub lan: Span,
    /// Largest number of bytes in flight, by the sender's own limit.
    pub cwnd_limit: u32,
    /// Bytes per second that the application writes; `None` if it always has more to send.
    pub app: Option<u64>,
    /// Window of the receiver, in units of the scale.
    pub told: u16,
    /// Number of segments which the receiver acknowledges with one ACK.
    pub stretch: u32,
    pub una: u32,
    pub nxt: u32,
    pub edge: u32,
    pub cwnd: u32,
    pub unacked: u32,
    /// Bytes that reached the receiver.
    pub received: u64,
}

impl Host {
    pub fn new(start: Instant, rtt: Span) -> Self {
        Self {
            start,
            wan: rtt.saturating_sub(Span::from_millis(4)),
            lan: Span::from_millis(4),
            cwnd_limit: u32::MAX >> 1,
            app: None,
            told: 65_535,
            stretch: 1,
            una: ISN + 1,
            nxt: ISN + 1,
            edge: ISN + 1,
            cwnd: 10 * PAYLOAD,
            unacked: 0,
            received: 0,
        }
    }

    /// What may be sent now.
    fn next(&mut self, flow: u32, now: Instant) -> Option<Seg> {
        let in_flight = self.nxt.wrapping_sub(self.una);
        let written = self.app.map_or(u64::MAX, |rate| (now.since(self.start).as_secs_f64() * rate as f64) as u64);
        let sent = u64::from(self.nxt.wrapping_sub(ISN + 1)) + u64::from(PAYLOAD);
        let fits = !after(self.nxt.wrapping_add(PAYLOAD), self.edge);
        if !fits || in_flight + PAYLOAD > self.cwnd.min(self.cwnd_limit) || sent > written {
            return None;
        }
        let segment = Seg::data(flow, self.nxt, PAYLOAD);
        self.nxt = self.nxt.wrapping_add(PAYLOAD);
        Some(segment)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Rate(u64),
    /// The time at which a host starts or, with an application, writes.
    Tick(u32),
    /// At the gateway, outbound.
    Out(usize),
    Free,
    /// A segment arrives at the receiver.
    Arrive(usize),
    /// At the gateway, inbound.
    Back(usize),
    /// An ACK arrives at the sender.
    Home(usize),
    Flood,
}

pub struct Path {
    pub queue: Fifo<Seg, Pink>,
    pub hosts: Vec<Host>,
    pub now: Instant,
    /// Departures: time, wait, size.
    pub departures: Vec<(Instant, Span, u64)>,
    rng: Rng,
    rate: Rate,
    busy: bool,
    waits: VecDeque<Instant>,
    events: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    segments: Vec<Seg>,
    number: u64,
    flood: Option<(u32, Span)>,
}

impl Path {
    pub fn new(edit: impl FnOnce(&mut Config), rate: Rate, hosts: Vec<Host>) -> Self {
        let mut config = paper();
        edit(&mut config);
        config.check().unwrap();
        let mut path = Self {
            queue: Fifo::new(Limit::Packets(u64::MAX), Pink::new(&config, rate)),
            now: Instant::ZERO,
            departures: Vec::new(),
            rng: Streams::new(1).get("path"),
            rate,
            busy: false,
            waits: VecDeque::new(),
            events: BinaryHeap::new(),
            segments: Vec::new(),
            number: 0,
            flood: None,
            hosts,
        };
        for flow in 0..path.hosts.len() {
            path.at(path.hosts[flow].start, Event::Tick(flow as u32));
        }
        path
    }

    pub fn pink(&self) -> &Pink {
        self.queue.aqm()
    }

    /// The link has another rate from `at` on.
    pub fn change(&mut self, at: Instant, rate: Rate) {
        self.at(at, Event::Rate(rate.as_bps()));
    }

    /// SYNs of forged sources through the gateway, each a flow of its own, from `at` on.
    pub fn flood(&mut self, at: Instant, per_second: u64) {
        self.flood = Some((self.hosts.len() as u32, Span::from_secs(1).div(per_second)));
        self.at(at, Event::Flood);
    }

    fn at(&mut self, at: Instant, event: Event) {
        self.number += 1;
        self.events.push(Reverse((at, self.number, event)));
    }

    fn carry(&mut self, segment: Seg, delay: Span, event: fn(usize) -> Event) {
        self.segments.push(segment);
        self.at(self.now + delay, event(self.segments.len() - 1));
    }

    fn of(&self, flow: u32) -> Host {
        self.hosts.get(flow as usize).cloned().unwrap_or_else(|| Host::new(Instant::ZERO, Span::from_millis(100)))
    }

    pub fn run_until(&mut self, end: Instant) {
        while let Some(Reverse((at, _, event))) = self.events.pop_if_before(end) {
            self.now = at;
            self.handle(event);
        }
        self.now = end;
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Rate(bps) => {
                self.rate = Rate::from_bps(bps);
                self.queue.on_fact(&Fact::Rate(self.rate), self.now);
            }
            Event::Tick(flow) => self.tick(flow),
            Event::Out(i) => self.out(self.segments[i]),
            Event::Free => {
                self.busy = false;
                self.transmit();
            }
            Event::Arrive(i) => self.arrive(self.segments[i]),
            Event::Back(i) => {
                let mut segment = self.segments[i];
                self.queue.inbound(&mut segment, self.now);
                if (segment.flow.0 as usize) < self.hosts.len() {
                    self.carry(segment, self.of(segment.flow.0).lan.div(2), Event::Home);
                }
            }
            Event::Home(i) => self.home(self.segments[i]),
            Event::Flood => {
                let Some((flow, every)) = &mut self.flood else { return };
                let (syn, every) = (Seg::syn(*flow, Some(SCALE)), *every);
                *flow += 1;
                self.out(syn);
                self.at(self.now + every, Event::Flood);
            }
        }
    }

    fn tick(&mut self, flow: u32) {
        let host = self.of(flow);
        if self.now == host.start {
            self.carry(Seg { mss: Some(1460), ..Seg::syn(flow, Some(SCALE)) }, host.lan.div(2), Event::Out);
        } else {
            self.send(flow);
        }
        if host.app.is_some() && self.now < at_ms(60_000) {
            self.at(self.now + Span::from_millis(10), Event::Tick(flow));
        }
    }

    /// Its application writes again.
    pub fn kick(&mut self, flow: u32) {
        self.send(flow);
    }

    fn send(&mut self, flow: u32) {
        while let Some(segment) = self.hosts[flow as usize].next(flow, self.now) {
            let delay = self.hosts[flow as usize].lan.div(2);
            self.carry(segment, delay, Event::Out);
        }
    }

    fn out(&mut self, mut segment: Seg) {
        self.queue.outbound(&mut segment, self.now);
        let queued = self.queue.enqueue(segment, self.now, &mut self.rng, &mut ());
        assert_eq!(queued, Enqueued::Queued);
        self.waits.push_back(self.now);
        self.transmit();
    }

    fn transmit(&mut self) {
        if self.busy {
            return;
        }
        let Some(segment) = self.queue.dequeue(self.now, &mut self.rng, &mut ()) else { return };
        let since = self.waits.pop_front().unwrap();
        self.departures.push((self.now, self.now.since(since), segment.size().get()));
        self.busy = true;
        let time = self.rate.time_for(segment.size());
        self.at(self.now + time, Event::Free);
        self.carry(segment, time + self.of(segment.flow.0).wan.div(2), Event::Arrive);
    }

    /// Lets the receiver answer a segment.
    fn arrive(&mut self, segment: Seg) {
        let delay = self.of(segment.flow.0).wan.div(2);
        if segment.flags.has(TcpFlags::SYN) {
            let answer = Seg { mss: Some(1460), ..Seg::syn_ack(segment.flow.0, Some(SCALE)) };
            return self.carry(answer, delay, Event::Back);
        }
        let Some(host) = self.hosts.get_mut(segment.flow.0 as usize) else { return };
        if segment.payload_len == 0 {
            return;
        }
        host.received += u64::from(segment.payload_len);
        host.unacked += 1;
        if host.unacked >= host.stretch {
            host.unacked = 0;
            let ack = Seg::ack(segment.flow.0, segment.seq.wrapping_add(segment.payload_len), host.told);
            self.carry(ack, delay, Event::Back);
        }
    }

    fn home(&mut self, segment: Seg) {
        let host = &mut self.hosts[segment.flow.0 as usize];
        let syn = segment.flags.has(TcpFlags::SYN);
        let newly = segment.ack.wrapping_sub(host.una);
        host.una = segment.ack;
        host.cwnd = host.cwnd.saturating_add(newly);
        host.edge = segment.ack.wrapping_add(u32::from(segment.window) << if syn { 0 } else { SCALE });
        if syn {
            let lan = host.lan.div(2);
            self.carry(Seg::data(segment.flow.0, ISN + 1, 0), lan, Event::Out);
        }
        self.send(segment.flow.0);
    }

    /// Part of the link's time that was used, between two times.
    pub fn utilization(&self, from: Instant, to: Instant, rate: Rate) -> f64 {
        let bytes: u64 = self.departures.iter().filter(|d| from <= d.0 && d.0 < to).map(|d| d.2).sum();
        bytes as f64 / rate.bytes_in(to.since(from)).get() as f64
    }

    /// Returns the waiting time which this part of the packets did not exceed.
    pub fn wait_at(&self, part: f64, from: Instant, to: Instant) -> Span {
        let mut waits: Vec<Span> = self.departures.iter().filter(|d| from <= d.0 && d.0 < to).map(|d| d.1).collect();
        waits.sort_unstable();
        waits[((waits.len() - 1) as f64 * part) as usize]
    }

    /// Bytes received since the last call, per flow.
    pub fn take_received(&mut self) -> Vec<u64> {
        self.hosts.iter_mut().map(|host| std::mem::take(&mut host.received)).collect()
    }
}

trait PopBefore {
    fn pop_if_before(&mut self, end: Instant) -> Option<Reverse<(Instant, u64, Event)>>;
}

impl PopBefore for BinaryHeap<Reverse<(Instant, u64, Event)>> {
    fn pop_if_before(&mut self, end: Instant) -> Option<Reverse<(Instant, u64, Event)>> {
        if self.peek()?.0.0 >= end {
            return None;
        }
        self.pop()
    }
}

pub fn at_ms(ms: u64) -> Instant {
    Instant::ZERO + Span::from_millis(ms)
}

/// `n` greedy flows of 100 ms that start within the first tenth of a second.
pub fn greedy(n: u64) -> Vec<Host> {
    (0..n).map(|i| Host::new(at_ms(i * 100 / n), Span::from_millis(100))).collect()
}
