//! Who a packet belongs to: a named set of prefixes and hardware addresses, else a host of its own.
//!
//! The hardware address of the frame decides first ([`crate::hardware`]). A host is an IPv4 address or a /64 of IPv6
//! ([`HostKey`]). The longest prefix that contains it decides. Hosts without a name get numbers of a table of fixed size:
//! a new host takes a free number, or that of the host which was silent for longest and holds no entry of the connection
//! table. So a newcomer always has a number of its own, however many forged addresses came before it.
//!
//! Numbers: 0 is for what belongs to nobody (packets that are not IP, and hosts for which all eight or sixteen places are
//! held by hosts with connections); then the named ones in their order; then the others. Names that come later
//! (`Subscribers::rename`) get numbers after all these. A name keeps its number, also if it goes and comes again.

use crate::SipHash;
use crate::hardware::Hardware;
use crate::mac::Mac;
use crate::segment::Arrived;
use crate::sets::Sets;
use penstock_core::packet::NodeId;
use penstock_core::units::Instant;
use penstock_core::wire::HostKey;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// The number of whatever has no number of its own.
pub const STRANGERS: NodeId = NodeId(0);

/// A text or a number of bits that is no prefix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no prefix of a subscriber; write 10.1.0.0/16 (up to /32), 2001:db8:1::/48 (up to /64, which is a host) or the \
     hardware address of one interface, 02:00:5e:00:53:01"
)]
pub struct PrefixError(String);

/// What the bits of a prefix are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    V4,
    /// The first 64 bits of an address.
    V6,
    Hardware,
}

impl Kind {
    /// Length of an address in bits.
    fn width(self) -> u8 {
        match self {
            Self::V4 => 32,
            Self::V6 => 64,
            Self::Hardware => 48,
        }
    }
}

/// A prefix of IPv4 up to /32, one of IPv6 up to /64, or a hardware address. They are ordered so that each stands directly
/// before those which it contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Deserialize)]
#[serde(try_from = "String")]
pub struct Prefix {
    kind: Kind,
    bits: u64,
    length: u8,
}

impl std::str::FromStr for Prefix {
    type Err = PrefixError;

    /// Reads `10.1.0.0/16`, `2001:db8::/32`, an address alone, which is a host, or a hardware address.
    fn from_str(text: &str) -> Result<Self, PrefixError> {
        if let Some(mac) = Mac::read(text) {
            return Ok(Self { kind: Kind::Hardware, bits: mac.bits(), length: Kind::Hardware.width() });
        }
        let parse = || {
            let (address, length) = text.split_once('/').unzip();
            let (kind, bits) = match address.unwrap_or(text).parse().ok()? {
                IpAddr::V4(v4) => (Kind::V4, v4.to_bits().into()),
                IpAddr::V6(v6) => (Kind::V6, (v6.to_bits() >> 64) as u64),
            };
            let length = length.map_or(Ok(kind.width()), str::parse).ok()?;
            let prefix = Self { kind, bits, length };
            (length <= kind.width() && bits & !prefix.mask() == 0).then_some(prefix)
        };
        parse().ok_or_else(|| PrefixError(text.to_owned()))
    }
}

impl TryFrom<String> for Prefix {
    type Error = PrefixError;

    fn try_from(text: String) -> Result<Self, PrefixError> {
        text.parse()
    }
}

impl From<HostKey> for Prefix {
    fn from(host: HostKey) -> Self {
        let kind = if host.is_v6() { Kind::V6 } else { Kind::V4 };
        Self { kind, bits: host.bits(), length: kind.width() }
    }
}

impl Prefix {
    fn mask(self) -> u64 {
        let width = u32::from(self.kind.width());
        let all = u64::MAX >> (64 - width);
        if self.length == 0 { 0 } else { all << (width - u32::from(self.length)) & all }
    }

    /// True if every address of `other` is one of this prefix.
    pub fn contains(self, other: Self) -> bool {
        self.kind == other.kind && self.length <= other.length && other.bits & self.mask() == self.bits
    }

    /// True for a hardware address.
    pub fn is_hardware(self) -> bool {
        self.kind == Kind::Hardware
    }
}

