//! The gateway G of C²LP: it admits clients, answers them, forgets them, and broadcasts the levels (docs/reference/c2lp.md).
//!
//! A [`Policy`] keeps the sums; the state of each client is in a table of fixed size. Invariants, for any messages in
//! any order and number: the budgets of the admitted clients add up to at most BW, and a message has an effect only
//! once.
//!
//! The rules, each a method:
//!
//! | message or event | reaction |
//! |---|---|
//! | hello without a state, or with a state of another gateway | an invitation; nothing is stored (as in SYN cookies) |
//! | hello with a fresh invitation | the client is admitted and replaces its earlier entry |
//! | request with the state it was sent last | the request is carried out and answered with the next state |
//! | request with the state before that one | the last answer was lost and is repeated |
//! | request with an older state | none: the request is late, or a replay |
//! | no message for a lease | the client is forgotten |
//!
//! A gateway that takes over begins with a *grace* period of one lease. During it the gateway invites the clients that
//! held a budget under the gateway before, gives none of them more than it had, and makes new clients wait, so that
//! there is room for budgets which it does not know of yet.
//!
//! DIFFERENCE: the source counts a client when its hello arrives, over TCP. Here a hello is first answered by an
//! invitation, so that replayed hellos have no effect (`a_replayed_hello_counts_for_nothing`).

mod table;

use super::keys::Keyring;
use super::message::{Answer, Levels, Message, Request};
use super::policy::{Assessment, Budgets, Policy};
use super::state::{CLASSES, Claim, NodeId, Share, Signed, State, Status, budget};
use crate::allocation::Kept;
use crate::config::ConfigError;
use crate::units::{Instant, Rate, Span};
use table::{Entry, Table};

/// Parameters of a gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// BW, the rate of the bottleneck.
    pub bandwidth: Rate,
    /// The policy by which the bottleneck is shared.
    pub policy: Policy,
    /// The largest number of clients.
    pub max_clients: u32,
    /// A client from which no message arrived for this time is forgotten.
    pub lease: Span,
    /// The interval at which unchanged levels are broadcast again.
    pub advertise: Span,
    /// The least interval between two broadcasts of changed levels.
    pub gap: Span,
    /// If true, only clients with a ticket are admitted. Otherwise a client without one is in the last class, with
    /// weight 1.
    pub tickets_only: bool,
    /// If true, a client that is admitted gets its answer together with the broadcast that makes room for it, at most `gap`
    /// later. Otherwise it has its budget before the others learn of it.
    pub together: bool,
}

impl Config {
    /// Creates a configuration with the defaults of docs/reference/c2lp.md for this bottleneck.
    pub fn new(bandwidth: Rate, policy: Policy) -> Self {
        Self {
            bandwidth,
            policy,
            max_clients: 10_000,
            lease: Span::from_secs(10),
            advertise: Span::from_secs(1),
            gap: Span::from_millis(10),
            tickets_only: false,
            together: false,
        }
    }

    /// Refuses parameters that do not work.
    ///
    /// # Errors
    /// Names the first parameter that is out of its range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.policy.validate()?;
        if !(1..=1 << 20).contains(&self.max_clients) {
            return Err(ConfigError::new("max_clients", "must be 1 to 1048576"));
        }
        if !(Span::from_millis(100)..=Span::from_secs(3600)).contains(&self.lease) {
            return Err(ConfigError::new("lease", "must be 100ms to 1h; the default is 10s"));
        }
        if self.advertise < Span::from_millis(10) || self.advertise > self.lease {
            return Err(ConfigError::new("advertise", "must be 10ms to the lease; the default is 1s"));
        }
        if self.gap > self.advertise {
            return Err(ConfigError::new("gap", "must not be longer than advertise; the default is 10ms"));
        }
        Ok(())
    }
}

/// What a gateway assumes about earlier gateways when it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// No client holds a budget yet.
    Fresh,
    /// There was a gateway before: this one before a restart, or the one that it replaces.
    TakingOver,
}

/// The destination of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum To {
    /// One node.
    Node(NodeId),
    /// All nodes: by broadcast, or over each connection.
    Everyone,
}

/// A message to be sent, with its destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outgoing {
    /// The destination.
    pub to: To,
    /// The message.
    pub message: Message,
}

