//! Shares among hosts first and among the flows of a host second, from sums that are kept up to date.
//!
//! ```text
//! L    = what the link gives out, max-min among hosts: a host none of whose flows can use more claims what they claim
//! B_i  = RTT_i * max-min of L among the flows of its host
//! ```
//!
//! A host is the node of a flow ([`Fact::Owner`](crate::fact::Fact::Owner)); a flow without a node is a host of its own. What no
//! window governs is looked at as it leaves ([`Pink::note_left`]): who always had packets waiting for 100 ms counts as one who
//! can use more, and what all others send together is taken from the link before it is shared.
//!
//! A connection is *young* until [`YOUNG`] bytes of it are acknowledged: its window is a part of what the queue has room for, and
//! it counts like traffic that no window governs. So a transfer of a few segments is not held back by a share that it does not
//! live to use, and takes none from others. Who sends nothing for 200 ms, or two round trips, wants nothing.

use super::Pink;
use super::flow::{Flight, LACKING, Phase, SMALL, after, up};
use super::gain::Gain;
use super::share::{MILLI, window_of};
use crate::allocation::{Members, ratio, rest};
use crate::judge::Meta;
use crate::packet::{FlowId, NodeId};
use crate::units::{Instant, Span};

const NONE: u32 = u32::MAX;
/// Nodes with this number or a higher one are not known.
const MAX_NODES: u32 = 1 << 20;
/// For how long traffic without windows is measured before its claim changes, and after how many such times of silence it has none.
pub(super) const INTERVAL: Span = Span::from_millis(100);
const SILENT: u64 = 2;

/// A claim of payload is this part of it more on the link.
const HEADERS: u32 = 28;
/// So many bytes of a new connection are acknowledged before its share is all that it gets.
const YOUNG: u32 = 32 << 10;
/// The largest window that a SYN or SYN-ACK can tell.
const MOST_OF_A_SYN: u32 = 0xffff;
/// A young connection gets at most one part in so many of the room that young ones have left.
const PART: u64 = 4;

/// What somebody can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Wants {
    /// It sends nothing.
    #[default]
    Nothing,
    /// Whatever it gets.
    All,
    /// So many bytes of payload per second.
    Only(u32),
}

/// The sums over those of a host who send.
#[derive(Debug, Clone, Copy, Default)]
struct Host {
    /// All, and those of them that windows govern.
    sending: u32,
    governed: u32,
    lacking: u32,
    claims: u64,
}

impl Host {
    fn add(&mut self, wants: Wants, kind: usize, sign: i64) {
        let step = |count: &mut u32| *count = count.wrapping_add(sign as u32);
        match wants {
            Wants::Nothing => return,
            Wants::All => {}
            Wants::Only(claim) => {
                step(&mut self.lacking);
                self.claims = self.claims.wrapping_add_signed(sign * i64::from(claim));
            }
        }
        step(&mut self.sending);
        if kind == WINDOWS {
            step(&mut self.governed);
        }
    }

    /// How many hosts' turns its governed flows have, in 1024ths.
    fn part(&self) -> u64 {
        if self.governed == 0 { 0 } else { 1024 * u64::from(self.governed) / u64::from(self.sending) }
    }
}

/// What of a flow: what windows govern, and the rest.
pub(super) const WINDOWS: usize = 0;
const REST: usize = 1;

/// A flow.
#[derive(Debug, Clone, Copy)]
struct Flow {
    node: u32,
    wants: [Wants; 2],
    /// When the measurement of its rest began, and when a packet left last.
    since: Instant,
    last: Instant,
    /// When a packet left last that no window governs.
    rest_at: Instant,
    /// For how long it may be silent.
    patience: Span,
    /// Its place among those measured.
    place: u32,
    /// Its queue was empty during this measurement.
    emptied: bool,
    /// It is a young connection: what it was acknowledged first, and the window that it was given beyond its share.
    young: Option<u32>,
    granted: u32,
    /// Up to where a SYN-ACK that was not shown let it send, until it has.
    allowed: Option<u32>,
}

