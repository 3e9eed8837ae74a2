//! A small network in virtual time: one gateway, some clients, and faults on the messages between them.

use penstock_core::coop::client::{self, Client};
use penstock_core::coop::gateway::{self, Gateway, Outgoing, Start, To};
use penstock_core::coop::keys::{Key, Keyring};
use penstock_core::coop::message::{Message, decode, encode};
use penstock_core::coop::policy::Policy;
use penstock_core::coop::state::{NodeId, Share, State};
use penstock_core::units::{Instant, Rate, Span};
use std::collections::{BTreeMap, BTreeSet};

/// The largest one-way delay.
pub const DELAY: Span = Span::from_millis(150);
pub const LEASE: Span = Span::from_secs(2);
pub const GAP: Span = Span::from_millis(10);

/// A random number generator that is sufficient for tests (splitmix64).
#[derive(Debug, Clone)]
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ (x >> 31)) % n.max(1)
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// Probabilities of faults of a message, in percent.
#[derive(Debug, Clone, Copy, Default)]
pub struct Faults {
    pub loss: u64,
    pub twice: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    Gateway,
    Client(usize),
}

pub fn state_ring() -> Keyring {
    Keyring::new(1, &Key::new([1; 32]))
}

pub fn network_ring() -> Keyring {
    Keyring::new(2, &Key::new([2; 32]))
}

pub struct Network {
    pub now: Instant,
    pub gateway: Gateway,
    pub clients: Vec<Client>,
    pub faults: Faults,
    pub dice: Dice,
    /// Every message that was ever sent, for the attacker.
    pub heard: Vec<Vec<u8>>,
    /// Each decoded message, in the order of arrival.
    pub seen: Vec<(At, Message)>,
    /// The clients that levels reach, if they are sent within sessions: those which have spoken to this gateway.
    pub sessions: Option<BTreeSet<NodeId>>,
    /// The largest one-way delay.
    pub delay: Span,
    config: gateway::Config,
    incarnation: u64,
    lives: u64,
    ring: Keyring,
    flying: BTreeMap<(Instant, u64), (At, Vec<u8>)>,
    count: u64,
}

impl Network {
    pub fn new(policy: Policy, bps: u64, clients: u32, seed: u64) -> Self {
        let config = gateway::Config {
            lease: LEASE,
            advertise: Span::from_millis(500),
            gap: GAP,
            max_clients: 100,
            ..gateway::Config::new(Rate::from_bps(bps), policy)
        };
        let gateway = Gateway::new(config.clone(), state_ring(), 1, Start::Fresh, Instant::ZERO).expect("valid");
        let mut network = Self {
            now: Instant::ZERO,
            gateway,
            clients: Vec::new(),
            faults: Faults::default(),
            dice: Dice(seed),
            heard: Vec::new(),
            seen: Vec::new(),
            sessions: None,
            delay: DELAY,
            config,
            incarnation: 1,
            lives: 0,
            ring: network_ring(),
            flying: BTreeMap::new(),
            count: 0,
        };
        for node in 0..clients {
            let client = network.life(NodeId(node));
            network.clients.push(client);
        }
        network
    }

    /// Creates a client whose only state is its ticket: class 0 to 3 in turn, weight 1 to 5.
    fn life(&mut self, node: NodeId) -> Client {
        self.lives += 1;
        let share = Share { class: (node.0 % 4) as u8, weight: (1 + node.0 % 5) as u16, ..Share::default() };
        let ticket = Some(State::ticket(node, share).sign(&state_ring()));
        let config = client::Config::new(node, self.lives << 32);
        Client::new(client::Config { ticket, retry: Span::from_millis(100), ..config }).expect("valid")
    }

    pub fn restart_client(&mut self, at: usize) {
        self.clients[at] = self.life(NodeId(at as u32));
    }

    /// Replaces the gateway by a new one, which has only the keys.
    pub fn restart_gateway(&mut self) {
        self.incarnation += 1;
        self.sessions.iter_mut().for_each(BTreeSet::clear);
        let config = gateway::Config { bandwidth: self.gateway.bandwidth(), ..self.config.clone() };
        self.gateway =
            Gateway::new(config, state_ring(), self.incarnation, Start::TakingOver, self.now).expect("valid");
    }

    pub fn open(&mut self, at: usize) {
        self.client(at, |client, now, out| client.open(now, out));
    }

    pub fn close(&mut self, at: usize) {
        self.client(at, |client, now, out| client.close(now, out));
    }

    pub fn usable(&mut self, at: usize, bps: Option<u64>) {
        self.client(at, |client, now, out| client.set_usable(bps.map(Rate::from_bps), now, out));
    }

    pub fn bandwidth(&mut self, bps: u64) {
        let mut out = Vec::new();
        self.gateway.set_bandwidth(Rate::from_bps(bps), self.now, &mut out);
        self.deliver(out);
    }

