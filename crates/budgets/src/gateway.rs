//! The gateway's side: the state machine of C²LP behind sessions, without a socket.
//!
//! | who | may |
//! |---|---|
//! | a node of the roster | send CLIENT_HELLO, USED_BW and CLIENT_BYE in its own name |
//! | the holder of a token | send ENROL |
//! | anybody else | nothing: the handshake fails |
//!
//! What nodes say never makes a gateway retire, and a node cannot take part under a second number.

mod sessions;

use self::sessions::Sessions;
use crate::endpoint::{self, Close, Endpoint, Event, Id};
use crate::error::Error;
use crate::frame::{Enrolled, Frame};
use crate::identity::Public;
use crate::roster::{self, Member, Roster};
use crate::tls::{self, Door, Peer};
use bytes::Bytes;
use penstock_core::config::ConfigError;
use penstock_core::coop::gateway::{Config, Counters, Gateway, Outgoing, Start, To};
use penstock_core::coop::message::{Message, encode_in_session};
use penstock_core::coop::policy::Policy;
use penstock_core::coop::state::State;
use penstock_core::coop::{Keyring, NodeId};
use penstock_core::units::{Instant, Rate, Span};
use penstock_linux::random;
use penstock_linux::udp::Side;
use serde::Serialize;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Number of events that are kept for a log.
const MOST_EVENTS: usize = 256;

/// The least time between two broadcasts, for each node that hears them: many nodes that join at once must not keep the
/// gateway busy with levels that are old a moment later.
const EACH: Span = Span::from_micros(100);
/// The longest time between two changes of levels that are sent: what joins within it is told at once.
pub(crate) const GAP: Span = Span::from_millis(20);

/// How often those who have enrolled are counted: the operator may have removed some.
const COUNTED: Span = Span::from_secs(5);

/// The longest time between two signs of life: half of what ends a session.
const LONGEST_SILENCE: Span = Span::from_secs(5);

/// What a gateway of hosts is set to, with the defaults, for the rate that is shared. Only nodes of its roster have tickets.
pub fn defaults(rate: Rate) -> Config {
    let (lease, advertise) = (Span::from_secs(3), Span::from_millis(500));
    let config = Config::new(rate, Policy::default());
    Config { max_clients: 1000, lease, advertise, gap: GAP, tickets_only: true, together: true, ..config }
}

/// Refuses values that do not work. The error names the first key that is out of its range.
pub fn validate(config: &Config) -> Result<(), ConfigError> {
    if config.lease > crate::agent::LONGEST_LEASE {
        return Err(ConfigError::new("lease", "must be 100ms to 1min: nodes believe no longer one"));
    }
    if config.advertise > LONGEST_SILENCE {
        return Err(ConfigError::new("advertise", "must be 10ms to 5s, or nodes would think that the gateway is gone"));
    }
    config.validate()
}

/// What is refused, counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Refused {
    /// Messages in the name of another node.
    pub other_names: u64,
    /// Messages that only a gateway sends, such as levels.
    pub not_theirs: u64,
    /// Frames that are none.
    pub malformed: u64,
    /// Enrolments with a token that was used up in the meantime, or by a node.
    pub enrolments: u64,
}

/// The budget of a node, and where it sends from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// The number of the node.
    pub node: u32,
    /// The address of its session, or of its last one while its lease goes on.
    pub address: IpAddr,
    /// Its budget.
    pub budget: Rate,
}

/// What a node has, as the status tells it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NodeStatus {
    /// The number of the node.
    pub node: u32,
    /// Its name.
    pub name: String,
    /// Its priority class.
    pub class: u8,
    /// Its weight.
    pub weight: u16,
    /// Its floor in bits per second, its own or that of its class; 0 if it has none.
    pub floor_bps: u64,
    /// Its budget in bits per second; `None` if it has not joined.
    pub budget_bps: Option<u64>,
    /// What it says that it can use; `None` if that is all it gets.
    pub claim_bps: Option<u64>,
    /// Its address.
    pub address: Option<SocketAddr>,
    /// Its round trip time in milliseconds.
    pub rtt_ms: Option<f64>,
    /// For how long it has its session, in seconds.
    pub since_s: f64,
}

/// An identity that two hosts use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Contested {
    /// The number of the node.
    pub node: u32,
    /// Its name.
    pub name: String,
    /// Who has its budget.
    pub holder: Option<SocketAddr>,
    /// Who was refused.
    pub refused: SocketAddr,
}

