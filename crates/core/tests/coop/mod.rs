//! Cooperative control over a network that loses, repeats, delays and reorders, with restarts and an attacker.

mod network;
mod stories;
mod storms;
