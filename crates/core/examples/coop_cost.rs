//! The cost of cooperative control at the gateway: nanoseconds for a client to join, to renew its lease and to leave,
//! for 10,000 clients; and the gateway's memory in bytes, without clients and with all. Prints one JSON object.
//!
//! `cargo run --release -p penstock-core --example coop_cost -- [clients=N] [rounds=N] [policy=NAME]`
//!
//! Both messages of a join count: the hello that is answered by an invitation, and the hello with the invitation. The
//! cost includes all work on bytes: a message is decoded and its tag checked, the state's tag is checked, the next
//! state and the answer are signed and encoded. It excludes sockets. `*_machine_ns` is the gateway's state machine with
//! its signatures of states, without the encoding of messages. Times are medians over turns of 250 requests, short
//! enough that most turns are not interrupted by another process.

use penstock_core::coop::gateway::{Config, Gateway, Outgoing, Start};
use penstock_core::coop::keys::{Key, Keyring};
use penstock_core::coop::message::{Message, Request, decode, encode, encode_into};
use penstock_core::coop::policy::{Policy, Sharing};
use penstock_core::coop::state::{Claim, NodeId};
use penstock_core::units::{Instant, Rate, Span};
use serde_json::json;
use std::hint::black_box;
use std::time::Instant as Clock;

const MBIT: u64 = 1_000_000;
/// Number of requests between two readings of the clock.
const TURN: usize = 250;

struct Case {
    gateway: Gateway,
    ring: Keyring,
    now: Instant,
    out: Vec<Outgoing>,
    bytes: Vec<u8>,
}

impl Case {
    /// Handles requests given as bytes and encodes the answers.
    fn with_bytes(&mut self, requests: &[Vec<u8>], times: &mut Vec<f64>) -> Vec<Message> {
        let mut answers = Vec::with_capacity(requests.len() + TURN);
        for turn in requests.chunks(TURN) {
            let clock = Clock::now();
            for request in turn {
                self.now += Span::from_micros(10);
                let Ok(message) = decode(request, &self.ring) else { continue };
                self.handle(&message, &mut answers);
            }
            times.push(clock.elapsed().as_nanos() as f64 / turn.len() as f64);
        }
        answers
    }

    fn handle(&mut self, message: &Message, answers: &mut Vec<Message>) {
        self.out.clear();
        self.gateway.handle(message, sender(message), self.now, &mut self.out);
        for sent in &self.out {
            encode_into(&sent.message, &self.ring, &mut self.bytes);
            black_box(&self.bytes);
            if !matches!(sent.message, Message::AvailBw(_)) {
                answers.push(sent.message);
            }
        }
    }

    /// Handles decoded requests without encoding the answers.
    fn machine(&mut self, requests: &[Message], times: &mut Vec<f64>) -> Vec<Message> {
        let mut answers = Vec::with_capacity(requests.len() + TURN);
        for turn in requests.chunks(TURN) {
            let clock = Clock::now();
            for message in turn {
                self.now += Span::from_micros(10);
                self.out.clear();
                self.gateway.handle(black_box(message), sender(message), self.now, &mut self.out);
                answers.extend(self.out.iter().map(|sent| sent.message).filter(|m| !matches!(m, Message::AvailBw(_))));
            }
            times.push(clock.elapsed().as_nanos() as f64 / turn.len() as f64);
        }
        answers
    }
}

fn sender(message: &Message) -> NodeId {
    match message {
        Message::ClientHello { node, .. } => *node,
        Message::ClientBye(request) | Message::UsedBw(request, _) => request.node,
        _ => NodeId(u32::MAX),
    }
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn requests(answers: &[Message], make: impl Fn(Request) -> Message) -> Vec<Message> {
    let of = |answer: &Message| match answer {
        Message::AckHello(a) | Message::AckUsed(a) => {
            Some(make(Request { node: a.node, ask: a.ask + 1, state: a.state }))
        }
        _ => None,
    };
    answers.iter().filter_map(of).collect()
}

fn again(request: Request) -> Message {
    Message::ClientHello { node: request.node, ask: request.ask, state: Some(request.state) }
}

fn main() {
    let (mut clients, mut rounds, mut sharing) = (10_000u32, 21usize, Sharing::UnweightedFair);
    for setting in std::env::args().skip(1) {
        match setting.split_once('=') {
            Some(("clients", n)) => clients = n.parse().expect("clients is a number"),
            Some(("rounds", n)) => rounds = n.parse().expect("rounds is a number"),
            Some(("policy", name)) => sharing = serde_json::from_value(json!(name)).expect("policy is a name"),
            _ => panic!("{setting}: write clients=N, rounds=N or policy=NAME"),
        }
    }
    let config = Config { max_clients: clients, ..Config::new(Rate::from_bps(1000 * MBIT), Policy::of(sharing)) };
    let (state, network) = (Keyring::new(1, &Key::new([1; 32])), Keyring::new(2, &Key::new([2; 32])));
    let gateway = Gateway::new(config, state, 1, Start::Fresh, Instant::ZERO).expect("a valid configuration");
    let empty = gateway.memory();
    let mut case = Case { gateway, ring: network, now: Instant::ZERO, out: Vec::new(), bytes: Vec::new() };
    let mut times: [Vec<f64>; 7] = Default::default();
    let mut full = 0;
    for _ in 0..rounds.max(1) {
        full = full.max(round(&mut case, clients, &mut times));
    }
    let [h1, h2, used, bye, m1, m2, m3] = times.each_mut().map(|all| median(all).round());
    let found = json!({
        "clients": clients,
        "join_ns": h1 + h2,
        "used_ns": used,
        "leave_ns": bye,
        "join_machine_ns": m1 + m2,
        "leave_machine_ns": m3,
        "memory_empty_bytes": empty,
        "memory_full_bytes": full,
    });
    println!("{found}");
}

/// Every client joins, reports what it can use and leaves, with messages as bytes; then it joins and leaves without
/// encoding. Returns the gateway's memory in bytes.
fn round(case: &mut Case, clients: u32, times: &mut [Vec<f64>; 7]) -> usize {
    let ring = case.ring.clone();
    let bytes = |messages: &[Message]| messages.iter().map(|m| encode(m, &ring)).collect::<Vec<_>>();
    let claim = |request: Request| {
        let few = Claim::bps(u64::from(request.node.0) * 10);
        Message::UsedBw(request, if request.node.0.is_multiple_of(2) { Claim::ALL } else { few })
    };
    let hellos: Vec<Message> =
        (0..clients).map(|node| Message::ClientHello { node: NodeId(node), ask: 1, state: None }).collect();
    let invited = case.with_bytes(&bytes(&hellos), &mut times[0]);
    let joined = case.with_bytes(&bytes(&requests(&invited, again)), &mut times[1]);
    assert_eq!(case.gateway.clients(), clients);
    let memory = case.gateway.memory();
    let told = case.with_bytes(&bytes(&requests(&joined, claim)), &mut times[2]);
    case.with_bytes(&bytes(&requests(&told, Message::ClientBye)), &mut times[3]);
    assert_eq!(case.gateway.clients(), 0);
    let invited = case.machine(&hellos, &mut times[4]);
    let joined = case.machine(&requests(&invited, again), &mut times[5]);
    case.machine(&requests(&joined, Message::ClientBye), &mut times[6]);
    memory
}
