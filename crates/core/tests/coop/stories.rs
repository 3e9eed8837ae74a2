//! Single situations: joining, leaving, losses, restarts and forged messages, one in each test.

use super::network::{At, DELAY, Faults, GAP, LEASE, Network, network_ring, state_ring};
use penstock_core::allocation::Kept;
use penstock_core::coop::gateway::{Config, Gateway, Start};
use penstock_core::coop::keys::{Key, Keyring};
use penstock_core::coop::message::{DecodeError, Levels, Message, Request, decode, encode};
use penstock_core::coop::policy::{Policy, Sharing};
use penstock_core::coop::state::{Claim, NodeId, Share, State, Status};
use penstock_core::coop::{Floor, Floors};
use penstock_core::units::{Instant, Rate, Span};
use std::collections::BTreeSet;

const MBIT: u64 = 1_000_000;
const SECOND: Span = Span::from_secs(1);

fn fair(clients: u32) -> Network {
    Network::new(Policy::default(), 10 * MBIT, clients, 7)
}

/// A network whose clients are all admitted.
fn joined(sharing: Sharing, clients: u32) -> Network {
    let mut network = Network::new(Policy::of(sharing), 10 * MBIT, clients, 7);
    (0..clients as usize).for_each(|at| network.open(at));
    network.run(SECOND);
    network
}

fn first(network: &Network, wanted: impl Fn(&Message) -> bool) -> Message {
    network.seen.iter().map(|(_, message)| *message).find(wanted).expect("such a message was sent")
}

#[test]
fn nodes_share_the_link_as_they_come_and_go() {
    let mut network = fair(3);
    network.open(0);
    // Hello, invitation, hello, answer: at most four one-way delays.
    network.run(DELAY * 4);
    assert_eq!(network.beliefs(), [Some(10 * MBIT), None, None]);
    network.open(1);
    network.open(2);
    network.run(DELAY * 5 + GAP);
    assert_eq!(network.beliefs(), [Some(3_333_333); 3]);
    network.close(1);
    network.run(DELAY * 2 + GAP);
    assert_eq!(network.beliefs(), [Some(5 * MBIT), None, Some(5 * MBIT)]);
}

#[test]
fn what_one_cannot_use_the_others_get() {
    let mut network = joined(Sharing::Dybra, 4); // weights 1, 2, 3, 4
    assert_eq!(network.beliefs(), [1, 2, 3, 4].map(|mbit| Some(mbit * MBIT)));
    network.usable(3, Some(MBIT));
    network.run(DELAY * 3);
    assert_eq!(
        network.beliefs(),
        [3, 6, 9].map(|half| Some(half * MBIT / 2)).into_iter().chain([Some(MBIT)]).collect::<Vec<_>>()
    );
    assert_eq!(network.clients[3].status(), Some(Status::Bad));
    network.usable(3, None);
    network.run(DELAY * 3);
    assert_eq!(network.beliefs(), [1, 2, 3, 4].map(|mbit| Some(mbit * MBIT)));
}

#[test]
fn less_than_a_fifth_is_not_worth_a_message() {
    let mut network = joined(Sharing::Dybra, 2); // 3.333 and 6.667 Mbit/s
    let before = network.heard.len();
    network.usable(1, Some(5_400_000));
    assert_eq!(network.heard.len(), before, "81 % of its share");
    network.usable(1, Some(5_300_000));
    assert_eq!(network.heard.len(), before + 1, "79.5 % of its share");
}

#[test]
fn the_link_changes_and_all_are_told() {
    let mut network = joined(Sharing::UnweightedFair, 2);
    network.bandwidth(4 * MBIT);
    network.run(DELAY + GAP);
    assert_eq!(network.beliefs(), [Some(2 * MBIT); 2]);
}

