//! A gateway on a router or on a bridge between namespaces, and before hosts with agents, with real packets. Where that is not
//! possible, the tests skip and say why.
//!
//! What depends on the speed of this machine is asserted only if the machine was on time.

mod announce;
mod answers;
mod bridge;
mod control;
mod enforce;
mod file;
mod hosts;
mod kernel;
mod lab;
mod life;
mod link;
mod namespaces;
mod options;
mod scene;
mod standby;
mod weir;
