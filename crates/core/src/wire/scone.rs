//! Throughput advice for QUIC: the rate signal of SCONE packets, read and lowered.
//!
//! Source: draft-ietf-scone-protocol, sections "Rate Signals" and "Applying Throughput Advice Signals". A SCONE packet is a
//! QUIC packet with a long header and one of two versions, and stands first in its datagram. Its signal has 7 bits:
//!
//! ```text
//! byte 0   1 x s6 s5 s4 s3 s2 s1     the long header bit, and the signal but for its last bit
//! byte 1   s0, then the first 7 bits of the version 0x6f7dc0fd         rate = 100 kbit/s * 10^(n / 20), 127: not known
//! ```
//!
//! A network element may only lower the signal, and corrects the checksum of UDP. These two bytes are one word of it.

use super::{RealPacket, Transport, TransportChecksum, checksum};
use crate::units::Rate;

/// The version of SCONE without its first bit, which is the last one of the signal.
const VERSION: u32 = 0x6f7d_c0fd;
/// The bits of bytes 0 and 1 that have the signal.
const SIGNAL: u16 = 0x3f80;
/// Length of a header of UDP.
const UDP: usize = 8;

/// The signal of a SCONE packet: an advised rate, or that none is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Signal(u8);

impl Signal {
    /// No rate is advised: what endpoints send.
    pub const UNKNOWN: Self = Self(127);

    /// The signal with this number, of which the last 7 bits count.
    pub const fn new(number: u8) -> Self {
        Self(number & 127)
    }

    /// Returns the signal of the highest rate that is not above this one; that of 100 kbit/s if all are above.
    pub fn of(rate: Rate) -> Self {
        let fits = |n: &u8| Self(*n).rate().is_some_and(|advised| advised <= rate);
        let about = 20.0 * libm::log10(rate.as_bps().max(1) as f64 / 1e5);
        // The exact one is among the neighbours.
        let most = (about.clamp(0.0, 125.0) as u8) + 1;
        Self((most.saturating_sub(2)..=most).rev().find(fits).unwrap_or(0))
    }

    /// Returns the rate that it advises; `None` if it is not known.
    pub fn rate(self) -> Option<Rate> {
        let bps = 1e5 * libm::pow(10.0, f64::from(self.0) / 20.0);
        (self != Self::UNKNOWN).then(|| Rate::from_bps(libm::round(bps) as u64))
    }

    /// The signal as a number, 0 to 127.
    pub fn get(self) -> u8 {
        self.0
    }
}

impl RealPacket {
    /// Returns the rate signal, if the packet is a datagram that begins with a SCONE packet.
    pub fn rate_signal(&self) -> Option<Signal> {
        let at = self.scone()?;
        Some(Signal(((self.u16_at(at) & SIGNAL) >> 7) as u8))
    }

    /// Lowers the rate signal to this one; returns whether it did. A signal that is as low already stays, and so does whatever
    /// is no SCONE packet.
    pub fn lower_rate_signal(&mut self, to: Signal) -> bool {
        let (Some(at), Some(is)) = (self.scone(), self.rate_signal()) else { return false };
        if to >= is {
            return false;
        }
        let old = self.u16_at(at);
        let new = old & !SIGNAL | u16::from(to.0) << 7;
        let sum = at - 2;
        // Zero says that there is no checksum, so a sum of zero is written as its other form (RFC 768).
        if self.checksum == TransportChecksum::Complete && self.u16_at(sum) != 0 {
            let updated = checksum::update(self.u16_at(sum), old, new);
            self.put_u16(sum, if updated == 0 { 0xffff } else { updated });
        }
        self.put_u16(at, new);
        true
    }

