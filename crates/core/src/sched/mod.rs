//! Scheduling: whose turn it is. A scheduler knows classes by index and owns no packet.

pub mod drr;
