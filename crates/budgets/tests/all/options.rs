//! The options of `penstock-agent`.

use clap::CommandFactory;
use penstock_budgets::cli::Options;
use penstock_linux::testing::has_examples;

#[test]
fn every_verb_has_an_example() {
    has_examples(&Options::command());
}