/// A subscriber with a name: all its addresses count as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// Its name.
    pub name: String,
    /// Its prefixes and hardware addresses.
    pub prefixes: Vec<Prefix>,
}

/// A host, whose place has its number.
#[derive(Debug, Clone, Default)]
struct Host {
    /// The number of the named subscriber that contains the host; 0 if none does.
    named: u32,
    /// The number of changes of names before that was looked up.
    changes: u32,
}

/// Returns the place of the longest prefix around each of these, which are in order.
fn around(prefixes: &[(Prefix, u32)]) -> Vec<Option<usize>> {
    let mut around: Vec<Option<usize>> = Vec::with_capacity(prefixes.len());
    for (at, (prefix, _)) in prefixes.iter().enumerate() {
        let outwards = std::iter::successors(at.checked_sub(1), |before| around[*before]);
        around.push(outwards.into_iter().find(|before| prefixes[*before].0.contains(*prefix)));
    }
    around
}

/// The numbers of subscribers, and how many entries of the connection table each has.
#[derive(Debug, Clone)]
pub struct Subscribers {
    hash: SipHash,
    hosts: Sets<Host>,
    /// All names that there were, in the order of their numbers.
    names: Vec<String>,
    /// Their places.
    places: BTreeMap<String, usize>,
    /// Prefixes with the numbers of their subscribers, in order.
    prefixes: Vec<(Prefix, u32)>,
    /// The place of the longest other prefix around each of them.
    around: Vec<Option<usize>>,
    hardware: Hardware,
    /// How many names there were at the start.
    named: u32,
    /// How often names have changed.
    changes: u32,
    entries: Vec<u32>,
}

impl Subscribers {
    pub(crate) fn new(hash: SipHash, hosts: u32, names: &[Named]) -> Self {
        let hosts = Sets::new(hosts);
        let mut all = Self {
            hash,
            named: names.len() as u32,
            entries: vec![0; 1 + hosts.capacity() as usize],
            hosts,
            names: Vec::new(),
            places: BTreeMap::new(),
            prefixes: Vec::new(),
            around: Vec::new(),
            hardware: Hardware::default(),
            changes: 0,
        };
        all.rename(names);
        all.changes = 0;
        all
    }

    /// From now on these are the subscribers with names. A name that was there before keeps its number. Hosts are looked up
    /// anew with their next packets.
    pub fn rename(&mut self, names: &[Named]) {
        for Named { name, .. } in names {
            if !self.places.contains_key(name) {
                self.places.insert(name.clone(), self.names.len());
                self.names.push(name.clone());
                self.entries.push(0);
            }
        }
        self.prefixes = self.prefixes_of(names);
        self.around = around(&self.prefixes);
        let hardware = self.prefixes.iter().filter(|(prefix, _)| prefix.is_hardware());
        self.hardware.set(hardware.map(|(prefix, number)| (prefix.bits, *number)).collect());
        self.changes += 1;
    }

    fn prefixes_of(&self, names: &[Named]) -> Vec<(Prefix, u32)> {
        let number = |name: &str| self.number_of(name).unwrap_or(STRANGERS).0;
        let of = |named: &Named| (number(&named.name), named.prefixes.clone());
        let all = names.iter().map(of).flat_map(|(number, own)| own.into_iter().map(move |prefix| (prefix, number)));
        let mut prefixes: Vec<_> = all.collect();
        prefixes.sort_by_key(|(prefix, _)| *prefix);
        prefixes
    }

    /// Returns whether these are the subscribers with names.
    pub fn are(&self, names: &[Named]) -> bool {
        self.prefixes_of(names) == self.prefixes
    }

    /// True if names have changed since the start.
    pub(crate) fn is_renamed(&self) -> bool {
        self.changes > 0
    }

    fn number_of_name(&self, place: usize) -> u32 {
        let place = place as u32;
        1 + place + if place < self.named { 0 } else { self.hosts.capacity() }
    }

    /// Returns the number of the subscriber with this name; `None` if there never was one.
    pub fn number_of(&self, name: &str) -> Option<NodeId> {
        Some(NodeId(self.number_of_name(*self.places.get(name)?)))
    }

    /// Returns how many names there were since the start.
    pub fn names(&self) -> usize {
        self.names.len()
    }

