//! `penstock-agent`: see `penstock_hosts`.

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(penstock_hosts::command::run(&penstock_hosts::cli::Options::parse()))
}
