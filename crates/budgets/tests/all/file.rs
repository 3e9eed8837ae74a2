//! The file of an agent.

use penstock_budgets::file::{Apply, File, Mark, OfOthers};
use penstock_core::units::Rate;
use penstock_grammar::Diagnosis;
use penstock_linux::limit::Control;
use std::collections::BTreeMap;

const GOOD: &str = "name = \"truck\"\ngateways = [\"192.0.2.1:7443\", \"[2001:db8::1]:7443\"]\nusable = \"5Mbit/s\"\n";

fn mistake(piece: &str, by: &str) -> Diagnosis {
    assert_eq!(GOOD.matches(piece).count(), 1, "{piece:?} is there once");
    File::parse(&GOOD.replacen(piece, by, 1), "agent.toml").unwrap_err()
}

#[test]
fn what_a_file_says_is_read_and_mistakes_have_their_place() {
    let file = File::parse(GOOD, "agent.toml").unwrap();
    assert_eq!((file.gateways.len(), file.usable, file.apply), (2, Some(Rate::from_bps(5_000_000)), Apply::Kernel));
    let key = mistake("gateways", "gatways");
    assert!(key.line == 2 && key.what.contains("did you mean `gateways`?"), "{key}");
    assert_eq!(mistake("\"5Mbit/s\"", "5").line, 3);
    assert_eq!(mistake("truck", "../x").line, 1);
    assert_eq!(mistake(":7443\", ", ":0\", ").line, 2);
    let both = mistake("usable =", "usable_command = [\"x\"]\nusable =");
    assert!(both.what.contains("cannot both"), "{both}");
    let police = "others = \"police\"\nusable =";
    let file = File::parse(&GOOD.replace("usable =", police), "f").unwrap();
    assert_eq!(file.others, OfOthers::Police);
    let control = mistake("usable =", "control = \"cubic\"\nusable =");
    assert!(control.line == 3 && control.to_string().contains("c2ml_cubic"), "{control}");
    let control = File::parse(&GOOD.replace("usable =", "control = \"c2ml_cubic\"\nusable ="), "f").unwrap();
    assert_eq!((control.control, file.control), (Some(Control::Cubic), None));
    let alone = mistake("usable =", "apply = \"nothing\"\ncontrol = \"c2ml_reno\"\nusable =");
    assert!(alone.line == 4 && alone.what.contains("apply"), "{alone}");
    let rates = "announce_rates = true\nusable =";
    assert!(File::parse(&GOOD.replace("usable =", rates), "f").unwrap().announce_rates && !file.announce_rates);
    let alone = mistake("usable =", &format!("apply = \"nothing\"\n{rates}"));
    assert!(alone.line == 4 && alone.what.contains("apply"), "{alone}");
    let weighted = |lines: &str| File::parse(&format!("{GOOD}[weights]\n{lines}\n"), "f");
    let weights = weighted("7 = 3\n0x10 = 100").unwrap().weights;
    assert_eq!(weights, BTreeMap::from([(Mark(7), 3), (Mark(16), 100)]));
    for wrong in ["7 = 0", "7 = 101", "seven = 1", "7 = \"3\""] {
        let mistake = weighted(wrong).unwrap_err();
        assert!((4..=5).contains(&mistake.line), "{wrong}: {mistake}");
    }
    let alone = mistake("usable =", &format!("apply = \"nothing\"\n{police}"));
    assert!(alone.line == 4 && alone.what.contains("apply"), "{alone}");
    let empty = File::parse("", "f").unwrap_err();
    assert!(empty.to_string().contains("gateways"), "{empty}");
}

#[test]
fn the_example_is_a_right_one() {
    let file = File::parse(include_str!("../../../../examples/gateway/agent.toml"), "agent.toml").unwrap();
    assert_eq!(file.gateways.len(), 1);
}
