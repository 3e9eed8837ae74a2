//! Hardware addresses of subscribers, and who has which IP address at present.
//!
//! A frame of Ethernet tells the hardware address of a host on the same segment. A packet away from the subscribers has
//! it at every data path. One toward them has it on a bridge only; elsewhere the address is that which sent from the same
//! IP address last. What was learned is forgotten an hour after the last packet from there, and at once when the IP address
//! is used by an interface that belongs to nobody. All of it has a fixed size: when it is full, the address goes that
//! was silent for longest among sixteen, and is learned again with its next packet.

use crate::SipHash;
use crate::mac::Mac;
use crate::segment::Arrived;
use crate::sets::Sets;
use penstock_core::units::{Instant, Span};
use std::net::IpAddr;

/// Number of IP addresses whose hardware address is known.
const KNOWN: u32 = 16_384;
/// An IP address is forgotten when nothing came from it for so long.
const AGE: Span = Span::from_secs(3600);

/// The hardware addresses of subscribers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hardware {
    /// Hardware addresses with the numbers of their subscribers, in order.
    owners: Vec<(u64, u32)>,
    /// The hardware address that used an IP address last; `None` as long as no subscriber had one.
    learned: Option<Sets<u64>>,
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
    pub fn of(&mut self, packet: &Arrived, hash: SipHash, now: Instant) -> Option<u32> {
        if self.owners.is_empty() || packet.host.is_none() {
            return None;
        }
        let address = packet.address()?;
        let Some(mac) = packet.hardware.map(Mac::bits) else { return self.owner_at(address, hash, now) };
        let owner = self.owner(mac);
        if packet.outward {
            self.learn(hash_of(address, hash), mac, owner.is_some(), now);
        }
        owner
    }

    /// Returns the number of the subscriber whose interface has used this IP address last.
    pub fn owner_at(&self, address: IpAddr, hash: SipHash, now: Instant) -> Option<u32> {
        let learned = self.learned.as_ref()?;
        let at = learned.find(hash_of(address, hash)).filter(|at| !learned.is_over(*at, AGE, now))?;
        self.owner(*learned.line(at))
    }

    /// An IP address is used by this interface, which is a subscriber's or nobody's.
    fn learn(&mut self, hash: u64, mac: u64, owned: bool, now: Instant) {
        let Some(learned) = &mut self.learned else { return };
        if let Some(before) = learned.find(hash) {
            learned.take(before);
        }
        if owned && let Some(at) = learned.room(hash, now, |_| true) {
            learned.put(at, hash, mac, now);
        }
    }
}

/// The numbers of bytes that are hashed tell the versions apart.
fn hash_of(address: IpAddr, hash: SipHash) -> u64 {
    match address {
        IpAddr::V4(v4) => hash.of(&v4.octets()),
        IpAddr::V6(v6) => hash.of(&v6.octets()),
    }
}
