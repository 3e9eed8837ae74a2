//! Budgets over real sockets: the same as those of the state machines alone, through all that happens to a network.

use crate::lab::{Lab, Node, mbit};
use crate::still::Still;
use penstock_budgets::agent::RETRY;
use penstock_budgets::gateway::defaults;
use penstock_core::coop::client::{self, Client};
use penstock_core::coop::gateway::{Config, Gateway, Outgoing, Start, To};
use penstock_core::coop::policy::{Policy, Sharing};
use penstock_core::coop::state::State;
use penstock_core::coop::{Floor, Key, Keyring, NodeId, Share};
use penstock_core::units::{Instant, Rate, Span};

/// What happens.
#[derive(Debug, Clone, Copy)]
enum Do {
    Join(usize),
    Leave(usize),
    Usable(usize, Option<u64>),
    Rate(u64),
}

const SHARES: [Share; 4] = [
    Share { class: 0, weight: 1, floor: Floor::NONE },
    Share { class: 1, weight: 4, floor: Floor::NONE },
    Share { class: 1, weight: 1, floor: Floor::NONE },
    Share { class: 3, weight: 2, floor: Floor::NONE },
];

const SCRIPT: [Do; 10] = [
    Do::Join(1),
    Do::Join(0),
    Do::Join(2),
    Do::Usable(0, Some(700_000)),
    Do::Join(3),
    Do::Rate(20_000_000),
    Do::Usable(1, Some(2_000_000)),
    Do::Usable(0, None),
    Do::Leave(2),
    Do::Rate(6_000_000),
];

/// For each node, the budgets that it had one after the other.
type Sequences = [Vec<Option<u64>>; 4];

fn note(sequences: &mut Sequences, budgets: [Option<u64>; 4]) {
    for (sequence, budget) in sequences.iter_mut().zip(budgets) {
        if sequence.last() != Some(&budget) {
            sequence.push(budget);
        }
    }
}

fn settings(sharing: Sharing) -> Config {
    Config { policy: Policy::of(sharing), ..defaults(mbit(10)) }
}

/// Plays the script into the state machines alone; each message takes a millisecond.
fn direct(sharing: Sharing) -> Sequences {
    let ring = Keyring::new(1, &Key::new([1; 32]));
    let mut now = Instant::ZERO;
    let mut gateway = Gateway::new(settings(sharing), ring.clone(), 1, Start::Fresh, now).unwrap();
    let mut clients: Vec<Client> = (0..4)
        .map(|i| {
            let ticket = State::ticket(NodeId(i as u32), SHARES[i]).sign(&ring);
            let config = client::Config::new(NodeId(i as u32), 77);
            let config = client::Config { ticket: Some(ticket), retry: RETRY, ..config };
            Client::new(config).unwrap()
        })
        .collect();
    let mut sequences = Sequences::default();
    let (mut up, mut down) = (Vec::new(), Vec::new());
    for event in SCRIPT {
        let mut sent = Vec::new();
        match event {
            Do::Join(i) => clients[i].open(now, &mut sent),
            Do::Leave(i) => clients[i].close(now, &mut sent),
            Do::Usable(i, rate) => clients[i].set_usable(rate.map(Rate::from_bps), now, &mut sent),
            Do::Rate(rate) => gateway.set_bandwidth(Rate::from_bps(rate), now, &mut down),
        }
        if let Do::Join(i) | Do::Leave(i) | Do::Usable(i, _) = event {
            up.extend(sent.into_iter().map(|message| (i, message)));
        }
        for _ in 0..400 {
            note(&mut sequences, std::array::from_fn(|i| clients[i].budget(now).map(Rate::as_bps)));
            now += Span::from_millis(1);
            let (arrived_up, arrived_down) = (std::mem::take(&mut up), std::mem::take(&mut down));
            for (i, message) in arrived_up {
                gateway.handle(&message, NodeId(i as u32), now, &mut down);
            }
            gateway.poll(now, &mut down);
            for (i, client) in clients.iter_mut().enumerate() {
                let mut out = Vec::new();
                client.poll(now, &mut out);
                up.extend(out.into_iter().map(|message| (i, message)));
            }
            for Outgoing { to, message } in arrived_down {
                for (i, client) in clients.iter_mut().enumerate() {
                    let mut out = Vec::new();
                    if to == To::Everyone || to == To::Node(NodeId(i as u32)) {
                        client.handle(&message, now, &mut out);
                    }
                    up.extend(out.into_iter().map(|message| (i, message)));
                }
            }
        }
    }
    sequences
}

