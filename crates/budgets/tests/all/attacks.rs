//! What attackers did to version 1 of C²LP, and what is left of it: each attack succeeds against the state machines as
//! version 1 exposes them, and fails against sessions, where honest nodes keep at least 98 % of their budgets.

use crate::lab::{self, Lab, Node, local, mbit};
use penstock_budgets::agent::Identity;
use penstock_budgets::endpoint::{Endpoint, Event, Id};
use penstock_budgets::frame::Frame;
use penstock_budgets::gateway::{defaults, validate};
use penstock_budgets::identity::Secret;
use penstock_budgets::tls::{self, Trust};
use penstock_core::allocation::Kept;
use penstock_core::coop::client::{Client, Config};
use penstock_core::coop::gateway::{self, Gateway, Start};
use penstock_core::coop::message::{Answer, Levels, Message, Request, encode};
use penstock_core::coop::policy::{Policy, Sharing};
use penstock_core::coop::state::State;
use penstock_core::coop::{Claim, Floor, Key, Keyring, NodeId, Share, Signed, Status};
use penstock_core::units::{Instant, Rate, Span};
use penstock_linux::udp::{Side, Socket};
use std::net::{SocketAddr, UdpSocket};

const BW: u64 = 10_000_000;

fn ring(n: u8) -> Keyring {
    Keyring::new(1, &Key::new([n; 32]))
}

/// A gateway of version 1, open to all who have the network's key.
fn open_gateway() -> Gateway {
    let config = gateway::Config::new(Rate::from_bps(BW), Policy::of(Sharing::UnweightedFair));
    Gateway::new(config, ring(2), 1_000, Start::Fresh, Instant::ZERO).unwrap()
}

/// A node of version 1 joins; returns its budget.
fn joins(gateway: &mut Gateway, node: u32) -> Option<u64> {
    let (now, mut out) = (Instant::ZERO, Vec::new());
    gateway.handle(&Message::ClientHello { node: NodeId(node), ask: 1, state: None }, NodeId(node), now, &mut out);
    let invitation = out.iter().find_map(|o| match o.message {
        Message::AckHello(answer) => Some(answer.state),
        _ => None,
    });
    out.clear();
    let hello = Message::ClientHello { node: NodeId(node), ask: 2, state: invitation };
    gateway.handle(&hello, NodeId(node), now, &mut out);
    gateway.granted_to(NodeId(node))
}

/// An enrolled node that says whatever its owner wants.
struct Liar {
    endpoint: Endpoint,
    id: Id,
    there: bool,
    heard: Vec<Frame>,
    ended: Option<String>,
}

impl Side for Liar {
    fn receive(&mut self, from: SocketAddr, datagram: &[u8], now: Instant) {
        self.endpoint.receive(from, datagram, now);
        self.work();
    }
    fn poll(&mut self, now: Instant) {
        self.endpoint.poll(now);
        self.work();
    }
    fn next_timeout(&self) -> Option<Instant> {
        self.endpoint.next_timeout()
    }
    fn transmit(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        self.endpoint.transmit()
    }
}

impl Liar {
    fn new(lab: &Lab, identity: &Identity) -> Self {
        let tls = tls::client(&identity.own, Trust::Certificate(identity.authority.clone())).unwrap();
        let mut endpoint = Endpoint::client(Secret::draw().unwrap().bytes());
        let id = endpoint.connect(lab.address, tls, lab.now()).unwrap();
        Self { endpoint, id, there: false, heard: Vec::new(), ended: None }
    }

    fn work(&mut self) {
        while let Some(event) = self.endpoint.event() {
            match event {
                Event::Connected(_) => self.there = true,
                Event::Frame(_, bytes) => self.heard.push(Frame::decode(&bytes).unwrap()),
                Event::Lost(_, why, _) => self.ended = Some(why),
                Event::Datagram(..) => {}
            }
        }
    }

    fn answers(&self) -> impl Iterator<Item = Answer> {
        self.heard.iter().filter_map(|frame| match frame {
            Frame::Message(Message::AckHello(answer) | Message::AckUsed(answer)) => Some(*answer),
            _ => None,
        })
    }
}

