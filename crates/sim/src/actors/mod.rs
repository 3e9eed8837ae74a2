//! The actors of a run, each with its state and its behaviour, and the table of all kinds of traffic.
//!
//! An actor changes its own state and nothing else; for every other effect it pushes [`action`]s. Applications
//! implement one trait ([`application`]): [`bulk`], [`cbr`], [`synflood`], [`sessions`] of transfers with their
//! [`connections`], [`voip`] and [`video`] with their common part ([`media`]), random [`sizes`], and a hosted [`stack`]. [`changes`] alter
//! links, [`handovers`] move hosts, and [`cooperation`] divides the rate of a bottleneck among nodes.
//!
//! A new kind of traffic needs its file, its module here, its line in the table at the end, and a variant of
//! [`Measures`] if it measures something of its own.

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
pub mod stack;
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
use stack::StackSummary;
use video::VideoSummary;
use voip::VoipSummary;

/// What an application measured of itself. In the summary of the flow its key is the name of the variant in small
/// letters.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Measures {
    /// The application measures nothing besides what every flow does.
    #[default]
    #[serde(skip)]
    None,
    /// The transfers of `http` and `web` flows.
    Transfers(Transfers),
    /// The quality of a `voip` call.
    Voip(VoipSummary),
    /// The frames of a `video` flow.
    Video(VideoSummary),
    /// The datagrams of a `stack` flow.
    Stack(StackSummary),
}

/// A flow has at most one of these keys.
impl schemars::JsonSchema for Measures {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Measures".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "object",
            "properties": {
                "transfers": generator.subschema_for::<Transfers>(),
                "voip": generator.subschema_for::<VoipSummary>(),
                "video": generator.subschema_for::<VideoSummary>(),
                "stack": generator.subschema_for::<StackSummary>(),
            },
        })
    }
}

impl Measures {
    /// True if the application measures nothing of its own.
    pub fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    /// Returns the measures of transfers; `None` for other kinds.
    pub fn transfers(&self) -> Option<&Transfers> {
        if let Self::Transfers(transfers) = self { Some(transfers) } else { None }
    }

    /// Returns the measures of a call; `None` for other kinds.
    pub fn voip(&self) -> Option<&VoipSummary> {
        if let Self::Voip(voip) = self { Some(voip) } else { None }
    }

    /// Returns the measures of a video; `None` for other kinds.
    pub fn video(&self) -> Option<&VideoSummary> {
        if let Self::Video(video) = self { Some(video) } else { None }
    }
}

/// Any application. The one that nearly every flow has is stored in place, all others in a box.
#[allow(clippy::large_enum_variant)] // nearly every flow is TCP: a box would cost a cache miss and save nothing
#[derive(Debug)]
pub enum AnyApplication {
    /// A TCP connection that lasts as long as its flow.
    Tcp(Tcp),
    /// Any other application.
    Other(Box<dyn Application>),
}

impl AnyApplication {
    /// Puts an application into a box.
    pub fn other(application: impl Application + 'static) -> Self {
        Self::Other(Box::new(application))
    }

    /// Returns the application for reading.
    pub fn get(&self) -> &dyn Application {
        match self {
            Self::Tcp(tcp) => tcp,
            Self::Other(other) => &**other,
        }
    }

    /// Returns the application mutably.
    pub fn get_mut(&mut self) -> &mut dyn Application {
        match self {
            Self::Tcp(tcp) => tcp,
            Self::Other(other) => &mut **other,
        }
    }

    /// Returns the number of bytes of state on the heap.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Self::Tcp(tcp) => tcp.heap_bytes(),
            Self::Other(other) => other.bytes(),
        }
    }
}

/// Makes the enum of all kinds of traffic from one line for each kind: variant, settings, word in scenarios, and
/// whether it uses TCP.
macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident($settings:ty) = $word:literal, $tcp:literal;)*) => {
        /// The kind of traffic of a flow, with its settings.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Traffic {
            $($(#[$doc])* $variant($settings),)*
        }

        impl Traffic {
            /// The words of all kinds, as they are written in scenarios.
            pub const NAMES: &'static [&'static str] = &[$($word),*];

            /// Returns the word of this kind in scenarios and tables.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $word,)*
                }
            }

            /// Returns the keys of the kind with this word, besides those of all flows; empty if there is no such kind.
            pub fn keys_of(word: &str) -> &'static [&'static str] {
                match word {
                    $($word => fields::of::<<$settings as Settings>::Keys>(),)*
                    _ => &[],
                }
            }

            /// Returns the keys that the kind with this word must have; empty if there is no such kind.
            pub fn needed_by(word: &str) -> &'static [&'static str] {
                match word {
                    $($word => <$settings as Settings>::NEEDED,)*
                    _ => &[],
                }
            }

            /// Returns each word with the schema of the keys of its kind, those of all flows left out.
            pub fn schemas(generator: &mut schemars::SchemaGenerator) -> Vec<(&'static str, schemars::Schema)> {
                vec![$(($word, <<$settings as Settings>::Keys as schemars::JsonSchema>::json_schema(generator)),)*]
            }

            /// Reads the keys of a kind; `None` if there is no such kind. The inner error is that of a key whose value
            /// can be read but is not allowed.
            ///
            /// # Errors
            /// Returns the error of the deserializer.
            pub fn read<'de, D: Deserializer<'de>>(
                word: &str, keys: D, flow: &FlowFacts<'_>,
            ) -> Option<Result<Result<Self, ConfigError>, D::Error>> {
                match word {
                    $($word => Some(
                        Deserialize::deserialize(keys)
                            .map(|keys| <$settings as Settings>::read(keys, flow).map(Self::$variant)),
                    ),)*
                    _ => None,
                }
            }

            /// True if the kind sends over TCP connections, so that the settings of `[tcp]` concern it.
            pub fn uses_tcp(&self) -> bool {
                match self {
                    $(Self::$variant(_) => $tcp,)*
                }
            }

            /// Creates the application of one flow.
            pub fn build(&self, setup: &Setup<'_>) -> AnyApplication {
                match self {
                    $(Self::$variant(settings) => settings.build(setup),)*
                }
            }
        }

        /// Writes the keys of the kind in the form that [`Traffic::read`] reads.
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
    /// A TCP connection that always has data to send.
    Bulk(bulk::Bulk) = "bulk", true;
    /// One file over TCP, after which the connection is closed.
    Transfer(bulk::Transfer) = "transfer", true;
    /// UDP datagrams at a constant rate.
    Cbr(cbr::Cbr) = "cbr", false;
    /// UDP datagrams at a constant rate during exponential on-times.
    OnOff(cbr::OnOff) = "onoff", false;
    /// SYNs from forged sources, whose handshakes are never completed.
    SynFlood(synflood::SynFlood) = "synflood", false;
    /// TCP transfers one after another, with idle times between them.
    Http(sessions::Http) = "http", true;
    /// TCP transfers that arrive at random.
    Web(sessions::Web) = "web", true;
    /// One direction of a call over UDP.
    Voip(voip::Voip) = "voip", false;
    /// Frames of a video over UDP.
    Video(video::Video) = "video", false;
    /// A connection of a transport stack that somebody else wrote.
    Stack(stack::Hosted) = "stack", false;
}
