//! What the kernel of this machine does for appliances, and nothing else: sockets, interfaces, namespaces, signals, programs in
//! its packet path. The only crate with `unsafe`, and the only one that opens sockets.
//!
//! - [`tun`] makes an interface whose packets come to this process, [`port`] reads the frames of one that is there: [`lead`] is
//!   what stands before the IP header, [`segments`] takes apart what [`offloads`] have merged.
//! - [`nfqueue`] has packets of the kernel's firewall, which [`flowtables`] pass by; [`bpf`] programs in its packet
//!   path (PINK, bridges, budgets of hosts).
//! - [`limit`] holds the connections of a control group to a rate.
//! - [`local`], with its [`lock`], [`tcp`] and [`udp`] are the sockets of appliances; [`capture`] copies the packets of
//!   an interface.
//! - [`netns`] enters network namespaces; [`links`] watches interfaces, over `netlink`.
//! - [`signals`] end a run or ask for a report; [`scheduling`] lets a process run promptly, [`stalls`] tells when it did not run.
//! - [`random`] draws from the randomness of the system; [`error`] says what was refused.
//! - With the feature `testing`, `testing` is the testbed of tests with real packets.
//!
//! An error is that with which the kernel refused something, where nothing else is said of it.

pub mod bpf;
pub mod capture;
pub mod error;
pub mod flowtables;
pub mod lead;
pub mod limit;
pub mod links;
pub mod local;
pub mod lock;
mod netlink;
pub mod netns;
pub mod nfqueue;
pub mod offloads;
pub mod port;
pub mod random;
pub mod scheduling;
pub mod segments;
pub mod signals;
pub mod stalls;
pub mod tcp;
#[cfg(feature = "testing")]
pub mod testing;
pub mod tun;
pub mod udp;
