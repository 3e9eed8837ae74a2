//! A gateway and its nodes in one thread, over real sockets of the loopback interface.

use penstock_budgets::agent::{Agent, Enrolment, Identity};
use penstock_budgets::gateway::Role;
use penstock_budgets::identity::Token;
use penstock_budgets::roster::Roster;
use penstock_core::coop::Share;
use penstock_core::coop::gateway::Config;
use penstock_core::units::{Instant, Rate, Span};
use penstock_linux::random;
use penstock_linux::udp::Socket;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// How long anything may take on a machine with much other work.
pub const PATIENCE: Span = Span::from_secs(30);

/// A node with its socket.
pub struct Node {
    pub agent: Agent,
    pub socket: Socket,
}

/// A gateway with its socket and its directory.
pub struct Lab {
    pub role: Role,
    pub socket: Socket,
    pub address: SocketAddr,
    pub roster: Roster,
    pub directory: PathBuf,
    pub settings: Config,
    epoch: std::time::Instant,
}

pub fn local() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

pub fn mbit(rate: u64) -> Rate {
    Rate::from_bps(rate * 1_000_000)
}

impl Lab {
    pub fn new(settings: Config) -> Self {
        let name = random::bytes().unwrap();
        let directory = std::env::temp_dir().join(format!("penstock-hosts-{:x}", u64::from_ne_bytes(name)));
        let roster = Roster::open(&directory).unwrap();
        let socket = Socket::bind(local()).unwrap();
        let address = socket.udp().local_addr().unwrap();
        let epoch = std::time::Instant::now();
        let role = Role::new(settings.clone(), roster.clone(), Instant::ZERO).unwrap();
        Self { role, socket, address, roster, directory, settings, epoch }
    }

    pub fn now(&self) -> Instant {
        Instant::from_nanos(self.epoch.elapsed().as_nanos() as u64)
    }

    /// One turn of everybody.
    pub fn turn(&mut self, nodes: &mut [Node]) {
        let epoch = self.epoch;
        let mut now = || Instant::from_nanos(epoch.elapsed().as_nanos() as u64);
        self.socket.turn(&mut self.role, &mut now);
        for node in nodes.iter_mut() {
            node.socket.turn(&mut node.agent, &mut now);
        }
    }

    /// Runs until something is so.
    pub fn until(&mut self, what: &str, nodes: &mut [Node], mut is: impl FnMut(&mut Self, &mut [Node]) -> bool) {
        let end = self.now() + PATIENCE;
        while !is(self, nodes) {
            assert!(self.now() < end, "{what} takes too long; {:?}", self.status());
            self.turn(nodes);
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    pub fn run(&mut self, nodes: &mut [Node], time: Span) {
        let end = self.now() + time;
        while self.now() < end {
            self.turn(nodes);
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    pub fn status(&mut self) -> penstock_budgets::gateway::Status {
        let now = self.now();
        self.role.status(now)
    }

    pub fn token(&self, share: Share, uses: u32) -> Token {
        self.roster.invite(share, uses, Span::from_secs(600)).unwrap()
    }

    /// Tries to enrol with a token.
    pub fn enrol(&mut self, token: &Token, name: &str) -> Result<Identity, String> {
        let socket = Socket::bind(local()).unwrap();
        let mut enrolment = Enrolment::new(token, name, self.address, self.now()).unwrap();
        self.enrolled(&mut enrolment, socket)
    }

    fn enrolled(&mut self, enrolment: &mut Enrolment, mut socket: Socket) -> Result<Identity, String> {
        let (end, epoch) = (self.now() + PATIENCE, self.epoch);
        loop {
            socket.turn(enrolment, &mut || Instant::from_nanos(epoch.elapsed().as_nanos() as u64));
            self.turn(&mut []);
            if let Some(done) = enrolment.done() {
                // The goodbye of the session.
                socket.turn(enrolment, &mut || Instant::from_nanos(epoch.elapsed().as_nanos() as u64));
                self.turn(&mut []);
                return done;
            }
            assert!(self.now() < end, "an enrolment takes too long");
        }
    }

    /// A node that has enrolled.
    pub fn identity(&mut self, share: Share) -> Identity {
        let token = self.token(share, 1);
        self.enrol(&token, "node").unwrap()
    }

    pub fn node(&self, identity: &Identity) -> Node {
        Node { agent: Agent::new(identity, vec![self.address]).unwrap(), socket: Socket::bind(local()).unwrap() }
    }

    /// Nodes with budgets.
    pub fn nodes(&mut self, shares: &[Share]) -> Vec<Node> {
        let identities: Vec<Identity> = shares.iter().map(|share| self.identity(*share)).collect();
        let mut nodes: Vec<Node> = identities.iter().map(|identity| self.node(identity)).collect();
        let n = shares.len() as u32;
        self.until("all have joined", &mut nodes, |lab, nodes| {
            let now = lab.now();
            lab.status().holders == n && nodes.iter().all(|node| node.agent.budget(now).is_some())
        });
        nodes
    }

    pub fn budgets(&self, nodes: &[Node]) -> Vec<Option<u64>> {
        let now = self.now();
        nodes.iter().map(|node| node.agent.budget(now).map(Rate::as_bps)).collect()
    }

    /// The gateway dies and starts again on the same port.
    pub fn restart(&mut self) {
        let now = self.now();
        self.role = Role::new(self.settings.clone(), self.roster.clone(), now).unwrap();
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}
