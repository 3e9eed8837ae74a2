//! The packets of a capture in order of time: those read last are held until none can come before them. Frames of several
//! segments are split here.

use crate::arrival::MAX_TIME;
use crate::fields::{self, FIN_PSH, PAYLOAD, SEQ, TCP};
use crate::link::{FlowKey, Mac, Way};
use crate::notes::Split;
use penstock_core::packet::{Ecn, Ern};
use penstock_core::units::{Bytes, Instant};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Number of packets that are held.
const HELD: usize = 65_536;

/// A packet of a capture.
#[derive(Debug, Clone, Copy)]
pub struct Found {
    /// Time since the first packet.
    pub t: Instant,
    /// Number of the packet in the file, counted from 0, without those that are left out.
    pub record: u64,
    /// The connection.
    pub key: FlowKey,
    /// Address of the sender.
    pub source: IpAddr,
    /// Address of the receiver.
    pub destination: IpAddr,
    /// Protocol after the IP header.
    pub protocol: u8,
    /// Ports of sender and receiver.
    pub ports: (u16, u16),
    /// Size from the IP header on.
    pub size: Bytes,
    /// False if the frame on the wire was shorter than that.
    pub fits: bool,
    /// ECN field.
    pub ecn: Ecn,
    /// Explicit rate notification.
    pub ern: Ern,
    /// Diffserv codepoint.
    pub dscp: u8,
    /// Identification of IPv4.
    pub id: u16,
    /// Number of the interface.
    pub interface: u32,
    /// Ethernet address of the sender.
    pub sender: Option<Mac>,
    /// Whether the machine received or sent it.
    pub way: Way,
    /// True if a queue dropped it.
    pub dropped: bool,
    /// The columns from `flags` on ([`crate::packets::COLUMNS`]).
    pub fields: [u32; fields::COUNT],
}

/// How a frame is split: bytes of payload of each packet, and nanoseconds from one to the next. The first has the time
/// of the frame, or, if the number is below zero, the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cutting {
    /// Bytes of payload of each packet but the last; 0 splits nothing.
    pub payload: u32,
    /// Nanoseconds between packets.
    pub spacing_ns: i32,
}

impl Cutting {
    /// Reads the cuttings of all records from bytes, 8 for each: two little-endian numbers.
    pub fn of_bytes(bytes: &[u8]) -> Vec<Self> {
        let number = |four: &[u8]| four.try_into().map_or(0, i32::from_le_bytes);
        let one = |eight: &[u8]| Self { payload: number(&eight[..4]).max(0) as u32, spacing_ns: number(&eight[4..]) };
        bytes.chunks_exact(8).map(one).collect()
    }
}

/// Packets that are held, in order of time and then of the file.
#[derive(Debug, Default)]
pub struct Window {
    held: BTreeMap<(Instant, u64), Found>,
    /// Number of packets that came in so far.
    came: u64,
    last: Instant,
    /// Number of packets that were too late for their place.
    pub late: u64,
    /// What was split.
    pub split: Split,
}

impl Window {
    /// Returns true if a packet must be taken out before another comes in.
    pub fn is_full(&self) -> bool {
        self.held.len() >= HELD
    }

    /// Takes a packet in, split as `cutting` says. What claims to be longer than its frame stays whole.
    pub fn put(&mut self, found: &Found, cutting: Option<Cutting>) {
        let payload = found.fields[PAYLOAD];
        match cutting.filter(|cut| cut.payload > 0 && payload > cut.payload && found.fits) {
            None => self.insert(*found),
            Some(cut) => self.put_split(found, cut, payload),
        }
    }

    fn put_split(&mut self, found: &Found, cut: Cutting, payload: u32) {
        let headers = found.size.get().saturating_sub(payload.into());
        let count = payload.div_ceil(cut.payload);
        self.split.frames += 1;
        self.split.packets += u64::from(count);
        let first = i128::from(found.t.as_nanos()) + i128::from(cut.spacing_ns.min(0)) * i128::from(count - 1);
        for at in 0..count {
            let mut one = *found;
            let begin = at * cut.payload;
            let length = (payload - begin).min(cut.payload);
            one.size = Bytes::new(headers + u64::from(length));
            one.fields[PAYLOAD] = length;
            if one.fields[0] & TCP != 0 {
                one.fields[SEQ] = one.fields[SEQ].wrapping_add(begin);
                // What closes a connection or hurries is in the last segment alone.
                one.fields[0] &= if at + 1 < count { !FIN_PSH } else { u32::MAX };
            }
            let t = first + i128::from(at) * i128::from(cut.spacing_ns.unsigned_abs());
            one.t = Instant::from_nanos(t.clamp(0, MAX_TIME.as_nanos().into()) as u64);
            self.insert(one);
        }
    }

    fn insert(&mut self, found: Found) {
        self.held.insert((found.t, self.came), found);
        self.came += 1;
    }

    /// Takes the first packet out. A packet that comes too late has the time of the one before.
    pub fn take(&mut self) -> Option<Found> {
        let (_, mut found) = self.held.pop_first()?;
        self.late += u64::from(found.t < self.last);
        self.last = self.last.max(found.t);
        found.t = self.last;
        Some(found)
    }

    /// Gives the packet of this record other ends, if it is still held.
    pub fn rename(&mut self, record: u64, other: &Found) {
        if let Some(held) = self.held.values_mut().rev().find(|held| held.record == record) {
            (held.key, held.source, held.destination, held.ports) =
                (other.key, other.source, other.destination, other.ports);
        }
    }
}