/// Counters of the messages handled since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct Counters {
    /// Clients that were admitted.
    pub joined: u64,
    /// Clients that said goodbye.
    pub left: u64,
    /// Clients that were forgotten because their lease ended.
    pub lapsed: u64,
    /// Requests whose answer was repeated.
    pub repeated: u64,
    /// Requests that were too old to have an effect.
    pub stale: u64,
    /// States that no key of this gateway signed, or that belong to another node.
    pub forged: u64,
    /// Clients that were refused because the table was full or they had no ticket.
    pub refused: u64,
    /// Messages of a type that a gateway does not expect.
    #[serde(skip)]
    pub ignored: u64,
}

/// The gateway G of C²LP.
#[derive(Debug, Clone)]
pub struct Gateway {
    config: Config,
    ring: Keyring,
    budgets: Budgets,
    table: Table,
    clients: u32,
    seq: u64,
    levels: Levels,
    told: Instant,
    /// True if the levels changed since the last broadcast.
    due: bool,
    /// True if the sums changed since the levels were computed.
    dirty: bool,
    sweep: Instant,
    /// Clients that were admitted, and their requests, which are answered with the next broadcast.
    waiting: Vec<(NodeId, u64)>,
    /// The end of the grace period, during which the levels stay below the ceiling.
    grace: Option<Instant>,
    ceiling: [u64; CLASSES],
    retired: bool,
    counters: Counters,
}

impl Gateway {
    /// Creates a gateway that signs states with `ring`. `incarnation` must be larger than that of any earlier gateway
    /// on this network; the time of day in nanoseconds is suitable.
    ///
    /// # Errors
    /// Names the first parameter that is out of its range.
    pub fn new(
        config: Config,
        ring: Keyring,
        incarnation: u64,
        start: Start,
        now: Instant,
    ) -> Result<Self, ConfigError> {
        config.validate()?;
        let budgets = Budgets::new(config.policy, config.bandwidth);
        let levels = Levels { incarnation, seq: 1, levels: [config.bandwidth.as_bps(); CLASSES], kept: Kept::ALL };
        Ok(Self {
            table: Table::new(config.max_clients),
            budgets,
            ring,
            clients: 0,
            seq: 0,
            levels,
            told: now,
            due: true,
            dirty: true,
            sweep: now + config.lease.div(8),
            waiting: Vec::with_capacity(if config.together { config.max_clients as usize } else { 0 }),
            grace: (start == Start::TakingOver).then_some(now + config.lease),
            ceiling: [u64::MAX; CLASSES],
            retired: false,
            counters: Counters::default(),
            config,
        })
    }

    /// Places clients in their table by a hash with this secret key, so that nobody can choose ids that crowd out
    /// another one. To be called before the first message.
    #[must_use]
    pub fn with_table_key(mut self, key: [u64; 2]) -> Self {
        self.table.set_key(key);
        self
    }

    /// Number of clients that hold a budget.
    pub fn clients(&self) -> u32 {
        self.clients
    }

    /// Counters since the start.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// BW, the rate of the bottleneck.
    pub fn bandwidth(&self) -> Rate {
        self.budgets.bandwidth()
    }

    /// The levels of all classes, as they are broadcast.
    pub fn levels(&self) -> &Levels {
        &self.levels
    }

    /// True after another gateway with a larger incarnation was heard; this gateway sends nothing from then on.
    pub fn is_retired(&self) -> bool {
        self.retired
    }

    /// Memory in bytes, which does not depend on the number of clients.
    pub fn memory(&self) -> usize {
        let waiting = self.waiting.capacity() * size_of::<(NodeId, u64)>();
        size_of::<Self>() + self.table.memory() + self.budgets.memory() + waiting
    }

    /// The sum of the budgets of all clients at the current levels, in bits per second: at most BW. Visits each client.
    pub fn granted(&self) -> u64 {
        let mut budgets = self.budgets.clone();
        let levels = self.capped(budgets.levels());
        let kept = budgets.kept();
        let held = self.table.iter().filter_map(|entry| {
            entry
                .assessment
                .map(|assessment| budget(entry.share, assessment.claim, levels[usize::from(entry.share.class)], kept))
        });
        held.sum()
    }

