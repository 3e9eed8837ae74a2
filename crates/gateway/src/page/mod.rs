//! The live page: a process of its own, without rights, that asks the gateway's socket once a second and serves what it
//! learns. Nothing that a browser sends reaches the process that moves packets, except what an operator sets.
//!
//! Threads and no asynchronous runtime: there are a few clients. `httparse` reads requests, `rustls` encrypts.

pub mod access;
pub mod history;
pub mod http;
pub mod metrics;
pub mod process;
pub mod sampler;
pub mod serve;
