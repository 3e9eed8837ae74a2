//! Requests and answers as lines, as docs/reference/control-socket.md has them.

use penstock_appliance::socket::message::{
    Apply, By, LONGEST_REQUEST, MOST_ENTRIES, Refusal, Request, Set, Until, answer_line, parse_answer,
};
use penstock_core::units::Span;
use proptest::prelude::*;
use serde_json::json;

const VERBS: [&str; 6] = ["status", "top", "set", "apply", "keep", "rollback"];

fn refused(line: &str) -> Refusal {
    Request::parse(line.as_bytes()).unwrap_err()
}

#[test]
fn the_lines_of_the_documentation_are_read() {
    let parse = |line: &str| Request::parse(line.as_bytes()).unwrap();
    assert_eq!(parse(r#"{"v":1,"do":"status"}"#), Request::Status);
    assert_eq!(parse("{\"v\":1,\"do\":\"top\"}\r\n"), Request::Top { by: By::Flow, most: 20 });
    assert_eq!(parse(r#"{"v":1,"do":"top","by":"node","most":3}"#), Request::Top { by: By::Node, most: 3 });
    let set = parse(r#"{"v":1,"do":"set","values":{"rate":"5Mbit/s","loss":0.01}}"#);
    let values = vec![("loss".into(), "0.01".into()), ("rate".into(), "5Mbit/s".into())];
    assert_eq!(set, Request::Set(Set { values, until: None }));
    let set = parse(r#"{"v":1,"do":"set","values":{"stations":[0.1,{"technology":"wifi","snr_db":9}]}}"#);
    let values = vec![("stations".into(), r#"[0.1,{"snr_db":9,"technology":"wifi"}]"#.into())];
    assert_eq!(set, Request::Set(Set { values, until: None }), "a list stays JSON");
    let set = parse(r#"{"v":1,"do":"set","values":{"rate":"5Mbit/s"},"for":"2h"}"#);
    let values = vec![("rate".into(), "5Mbit/s".into())];
    assert_eq!(set, Request::Set(Set { values, until: Some(Until::For(Span::from_secs(7200))) }));
    let apply = parse(r#"{"v":1,"do":"apply","name":"f","text":"a = 1\n"}"#);
    assert_eq!(apply, Request::Apply(Apply { name: "f".into(), text: "a = 1\n".into(), until: None }));
    assert_eq!(parse(r#"{"v":1,"do":"keep"}"#), Request::Keep);
    assert_eq!(parse(r#"{"v":1,"do":"rollback"}"#), Request::Rollback);
}

#[test]
fn a_refusal_says_what_is_allowed() {
    assert_eq!(refused(r#"{"do":"status"}"#).allowed, ["1"]);
    assert_eq!(refused(r#"{"v":2,"do":"status"}"#).allowed, ["1"]);
    assert_eq!(refused(r#"{"v":1}"#).allowed, VERBS);
    let verb = refused(r#"{"v":1,"do":"staus"}"#);
    assert!(verb.what.contains("did you mean \"status\"?") && verb.allowed == VERBS, "{verb}");
    assert_eq!(refused(r#"{"v":1,"do":"status","most":1}"#).allowed, ["v", "do"]);
    assert_eq!(refused(r#"{"v":1,"do":"top","by":"nodes"}"#).allowed, ["flow", "node"]);
    for most in ["0", "1001", "-1", "1.5", "\"7\"", "1e99"] {
        let refusal = refused(&format!(r#"{{"v":1,"do":"top","most":{most}}}"#));
        assert_eq!(refusal.allowed, ["1 to 1000"], "{most}");
    }
}

#[test]
fn what_cannot_be_read_is_refused_with_a_sentence() {
    let deep = format!(r#"{{"v":1,"do":{}"#, "[".repeat(LONGEST_REQUEST));
    for line in ["", "\n", "null", "[]", "{", "\u{feff}{}", r#"{"v":1,"do":7}"#, &deep] {
        assert!(!refused(line).what.is_empty(), "{line:?}");
    }
    for until in [r#""for":7"#, r#""for":"0s""#, r#""confirm":"200h""#, r#""for":"1s","confirm":"1s""#] {
        let refusal = refused(&format!(r#"{{"v":1,"do":"set","values":{{"rate":"1Mbit/s"}},{until}}}"#));
        assert!(refusal.what.contains("`for`") || refusal.what.contains("`confirm`"), "{until}: {refusal}");
    }
    for values in ["7", "{}", r#"{"rate":null}"#, r#"{"rate":{"a":1}}"#] {
        assert!(refused(&format!(r#"{{"v":1,"do":"set","values":{values}}}"#)).what.contains("value"), "{values}");
    }
}

#[test]
fn answers_come_back_as_they_were_given() {
    assert_eq!(parse_answer(answer_line(&Ok("{\"a\":1}".into())).as_bytes()), Ok(json!({"a": 1})));
    let refusal = Refusal { what: "a \"quoted\"\nline".into(), allowed: vec!["x".into(), "y".into()] };
    let line = answer_line(&Err(refusal.clone()));
    assert_eq!(line.matches('\n').count(), 1, "an answer is one line");
    assert_eq!(parse_answer(line.as_bytes()), Err(refusal));
    for line in ["", "{}", r#"{"v":1}"#, r#"{"v":9,"ok":1}"#] {
        assert!(parse_answer(line.as_bytes()).is_err(), "{line}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_a_request_or_a_refusal(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Request::parse(&bytes);
        let _ = parse_answer(&bytes);
    }

    #[test]
    fn what_a_request_writes_is_what_it_reads(
        key in "[a-z_.]{1,20}", value in "\\PC{0,20}", most in 1..=MOST_ENTRIES, node in any::<bool>(),
        s in 1..=604_800u64,
    ) {
        let by = if node { By::Node } else { By::Flow };
        let span = Span::from_secs(s);
        let sets = [None, Some(Until::For(span)), Some(Until::Confirmed(span))];
        let sets = sets.map(|until| Request::Set(Set { values: vec![(key.clone(), value.clone())], until }));
        let others = [Request::Status, Request::Top { by, most }, Request::Keep, Request::Rollback];
        let applies = [None, Some(Until::Confirmed(span))];
        let applies = applies.map(|until| Request::Apply(Apply { name: key.clone(), text: value.clone(), until }));
        for request in others.into_iter().chain(sets).chain(applies) {
            prop_assert_eq!(Request::parse(request.line().as_bytes()), Ok(request));
        }
    }
}