    /// The budget of a client in bits per second; `None` if it holds none.
    pub fn granted_to(&mut self, node: NodeId) -> Option<u64> {
        self.reckon();
        let entry = (*self.table.find(node)?)?;
        let level = self.levels.levels[usize::from(entry.share.class)];
        entry.assessment.map(|assessment| budget(entry.share, assessment.claim, level, self.levels.kept))
    }

    /// The sum of all floors, in bits per second; no more of a floor counts than the client claims.
    pub fn floors(&self) -> u64 {
        self.budgets.floors()
    }

    /// The share as it counts here: with the floor of its class if it has none of its own.
    pub fn counted(&self, share: Share) -> Share {
        self.budgets.counted(share)
    }

    /// Signs states with a new key from now on; states signed with the last key stay valid until the next rotation.
    pub fn rotate_key(&mut self, id: u8, key: &super::keys::Key) {
        self.ring.rotate(id, key);
    }

    /// Sets the rate of the bottleneck.
    pub fn set_bandwidth(&mut self, bandwidth: Rate, now: Instant, out: &mut Vec<Outgoing>) {
        self.budgets.set_bandwidth(bandwidth);
        self.dirty = true;
        self.tell(now, out);
    }

    /// Processes a message from the node `from` and appends the messages to send to `out`.
    pub fn handle(&mut self, message: &Message, from: NodeId, now: Instant, out: &mut Vec<Outgoing>) {
        if self.retired {
            return;
        }
        match message {
            Message::ClientHello { node, ask, state } if *node == from => self.hello(*node, *ask, state, now, out),
            Message::UsedBw(request, claim) if request.node == from => self.used(request, *claim, now, out),
            Message::ClientBye(request) if request.node == from => self.bye(request, now),
            Message::AvailBw(levels) if levels.incarnation > self.levels.incarnation => self.retired = true,
            _ => self.counters.ignored += 1,
        }
        self.tell(now, out);
    }

    /// Does what is due at `now`: forgets clients and broadcasts levels.
    pub fn poll(&mut self, now: Instant, out: &mut Vec<Outgoing>) {
        if self.retired {
            return;
        }
        if self.grace.is_some_and(|until| until <= now) {
            (self.grace, self.ceiling, self.dirty) = (None, [u64::MAX; CLASSES], true);
        }
        if self.sweep <= now {
            self.forget(now);
            self.sweep = now + self.config.lease.div(8);
        }
        self.due |= self.told + self.config.advertise <= now;
        self.tell(now, out);
    }

    /// The time of the next call of [`Gateway::poll`]. Each call of a method may change it.
    pub fn next_timeout(&self) -> Option<Instant> {
        if self.retired {
            return None;
        }
        let soon = self.due || self.dirty || !self.waiting.is_empty();
        let wait = if soon { self.config.gap } else { self.config.advertise };
        Some(self.sweep.min(self.told + wait).min(self.grace.unwrap_or(Instant::MAX)))
    }

    fn hello(&mut self, node: NodeId, ask: u64, state: &Option<Signed>, now: Instant, out: &mut Vec<Outgoing>) {
        let Some(signed) = state else {
            if self.config.tickets_only {
                self.counters.refused += 1;
                return;
            }
            return self.invite(&State::ticket(node, Share::default()), ask, now, out);
        };
        let Some(state) = self.genuine(signed, node) else { return };
        let ours = state.incarnation == self.levels.incarnation;
        match state.status {
            Status::Invited if ours && now <= state.until => self.admit(&state, ask, now, out),
            _ => self.invite(&state, ask, now, out),
        }
    }

    /// The state in `signed`, if one of this gateway's keys signed it for this node.
    fn genuine(&mut self, signed: &Signed, node: NodeId) -> Option<State> {
        let genuine = signed.is_genuine(&self.ring) && signed.state().node == node;
        self.counters.forged += u64::from(!genuine);
        genuine.then_some(*signed.state())
    }