#[test]
fn a_client_without_its_gateway_falls_back_within_a_lease() {
    let mut network = joined(Sharing::UnweightedFair, 2);
    network.faults = Faults { loss: 100, twice: 0 };
    network.run(LEASE);
    assert_eq!(network.beliefs(), [None; 2]);
    network.faults = Faults::default();
    network.run(LEASE);
    assert_eq!(network.beliefs(), [Some(5 * MBIT); 2], "and comes back");
}

#[test]
fn a_client_that_vanishes_is_forgotten() {
    let mut network = joined(Sharing::UnweightedFair, 2);
    network.restart_client(1);
    // A lease, an eighth of it until the table is swept, and the delay of the message.
    network.run(LEASE + LEASE.div(8) + DELAY + GAP);
    assert_eq!(network.beliefs(), [Some(10 * MBIT), None]);
    assert_eq!(network.gateway.counters().lapsed, 1);
}

#[test]
fn a_client_that_restarts_takes_its_old_place() {
    let mut network = joined(Sharing::UnweightedFair, 2);
    network.restart_client(1);
    network.open(1);
    network.run(SECOND);
    assert_eq!(network.beliefs(), [Some(5 * MBIT); 2]);
    assert_eq!((network.gateway.clients(), network.gateway.counters().lapsed), (2, 0));
}

#[test]
fn another_gateway_takes_over_with_what_clients_bring() {
    let mut network = joined(Sharing::Dybra, 4);
    network.usable(3, Some(MBIT));
    network.run(SECOND);
    let before = network.beliefs();
    network.restart_gateway();
    let end = network.now + LEASE;
    while network.step(end) {
        network.check();
        assert!(network.believed() <= 10 * MBIT, "nobody has more than before");
    }
    network.run(SECOND);
    assert_eq!(network.beliefs(), before);
    assert_eq!(network.granted(), before);
    assert_eq!(network.clients[3].status(), Some(Status::Bad), "its state came with it");
    assert_eq!(network.gateway.counters().lapsed, 0);
}

/// What happens before a gateway crashes, and what after that.
type Acts = (fn(&mut Network), fn(&mut Network));

/// Crashes at 30 moments that are `step` apart, in each policy with two and with four nodes, which joined at different times of the
/// leases of those before. Nodes find the gateway that starts then as hosts do, when they speak to it. As long as a lease of the
/// former gateway may last, all leases together are no more than the link has, or than they were at the crash.
fn crashes((before, after): Acts, step: Span) {
    use Sharing::{Dybra, MaxMin, Priority, UnweightedFair, Weighted};
    let sharings = [UnweightedFair, Weighted, Priority, Dybra, MaxMin];
    let cases = sharings.into_iter().flat_map(|sharing| [(sharing, 2), (sharing, 4)]);
    for ((sharing, clients), moment) in cases.flat_map(|case| (1..=30).map(move |moment| (case, moment))) {
        let mut network = Network::new(Policy::of(sharing), 10 * MBIT, clients, moment);
        (network.sessions, network.delay) = (Some(BTreeSet::new()), Span::from_millis(1));
        for at in 0..clients as usize {
            network.run(SECOND + Span::from_millis(170) * at as u64);
            network.open(at);
        }
        before(&mut network);
        network.run(step * moment);
        let most = network.believed().max(10 * MBIT);
        network.restart_gateway();
        after(&mut network);
        let end = network.now + LEASE - Span::from_millis(1);
        while network.step(end) {
            network.check();
            let beliefs = network.beliefs();
            assert!(network.believed() <= most, "{sharing:?} of {clients}, moment {moment}: {beliefs:?}");
        }
        network.run(LEASE * 2);
        assert!(network.beliefs().iter().all(Option::is_some), "{:?}", network.beliefs());
        assert_eq!(network.beliefs(), network.granted(), "{sharing:?}");
    }
}

/// A state is as old as the last answer: it tells the level that its node had before the last one joined.
#[test]
fn a_crash_after_a_join_leaves_no_lease_above_the_link() {
    crashes((|_| {}, |network| assert!(network.believed() <= 10 * MBIT)), LEASE.div(40));
}