/// The status.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Status {
    /// The rate that is shared, in bits per second.
    pub rate_bps: u64,
    /// False for a standby that waits.
    pub serves: bool,
    /// The sum of all budgets in bits per second.
    pub granted_bps: u64,
    /// The sum of all floors in bits per second; if it exceeds what is shared, floors are cut.
    pub floors_bps: u64,
    /// Number of nodes that have enrolled and were not removed; it may be some seconds old.
    pub enrolled: usize,
    /// Number of nodes that hold a budget.
    pub holders: u32,
    /// Bytes of the tables of the state machine, which do not grow.
    pub table_bytes: usize,
    /// The nodes that have a session, in the order of their numbers.
    pub nodes: Vec<NodeStatus>,
    /// Identities that two hosts use: one of them has the budget.
    pub contested: Vec<Contested>,
    /// What sessions count.
    pub sessions: endpoint::Counters,
    /// What was refused of those who may be here.
    pub refused: Refused,
    /// Nodes that joined, left, lapsed, and what was repeated, stale, forged or refused.
    pub messages: Counters,
}

/// Who may be here, by the roster and its keys.
#[derive(Debug)]
struct Register {
    roster: Roster,
    door: Arc<Door>,
    ring: Keyring,
    /// How many have enrolled, and when they are to be counted anew.
    enrolled: (usize, Instant),
}

impl Register {
    fn new(roster: Roster, now: Instant) -> Result<Self, rustls::Error> {
        let (door, ring) = (Arc::new(Door::new(roster.clone())?), roster.keyring());
        Ok(Self { roster, door, ring, enrolled: (0, now) })
    }

    /// The state machine, whose table nobody can fill by chosen numbers.
    fn machine(&self, config: Config, number: u64, start: Start, now: Instant) -> Result<Gateway, ConfigError> {
        let key = self.roster.derived("table of nodes");
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| key[at + i]));
        let machine = Gateway::new(config, self.ring.clone(), number, start, now)?;
        Ok(machine.with_table_key([word(0), word(8)]))
    }

    /// Makes a node of who holds a token; returns its number and what it is told.
    fn enrol(&mut self, token: &Public, key: &Public, name: &str, now: Instant) -> Result<(u32, Frame), roster::Error> {
        let (Member { node, share, .. }, certificate) = self.roster.enrol(token, key, name)?;
        let ticket = State::ticket(NodeId(node), share).sign(&self.ring);
        let hello = Message::ClientHello { node: NodeId(node), ask: 0, state: Some(ticket) };
        let authority = self.roster.authority().clone();
        self.enrolled.1 = now;
        Ok((node, Frame::Enrolled(Enrolled { certificate, authority, hello })))
    }

    /// How many have enrolled, as of the last count.
    fn enrolled(&mut self, now: Instant) -> usize {
        if self.enrolled.1 <= now {
            self.enrolled = (self.roster.enrolled().unwrap_or(self.enrolled.0), now + COUNTED);
        }
        self.enrolled.0
    }
}

/// The newest levels, for nodes without and with a floor, if nodes have not been told yet, and when they may be told.
#[derive(Debug)]
struct Levels {
    newest: Option<[Bytes; 2]>,
    next: Instant,
}

impl Levels {
    fn due(&self) -> Option<Instant> {
        self.newest.as_ref().map(|_| self.next)
    }

    /// Returns the levels if so many nodes may be told now.
    fn take(&mut self, nodes: usize, now: Instant) -> Option<[Bytes; 2]> {
        let levels = if now >= self.next { self.newest.take() } else { None };
        if levels.is_some() {
            self.next = now + EACH * nodes as u64;
        }
        levels
    }
}

/// A gateway for real hosts.
pub struct Role {
    config: Config,
    machine: Gateway,
    /// False for a standby while the gateway before it is there.
    serves: bool,
    endpoint: Endpoint,
    register: Register,
    sessions: Sessions,
    levels: Levels,
    refused: Refused,
    events: VecDeque<String>,
    out: Vec<Outgoing>,
    buffer: Vec<u8>,
}

