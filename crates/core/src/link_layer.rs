//! What a packet takes of a link: the bytes that a modem and its line add to it.
//!
//! Source: tc-cake(8), "Overhead compensation"; `cake_calc_overhead()` of sch_cake.c. ATM: ITU-T I.363.5 (AAL5); PTM: ITU-T
//! G.992.3 annex N, IEEE 802.3 section 61.3.
//!
//! ```text
//! adjusted   max(size + overhead, mpu, 1)
//! on wire    ethernet: adjusted; ATM: 53 B for each 48 B or part of them; PTM: 1 B more for each 64 B or part
//! ```
//!
//! Sizes are those of IP packets. DIFFERENCE: a packet takes at least one byte. The kernel lets an overhead of -64 B make a
//! packet of 20 B one of 2^32 - 44 B. Pinned by `a_packet_takes_at_least_a_byte`.

use crate::suggest::unknown_name;
use crate::units::{Bytes, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The size of the packet by which a rate is that of packets: [`LinkLayer::of_packets`].
const USUAL: Bytes = Bytes::new(1500);

/// The framing of a link, which cells or code words make larger than packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Framing {
    /// Packets have their own size (tc: noatm). "ethernet" says the same.
    #[default]
    #[serde(alias = "ethernet")]
    None,
    /// Cells of 53 B with 48 B of payload, as in ADSL (tc: atm).
    Atm,
    /// 65 B for 64 B, as in VDSL2 (tc: ptm).
    Ptm,
}

impl FromStr for Framing {
    /// What is wrong and what is allowed.
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "ethernet" | "none" => Ok(Self::None),
            "ptm" => Ok(Self::Ptm),
            "atm" => Ok(Self::Atm),
            _ => Err(unknown_name("framing", text, &["ethernet", "ptm", "atm"])),
        }
    }
}

impl fmt::Display for Framing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "ethernet",
            Self::Atm => "atm",
            Self::Ptm => "ptm",
        })
    }
}

/// What a link adds to each packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkLayer {
    /// Bytes that are added to the size of each IP packet; may be negative.
    pub overhead: i32,
    /// The least size of a packet with its overhead, in bytes.
    pub mpu: u32,
    /// What cells or code words make of that.
    pub framing: Framing,
}

/// The presets of tc-cake(8): name, overhead, mpu and framing.
const PRESETS: [(&str, i32, u32, Framing); 13] = [
    ("conservative", 48, 0, Framing::Atm),
    ("ipoa-vcmux", 8, 0, Framing::Atm),
    ("ipoa-llcsnap", 16, 0, Framing::Atm),
    ("bridged-vcmux", 24, 0, Framing::Atm),
    ("bridged-llcsnap", 32, 0, Framing::Atm),
    ("pppoa-vcmux", 10, 0, Framing::Atm),
    ("pppoa-llc", 14, 0, Framing::Atm),
    ("pppoe-vcmux", 32, 0, Framing::Atm),
    ("pppoe-llcsnap", 40, 0, Framing::Atm),
    ("pppoe-ptm", 30, 0, Framing::Ptm),
    ("bridged-ptm", 22, 0, Framing::Ptm),
    ("docsis", 18, 64, Framing::None),
    ("ethernet", 38, 84, Framing::None),
];

impl fmt::Display for LinkLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "overhead {} B, mpu {} B, {}", self.overhead, self.mpu, self.framing)
    }
}

impl LinkLayer {
    /// Returns the preset of tc-cake(8) with this name.
    pub fn preset(name: &str) -> Option<Self> {
        let (_, overhead, mpu, framing) = PRESETS.into_iter().find(|(preset, ..)| *preset == name)?;
        Some(Self { overhead, mpu, framing })
    }

