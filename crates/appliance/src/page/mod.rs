//! The live page: a process of its own, without rights, that asks the control socket of its appliance once a second and serves
//! what it learns. Nothing that a browser sends reaches the process that moves packets, except what an operator sets.
//!
//! Threads and no asynchronous runtime: there are a few clients. `httparse` reads requests, `rustls` encrypts.
//! An appliance adds its [`Content`].

mod access;
pub mod history;
mod http;
pub mod keys;
pub mod metrics;
mod places;
pub mod process;
mod sampler;
mod serve;

use history::Column;
use serde_json::Value;

/// What the page of an appliance has of its own.
#[derive(Debug, Clone, Copy)]
pub struct Content {
    /// The name of the appliance in titles and sentences: `gateway`.
    pub name: &'static str,
    /// The page.
    pub html: &'static str,
    /// Its script, which is at `/live.js`.
    pub script: &'static str,
    /// The columns of the history.
    pub columns: &'static [Column],
    /// Returns the values of the columns for the time between two answers to `status`; NaN stands for what is not known.
    pub row: fn(&Value, &Value) -> Vec<f32>,
    /// The first bytes of the file with the history; others for other columns.
    pub magic: &'static [u8; 16],
    /// Returns the text that Prometheus reads, for an answer to `status`.
    pub metrics: fn(&Value) -> String,
}
