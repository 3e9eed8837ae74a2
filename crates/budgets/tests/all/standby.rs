//! Whether a standby serves, by what comes from the gateway before it and what does not.

use penstock_budgets::gateway::{Role, defaults};
use penstock_budgets::roster::Roster;
use penstock_budgets::standby::Watch;
use penstock_core::units::{Instant, Rate, Span};
use penstock_linux::udp::Side as _;

const IDS_OF_TEST: [u8; 16] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];

fn at(ms: u64) -> Instant {
    Instant::ZERO + Span::from_millis(ms)
}

/// RFC 9000, section 17.2.1, by hand: the ids of the question the other way round, and a version.
fn answer() -> Vec<u8> {
    let mut answer = vec![0x80, 0, 0, 0, 0, 8];
    answer.extend_from_slice(&IDS_OF_TEST[8..]);
    answer.push(8);
    answer.extend_from_slice(&IDS_OF_TEST[..8]);
    answer.extend_from_slice(&[0, 0, 0, 1]);
    answer
}

#[test]
fn a_gateway_is_gone_after_a_second_of_silence_and_back_after_a_second_of_answers() {
    let mut watch = Watch::new(IDS_OF_TEST, at(0));
    let mut seen = Vec::new();
    for ms in (0..10_000).step_by(250) {
        assert_eq!(watch.ask(at(ms)).unwrap()[..6], [0xc0, 0x1a, 0x2a, 0x3a, 0x4a, 8]);
        assert_eq!(watch.ask(at(ms + 249)), None);
        if !(3_000..6_000).contains(&ms) {
            watch.receive(&answer(), at(ms + 10));
        }
        let there = watch.is_there(at(ms + 20));
        if seen.last().is_none_or(|(_, last)| *last != there) {
            seen.push((ms, there));
        }
    }
    // The last answer before the pause is that of 2750 ms, the first one after it that of 6000.
    assert_eq!(seen, [(0, true), (3_750, false), (7_000, true)]);
}

#[test]
fn nobody_answers_who_has_not_seen_the_question() {
    let mut watch = Watch::new(IDS_OF_TEST, at(0));
    for wrong in 0..answer().len() - 4 {
        let mut changed = answer();
        // The length of an id is not looked at: an answer with another one has other bytes after it.
        changed[wrong] ^= if wrong == 5 || wrong == 14 { 0 } else { 0x80 };
        if changed != answer() {
            watch.receive(&changed, at(900));
        }
        watch.receive(&answer()[..wrong], at(900));
    }
    assert!(!watch.is_there(at(1_000)));
}

/// A real gateway's endpoint answers.
#[test]
fn an_endpoint_of_quic_answers_the_question() {
    let name = format!("penstock-standby-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let roster = Roster::open(&path).unwrap();
    let settings = defaults(Rate::from_bps(1_000_000));
    let mut role = Role::new(settings, roster, at(0)).unwrap();
    let mut watch = Watch::new(IDS_OF_TEST, at(0));
    role.receive("127.0.0.1:9".parse().unwrap(), &watch.ask(at(900)).unwrap(), at(900));
    let (_, answer) = role.transmit().unwrap();
    watch.receive(&answer, at(900));
    assert!(watch.is_there(at(1_500)) && !watch.clone().is_there(at(1_900)));
    std::fs::remove_dir_all(path).unwrap();
}

#[test]
fn a_gateway_is_gone_when_just_a_second_has_passed_since_its_answer() {
    let mut watch = Watch::new(IDS_OF_TEST, at(0));
    watch.receive(&answer(), at(700));
    assert!(watch.is_there(at(1_699)) && !watch.clone().is_there(at(1_700)));
    assert_eq!(watch.next_timeout(), at(0));
    watch.ask(at(1_699)).unwrap();
    assert_eq!(watch.next_timeout(), at(1_699 + 250));
}

/// A pause of three questions is none yet; a longer one begins the second of answers anew.
#[test]
fn a_gateway_that_answers_with_pauses_is_not_back() {
    let mut watch = Watch::new(IDS_OF_TEST, at(0));
    assert!(!watch.is_there(at(1_000)));
    watch.receive(&answer(), at(2_000));
    watch.receive(&answer(), at(2_750));
    assert!(!watch.clone().is_there(at(2_999)) && watch.clone().is_there(at(3_000)));
    assert!(!watch.clone().is_there(at(3_500)), "silent for three questions");
    watch.receive(&answer(), at(3_501));
    assert!(!watch.is_there(at(4_200)));
    watch.receive(&answer(), at(4_201));
    assert!(!watch.clone().is_there(at(4_500)) && watch.is_there(at(4_501)));
}