    /// Returns the number of the subscriber to whom the interface belongs which has sent or gets a packet.
    #[inline]
    pub(crate) fn of_hardware(&mut self, packet: &Arrived, now: Instant) -> Option<NodeId> {
        self.hardware.of(packet, self.hash, now).map(NodeId)
    }

    /// Returns the number of the subscriber to which a host belongs, and whether it belonged to another one until now.
    pub fn number(&mut self, host: HostKey, now: Instant) -> (NodeId, bool) {
        let hash = self.hash.of(&host.bytes());
        if let Some(at) = self.hosts.find(hash) {
            self.hosts.touch(at, now);
            let fresh = self.hosts.line(at).changes != self.changes && self.look_up(at, host);
            return (self.number_at(at), fresh);
        }
        let (named, own) = (self.named(host), self.own_numbers());
        let Some(at) = self.hosts.room(hash, now, |at| self.entries[own + at] == 0) else {
            return (NodeId(named), false);
        };
        self.hosts.put(at, hash, Host { named, changes: self.changes }, now);
        (self.number_at(at), named == 0)
    }

    /// Looks up the name of a host anew; returns true if it had one and has none any more, so that its own number was
    /// that of another host.
    fn look_up(&mut self, at: usize, host: HostKey) -> bool {
        let (named, changes) = (self.named(host), self.changes);
        let line = self.hosts.line_mut(at);
        let before = std::mem::replace(&mut line.named, named);
        line.changes = changes;
        before != 0 && named == 0
    }

    /// Returns the number that a host has, without giving it one: that of its name, or its own; `None` for a host without.
    pub fn known(&self, host: HostKey) -> Option<NodeId> {
        match self.named(host) {
            0 => self.hosts.find(self.hash.of(&host.bytes())).map(|at| self.number_at(at)),
            named => Some(NodeId(named)),
        }
    }

    /// Returns the number of the named subscriber that contains a host; 0 if none does.
    fn named(&self, host: HostKey) -> u32 {
        // Whatever stands between a prefix and a host in it is in that prefix too.
        let host = Prefix::from(host);
        let before = self.prefixes.partition_point(|(prefix, _)| *prefix <= host).checked_sub(1);
        let outwards = std::iter::successors(before, |at| self.around[*at]);
        let longest = outwards.map(|at| self.prefixes[at]).find(|(prefix, _)| prefix.contains(host));
        longest.map_or(0, |(_, number)| number)
    }

    /// Returns the name of the subscriber to whom this address belongs now; `None` if it is in no list.
    pub fn name_at(&self, address: IpAddr, now: Instant) -> Option<&str> {
        let number = match self.hardware.owner_at(address, self.hash, now) {
            Some(number) => number,
            None => self.named(HostKey::at(address)?),
        };
        self.name_of(NodeId(number))
    }

    /// Returns the name of the subscriber with this number; `None` for a host without a name.
    pub fn name_of(&self, number: NodeId) -> Option<&str> {
        let place = number.0.checked_sub(1)?;
        let later = || place.checked_sub(self.hosts.capacity()).filter(|at| *at >= self.named);
        let place = if place < self.named { Some(place) } else { later() };
        self.names.get(place? as usize).map(String::as_str)
    }

    fn number_at(&self, at: usize) -> NodeId {
        match self.hosts.line(at).named {
            0 => NodeId((self.own_numbers() + at) as u32),
            named => NodeId(named),
        }
    }

    /// The number of the first place, if its host has no name.
    fn own_numbers(&self) -> usize {
        1 + self.named as usize
    }

    /// Returns how many numbers there are: all but [`NodeId::NOBODY`] are below.
    pub fn numbers(&self) -> usize {
        self.entries.len()
    }

    /// Returns how many entries of the connection table a subscriber has.
    pub fn entries_of(&self, subscriber: NodeId) -> u32 {
        self.entries[subscriber.0 as usize]
    }

    pub(crate) fn gain(&mut self, subscriber: NodeId) {
        self.entries[subscriber.0 as usize] += 1;
    }

    pub(crate) fn lose(&mut self, subscriber: NodeId) {
        self.entries[subscriber.0 as usize] -= 1;
    }
}
