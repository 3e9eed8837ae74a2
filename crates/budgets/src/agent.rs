//! The node's side: the state machine of C²LP behind one session, without a socket.
//!
//! Without a gateway the node has no budget, and its TCP is plain TCP. It tries the gateways of its list one after the
//! other, first after a quarter of a second and then less and less often, at times that chance spreads.

use crate::endpoint::{Close, Endpoint, Event, Id};
use crate::error::Error;
use crate::frame::{Enrolled, Frame};
use crate::identity::{Credentials, Secret, Token};
use crate::tls::{self, Trust};
use penstock_core::coop::client::{Client, Config};
use penstock_core::coop::message::Message;
use penstock_core::coop::{NodeId, Signed};
use penstock_core::units::{Instant, Rate, Span};
use penstock_linux::random;
use penstock_linux::udp::Side;
use quinn_proto::crypto::rustls::QuicClientConfig;
use rustls::pki_types::CertificateDer;
use std::net::SocketAddr;
use std::sync::Arc;

/// A node believes no longer lease: what a gateway says holds for a while and not for ever.
pub const LONGEST_LEASE: Span = Span::from_secs(60);
/// The first wait before another attempt, and the longest.
const WAITS: [Span; 2] = [Span::from_millis(250), Span::from_secs(4)];
/// A session in which no budget arrives for this time is given up.
const PATIENCE: Span = Span::from_secs(5);
/// With another gateway to go to, this one is given up when a request is not answered for this time, or for three round trips
/// if that is longer: the budget of the lease that goes on is enough to find the next.
const SILENCE: Span = Span::from_secs(1);
/// The interval after which a request is repeated. A stream loses nothing, so this is for a gateway that has forgotten.
pub const RETRY: Span = Span::from_secs(1);
/// Why a node has nothing whose lease belongs to another address.
const ELSEWHERE: &str =
    "another host has the budget of this node: enrol one of them anew, or wait for a lease after a move";

/// Who a node is, as it learnt when it enrolled.
#[derive(Debug, Clone)]
pub struct Identity {
    /// Its number.
    pub node: NodeId,
    /// Its certificate, with the key.
    pub own: Credentials,
    /// The authority of its gateways.
    pub authority: CertificateDer<'static>,
    /// Its share, signed by the gateway.
    pub ticket: Signed,
}

/// What a node counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct Counters {
    /// Sessions that began.
    pub sessions: u64,
    /// Attempts that failed, and sessions that ended.
    pub lost: u64,
    /// Frames of the gateway that are none, or that a gateway does not send.
    pub refused: u64,
    /// Leases that were cut to the longest one.
    pub long_leases: u64,
}

/// Which gateway is tried next, and when.
struct Attempts {
    gateways: Vec<SocketAddr>,
    turn: usize,
    failures: u32,
    /// When a session is tried or given up.
    due: Instant,
}

impl Attempts {
    fn next(&mut self, now: Instant) -> SocketAddr {
        let gateway = self.gateways[self.turn % self.gateways.len()];
        self.turn += 1;
        self.due = now + PATIENCE;
        gateway
    }

    fn failed(&mut self, now: Instant) {
        let wait = (WAITS[0] * (1 << self.failures.min(10))).min(WAITS[1]);
        self.failures += 1;
        // Between a half and the whole of it.
        let part = random().unwrap_or_default() % 1024;
        self.due = now + wait.div(2) + Span::from_nanos(wait.as_nanos() / 2048 * part);
    }
}

/// A node.
pub struct Agent {
    machine: Client,
    endpoint: Endpoint,
    tls: Arc<QuicClientConfig>,
    attempts: Attempts,
    session: Option<(Id, bool)>,
    /// Since when a message waits for any sign of the gateway.
    unanswered: Option<Instant>,
    last: Option<Message>,
    out: Vec<Message>,
    counters: Counters,
    why: Option<String>,
    ended: bool,
}

fn random() -> Result<u64, crate::identity::Error> {
    Ok(u64::from_ne_bytes(random::bytes()?))
}