/// Plays the script over QUIC on real sockets.
fn real(sharing: Sharing) -> Sequences {
    let mut lab = Lab::new(settings(sharing));
    let identities: Vec<_> = SHARES.iter().map(|share| lab.identity(*share)).collect();
    let (mut nodes, mut of): (Vec<Node>, Vec<usize>) = (Vec::new(), Vec::new());
    let mut sequences = Sequences::default();
    for event in SCRIPT {
        let now = lab.now();
        match event {
            Do::Join(i) => {
                nodes.push(lab.node(&identities[i]));
                of.push(i);
            }
            Do::Leave(i) => nodes[of.iter().position(|one| *one == i).unwrap()].agent.end(now),
            Do::Usable(i, rate) => {
                let at = of.iter().position(|one| *one == i).unwrap();
                nodes[at].agent.set_usable(rate.map(Rate::from_bps), now);
            }
            Do::Rate(rate) => lab.role.set_rate(Rate::from_bps(rate), now),
        }
        let end = lab.now() + Span::from_millis(400);
        while lab.now() < end {
            lab.turn(&mut nodes);
            let budgets = lab.budgets(&nodes);
            let budgets = std::array::from_fn(|i| of.iter().position(|one| *one == i).and_then(|at| budgets[at]));
            note(&mut sequences, budgets);
        }
    }
    sequences
}

/// The bar of the protocol: simulation and real sockets give the same budgets, in the same order.
#[test]
fn sockets_give_the_budgets_of_the_state_machines() {
    let all = [Sharing::UnweightedFair, Sharing::Weighted, Sharing::Priority, Sharing::Dybra, Sharing::MaxMin];
    for sharing in all {
        let expected = direct(sharing);
        assert!(expected.iter().all(|sequence| sequence.len() >= 4), "{sharing:?}: {expected:?}");
        // Messages of two nodes may overtake each other on a machine that is very busy.
        let same = (0..3).any(|_| real(sharing) == expected);
        assert!(same, "{sharing:?}: {expected:?} and {:?}", real(sharing));
    }
}

/// Four nodes with budgets, in time that is counted and not measured, and this long after the last of them joined.
fn still(sharing: Sharing, after: Span) -> Still {
    let mut still = Still::new(settings(sharing));
    for share in SHARES {
        let identity = still.enrolled(share);
        still.join(&identity);
    }
    still.until(Span::from_secs(1), |still| still.budgets().iter().all(Option::is_some)).unwrap();
    still.run(after);
    still
}

/// A gateway that starts again knows only its directory. Its first answer to a node that speaks resets the session, and a
/// node speaks at least each third of its lease. It then waits at most a quarter of a second before it comes back.
#[test]
fn a_gateway_that_starts_again_is_found_at_once() {
    let third = settings(Sharing::Weighted).lease.div(3);
    let mut still = still(Sharing::Weighted, third * 2);
    let before = still.budgets();
    still.restart();
    let back =
        |still: &mut Still| still.status().holders == 4 && still.nodes.iter().all(|node| node.gateway().is_some());
    let handshakes = Span::from_millis(100);
    assert!(still.until(third + Span::from_millis(250) + handshakes, back).is_some(), "{:?}", still.status());
    let same = |still: &mut Still| still.budgets() == before;
    assert!(still.until(Span::from_secs(1), same).is_some(), "{:?} and {before:?}", still.budgets());
    assert_eq!(still.status().messages.forged, 0);
}