impl Role {
    /// Creates the role from its directory. `now` begins the grace period after a restart. Fails if a value does not work,
    /// or the directory cannot be used.
    pub fn new(config: Config, roster: Roster, now: Instant) -> Result<Self, Error> {
        validate(&config)?;
        let incarnation = roster.next_incarnation()?;
        let start = if incarnation == 1 { Start::Fresh } else { Start::TakingOver };
        let register = Register::new(roster, now)?;
        let machine = register.machine(config.clone(), incarnation, start, now)?;
        let tls = tls::server(&register.roster, register.door.clone())?;
        let resets = register.roster.derived("stateless resets");
        Ok(Self {
            machine,
            serves: true,
            endpoint: Endpoint::server(tls, &resets, config.max_clients as usize),
            config,
            register,
            sessions: Sessions::default(),
            levels: Levels { newest: None, next: now },
            refused: Refused::default(),
            events: VecDeque::new(),
            out: Vec::new(),
            buffer: Vec::new(),
        })
    }

    /// Serves in place of a gateway that is gone, or becomes a standby that waits: then nodes are sent away, and nobody has a budget
    /// here any more. When it serves again a grace period begins, in which nodes come with their states. Fails if there are
    /// no random numbers, or the number of this start cannot be kept.
    pub fn serve(&mut self, serves: bool, now: Instant) -> Result<(), Error> {
        if std::mem::replace(&mut self.serves, serves) == serves {
            return Ok(());
        }
        if !serves {
            self.sessions.clear().into_iter().for_each(|id| self.endpoint.close(id, Close::Standby, now));
        }
        self.begin(now)?;
        self.note(match serves {
            true => "the gateway before this one does not answer: this one serves in its place".into(),
            false => "the gateway before this one is there: nodes are sent to it".into(),
        });
        Ok(())
    }

    /// False for a standby that waits.
    pub fn serves(&self) -> bool {
        self.serves
    }

    /// Begins with an empty table, under a number that no start of another gateway has.
    fn begin(&mut self, now: Instant) -> Result<(), Error> {
        let chance = random::bytes().map_err(crate::identity::Error::Random)?;
        let count = self.register.roster.next_incarnation()? & u64::from(u32::MAX);
        let number = 1 << 63 | u64::from(u32::from_le_bytes(chance) >> 1) << 32 | count;
        let config = Config { bandwidth: self.machine.bandwidth(), ..self.config.clone() };
        self.machine = self.register.machine(config, number, Start::TakingOver, now)?;
        self.levels = Levels { newest: None, next: now };
        self.out.clear();
        Ok(())
    }

    /// Shares another rate from now on.
    pub fn set_rate(&mut self, rate: Rate, now: Instant) {
        if self.machine.bandwidth() != rate {
            self.machine.set_bandwidth(rate, now, &mut self.out);
            self.work(now);
        }
    }

    /// The next thing that a log should tell.
    pub fn event(&mut self) -> Option<String> {
        self.events.pop_front()
    }

    /// Notes what a log should tell. What peers say of themselves moves no cursor of whoever reads it.
    fn note(&mut self, what: String) {
        if self.events.len() < MOST_EVENTS {
            self.events.push_back(what.replace(char::is_control, "?"));
        }
    }

    fn work(&mut self, now: Instant) {
        while let Some(event) = self.endpoint.event() {
            match event {
                Event::Connected(id) => self.connected(id, now),
                Event::Frame(id, bytes) => self.frame(id, &bytes, now),
                Event::Datagram(id, _) => self.endpoint.close(id, Close::Malformed, now),
                Event::Lost(id, why, _) => self.lost(id, &why),
            }
        }
        self.send(now);
    }

    /// A session is there: its peer is looked up once more, as the roster may have changed during the handshake.
    fn connected(&mut self, id: Id, now: Instant) {
        let Some(peer) = self.endpoint.certificate(id).and_then(|certificate| self.register.door.who(&certificate))
        else {
            return self.endpoint.close(id, Close::Refused, now);
        };
        if !self.serves {
            return self.endpoint.close(id, Close::Standby, now);
        }
        if let Peer::Node(member) = &peer {
            let (remote, holds) = (self.endpoint.remote(id), self.machine.granted_to(NodeId(member.node)).is_some());
            if let Some(first) = remote.filter(|_| holds).and_then(|from| self.sessions.refuses(member, from, now)) {
                if first {
                    self.note(format!("node {} ({:?}) also asks from another host", member.node, member.name));
                }
                return self.endpoint.close(id, Close::Elsewhere, now);
            }
            if let Some(before) = self.sessions.begin(id, member, remote, now) {
                self.endpoint.close(before, Close::Replaced, now);
            } else {
                self.note(format!("node {} ({:?}) is here", member.node, member.name));
            }
        }
        self.sessions.peers.insert(id, peer);
    }

