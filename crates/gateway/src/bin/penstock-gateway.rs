//! The box that ends bufferbloat on the link of a Linux router.

use clap::Parser;
use penstock_gateway::cli::Options;
use penstock_gateway::command;
use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(command::run(&Options::parse()))
}
