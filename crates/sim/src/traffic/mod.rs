//! Traffic of applications, by what its sources say of it: [`sessions`] of transfers (HTTP, web), [`voip`], [`video`].
//!
//! What each measures is told in the summary of its flow: completion times of transfers; delay, jitter and loss of
//! [`media`]; the quality of calls; frames that came too late.

pub mod media;
pub mod sessions;
pub mod sizes;
pub mod video;
pub mod voip;

use crate::digest::Digest;
use crate::summary::{Quantiles, round};
use penstock_core::units::Span;

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

/// A digest that also knows the largest time.
#[derive(Debug, Clone, Default)]
pub struct Times {
    /// The times.
    pub digest: Digest,
    max: Span,
}

impl Times {
    /// Counts one time.
    pub fn record(&mut self, span: Span) {
        self.digest.record(span);
        self.max = self.max.max(span);
    }

    /// In milliseconds.
    pub fn quantiles_ms(&self) -> Quantiles {
        let ms = |span: Span| round(span.as_millis_f64());
        // The middle of the last bucket may lie above all that is in it.
        let at = |q: f64| ms(self.digest.quantile(q).min(self.max));
        Quantiles {
            mean: ms(self.digest.mean()),
            p10: at(0.1),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            max: ms(self.max),
        }
    }
}