/// Runs everybody until something is so.
fn with(
    lab: &mut Lab,
    nodes: &mut [Node],
    liar: (&mut Liar, &mut Socket),
    mut is: impl FnMut(&mut Lab, &Liar) -> bool,
) {
    let (liar, socket) = liar;
    let end = lab.now() + lab::PATIENCE;
    loop {
        let now = lab.now();
        socket.turn(liar, &mut || now);
        lab.turn(nodes);
        if is(lab, liar) {
            return;
        }
        assert!(lab.now() < end, "{:?} {:?}", lab.status(), liar.ended);
    }
}

fn says(lab: &mut Lab, nodes: &mut [Node], liar: &mut Liar, socket: &mut Socket, message: Message) {
    let now = lab.now();
    assert!(liar.endpoint.send(liar.id, &Frame::Message(message).encode(), now));
    let before = liar.heard.len();
    let end = lab.now() + Span::from_millis(100);
    with(lab, nodes, (liar, socket), |lab, liar| liar.heard.len() > before || lab.now() > end);
}

fn settings() -> gateway::Config {
    defaults(mbit(10))
}

/// A gateway with two honest nodes, and an insider with an identity of its own.
fn scene() -> (Lab, Vec<Node>, Identity) {
    let mut lab = Lab::new(settings());
    let nodes = lab.nodes(&[Share::default(); 2]);
    let insider = lab.identity(Share::default());
    (lab, nodes, insider)
}

fn keep_their_budgets(lab: &Lab, nodes: &[Node], of: u64) {
    for budget in lab.budgets(nodes) {
        assert!(budget.is_some_and(|budget| budget * 100 >= of * 98), "{budget:?} of {of}");
    }
}

fn levels(incarnation: u64) -> Message {
    Message::AvailBw(Levels { incarnation, seq: 1, levels: [1; 4], kept: Kept::ALL })
}

/// (a) One broadcast with the largest incarnation, made once, silenced a gateway and all after it.
#[test]
fn nobody_makes_a_gateway_retire() {
    let mut old = open_gateway();
    old.handle(&levels(u64::MAX), NodeId(66), Instant::ZERO, &mut Vec::new());
    assert!(old.is_retired(), "version 1 falls");

    let (mut lab, mut nodes, insider) = scene();
    // From outside, as bytes of version 1.
    let stranger = UdpSocket::bind(local()).unwrap();
    stranger.send_to(&encode(&levels(u64::MAX), &ring(1)), lab.address).unwrap();
    // From inside, over a session.
    let (mut liar, mut socket) = (Liar::new(&lab, &insider), Socket::bind(local()).unwrap());
    with(&mut lab, &mut nodes, (&mut liar, &mut socket), |_, liar| liar.there);
    says(&mut lab, &mut nodes, &mut liar, &mut socket, levels(u64::MAX));
    with(&mut lab, &mut nodes, (&mut liar, &mut socket), |lab, _| lab.status().refused.not_theirs == 1);
    lab.run(&mut nodes, Span::from_secs(4));
    let status = lab.status();
    assert_eq!((status.sessions.version_1, status.holders), (1, 2));
    keep_their_budgets(&lab, &nodes, BW / 2);
    // No clock decides who is the later gateway.
    assert_eq!(lab.roster.next_incarnation().unwrap(), 2);
}

/// The finalizer of MurmurHash3, by which version 1 places nodes in its table of 32,768.
fn place(id: u32) -> u32 {
    let mut x = id;
    x = (x ^ (x >> 16)).wrapping_mul(0x85eb_ca6b);
    x = (x ^ (x >> 13)).wrapping_mul(0xc2b2_ae35);
    (x ^ (x >> 16)) & 32_767
}

