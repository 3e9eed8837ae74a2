//! The queues of WEIR: a queue for each flow, in turns of hosts first and of their flows second, and one queue for the
//! segments of all flows that keep to their windows.

use super::fattest::{Fattest, Heavy, Weighed};
use super::turns::{Member, NONE, Scheduled, Turns};
use crate::aqm::cobalt;
use crate::aqm::cobalt::linux::{Head, Pace, Params, Vars};
use crate::packet::{Ecn, FlowId, NodeId, Packet};
use crate::qdisc::{Backlog, DropReason, Enqueued, PacketObserver, Stats, Verdict};
use crate::rng::Rng;
use crate::slab::{List, Slab};
use crate::units::{Bytes, Instant, Limit, Rate, Span};

/// Least and largest quantum in bytes: the turn of a host lasts 1/4096 s.
const QUANTUM: (u64, u64) = (300, 1514);
/// What a host may always send first: a call.
const FLOOR: Rate = Rate::from_bps(100_000);
/// Flows with this number or a higher one share the queue of the last.
const MOST_FLOWS: u32 = 1 << 20;
/// The turn of a flow among those of its host, in bytes.
const PACKET: i64 = 1514;
/// Queueing delay above which ECT(1) is marked, or the time of two packets if that is longer.
const SHALLOW: Span = Span::from_millis(1);
/// One host's turn, in units of how many the common queue has.
const WHOLE: u64 = 1024;
/// The host that stands for the queue of all who keep to their windows.
const COMMON: u32 = 0;

/// The queue of a flow.
#[derive(Debug, Clone)]
struct Flow {
    list: List,
    bytes: u64,
    /// Bytes in the common queue.
    common: u64,
    packets: u32,
    /// The host of its node, if it has one; the host that it is itself; and the one in whose turns its packets go.
    owner: u32,
    own: u32,
    host: u32,
    member: Member,
    weighed: Weighed,
    aqm: Vars,
}

impl Scheduled for Flow {
    fn member(&mut self) -> &mut Member {
        &mut self.member
    }
}

impl Heavy for Flow {
    fn weighed(&mut self) -> &mut Weighed {
        &mut self.weighed
    }
}

impl Default for Flow {
    fn default() -> Self {
        Self {
            list: List::default(),
            bytes: 0,
            common: 0,
            packets: 0,
            owner: NONE,
            own: NONE,
            host: NONE,
            member: Member::default(),
            weighed: Weighed::default(),
            aqm: Vars::rested(),
        }
    }
}

/// The turns of a host, and of its flows.
#[derive(Debug, Clone, Copy, Default)]
struct Host {
    member: Member,
    flows: Turns,
    /// When it had nothing more to send.
    left: Instant,
}

impl Scheduled for Host {
    fn member(&mut self) -> &mut Member {
        &mut self.member
    }
}

/// What is noted beside a packet.
#[derive(Debug, Clone, Copy)]
struct Note {
    since: Instant,
    way: Way,
}

/// Where a packet waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// With all who keep to their windows, unless its flow has this many bytes there.
    Common { most: u64 },
    /// In the queue of its flow, unjudged: TCP that windows govern.
    Own,
    /// The same, of one of several flows of a host whose shares are less than a segment. Their least windows may be more than the host's
    /// share, so the host waits for itself, and what waits makes no other flow slower.
    Crowd,
    /// The same, of a young connection: it is measured as it leaves.
    Young,
    /// In the queue of its flow, judged by the AQM.
    Judged,
}

impl Way {
    /// The bytes of a packet of this size that windows govern and for which others wait.
    fn governed(self, size: Bytes) -> u64 {
        if matches!(self, Self::Common { .. } | Self::Own) { size.get() } else { 0 }
    }
}

/// A packet that leaves.
#[derive(Debug)]
pub(super) struct Left<P> {
    pub packet: P,
    /// No window governs it.
    pub free: bool,
    /// Nothing of its flow waits behind it.
    pub last: bool,
}

/// The queue of all who keep to their windows.
#[derive(Debug, Clone, Copy, Default)]
struct Common {
    list: List,
    bytes: u64,
    /// How many hosts' turns it has, in 1024ths.
    hosts: u64,
}

