//! PINK in the packet path of the kernel: loads the programs of `bpf/`, attaches them to an interface, tells them rates and
//! reads their counters.
//!
//! [`datapath`] is the loaded program; [`layout`] has the values of its maps, which `bpf/state.h` has in C; [`error`] what can
//! be wrong. The programs themselves are in `bpf/`, in the order in which a packet passes them: `parse.h`, `table.h`,
//! `probe.h`, `census.h`, `windows.h`, `pink.bpf.c`.
//!
//! [`bridge`] has other programs, which take frames from a bridge of the kernel: `bridge.bpf.c`; [`police`] those that hold
//! hosts to budgets: `police.bpf.c`.

pub mod bridge;
pub mod datapath;
pub mod error;
pub mod layout;
mod object;
pub mod police;

pub use datapath::{Attached, Datapath};
pub use error::Error;
pub use layout::{Control, Gauges, Sums, Way};
pub use object::MISSING;
