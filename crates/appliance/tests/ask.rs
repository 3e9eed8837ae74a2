//! Whom a verb asks, and what answers say to people.

use penstock_appliance::ask::{changed, socket, table};
use penstock_appliance::cli::Ask;
use penstock_appliance::socket::place;
use serde_json::json;

#[test]
fn a_change_says_what_it_is_and_when_it_goes() {
    for (answer, expected) in [
        (json!({"set": {}}), "nothing differs\n"),
        (json!({"set": {"rate": "1Mbit/s"}, "for": "5s"}), "rate=1Mbit/s\nreturns after 5s\n"),
        (
            json!({"set": {"rate": "5Mbit/s"}, "confirm": "60s"}),
            "rate=5Mbit/s\nreturns unless `set --keep` comes within 60s\n",
        ),
    ] {
        assert_eq!(changed(&answer), expected);
    }
}

#[test]
fn both_directions_stand_beside_each_other() {
    let answer =
        json!({"elapsed_s": 2.0, "forward": {"aqm": "codel", "a": {"b": 0.25}}, "reverse": {"aqm": null, "n": 7}});
    let rows = [("discipline", "/aqm"), ("deep", "/a/b"), ("count", "/n")];
    let text = table(&answer, &["there", "back"], &rows);
    let rows =
        [["2.000 s", "there", "back"], ["discipline", "codel", "-"], ["deep", "0.250", "-"], ["count", "-", "7"]];
    let expected = rows.map(|[name, there, back]| format!("{name:<22}{there:>24}{back:>24}\n"));
    assert_eq!(text, expected.concat());
}

#[test]
fn a_socket_is_the_one_that_was_given_or_that_of_the_name() {
    let asked = |path: Option<&str>, name: Option<&str>| {
        let ask = Ask { socket: path.map(Into::into), name: name.map(Into::into), json: false };
        socket(&ask, "gateway", "penstock-gateway").map_err(|e| e.to_string())
    };
    assert_eq!(asked(Some("/a/b.sock"), Some("c")), Ok("/a/b.sock".into()));
    if let Some(directory) = place::directory() {
        assert_eq!(asked(None, Some("c")), Ok(directory.join("c.sock")));
    }
    let ask = Ask { socket: None, name: None, json: false };
    let nobody = socket(&ask, "no such beginning", "penstock-gateway").unwrap_err().to_string();
    assert!(nobody.contains("no penstock-gateway runs") || nobody.contains("XDG_RUNTIME_DIR"), "{nobody}");
}
