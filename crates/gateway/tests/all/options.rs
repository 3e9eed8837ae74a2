//! The options of `penstock-gateway`.

use clap::{CommandFactory, Parser};
use penstock_gateway::cli::Options;
use penstock_linux::testing::has_examples;

#[test]
fn every_verb_has_an_example() {
    has_examples(&Options::command());
}

#[test]
fn what_contradicts_itself_is_refused() {
    let parse = |words: &str| Options::try_parse_from(format!("penstock-gateway {words}").split(' '));
    assert!(parse("set rate=1Mbit/s --for 2h").is_ok() && parse("set --keep").is_ok());
    for wrong in ["set", "set rate=1Mbit/s --keep", "set a=b --for 2h --confirm 1s", "set a=b --for 0s", "run"] {
        assert!(parse(wrong).is_err(), "{wrong}");
    }
}
