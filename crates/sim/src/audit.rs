//! The audit of a run: it follows every packet through the measured queues, and reports what no discipline, no element
//! on the ACK path and no sender may do. A run without an audit pays one test for each packet.
//!
//! | rule | what is checked, and when |
//! |---|---|
//! | [`Rule::Origin`] | each packet that leaves, is dropped or is taken out has entered, is unchanged and ends once |
//! | [`Rule::Books`] | what waits, and the counters of the discipline, are what entered less what ended; after each packet |
//! | [`Rule::Limit`] | no more waits than the limit of the link allows; after each packet |
//! | [`Rule::Order`] | packets of a flow and direction leave in the order in which they entered |
//! | [`Rule::Idle`] | a discipline that is asked returns a packet if one waits |
//! | [`Rule::Ecn`] | the ECN field stays, or becomes CE if it was ECN-capable |
//! | [`Rule::Window`] | an element lowers a window or leaves it, and changes nothing else; it never sets zero |
//! | [`Rule::Drain`] | after the run a queue becomes empty, with one packet for each time that it is asked |
//! | [`Rule::Delivered`] | no flow delivers more than what of it has left the queue, or than its sender has sent |
//! | [`Rule::Summary`] | all numbers of the results are numbers, and none contradicts another |
//!
//! Two rules have exceptions, which `Promises` holds: DualPI2 has two queues, and its parameters say which ECN field belongs
//! to which, so it has an order for each (CE is that of ECT(1)); and a link whose stations have bad channels may be idle.

use crate::segment::Segment;
use penstock_core::packet::{Ecn, Packet, TcpFlags};
use penstock_core::qdisc::{Backlog, Stats};
use penstock_core::units::{Instant, Limit};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;

/// So many violations of each rule are kept: what breaks one often breaks it with every packet that follows.
const MOST: usize = 4;

/// A rule that every run keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// A packet ends as it entered, and once.
    Origin,
    /// The counters add up.
    Books,
    /// A queue keeps its limit.
    Limit,
    /// The packets of a flow keep their order.
    Order,
    /// A link is not idle while packets wait.
    Idle,
    /// Only ECN-capable packets are marked.
    Ecn,
    /// Windows are only lowered.
    Window,
    /// A queue becomes empty.
    Drain,
    /// Nothing is delivered that was not sent.
    Delivered,
    /// The results are numbers that do not contradict each other.
    Summary,
}

impl Rule {
    /// All rules.
    pub const ALL: [Self; 10] = [
        Self::Origin,
        Self::Books,
        Self::Limit,
        Self::Order,
        Self::Idle,
        Self::Ecn,
        Self::Window,
        Self::Drain,
        Self::Delivered,
        Self::Summary,
    ];

    /// Returns the name of the rule in outputs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Origin => "origin",
            Self::Books => "books",
            Self::Limit => "limit",
            Self::Order => "order",
            Self::Idle => "idle",
            Self::Ecn => "ecn",
            Self::Window => "window",
            Self::Drain => "drain",
            Self::Delivered => "delivered",
            Self::Summary => "summary",
        }
    }
}

/// A rule that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// The queue, or the part of the results.
    pub place: String,
    /// When it was noticed.
    pub at: Instant,
    /// What happened.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} at {:.9} s: {}", self.rule.name(), self.place, self.at.as_secs_f64(), self.message)
    }
}

/// What an audit has found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Audited {
    /// Packets that came to the measured queues.
    pub packets: u64,
    /// What broke a rule; the first of them, if there are many.
    pub violations: Vec<Violation>,
}

/// What a queue promises beyond what all do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Promises {
    /// The limit of the link.
    pub limit: Limit,
    /// It may be idle although packets wait.
    pub may_idle: bool,
    /// It keeps an order for each kind of traffic, L4S or classic, and not over both.
    pub order_by_kind: bool,
}

/// What of one flow and direction has left a queue.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Left {
    /// Payload in bytes, retransmissions included.
    pub bytes: u64,
    /// The sequence number of the first SYN, and how far beyond it the data that left reaches.
    begin: Option<u32>,
    reach: u32,
}

impl Left {
    /// Adds a packet that left.
    pub fn add(&mut self, packet: &Segment) {
        self.bytes += u64::from(packet.len);
        if packet.is_udp() {
            return;
        }
        if packet.flags.has(TcpFlags::SYN) {
            self.begin.get_or_insert(packet.seq);
        }
        if let Some(begin) = self.begin {
            let end = packet.seq.wrapping_add(u32::from(packet.len)).wrapping_sub(begin);
            if end < u32::MAX / 2 {
                self.reach = self.reach.max(end);
            }
        }
    }

