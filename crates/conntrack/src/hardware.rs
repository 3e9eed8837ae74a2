//! Hardware addresses of subscribers, and who has which IP address at present.
//!
//! A frame of Ethernet tells the hardware address of a host on the same segment. A packet away from the subscribers has
//! it at every data path. One toward them has it on a bridge only; elsewhere the address is that which sent from the same
//! IP address last. What was learned is forgotten an hour after the last packet from there, and at once when the IP address
//! is used by an interface that belongs to nobody. All of it has a fixed size: when it is full, the address goes that
//! was silent for longest among sixteen, and is learned again with its next packet.

use crate::SipHash;
use crate::segment::Arrived;
use crate::sets::{Line, Sets, ticks_of};
use penstock_core::units::Span;
use std::net::IpAddr;

/// Number of IP addresses whose hardware address is known.
const KNOWN: u32 = 16_384;
/// An IP address is forgotten when nothing came from it for so long.
const AGE: Span = Span::from_secs(3600);

/// An IP address and the hardware address that used it last.
#[derive(Debug, Clone, Default)]
struct Learned {
    hash: u64,
    mac: u64,
}

impl Line for Learned {
    fn hash(&self) -> u64 {
        self.hash
    }
}

/// The hardware addresses of subscribers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hardware {
    /// Hardware addresses with the numbers of their subscribers, in order.
    owners: Vec<(u64, u32)>,
    /// `None` as long as no subscriber had a hardware address.
    learned: Option<Sets<Learned>>,
}

impl Hardware {
    /// From now on these are the owners of hardware addresses.
    pub fn set(&mut self, mut owners: Vec<(u64, u32)>) {
        owners.sort_unstable();
        if !owners.is_empty() && self.learned.is_none() {
            self.learned = Some(Sets::new(KNOWN));
        }
        self.owners = owners;
    }

    fn owner(&self, mac: u64) -> Option<u32> {
        let at = self.owners.binary_search_by_key(&mac, |(known, _)| *known).ok()?;
        Some(self.owners[at].1)
    }

    /// Returns the number of the subscriber whose interface has sent or gets this packet, and learns from it. `None` if
    /// that is nobody's or not known.
    pub fn of(&mut self, packet: &Arrived, hash: SipHash, now: u32) -> Option<u32> {
        if self.owners.is_empty() || packet.host.is_none() {
            return None;
        }
        let known = packet.hardware.map(|mac| (mac.bits(), self.owner(mac.bits())));
        if let Some((mac, owner)) = known {
            if packet.outward {
                let hash = hash.of(&packet.address()?);
                self.learn(hash, mac, owner.is_some(), now);
            }
            return owner;
        }
        self.learned_owner(hash.of(&packet.address()?), now)
    }

    /// Returns the number of the subscriber whose interface has used this IP address last.
    pub fn owner_at(&self, address: IpAddr, hash: SipHash, now: u32) -> Option<u32> {
        let mut bytes = [0; 17];
        match address {
            IpAddr::V4(v4) => bytes[..4].copy_from_slice(&v4.octets()),
            IpAddr::V6(v6) => bytes[..16].copy_from_slice(&v6.octets()),
        }
        bytes[16] = if address.is_ipv4() { 4 } else { 6 };
        self.learned_owner(hash.of(&bytes), now)
    }

    fn learned_owner(&self, hash: u64, now: u32) -> Option<u32> {
        let learned = self.learned.as_ref()?;
        let at = learned.find(hash)?;
        let fresh = learned.unused(at, now) <= ticks_of(AGE);
        fresh.then(|| self.owner(learned.line(at).mac)).flatten()
    }