    /// Invites a client, which proves with its next hello that it is alive. What the client held under another gateway
    /// is part of the invitation; what it held under this gateway is lost.
    fn invite(&mut self, state: &State, ask: u64, now: Instant, out: &mut Vec<Outgoing>) {
        let held = state.incarnation != self.levels.incarnation && state.status != Status::Ticket;
        let (claim, level) = if held { (state.claim, state.level) } else { (Claim::ALL, u64::MAX) };
        let share = self.budgets.counted(state.share);
        let next = State { share, status: Status::Invited, claim, level, ..*state };
        let next = self.stamp(next, now + self.config.lease);
        out.push(self.answer(next, ask, Message::AckHello));
    }

    /// Processes a hello with an invitation of this gateway: admits the client.
    fn admit(&mut self, state: &State, ask: u64, now: Instant, out: &mut Vec<Outgoing>) {
        let waits = self.grace.is_some() && state.level == u64::MAX;
        let full = self.clients >= self.config.max_clients;
        let Some(place) = self.table.find(state.node) else {
            self.counters.refused += 1;
            return;
        };
        let found = *place;
        match found {
            Some(entry) if entry.before == state.seq && entry.assessment.is_some() => {
                // It asks again before its answer was due.
                if let Some((_, waiting)) = self.waiting.iter_mut().find(|(node, _)| *node == entry.node) {
                    *waiting = ask;
                    return;
                }
                return self.repeat(&entry, ask, Message::AckHello, out);
            }
            Some(entry) if entry.before == state.seq || state.seq <= entry.seq => {
                self.counters.stale += 1;
                return;
            }
            _ if waits => return,
            Some(Entry { share, assessment: Some(assessment), .. }) => self.drop_assessment(share, assessment),
            _ if full => {
                self.counters.refused += 1;
                return;
            }
            _ => {}
        }
        let ceiling = &mut self.ceiling[usize::from(state.share.class)];
        *ceiling = (*ceiling).min(state.level);
        let assessment = self.budgets.join(state.share, Assessment { status: Status::Good, claim: state.claim });
        (self.dirty, self.clients) = (true, self.clients + 1);
        self.counters.joined += 1;
        let next =
            self.stamp(State { status: assessment.status, claim: assessment.claim, ..*state }, now + self.config.lease);
        self.remember(&next, state.seq, assessment);
        self.waiting.retain(|(node, _)| *node != state.node);
        let room = self.waiting.len() < self.config.max_clients as usize;
        if self.config.together && room && now < self.told + self.config.gap {
            self.waiting.push((state.node, ask));
        } else {
            out.push(self.answer(next, ask, Message::AckHello));
        }
    }

    /// Processes USED_BW: the client reports what it can use, or only renews its lease.
    fn used(&mut self, request: &Request, claim: Claim, now: Instant, out: &mut Vec<Outgoing>) {
        let Some(state) = self.genuine(&request.state, request.node) else { return };
        if state.incarnation != self.levels.incarnation || !matches!(state.status, Status::Good | Status::Bad) {
            return self.invite(&state, request.ask, now, out);
        }
        let Some(entry) = self.table.find(state.node).and_then(|place| *place) else {
            return self.invite(&state, request.ask, now, out);
        };
        match entry.assessment {
            Some(assessment) if entry.seq == state.seq => {
                let before = assessment;
                let assessment = self.budgets.used(entry.share, before, claim);
                self.dirty |= assessment != before;
                let next = State { status: assessment.status, claim: assessment.claim, ..state };
                let next = self.stamp(next, now + self.config.lease);
                self.remember(&next, state.seq, assessment);
                out.push(self.answer(next, request.ask, Message::AckUsed));
            }
            Some(_) if entry.before == state.seq => self.repeat(&entry, request.ask, Message::AckUsed, out),
            _ => self.counters.stale += 1,
        }
    }

    /// Processes a goodbye. The client's budget is free at once; its entry stays as long as old messages of it may
    /// arrive.
    fn bye(&mut self, request: &Request, now: Instant) {
        let Some(state) = self.genuine(&request.state, request.node) else { return };
        let until = now + self.config.lease;
        let current = state.incarnation == self.levels.incarnation;
        let Some(Some(entry)) = self.table.find(state.node).filter(|_| current) else { return };
        let Some(assessment) = entry.assessment.filter(|_| entry.seq == state.seq || entry.before == state.seq) else {
            self.counters.stale += 1;
            return;
        };
        (entry.assessment, entry.until) = (None, until);
        let share = entry.share;
        self.drop_assessment(share, assessment);
        self.counters.left += 1;
    }

