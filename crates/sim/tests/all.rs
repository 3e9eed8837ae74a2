//! The tests of this crate from outside, as one program: it is linked once, and its tests run beside each other. Each file of
//! this folder has its line here (tests/test_dependencies.py).

mod accecn;
mod asymmetric;
mod autorate;
mod capture;
mod changes;
mod controls;
mod cooperation;
mod determinism;
mod ecn;
mod ern;
mod estimates;
mod handovers;
mod impairments;
mod invariants;
mod ladders;
mod layers;
mod networks;
mod pink;
mod rates;
mod readme;
mod recovery;
mod roaming;
mod scenarios;
mod scone;
mod series;
mod start;
mod tcp_trace;
mod theory;
mod traffic;
mod wireless;