impl Default for Flow {
    fn default() -> Self {
        let (since, last) = (Instant::ZERO, Instant::ZERO);
        Self {
            node: NONE,
            wants: [Wants::Nothing; 2],
            since,
            last,
            rest_at: since,
            patience: Span::ZERO,
            place: NONE,
            emptied: false,
            young: None,
            granted: 0,
            allowed: None,
        }
    }
}

/// The sums over all hosts that send.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    all: Members,
    /// How many hosts' turns all governed flows have, in 1024ths.
    governed: u64,
}

impl Sums {
    fn leave(&mut self, host: &Host) {
        if host.sending > 0 {
            self.all.n -= 1;
            self.governed -= host.part();
            if host.lacking == host.sending {
                self.all.lacking -= 1;
                self.all.claims -= host.claims;
            }
        }
    }

    fn join(&mut self, host: &Host) {
        if host.sending > 0 {
            self.all.n += 1;
            self.governed += host.part();
            if host.lacking == host.sending {
                self.all.lacking += 1;
                self.all.claims += host.claims;
            }
        }
    }
}

/// All hosts.
#[derive(Debug, Clone, Default)]
pub(super) struct Hosts {
    flows: Vec<Flow>,
    nodes: Vec<Host>,
    sums: Sums,
    /// Bytes of headers of a segment with data, as the last one had them.
    header: u64,
    /// Bytes that no window governs, since when, what they take in thousandths of a byte per second, and took before.
    free: u64,
    free_since: Instant,
    taken: u64,
    before: u64,
    /// What young connections may send together, in bytes.
    young: u64,
    with_young: bool,
    /// Flows whose rest is measured, and the one that is looked at next.
    measured: Vec<u32>,
    look: usize,
    gain: Gain,
}

impl Hosts {
    fn flow(&mut self, at: usize) -> &mut Flow {
        if at >= self.flows.len() {
            self.flows.resize(at + 1, Flow::default());
        }
        &mut self.flows[at]
    }

    /// The host of a flow.
    fn host_of(&self, flow: &Flow) -> Host {
        if let Some(host) = self.nodes.get(flow.node as usize) {
            return *host;
        }
        let mut own = Host::default();
        flow.wants.iter().enumerate().for_each(|(kind, wants)| own.add(*wants, kind, 1));
        own
    }

    /// Notes what a flow wants.
    pub fn set(&mut self, at: usize, kind: usize, wants: Wants) {
        let flow = *self.flow(at);
        let before = flow.wants[kind];
        if before == wants {
            return;
        }
        let mut host = self.host_of(&flow);
        self.sums.leave(&host);
        host.add(before, kind, -1);
        host.add(wants, kind, 1);
        self.sums.join(&host);
        if let Some(node) = self.nodes.get_mut(flow.node as usize) {
            *node = host;
        }
        self.flows[at].wants[kind] = wants;
    }

    /// Notes whose flow it is.
    pub fn set_node(&mut self, at: usize, node: NodeId) {
        let node = if node.0 < MAX_NODES { node.0 } else { NONE };
        let wants = self.flow(at).wants;
        (0..2).for_each(|kind| self.set(at, kind, Wants::Nothing));
        if node != NONE && node as usize >= self.nodes.len() {
            self.nodes.resize(node as usize + 1, Host::default());
        }
        self.flows[at].node = node;
        (0..2).for_each(|kind| self.set(at, kind, wants[kind]));
    }