/// What follows from the rate of the link.
#[derive(Debug, Clone, Copy)]
struct Times {
    /// What a host may always send first.
    floor: Rate,
    /// Bytes of a host's turn.
    quantum: i64,
    params: Params,
    /// Queueing delay above which ECT(1) is marked.
    shallow: Span,
}

impl Times {
    fn of(rate: Rate, floor: Rate) -> Self {
        let bytes = rate.as_bps() / 8;
        Self {
            floor,
            quantum: (bytes >> 12).clamp(QUANTUM.0, QUANTUM.1) as i64,
            params: Params::new(&cobalt::Config::default(), Pace::of(bytes)),
            shallow: SHALLOW.max(rate.time_for(Bytes::new(2 * QUANTUM.1))),
        }
    }
}

/// The queues.
#[derive(Debug, Clone)]
pub(super) struct Queues<P> {
    limit: Limit,
    flows: Vec<Flow>,
    hosts: Vec<Host>,
    /// The host of each node, by the node's number.
    nodes: Vec<u32>,
    turns: Turns,
    common: Common,
    times: Times,
    fattest: Fattest,
    slab: Slab<P, Note>,
    backlog: Backlog,
    /// Bytes of TCP that windows govern.
    governed: u64,
    /// There was no room for a packet that windows govern.
    full: bool,
    stats: Stats,
}

impl<P: Packet> Queues<P> {
    pub fn new(limit: Limit, rate: Rate, with_floor: bool) -> Self {
        Self {
            limit,
            flows: Vec::new(),
            hosts: vec![Host::default()],
            nodes: Vec::new(),
            turns: Turns::default(),
            common: Common { hosts: WHOLE, ..Common::default() },
            times: Times::of(rate, if with_floor { FLOOR } else { Rate::from_bps(0) }),
            fattest: Fattest::default(),
            slab: Slab::new(),
            backlog: Backlog::default(),
            governed: 0,
            full: false,
            stats: Stats::default(),
        }
    }

    /// Sets what follows from the rate of the link.
    pub fn set_rate(&mut self, rate: Rate) {
        self.times = Times::of(rate, self.times.floor);
    }

    /// Sets how many hosts' turns the common queue has, in 1024ths; at least one.
    pub fn set_common(&mut self, hosts: u64) {
        self.common.hosts = hosts.max(WHOLE);
    }

    pub fn backlog(&self) -> Backlog {
        self.backlog
    }

    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Returns whether there was no room for a packet that windows govern since this was asked last.
    pub fn had_no_room(&mut self) -> bool {
        std::mem::take(&mut self.full)
    }

    /// Bytes of TCP that windows govern and for which others wait.
    pub fn governed(&self) -> u64 {
        self.governed
    }

    fn flow_at(&mut self, flow: FlowId) -> u32 {
        let at = flow.0.min(MOST_FLOWS - 1);
        if at as usize >= self.flows.len() {
            self.flows.resize_with(at as usize + 1, Flow::default);
        }
        at
    }

    /// Notes whose flow it is. What waits of the flow goes in the turns of its former host.
    pub fn set_owner(&mut self, flow: FlowId, node: NodeId) {
        let at = self.flow_at(flow);
        self.flows[at as usize].owner = if node.0 < MOST_FLOWS { self.host_of(node) } else { NONE };
    }

    fn host_of(&mut self, node: NodeId) -> u32 {
        let at = node.0 as usize;
        if at >= self.nodes.len() {
            self.nodes.resize(at + 1, NONE);
        }
        if self.nodes[at] == NONE {
            self.nodes[at] = self.hosts.len() as u32;
            self.hosts.push(Host::default());
        }
        self.nodes[at]
    }

    /// The host in whose turns a flow goes; a flow without a node is a host of its own.
    fn host(&mut self, at: u32) -> u32 {
        let Flow { owner, host, own, member, .. } = &mut self.flows[at as usize];
        if !member.is_here() {
            if *owner == NONE && *own == NONE {
                *own = self.hosts.len() as u32;
                self.hosts.push(Host::default());
            }
            *host = if *owner == NONE { *own } else { *owner };
        }
        *host
    }

