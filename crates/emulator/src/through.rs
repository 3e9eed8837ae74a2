//! A queue of the kernel before a wire (`--through`). Packets go into a namespace, whose kernel forwards them through an
//! interface with any discipline of `tc`, and come back when that discipline lets them go.
//!
//! The kernel gets a copy, whose identification (RFC 791 §3.1) is the number of the place where the packet itself waits. So
//! a packet that comes back is found at once, and how long it was away is known. Disciplines keep the order of a connection:
//! when a packet comes back, those of its connection that went before it were dropped.

use crate::carried::Carried;
use crate::error::Error;
use crate::file::ThroughKeys;
use penstock_core::packet::{Carrier as _, Ecn, Packet};
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

/// A packet whose copy is in the kernel.
#[derive(Debug, Clone)]
pub struct Loan {
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
    /// The copy of the last packet.
    copy: Vec<u8>,
    /// Packets that were dropped, and that nobody has heard of yet; the next one is last.
    pub lost: Vec<Loan>,
    pub counters: Lent,
}

impl Default for Loans {
    fn default() -> Self {
        let (newest, copy, lost) = Default::default();
        Self { places: vec![None; PLACES].into(), newest, next: 0, copy, lost, counters: Lent::default() }
    }
}

impl Loans {
    /// Keeps a packet, and writes the copy for the kernel. The packet that went `PLACES` packets ago is lost, if nothing was
    /// heard of it since. Returns the packet if it is not lent, since it is not of IPv4.
    fn lend(&mut self, packet: Carried, now: Instant) -> Option<Carried> {
        let Some(key) = FlowKey::of(packet.bytes(), packet.carried().headers()) else { return Some(packet) };
        if packet.carried().headers().version != IpVersion::V4 {
            return Some(packet);
        }
        let (number, size) = (self.next, packet.size());
        self.next += 1;
        if let Some(mut old) = self.places[place(number)].take() {
            old.since = now; // when it was dropped is not known: it counts as a packet that did not wait
            self.forget(&old);
            self.counters.dropped.add(old.packet.size());
            self.lost.push(old);
        }
        self.copy.clear();
        self.copy.extend_from_slice(&packet.bytes()[..size.get() as usize]);
        rewrite(&mut self.copy, number as u16);
        let before = self.newest.insert(key, number);
        self.counters.lent.add(size);
        self.places[place(number)] = Some(Loan { packet, since: now, key, number, before });
        None
    }

    /// Returns the packet whose copy these bytes are, with the mark that the copy got. Those of its connection that went
    /// before it are lost, the latest first. Returns `None` if they are no copy of a packet that is away.
    pub fn take_back(&mut self, bytes: &[u8]) -> Option<Loan> {
        let Some(mut loan) = self.matching(bytes) else {
            self.counters.strange += 1;
            return None;
        };
        self.counters.returned.add(loan.packet.size());
        if Ecn::from_bits(bytes[1]) == Ecn::Ce && loan.packet.ecn() != Ecn::Ce {
            loan.packet.mark_ce();
            self.counters.marked += 1;
        }
        self.forget(&loan);
        let mut before = loan.before;
        while let Some(number) = before
            && let Some(gone) = self.places[place(number)].take_if(|found| found.number == number)
        {
            self.counters.dropped.add(gone.packet.size());
            before = gone.before;
            self.lost.push(gone);
        }
        Some(loan)
    }

    /// A packet is the newest of its connection no more.
    fn forget(&mut self, loan: &Loan) {
        if self.newest.get(&loan.key) == Some(&loan.number) {
            self.newest.remove(&loan.key);
        }
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
    pub loans: Loans,
    /// How the discipline drops.
    pub drops: DropReason,
    refused: u64,
}

impl Through {
    /// Creates the two interfaces, for packets of up to `mtu` bytes; the error says what is missing, and what to do about it.
    pub fn open(keys: &ThroughKeys, mtu: u16) -> Result<Self, Error> {
        let namespace = Namespace::open(Some(&keys.netns))?;
        let open = |end: usize| {
            let address = Cidr { address: ADDRESSES[end].into(), prefix: 32 };
            Tun::open(&tun::Config { name: INTERFACES[end].into(), address, mtu }, &namespace)
        };
        let (into, out) = (open(0)?, open(1)?);
        let watch = LinkWatch::open(&namespace, out.index())?;
        Ok(Self { into, out, watch, loans: Loans::default(), drops: keys.drops.reason(), refused: 0 })
    }

