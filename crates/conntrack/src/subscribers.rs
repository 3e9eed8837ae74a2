//! Who a packet belongs to: a named set of prefixes and hardware addresses, else a host of its own.
//!
//! The hardware address of the frame decides first ([`crate::hardware`]). A host is an IPv4 address or a /64 of IPv6 ([`HostKey`]). The longest prefix that contains it decides. Hosts without a
//! name get numbers of a table of fixed size: a new host takes a free number, or that of the host which was silent for
//! longest and holds no entry of the connection table. So a newcomer always has a number of its own, however many
//! forged addresses came before it.
//!
//! Numbers: 0 is for what belongs to nobody (packets that are not IP, and hosts for which all eight or sixteen places are
//! held by hosts with connections); then the named ones in their order; then the others. Names that come later
//! (`Subscribers::rename`) get numbers after all these. A name keeps its number, also if it goes and comes again.

use crate::SipHash;
use crate::hardware::Hardware;
use crate::mac::Mac;
use crate::segment::Arrived;
use crate::sets::{Line, Sets};
use penstock_core::packet::NodeId;
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
    fn of(host: HostKey) -> Self {
        if host.is_v6() { Self::V6 } else { Self::V4 }
    }

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
            let (address, length) = match text.split_once('/') {
                Some((address, length)) => (address, Some(length.parse::<u8>().ok()?)),
                None => (text, None),
            };
            let (kind, bits) = match address.parse().ok()? {
                IpAddr::V4(v4) => (Kind::V4, v4.to_bits().into()),
                IpAddr::V6(v6) => (Kind::V6, (v6.to_bits() >> 64) as u64),
            };
            let length = length.unwrap_or(kind.width());
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

impl Prefix {
    fn mask(self) -> u64 {
        let width = u32::from(self.kind.width());
        let all = u64::MAX >> (64 - width);
        if self.length == 0 { 0 } else { all << (width - u32::from(self.length)) & all }
    }

    fn has(self, host: HostKey) -> bool {
        self.kind == Kind::of(host) && host.bits() & self.mask() == self.bits
    }

