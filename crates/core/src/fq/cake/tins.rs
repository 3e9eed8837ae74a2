//! The tins of cake: which traffic goes into which, and what share of the bandwidth each has.
//!
//! Source: tc-cake(8), "Priority queue parameters"; `cake_config_*()` of sch_cake.c. Tin 0 of the models "diffserv3" and
//! "diffserv4" is best effort and tin 1 is bulk, of the others tin 0 is the lowest.
//!
//! ```text
//! model        tins, with their share of the bandwidth (quantum without a bandwidth)
//! besteffort   all traffic 1 (65535)
//! diffserv3    best effort 1 (1024), bulk 1/16 (64), voice 1/4 (256)
//! diffserv4    best effort 1 (1024), bulk 1/16 (64), video 1/2 (512), voice 1/4 (256)
//! diffserv8, precedence    1 (256) for tin 0, each further tin 7/8 of the one before, rounded down
//! ```

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How packets are divided among tins, by their Diffserv codepoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Tins {
    /// One tin for all packets.
    BestEffort,
    /// Best effort, bulk (LE, CS1) and voice (CS6, CS7, EF, VA, TOS4).
    #[default]
    Diffserv3,
    /// Best effort, bulk (LE, CS1), video (AF4x, AF3x, CS3, AF2x, CS2, TOS4) and voice (CS7, CS6, EF, VA, CS5, CS4).
    Diffserv4,
    /// Eight tins, from background (LE) to network control (CS6, CS7).
    Diffserv8,
    /// Eight tins by the three bits of the IP precedence, which came before Diffserv.
    Precedence,
}

// Codepoints with names (RFC 2474, 2597, 3246, 5865, 8622); TOS2 and TOS4 are of RFC 1349.
const LE: u8 = 1;
const TOS2: u8 = 2;
const TOS4: u8 = 4;
const CS1: u8 = 8;
const CS2: u8 = 16;
const CS3: u8 = 24;
const CS4: u8 = 32;
const CS5: u8 = 40;
const VA: u8 = 44;
const EF: u8 = 46;
const CS6: u8 = 48;
const CS7: u8 = 56;

/// Number of codepoints.
pub(super) const CODEPOINTS: u32 = 64;

/// The class and the drop precedence of an assured forwarding codepoint: AFxy is 8 x + 2 y.
fn assured(dscp: u8) -> Option<u8> {
    let (class, precedence) = (dscp >> 3, dscp & 7);
    ((1..=4).contains(&class) && [2, 4, 6].contains(&precedence)).then_some(class)
}

/// What a tin has of the bandwidth: of the rate, and of the bytes in a round while there is no bandwidth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Share {
    /// Bytes per second.
    pub rate: u64,
    /// Bytes of a turn.
    pub quantum: u64,
}

impl Tins {
    /// The tin of a codepoint.
    pub(super) fn of(self, dscp: u8) -> u8 {
        match self {
            Self::BestEffort => 0,
            Self::Precedence => dscp >> 3,
            Self::Diffserv3 => match dscp {
                LE | CS1 => 1,
                TOS4 | VA | EF | CS6 | CS7 => 2,
                _ => 0,
            },
            Self::Diffserv4 => match (dscp, assured(dscp)) {
                (LE | CS1, _) => 1,
                (TOS4 | CS2 | CS3, _) | (_, Some(2..=4)) => 2,
                (CS4 | CS5 | VA | EF | CS6 | CS7, _) => 3,
                _ => 0,
            },
            Self::Diffserv8 => match (dscp, assured(dscp)) {
                (LE, _) => 0,
                (TOS2 | CS1, _) | (_, Some(1)) => 1,
                (CS3, _) | (_, Some(3 | 4)) => 3,
                (TOS4, _) | (_, Some(2)) => 4,
                (CS2, _) => 5,
                (CS4 | CS5 | VA | EF, _) => 6,
                (CS6 | CS7, _) => 7,
                _ => 2,
            },
        }
    }

    /// The shares of all tins, for a bandwidth in bytes per second.
    pub(super) fn shares(self, rate: u64) -> Vec<Share> {
        let halved = |shifts: &[u32]| shifts.iter().map(|n| Share { rate: rate >> n, quantum: 1024 >> n }).collect();
        let less = |of: &Share| Some(Share { rate: (of.rate * 7) >> 3, quantum: (of.quantum * 7) >> 3 });
        match self {
            Self::BestEffort => vec![Share { rate, quantum: 65_535 }],
            Self::Diffserv3 => halved(&[0, 4, 2]),
            Self::Diffserv4 => halved(&[0, 4, 1, 2]),
            Self::Diffserv8 | Self::Precedence => {
                std::iter::successors(Some(Share { rate, quantum: 256 }), less).take(8).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The codepoints of each tin, as the comments of sch_cake.c and tc-cake(8) list them.
    #[test]
    fn codepoints_go_where_the_manual_says() {
        let of = |model: Tins, tin| (0..64).filter(|dscp| model.of(*dscp) == tin).collect::<Vec<u8>>();
        assert_eq!(of(Tins::Diffserv3, 1), [1, 8]);
        assert_eq!(of(Tins::Diffserv3, 2), [4, 44, 46, 48, 56]);
        assert_eq!(of(Tins::Diffserv4, 1), [1, 8]);
        assert_eq!(of(Tins::Diffserv4, 2), [4, 16, 18, 20, 22, 24, 26, 28, 30, 34, 36, 38]);
        assert_eq!(of(Tins::Diffserv4, 3), [32, 40, 44, 46, 48, 56]);
        assert_eq!(of(Tins::Diffserv8, 0), [1]);
        assert_eq!(of(Tins::Diffserv8, 1), [2, 8, 10, 12, 14]);
        assert_eq!(of(Tins::Diffserv8, 3), [24, 26, 28, 30, 34, 36, 38]);
        assert_eq!(of(Tins::Diffserv8, 4), [4, 18, 20, 22]);
        assert_eq!(of(Tins::Diffserv8, 5), [16]);
        assert_eq!(of(Tins::Diffserv8, 6), [32, 40, 44, 46]);
        assert_eq!(of(Tins::Diffserv8, 7), [48, 56]);
        assert!((0..64).all(|dscp| Tins::Precedence.of(dscp) == dscp / 8 && Tins::BestEffort.of(dscp) == 0));
    }

    /// tc-cake(8): bulk has 6.25 %, video 50 % and voice 25 %. 7/8 of 256 are 224, 196, 171 (.5), 149 (.6), 130 (.4),
    /// 113 (.75), 98 (.9).
    #[test]
    fn tins_have_the_shares_of_the_manual() {
        let of = |model: Tins| model.shares(16_000).iter().map(|of| (of.rate, of.quantum)).collect::<Vec<_>>();
        assert_eq!(of(Tins::BestEffort), [(16_000, 65_535)]);
        assert_eq!(of(Tins::Diffserv3), [(16_000, 1024), (1000, 64), (4000, 256)]);
        assert_eq!(of(Tins::Diffserv4), [(16_000, 1024), (1000, 64), (8000, 512), (4000, 256)]);
        let eight = of(Tins::Diffserv8);
        assert_eq!(eight.iter().map(|of| of.1).collect::<Vec<_>>(), [256, 224, 196, 171, 149, 130, 113, 98]);
        assert_eq!(eight.iter().map(|of| of.0).take(4).collect::<Vec<_>>(), [16_000, 14_000, 12_250, 10_718]);
        assert_eq!(of(Tins::Precedence), eight);
    }
}
