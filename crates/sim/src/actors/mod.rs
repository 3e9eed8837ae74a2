//! Actors of a run, state and behaviour together.
//!
//! Applications: [`sessions`] of transfers (HTTP, web), [`voip`] and [`video`] over what they have in common ([`media`]),
//! with random [`sizes`]. What each measures stands in the summary of its flow. [`changes`] alter links, [`handovers`] move
//! hosts, [`cooperation`] divides the rate of a bottleneck among nodes.

pub mod changes;
pub mod cooperation;
pub mod handovers;
pub mod media;
pub mod sessions;
pub mod sizes;
pub mod video;
pub mod voip;

/// How an application behaves, of the kinds that need more than a number or two.
#[derive(Debug, Clone, PartialEq)]
pub enum Traffic {
    /// Transfers one after the other, with idle times between.
    Http(sessions::Http),
    /// Transfers that arrive at random.
    Web(sessions::Web),
    /// A call.
    Voip(voip::Voip),
    /// Frames at a fixed pace.
    Video(video::Video),
}
