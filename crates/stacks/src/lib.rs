//! Transport stacks that others wrote, hosted in virtual time.
//!
//! A flow of `kind = "stack"` names its stack. [`quinn`] is a released QUIC with its own TLS; [`child`] is any program that
//! speaks the protocol of [`frames`] on its standard input and output, and [`serve`] is the other side of that protocol for
//! a stack in Rust. [`released`] finds the stacks that come with this crate.
//!
//! ```
//! use penstock_core::foreign::Own;
//! use penstock_core::units::Span;
//! use penstock_sim::{Scenario, Simulation};
//! use penstock_stacks::quinn::Quinn;
//!
//! let text = r#"
//! duration = "5s"
//! [topology]
//! kind = "dumbbell"
//! rate = "10Mbit/s"
//! delay = "10ms"
//! limit = "100p"
//! [aqm]
//! name = "codel"
//! [[flows]]
//! kind = "stack"
//! stack = "theirs"
//! "#;
//! let library = Own::new().with_stack("theirs", Quinn::default());
//! let mut run = Simulation::new(&Scenario::parse_with(text, "quinn.toml", &library).unwrap());
//! run.advance(Span::MAX).unwrap();
//! assert!(run.summary().flows[0].goodput_bps > 8e6);
//! ```

pub mod child;
pub mod frames;
#[cfg(feature = "quinn")]
pub mod quinn;
mod serve;

pub use serve::{Served, serve};

use penstock_core::foreign::LibraryError;
use penstock_core::stack::Config;

/// The names of the stacks that come with this crate.
pub const NAMES: &[&str] = if cfg!(feature = "quinn") { &["quinn:cubic", "quinn:newreno", "quinn:bbr"] } else { &[] };

/// Finds a stack that comes with this crate; `quinn` alone is `quinn:cubic`, which is its default. `None` if the name begins
/// with none of theirs.
pub fn released(name: &str) -> Option<Result<Config, LibraryError>> {
    match name.split_once(':').unwrap_or((name, "")) {
        #[cfg(feature = "quinn")]
        ("quinn", control) => Some(match quinn::Control::named(control) {
            Some(control) => Ok(Config::new(name, std::sync::Arc::new(quinn::Quinn::with(control)))),
            None => Err(LibraryError(format!("quinn has no control {control:?}; there are {}", NAMES.join(", ")))),
        }),
        _ => None,
    }
}
