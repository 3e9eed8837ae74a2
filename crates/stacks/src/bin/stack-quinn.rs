//! quinn as a program of its own, which speaks the protocol of frames: `--stack NAME=target/release/stack-quinn`.
//! A word behind it names the congestion control.

use penstock_stacks::quinn::{Control, Quinn, VERSION};
use std::process::ExitCode;

fn main() -> ExitCode {
    let word = std::env::args().nth(1).unwrap_or_default();
    let Some(control) = Control::named(&word) else {
        eprintln!("there is no control {word}: cubic, newreno and bbr");
        return ExitCode::from(2);
    };
    let quinn = Quinn::with(control);
    penstock_stacks::serve(VERSION, &mut |side, setup| quinn.end(side, setup).unwrap_or_else(|why| panic!("{why}")))
}
