//! A bottleneck between two network namespaces, with any queue discipline of Penstock before it.

use penstock_core::foreign::Own;
use std::process::ExitCode;

fn main() -> ExitCode {
    penstock_emulator::command::main_with(&Own::new())
}