    fn lost(&mut self, id: Id, why: &str) {
        if let Some(member) = self.sessions.end(id) {
            self.note(format!("node {} ({:?}) has no session any more: {why}", member.node, member.name));
        }
    }

    fn frame(&mut self, id: Id, bytes: &[u8], now: Instant) {
        match (Frame::decode(bytes), self.sessions.peers.get(&id)) {
            (_, None) => {}
            (Ok(Frame::Message(message)), Some(Peer::Node(member))) => {
                self.message(NodeId(member.node), &message, now);
            }
            (Ok(Frame::Enrol { key, name }), Some(Peer::Token(token))) => {
                let token = *token;
                self.enrol(id, &token, &key, &name, now);
            }
            _ => {
                self.refused.malformed += 1;
                self.endpoint.close(id, Close::Malformed, now);
            }
        }
    }

    fn message(&mut self, node: NodeId, message: &Message, now: Instant) {
        let (named, claim) = match message {
            Message::ClientHello { node, .. } => (*node, None),
            Message::ClientBye(request) => (request.node, None),
            Message::UsedBw(request, claim) => (request.node, Some(claim.as_bps())),
            _ => {
                self.refused.not_theirs += 1;
                return;
            }
        };
        if named != node {
            self.refused.other_names += 1;
            return;
        }
        if let Some(present) = self.sessions.present.get_mut(&node.0) {
            present.claim = claim.filter(|claim| *claim != u64::MAX);
        }
        self.machine.handle(message, node, now, &mut self.out);
    }

    fn enrol(&mut self, id: Id, token: &Public, key: &Public, name: &str, now: Instant) {
        match self.register.enrol(token, key, name, now) {
            Ok((node, answer)) => {
                self.endpoint.send(id, &answer.encode(), now);
                // One session enrols one node.
                self.sessions.peers.remove(&id);
                self.note(format!("node {node} ({name:?}) has enrolled"));
            }
            Err(why) => {
                self.refused.enrolments += 1;
                self.note(format!("an enrolment is refused: {why}"));
                self.endpoint.close(id, Close::Refused, now);
            }
        }
    }

    /// Sends what the state machine wants sent: answers on streams, levels in datagrams.
    fn send(&mut self, now: Instant) {
        for Outgoing { to, message } in std::mem::take(&mut self.out) {
            encode_in_session(&message, &mut self.buffer);
            match to {
                To::Node(node) => {
                    if let Some(present) = self.sessions.present.get(&node.0) {
                        self.endpoint.send(present.id, &self.buffer, now);
                    }
                }
                To::Everyone => {
                    let all = Bytes::copy_from_slice(&self.buffer);
                    if let Message::AvailBw(levels) = message {
                        encode_in_session(&Message::AvailBw(levels.without_floors()), &mut self.buffer);
                    }
                    self.levels.newest = Some([Bytes::copy_from_slice(&self.buffer), all]);
                }
            }
        }
        if let Some(levels) = self.levels.take(self.sessions.present.len(), now) {
            for present in self.sessions.present.values() {
                let floor = self.machine.counted(present.member.share).floor.as_bps() > 0;
                self.endpoint.send_datagram(present.id, levels[usize::from(floor)].clone(), now);
            }
        }
    }

    /// The budget of a node in bits per second; `None` if it holds none.
    pub fn budget(&mut self, node: NodeId) -> Option<u64> {
        self.machine.granted_to(node)
    }

    /// The budgets of all nodes that hold one. A node has it at the address from which it began its session, until it
    /// says goodbye or its lease ends; without a session as well.
    pub fn grants(&mut self) -> Vec<Grant> {
        self.sessions.grants(&mut self.machine)
    }

    /// The sessions, for tests and measurements.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The identities of present nodes that another host has asked for over more than a lease, and lately.
    fn contested(&self, now: Instant) -> Vec<Contested> {
        let rivals = self.sessions.rivals(self.config.lease, now);
        let told = rivals.map(|(present, refused)| Contested {
            node: present.member.node,
            name: present.member.name.clone(),
            holder: self.endpoint.remote(present.id),
            refused,
        });
        told.collect()
    }