/// A node that has told a smaller claim keeps to it at once, also if the answer is lost with the gateway.
#[test]
fn a_crash_after_a_claim_leaves_no_lease_above_the_link() {
    let claim = |network: &mut Network| {
        network.run(SECOND);
        network.usable(0, Some(491_520)); // 15 * 2^15, which is not rounded (policy/fill.rs)
    };
    crashes((claim, |network| network.lose(At::Client(0))), Span::from_micros(100));
}

/// What a node had before it left belongs to others, even if nobody knows any more that it left.
#[test]
fn a_crash_after_a_goodbye_leaves_no_lease_above_the_link() {
    let leave = |network: &mut Network| {
        network.run(SECOND);
        network.close(0);
    };
    crashes((leave, |network| network.open(0)), Span::from_millis(4));
}

#[test]
fn newcomers_wait_while_a_gateway_takes_over() {
    let mut network = fair(2);
    network.open(0);
    network.run(SECOND);
    network.restart_gateway();
    network.open(1);
    network.run(LEASE - Span::from_millis(1));
    assert_eq!(network.beliefs(), [Some(10 * MBIT), None]);
    network.run(LEASE);
    assert_eq!(network.beliefs(), [Some(5 * MBIT); 2]);
}

#[test]
fn of_two_gateways_the_older_is_silent() {
    let mut network = joined(Sharing::UnweightedFair, 1);
    let config = Config::new(Rate::from_bps(MBIT), Policy::default());
    let mut younger = Gateway::new(config, state_ring(), 2, Start::TakingOver, network.now).expect("valid");
    let mut out = Vec::new();
    younger.poll(network.now + SECOND, &mut out);
    network.inject(At::Gateway, encode(&out[0].message, &network_ring()), DELAY);
    network.run(DELAY);
    assert!(network.gateway.is_retired() && network.gateway.next_timeout().is_none());
}

#[test]
fn a_replayed_hello_counts_for_nothing() {
    let mut network = joined(Sharing::UnweightedFair, 1);
    network.close(0);
    network.run(SECOND);
    let replays: Vec<Vec<u8>> = network.heard.clone();
    for bytes in replays {
        network.inject(At::Gateway, bytes, DELAY);
    }
    network.run(SECOND);
    assert_eq!(network.gateway.clients(), 0);
    assert!(network.gateway.counters().stale > 0);
}

#[test]
fn a_replayed_goodbye_does_not_close_the_next_session() {
    let mut network = joined(Sharing::UnweightedFair, 1);
    network.close(0);
    network.run(SECOND);
    network.open(0);
    network.run(SECOND);
    for bytes in network.heard.clone() {
        network.inject(At::Gateway, bytes, DELAY);
    }
    network.run(SECOND);
    assert_eq!(network.beliefs(), [Some(10 * MBIT)]);
}

#[test]
fn a_lost_answer_is_given_again() {
    let mut network = joined(Sharing::Dybra, 2);
    network.usable(0, Some(MBIT));
    network.run(DELAY * 3);
    let told = |m: &Message| matches!(m, Message::UsedBw(_, claim) if *claim == Claim::bps(MBIT));
    let answer = |m: &Message| matches!(m, Message::AckUsed(a) if a.state.state().claim == Claim::bps(MBIT));
    let (used, before) = (first(&network, told), network.granted());
    let Message::AckUsed(given) = first(&network, answer) else { unreachable!() };
    let (mut out, repeated) = (Vec::new(), network.gateway.counters().repeated);
    network.gateway.handle(&used, NodeId(0), network.now, &mut out);
    assert_eq!(out.len(), 1);
    let Message::AckUsed(again) = out[0].message else { unreachable!() };
    let (state, earlier) = (again.state.state(), given.state.state());
    assert_eq!((state.seq, state.claim, state.until), (earlier.seq, Claim::bps(MBIT), earlier.until));
    assert_eq!(
        (network.gateway.counters().repeated, network.granted()),
        (repeated + 1, before),
        "and nothing else happens"
    );
}

