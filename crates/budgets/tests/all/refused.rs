//! What is refused and counted, and who is given up, in time that is counted and not measured.

use crate::lab::mbit;
use crate::still::{Still, gateway};
use bytes::Bytes;
use penstock_budgets::agent::Agent;
use penstock_budgets::endpoint::{Endpoint, Event, MOST_HANDSHAKES, SILENCE};
use penstock_budgets::frame::Frame;
use penstock_budgets::gateway::defaults;
use penstock_budgets::tls::{self, Door, Trust};
use penstock_core::coop::Share;
use penstock_core::units::{Instant, Span};
use penstock_linux::udp::Side as _;
use std::net::SocketAddr;
use std::sync::Arc;

fn ms(ms: u64) -> Span {
    Span::from_millis(ms)
}

fn still() -> Still {
    Still::new(defaults(mbit(8)))
}

/// An endpoint with the keys of a gateway, without its role.
fn endpoint(still: &Still) -> Endpoint {
    let door = Arc::new(Door::new(still.roster.clone()).unwrap());
    Endpoint::server(tls::server(&still.roster, door).unwrap(), &[7; 32], 10)
}

/// Both may begin, as the token holds when they come. The first to ask is the node.
#[test]
fn of_two_who_come_at_once_with_a_token_for_one_the_second_is_refused() {
    let mut still = still();
    let token = still.roster.invite(Share::default(), 1, Span::from_secs(600)).unwrap();
    let became = still.enrol::<2>(&token);
    assert_eq!(became.iter().filter(|one| one.is_ok()).count(), 1);
    let status = still.status();
    assert_eq!((status.refused.enrolments, status.enrolled), (1, 1));
    let told: Vec<String> = std::iter::from_fn(|| still.role.event()).collect();
    assert!(
        told.iter().any(|what| what.starts_with("an enrolment is refused: the token is unknown, used up")),
        "{told:?}"
    );
}

/// The first message is repeated after a second (RFC 9002, section 6.2), and until then there is nothing to do.
#[test]
fn who_enrols_sleeps_until_an_answer_comes_or_is_late() {
    let still = still();
    let token = still.roster.invite(Share::default(), 1, Span::from_secs(600)).unwrap();
    let mut enrolment = still.enrolment(&token);
    while enrolment.transmit().is_some() {}
    let wakes = enrolment.next_timeout().unwrap();
    assert!(wakes >= still.now + ms(900) && wakes <= still.now + ms(1100), "{wakes:?}");
    enrolment.poll(wakes);
    assert!(enrolment.transmit().is_some_and(|(to, _)| to == gateway()));
}

/// A gateway that was taken over says what no gateway says, and gives no budget: nothing of it counts, and after five seconds
/// its node leaves it and tries again.
#[test]
fn a_gateway_that_gives_no_budget_is_given_up() {
    let mut still = still();
    let identity = still.enrolled(Share::default());
    let (mut other, own) = (endpoint(&still), SocketAddr::from(([10, 0, 1, 0], 2000)));
    let mut agent = Agent::new(&identity, vec![gateway()]).unwrap();
    let (mut now, mut began, mut gone) = (Instant::ZERO, None, None);
    while now < Instant::ZERO + Span::from_secs(6) {
        now += ms(1);
        if agent.next_timeout().is_some_and(|at| at <= now) {
            agent.poll(now);
        }
        while let Some((_, datagram)) = agent.transmit() {
            other.receive(own, &datagram, now);
        }
        other.poll(now);
        while let Some(event) = other.event() {
            if let (Event::Frame(id, _), None) = (event, began) {
                began = Some(now);
                assert!(other.send(id, &Frame::Enrol { key: [1; 32], name: "no".into() }.encode(), now));
                other.send_datagram(id, Bytes::from_static(b"nonsense"), now);
            }
        }
        while let Some((_, datagram)) = other.transmit() {
            agent.receive(gateway(), &datagram, now);
        }
        assert_eq!(agent.budget(now), None);
        if agent.counters().lost == 1 && gone.is_none() {
            gone = Some((now, agent.why().map(str::to_owned)));
        }
    }
    let (gone, why) = gone.expect("it is given up");
    let after = gone.since(began.unwrap());
    assert!(after > ms(4_900) && after <= ms(5_000), "{after}");
    assert_eq!(why.as_deref(), Some("the gateway does not answer"));
    let counters = agent.counters();
    assert_eq!((counters.refused, counters.sessions, counters.lost), (2, 2, 1));
}

/// Who proves its address and is silent then costs a place among handshakes, of which there are 256, and not for long.
#[test]
fn handshakes_that_never_end_keep_others_out_for_ten_seconds() {
    let mut still = still();
    let identity = still.enrolled(Share::default());
    let tls = tls::client(&identity.own, Trust::Certificate(identity.authority.clone())).unwrap();
    let mut server = endpoint(&still);
    // Asks, and asks again with the cookie; returns whether it was sent away.
    let knock = |server: &mut Endpoint, n: usize, now| {
        let own = SocketAddr::from(([10, 0, 2, 1], 1000 + n as u16));
        let mut client = Endpoint::client(&[1; 32]);
        client.connect(gateway(), tls.clone(), now).unwrap();
        for _ in 0..2 {
            while let Some((_, datagram)) = client.transmit() {
                server.receive(own, &datagram, now);
            }
            while let Some((_, datagram)) = server.transmit() {
                client.receive(gateway(), &datagram, now);
            }
        }
        while let Some(event) = client.event() {
            if let Event::Lost(..) = event {
                return true;
            }
        }
        false
    };
    let begin = Instant::ZERO + ms(1);
    for n in 0..MOST_HANDSHAKES {
        assert!(!knock(&mut server, n, begin), "{n}");
    }
    assert_eq!((server.handshakes(), server.counters().crowded), (256, 0));
    assert!((0..2).all(|n| knock(&mut server, 256 + n, begin)));
    assert_eq!((server.handshakes(), server.counters().crowded), (256, 2));
    let later = begin + Span::from_secs(SILENCE.as_secs()) + ms(1);
    server.poll(later);
    while server.transmit().is_some() {}
    assert_eq!((server.handshakes(), server.counters().failed), (0, 256));
    assert!(!knock(&mut server, 258, later));
}