    /// Returns the rate in thousandths of a byte per second that the flow shares with others of its host, and their number with
    /// it, if it could use what it gets and `others` more hosts sent.
    fn sharing(&self, at: usize, capacity: u64, others: u64, advised: Members) -> (u64, u64) {
        let flow = self.flows.get(at).copied().unwrap_or_default();
        let mut host = self.host_of(&flow);
        let mut sums = self.sums;
        sums.leave(&host);
        host.add(flow.wants[WINDOWS], WINDOWS, -1);
        let rest_of = Members { claims: sums.all.claims.saturating_mul(MILLI), ..sums.all }.and(advised);
        let capacity = capacity - self.taken.min(capacity / 4 * 3);
        let capacity = self.gain.of(capacity);
        let (rate, hosts) = rest(capacity, rest_of.n + 1 + others, rest_of.lacking, rest_of.claims);
        let claims = host.claims.saturating_mul(MILLI);
        rest(rate / hosts.max(1), u64::from(host.sending) + 1, u64::from(host.lacking), claims)
    }

    /// Notes that a packet of a flow left. Returns true if it was silent before.
    fn pass(&mut self, at: usize, now: Instant) -> bool {
        let place = self.measured.len() as u32;
        let flow = self.flow(at);
        flow.last = now;
        if flow.place != NONE {
            return flow.wants[WINDOWS] == Wants::Nothing;
        }
        (flow.place, flow.since, flow.patience) = (place, now, INTERVAL * SILENT);
        self.measured.push(at as u32);
        true
    }

    /// Notes a packet that left and that no window governs; `last` if nothing of its flow waits.
    fn measure(&mut self, packet: &Meta, last: bool, now: Instant) {
        let at = packet.flow.0 as usize;
        self.pass(at, now);
        let flow = self.flow(at);
        if now.since(flow.rest_at) > INTERVAL * SILENT {
            (flow.since, flow.emptied) = (now, last);
        }
        flow.rest_at = now;
        flow.emptied |= last;
        let took = now.since(flow.since);
        if flow.wants[REST] == Wants::Nothing {
            self.free += packet.size.get();
        }
        let flow = &mut self.flows[at];
        if took >= INTERVAL {
            let wants = if flow.emptied { Wants::Nothing } else { Wants::All };
            (flow.since, flow.emptied) = (now, last);
            self.set(at, REST, wants);
        }
    }

    /// Measures all together that no window governs and that does not wait for its turn.
    fn meter(&mut self, now: Instant) {
        let took = now.since(self.free_since);
        if took >= INTERVAL {
            let rate = (self.free as f64 * 1000.0 / took.as_secs_f64()) as u64;
            (self.taken, self.before) = (rate.midpoint(self.before), rate);
            (self.free, self.free_since) = (0, now);
        }
    }

    /// Looks at one of those measured: who is silent claims nothing.
    pub fn sweep(&mut self, now: Instant) {
        self.meter(now);
        let Some(at) = self.measured.get(self.look).copied() else {
            self.look = 0;
            return;
        };
        self.look += 1;
        if now.since(self.flows[at as usize].rest_at) > INTERVAL * SILENT {
            self.set(at as usize, REST, Wants::Nothing);
        }
        if now.since(self.flows[at as usize].last) <= self.flows[at as usize].patience {
            return;
        }
        self.look -= 1;
        self.measured.swap_remove(self.look);
        if let Some(moved) = self.measured.get(self.look) {
            self.flows[*moved as usize].place = self.look as u32;
        }
        self.flows[at as usize].place = NONE;
        (0..2).for_each(|kind| self.set(at as usize, kind, Wants::Nothing));
    }
}

/// How the segment that was shown last stands to its window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// New data within the window, in bytes, whose flow has rounds.
    Kept {
        /// The window that the flow was given last.
        window: u64,
        /// The share is less than a segment, and the host has more than one flow that sends.
        crowd: bool,
    },
    /// Data of a young connection.
    Young,
    /// A handshake, a first flight, a retransmission: TCP that windows govern.
    Within,
    /// What no window governs.
    Beyond,
}

impl Pink {
    /// Shares are those of hosts first; `with_young` says whether new connections have room beyond their share.
    #[must_use]
    pub fn among_hosts(mut self, with_young: bool) -> Self {
        self.hosts = Some(Box::new(Hosts { with_young, ..Hosts::default() }));
        self
    }