    /// The most payload that a receiver of a TCP connection can have got in order.
    pub fn deliverable(&self) -> u64 {
        u64::from(self.reach.saturating_sub(1)).min(self.bytes)
    }
}

/// The books of one queue.
#[derive(Debug)]
pub(crate) struct Books {
    /// The name of the queue.
    pub name: String,
    /// What it promises.
    pub promises: Promises,
    /// The packets that wait, of each flow, direction and kind, in the order in which they entered.
    waiting: BTreeMap<u64, VecDeque<Segment>>,
    pub held: Backlog,
    /// What entered and ended, counted as the discipline counts it.
    pub entered: Backlog,
    pub sent: Backlog,
    pub dropped: Backlog,
    pub marked: u64,
    /// What has left, of each number that packets carry and from the side that opened the connection.
    pub left: BTreeMap<u32, Left>,
    /// Payload that left from the side that opened the connection, of all flows.
    pub payload: u64,
}

impl Books {
    fn new(name: String, promises: Promises) -> Self {
        Self {
            name,
            promises,
            waiting: BTreeMap::new(),
            held: Backlog::default(),
            entered: Backlog::default(),
            sent: Backlog::default(),
            dropped: Backlog::default(),
            marked: 0,
            left: BTreeMap::new(),
            payload: 0,
        }
    }

    fn key(&self, packet: &Segment, ecn: Ecn) -> u64 {
        let kind = match ecn {
            _ if !self.promises.order_by_kind => 0,
            Ecn::NotEct => 0,
            Ecn::Ect0 => 1,
            Ecn::Ect1 | Ecn::Ce => 2,
        };
        u64::from(packet.flow) << 3 | u64::from(packet.from_client()) << 2 | kind
    }

    /// Takes the packet out of those that wait; returns how it entered, and whether an older one of its flow waits.
    fn find(&mut self, packet: &Segment) -> Option<(Segment, bool)> {
        // A mark may have changed the kind.
        let keys = [packet.ecn(), Ecn::Ect0, Ecn::NotEct].map(|ecn| self.key(packet, ecn));
        let (key, place) = keys.into_iter().find_map(|key| {
            let place = self.waiting.get(&key)?.iter().position(|entered| is_same(entered, packet))?;
            Some((key, place))
        })?;
        let entered = self.waiting.get_mut(&key)?.remove(place)?;
        self.held.remove(entered.size());
        Some((entered, place > 0))
    }
}

/// True if a packet is the one that entered, apart from its ECN field.
fn is_same(entered: &Segment, packet: &Segment) -> bool {
    if entered.seq != packet.seq || entered.at != packet.at {
        return false;
    }
    let mut unmarked = *packet;
    unmarked.set_ecn(entered.ecn());
    unmarked.clear_marked();
    unmarked == *entered
}

/// The audit of one run.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    pub queues: Vec<Books>,
    /// Flows whose receivers acknowledge what they have not got.
    pub liars: Vec<u32>,
    /// True if links keep their rates and delays, and hosts their places.
    pub is_constant: bool,
    /// What broke a rule.
    pub found: Vec<Violation>,
}

impl Audit {
    /// Creates the audit of a run with these measured queues.
    pub fn new(queues: impl Iterator<Item = (String, Promises)>, liars: Vec<u32>, is_constant: bool) -> Self {
        Self {
            queues: queues.map(|(name, promises)| Books::new(name, promises)).collect(),
            liars,
            is_constant,
            ..Self::default()
        }
    }

    /// Notes that a rule was broken.
    pub fn report(&mut self, rule: Rule, place: &str, at: Instant, message: String) {
        if self.found.iter().filter(|one| one.rule == rule).count() < MOST {
            self.found.push(Violation { rule, place: place.to_owned(), at, message });
        }
    }

    /// Notes that a rule was broken at a queue.
    pub fn report_at(&mut self, queue: u32, rule: Rule, at: Instant, message: String) {
        let place = self.queues[queue as usize].name.clone();
        self.report(rule, &place, at, message);
    }

    fn books(&mut self, queue: u32) -> Option<&mut Books> {
        self.queues.get_mut(queue as usize)
    }

    /// An element on the ACK path was shown a segment and may have edited it.
    pub fn edited(&mut self, queue: u32, before: &Segment, after: &Segment, now: Instant) {
        if before == after || self.books(queue).is_none() {
            return;
        }
        let (came, set) = (before.window, after.window);
        if set > came || (set == 0 && came > 0) {
            let flow = before.flow;
            self.report_at(queue, Rule::Window, now, format!("the window of flow {flow} was {came} and became {set}"));
        }
        let mut as_it_came = *after;
        as_it_came.window = came;
        if as_it_came != *before {
            let message = format!("more than its window was changed: {before:?} became {after:?}");
            self.report_at(queue, Rule::Window, now, message);
        }
    }