impl Agent {
    /// Creates a node, which tries these gateways in their order.
    pub fn new(identity: &Identity, gateways: Vec<SocketAddr>) -> Result<Self, Error> {
        let config = Config { ticket: Some(identity.ticket), retry: RETRY, ..Config::new(identity.node, random()?) };
        let tls = tls::client(&identity.own, Trust::Certificate(identity.authority.clone()))?;
        let reset_key = Secret::draw()?;
        Ok(Self {
            machine: Client::new(config)?,
            endpoint: Endpoint::client(reset_key.bytes()),
            tls,
            attempts: Attempts { gateways, turn: 0, failures: 0, due: Instant::ZERO },
            session: None,
            unanswered: None,
            last: None,
            out: Vec::new(),
            counters: Counters::default(),
            why: None,
            ended: false,
        })
    }

    /// The rate that the node may use now; `None` if it has no budget and its TCP is on its own.
    pub fn budget(&self, now: Instant) -> Option<Rate> {
        self.machine.budget(now)
    }

    /// The gateway with which the node has a session.
    pub fn gateway(&self) -> Option<SocketAddr> {
        self.session.filter(|(_, there)| *there).and_then(|(id, _)| self.endpoint.remote(id))
    }

    /// Why there was no session at the last attempt, or why the last one ended.
    pub fn why(&self) -> Option<&str> {
        self.why.as_deref()
    }

    /// The counters.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Says how much the node can use; `None` for all that it gets.
    pub fn set_usable(&mut self, usable: Option<Rate>, now: Instant) {
        self.machine.set_usable(usable, now, &mut self.out);
        self.send(now);
    }

    /// Says goodbye and ends the session.
    pub fn end(&mut self, now: Instant) {
        self.machine.close(now, &mut self.out);
        self.send(now);
        self.ended = true;
        if let Some((id, _)) = self.session.take() {
            self.endpoint.close(id, Close::Done, now);
        }
    }

    /// When the gateway of the session is given up, if there is another one.
    fn patient_until(&self) -> Option<Instant> {
        let (id, _) = self.session.filter(|(_, there)| *there && self.attempts.gateways.len() > 1)?;
        let rtt = Span::from_nanos(self.endpoint.rtt(id)?.as_nanos() as u64);
        Some(self.unanswered? + SILENCE.max(rtt * 3))
    }

    fn lost(&mut self, why: &str, now: Instant) {
        (self.session, self.unanswered) = (None, None);
        self.counters.lost += 1;
        self.why = Some(why.to_owned());
        self.attempts.failed(now);
    }

    fn work(&mut self, now: Instant) {
        while let Some(event) = self.endpoint.event() {
            let current = self.session.map(|(id, _)| id);
            match event {
                Event::Connected(id) if current == Some(id) => self.connected(id, now),
                Event::Frame(id, bytes) if current == Some(id) => self.frame(&bytes, now),
                Event::Datagram(id, bytes) if current == Some(id) => self.frame(&bytes, now),
                Event::Lost(id, _, true) if current == Some(id) => {
                    self.machine.lose(now);
                    self.lost(ELSEWHERE, now);
                }
                Event::Lost(id, why, false) if current == Some(id) => self.lost(&why, now),
                _ => {}
            }
        }
        self.send(now);
    }

    fn connected(&mut self, id: Id, now: Instant) {
        self.session = Some((id, true));
        self.counters.sessions += 1;
        self.attempts.due = now + PATIENCE;
        self.machine.open(now, &mut self.out);
        // What the last session may have lost.
        if self.out.is_empty() {
            self.out.extend(self.last);
        }
    }

    fn frame(&mut self, bytes: &[u8], now: Instant) {
        match Frame::decode(bytes) {
            Ok(Frame::Message(mut message)) => {
                if let Message::AckHello(answer) | Message::AckUsed(answer) = &mut message {
                    self.counters.long_leases += u64::from(answer.lease > LONGEST_LEASE);
                    answer.lease = answer.lease.min(LONGEST_LEASE);
                    // Only an answer shows that the gateway takes this node.
                    (self.last, self.attempts.failures, self.why) = (None, 0, None);
                }
                self.machine.handle(&message, now, &mut self.out);
            }
            _ => self.counters.refused += 1,
        }
    }

    fn send(&mut self, now: Instant) {
        for message in std::mem::take(&mut self.out) {
            self.last = Some(message);
            if let Some((id, true)) = self.session {
                self.unanswered.get_or_insert(now);
                self.endpoint.send(id, &Frame::Message(message).encode(), now);
            }
        }
    }
}

