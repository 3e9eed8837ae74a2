//! The grammar of Penstock's TOML files: scenarios, and the configurations of programs that forward real packets.
//!
//! Every value keeps its position in the file, and a quantity is a text with its unit (`"5ms"`). A mistake is reported
//! with file, line and column, what is wrong, what is allowed, and the nearest name that exists. Tables which several
//! kinds of files share are read here, so that they are the same everywhere. Open the files in this order:
//!
//! 1. [`source`] has a file and its tree of values, each with its position; [`fields`] finds the keys that a struct can
//!    have.
//! 2. [`diagnosis`] is a mistake, shown below its line.
//! 3. [`named`] reads an algorithm with its parameters from any table of algorithms: `{ name = "codel", target = "5ms"
//!    }`.
//! 4. [`link`] has the rate, delay, limits and loss of a link.
//! 5. [`stations`] has the channels to the stations behind a wireless link; [`impair`] what a link does to packets besides.
//! 6. [`range`](mod@range) checks values against bounds.
//! 7. [`from`] reads what people have: lines of `tc`, and the files of LibreQoS.
//!
//! Nothing in this crate opens a file: the text is an argument.
//!
//! ```
//! use penstock_core::units::Rate;
//! use penstock_grammar::link::Link;
//! use penstock_grammar::named::Disciplines;
//! use penstock_grammar::source::Source;
//!
//! let text = "[link]\nrate = \"10Mbit/s\"\ndelay = \"20ms\"\n\n[aqm]\nname = \"codel\"\ntarget = \"10ms\"\n";
//! let source = Source::parse(text, "gateway.toml").unwrap();
//! let link: Link = source.read(source.get(&["link"]).unwrap()).unwrap();
//! assert_eq!(link.rate, Rate::from_bps(10_000_000));
//! let aqm = source.named(source.get(&["aqm"]).unwrap(), &Disciplines::built_in()).unwrap();
//! assert_eq!(aqm.name(), "codel");
//!
//! let source = Source::parse("[aqm]\nname = \"codle\"\n", "gateway.toml").unwrap();
//! let mistake = source.named(source.get(&["aqm"]).unwrap(), &Disciplines::built_in()).unwrap_err();
//! assert_eq!((mistake.line, mistake.column), (2, 8));
//! assert!(mistake.what.contains("did you mean \"codel\"?"));
//! ```

#![cfg_attr(not(test), deny(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

pub mod diagnosis;
pub mod fields;
pub mod from;
pub mod impair;
pub mod link;
pub mod named;
pub mod range;
pub mod source;
pub mod stations;

pub use diagnosis::Diagnosis;
pub use source::Source;
