//! Nodes come, change what they can use, say goodbye or fall silent, in time that is counted and not measured.

use crate::lab::mbit;
use crate::still::{Still, address, gateway};
use penstock_budgets::agent::Agent;
use penstock_budgets::gateway::{Grant, defaults};
use penstock_core::coop::gateway::Config;
use penstock_core::coop::policy::{Policy, Sharing};
use penstock_core::coop::{Floor, Share};
use penstock_core::units::{Instant, Rate, Span};
use penstock_linux::udp::Side as _;

const SHARES: [Share; 2] =
    [Share { class: 0, weight: 1, floor: Floor::NONE }, Share { class: 1, weight: 3, floor: Floor::NONE }];

fn ms(ms: u64) -> Span {
    Span::from_millis(ms)
}

/// A gateway of 8 Mbit/s with two nodes, which get 2 and 6 by their weights.
fn two() -> Still {
    let settings = Config { policy: Policy::of(Sharing::MaxMin), ..defaults(mbit(8)) };
    let mut still = Still::new(settings);
    for share in SHARES {
        let identity = still.enrolled(share);
        still.join(&identity);
    }
    let both = [Some(2_000_000), Some(6_000_000)];
    still.until(Span::from_secs(1), |still| still.budgets() == both).expect("both have their parts");
    still
}

/// An attempt at which nobody answers is given up after five seconds. The wait after it is twice that before, from a quarter
/// of a second up to four, and chance makes it as short as a half of that. The next gateway of the list is tried then.
#[test]
fn a_node_without_a_gateway_tries_less_and_less_often() {
    let identity = Still::new(defaults(mbit(8))).enrolled(SHARES[0]);
    let gateways = ["10.0.0.1:1", "10.0.0.2:2", "10.0.0.3:3"].map(|text| text.parse().unwrap());
    let mut agent = Agent::new(&identity, gateways.to_vec()).unwrap();
    let (mut now, mut attempts) = (Instant::ZERO, Vec::new());
    while attempts.len() < 9 {
        assert!(now < Instant::ZERO + Span::from_secs(100));
        if agent.next_timeout().is_some_and(|at| at <= now) {
            agent.poll(now);
        }
        while let Some((to, _)) = agent.transmit() {
            if attempts.last().is_none_or(|(last, _)| *last != to) {
                attempts.push((to, now));
            }
        }
        now += ms(1);
    }
    for (n, pair) in attempts.windows(2).enumerate() {
        assert_eq!(pair[1].0, gateways[(n + 1) % 3]);
        let wait = pair[1].1.since(pair[0].1) - Span::from_secs(5);
        let most = ms(250 << n).min(Span::from_secs(4));
        assert!(wait >= most.div(2) && wait <= most + ms(2), "{n}: {wait}");
    }
    let counters = agent.counters();
    assert_eq!((counters.sessions, counters.lost, agent.gateway()), (0, 8, None));
    assert_eq!((agent.why(), agent.budget(now)), (Some("the gateway does not answer"), None));
}

#[test]
fn the_status_tells_what_each_node_has() {
    let mut still = two();
    let joined = still.now;
    let claim = 1_500_000;
    still.nodes[1].set_usable(Some(Rate::from_bps(claim)), still.now);
    // Claims are rounded down to sixteen values per octave (core/src/coop/policy/fill.rs); the other node has the rest.
    let fits = |budget: u64| budget <= claim && budget > claim - claim / 16;
    let shared = still.until(Span::from_secs(1), |still| still.budgets()[1].is_some_and(fits));
    assert!(shared.is_some(), "{:?}", still.budgets());
    still.run(ms(100));
    let shared = [0, 1].map(|n| still.budgets()[n]);
    assert_eq!(shared.iter().flatten().sum::<u64>(), 8_000_000);
    // Until those who have enrolled are counted again.
    still.run(Span::from_secs(5));
    let status = still.status();
    assert_eq!((status.rate_bps, status.granted_bps, status.floors_bps), (8_000_000, 8_000_000, 0));
    assert_eq!((status.serves, status.enrolled, status.holders), (true, 2, 2));
    assert!(status.table_bytes > 0);
    // They stand in the order of their numbers, which chance gives them.
    assert_eq!(status.nodes.len(), 2);
    assert!(status.nodes[0].node < status.nodes[1].node);
    let nodes = [0, 1].map(|n| status.nodes.iter().find(|node| node.address == Some(address(n))).unwrap());
    for (n, node) in nodes.into_iter().enumerate() {
        assert_eq!((node.name.as_str(), node.class, node.weight), ("node", SHARES[n].class, SHARES[n].weight));
        assert_eq!((node.floor_bps, node.budget_bps), (0, shared[n]));
        // A millisecond there and one back; an acknowledgment may wait for 25 (RFC 9000, section 18.2).
        let rtt = node.rtt_ms.unwrap();
        assert!((2.0..30.0).contains(&rtt), "{rtt}");
        let since = still.now.since(joined).as_secs_f64();
        assert!(node.since_s >= since && node.since_s < since + 1.0, "{} and {since}", node.since_s);
    }
    assert_eq!(nodes.map(|node| node.claim_bps), [None, Some(claim)]);
    assert_eq!((status.messages.joined, status.messages.left, status.messages.refused), (2, 0, 0));
    let ids = nodes.map(|node| node.node);
    let mut grants =
        [0, 1].map(|n| Grant { node: ids[n], address: address(n).ip(), budget: Rate::from_bps(shared[n].unwrap()) });
    grants.sort_by_key(|grant| grant.node);
    assert_eq!(still.role.grants(), grants);
    assert_eq!([0, 1].map(|n| still.role.budget(penstock_core::coop::NodeId(ids[n]))), shared);
}