impl Side for Agent {
    fn receive(&mut self, from: SocketAddr, datagram: &[u8], now: Instant) {
        if self.gateway() == Some(from) {
            self.unanswered = None;
        }
        self.endpoint.receive(from, datagram, now);
        self.work(now);
    }

    fn poll(&mut self, now: Instant) {
        self.endpoint.poll(now);
        self.machine.poll(now, &mut self.out);
        self.work(now);
        let (late, due) = (self.patient_until().is_some_and(|until| now >= until), now >= self.attempts.due);
        match self.session {
            Some((id, there)) if late || due && (!there || self.machine.budget(now).is_none()) => {
                self.endpoint.close(id, Close::Done, now);
                self.lost("the gateway does not answer", now);
            }
            Some(_) if due => self.attempts.due = now + PATIENCE,
            None if due && !self.ended => {
                let gateway = self.attempts.next(now);
                self.session = self.endpoint.connect(gateway, self.tls.clone(), now).map(|id| (id, false));
            }
            _ => {}
        }
    }

    fn next_timeout(&self) -> Option<Instant> {
        let due = (!self.ended).then_some(self.attempts.due);
        let patient = self.patient_until();
        [self.endpoint.next_timeout(), self.machine.next_timeout(), due, patient].into_iter().flatten().min()
    }

    fn transmit(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        self.endpoint.transmit()
    }
}

/// Somebody who holds a token and wants to be a node.
pub struct Enrolment {
    endpoint: Endpoint,
    secret: Secret,
    name: String,
    done: Option<Result<Identity, String>>,
}

impl Enrolment {
    /// Begins to enrol at a gateway, with a new key.
    pub fn new(token: &Token, name: &str, gateway: SocketAddr, now: Instant) -> Result<Self, Error> {
        let tls = tls::client(&token.credentials()?, Trust::Fingerprint(token.authority.clone()))?;
        let mut endpoint = Endpoint::client(Secret::draw()?.bytes());
        let none = endpoint.connect(gateway, tls, now).is_none();
        let done = none.then(|| Err("this is not an address of a gateway".into()));
        Ok(Self { endpoint, secret: Secret::draw()?, name: name.to_owned(), done })
    }

    /// Who the node is, or why it is none; `None` as long as that is open.
    pub fn done(&mut self) -> Option<Result<Identity, String>> {
        self.done.take()
    }

    fn work(&mut self, now: Instant) {
        while let Some(event) = self.endpoint.event() {
            match event {
                Event::Connected(id) => match self.secret.public() {
                    Ok(key) => {
                        let ask = Frame::Enrol { key, name: self.name.clone() };
                        self.endpoint.send(id, &ask.encode(), now);
                    }
                    Err(why) => self.done = Some(Err(why.to_string())),
                },
                Event::Frame(id, bytes) => {
                    self.done = Some(self.answered(&bytes));
                    self.endpoint.close(id, Close::Done, now);
                }
                Event::Lost(_, why, _) if self.done.is_none() => self.done = Some(Err(why)),
                Event::Datagram(..) | Event::Lost(..) => {}
            }
        }
    }

    fn answered(&self, bytes: &[u8]) -> Result<Identity, String> {
        let Ok(Frame::Enrolled(Enrolled { certificate, authority, hello })) = Frame::decode(bytes) else {
            return Err("the gateway's answer is no answer to an enrolment".into());
        };
        let Message::ClientHello { node, state: Some(ticket), .. } = hello else {
            return Err("the gateway gave no ticket".into());
        };
        let own = Credentials { secret: self.secret.clone(), certificate };
        Ok(Identity { node, own, authority, ticket })
    }
}

impl Side for Enrolment {
    fn receive(&mut self, from: SocketAddr, datagram: &[u8], now: Instant) {
        self.endpoint.receive(from, datagram, now);
        self.work(now);
    }

    fn poll(&mut self, now: Instant) {
        self.endpoint.poll(now);
        self.work(now);
    }

    fn next_timeout(&self) -> Option<Instant> {
        self.endpoint.next_timeout()
    }

    fn transmit(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        self.endpoint.transmit()
    }
}
