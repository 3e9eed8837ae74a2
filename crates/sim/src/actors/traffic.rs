//! The kinds of traffic: one line for each kind in the table at the end of this file.

use super::{bulk, cbr, sessions, synflood, video, voip};

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

            /// True if it sends over TCP connections, so that the settings of `[tcp]` concern it.
            pub fn uses_tcp(&self) -> bool {
                match self {
                    $(Self::$variant(_) => $tcp,)*
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