/// (b) 64 chosen numbers filled the only places that a victim could have.
#[test]
fn nobody_takes_the_place_of_another() {
    let victim = 4711;
    let chosen: Vec<u32> = (0..u32::MAX).filter(|id| *id != victim && place(*id) == place(victim)).take(64).collect();
    let mut old = open_gateway();
    chosen.iter().for_each(|id| assert!(joins(&mut old, *id).is_some()));
    assert_eq!(joins(&mut old, victim), None, "version 1 falls at a load of 64 of 10,000");

    let mut keyed = open_gateway().with_table_key([3, 4]);
    chosen.iter().for_each(|id| assert!(joins(&mut keyed, *id).is_some()));
    assert_eq!(joins(&mut keyed, victim), Some(BW / 65));

    // Nobody chooses a number at all: who asks under another one is not heard.
    let (mut lab, mut nodes, insider) = scene();
    let (mut liar, mut socket) = (Liar::new(&lab, &insider), Socket::bind(local()).unwrap());
    with(&mut lab, &mut nodes, (&mut liar, &mut socket), |_, liar| liar.there);
    for id in &chosen[..32] {
        let hello = Message::ClientHello { node: NodeId(*id), ask: 1, state: None };
        assert!(liar.endpoint.send(liar.id, &Frame::Message(hello).encode(), lab.now()));
    }
    with(&mut lab, &mut nodes, (&mut liar, &mut socket), |lab, _| lab.status().refused.other_names == 32);
    assert_eq!(lab.status().holders, 2);
    keep_their_budgets(&lab, &nodes, BW / 2);
}

/// An answer that grants 1 Gbit/s for an hour.
fn too_good(node: NodeId, ask: u64) -> Answer {
    let share = Share::default();
    let state = State {
        node,
        share,
        status: Status::Good,
        claim: Claim::ALL,
        level: 1_000_000_000,
        until: Instant::MAX,
        seq: 9,
        incarnation: 9,
    };
    let levels = Levels { incarnation: 9, seq: 9, levels: [1_000_000_000; 4], kept: Kept::ALL };
    Answer { node, ask, state: state.sign(&ring(66)), levels, lease: Span::from_secs(3600) }
}

/// (c) Who had the network's key gave any budget for any time.
#[test]
fn nobody_but_the_gateway_gives_budgets() {
    let mut old = Client::new(Config::new(NodeId(1), 500)).unwrap();
    let mut sent = Vec::new();
    old.open(Instant::ZERO, &mut sent);
    let Some(Message::ClientHello { node, ask, .. }) = sent.first() else { panic!("no hello") };
    old.handle(&Message::AckHello(too_good(*node, *ask)), Instant::ZERO, &mut Vec::new());
    let later = Instant::ZERO + Span::from_secs(3599);
    assert_eq!(old.budget_bps(later), Some(1_000_000_000), "version 1 falls");

    // Another gateway at the address of ours, with an authority of its own.
    let mut ours = Lab::new(settings());
    let identity = ours.identity(Share::default());
    let mut theirs = Lab::new(defaults(mbit(1000)));
    let mut nodes = vec![theirs.node(&identity)];
    theirs.until("the node gives up", &mut nodes, |_, nodes| nodes[0].agent.counters().lost >= 2);
    assert_eq!((theirs.budgets(&nodes)[0], nodes[0].agent.counters().sessions), (None, 0));
    assert!(theirs.status().sessions.failed >= 1);

    // A gateway of ours that was taken over gives no longer lease than a minute: the longest that may be set.
    let long = gateway::Config { lease: Span::from_secs(3600), ..settings() };
    assert!(validate(&long).unwrap_err().to_string().contains("1min"));
}

/// (d) One insider with 9,999 numbers left 1 kbit/s of 10 Mbit/s to a node.
#[test]
fn one_identity_is_one_share() {
    let mut old = open_gateway();
    assert_eq!(joins(&mut old, 1), Some(BW));
    (2..=10_000).for_each(|id| assert!(joins(&mut old, id).is_some()));
    assert_eq!(old.granted_to(NodeId(1)), Some(1_000), "version 1 falls");
    assert_eq!(joins(&mut old, 10_001), None, "and its table is full");

    let (mut lab, mut nodes, insider) = scene();
    // The token of the insider is used up.
    let token = lab.token(Share::default(), 1);
    lab.enrol(&token, "second").unwrap();
    assert!(lab.enrol(&token, "third").is_err());
    // Twenty sessions under one identity are one share, of which the newest lives.
    let mut crowd: Vec<Node> = (0..20).map(|_| lab.node(&insider)).collect();
    nodes.append(&mut crowd);
    lab.run(&mut nodes, Span::from_secs(2));
    let honest = &nodes[..2];
    keep_their_budgets(&lab, honest, BW / 3);
    let status = lab.status();
    assert!(status.holders <= 3 && status.nodes.len() <= 3, "{status:?}");
}