    /// The status.
    pub fn status(&mut self, now: Instant) -> Status {
        let mut nodes = Vec::new();
        for (node, present) in &self.sessions.present {
            let member = &present.member;
            nodes.push(NodeStatus {
                node: *node,
                name: member.name.clone(),
                class: member.share.class,
                weight: member.share.weight,
                floor_bps: self.machine.counted(member.share).floor.as_bps(),
                budget_bps: self.machine.granted_to(NodeId(*node)),
                claim_bps: present.claim,
                address: self.endpoint.remote(present.id),
                rtt_ms: self.endpoint.rtt(present.id).map(|rtt| rtt.as_secs_f64() * 1e3),
                since_s: now.since(present.since).as_secs_f64(),
            });
        }
        Status {
            rate_bps: self.machine.bandwidth().as_bps(),
            serves: self.serves,
            granted_bps: self.machine.granted(),
            floors_bps: self.machine.floors(),
            enrolled: self.register.enrolled(now),
            holders: self.machine.clients(),
            table_bytes: self.machine.memory(),
            nodes,
            contested: self.contested(now),
            sessions: self.endpoint.counters(),
            refused: self.refused,
            messages: *self.machine.counters(),
        }
    }
}

impl Side for Role {
    fn receive(&mut self, from: SocketAddr, datagram: &[u8], now: Instant) {
        let old = self.endpoint.counters().version_1;
        self.endpoint.receive(from, datagram, now);
        if old == 0 && self.endpoint.counters().version_1 == 1 {
            self.note(format!(
                "a message of version 1 of C2LP from {from} is refused, as all others; this is version 2"
            ));
        }
        self.work(now);
    }

    fn poll(&mut self, now: Instant) {
        self.endpoint.poll(now);
        self.machine.poll(now, &mut self.out);
        self.work(now);
    }

    fn next_timeout(&self) -> Option<Instant> {
        [self.endpoint.next_timeout(), self.machine.next_timeout(), self.levels.due()].into_iter().flatten().min()
    }

    fn transmit(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        self.endpoint.transmit()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn role(name: &str) -> (Role, std::path::PathBuf) {
        let path = std::env::temp_dir().join(format!("penstock-role-{name}-{}", std::process::id()));
        let roster = Roster::open(&path).unwrap();
        (Role::new(defaults(Rate::from_bps(1_000_000)), roster, Instant::ZERO).unwrap(), path)
    }

    /// For 500 nodes, 50 ms pass between two broadcasts. A look at what waits for that puts it off no further.
    #[test]
    fn levels_wait_for_their_turn_and_no_longer() {
        let at = |ms| Instant::ZERO + Span::from_millis(ms);
        let some = || Some([Bytes::new(), Bytes::new()]);
        let mut levels = Levels { newest: some(), next: at(0) };
        assert!(levels.take(500, at(10)).is_some());
        assert!(levels.take(500, at(60)).is_none(), "nothing waits");
        levels.newest = some();
        assert_eq!((10..200).find(|ms| levels.take(500, at(*ms)).is_some()), Some(60));
    }

    #[test]
    fn what_a_peer_calls_itself_moves_no_cursor() {
        let (mut role, path) = role("cursor");
        role.note(format!("node 7 ({:?}) is lost: \x1b[2J", "a\x1b[1A"));
        assert_eq!(role.event().unwrap(), "node 7 (\"a\\u{1b}[1A\") is lost: ?[2J");
        std::fs::remove_dir_all(path).unwrap();
    }

    /// Two standbys with directories of their own have started as often. Their nodes must not take the one for the other, so
    /// chance is in the number of a start, above the count; both are above all numbers of gateways that are no standby.
    #[test]
    fn two_standbys_never_begin_under_one_number() {
        let numbers = ["a", "b"].map(|name| {
            let (mut role, path) = role(name);
            assert_eq!(role.machine.levels().incarnation, 1);
            role.serve(false, Instant::ZERO).unwrap();
            let waiting = role.machine.levels().incarnation;
            role.serve(true, Instant::ZERO).unwrap();
            let serving = role.machine.levels().incarnation;
            std::fs::remove_dir_all(path).unwrap();
            [waiting, serving]
        });
        let counts = numbers.map(|both| both.map(|number| number & 0xffff_ffff));
        assert_eq!(counts, [[2, 3]; 2]);
        assert!(numbers.iter().flatten().all(|number| number >> 63 == 1));
        assert!((0..2).all(|at| numbers[0][at] >> 32 != numbers[1][at] >> 32), "{numbers:x?}");
    }
}
