//! A gateway and its nodes without sockets and without a clock: time passes in steps of a millisecond, which is how long a
//! datagram travels. So what is tested here does not depend on how busy the machine is.

use penstock_budgets::agent::{Agent, Enrolment, Identity};
use penstock_budgets::gateway::Role;
use penstock_budgets::identity::Token;
use penstock_budgets::roster::Roster;
use penstock_core::coop::Share;
use penstock_core::coop::gateway::Config;
use penstock_core::units::{Instant, Rate, Span};
use penstock_linux::random;
use penstock_linux::udp::Side;
use std::net::SocketAddr;
use std::path::PathBuf;

const STEP: Span = Span::from_millis(1);

/// A datagram that travels: from, to, bytes.
type Datagram = (SocketAddr, SocketAddr, Vec<u8>);

/// A gateway with its directory, and nodes at addresses of their own.
pub struct Still {
    pub role: Role,
    pub nodes: Vec<Agent>,
    places: Vec<SocketAddr>,
    pub now: Instant,
    pub roster: Roster,
    directory: PathBuf,
    settings: Config,
    travelling: Vec<Datagram>,
}

pub fn gateway() -> SocketAddr {
    "10.0.0.1:7443".parse().unwrap()
}

pub fn address(node: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 1, node as u8], 2000))
}

/// Gives a side what has arrived, lets it do what is due, and takes what it sends.
fn turn(side: &mut impl Side, own: SocketAddr, arrived: &[Datagram], now: Instant, sent: &mut Vec<Datagram>) {
    for (from, _, bytes) in arrived.iter().filter(|(_, to, _)| *to == own) {
        side.receive(*from, bytes, now);
    }
    if side.next_timeout().is_some_and(|at| at <= now) {
        side.poll(now);
    }
    sent.extend(std::iter::from_fn(|| side.transmit()).map(|(to, bytes)| (own, to, bytes)));
}

impl Still {
    /// A gateway that starts for the first time.
    pub fn new(settings: Config) -> Self {
        let name = random::bytes().unwrap();
        let directory = std::env::temp_dir().join(format!("penstock-still-{:x}", u64::from_ne_bytes(name)));
        let roster = Roster::open(&directory).unwrap();
        let role = Role::new(settings.clone(), roster.clone(), Instant::ZERO).unwrap();
        let (now, nodes, places, travelling) = (Instant::ZERO, Vec::new(), Vec::new(), Vec::new());
        Self { role, nodes, places, now, roster, directory, settings, travelling }
    }

    /// A node with this share enrols.
    pub fn enrolled(&mut self, share: Share) -> Identity {
        let token = self.roster.invite(share, 1, Span::from_secs(600)).unwrap();
        self.enrol::<1>(&token).into_iter().next().unwrap().unwrap()
    }

    /// So many enrol with a token at once, and their datagrams arrive in turns; returns what becomes of each.
    pub fn enrol<const N: usize>(&mut self, token: &Token) -> Vec<Result<Identity, String>> {
        let mut all: Vec<_> = (0..N).map(|n| (address(250 + n), self.enrolment(token), None)).collect();
        for _ in 0..1000 {
            let mut sent = Vec::new();
            let arrived = self.step(&mut sent);
            let mut of_each: [Vec<Datagram>; N] = [const { Vec::new() }; N];
            for ((own, enrolment, done), own_sent) in all.iter_mut().zip(&mut of_each) {
                turn(enrolment, *own, &arrived, self.now, own_sent);
                *done = done.take().or_else(|| enrolment.done());
                // The goodbye of the session.
                turn(enrolment, *own, &[], self.now, own_sent);
            }
            let longest = of_each.iter().map(Vec::len).max().unwrap_or(0);
            sent.extend((0..longest).flat_map(|at| of_each.iter().filter_map(move |one| one.get(at).cloned())));
            self.travelling = sent;
            if all.iter().all(|(_, _, done)| done.is_some()) {
                return all.into_iter().filter_map(|(_, _, done)| done).collect();
            }
        }
        panic!("an enrolment takes longer than a second");
    }

    /// Somebody with a token asks the gateway.
    pub fn enrolment(&self, token: &Token) -> Enrolment {
        Enrolment::new(token, "node", gateway(), self.now).unwrap()
    }

    /// The node begins to look for its gateway.
    pub fn join(&mut self, identity: &Identity) {
        self.join_at(identity, address(self.nodes.len()));
    }

    /// The same for a node at this address.
    pub fn join_at(&mut self, identity: &Identity, place: SocketAddr) {
        self.places.push(place);
        self.nodes.push(Agent::new(identity, vec![gateway()]).unwrap());
    }

    /// The gateway dies and starts again: it knows what its directory holds and nothing else.
    pub fn restart(&mut self) {
        self.role = Role::new(self.settings.clone(), self.roster.clone(), self.now).unwrap();
    }

    /// Runs until something is so, and returns how long that took; `None` if it is not so within this time.
    pub fn until(&mut self, within: Span, mut is: impl FnMut(&mut Self) -> bool) -> Option<Span> {
        let begin = self.now;
        while !is(self) {
            if self.now.since(begin) >= within {
                return None;
            }
            let mut sent = Vec::new();
            self.step(&mut sent);
            self.travelling = sent;
        }
        Some(self.now.since(begin))
    }

    /// Runs for this time.
    pub fn run(&mut self, time: Span) {
        assert_eq!(self.until(time, |_| false), None);
    }

    /// A millisecond passes for the gateway and its nodes. Returns what has arrived.
    fn step(&mut self, sent: &mut Vec<Datagram>) -> Vec<Datagram> {
        self.now += STEP;
        let arrived = std::mem::take(&mut self.travelling);
        turn(&mut self.role, gateway(), &arrived, self.now, sent);
        for (place, agent) in self.places.iter().zip(&mut self.nodes) {
            turn(agent, *place, &arrived, self.now, sent);
        }
        arrived
    }

    /// The budgets of the nodes in bits per second.
    pub fn budgets(&self) -> Vec<Option<u64>> {
        self.nodes.iter().map(|node| node.budget(self.now).map(Rate::as_bps)).collect()
    }

    pub fn status(&mut self) -> penstock_budgets::gateway::Status {
        self.role.status(self.now)
    }
}

impl Drop for Still {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}
