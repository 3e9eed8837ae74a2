//! Actors of a run, state and behaviour together.
//!
//! Applications: [`sessions`] of transfers (HTTP, web), [`voip`] and [`video`] over what they have in common ([`media`]),
//! with random [`sizes`]. What each measures stands in the summary of its flow. [`changes`] alter links, [`handovers`] move
//! hosts, [`cooperation`] divides the rate of a bottleneck among nodes.

pub mod bulk;
pub mod cbr;
pub mod changes;
pub mod cooperation;
pub mod handovers;
pub mod media;
pub mod sessions;
pub mod settings;
pub mod sizes;
pub mod synflood;
pub mod traffic;
pub mod video;
pub mod voip;

pub use traffic::Traffic;
