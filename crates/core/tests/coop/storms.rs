//! Random events, faults and attacks at once, over long runs.

use super::network::{At, DELAY, Dice, Faults, GAP, LEASE, Network, network_ring};
use penstock_core::coop::keys::{Key, Keyring};
use penstock_core::coop::message::{Message, Request, encode};
use penstock_core::coop::policy::{Policy, Sharing};
use penstock_core::coop::state::{Claim, NodeId, Share, State, Status};
use penstock_core::coop::{Floor, Floors};
use penstock_core::units::{Instant, Span};
use proptest::prelude::*;

const MBIT: u64 = 1_000_000;

/// One random event: a client opens or closes, a rate changes, a node restarts, or the attacker acts.
fn happen(network: &mut Network, dice: &mut Dice) {
    let at = dice.below(network.clients.len() as u64) as usize;
    match dice.below(100) {
        0..30 => network.open(at),
        30..45 => network.close(at),
        45..65 => {
            let bps = dice.below(20) * MBIT / 4;
            network.usable(at, dice.chance(80).then_some(bps));
        }
        65..72 => network.bandwidth((1 + dice.below(40)) * MBIT / 2),
        72..80 => network.restart_client(at),
        80..84 => network.restart_gateway(),
        _ => attack(network, dice, at),
    }
}

/// The attacker receives every message and sends it again, whole, in parts or changed; it also makes messages of its
/// own with the network's key but without the gateway's.
fn attack(network: &mut Network, dice: &mut Dice, at: usize) {
    let to = if dice.chance(50) { At::Gateway } else { At::Client(at) };
    for _ in 0..dice.below(10) {
        let old = dice.below(network.heard.len() as u64) as usize;
        let mut bytes = network.heard.get(old).cloned().unwrap_or_default();
        match dice.below(4) {
            0 => {
                if let Some(place) = bytes.len().checked_sub(1).map(|last| dice.below(last as u64 + 1) as usize) {
                    bytes[place] ^= 1 << dice.below(8);
                }
            }
            1 => bytes.truncate(dice.below(200) as usize),
            _ => {}
        }
        network.inject(to, bytes, DELAY);
    }
    let node = NodeId(at as u32);
    let share = Share { class: 0, weight: 1000, ..Share::default() };
    let status = if dice.chance(50) { Status::Good } else { Status::Invited };
    let (seq, incarnation) = (dice.below(100), dice.below(3));
    let state = State { status, seq, incarnation, ..State::ticket(node, share) };
    let state = state.sign(&Keyring::new(1, &Key::new([7; 32])));
    let request = Request { node, ask: dice.below(1 << 40), state };
    let message = match dice.below(3) {
        0 => Message::ClientBye(request),
        1 => Message::UsedBw(request, Claim::bps(dice.below(MBIT))),
        _ => Message::ClientHello { node, ask: request.ask, state: Some(state) },
    };
    network.inject(At::Gateway, encode(&message, &network_ring()), DELAY);
}

/// The state of the gateway, to detect changes.
fn books(network: &mut Network) -> (u64, u64, Vec<Option<u64>>, u64) {
    let levels = *network.gateway.levels();
    (levels.incarnation, levels.seq, network.granted(), network.gateway.bandwidth().as_bps())
}

/// Runs for `span` and checks the bound of docs/reference/c2lp.md: if the gateway's state did not change for a lease and two
/// one-way delays, the clients together assume at most the budgets that the gateway granted.
struct Watch {
    books: (u64, u64, Vec<Option<u64>>, u64),
    since: Instant,
    /// How often the bound was checked.
    looked: u64,
}

impl Watch {
    fn run(&mut self, network: &mut Network, span: Span) {
        let end = network.now + span;
        loop {
            let more = network.step(end);
            network.check();
            let now = books(network);
            if now != self.books {
                (self.books, self.since) = (now, network.now);
            }
            if network.now.since(self.since) > LEASE + DELAY * 2 {
                self.looked += 1;
                for (believed, granted) in network.beliefs().iter().zip(&self.books.2) {
                    assert!(believed.is_none() || believed <= granted, "{believed:?} of {granted:?}");
                }
                assert!(network.believed() <= network.gateway.bandwidth().as_bps());
            }
            if !more {
                return;
            }
        }
    }
}

fn storm(policy: Policy, clients: u32, faults: Faults, seed: u64) -> u64 {
    let mut network = Network::new(policy, 10 * MBIT, clients, seed);
    network.faults = faults;
    let mut dice = Dice(seed ^ 0xabcd);
    let mut watch = Watch { books: books(&mut network), since: Instant::ZERO, looked: 0 };
    for _ in 0..60 {
        happen(&mut network, &mut dice);
        let pause = Span::from_millis(if dice.chance(10) { 5000 } else { dice.below(400) });
        watch.run(&mut network, pause);
    }
    // The storm ends: messages still arrive late and twice, and old ones are repeated, but none is lost.
    network.faults.loss = 0;
    (0..clients as usize).for_each(|at| network.open(at));
    for _ in 0..10 {
        attack(&mut network, &mut dice, 0);
    }
    let wants: Vec<bool> = (0..clients as usize).map(|at| at % 2 == 0).collect();
    (0..clients as usize).filter(|at| wants[*at]).for_each(|at| network.usable(at, None));
    // The grace period, the longest pause between two attempts (8 * 100 ms and half of that) with four one-way delays,
    // the chain of DyBRA, and the bound.
    let attempt = Span::from_millis(1200) + DELAY * 4;
    let chain = (DELAY * 3 + GAP) * u64::from(clients + 1);
    watch.run(&mut network, LEASE + attempt + chain + LEASE + DELAY * 2);
    let (beliefs, granted) = (network.beliefs(), network.granted());
    assert!(beliefs.iter().all(Option::is_some), "someone is left out: {beliefs:?}");
    // Floors of others may leave nothing.
    let floors = network.gateway.floors() * 2 > network.gateway.bandwidth().as_bps();
    let wants = if floors { vec![false; wants.len()] } else { wants };
    assert!(beliefs.iter().zip(&wants).all(|(b, wants)| *b > Some(0) || !wants), "someone starves: {beliefs:?}");
    assert_eq!(beliefs, granted);
    assert!(network.believed() <= network.gateway.bandwidth().as_bps());
    watch.looked
}

fn policies() -> impl Strategy<Value = Policy> {
    use Sharing::{Dybra, MaxMin, Priority, UnweightedFair, Weighted};
    let sharing = prop::sample::select(vec![UnweightedFair, Weighted, Priority, Dybra, MaxMin]);
    let floor = prop::sample::select(vec!["none", "200kbit/s", "3Mbit/s", "15Mbit/s"])
        .prop_map(|text| text.parse::<Floor>().unwrap());
    (sharing, prop::collection::vec(floor, 0..4)).prop_map(|(sharing, floors)| Policy {
        floors: Floors::try_from(floors).expect("at most four"),
        ..Policy::of(sharing)
    })
}

proptest! {
    #[test]
    fn budgets_hold_in_any_storm(policy in policies(), clients in 1u32..8, loss in 0u64..40, twice in 0u64..30, seed: u64) {
        storm(policy, clients, Faults { loss, twice }, seed);
    }
}

#[test]
fn the_bound_is_looked_at() {
    let looked: u64 = (0..20).map(|seed| storm(Policy::default(), 3, Faults { loss: 20, twice: 20 }, seed)).sum();
    assert!(looked > 1000, "{looked}");
}
