//! A queue of the kernel before a wire (`--through`). Packets go into a namespace, whose kernel forwards them through an
//! interface with any discipline of `tc`, and come back when that discipline lets them go.
//!
//! The kernel gets a copy, whose identification (RFC 791 §3.1) is the number of the place where the packet itself waits. So
//! a packet that comes back is found at once, and how long it was away is known. Disciplines keep the order of a connection:
//! when a packet comes back, those of its connection that went before it were dropped.

use crate::carried::Carried;
use crate::error::Error;
use penstock_core::packet::{Ecn, Packet};
use penstock_core::qdisc::DropReason;
use penstock_core::units::Instant;
use penstock_core::wire::{FlowKey, IpVersion};
use penstock_linux::links::LinkWatch;
use penstock_linux::netns::Namespace;
use penstock_linux::tun::{self, Cidr, Tun};
use penstock_shaper::report::Lent;
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// Names of the two interfaces in the namespace: packets come out of the first, and are to be routed into the second.
pub const INTERFACES: [&str; 2] = ["in", "out"];
/// Their addresses, which no host has (TEST-NET-1, RFC 5737).
const ADDRESSES: [[u8; 4]; 2] = [[192, 0, 2, 1], [192, 0, 2, 2]];
/// As many packets are told apart as an identification has values.
const PLACES: usize = 1 << 16;
/// Time to live of a copy, which is forwarded once.
const TTL: u8 = 64;
/// Positions in the header of IPv4.
const ID: usize = 4;
const TIME: usize = 8;
const SUM: usize = 10;

/// The settings of a queue of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The namespace in which the kernel forwards packets from [`INTERFACES`]'s first to its second.
    pub netns: String,
    /// How its discipline drops, which the kernel does not tell of each packet.
    pub drops: DropReason,
}

/// A packet whose copy is in the kernel.
#[derive(Debug, Clone)]
pub struct Loan {
    /// The packet.
    pub packet: Carried,
    /// When it went.
    pub since: Instant,
    key: FlowKey,
    number: u64,
    /// The packet of the same connection that went before.
    before: Option<u64>,
}

/// The packets whose copies are in the kernel.
#[derive(Debug)]
pub struct Loans {
    places: Box<[Option<Loan>]>,
    newest: HashMap<FlowKey, u64>,
    next: u64,
    counters: Lent,
}

impl Default for Loans {
    fn default() -> Self {
        let places = (0..PLACES).map(|_| None).collect();
        Self { places, newest: HashMap::new(), next: 0, counters: Lent::default() }
    }
}

impl Loans {
    /// Keeps a packet, and writes the copy for the kernel into `copy`. Adds to `lost` the packet that went `PLACES` packets
    /// ago, if nothing was heard of it since. Returns the packet if it is not lent, since it is not of IPv4.
    pub fn lend(&mut self, packet: Carried, now: Instant, copy: &mut Vec<u8>, lost: &mut Vec<Loan>) -> Option<Carried> {
        let Some(key) = FlowKey::of(packet.bytes(), packet.packet().headers()) else { return Some(packet) };
        if packet.packet().headers().version != IpVersion::V4 {
            return Some(packet);
        }
        let (number, size) = (self.next, packet.size());
        self.next += 1;
        if let Some(mut old) = self.take(number) {
            old.since = now; // when it was dropped is not known: it counts as a packet that did not wait
            if self.newest.get(&old.key) == Some(&old.number) {
                self.newest.remove(&old.key);
            }
            self.counters.dropped.add(old.packet.size());
            lost.push(old);
        }
        copy.clear();
        copy.extend_from_slice(&packet.bytes()[..size.get() as usize]);
        rewrite(copy, number as u16);
        let before = self.newest.insert(key, number);
        self.counters.lent.add(size);
        self.places[place(number)] = Some(Loan { packet, since: now, key, number, before });
        None
    }

    /// Returns the packet whose copy these bytes are, with the mark that the copy got. Adds those of its connection that went
    /// before it to `lost`, the latest first. Returns `None` if they are no copy of a packet that is away.
    pub fn take_back(&mut self, bytes: &[u8], lost: &mut Vec<Loan>) -> Option<Loan> {
        let Some(mut loan) = self.matching(bytes) else {
            self.counters.strange += 1;
            return None;
        };
        self.counters.returned.add(loan.packet.size());
        if Ecn::from_bits(bytes[1]) == Ecn::Ce && loan.packet.ecn() != Ecn::Ce {
            loan.packet.mark_ce();
            self.counters.marked += 1;
        }
        if self.newest.get(&loan.key) == Some(&loan.number) {
            self.newest.remove(&loan.key);
        }
        let mut before = loan.before;
        while let Some(number) = before
            && self.places[place(number)].as_ref().is_some_and(|found| found.number == number)
            && let Some(gone) = self.take(number)
        {
            self.counters.dropped.add(gone.packet.size());
            before = gone.before;
            lost.push(gone);
        }
        Some(loan)
    }

