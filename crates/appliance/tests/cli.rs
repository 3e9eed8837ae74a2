//! What the options of verbs ask.

use clap::Parser;
use penstock_appliance::cli::{Applied, Change, Top};
use penstock_appliance::socket::message::{Apply, By, LONGEST_REQUEST, Request, Set, Until};
use penstock_core::units::Span;

#[derive(Parser)]
enum Verb {
    Set(Change),
    Apply(Applied),
    Top(Top),
}

fn request(words: &str) -> Result<Request, String> {
    let words = ["x"].into_iter().chain(words.split(' '));
    match Verb::try_parse_from(words).map_err(|e| e.to_string())? {
        Verb::Set(change) => change.request(),
        Verb::Apply(applied) => applied.request("a = 1".into()),
        Verb::Top(top) => Ok(top.request()),
    }
    .map_err(|e| e.to_string())
}

#[test]
fn a_change_says_until_when_it_stands() {
    let values = vec![("rate".to_owned(), "2Mbit/s".to_owned())];
    let minute = Span::from_secs(60);
    for (words, until) in
        [("", None), (" --for 1min", Some(Until::For(minute))), (" --confirm 1min", Some(Until::Confirmed(minute)))]
    {
        let set = Request::Set(Set { values: values.clone(), until });
        assert_eq!(request(&format!("set rate=2Mbit/s{words}")), Ok(set));
        let apply = Request::Apply(Apply { name: "f.toml".into(), text: "a = 1".into(), until });
        assert_eq!(request(&format!("apply f.toml{words}")), Ok(apply));
    }
    assert_eq!(request("set --keep"), Ok(Request::Keep));
    assert_eq!(request("top --by node --most 3"), Ok(Request::Top { by: By::Node, most: 3 }));
    for (words, said) in [
        ("set rate=1bit/s --for 1s --confirm 1s", "cannot be used with"),
        ("set rate=1bit/s --for 999ms", "is not within 1s and 604800s"),
        ("set rate=1bit/s --for 169h", "is not within 1s and 604800s"),
        ("set rate", "rate"),
        ("set", "required"),
    ] {
        let refused = request(words).unwrap_err();
        assert!(refused.contains(said), "{words}: {refused}");
    }
}

/// The longest text for which the whole request, with its line feed, is as long as one may be.
#[test]
fn a_file_is_no_longer_than_a_request_may_be() {
    let Ok(Verb::Apply(applied)) = Verb::try_parse_from(["x", "apply", "f"]) else { panic!("a file") };
    let around = applied.request(String::new()).unwrap().line().len();
    let text = |len: usize| "x".repeat(len - around);
    assert_eq!(applied.request(text(LONGEST_REQUEST)).unwrap().line().len(), LONGEST_REQUEST);
    assert!(applied.request(text(LONGEST_REQUEST + 1)).unwrap_err().to_string().contains("longer than a request"));
}