#[test]
fn a_state_cannot_be_made_or_lent() {
    let mut network = joined(Sharing::UnweightedFair, 2);
    let other = Keyring::new(1, &Key::new([9; 32]));
    let made = State { seq: 99, incarnation: 1, status: Status::Good, ..State::ticket(NodeId(0), Share::default()) };
    let made = Message::ClientBye(Request { node: NodeId(0), ask: 1, state: made.sign(&other) });
    let Message::AckHello(answer) = first(&network, |m| matches!(m, Message::AckHello(a) if a.node == NodeId(1)))
    else {
        unreachable!()
    };
    let lent = Message::UsedBw(Request { node: NodeId(0), ask: 1, state: answer.state }, Claim::bps(1));
    for message in [made, lent] {
        network.gateway.handle(&message, NodeId(0), network.now, &mut Vec::new());
    }
    // The message itself is valid, but another node sent it.
    let foreign = Message::ClientBye(Request { node: NodeId(1), ask: 1, state: answer.state });
    network.gateway.handle(&foreign, NodeId(0), network.now, &mut Vec::new());
    assert_eq!((network.gateway.counters().forged, network.gateway.counters().ignored), (2, 1));
    assert_eq!(network.gateway.clients(), 2);
}

#[test]
fn keys_change_while_clients_are_in() {
    let mut network = joined(Sharing::UnweightedFair, 3);
    network.gateway.rotate_key(5, &Key::new([5; 32]));
    network.run(LEASE * 3);
    assert_eq!(network.beliefs(), [Some(3_333_333); 3]);
    network.gateway.rotate_key(6, &Key::new([6; 32]));
    network.run(LEASE * 3);
    assert_eq!(network.beliefs(), [Some(3_333_333); 3]);
    assert_eq!(network.gateway.counters().lapsed, 0);
}

#[test]
fn memory_does_not_grow_with_clients() {
    let mut network = fair(50);
    let empty = network.gateway.memory();
    (0..50).for_each(|at| network.open(at));
    network.run(SECOND);
    assert_eq!(network.gateway.clients(), 50);
    assert_eq!(network.gateway.memory(), empty);
}

#[test]
fn no_more_come_in_than_there_is_room_for() {
    let mut network = Network::new(Policy::default(), 10 * MBIT, 110, 7);
    (0..110).for_each(|at| network.open(at));
    network.run(SECOND * 3);
    assert_eq!(network.gateway.clients(), 100);
    assert!(network.gateway.counters().refused > 0);
    network.close(network.beliefs().iter().position(Option::is_some).expect("someone is in"));
    network.run(SECOND * 3);
    assert_eq!(network.gateway.clients(), 100, "a place that is free is taken");
}

#[test]
fn who_needs_a_ticket_and_has_none_stays_out() {
    let config = Config { tickets_only: true, ..Config::new(Rate::from_bps(MBIT), Policy::default()) };
    let mut gateway = Gateway::new(config, state_ring(), 1, Start::Fresh, Instant::ZERO).expect("valid");
    let mut out = Vec::new();
    let hello = Message::ClientHello { node: NodeId(1), ask: 1, state: None };
    gateway.handle(&hello, NodeId(1), Instant::ZERO, &mut out);
    assert!(out.is_empty());
    assert_eq!(gateway.counters().refused, 1);
}

#[test]
fn every_message_reads_as_it_was_written() {
    let mut network = joined(Sharing::Dybra, 2);
    network.usable(0, Some(MBIT));
    network.run(SECOND);
    network.close(0);
    network.run(SECOND);
    let ring = network_ring();
    let mut kinds = std::collections::BTreeSet::new();
    for (_, message) in &network.seen {
        let bytes = encode(message, &ring);
        kinds.insert(bytes[3]);
        assert_eq!(decode(&bytes, &ring).as_ref(), Ok(message));
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(decode(&changed, &ring).is_err(), "byte {at} does not matter");
            assert!(decode(&bytes[..at], &ring).is_err());
        }
    }
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6], "all six");
}