/// (e) A hello of 36 bytes was answered by 156 to whatever source it named, without end.
#[test]
fn no_more_is_sent_to_a_source_than_it_has_sent() {
    let (now, mut out) = (Instant::ZERO, Vec::new());
    let hello = Message::ClientHello { node: NodeId(7), ask: 1, state: None };
    open_gateway().handle(&hello, NodeId(7), now, &mut out);
    let answer = out.iter().find(|o| matches!(o.message, Message::AckHello(_))).unwrap();
    let lengths = [hello, answer.message].map(|message| encode(&message, &ring(1)).len());
    assert_eq!(lengths, [36, 156], "version 1 sends more than four times as much");

    let mut lab = Lab::new(settings());
    let identity = lab.identity(Share::default());
    let victim = UdpSocket::bind(local()).unwrap();
    victim.set_nonblocking(true).unwrap();
    // What the gateway sends to a source that names itself and does not answer.
    let mut first = Liar::new(&lab, &identity);
    let (_, initial) = first.transmit().unwrap();
    let mut sent = 0;
    for datagram in
        [&encode(&hello, &ring(1)), &initial, &vec![0xff; 1200], &[&[0xc0, 9, 9, 9, 9], &initial[5..]].concat()]
    {
        for _ in 0..50 {
            victim.send_to(datagram, lab.address).unwrap();
            sent += datagram.len();
            lab.turn(&mut []);
        }
    }
    let (mut got, mut buffer) = (0, [0; 2000]);
    while let Ok(len) = victim.recv(&mut buffer) {
        got += len;
    }
    assert!(got < sent, "{got} of {sent}");
    let status = lab.status();
    assert!(status.sessions.cookies >= 50 && status.sessions.version_1 == 50, "{status:?}");
    assert_eq!((lab.role.endpoint().handshakes(), status.nodes.len()), (0, 0), "nothing is kept of them");
}

/// (f) Claims and budgets could be read on the way.
#[test]
fn nobody_reads_claims_on_the_way() {
    let mark = 0x0123_4567_89ab_cdefu64 >> 24;
    let state: Signed = State::ticket(NodeId(7), Share::default()).sign(&ring(2));
    let used = Message::UsedBw(Request { node: NodeId(7), ask: 1, state }, Claim::bps(mark));
    let seen = |bytes: &[u8]| bytes.windows(8).any(|eight| eight == mark.to_be_bytes());
    assert!(seen(&encode(&used, &ring(1))), "version 1 shows it");

    let mut lab =
        Lab::new(gateway::Config { policy: Policy::of(Sharing::MaxMin), ..defaults(Rate::from_bps(mark * 2)) });
    let identity = lab.identity(Share::default());
    let mut node = lab.node(&identity);
    let (mut wire, mut carried) = (Vec::new(), 0);
    let (mut to, mut from) = (Vec::new(), Vec::new());
    let end = lab.now() + lab::PATIENCE;
    let own = node.socket.udp().local_addr().unwrap();
    // The wire is in our hands here.
    while lab.status().nodes.iter().all(|node| node.claim_bps != Some(mark)) {
        assert!(lab.now() < end, "{:?}", lab.status());
        let now = lab.now();
        node.agent.poll(now);
        node.agent.set_usable(Some(Rate::from_bps(mark)), now);
        while let Some((_, datagram)) = node.agent.transmit() {
            to.push(datagram);
        }
        for datagram in to.drain(..) {
            lab.role.receive(own, &datagram, now);
            wire.extend_from_slice(&datagram);
            carried += 1;
        }
        lab.role.poll(now);
        while let Some((_, datagram)) = lab.role.transmit() {
            from.push(datagram);
        }
        for datagram in from.drain(..) {
            node.agent.receive(lab.address, &datagram, now);
            wire.extend_from_slice(&datagram);
            carried += 1;
        }
    }
    assert!(carried >= 10 && !seen(&wire), "{carried}");
}