    fn client(&mut self, at: usize, act: impl FnOnce(&mut Client, Instant, &mut Vec<Message>)) {
        let mut out = Vec::new();
        act(&mut self.clients[at], self.now, &mut out);
        for message in out {
            self.send(At::Gateway, encode(&message, &self.ring));
        }
    }

    fn deliver(&mut self, out: Vec<Outgoing>) {
        for Outgoing { to, message } in out {
            let bytes = encode(&message, &self.ring);
            match to {
                To::Node(node) => self.send(At::Client(node.0 as usize), bytes),
                To::Everyone => {
                    let hears = |at: &usize| self.sessions.as_ref().is_none_or(|all| all.contains(&NodeId(*at as u32)));
                    let hear: Vec<usize> = (0..self.clients.len()).filter(hears).collect();
                    hear.into_iter().for_each(|at| self.send(At::Client(at), bytes.clone()));
                }
            }
        }
    }

    fn send(&mut self, to: At, bytes: Vec<u8>) {
        self.heard.push(bytes.clone());
        let times = if self.dice.chance(self.faults.twice) { 2 } else { 1 };
        for _ in 0..times {
            if !self.dice.chance(self.faults.loss) {
                let delay = Span::from_nanos(1 + self.dice.below(self.delay.as_nanos()));
                self.inject(to, bytes.clone(), delay);
            }
        }
    }

    /// Sends bytes to `to`, as an attacker can.
    pub fn inject(&mut self, to: At, bytes: Vec<u8>, delay: Span) {
        self.count += 1;
        self.flying.insert((self.now + delay, self.count), (to, bytes));
    }

    /// Loses all messages that are on their way to `to`.
    pub fn lose(&mut self, to: At) {
        self.flying.retain(|_, (at, _)| *at != to);
    }

    /// Delivers a message or handles a timeout, whichever is next; false if nothing is due before `end`.
    pub fn step(&mut self, end: Instant) -> bool {
        let arrival = self.flying.keys().next().map(|(at, _)| *at);
        let timers = self.clients.iter().filter_map(Client::next_timeout).chain(self.gateway.next_timeout());
        let Some(next) = timers.chain(arrival).min().filter(|at| *at <= end) else {
            self.now = end;
            return false;
        };
        self.now = self.now.max(next);
        if arrival == Some(next) {
            if let Some((_, (to, bytes))) = self.flying.pop_first() {
                self.arrive(to, &bytes);
            }
            return true;
        }
        if self.gateway.next_timeout().is_some_and(|at| at <= self.now) {
            let mut out = Vec::new();
            self.gateway.poll(self.now, &mut out);
            assert!(self.gateway.next_timeout().is_none_or(|at| self.now < at), "a timer that does not move");
            self.deliver(out);
        }
        for at in 0..self.clients.len() {
            if self.clients[at].next_timeout().is_some_and(|at| at <= self.now) {
                self.client(at, |client, now, out| client.poll(now, out));
            }
        }
        true
    }

    pub fn run(&mut self, span: Span) {
        let end = self.now + span;
        while self.step(end) {
            self.check();
        }
    }

    fn arrive(&mut self, to: At, bytes: &[u8]) {
        let Ok(message) = decode(bytes, &self.ring) else { return };
        self.seen.push((to, message));
        match to {
            At::Client(at) if at < self.clients.len() => {
                self.client(at, |client, now, out| client.handle(&message, now, out));
            }
            At::Client(_) => {}
            At::Gateway => {
                let from = match message {
                    Message::ClientHello { node, .. } => node,
                    Message::ClientBye(request) | Message::UsedBw(request, _) => request.node,
                    _ => NodeId(u32::MAX),
                };
                if let Some(sessions) = &mut self.sessions {
                    sessions.insert(from);
                }
                let mut out = Vec::new();
                self.gateway.handle(&message, from, self.now, &mut out);
                self.deliver(out);
            }
        }
    }

    /// Checks the invariants that hold at any time.
    pub fn check(&self) {
        assert!(self.gateway.granted() <= self.gateway.bandwidth().as_bps(), "the gateway gave out more than there is");
    }

    /// The budgets that the clients assume, in bits per second.
    pub fn beliefs(&self) -> Vec<Option<u64>> {
        self.clients.iter().map(|client| client.budget_bps(self.now)).collect()
    }

    pub fn believed(&self) -> u64 {
        self.beliefs().into_iter().flatten().sum()
    }

    /// The budgets of the clients according to the gateway, in bits per second.
    pub fn granted(&mut self) -> Vec<Option<u64>> {
        (0..self.clients.len() as u32).map(|node| self.gateway.granted_to(NodeId(node))).collect()
    }
}