    /// True if it stands before a host in the order of prefixes, or has the same bits.
    fn is_before(self, host: HostKey) -> bool {
        (self.kind, self.bits) <= (Kind::of(host), host.bits())
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

/// A host with its number.
#[derive(Debug, Clone, Default)]
struct Host {
    hash: u64,
    /// The number of the named subscriber that contains the host; 0 if none does.
    named: u32,
    /// The number of changes of names before that was looked up.
    changes: u32,
}

impl Line for Host {
    fn hash(&self) -> u64 {
        self.hash
    }
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
pub(crate) struct Subscribers {
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
    pub fn new(hash: SipHash, hosts: u32, names: &[Named]) -> Self {
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

    /// From now on these are the subscribers with names. Hosts are looked up anew with their next packets.
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
    pub fn is_renamed(&self) -> bool {
        self.changes > 0
    }

    fn number_of_name(&self, place: usize) -> u32 {
        let place = place as u32;
        1 + place + if place < self.named { 0 } else { self.hosts.capacity() }
    }

    /// Returns the number of a subscriber with this name.
    pub fn number_of(&self, name: &str) -> Option<NodeId> {
        Some(NodeId(self.number_of_name(*self.places.get(name)?)))
    }

    /// Returns how many names there were.
    pub fn names(&self) -> usize {
        self.names.len()
    }

    /// Returns the number of the subscriber to whom the interface belongs which has sent or gets a packet.
    #[inline]
    pub fn of_hardware(&mut self, packet: &Arrived, now: u32) -> Option<NodeId> {
        self.hardware.of(packet, self.hash, now).map(NodeId)
    }

    /// Returns the number of a host, and whether it belonged to another host until now.
    pub fn number(&mut self, host: HostKey, now: u32) -> (NodeId, bool) {
        let hash = self.hash.of(&host.bytes());
        if let Some(at) = self.hosts.find(hash) {
            self.hosts.touch(at, now);
            let fresh = self.hosts.line(at).changes != self.changes && self.look_up(at, host);
            return (self.number_at(at), fresh);
        }
        let named = self.named(host);
        let Some(at) = self.hosts.vacancy(hash).or_else(|| self.vacate(hash, now)) else {
            return (if named == 0 { STRANGERS } else { NodeId(named) }, false);
        };
        self.hosts.put(at, Host { hash, named, changes: self.changes }, now);
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

    /// Returns the number that a host has, without giving it one: that of its name, or its own.
    pub fn known(&self, host: HostKey) -> Option<NodeId> {
        match self.named(host) {
            0 => self.hosts.find(self.hash.of(&host.bytes())).map(|at| self.number_at(at)),
            named => Some(NodeId(named)),
        }
    }

    /// Returns the number of the named subscriber that contains a host; 0 if none does.
    fn named(&self, host: HostKey) -> u32 {
        // Whatever stands between a prefix and a host in it is in that prefix too.
        let before = self.prefixes.partition_point(|(prefix, _)| prefix.is_before(host)).checked_sub(1);
        let outwards = std::iter::successors(before, |at| self.around[*at]);
        let longest = outwards.map(|at| self.prefixes[at]).find(|(prefix, _)| prefix.has(host));
        longest.map_or(0, |(_, number)| number)
    }

    /// Returns the name of the subscriber to whom this address belongs now.
    pub fn name_at(&self, address: IpAddr, now: u32) -> Option<&str> {
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
            0 => self.own_number(at),
            named => NodeId(named),
        }
    }

    /// The number of a place, which is that of its host if this has no name.
    fn own_number(&self, at: usize) -> NodeId {
        NodeId(1 + self.named + at as u32)
    }

    /// Frees the place of the host that was silent for longest, of those without entries.
    fn vacate(&mut self, hash: u64, now: u32) -> Option<usize> {
        let holds = |at: usize| self.entries_of(self.own_number(at)) > 0;
        let free = self.hosts.rivals(hash).filter(|at| !holds(*at));
        let at = free.reduce(
            |oldest, at| if self.hosts.unused(at, now) > self.hosts.unused(oldest, now) { at } else { oldest },
        )?;
        self.hosts.take(at);
        Some(at)
    }

    /// Returns how many numbers there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns how many entries of the connection table a subscriber has.
    pub fn entries_of(&self, subscriber: NodeId) -> u32 {
        self.entries[subscriber.0 as usize]
    }

    pub fn gain(&mut self, subscriber: NodeId) {
        self.entries[subscriber.0 as usize] += 1;
    }

    pub fn lose(&mut self, subscriber: NodeId) {
        self.entries[subscriber.0 as usize] -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: SipHash = SipHash(1, 2);

    fn host(address: &str) -> HostKey {
        HostKey::at(address.parse().unwrap()).unwrap()
    }

    fn named(name: &str, prefixes: &[&str]) -> Named {
        Named { name: name.into(), prefixes: prefixes.iter().map(|prefix| prefix.parse().unwrap()).collect() }
    }

    #[test]
    fn a_prefix_has_no_bits_behind_its_length_and_is_no_longer_than_a_host() {
        for right in
            ["0.0.0.0/0", "10.0.0.0/8", "10.0.0.1", "10.0.0.1/32", "::/0", "2001:db8::/32", "2001:db8:0:1::/64"]
        {
            assert!(right.parse::<Prefix>().is_ok(), "{right}");
        }
        for wrong in
            ["10.0.0.1/8", "10.0.0.0/33", "2001:db8::/65", "2001:db8::1:0:0:0:0/32", "10.0.0.0/-1", "x/8", "", "/"]
        {
            let message = wrong.parse::<Prefix>().unwrap_err().to_string();
            assert!(message.contains("10.1.0.0/16") && message.contains(wrong), "{message}");
        }
    }

    #[test]
    fn the_longest_prefix_decides_and_all_of_a_name_is_one() {
        let names =
            [named("all", &["0.0.0.0/0", "2001:db8::/32"]), named("some", &["10.1.0.0/16", "2001:db8:0:8::/61"])];
        let mut subscribers = Subscribers::new(HASH, 16, &names);
        let mut number = |address: &str| subscribers.number(host(address), 0);
        for (address, expected) in
            [("10.1.2.3", 2), ("10.2.0.0", 1), ("2001:db8:0:f::1", 2), ("2001:db8:0:10::1", 1), ("10.1.2.3", 2)]
        {
            assert_eq!(number(address), (NodeId(expected), false), "{address}");
        }
        let (alone, fresh) = number("2001:db9::1");
        assert!(alone.0 > 2 && fresh);
        assert_eq!(number("2001:db9::ffff"), (alone, false), "its /64");
        let known = |address: &str| subscribers.known(host(address));
        assert_eq!((known("10.1.9.9"), known("2001:db9::2")), (Some(NodeId(2)), Some(alone)));
        assert_eq!((known("2001:db9:1::"), known("2001:db9:1::")), (None, None), "no number is given");
    }

    /// A name keeps its number, a new one has one that nobody had, and hosts follow with their next packets.
    #[test]
    fn names_come_and_go_and_numbers_stay() {
        let mut subscribers = Subscribers::new(HASH, 16, &[named("a", &["10.1.0.0/16"]), named("b", &["10.2.0.0/16"])]);
        let at = |subscribers: &mut Subscribers, address: &str| subscribers.number(host(address), 0);
        let (alone, _) = at(&mut subscribers, "10.3.0.1");
        assert_eq!((at(&mut subscribers, "10.1.0.1").0, at(&mut subscribers, "10.2.0.1").0), (NodeId(1), NodeId(2)));
        subscribers.rename(&[named("c", &["10.3.0.0/16"]), named("b", &["10.2.0.0/16", "10.1.0.1/32"])]);
        let (new, fresh) = at(&mut subscribers, "10.3.0.1");
        assert!(new == NodeId(1 + 2 + 16) && !fresh && new != alone, "{new:?}");
        assert_eq!(subscribers.number_of("c"), Some(new));
        let names = [0, 1, 2, 3, 18, 19, 20, u32::MAX].map(|number| subscribers.name_of(NodeId(number)));
        assert_eq!(names, [None, Some("a"), Some("b"), None, None, Some("c"), None, None]);
        assert_eq!(at(&mut subscribers, "10.1.0.1"), (NodeId(2), false));
        let (freed, fresh) = at(&mut subscribers, "10.1.0.2");
        assert!(fresh && (3..19).contains(&freed.0), "a host of its own: {freed:?}");
        subscribers.rename(&[named("a", &["10.1.0.0/16"])]);
        assert_eq!(at(&mut subscribers, "10.1.0.2"), (NodeId(1), false));
        let (own, fresh) = at(&mut subscribers, "10.2.0.1");
        assert!(fresh && own.0 > 2, "it had a name, and now a number that may have been another's: {own:?}");
        assert_eq!((subscribers.names(), subscribers.len()), (3, 1 + 3 + 16));
    }

    #[test]
    fn a_host_with_entries_keeps_its_number_and_the_others_pass_theirs_on() {
        let mut subscribers = Subscribers::new(HASH, 8, &[]);
        let (honest, _) = subscribers.number(host("10.0.0.1"), 0);
        subscribers.gain(honest);
        let mut numbers: Vec<_> = (0..1000u32)
            .map(|forged| subscribers.number(HostKey::at((0x0b00_0000 + forged).to_be_bytes().into()).unwrap(), forged))
            .collect();
        assert!(numbers.iter().all(|(number, fresh)| *fresh && *number != honest && *number != STRANGERS));
        numbers.sort();
        numbers.dedup();
        assert_eq!(numbers.len(), 7, "the other places");
        assert_eq!(subscribers.number(host("10.0.0.1"), 2000), (honest, false));
        (0..8).for_each(|place| subscribers.gain(NodeId(1 + place)));
        assert_eq!(subscribers.number(host("10.0.0.9"), 2000), (STRANGERS, false), "all places are held");
    }

    /// Eight places, and each host speaks at a time of its own. A newcomer gets the place of the host which has been silent for
    /// longest, wherever that place is, also after the count of ticks has begun again from 0.
    #[test]
    fn a_full_table_takes_the_place_of_the_host_that_was_silent_for_longest() {
        for start in [0, u32::MAX - 40] {
            let now = |ticks: u32| start.wrapping_add(ticks);
            for silent in 0..8u32 {
                let mut subscribers = Subscribers::new(HASH, 8, &[]);
                let at = |n: u32| host(&format!("10.0.0.{}", n + 1));
                let numbers: Vec<_> = (0..8).map(|n| subscribers.number(at(n), now(n)).0).collect();
                for (turn, n) in (0..8).filter(|n| *n != silent).enumerate() {
                    assert_eq!(subscribers.number(at(n), now(20 + turn as u32)), (numbers[n as usize], false));
                }
                let (newcomer, fresh) = subscribers.number(at(100), now(60));
                assert_eq!((newcomer, fresh), (numbers[silent as usize], true), "{silent}");
                assert_eq!(subscribers.known(at(silent)), None);
                let others = (0..8).filter(|n| *n != silent);
                assert!(others.clone().all(|n| subscribers.known(at(n)) == Some(numbers[n as usize])));
            }
        }
    }

    /// The host that was silent for longest has a connection, so the next one goes.
    #[test]
    fn a_silent_host_with_a_connection_stays_and_the_next_silent_one_goes() {
        let mut subscribers = Subscribers::new(HASH, 8, &[]);
        let at = |n: u32| host(&format!("10.0.0.{}", n + 1));
        let numbers: Vec<_> = (0..8).map(|n| subscribers.number(at(n), 10 * n).0).collect();
        subscribers.gain(numbers[0]);
        assert_eq!(subscribers.number(at(100), 100), (numbers[1], true));
        subscribers.lose(numbers[0]);
        assert_eq!(subscribers.number(at(101), 101), (numbers[0], true));
    }
}
