//! The kinds of traffic: one line for each kind in the table at the end of this file.

use super::settings::{FlowFacts, Settings};
use super::{bulk, cbr, sessions, synflood, video, voip};
use penstock_core::config::ConfigError;
use penstock_grammar::fields;
use serde::de::Deserializer;
use serde::{Deserialize, Serialize};

/// Makes the enum of all kinds of traffic from one line each: variant, its settings, its word in scenarios.
macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident($settings:ty) = $word:literal, $tcp:literal;)*) => {
        /// What the application of a flow does, with its settings.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Traffic {
            $($(#[$doc])* $variant($settings),)*
        }

        impl Traffic {
            /// The words of all kinds, as scenarios have them.
            pub const NAMES: &'static [&'static str] = &[$($word),*];

            /// The word of scenarios and tables.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $word,)*
                }
            }

            /// The keys of a kind that scenarios call by this word, beside those of all flows; none if there is no such kind.
            pub fn keys_of(word: &str) -> &'static [&'static str] {
                match word {
                    $($word => fields::of::<<$settings as Settings>::Keys>(),)*
                    _ => &[],
                }
            }

            /// The keys without which a kind means nothing.
            pub fn needed_by(word: &str) -> &'static [&'static str] {
                match word {
                    $($word => <$settings as Settings>::NEEDED,)*
                    _ => &[],
                }
            }

            /// Reads the keys of a kind; `None` if there is no such kind. The inner error is that of a key that can be read
            /// but cannot be.
            ///
            /// # Errors
            /// Those of the deserializer.
            pub fn read<'de, D: Deserializer<'de>>(
                word: &str, keys: D, flow: &FlowFacts,
            ) -> Option<Result<Result<Self, ConfigError>, D::Error>> {
                match word {
                    $($word => Some(
                        Deserialize::deserialize(keys)
                            .map(|keys| <$settings as Settings>::read(keys, flow).map(Self::$variant)),
                    ),)*
                    _ => None,
                }
            }

            /// True if it sends over TCP connections, so that the settings of `[tcp]` concern it.
            pub fn uses_tcp(&self) -> bool {
                match self {
                    $(Self::$variant(_) => $tcp,)*
                }
            }
        }

        /// Writes the keys of the kind, as [`Traffic::read`] reads them.
        impl Serialize for Traffic {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $(Self::$variant(settings) => settings.keys().serialize(serializer),)*
                }
            }
        }
    };
}

kinds! {
    /// Sends as much as TCP lets it.
    Bulk(bulk::Bulk) = "bulk", true;
    /// Sends one file over TCP, then closes.
    Transfer(bulk::Transfer) = "transfer", true;
    /// UDP at a constant rate.
    Cbr(cbr::Cbr) = "cbr", false;
    /// UDP at a constant rate during exponential on-times.
    OnOff(cbr::OnOff) = "onoff", false;
    /// SYNs of forged sources, never followed by anything.
    SynFlood(synflood::SynFlood) = "synflood", false;
    /// TCP transfers one after the other, with idle times between.
    Http(sessions::Http) = "http", true;
    /// TCP transfers that arrive at random.
    Web(sessions::Web) = "web", true;
    /// One direction of a call over UDP.
    Voip(voip::Voip) = "voip", false;
    /// Video frames over UDP.
    Video(video::Video) = "video", false;
}
