//! A bottleneck between two network namespaces, with any queue discipline of Penstock before it.

use clap::Parser;
use penstock_emulator::cli::Options;
use penstock_emulator::command;
use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(command::run(&Options::parse()))
}