    /// Takes a packet in.
    pub fn enqueue<O: PacketObserver<P>>(&mut self, packet: P, way: Way, now: Instant, observer: &mut O) -> Enqueued {
        let size = packet.size();
        self.stats.arrived.add(size);
        let at = self.flow_at(packet.flow());
        let flow = &self.flows[at as usize];
        let common = matches!(way, Way::Common { most } if flow.packets == 0 && flow.common + size.get() <= most);
        let note = Note { since: now, way };
        let list = if common { &mut self.common.list } else { &mut self.flows[at as usize].list };
        let position = match self.slab.push(list, packet, note) {
            Ok(position) => position,
            Err(packet) => {
                self.drop(packet, DropReason::Overflow, now, observer);
                return Enqueued::Dropped(DropReason::Overflow);
            }
        };
        self.backlog.add(size);
        self.governed += way.governed(size);
        let quantum = self.times.quantum;
        if common {
            self.flows[at as usize].common += size.get();
            self.common.bytes += size.get();
            self.turns.come(&mut self.hosts, COMMON, quantum, 0);
        } else {
            let flow = &mut self.flows[at as usize];
            flow.packets += 1;
            flow.bytes += size.get();
            let bytes = flow.bytes;
            self.fattest.note(&mut self.flows, at, bytes);
            self.come(at, now);
        }
        let mut gone = false;
        while self.backlog.exceeds(self.limit) {
            let Some(dropped) = self.shed(now, observer) else { break };
            gone |= dropped == position;
        }
        if gone { Enqueued::Dropped(DropReason::Overflow) } else { Enqueued::Queued }
    }

    /// Lets a flow with packets take its turns, unless some of it wait in the common queue: they go first.
    #[inline]
    fn come(&mut self, at: u32, now: Instant) {
        if self.flows[at as usize].common > 0 {
            return;
        }
        let host = self.host(at);
        let Host { flows, left, .. } = &mut self.hosts[host as usize];
        flows.come(&mut self.flows, at, PACKET, 0);
        let least = self.times.floor.bytes_in(now.since(*left)).get().min(QUANTUM.1) as i64;
        self.turns.come(&mut self.hosts, host, self.times.quantum, least);
    }

    /// Drops the head of the fattest queue.
    #[cold]
    fn shed<O: PacketObserver<P>>(&mut self, now: Instant, observer: &mut O) -> Option<crate::slab::Position> {
        let at = self.fattest.top();
        let own = at.map_or(0, |at| self.flows[at as usize].bytes);
        let common = self.common.bytes * WHOLE / self.common.hosts;
        if let Some(at) = at.filter(|_| own >= common || self.common.bytes == 0) {
            let taken = self.slab.pop(&mut self.flows[at as usize].list)?;
            self.full |= !matches!(taken.note.way, Way::Judged | Way::Young);
            self.left(at, taken.packet.size(), taken.note.way);
            self.flows[at as usize].aqm.queue_full(&self.times.params, now);
            self.drop(taken.packet, DropReason::Overflow, now, observer);
            return Some(taken.position);
        }
        let taken = self.slab.pop(&mut self.common.list)?;
        self.full = true;
        self.left_common(&taken.packet, now);
        self.drop(taken.packet, DropReason::Overflow, now, observer);
        Some(taken.position)
    }

    fn left(&mut self, at: u32, size: Bytes, way: Way) {
        self.governed -= way.governed(size);
        let flow = &mut self.flows[at as usize];
        flow.packets -= 1;
        flow.bytes -= size.get();
        let bytes = flow.bytes;
        self.fattest.note(&mut self.flows, at, bytes);
        self.backlog.remove(size);
    }

    fn left_common(&mut self, packet: &P, now: Instant) {
        let (at, size) = (packet.flow().0.min(MOST_FLOWS - 1), packet.size());
        self.flows[at as usize].common -= size.get();
        self.common.bytes -= size.get();
        self.governed -= size.get();
        self.backlog.remove(size);
        if self.flows[at as usize].packets > 0 {
            self.come(at, now);
        }
    }