    /// Returns the counters.
    pub fn counters(&self) -> Lent {
        self.counters
    }

    fn take(&mut self, number: u64) -> Option<Loan> {
        self.places[place(number)].take()
    }

    fn matching(&mut self, bytes: &[u8]) -> Option<Loan> {
        let id = bytes.get(ID..ID + 2)?;
        let at = usize::from(u16::from_be_bytes([id[0], id[1]]));
        let ours = self.places[at].as_ref()?.packet.bytes();
        // Version and length of the header, length, protocol, addresses: what the kernel leaves as it is.
        let same = |part: std::ops::Range<usize>| bytes.get(part.clone()).is_some_and(|bytes| *bytes == ours[part]);
        (same(0..1) && same(2..4) && same(9..10) && same(12..20)).then(|| self.places[at].take()).flatten()
    }
}

fn place(number: u64) -> usize {
    (number % PLACES as u64) as usize
}

/// Writes another identification and time to live into a packet of IPv4, and the checksum of its header.
fn rewrite(packet: &mut [u8], id: u16) {
    packet[ID..ID + 2].copy_from_slice(&id.to_be_bytes());
    packet[TIME] = TTL;
    packet[SUM..SUM + 2].fill(0);
    let end = (usize::from(packet[0] & 0xf) * 4).min(packet.len());
    let words = packet[..end].chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let sum: u32 = words.sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    packet[SUM..SUM + 2].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

/// A queue of the kernel, with the interfaces on both sides of it.
pub struct Through {
    into: Tun,
    out: Tun,
    watch: LinkWatch,
    loans: Loans,
    copy: Vec<u8>,
    lost: Vec<Loan>,
    drops: DropReason,
    refused: u64,
}

impl Through {
    /// Creates the two interfaces, for packets of up to `mtu` bytes.
    ///
    /// # Errors
    /// Returns what is missing, and what to do about it.
    pub fn open(config: &Config, mtu: u16) -> Result<Self, Error> {
        let namespace = Namespace::open(Some(&config.netns))?;
        let open = |end: usize| {
            let address = Cidr { address: ADDRESSES[end].into(), prefix: 32 };
            Tun::open(&tun::Config { name: INTERFACES[end].into(), address, mtu }, &namespace)
        };
        let (into, out) = (open(0)?, open(1)?);
        let watch = LinkWatch::open(&namespace, out.index())?;
        let copy = Vec::with_capacity(mtu.into());
        let loans = Loans::default();
        Ok(Self { into, out, watch, loans, copy, lost: Vec::new(), drops: config.drops, refused: 0 })
    }

    /// Gives a packet to the kernel, which decides on it within the call. Returns the packet if it cannot be lent.
    pub fn lend(&mut self, packet: Carried, now: Instant) -> Option<Carried> {
        let stays = self.loans.lend(packet, now, &mut self.copy, &mut self.lost);
        if stays.is_none() {
            self.refused += u64::from(self.into.write(&self.copy).is_err());
        }
        stays
    }

    /// Reads what the kernel sends next into `buffer`; returns its length, `None` if there is nothing.
    ///
    /// # Errors
    /// Returns the error of the system: the interface was removed.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        self.out.read(buffer, &mut [])
    }

    /// Returns the packet whose copy these bytes are; `None` if there is none.
    pub fn take_back(&mut self, bytes: &[u8]) -> Option<Loan> {
        self.loans.take_back(bytes, &mut self.lost)
    }

    /// Returns a packet that was dropped and was not returned here yet.
    pub fn next_lost(&mut self) -> Option<Loan> {
        self.lost.pop()
    }

    /// Returns how the discipline drops.
    pub fn drops(&self) -> DropReason {
        self.drops
    }

    /// Returns the counters.
    pub fn counters(&self) -> Lent {
        self.loans.counters()
    }

    /// Returns the number of packets that were lost on the way into the queue or out of it, because they were not taken in time.
    pub fn unread(&mut self) -> u64 {
        self.watch.refresh();
        self.watch.facts().unread + self.refused
    }
}

impl AsFd for Through {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.out.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_core::packet::FlowId;
    use penstock_core::units::Span;
    use penstock_core::wire::RealPacket;
    use penstock_linux::lead::Lead;