/// The example of docs/reference/c2lp.md.
#[test]
fn the_bytes_are_those_of_the_specification() {
    let ring = network_ring();
    let hello = encode(&Message::ClientHello { node: NodeId(7), ask: 258, state: None }, &ring);
    let expected = [0xc2, 0x1b, 1, 1, 2, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 1, 2];
    assert_eq!(hello[..20], expected);
    assert_eq!(hello.len(), 36);
    let share = Share { class: 2, weight: 300, ..Share::default() };
    let state = State::ticket(NodeId(7), share).sign(&state_ring());
    let ticket = encode(&Message::ClientHello { node: NodeId(7), ask: 258, state: Some(state) }, &ring);
    assert_eq!(ticket.len(), 104);
    assert_eq!(ticket[20..28], [0, 2, 0x01, 0x2c, 0, 0, 0, 7]);
    assert_eq!(ticket[68..72], [1, 1, 0, 0], "the key's id, the version of a state, zeros");
    let mut later = hello;
    later[2] = 2;
    assert_eq!(decode(&later, &ring), Err(DecodeError::Version { found: 2, spoken: 1 }));
}

/// The tag is right, but the message does not end where its fields do.
#[test]
fn a_message_with_more_than_its_fields_is_malformed() {
    let mut network = joined(Sharing::Dybra, 2);
    network.usable(0, Some(MBIT));
    network.run(SECOND);
    network.close(0);
    network.run(SECOND);
    let ring = network_ring();
    for (_, message) in &network.seen {
        let bytes = encode(message, &ring);
        let longer = [&bytes[..bytes.len() - 16], &[0]].concat();
        let tagged = [&longer[..], &ring.sign(&longer)].concat();
        assert_eq!(decode(&tagged, &ring), Err(DecodeError::Malformed), "{message:?} and a byte");
    }
}

/// What was said two states ago is neither news nor the question to the last answer.
#[test]
fn a_request_of_an_older_state_is_stale() {
    let mut network = joined(Sharing::Dybra, 2);
    for mbit in [1, 2, 3] {
        network.usable(0, Some(mbit * MBIT));
        network.run(SECOND);
    }
    let oldest = first(&network, |m| matches!(m, Message::UsedBw(request, _) if request.node == NodeId(0)));
    let (mut out, before) = (Vec::new(), *network.gateway.counters());
    network.gateway.handle(&oldest, NodeId(0), network.now, &mut out);
    assert_eq!(out.len(), 0);
    let after = network.gateway.counters();
    assert_eq!((after.stale, after.repeated), (before.stale + 1, before.repeated));
}

#[test]
fn a_share_has_one_of_four_classes_and_a_weight_up_to_1000() {
    for (class, weight, allowed) in [(0, 1, true), (3, 1000, true), (4, 1, false), (0, 0, false), (0, 1001, false)] {
        assert_eq!(
            Share { class, weight, ..Share::default() }.checked().is_some(),
            allowed,
            "class {class}, weight {weight}"
        );
    }
}

/// After its last goodbye a client is as it was before its first hello: what it brings is its ticket.
#[test]
fn a_client_that_left_comes_again_with_its_ticket() {
    let mut network = joined(Sharing::Dybra, 1);
    network.close(0);
    network.run(SECOND * 10);
    let heard = network.seen.len();
    network.open(0);
    network.run(SECOND);
    let hello = network.seen[heard..].iter().find_map(|(_, message)| match message {
        Message::ClientHello { state, .. } => Some(state.map(|state| state.state().status)),
        _ => None,
    });
    let before = network.seen.iter().find_map(|(_, message)| match message {
        Message::ClientHello { state, .. } => Some(state.map(|state| state.state().status)),
        _ => None,
    });
    assert_eq!(hello, before);
}