    /// Gives a packet to the kernel, which decides on it within the call. Returns the packet if it cannot be lent.
    pub fn lend(&mut self, packet: Carried, now: Instant) -> Option<Carried> {
        let stays = self.loans.lend(packet, now);
        if stays.is_none() {
            self.refused += u64::from(self.into.write(&self.loans.copy).is_err());
        }
        stays
    }

    /// Reads what the kernel sends next into `buffer`; returns its length, `None` if there is nothing.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        self.out.read(buffer, &mut [])
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
        let lend = |(ms, packet): (usize, &Carried)| {
            assert!(loans.lend(packet.clone(), at(ms as u64)).is_none() && loans.lost.is_empty());
            loans.copy.clone()
        };
        packets.iter().enumerate().map(lend).collect()
    }

    #[test]
    fn a_packet_comes_back_as_it_went_whatever_its_copy_became() {
        let mut loans = Loans::default();
        let packets = [datagram(1, 5), datagram(1, 5)];
        let mut copies = lent(&mut loans, &packets);
        assert_eq!(&copies[1][28..], &[5], "the kernel sees the content");
        // A router takes one from the time to live, and the discipline marks.
        (copies[0][8], copies[0][1]) = (copies[0][8] - 1, 3);
        let back = loans.take_back(&copies[0]).unwrap();
        let mut marked = packets[0].clone();
        marked.mark_ce();
        assert_eq!((back.packet, back.since, loans.lost.len()), (marked, at(0), 0));
        assert!(loans.take_back(&copies[0]).is_none(), "it comes back once");
        assert_eq!(loans.take_back(&copies[1]).unwrap().packet, packets[1]);
        let counters = loans.counters;
        assert_eq!((counters.marked, counters.strange, counters.away()), (1, 1, 0));
        assert!(loans.newest.is_empty());
    }

    /// The checksum of a header with its own checksum in it is 0 (RFC 791 §3.1).
    #[test]
    fn the_kernel_takes_the_header_of_a_copy() {
        for copy in lent(&mut Loans::default(), &[datagram(1, 0), datagram(2, 0)]) {
            let sum: u32 = copy[..20].chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
            assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
        }
    }

    #[test]
    fn those_of_a_connection_that_went_before_were_dropped_and_others_may_wait() {
        let mut loans = Loans::default();
        let copies = lent(&mut loans, &[1, 2, 1, 1, 2, 1].map(|port| datagram(port, 0)));
        let back = loans.take_back(&copies[3]).unwrap();
        let ages: Vec<_> = loans.lost.drain(..).map(|loan| loan.since).collect();
        assert_eq!((back.since, ages), (at(3), vec![at(2), at(0)]));
        assert!(loans.take_back(&copies[0]).is_none(), "what was given up is of nobody");
        assert!([1, 4, 5].iter().all(|number| loans.take_back(&copies[*number]).is_some()) && loans.lost.is_empty());
        let text = "6 lent, 4 returned, 2 dropped, 0 marked CE, 1 strange, 0 not seen again";
        assert_eq!(loans.counters.to_string(), text);
    }

    #[test]
    fn a_place_that_is_needed_again_belongs_to_a_packet_that_was_dropped() {
        let mut loans = Loans::default();
        let mut lend = |port: u8| assert!(loans.lend(datagram(port, 0), at(0)).is_none());
        (0..2).for_each(|_| lend(1));
        (2..PLACES).for_each(|_| lend(2));
        lend(3);
        let first = FlowKey::of(datagram(1, 0).bytes(), datagram(1, 0).carried().headers()).unwrap();
        assert_eq!((loans.lost.len(), loans.lost[0].key), (1, first));
        // The second of connection 1 comes back: the place before it is of connection 3 now.
        let mut second = datagram(1, 0).bytes().to_vec();
        rewrite(&mut second, 1);
        loans.lost.clear();
        assert!(loans.take_back(&second).is_some() && loans.lost.is_empty());
    }

    #[test]
    fn strangers_and_broken_packets_are_of_nobody() {
        let mut loans = Loans::default();
        let [copy] = lent(&mut loans, &[datagram(1, 0)]).try_into().unwrap();
        let mut other = copy.clone();
        other[15] = 9;
        for bytes in [&other[..], &copy[..19], &[], &[0x60; 40]] {
            assert!(loans.take_back(bytes).is_none());
        }
        assert!(loans.take_back(&copy).is_some());
        assert_eq!(loans.counters.strange, 4);
        let six = RealPacket::new([0x60; 40], FlowId(0));
        assert!(loans.lend(Carried::new(six, Lead::NONE), at(0)).is_some());
    }
}