    /// A datagram of 1 byte from a port, which ECN may mark.
    fn datagram(port: u8, content: u8) -> Carried {
        let mut bytes = [0; 29];
        (bytes[0], bytes[1], bytes[3], bytes[8], bytes[9]) = (0x45, 2, 29, 7, 17);
        (bytes[4], bytes[21], bytes[23], bytes[25], bytes[28]) = (0xab, port, 9, 9, content);
        bytes[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        Carried::new(RealPacket::new(bytes, FlowId(u32::from(port))), Lead::NONE)
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(ms)
    }

    /// Lends packets, one each millisecond; returns their copies.
    fn lent(loans: &mut Loans, packets: &[Carried]) -> Vec<Vec<u8>> {
        let mut lost = Vec::new();
        let lend = |(ms, packet): (usize, &Carried)| {
            let mut copy = Vec::new();
            assert!(loans.lend(packet.clone(), at(ms as u64), &mut copy, &mut lost).is_none());
            copy
        };
        let copies = packets.iter().enumerate().map(lend).collect();
        assert!(lost.is_empty());
        copies
    }

    #[test]
    fn a_packet_comes_back_as_it_went_whatever_its_copy_became() {
        let mut loans = Loans::default();
        let packets = [datagram(1, 5), datagram(1, 5)];
        let mut copies = lent(&mut loans, &packets);
        assert_eq!(&copies[1][28..], &[5], "the kernel sees the content");
        // A router takes one from the time to live, and the discipline marks.
        (copies[0][8], copies[0][1]) = (copies[0][8] - 1, 3);
        let mut lost = Vec::new();
        let back = loans.take_back(&copies[0], &mut lost).unwrap();
        let mut marked = packets[0].clone();
        marked.mark_ce();
        assert_eq!((back.packet, back.since, lost.len()), (marked, at(0), 0));
        assert!(loans.take_back(&copies[0], &mut lost).is_none(), "it comes back once");
        assert_eq!(loans.take_back(&copies[1], &mut lost).unwrap().packet, packets[1]);
        let counters = loans.counters();
        assert_eq!((counters.marked, counters.strange, counters.away()), (1, 1, 0));
        assert!(loans.newest.is_empty());
    }

    /// The checksum of a header with its own checksum in it is 0 (RFC 791 §3.1).
    #[test]
    fn the_kernel_takes_the_header_of_a_copy() {
        let copies = lent(&mut Loans::default(), &[datagram(1, 0), datagram(2, 0)]);
        for copy in copies {
            let words = copy[..20].chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
            let sum: u32 = words.sum();
            assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
        }
    }

    #[test]
    fn those_of_a_connection_that_went_before_were_dropped_and_others_may_wait() {
        let mut loans = Loans::default();
        let copies = lent(&mut loans, &[1, 2, 1, 1, 2, 1].map(|port| datagram(port, 0)));
        let mut lost = Vec::new();
        let back = loans.take_back(&copies[3], &mut lost).unwrap();
        let ages: Vec<_> = lost.drain(..).map(|loan| loan.since).collect();
        assert_eq!((back.since, ages), (at(3), vec![at(2), at(0)]));
        assert!(loans.take_back(&copies[0], &mut lost).is_none(), "what was given up is of nobody");
        assert!(loans.take_back(&copies[1], &mut lost).is_some() && loans.take_back(&copies[4], &mut lost).is_some());
        assert!(loans.take_back(&copies[5], &mut lost).is_some() && lost.is_empty());
        let text = "6 lent, 4 returned, 2 dropped, 0 marked CE, 1 strange, 0 not seen again";
        assert_eq!(loans.counters().to_string(), text);
    }

    #[test]
    fn a_place_that_is_needed_again_belongs_to_a_packet_that_was_dropped() {
        let mut loans = Loans::default();
        let (mut copy, mut lost) = (Vec::new(), Vec::new());
        let mut lend =
            |loans: &mut Loans, port: u8| assert!(loans.lend(datagram(port, 0), at(0), &mut copy, &mut lost).is_none());
        (0..2).for_each(|_| lend(&mut loans, 1));
        (2..PLACES).for_each(|_| lend(&mut loans, 2));
        lend(&mut loans, 3);
        assert_eq!(
            (lost.len(), lost[0].key),
            (1, FlowKey::of(datagram(1, 0).bytes(), datagram(1, 0).packet().headers()).unwrap())
        );
        // The second of connection 1 comes back: the place before it is of connection 3 now.
        let mut second = datagram(1, 0).bytes().to_vec();
        rewrite(&mut second, 1);
        lost.clear();
        assert!(loans.take_back(&second, &mut lost).is_some() && lost.is_empty());
    }

    #[test]
    fn strangers_and_broken_packets_are_of_nobody() {
        let mut loans = Loans::default();
        let [copy] = lent(&mut loans, &[datagram(1, 0)]).try_into().unwrap();
        let mut lost = Vec::new();
        let mut other = copy.clone();
        other[15] = 9;
        for bytes in [&other[..], &copy[..19], &[], &[0x60; 40]] {
            assert!(loans.take_back(bytes, &mut lost).is_none());
        }
        assert!(loans.take_back(&copy, &mut lost).is_some());
        assert_eq!(loans.counters().strange, 4);
        let six = RealPacket::new([0x60; 40], FlowId(0));
        assert!(loans.lend(Carried::new(six, Lead::NONE), at(0), &mut Vec::new(), &mut lost).is_some());
    }
}