    /// Iterates over the names of the presets.
    pub fn presets() -> impl Iterator<Item = &'static str> {
        PRESETS.into_iter().map(|(name, ..)| name)
    }

    /// Returns the key whose value is not allowed, and what is; the limits are those of tc-cake(8).
    pub fn mistake(&self) -> Option<(&'static str, &'static str)> {
        if !(-64..=256).contains(&self.overhead) {
            return Some(("overhead", "must be within -64 and 256 (bytes)"));
        }
        (self.mpu > 256).then_some(("mpu", "must be at most 256 (bytes)"))
    }

    /// Returns true if packets take their own size.
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }

    /// Returns what a packet of `size` takes of the link.
    #[inline]
    pub fn on_wire(&self, size: Bytes) -> Bytes {
        let size = i64::try_from(size.get()).unwrap_or(i64::MAX).saturating_add(self.overhead.into());
        let size = size.max(self.mpu.into()).max(1).unsigned_abs();
        Bytes::new(match self.framing {
            Framing::None => size,
            Framing::Atm => size.div_ceil(48) * 53,
            Framing::Ptm => size + size.div_ceil(64),
        })
    }

    /// Returns the rate at which packets of 1500 B pass a link of `rate`, in bits of packets: what disciplines are told, which
    /// reckon with the sizes of packets.
    pub fn of_packets(&self, rate: Rate) -> Rate {
        if self.is_plain() {
            return rate;
        }
        let bits = u128::from(rate.as_bps()) * u128::from(USUAL.get()) / u128::from(self.on_wire(USUAL).get());
        Rate::from_bps(u64::try_from(bits).unwrap_or(u64::MAX).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(size: u64, overhead: i32, mpu: u32, framing: Framing) -> u64 {
        LinkLayer { overhead, mpu, framing }.on_wire(Bytes::new(size)).get()
    }

    /// 1500 B and 32 B of PPPoE over ATM: 32 cells of 48 B are 1536 B, so 32 cells of 53 B. An ACK of 40 B and 44 B
    /// more takes two cells. VDSL2 with 1500 + 22 B: 24 blocks of 64 B. An `mpu` of 84 B is what Ethernet has.
    #[test]
    fn packets_take_what_the_link_below_takes() {
        assert_eq!(of(1500, 32, 0, Framing::Atm), 1696);
        assert_eq!(of(1505, 32, 0, Framing::Atm), 33 * 53);
        assert_eq!((of(40, 44, 0, Framing::Atm), of(1500, 44, 0, Framing::Atm)), (106, 1749));
        assert_eq!((of(4, 44, 0, Framing::Atm), of(5, 44, 0, Framing::Atm)), (53, 106));
        assert_eq!(of(1500, 22, 0, Framing::Ptm), 1522 + 24);
        assert_eq!((of(64, 0, 0, Framing::Ptm), of(65, 0, 0, Framing::Ptm)), (65, 67));
        assert_eq!((of(40, 38, 84, Framing::None), of(1500, 38, 84, Framing::None)), (84, 1538));
        assert_eq!(of(40, -14, 0, Framing::None), 26);
    }

    #[test]
    fn a_packet_takes_at_least_a_byte() {
        assert_eq!((of(20, -64, 0, Framing::None), of(0, 0, 0, Framing::Atm)), (1, 53));
        assert_eq!(of(u64::MAX, 256, 0, Framing::None), i64::MAX.unsigned_abs());
    }

    /// The sums of tc-cake(8) for a packet of 1500 B, by hand: cells of ADSL, blocks of VDSL2, cable, Ethernet.
    #[test]
    fn presets_are_those_of_the_manual() {
        let of = |name: &str| LinkLayer::preset(name).unwrap().on_wire(Bytes::new(1500)).get();
        assert_eq!((of("conservative"), of("pppoa-vcmux"), of("pppoe-llcsnap")), (33 * 53, 32 * 53, 33 * 53));
        assert_eq!((of("pppoe-ptm"), of("bridged-ptm")), (1530 + 24, 1522 + 24));
        assert_eq!((of("docsis"), of("ethernet")), (1518, 1538));
        assert_eq!(LinkLayer::preset("docsis").unwrap().on_wire(Bytes::new(40)).get(), 64);
        assert_eq!((LinkLayer::preset("raw"), LinkLayer::presets().count()), (None, 13));
    }

    #[test]
    fn disciplines_are_told_the_rate_at_which_packets_pass() {
        let atm = LinkLayer { overhead: 44, mpu: 0, framing: Framing::Atm };
        // 1500 of 1749 B.
        assert_eq!(atm.of_packets(Rate::from_bps(17_490_000)), Rate::from_bps(15_000_000));
        assert_eq!(LinkLayer::default().of_packets(Rate::from_bps(7)), Rate::from_bps(7));
        assert_eq!(atm.of_packets(Rate::from_bps(1)), Rate::from_bps(1), "a rate is never zero");
    }
}