    /// Returns the level: the window that a flow would get if it could use it. A flow which does not count is treated
    /// as if it sent now; before its first data are acknowledged, flows which open at that time are included as well.
    /// The flow's own state and claim play no part.
    #[inline]
    pub(super) fn level_of(&self, id: usize, full: u64, rtt: Span) -> u64 {
        let flow = &self.flows[id];
        if self.hosts.is_some() {
            let expects = !self.counts(flow) && flow.flight() != Flight::Later;
            let others =
                if expects { self.census.expected().saturating_sub(u64::from(flow.listed.is_some())) } else { 0 };
            return self.level_among_hosts(id, others, full, rtt).unwrap_or(0);
        }
        if self.counts(flow) {
            return self.shares.level(flow.has(LACKING).then_some(flow.claim), rtt);
        }
        let own = u64::from(flow.listed.is_some());
        let others = if flow.flight() == Flight::Later { 0 } else { self.census.expected().saturating_sub(own) };
        self.shares.level_of_newcomer(others, rtt)
    }

    /// How many hosts' turns all governed flows have, in 1024ths.
    pub fn hosts_governed(&self) -> u64 {
        self.hosts.as_ref().map_or(0, |hosts| hosts.sums.governed)
    }

    /// Notes that nothing waits: the link is idle until a packet leaves.
    pub fn note_idle(&mut self, now: Instant) {
        if let Some(hosts) = &mut self.hosts {
            hosts.gain.empty(now);
        }
    }

    /// Notes that there was no room for data that windows govern.
    pub fn note_no_room(&mut self, now: Instant) {
        if let Some(hosts) = &mut self.hosts {
            hosts.gain.overflow(now);
        }
    }

    /// Notes a packet that left; `free` if no window governs it, `last` if nothing of its flow waits.
    pub fn note_left(&mut self, packet: &Meta, free: bool, last: bool, waits: u64, now: Instant) {
        let Some(hosts) = &mut self.hosts else { return };
        let Sums { all, governed } = hosts.sums;
        hosts.gain.busy(governed > 0 && all.n > all.lacking, waits, now);
        hosts.sweep(now);
        if packet.flow.0 >= self.config.max_flows {
            return;
        }
        if free {
            return hosts.measure(packet, last, now);
        }
        let id = packet.flow.0 as usize;
        let silent = hosts.pass(id, now);
        if silent && id < self.flows.len() {
            let patience = self.flows[id].round_trip().map_or(Span::ZERO, |rtt| rtt * 2);
            hosts.flows[id].patience = patience.max(INTERVAL * SILENT);
            self.note_wants(id);
        }
    }

    /// Keeps the sums of hosts up to date with what the windows of a flow can use.
    pub(super) fn note_wants(&mut self, id: usize) {
        let Some(hosts) = &mut self.hosts else { return };
        let flow = &self.flows[id];
        let wants = match flow.sends() && flow.phase == Phase::Open {
            false => Wants::Nothing,
            true if hosts.is_young(id) => Wants::Nothing,
            true if flow.has(LACKING) => Wants::Only(flow.claim.saturating_add(flow.claim / HEADERS)),
            true => Wants::All,
        };
        hosts.set(id, WINDOWS, wants);
    }

    /// Returns the level among hosts as a window; `None` if hosts do not count.
    pub(super) fn level_among_hosts(&self, id: usize, others: u64, full: u64, rtt: Span) -> Option<u64> {
        let hosts = self.hosts.as_ref()?;
        let (rate, flows) = hosts.sharing(id, self.shares.capacity, others, self.shares.advised);
        Some(window_of(ratio(rate, full, full + hosts.header), rtt, flows))
    }

