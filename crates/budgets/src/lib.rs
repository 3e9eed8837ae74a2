//! C²ML on real hosts: a gateway gives each node a budget over sessions that nobody can forge, and an agent on each node
//! holds its TCP to it.
//!
//! Follow a budget by opening the files in this order:
//!
//! 1. [`identity`]: keys, certificates and tokens; [`roster`]: what a gateway knows of its nodes; [`tls`]: who may come in.
//! 2. [`frame`]: what the two ends say; [`endpoint`]: sessions over QUIC without a socket.
//! 3. [`gateway`] and [`agent`]: the state machines of `penstock_core::coop` behind sessions, sides that a UDP socket serves
//!    (`penstock_linux::udp`).
//! 4. [`limit`](penstock_linux::limit): the budget in the kernel, for every TCP connection of a cgroup, and for what is not TCP; [`guard`]: a second
//!    process that lets connections go when the agent is gone.
//! 5. [`served`]: the gateway's role as `penstock-gateway` runs it, with [`standby`] for one that waits. [`cli`] has the verbs of `penstock-agent`,
//!    [`file`](mod@file) its file, [`store`] its identity, [`daemon`] its loop and [`command`] the program.

pub mod agent;
pub mod cli;
pub mod command;
pub mod daemon;
pub mod endpoint;
pub mod error;
pub mod file;
pub mod frame;
pub mod gateway;
pub mod guard;
pub mod identity;
pub mod roster;
pub mod served;
pub mod standby;
pub mod store;
pub mod tls;
