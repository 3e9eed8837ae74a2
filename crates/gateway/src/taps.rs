//! The observers of packets. Each is a file of its own and a line of the table at the end.

use crate::calls::Calls;
use crate::enforce::Enforcer;
use crate::held::Held;
use crate::link::steer::Steer;
use crate::scone::Advice;
use crate::tap::{Around, Entries, Known, Tap};
use crate::windows::Windows;
use penstock_core::qdisc::DropReason;
use penstock_core::units::Instant;
use penstock_core::wire::RealPacket;
use penstock_shaper::classify::PacketFacts;
use penstock_shaper::direction::Direction;
use penstock_shaper::talkers::Talkers;

/// What an observer begins with: what is given, or nothing.
macro_rules! begin {
    () => {
        Default::default()
    };
    ($given:ident) => {
        $given
    };
}

macro_rules! taps {
    ($($(#[$doc:meta])* $name:ident: $tap:ty $(= $given:ident)?,)*) => {
        /// All observers.
        pub struct Taps {
            $($(#[$doc])* pub $name: $tap,)*
        }

        impl Taps {
            /// Takes the observers that the file decides about; the others begin with nothing.
            pub fn new($($($given: $tap,)?)*) -> Self {
                Self { $($name: begin!($($given)?),)* }
            }
        }

        /// Each is shown everything, in the order of the table.
        impl Tap for Taps {
            fn arrives(&mut self, direction: Direction, held: &mut Held, facts: &PacketFacts, around: &mut Around<'_>) {
                $(Tap::arrives(&mut self.$name, direction, held, facts, around);)*
            }
            fn leaves(&mut self, direction: Direction, held: &Held, now: Instant) {
                $(Tap::leaves(&mut self.$name, direction, held, now);)*
            }
            fn passes(&mut self, direction: Direction, packet: &RealPacket, now: Instant) {
                $(Tap::passes(&mut self.$name, direction, packet, now);)*
            }
            fn refused(&mut self, held: &Held, reason: DropReason) {
                $(Tap::refused(&mut self.$name, held, reason);)*
            }
            fn tick(&mut self, around: &mut Around<'_>) {
                $(Tap::tick(&mut self.$name, around);)*
            }
            fn status(&self, known: &Known<'_>, told: &mut Entries) {
                $(Tap::status(&self.$name, known, told);)*
            }
        }
    };
}

taps! {
    /// What the gateway knows of its link.
    steer: Steer = steer,
    /// Who carries most.
    talkers: Talkers = talkers,
    /// Windows as they came and as they went on.
    windows: [Windows; 2],
    /// How calls would sound.
    calls: Calls,
    /// Who keeps to its budget, if the file has budgets; holds hosts to them if it says so.
    enforcer: Option<Enforcer> = enforcer,
    /// Tells flows of QUIC their part, if the file says so.
    scone: Option<Advice> = scone,
}