    /// Returns the place of a SCONE packet.
    fn scone(&self) -> Option<usize> {
        let Transport::Udp { offset } = self.headers.transport else { return None };
        let at = offset + UDP;
        let length = usize::from(self.u16_at(offset + 4));
        let complete = length >= UDP + 5 && offset + length <= self.headers.end;
        let is_long = complete && self.bytes[at] & 0x80 != 0;
        (is_long && self.u32_at(at + 1) & (u32::MAX >> 1) == VERSION).then_some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::FlowId;
    use proptest::prelude::*;

    /// A datagram of IPv4 or IPv6 with this content and a checksum, unless it has none.
    fn datagram(v6: bool, content: &[u8], summed: bool) -> Vec<u8> {
        let (offset, length) = (if v6 { 40 } else { 20 }, UDP + content.len());
        let mut bytes = vec![0; offset];
        if v6 {
            (bytes[0], bytes[4], bytes[5], bytes[6]) = (0x60, (length >> 8) as u8, length as u8, 17);
            (bytes[8], bytes[23], bytes[24], bytes[39]) = (0xfd, 1, 0xfd, 2);
        } else {
            let all = offset + length;
            (bytes[0], bytes[2], bytes[3], bytes[9]) = (0x45, (all >> 8) as u8, all as u8, 17);
            bytes[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        }
        bytes.extend([1, 187, 200, 5, (length >> 8) as u8, length as u8, 0, 0]);
        bytes.extend(content);
        if summed {
            let sum = !sum(&bytes, offset);
            bytes[offset + 6..offset + 8].copy_from_slice(&(if sum == 0 { 0xffff } else { sum }).to_be_bytes());
        }
        bytes
    }

    /// The sum of the words of a datagram with its pseudo header, which is 0xffff if the checksum in it is right (RFC 768).
    fn sum(bytes: &[u8], offset: usize) -> u16 {
        let addresses = if offset == 40 { &bytes[8..40] } else { &bytes[12..20] };
        let length = [0, 17, bytes[offset + 4], bytes[offset + 5]];
        let words = [addresses, &length, &bytes[offset..]].concat();
        let word = |pair: &[u8]| u64::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u64::from(*low));
        let mut sum: u64 = words.chunks(2).map(word).sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    /// A SCONE packet with this signal, and a packet after it.
    fn scone(signal: u8) -> Vec<u8> {
        let version = VERSION | u32::from(signal & 1) << 31;
        [&[0xc0 | signal >> 1][..], &version.to_be_bytes(), &[0, 0, 0x40, 7, 7, 7]].concat()
    }

    fn packet(bytes: Vec<u8>) -> RealPacket {
        RealPacket::new(bytes, FlowId(0))
    }

    /// The examples of the draft, to its three digits.
    #[test]
    fn signals_have_the_rates_of_the_draft() {
        for (n, kbps) in
            [(0, 1e2), (1, 112.), (2, 126.), (3, 141.), (20, 1e3), (40, 1e4), (61, 112e3), (80, 1e6), (126, 199.5e6)]
        {
            let rate = Signal(n).rate().unwrap();
            assert!((rate.as_bps() as f64 / 1e3 / kbps - 1.0).abs() < 0.005, "{n}: {rate}");
            assert_eq!(Signal::of(rate), Signal(n));
        }
        assert_eq!((Signal::UNKNOWN.rate(), Signal::of(Rate::from_bps(1))), (None, Signal(0)));
        assert_eq!(Signal::of(Rate::from_bps(999_999)), Signal(19), "never more than there is");
        assert_eq!(Signal::of(Rate::from_bps(u64::MAX)), Signal(126));
    }

    /// The draft's pseudocode for a packet of version 0xef7dc0fd with signal 127, lowered to 40 and to 41.
    #[test]
    fn two_bytes_change() {
        for (to, first, second) in [(40, 0xc0 | 20, 0x6f), (41, 0xc0 | 20, 0xef)] {
            let mut one = packet(datagram(false, &scone(127), true));
            assert!(one.lower_rate_signal(Signal(to)));
            assert_eq!((one.bytes()[28], one.bytes()[29], one.rate_signal()), (first, second, Some(Signal(to))));
        }
    }

    #[test]
    fn other_packets_stay() {
        let short = [0x40, 0x6f, 0x7d, 0xc0, 0xfd, 0];
        let quic = [0xc0, 0, 0, 0, 1, 0];
        for content in [&short[..], &quic, &scone(127)[..4], &[]] {
            let bytes = datagram(false, content, true);
            let mut one = packet(bytes.clone());
            assert!(!one.lower_rate_signal(Signal(0)) && one.bytes() == bytes);
        }
        // The header of UDP says that the datagram is shorter than the packet, so its checksum does not cover the signal.
        let mut bytes = datagram(false, &scone(127), true);
        bytes[25] = 10;
        assert_eq!(packet(bytes).rate_signal(), None);
    }

    proptest! {
        /// A signal is never raised, nothing else changes, a right checksum stays right, and none stays none.
        #[test]
        fn a_signal_is_only_lowered(v6: bool, is in 0..128u8, to in 0..128u8, summed: bool, rest in prop::collection::vec(any::<u8>(), 0..40)) {
            let content = [scone(is), rest].concat();
            let before = datagram(v6, &content, summed);
            let mut one = packet(before.clone());
            prop_assert_eq!(one.lower_rate_signal(Signal(to)), to < is);
            prop_assert_eq!(one.rate_signal(), Some(Signal(is.min(to))));
            let (offset, after) = (if v6 { 40 } else { 20 }, one.bytes());
            prop_assert_eq!(after[offset + 6..offset + 8] == [0, 0], !summed);
            prop_assert!(!summed || sum(after, offset) == 0xffff);
            let mut same = after.to_vec();
            same[offset + 6..offset + 10].copy_from_slice(&before[offset + 6..offset + 10]);
            prop_assert_eq!(same, before);
        }

        /// The network card makes the checksum later.
        #[test]
        fn a_checksum_that_is_to_be_made_stays(is in 1..128u8) {
            let before = datagram(false, &scone(is), true);
            let mut one = packet(before.clone()).with_checksum(TransportChecksum::Pending);
            prop_assert!(one.lower_rate_signal(Signal(0)) && one.bytes()[26..28] == before[26..28]);
        }

        /// Bytes of anybody: no panic, no higher signal.
        #[test]
        fn hostile_bytes_do_no_harm(mut bytes in prop::collection::vec(any::<u8>(), 0..80), long in 0..60usize, to in 0..128u8, v6: bool) {
            if let Some(first) = bytes.first_mut() {
                *first = if v6 { 0x60 } else { 0x45 };
            }
            // Often what looks like one.
            for (at, value) in [(9, 17), (6, if v6 { 17 } else { 0 }), (3, bytes.len() as u8), (7, 0)] {
                bytes.get_mut(at).into_iter().for_each(|byte| *byte = value);
            }
            for (at, byte) in (long..).zip(scone(to)) {
                bytes.get_mut(at).into_iter().for_each(|place| *place = byte);
            }
            let mut one = packet(bytes.clone());
            let is = one.rate_signal();
            let lowered = one.lower_rate_signal(Signal(to));
            prop_assert!(lowered == is.is_some_and(|is| Signal(to) < is));
            prop_assert!(one.rate_signal() <= is && (lowered || one.bytes() == bytes));
        }
    }
}