/// Leases of the gateway before are still out, so a newcomer waits until the last of them has ended or come back. Together nodes
/// never have more than the link, whenever after the last one joined the gateway crashes. Who had a budget before does not wait.
#[test]
fn after_a_restart_newcomers_wait_until_no_lease_of_before_is_out() {
    let lease = settings(Sharing::UnweightedFair).lease;
    for after in [1, 4, 8, 11].map(|part| lease.div(24) * part) {
        let mut still = still(Sharing::UnweightedFair, after);
        let newcomer = still.enrolled(SHARES[0]);
        still.restart();
        let start = still.now;
        still.join(&newcomer);
        let (mut returned, link) = (None, mbit(10).as_bps());
        let sum = |still: &Still| still.budgets().iter().flatten().sum::<u64>();
        let admitted = still.until(lease * 2, |still| {
            let (now, holders) = (still.now.since(start), still.status().holders);
            returned = returned.or((holders == 4).then_some(now));
            let admitted = still.budgets()[4].is_some();
            assert!(admitted || sum(still) <= link, "{:?} {after} after a join", still.budgets());
            admitted
        });
        // The others are told at most 20 ms later.
        still.run(Span::from_millis(25));
        assert!(sum(&still) <= link, "{:?}", still.budgets());
        assert!(returned.is_some_and(|returned| returned < lease), "{returned:?}");
        assert!(admitted.is_some_and(|admitted| admitted >= lease), "{admitted:?}");
    }
}

/// A node that is admitted within 20 ms of a broadcast has its budget when the others are told, and not before. So all leases together
/// are never more than the link, also if the gateway crashes between the two.
#[test]
fn nodes_that_join_at_once_never_have_more_than_the_link() {
    for moment in [0, 1, 2, 3, 5, 9, 15, 19, 21, 30] {
        let mut still = Still::new(settings(Sharing::UnweightedFair));
        let identities = SHARES.map(|share| still.enrolled(share));
        identities.iter().for_each(|identity| still.join(identity));
        let check = |still: &Still| {
            let budgets = still.budgets();
            let sum = budgets.iter().flatten().sum::<u64>();
            assert!(sum <= mbit(10).as_bps(), "{budgets:?}, a crash after {moment} ms");
            budgets.iter().filter(|budget| budget.is_some()).count()
        };
        still.until(Span::from_secs(1), |still| check(still) > 0).expect("the first has a budget");
        still.until(Span::from_millis(moment), |still| check(still) > 4);
        still.restart();
        // All that have a budget come back; the others wait until the grace ends.
        still.until(Span::from_millis(1500), |still| check(still) > 4);
    }
}

/// There is no lease of a gateway before the first one.
#[test]
fn the_first_gateway_admits_its_nodes_at_once() {
    let mut still = Still::new(settings(Sharing::UnweightedFair));
    let node = still.enrolled(SHARES[0]);
    still.join(&node);
    // The handshake and two questions with their answers; levels are told at most 20 ms later.
    let admitted = still.until(Span::from_millis(200), |still| still.budgets()[0].is_some());
    assert!(admitted.is_some(), "{:?}", still.status());
    assert_eq!(still.budgets(), [Some(mbit(10).as_bps())]);
}

/// A gateway that serves in place of another one begins with the same grace.
#[test]
fn a_standby_that_takes_over_lets_newcomers_wait_for_a_lease() {
    let mut still = Still::new(settings(Sharing::UnweightedFair));
    let node = still.enrolled(SHARES[0]);
    still.role.serve(false, still.now).unwrap();
    still.join(&node);
    still.run(Span::from_secs(2));
    assert_eq!((still.budgets(), still.role.serves()), (vec![None], false));
    still.role.serve(true, still.now).unwrap();
    let lease = settings(Sharing::UnweightedFair).lease;
    // Its waits double with each attempt that fails, up to four seconds.
    let admitted = still.until(lease * 3, |still| still.budgets()[0].is_some());
    assert!(admitted.is_some_and(|admitted| admitted >= lease), "{admitted:?}");
}

/// No gateway, no budget: a lease after the last answer the node is on its own, and it comes back by itself.
#[test]
fn without_a_gateway_there_is_no_budget() {
    let mut lab = Lab::new(settings(Sharing::MaxMin));
    let mut nodes = lab.nodes(&SHARES[..2]);
    let start = lab.now();
    let epoch = std::time::Instant::now();
    while lab.budgets(&nodes).iter().any(Option::is_some) {
        for node in &mut nodes {
            let now = lab.now();
            node.socket.turn(&mut node.agent, &mut || now);
        }
        assert!(epoch.elapsed().as_secs() < 10);
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert!(lab.now().since(start) <= Span::from_millis(3300), "a lease");
    lab.restart();
    lab.until("both are back", &mut nodes, |lab, nodes| lab.budgets(nodes).iter().all(Option::is_some));
}