    /// An IP address is used by this interface, which is a subscriber's or nobody's.
    fn learn(&mut self, hash: u64, mac: u64, owned: bool, now: u32) {
        let Some(learned) = &mut self.learned else { return };
        match learned.find(hash) {
            Some(at) if owned => {
                learned.line_mut(at).mac = mac;
                learned.touch(at, now);
            }
            Some(at) => {
                learned.take(at);
            }
            None if owned => {
                let full = learned.vacancy(hash).is_none();
                let oldest = full.then(|| learned.rivals(hash).max_by_key(|at| learned.unused(*at, now))).flatten();
                if let Some(oldest) = oldest {
                    learned.take(oldest);
                }
                if let Some(at) = learned.vacancy(hash) {
                    learned.put(at, Learned { hash, mac }, now);
                }
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mac::Mac;
    use crate::sets::ticks;
    use penstock_core::units::Instant;
    use penstock_core::wire::{End, Headers};

    const HASH: SipHash = SipHash(3, 4);

    fn mac(last: u8) -> Mac {
        [2, 0, 0, 0, 0, last].into()
    }

    /// A datagram of a host of a /64 of IPv6, or of 10.0.0.0/24, to a server or from it.
    fn datagram(v6: bool, host: u8, outward: bool, hardware: Option<Mac>) -> Arrived {
        let mut bytes = [0u8; 48];
        let (ours, other) = if outward { (0, 1) } else { (1, 0) };
        if v6 {
            (bytes[0], bytes[5], bytes[6], bytes[45]) = (0x60, 8, 17, 8);
            for (end, last) in [(ours, host), (other, 200)] {
                let at = 8 + 16 * end;
                bytes[at..at + 4].copy_from_slice(&[0x20, 1, 0xd, 0xb8]);
                bytes[at + 7] = if end == ours { 1 } else { 9 };
                bytes[at + 15] = last;
            }
        } else {
            (bytes[0], bytes[3], bytes[9], bytes[25]) = (0x45, 28, 17, 8);
            for (end, address) in [(ours, [10, 0, 0, host]), (other, [192, 0, 2, 1])] {
                bytes[12 + 4 * end..16 + 4 * end].copy_from_slice(&address);
            }
        }
        let bytes = &bytes[..if v6 { 48 } else { 28 }];
        let end = if outward { End::Source } else { End::Destination };
        Arrived { hardware, ..Arrived::read(bytes, &Headers::parse(bytes), end) }
    }

    #[test]
    fn hardware_addresses_are_six_pairs_of_one_interface() {
        assert_eq!(Mac::read("02:00:00:00:00:0A"), Some(mac(10)));
        assert_eq!(Mac::read("02-00-00-00-00-0a"), Some(mac(10)));
        for wrong in ["02:00:00:00:00", "02:00:00:00:00:0a:1", "2:0:0:0:0:a", "02:00-00:00:00:0a", "02:00:00:00:00:0g"]
        {
            assert_eq!(Mac::read(wrong), None, "{wrong}");
        }
        for group in ["01:00:5e:00:00:01", "ff:ff:ff:ff:ff:ff", "00:00:00:00:00:00", "", "+2:00:00:00:00:0a"] {
            assert_eq!(Mac::read(group), None, "{group}");
        }
    }

    /// Two hosts of one /64, and one of IPv4: what comes to each is of whoever sent from there.
    #[test]
    fn an_address_is_of_the_interface_that_used_it_last() {
        let mut hardware = Hardware::default();
        assert_eq!(hardware.of(&datagram(true, 1, true, Some(mac(1))), HASH, 0), None);
        hardware.set(vec![(mac(2).bits(), 8), (mac(1).bits(), 7)]);
        let mut of = |v6, host, outward, mac, s| {
            hardware.of(&datagram(v6, host, outward, mac), HASH, ticks(Instant::ZERO + Span::from_secs(s)))
        };
        assert_eq!(of(true, 1, false, None, 0), None, "nothing came from there");
        for (v6, host, sender, owner) in [(true, 1, 1, 7), (true, 2, 2, 8), (false, 1, 2, 8)] {
            assert_eq!(of(v6, host, true, Some(mac(sender)), 0), Some(owner));
            assert_eq!(of(v6, host, false, None, 1), Some(owner));
        }
        let at = |address: &str| hardware.owner_at(address.parse().unwrap(), HASH, 0);
        assert_eq!((at("2001:db8:0:1::1"), at("10.0.0.1"), at("10.0.0.2")), (Some(7), Some(8), None));
        let mut of = |v6, host, outward, mac, s| {
            hardware.of(&datagram(v6, host, outward, mac), HASH, ticks(Instant::ZERO + Span::from_secs(s)))
        };
        assert_eq!(of(true, 1, false, Some(mac(2)), 1), Some(8), "a bridge tells who gets it");
        assert_eq!(of(true, 1, false, None, 1), Some(7), "and nothing is learned of that");
        assert_eq!((of(true, 1, true, Some(mac(9)), 2), of(true, 1, false, None, 2)), (None, None), "nobody's now");
        assert_eq!((of(true, 2, false, None, 3599), of(true, 2, false, None, 3602)), (Some(8), None), "too long ago");
    }

    #[test]
    fn the_table_is_bounded_and_learns_again() {
        let mut hardware = Hardware::default();
        hardware.set(vec![(mac(1).bits(), 7)]);
        (0..100_000).for_each(|forged| hardware.learn(HASH.of(&u32::to_be_bytes(forged)), 1, true, forged));
        assert!(hardware.learned.as_ref().unwrap().len() <= KNOWN);
        assert_eq!(hardware.of(&datagram(false, 1, true, Some(mac(1))), HASH, 100_000), Some(7));
        assert_eq!(hardware.of(&datagram(false, 1, false, None), HASH, 100_001), Some(7));
    }
}
