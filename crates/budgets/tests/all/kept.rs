//! What is kept in files: the roster of a gateway, the identity of a node, and the texts of tokens, keys and certificates.

use penstock_budgets::agent::Identity;
use penstock_budgets::identity::{Authority, Secret, Token, bytes, fingerprint, hex, node_of, public_of};
use penstock_budgets::roster::{self, Roster};
use penstock_budgets::store::{self, is_free, load, path, save};
use penstock_core::coop::state::State;
use penstock_core::coop::{Floor, Key, Keyring, NodeId, Share};
use penstock_core::units::Span;
use penstock_linux::random;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

fn roster() -> (Roster, PathBuf) {
    let path = std::env::temp_dir().join(format!("penstock-roster-{}", hex(&random::bytes::<8>().unwrap())));
    (Roster::open(&path).unwrap(), path)
}

#[test]
fn a_token_is_used_as_often_as_it_says_and_no_longer_than_it_says() {
    let (roster, path) = roster();
    let token = roster.invite(Share { class: 0, weight: 4, floor: Floor::NONE }, 2, Span::from_secs(60)).unwrap();
    let kept = std::fs::read_dir(path.join("tokens")).unwrap().flatten().next().unwrap();
    let text = std::fs::read_to_string(kept.path()).unwrap();
    let name = kept.file_name().into_string().unwrap();
    assert!(!format!("{name}{text}").contains(&token.secret.hex()[..12]), "the token itself is not kept");
    let public = token.secret.public().unwrap();
    let keys = [1, 2, 3].map(|n| Secret::new([n; 32]).public().unwrap());
    let (first, _) = roster.enrol(&public, &keys[0], "truck\n1").unwrap();
    assert_eq!(roster.member(NodeId(first.node), &keys[0]).unwrap().name, "truck1");
    assert!(roster.member(NodeId(first.node), &keys[1]).is_none(), "with another key");
    assert_eq!(roster.enrolled().unwrap(), 1);
    let (second, _) = roster.enrol(&public, &keys[1], "").unwrap();
    assert!(first.node != second.node && first.share == Share { class: 0, weight: 4, floor: Floor::NONE });
    assert!(matches!(roster.enrol(&public, &keys[2], ""), Err(roster::Error::Token)), "a third one");
    let late = roster.invite(Share::default(), 1, Span::ZERO).unwrap();
    assert!(roster.offer(&late.secret.public().unwrap()).is_none());
    std::fs::remove_dir_all(path).unwrap();
}

/// Dates are those of this machine: seconds since 1970.
#[test]
fn a_roster_keeps_when_a_node_enrolled_and_until_when_a_token_holds() {
    let (roster, path) = roster();
    let unix = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let before = unix();
    let public = roster.invite(Share::default(), 2, Span::from_secs(60)).unwrap().secret.public().unwrap();
    let until = roster.offer(&public).unwrap().until;
    let (member, _) = roster.enrol(&public, &Secret::new([1; 32]).public().unwrap(), "truck").unwrap();
    let span = before..=unix();
    assert!(span.contains(&(until - 60)) && span.contains(&member.enrolled), "{span:?}: {until}, {member:?}");
    std::fs::remove_dir_all(path).unwrap();
}

#[test]
fn a_roster_opened_again_is_the_same_and_its_number_grows() {
    let (roster, path) = roster();
    let again = Roster::open(&path).unwrap();
    assert_eq!((roster.authority(), roster.derived("x")), (again.authority(), again.derived("x")));
    assert_eq!([&roster, &again, &roster].map(|one| one.next_incarnation().unwrap()), [1, 2, 3]);
    let mode = std::os::unix::fs::PermissionsExt::mode(&path.join("authority.json").metadata().unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    std::fs::write(path.join("incarnation"), "x").unwrap();
    assert!(matches!(roster.next_incarnation(), Err(roster::Error::Damaged(_))));
    std::fs::remove_dir_all(path).unwrap();
}

#[test]
fn an_identity_comes_back_and_damage_is_told() {
    let directory = std::env::temp_dir().join(format!("penstock-identity-{}", std::process::id()));
    assert!(matches!(load(&directory), Err(store::Error::NotEnrolled(_))));
    let ticket = State::ticket(NodeId(7), Share::default()).sign(&Keyring::new(1, &Key::new([1; 32])));
    let authority = Authority::new().unwrap();
    let own = authority.gateway().unwrap();
    let identity = Identity { node: NodeId(7), own, authority: authority.0.certificate, ticket };
    save(&directory, &identity).unwrap();
    let again = load(&directory).unwrap();
    assert_eq!((again.node, again.ticket, again.own.secret), (NodeId(7), ticket, identity.own.secret));
    assert!(matches!(is_free(&directory), Err(store::Error::Enrolled(_))));
    let text = std::fs::read_to_string(path(&directory)).unwrap();
    std::fs::write(path(&directory), text.replace("\"format\":1", "\"format\":2")).unwrap();
    assert!(matches!(load(&directory), Err(store::Error::Damaged(_))));
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_token_is_read_as_it_is_written_and_does_not_show_itself() {
    let token = Token { secret: Secret::new([7; 32]), authority: fingerprint(b"x") };
    assert_eq!(Token::read(&token.text()).unwrap(), token);
    assert!(!format!("{token:?}").contains("0707"));
    let wrong = [String::new(), token.text().replace("penstock1", "penstock2"), token.text()[..40].to_owned()];
    assert!(wrong.iter().all(|text| Token::read(text).is_err()));
    assert!(!Token::read("penstock1-0707-1").unwrap_err().to_string().contains("0707"));
}

#[test]
fn a_certificate_names_its_node_and_its_key() {
    let authority = Authority::new().unwrap();
    let key = Secret::new([9; 32]).public().unwrap();
    let certificate = authority.node(&key, NodeId(4_000_000_000)).unwrap();
    assert_eq!((node_of(&certificate), public_of(&certificate)), (Some(NodeId(4_000_000_000)), Some(key)));
    assert_eq!(node_of(&authority.gateway().unwrap().certificate), None);
}

#[test]
fn hexadecimal_digits_are_bytes() {
    assert_eq!((hex(&[0, 0xab]), bytes("00ab"), bytes("0")), ("00ab".into(), Some(vec![0, 0xab]), None));
    assert_eq!((bytes("+1"), bytes("é")), (None, None));
}
