//! `penstock-agent`: see `penstock_budgets`.

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(penstock_budgets::command::run(&penstock_budgets::cli::Options::parse()))
}