/// docs/reference/c2lp.md: an invitation is no grant. A request that shows one, even that of a client which was admitted with it, is
/// answered with an invitation.
#[test]
fn a_request_with_an_invitation_is_answered_with_one() {
    let mut network = joined(Sharing::Dybra, 1);
    let invitation =
        first(&network, |m| matches!(m, Message::AckHello(a) if a.state.state().status == Status::Invited));
    let Message::AckHello(invitation) = invitation else { unreachable!() };
    let request = Request { node: NodeId(0), ask: 1, state: invitation.state };
    let mut out = Vec::new();
    network.gateway.handle(&Message::UsedBw(request, Claim::ALL), NodeId(0), network.now, &mut out);
    assert_eq!(out.len(), 1);
    let Message::AckHello(answer) = out[0].message else { panic!("{:?}", out[0].message) };
    assert_eq!(answer.state.state().status, Status::Invited);
}

fn floor(text: &str) -> Floor {
    text.parse().expect("a floor")
}

/// docs/reference/c2lp.md: the bytes of a state with a floor, and of levels while floors are cut.
#[test]
fn a_floor_is_in_the_state_and_what_is_kept_of_it_follows_the_levels() {
    let share = Share { class: 2, weight: 300, floor: floor("1.25Mbit/s") };
    let state = State::ticket(NodeId(7), share).sign(&state_ring());
    let ticket = encode(&Message::ClientHello { node: NodeId(7), ask: 258, state: Some(state) }, &network_ring());
    // Own, 10^1, 1250 steps of 100 bit/s.
    assert_eq!(ticket[68..72], [1, 2, 0x94, 0xe2], "the key's id, the version of a state, the floor");
    assert_eq!(
        decode(&ticket, &network_ring()),
        Ok(Message::ClientHello { node: NodeId(7), ask: 258, state: Some(state) })
    );
    let kept = Kept::of(3, [2, 2]);
    let levels = Levels { incarnation: 1, seq: 2, levels: [0; 4], kept };
    let bytes = encode(&Message::AvailBw(levels), &network_ring());
    assert_eq!(bytes[56..60], [0x01, 0x80, 0, 0], "a class and a half");
    assert_eq!(decode(&bytes, &network_ring()), Ok(Message::AvailBw(levels)));
}

/// 10 Mbit/s for four nodes with weights 1 to 4 in classes 0 to 3: the floors of two of them come first, and nodes learn at
/// once when they do not fit any more.
#[test]
fn nodes_have_their_floors_and_learn_when_these_are_cut() {
    let floors = Floors::try_from(vec![floor("4Mbit/s"), floor("4Mbit/s")]).unwrap();
    let mut network = Network::new(Policy { floors, ..Policy::of(Sharing::MaxMin) }, 15 * MBIT, 4, 7);
    (0..4).for_each(|at| network.open(at));
    network.run(SECOND);
    let in_bps = |network: &Network| network.beliefs().into_iter().map(Option::unwrap).collect::<Vec<_>>();
    assert_eq!(in_bps(&network), [4 * MBIT, 4 * MBIT, 3 * MBIT, 4 * MBIT]);
    network.bandwidth(5 * MBIT);
    network.run(DELAY * 2);
    assert_eq!(in_bps(&network), [4 * MBIT, MBIT, 0, 0]);
    // The gateway answers requests meanwhile, and a gateway that takes over knows no more than it is told.
    network.run(SECOND * 10);
    assert_eq!(in_bps(&network), [4 * MBIT, MBIT, 0, 0]);
    network.restart_gateway();
    network.run(SECOND * 20);
    assert_eq!(in_bps(&network), [4 * MBIT, MBIT, 0, 0]);
    network.bandwidth(40 * MBIT);
    network.run(DELAY * 2);
    assert_eq!(in_bps(&network), [4, 8, 12, 16].map(|mbit| mbit * MBIT));
}