    /// Returns how a packet stands to the window of its flow, if its segment was the last one shown.
    pub fn standing(&mut self, packet: &Meta) -> Standing {
        match self.standing.take() {
            Some((shown, payload, standing)) if shown == packet.flow => {
                if let Some(hosts) = self.hosts.as_mut().filter(|_| payload > 0) {
                    hosts.header = packet.size.get().saturating_sub(u64::from(payload));
                }
                standing
            }
            _ => Standing::Beyond,
        }
    }

    /// Notes how a segment that was shown stands to its window. `before` was the end of the data seen before.
    pub(super) fn note_standing(&mut self, id: usize, payload: u32, before: Option<u32>) {
        if self.hosts.is_none() {
            return;
        }
        let flow = &self.flows[id];
        let known = matches!(flow.phase, Phase::Open | Phase::Opening);
        let end = flow.probe.outbound_end();
        let allowed = self.hosts.as_mut().is_some_and(|hosts| hosts.is_allowed(id, end));
        let standing = if !known || payload == 0 && flow.phase == Phase::Open {
            Standing::Beyond
        } else if payload > 0 && self.hosts.as_ref().is_some_and(|hosts| hosts.is_young(id)) {
            Standing::Young
        } else if flow.flight() == Flight::None || payload == 0 {
            Standing::Within
        } else if end.is_some_and(|end| after(end, flow.edge)) && end != before && !allowed {
            Standing::Beyond
        } else if flow.flight() == Flight::Later && end != before && !flow.has(LACKING) {
            let several = || self.hosts.as_ref().is_some_and(|hosts| hosts.host_of(&hosts.flows[id]).sending > 1);
            let crowd = flow.has(SMALL) && several();
            Standing::Kept { window: flow.held().unwrap_or(0), crowd }
        } else {
            Standing::Within
        };
        self.standing = Some((FlowId(id as u32), payload, standing));
    }

    /// Begins a connection, whose sender was allowed to send up to `allowed` by a SYN-ACK that was not shown.
    pub(super) fn note_birth(&mut self, id: usize, ack: u32, allowed: u32) {
        if let Some(hosts) = &mut self.hosts {
            let young = hosts.with_young.then_some(ack);
            let unshown = (1..=MOST_OF_A_SYN).contains(&allowed.wrapping_sub(ack));
            let flow = hosts.flow(id);
            (flow.young, flow.allowed) = (young, unshown.then_some(allowed));
        }
        self.note_wants(id);
    }

    /// Half of the queue, or what the link sends in 100 ms if that is less.
    fn young_room(&self, full: u64) -> u64 {
        (self.queue_room(full) / 2).min(self.rate.bytes_in(INTERVAL).get())
    }

    /// Returns the window that a young connection gets in place of `granted`.
    pub(super) fn young_window(&mut self, id: usize, ack: u32, granted: u64, full: u64, unit: u64) -> u64 {
        let pool = self.young_room(full);
        let Some(hosts) = &mut self.hosts else { return granted };
        let Some(from) = hosts.flow(id).young else { return granted };
        hosts.take_back(id);
        let left = YOUNG.saturating_sub(ack.wrapping_sub(from));
        if left == 0 {
            hosts.flows[id].young = None;
            hosts.set(id, REST, Wants::Nothing);
            self.note_wants(id);
            return granted;
        }
        let window = u64::from(left).min(pool.saturating_sub(hosts.young) / PART);
        let window = up(window / full.max(1) * full, unit);
        if window <= granted {
            return granted;
        }
        hosts.flows[id].granted = window as u32;
        hosts.young += window;
        window
    }

    /// A connection has ended.
    pub(super) fn note_death(&mut self, id: usize) {
        if let Some(hosts) = self.hosts.as_mut().filter(|hosts| id < hosts.flows.len()) {
            hosts.take_back(id);
            hosts.flows[id].young = None;
        }
    }
}

impl Hosts {
    fn is_young(&self, at: usize) -> bool {
        self.flows.get(at).is_some_and(|flow| flow.young.is_some())
    }