    fn drop<O: PacketObserver<P>>(&mut self, packet: P, reason: DropReason, now: Instant, observer: &mut O) {
        self.stats.count_drop(reason, packet.size());
        observer.dropped(packet, reason, now);
    }

    /// Takes the next packet out.
    pub fn dequeue<O: PacketObserver<P>>(&mut self, now: Instant, rng: &mut Rng, observer: &mut O) -> Option<Left<P>> {
        loop {
            let (quantum, common) = (self.times.quantum, self.common.hosts);
            let of = |host| if host == COMMON { quantum * common as i64 / WHOLE as i64 } else { quantum };
            let host = self.turns.turn(&mut self.hosts, of)?;
            let left = if host == COMMON { self.next_common(now) } else { self.next_of(host, now, rng, observer) };
            match left {
                Some(left) => {
                    let size = left.packet.size();
                    self.hosts[host as usize].member.spend(size.get());
                    self.stats.sent.add(size);
                    return Some(left);
                }
                None => {
                    self.hosts[host as usize].left = now;
                    self.turns.leave(&mut self.hosts, host);
                }
            }
        }
    }

    fn next_common(&mut self, now: Instant) -> Option<Left<P>> {
        let taken = self.slab.pop(&mut self.common.list)?;
        self.left_common(&taken.packet, now);
        Some(Left { packet: taken.packet, free: false, last: false })
    }

    /// The next packet of a host; `None` if none of its flows has any left.
    fn next_of<O: PacketObserver<P>>(
        &mut self,
        host: u32,
        now: Instant,
        rng: &mut Rng,
        observer: &mut O,
    ) -> Option<Left<P>> {
        loop {
            let at = self.hosts[host as usize].flows.turn(&mut self.flows, |_| PACKET)?;
            if self.flows[at as usize].common > 0 {
                self.hosts[host as usize].flows.leave(&mut self.flows, at); // what waits in the common queue goes first
                continue;
            }
            match self.head(at, now, rng, observer) {
                Some(left) => {
                    self.flows[at as usize].member.spend(left.packet.size().get());
                    return Some(left);
                }
                None => {
                    self.flows[at as usize].aqm.queue_empty(&self.times.params, now);
                    self.hosts[host as usize].flows.leave(&mut self.flows, at);
                }
            }
        }
    }

    /// Takes the first packet of a flow's queue that may pass.
    fn head<O: PacketObserver<P>>(
        &mut self,
        at: u32,
        now: Instant,
        rng: &mut Rng,
        observer: &mut O,
    ) -> Option<Left<P>> {
        while let Some(taken) = self.slab.pop(&mut self.flows[at as usize].list) {
            let (mut packet, Note { since, way }) = (taken.packet, taken.note);
            self.left(at, packet.size(), way);
            let last = self.flows[at as usize].packets == 0;
            if way == Way::Judged {
                match self.judge(at, &packet, now.since(since), last, now, rng) {
                    Verdict::Drop => {
                        self.drop(packet, DropReason::Dequeue, now, observer);
                        continue;
                    }
                    Verdict::Mark => {
                        packet.mark_ce();
                        self.stats.marked.add(packet.size());
                        observer.marked(&packet, now);
                    }
                    Verdict::Pass => {}
                }
            }
            return Some(Left { packet, free: matches!(way, Way::Judged | Way::Young), last });
        }
        None
    }

    fn judge(&mut self, at: u32, packet: &P, sojourn: Span, is_last: bool, now: Instant, rng: &mut Rng) -> Verdict {
        let ecn = packet.ecn();
        let head = Head { sojourn, can_be_marked: ecn.is_capable(), is_last, bulk_flows: 0 };
        let verdict = self.flows[at as usize].aqm.should_drop(&self.times.params, &head, now, rng);
        let shallow = ecn == Ecn::Ect1 && sojourn > self.times.shallow;
        if verdict == Verdict::Pass && shallow { Verdict::Mark } else { verdict }
    }
}