    fn drop_assessment(&mut self, share: Share, assessment: Assessment) {
        self.budgets.leave(share, assessment);
        self.clients -= 1;
        self.dirty = true;
    }

    /// Forgets the clients whose lease ended.
    fn forget(&mut self, now: Instant) {
        let (budgets, mut gone) = (&mut self.budgets, 0);
        self.table.sweep(now, |entry| {
            if let Some(assessment) = entry.assessment {
                budgets.leave(entry.share, assessment);
                gone += 1;
            }
        });
        self.clients -= gone;
        self.counters.lapsed += u64::from(gone);
        self.dirty |= gone > 0;
    }

    /// The next state of a client, with the next sequence number.
    fn stamp(&mut self, state: State, until: Instant) -> State {
        self.seq += 1;
        State { seq: self.seq, incarnation: self.levels.incarnation, until, ..state }
    }

    fn remember(&mut self, state: &State, before: u64, assessment: Assessment) {
        let (node, share, seq, until) = (state.node, state.share, state.seq, state.until);
        if let Some(place) = self.table.find(node) {
            *place = Some(Entry { node, share, assessment: Some(assessment), seq, before, until });
        }
    }

    /// Repeats the answer to a request that was answered before, without a further effect.
    fn repeat(&mut self, entry: &Entry, ask: u64, kind: fn(Answer) -> Message, out: &mut Vec<Outgoing>) {
        self.counters.repeated += u64::from(entry.assessment.is_some());
        self.answer_as_stored(entry, ask, kind, out);
    }

    /// Answers a request by what is stored of its client.
    fn answer_as_stored(&mut self, entry: &Entry, ask: u64, kind: fn(Answer) -> Message, out: &mut Vec<Outgoing>) {
        let Entry { node, share, assessment, seq, until, .. } = *entry;
        let Some(assessment) = assessment else { return };
        let (status, claim, incarnation) = (assessment.status, assessment.claim, self.levels.incarnation);
        let state = State { node, share, status, claim, level: 0, until, seq, incarnation };
        out.push(self.answer(state, ask, kind));
    }

    /// Signs a state with the current level, unless the client holds nothing.
    fn answer(&mut self, state: State, ask: u64, kind: fn(Answer) -> Message) -> Outgoing {
        self.reckon();
        let level = self.levels.levels[usize::from(state.share.class)];
        let level = if state.status == Status::Invited { state.level } else { level };
        let signed = State { level, ..state }.sign(&self.ring);
        let levels = if state.share.floor.as_bps() > 0 { self.levels } else { self.levels.without_floors() };
        let answer = Answer { node: state.node, ask, state: signed, levels, lease: self.config.lease };
        Outgoing { to: To::Node(state.node), message: kind(answer) }
    }

    /// Computes the levels from the sums, if the sums changed.
    fn reckon(&mut self) {
        if !std::mem::take(&mut self.dirty) {
            return;
        }
        let fresh = self.budgets.levels();
        let (levels, kept) = (self.capped(fresh), self.budgets.kept());
        if (levels, kept) != (self.levels.levels, self.levels.kept) {
            (self.levels.levels, self.levels.kept) = (levels, kept);
            self.levels.seq += 1;
            self.due = true;
        }
    }

    fn capped(&self, levels: [u64; CLASSES]) -> [u64; CLASSES] {
        std::array::from_fn(|class| levels[class].min(self.ceiling[class]))
    }

    /// Broadcasts the levels, if that is due.
    fn tell(&mut self, now: Instant, out: &mut Vec<Outgoing>) {
        if now < self.told + self.config.gap || self.retired {
            return;
        }
        self.reckon();
        if std::mem::take(&mut self.due) {
            self.told = now;
            out.push(Outgoing { to: To::Everyone, message: Message::AvailBw(self.levels) });
        }
        for at in 0..self.waiting.len() {
            let (node, ask) = self.waiting[at];
            if let Some(entry) = self.table.find(node).and_then(|place| *place) {
                self.answer_as_stored(&entry, ask, Message::AckHello, out);
            }
        }
        self.waiting.clear();
    }
}