    /// Returns whether a SYN-ACK that was not shown lets a flow send up to `end`, and forgets it when it does not.
    fn is_allowed(&mut self, at: usize, end: Option<u32>) -> bool {
        let Some(flow) = self.flows.get_mut(at) else { return false };
        flow.allowed = flow.allowed.filter(|allowed| end.is_none_or(|end| !after(end, *allowed)));
        flow.allowed.is_some()
    }

    fn take_back(&mut self, at: usize) {
        self.young -= u64::from(std::mem::take(&mut self.flows[at].granted));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ack_path::AckPath as _;
    use crate::packet::Ecn;
    use crate::units::Bytes;

    const LINK: u64 = 1_000_000 * MILLI;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(ms)
    }

    /// The rate of a flow in bytes per second.
    fn rate(hosts: &Hosts, flow: usize) -> u64 {
        let (rate, flows) = hosts.sharing(flow, LINK, 0, Members::default());
        rate / flows / MILLI
    }

    /// Host 0 has flow 0, host 1 has flows 1 to 4, and flow 5 is a host of its own: each host has a third.
    fn three_hosts() -> Hosts {
        let mut hosts = Hosts::default();
        (0..5).for_each(|flow| hosts.set_node(flow, NodeId(u32::from(flow > 0))));
        (0..6).for_each(|flow| hosts.set(flow, WINDOWS, Wants::All));
        hosts
    }

    #[test]
    fn each_host_has_the_same_and_each_flow_a_part_of_that() {
        let hosts = three_hosts();
        assert_eq!([0, 1, 4, 5].map(|flow| rate(&hosts, flow)), [333_333, 83_333, 83_333, 333_333]);
        assert_eq!(hosts.sums.governed, 3 * 1024);
        let (rate, flows) = hosts.sharing(6, LINK, 1, Members::default());
        assert_eq!(rate / flows / MILLI, 200_000, "a fourth host, and one more that is expected");
    }

    #[test]
    fn what_a_flow_cannot_use_is_for_its_host_and_what_a_host_cannot_use_is_for_others() {
        let mut hosts = three_hosts();
        hosts.set(1, WINDOWS, Wants::Only(30_000));
        assert_eq!([0, 2].map(|flow| rate(&hosts, flow)), [333_333, 101_111]);
        (2..5).for_each(|flow| hosts.set(flow, WINDOWS, Wants::Only(20_000)));
        assert_eq!([0, 5].map(|flow| rate(&hosts, flow)), [455_000, 455_000], "90 kB/s are claimed");
        assert_eq!(rate(&hosts, 2), 263_333, "its own claim plays no part: a third, less 70 kB/s");
        hosts.set_node(1, NodeId(7));
        assert_eq!(rate(&hosts, 0), 455_000, "the same claims, of two hosts");
        (0..6).for_each(|flow| hosts.set(flow, WINDOWS, Wants::Nothing));
        assert_eq!((hosts.sums.all, hosts.sums.governed), (Members::default(), 0));
        assert_eq!(rate(&hosts, 0), 1_000_000);
    }

    /// Packets of 1000 bytes each 2 ms, which leave nothing behind or always something.
    fn leave(hosts: &mut Hosts, flow: u32, last: bool, from: u64, to: u64) {
        let packet = Meta { size: Bytes::new(1000), ecn: Ecn::NotEct, flow: FlowId(flow) };
        for ms in (from..to).step_by(2) {
            hosts.sweep(at(ms));
            hosts.measure(&packet, last, at(ms));
        }
    }

    #[test]
    fn what_no_window_governs_is_measured_or_has_a_turn() {
        let mut hosts = three_hosts();
        leave(&mut hosts, 9, true, 0, 1000);
        assert_eq!(rate(&hosts, 0), 166_666, "500 kB/s never wait: the others share the rest");
        leave(&mut hosts, 9, false, 1000, 1900);
        assert_eq!(rate(&hosts, 0), 250_000, "it always waits: a fourth host");
        assert_eq!(hosts.sums.governed, 3 * 1024);
        hosts.set_node(9, NodeId(0));
        assert_eq!([rate(&hosts, 0), hosts.sums.governed], [166_666, 2560], "of host 0, half of whose turns it has");
        (1900..2400).for_each(|ms| hosts.sweep(at(ms)));
        assert_eq!(rate(&hosts, 0), 333_333, "it is silent");
    }