/// Who says goodbye gives its budget back at once; who has nothing left to say is no node any more.
#[test]
fn a_node_that_says_goodbye_leaves_its_part_to_the_others() {
    let mut still = two();
    still.nodes[1].end(still.now);
    assert_eq!(still.nodes[1].gateway(), None);
    let all = |still: &mut Still| still.budgets()[0] == Some(8_000_000);
    assert!(still.until(ms(100), all).is_some(), "{:?}", still.budgets());
    let status = still.status();
    assert_eq!((status.nodes.len(), status.holders, status.messages.left), (1, 1, 1));
    assert_eq!(still.role.grants().len(), 1);
    still.run(Span::from_secs(10));
    assert_eq!((still.status().holders, still.nodes[1].counters().sessions), (1, 1), "it does not come back");
}

/// Who falls silent keeps its budget for a lease, and its session until it is sure that nobody is there.
#[test]
fn a_node_that_falls_silent_loses_its_part_with_its_lease() {
    let mut still = two();
    still.nodes.pop();
    let lease = Span::from_secs(3);
    let all = |still: &mut Still| still.budgets()[0] == Some(8_000_000);
    let took = still.until(lease * 2, all).expect("the lease ends");
    // It renewed its lease within the last third, and those that have ended are looked for eight times in a lease.
    assert!(took >= lease.div(3) * 2 - ms(100) && took <= lease + lease.div(8) + ms(100), "{took}");
    let status = still.status();
    assert_eq!((status.holders, status.nodes.len(), status.messages.lapsed), (1, 2, 1));
    let silent = status.nodes.iter().find(|node| node.address == Some(address(1))).unwrap();
    assert_eq!((silent.budget_bps, still.role.grants().len()), (None, 1));
    assert!(still.until(Span::from_secs(12), |still| still.status().nodes.len() == 1).is_some());
}

/// Somebody has stolen the identity of a node with 2 of 8 Mbit/s and asks from these addresses. Returns how often each
/// of the three had a budget, of those that were looked at in 40 s.
fn stolen(thief: &str, first: &str) -> (Still, [u32; 3]) {
    let mut still = Still::new(Config { policy: Policy::of(Sharing::MaxMin), ..defaults(mbit(8)) });
    let [one, other] = SHARES.map(|share| still.enrolled(share));
    still.join_at(&one, first.parse().unwrap());
    still.join(&other);
    let both = [Some(2_000_000), Some(6_000_000)];
    still.until(Span::from_secs(1), |still| still.budgets() == both).expect("both have their parts");
    still.join_at(&one, thief.parse().unwrap());
    let (end, mut had) = (still.now + Span::from_secs(40), [0; 3]);
    while still.now < end {
        still.run(ms(1));
        let budgets = still.budgets();
        assert!(budgets.iter().flatten().sum::<u64>() <= 8_000_000, "{budgets:?}");
        had.iter_mut().zip(budgets).for_each(|(had, budget)| *had += u32::from(budget.is_some()));
    }
    (still, had)
}

/// A lease belongs to one address: who asks from another one is refused, told why, and seen in the status.
#[test]
fn a_stolen_identity_gets_nothing_while_its_owner_is_there() {
    let (mut still, had) = stolen("10.0.2.9:2000", "10.0.1.0:2000");
    assert_eq!(had, [40_000, 40_000, 0]);
    assert!(still.nodes[2].why().unwrap().contains("another host"), "{:?}", still.nodes[2].why());
    let status = still.status();
    let one = &status.contested[0];
    assert_eq!((one.holder, one.refused), (Some(address(0)), "10.0.2.9:2000".parse().unwrap()));
    let told: Vec<String> = std::iter::from_fn(|| still.role.event()).filter(|what| what.contains("also")).collect();
    assert_eq!(told.len(), 1, "it is told once: {told:?}");
    still.nodes[0].end(still.now);
    assert!(still.until(Span::from_secs(5), |still| still.budgets()[2].is_some()).is_some(), "the owner has left");
    assert_eq!(still.status().contested, []);
}