    /// A packet is about to be given to the discipline.
    pub fn arrived(&mut self, queue: u32, packet: &Segment) {
        let Some(books) = self.books(queue) else { return };
        books.entered.add(packet.size());
        books.held.add(packet.size());
        let key = books.key(packet, packet.ecn());
        books.waiting.entry(key).or_default().push_back(*packet);
    }

    /// The discipline said that it dropped a packet.
    pub fn dropped(&mut self, queue: u32, packet: &Segment, now: Instant) {
        let Some(books) = self.books(queue) else { return };
        books.dropped.add(packet.size());
        match books.find(packet) {
            Some((entered, _)) => self.check_ecn(queue, &entered, packet, now),
            None => self.report_at(queue, Rule::Origin, now, format!("dropped what does not wait: {packet:?}")),
        }
    }

    /// The discipline said that it marked a packet.
    pub fn marked(&mut self, queue: u32) {
        if let Some(books) = self.books(queue) {
            books.marked += 1;
        }
    }

    /// The discipline was asked for a packet.
    pub fn asked(&mut self, queue: u32, answer: Option<&Segment>, now: Instant) {
        let Some(books) = self.books(queue) else { return };
        let Some(packet) = answer else {
            if books.held.packets > 0 && !books.promises.may_idle {
                let message = format!("no packet was returned while {} wait", books.held.packets);
                self.report_at(queue, Rule::Idle, now, message);
            }
            return;
        };
        books.sent.add(packet.size());
        if packet.from_client() {
            books.payload += u64::from(packet.len);
            books.left.entry(packet.flow).or_default().add(packet);
        }
        match books.find(packet) {
            Some((entered, overtakes)) => {
                self.check_ecn(queue, &entered, packet, now);
                if overtakes {
                    let message = format!("flow {} was reordered: {packet:?}", packet.flow);
                    self.report_at(queue, Rule::Order, now, message);
                }
            }
            None => self.report_at(queue, Rule::Origin, now, format!("sent what does not wait: {packet:?}")),
        }
    }

    /// Packets were taken out of the queue because their flows go on elsewhere.
    pub fn taken(&mut self, queue: u32, packets: &[Segment], now: Instant) {
        for packet in packets {
            let Some(books) = self.books(queue) else { return };
            books.entered.remove(packet.size());
            if books.find(packet).is_none() {
                self.report_at(queue, Rule::Origin, now, format!("took out what does not wait: {packet:?}"));
            }
        }
    }

    fn check_ecn(&mut self, queue: u32, entered: &Segment, packet: &Segment, now: Instant) {
        let (before, after) = (entered.ecn(), packet.ecn());
        if before != after && !(before.is_capable() && after == Ecn::Ce) {
            let message = format!("the ECN field of flow {} was {before:?} and became {after:?}", packet.flow);
            self.report_at(queue, Rule::Ecn, now, message);
        }
    }

    /// The discipline has done what it was asked for.
    pub fn settled(&mut self, queue: u32, backlog: Backlog, stats: &Stats, now: Instant) {
        let Some(books) = self.queues.get(queue as usize) else { return };
        let limit = books.promises.limit;
        let dropped = stats.dropped_early + stats.dropped_overflow + stats.dropped_dequeue;
        let arrived = Backlog {
            packets: stats.arrived.packets - stats.taken_out.packets,
            bytes: stats.arrived.bytes - stats.taken_out.bytes,
        };
        let counted = (backlog, arrived, stats.sent, dropped, stats.marked.packets);
        let seen = (books.held, books.entered, books.sent, books.dropped, books.marked);
        if counted != seen {
            let message =
                format!("waiting, entered, sent, dropped, marked: it counts {counted:?}, and there were {seen:?}");
            self.report_at(queue, Rule::Books, now, message);
        }
        if backlog.exceeds(limit) {
            self.report_at(queue, Rule::Limit, now, format!("{backlog:?} wait, and the limit is {limit}"));
        }
    }

    /// The queue was asked until it was to be empty.
    pub fn drained(&mut self, queue: u32, now: Instant) {
        let held = self.queues[queue as usize].held;
        if held.packets > 0 && !self.queues[queue as usize].promises.may_idle {
            self.report_at(queue, Rule::Drain, now, format!("{held:?} never leave"));
        }
    }
}