    #[test]
    fn who_sends_nothing_for_a_while_wants_nothing() {
        let mut hosts = three_hosts();
        assert!((0..6).all(|flow| hosts.pass(flow, at(0))));
        (0..600).for_each(|ms| {
            let _ = hosts.pass(5, at(ms));
            hosts.sweep(at(ms));
        });
        assert_eq!(hosts.sums.all, Members { n: 1, lacking: 0, claims: 0 });
        assert!(hosts.pass(0, at(600)) && !hosts.pass(5, at(600)), "who was silent is asked anew what it wants");
    }

    #[test]
    fn what_is_granted_to_young_connections_is_bounded_and_comes_back() {
        let mut pink =
            Pink::new(&super::super::Config::default(), crate::units::Rate::from_bps(10_000_000)).among_hosts(true);
        pink = pink.before(crate::units::Limit::Bytes(Bytes::new(100_000)));
        pink.flows.resize_with(300, Default::default);
        let mut all = 0;
        for id in 0..300 {
            pink.note_birth(id, 0, 0);
            all += pink.young_window(id, 0, 1000, 1000, 1).saturating_sub(1000);
        }
        // Half of the queue; the first has a fourth of that.
        assert!((30_000..=50_000).contains(&all), "{all}");
        assert_eq!(pink.young_window(0, YOUNG, 1000, 1000, 1), 1000, "it is of age");
        assert!(pink.young_window(299, 0, 1000, 1000, 1) >= 3000, "what it had is free");
        (0..300).for_each(|id| pink.note_death(id));
        assert_eq!(pink.hosts.as_ref().unwrap().young, 0);
    }

    /// A table of connections hides handshakes until data come. The SYN-ACK that it hid had a window of 65,535 bytes, so the sender
    /// may have more in flight than PINK lets it send from now on.
    #[test]
    fn what_a_syn_ack_that_was_not_shown_allows_is_not_beyond_the_window() {
        use crate::fact::{Fact, Greeting, Opening};
        use crate::judge::Aqm as _;
        use crate::packet::{PlainSegment, TcpFlags};
        let mut pink =
            Pink::new(&super::super::Config::default(), crate::units::Rate::from_bps(1_000_000)).among_hosts(false);
        let greeting = Greeting { isn: 0, end: 1, window_scale: Some(7), mss: Some(1460) };
        let time = Some(Span::from_millis(20));
        let (flow, opener, other) = (FlowId(0), greeting, greeting);
        let opening = Opening { flow, from_inside: true, opener, other, asked: time, answered: time };
        pink.on_fact(&Fact::Opened(opening), at(0));
        let mut standing = |from: u32, ms: u64| {
            let mut segment = PlainSegment { seq: from, payload_len: 1000, ..PlainSegment::new(flow, TcpFlags::ACK) };
            pink.outbound(&mut segment, at(ms));
            if from == 1 {
                let mut ack = PlainSegment { ack: 1001, window: 1000, ..PlainSegment::new(flow, TcpFlags::ACK) };
                pink.inbound(&mut ack, at(ms + 20));
                assert!(ack.window < 1000, "a share of a megabit is less");
            }
            pink.standing(&Meta { size: Bytes::new(1052), ecn: Ecn::NotEct, flow })
        };
        assert_eq!(standing(1, 40), Standing::Within);
        assert!((0..64).all(|n| standing(1001 + 1000 * n, 60) != Standing::Beyond));
        assert_eq!(standing(65_001, 61), Standing::Beyond, "nobody allowed this");
        assert_eq!(standing(30_000, 62), Standing::Within, "sent before");
    }
}