/// States that are forged, old, of others or expired are refused and counted; what they ask for is not done.
#[test]
fn states_are_believed_once_and_from_their_owner() {
    let mut lab = Lab::new(gateway::Config { policy: Policy::of(Sharing::MaxMin), ..settings() });
    let mut nodes = lab.nodes(&[Share::default(); 2]);
    let insider = lab.identity(Share::default());
    let (mut liar, mut socket) = (Liar::new(&lab, &insider), Socket::bind(local()).unwrap());
    with(&mut lab, &mut nodes, (&mut liar, &mut socket), |_, liar| liar.there);
    let node = insider.node;
    let hello = |ask, state| Message::ClientHello { node, ask, state: Some(state) };
    let used = |ask, state, claim| Message::UsedBw(Request { node, ask, state }, Claim::bps(claim));
    says(&mut lab, &mut nodes, &mut liar, &mut socket, hello(1, insider.ticket));
    let invited = liar.answers().last().unwrap().state;
    says(&mut lab, &mut nodes, &mut liar, &mut socket, hello(2, invited));
    let first = liar.answers().last().unwrap().state;
    says(&mut lab, &mut nodes, &mut liar, &mut socket, used(3, first, 3_000_000));
    let second = liar.answers().last().unwrap().state;
    says(&mut lab, &mut nodes, &mut liar, &mut socket, used(4, second, 2_000_000));
    let third = liar.answers().last().unwrap().state;
    assert_eq!(lab.status().messages.joined, 3);

    // Forged: of a higher class, signed by somebody else.
    let better = State { share: Share { class: 0, weight: 1000, floor: Floor::NONE }, ..*third.state() };
    says(&mut lab, &mut nodes, &mut liar, &mut socket, used(5, better.sign(&ring(66)), u64::MAX));
    assert_eq!(lab.status().messages.forged, 1);
    // Genuine, but of another node: a ticket that its owner lent.
    let friend = lab.identity(Share { class: 0, weight: 1000, floor: Floor::NONE });
    says(&mut lab, &mut nodes, &mut liar, &mut socket, hello(6, friend.ticket));
    assert_eq!(lab.status().messages.forged, 2);
    // Replayed: the one before the last is answered again and changes nothing, older ones are stale.
    says(&mut lab, &mut nodes, &mut liar, &mut socket, used(7, first, 9_000_000));
    assert_eq!(lab.status().messages.stale, 1);
    says(&mut lab, &mut nodes, &mut liar, &mut socket, used(8, second, 9_000_000));
    assert_eq!(lab.status().messages.repeated, 1);
    assert!(lab.role.budget(node).is_some_and(|budget| budget <= 2_000_000));
    // Expired: a lease later it holds nothing, and its state only gets an invitation.
    let end = lab.now() + Span::from_millis(4500);
    with(&mut lab, &mut nodes, (&mut liar, &mut socket), |lab, _| lab.now() > end);
    assert_eq!((lab.role.budget(node), lab.status().messages.lapsed), (None, 1));
    says(&mut lab, &mut nodes, &mut liar, &mut socket, used(9, third, 9_000_000));
    assert_eq!(liar.answers().last().unwrap().state.state().status, Status::Invited);
    assert_eq!(lab.role.budget(node), None);
    keep_their_budgets(&lab, &nodes, BW / 2);
    // Too much: a node that floods loses its session, and nobody else anything.
    let mut ask = 10;
    while liar.ended.is_none() {
        let now = lab.now();
        assert!(ask < 1_000_000, "{:?}", lab.status());
        while liar.endpoint.send(liar.id, &Frame::Message(used(ask, third, 1)).encode(), now) {
            ask += 1;
        }
        socket.turn(&mut liar, &mut || now);
        lab.turn(&mut nodes);
    }
    assert!(lab.status().sessions.closed >= 1);
    lab.run(&mut nodes, Span::from_millis(500));
    keep_their_budgets(&lab, &nodes, BW / 2);
}
