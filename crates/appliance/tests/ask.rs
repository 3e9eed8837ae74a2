//! What the answers to `set`, `apply` and `rollback` say to people.

use penstock_appliance::ask::changed;
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