/// Behind an address translation both have one address. The newer one has the lease, and the other does not take it
/// back.
#[test]
fn of_two_at_one_address_only_one_has_the_lease() {
    let (mut still, had) = stolen("10.0.1.0:2001", "10.0.1.0:2000");
    assert!(had[0] < 20 && had[1] == 40_000 && had[2] > 39_900, "{had:?}");
    let status = still.status();
    assert_eq!((status.nodes.len(), status.holders, status.contested[0].refused), (2, 2, address(0)));
    assert!(still.nodes[0].why().unwrap().contains("another host"), "{:?}", still.nodes[0].why());
}

/// A node whose address changes has a budget again when the lease at the old one has ended, and nobody thinks that it
/// is two.
#[test]
fn a_node_that_moves_waits_for_its_lease() {
    let mut still = Still::new(defaults(mbit(8)));
    let identity = still.enrolled(SHARES[0]);
    still.join(&identity);
    still.until(Span::from_secs(1), |still| still.budgets()[0].is_some()).unwrap();
    still.nodes[0] = Agent::new(&identity, Vec::from(["10.9.9.9:1".parse().unwrap()])).unwrap();
    still.join_at(&identity, "10.0.2.9:2000".parse().unwrap());
    let mut marked = false;
    let moved = still.until(Span::from_secs(20), |still| {
        marked |= !still.status().contested.is_empty();
        still.budgets()[1].is_some()
    });
    assert!(moved.is_some_and(|moved| moved < Span::from_secs(8)), "{moved:?}");
    let status = still.status();
    assert_eq!((marked, status.nodes.len(), status.granted_bps), (false, 1, 8_000_000));
}

/// Who proves its address and then says something that nobody can decrypt gets no session, and is counted each time.
#[test]
fn a_handshake_that_cannot_be_read_is_counted() {
    let mut still = Still::new(defaults(mbit(8)));
    let identity = still.enrolled(SHARES[0]);
    let (mut agent, now) = (Agent::new(&identity, vec![gateway()]).unwrap(), still.now);
    agent.poll(now);
    let (_, first) = agent.transmit().unwrap();
    still.role.receive(address(0), &first, now);
    let (_, retry) = still.role.transmit().unwrap();
    agent.receive(gateway(), &retry, now);
    let (_, second) = agent.transmit().unwrap();
    let before = still.status().sessions.failed;
    let mut changed = second.clone();
    let end = changed.len() - 1;
    changed[end] ^= 1;
    for times in 1..=3 {
        still.role.receive(address(0), &changed, now);
        while still.role.transmit().is_some() {}
        assert_eq!(still.status().sessions.failed, before + times);
    }
    still.role.receive(address(0), &second, now);
    assert!(still.role.transmit().is_some_and(|(to, _)| to == address(0)), "what is whole is answered");
    assert_eq!(still.status().sessions.failed, before + 3);
}

/// A host that proves its address and then says nothing more takes no place from hosts at other addresses, however
/// often it does so.
#[test]
fn who_begins_handshakes_and_is_silent_keeps_nobody_out() {
    let mut still = Still::new(defaults(mbit(8)));
    let (owner, other) = (still.enrolled(SHARES[0]), still.enrolled(SHARES[1]));
    still.join(&owner);
    still.until(Span::from_secs(1), |still| still.budgets()[0].is_some()).unwrap();
    for port in 1000..1600 {
        let from = format!("10.0.9.9:{port}").parse().unwrap();
        let (mut agent, now) = (Agent::new(&other, vec![gateway()]).unwrap(), still.now);
        agent.poll(now);
        still.role.receive(from, &agent.transmit().unwrap().1, now);
        while let Some((_, retry)) = still.role.transmit() {
            agent.receive(gateway(), &retry, now);
        }
        still.role.receive(from, &agent.transmit().unwrap().1, now);
        while still.role.transmit().is_some() {}
    }
    let crowded = still.status().sessions.crowded;
    assert!(still.role.endpoint().handshakes() <= 256 && crowded >= 600 - 256, "{crowded}");
    still.join(&other);
    let both = |still: &mut Still| still.budgets().iter().all(Option::is_some);
    assert!(still.until(ms(300), both).is_some(), "{:?}", still.status());
    assert!(still.status().sessions.crowded > crowded, "one of them had to go");
    // What is silent is over after ten seconds.
    still.run(Span::from_secs(12));
    assert_eq!((still.role.endpoint().handshakes(), still.status().nodes.len()), (0, 2));
}

#[test]
fn a_rate_that_is_set_again_is_no_change_and_a_new_one_is_kept_by_who_takes_over() {
    let mut still = Still::new(defaults(mbit(1)));
    let (role, now) = (&mut still.role, still.now);
    role.set_rate(mbit(2), now);
    role.serve(false, now).unwrap();
    role.serve(true, now).unwrap();
    assert_eq!(role.status(now).rate_bps, 2_000_000);
    let told: Vec<String> = std::iter::from_fn(|| role.event()).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    role.serve(true, now).unwrap();
    assert_eq!(role.event(), None, "it serves already");
}
