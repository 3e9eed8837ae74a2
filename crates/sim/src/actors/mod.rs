//! Actors of a run, state and behaviour together, and the table of all kinds of traffic.
//!
//! An actor changes its own state and nothing else; what it wants done to others it pushes as [`action`]s. Applications stand
//! behind one trait ([`application`]): [`bulk`], [`cbr`], [`synflood`], [`sessions`] of transfers with their [`connections`],
//! [`voip`] and [`video`] over what they have in common ([`media`]), with random [`sizes`]. [`changes`] alter links,
//! [`handovers`] move hosts, [`cooperation`] divides the rate of a bottleneck among nodes.
//!
//! A new kind of traffic is its file and here its module, its line in the table at the end, and, if it measures what no
//! other does, a variant of [`Measures`].

pub mod action;
pub mod application;
pub mod bulk;
pub mod cbr;
pub mod changes;
pub mod connections;
pub mod cooperation;
pub mod handovers;
pub mod media;
pub mod sessions;
pub mod settings;
pub mod sizes;
pub mod synflood;
pub mod video;
pub mod voip;

use application::{Application, Setup};
use bulk::Tcp;
use penstock_core::config::ConfigError;
use penstock_grammar::fields;
use serde::de::Deserializer;
use serde::{Deserialize, Serialize};
use sessions::Transfers;
use settings::{FlowFacts, Settings};
use video::VideoSummary;
use voip::VoipSummary;

/// What an application measured of itself. Its key in the summary of the flow is the name of the variant in small letters.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Measures {
    /// Nothing that the flow does not tell.
    #[default]
    #[serde(skip)]
    None,
    /// What became of transfers, of `http` and `web`.
    Transfers(Transfers),
    /// How a call went, of `voip`.
    Voip(VoipSummary),
    /// How frames went, of `video`.
    Video(VideoSummary),
}

impl Measures {
    /// True if there is nothing to tell.
    pub fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    /// What became of transfers.
    pub fn transfers(&self) -> Option<&Transfers> {
        if let Self::Transfers(transfers) = self { Some(transfers) } else { None }
    }

    /// How a call went.
    pub fn voip(&self) -> Option<&VoipSummary> {
        if let Self::Voip(voip) = self { Some(voip) } else { None }
    }

    /// How frames went.
    pub fn video(&self) -> Option<&VideoSummary> {
        if let Self::Video(video) = self { Some(video) } else { None }
    }
}

/// An application, with what nearly every flow has in place.
#[allow(clippy::large_enum_variant)] // nearly every flow is TCP: a box would cost a cache miss and save nothing
#[derive(Debug)]
pub enum AnyApplication {
    /// A TCP connection that lasts as long as its flow.
    Tcp(Tcp),
    /// Anything else.
    Other(Box<dyn Application>),
}

impl AnyApplication {
    /// Puts an application behind a pointer.
    pub fn other(application: impl Application + 'static) -> Self {
        Self::Other(Box::new(application))
    }

    /// Any application, to be asked.
    pub fn get(&self) -> &dyn Application {
        match self {
            Self::Tcp(tcp) => tcp,
            Self::Other(other) => &**other,
        }
    }

    /// Any application, to be told.
    pub fn get_mut(&mut self) -> &mut dyn Application {
        match self {
            Self::Tcp(tcp) => tcp,
            Self::Other(other) => &mut **other,
        }
    }

    /// Bytes of state on the heap.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Self::Tcp(tcp) => tcp.heap_bytes(),
            Self::Other(other) => other.bytes(),
        }
    }
}

/// Makes the enum of all kinds of traffic from one line for each: variant, settings, word in scenarios, over TCP or not.
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

            /// Makes the application of one flow.
            pub fn build(&self, setup: &Setup<'_>) -> AnyApplication {
                match self {
                    $(Self::$variant(settings) => settings.build(setup),)*
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
