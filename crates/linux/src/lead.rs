//! What stands before the IP header of a frame: the headers of Ethernet, of virtual LANs and of a session of PPPoE.

use crate::port::{Frame, VIRTIO, Virtio};

/// Two addresses and a type.
const ETHERNET: usize = 14;
const TAG: usize = 4;
const SESSION: usize = 8;
/// The longest lead: the header of virtio, that of Ethernet, three tags and a session.
const MOST: usize = VIRTIO + ETHERNET + 3 * TAG + SESSION;
/// Types of Ethernet, and protocols of PPP.
const TAGS: [u16; 2] = [0x8100, 0x88a8];
const IP: [u16; 2] = [0x0800, 0x86dd];
const PPPOE: u16 = 0x8864;
const IP_OVER_PPP: [u16; 2] = [0x21, 0x57];

/// The bytes before the IP header, as they leave: the header of virtio first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lead {
    bytes: [u8; MOST],
    len: u8,
    is_ip: bool,
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2).map(|word| u16::from_be_bytes([word[0], word[1]]))
}

/// Returns where the IP header of a frame begins; `None` if there is none.
fn ip_at(bytes: &[u8]) -> Option<usize> {
    let (mut at, mut kind) = (ETHERNET, word(bytes, ETHERNET - 2)?);
    for _ in 0..2 {
        if TAGS.contains(&kind) {
            kind = word(bytes, at + 2)?;
            at += TAG;
        }
    }
    if kind == PPPOE {
        let inside = word(bytes, at + SESSION - 2)?;
        return IP_OVER_PPP.contains(&inside).then_some(at + SESSION);
    }
    IP.contains(&kind).then_some(at)
}

impl Lead {
    /// What stands before a packet that has no frame: nothing.
    pub const NONE: Self = Self { bytes: [0; MOST], len: 0, is_ip: true };

    /// Reads the header of Ethernet alone, of a frame that is not IP; `None` if the frame is too short for one.
    pub fn of_ethernet(frame: &Frame<'_>) -> Option<(Self, usize)> {
        (frame.bytes.len() >= ETHERNET).then(|| (Self { is_ip: false, ..Self::of(frame, ETHERNET) }, ETHERNET))
    }

    /// Reads the lead of a frame; returns where in the frame its IP header begins as well. `None` if it is not IP.
    pub fn read(frame: &Frame<'_>) -> Option<(Self, usize)> {
        let at = ip_at(frame.bytes)?;
        Some((Self::of(frame, at), at))
    }

    /// Takes the first `at` bytes of a frame, which are the addresses of Ethernet at least.
    fn of(frame: &Frame<'_>, at: usize) -> Self {
        let (addresses, rest) = frame.bytes[..at].split_at(ETHERNET - 2);
        let mut lead = Self { bytes: [0; MOST], len: VIRTIO as u8, is_ip: true };
        lead.add(addresses);
        if let Some(tag) = frame.tag {
            tag.iter().for_each(|word| lead.add(&word.to_be_bytes()));
        }
        lead.add(rest);
        let shift = |(start, offset): (u16, u16)| (lead.link_len().saturating_add(start - at as u16), offset);
        // A checksum that would begin before the IP header is not one that can be understood.
        let pending = frame.virtio.pending.filter(|(start, _)| usize::from(*start) >= at).map(shift);
        lead.say(&Virtio { pending, ..Virtio::default() }, 0);
        lead
    }

    fn add(&mut self, bytes: &[u8]) {
        let at = usize::from(self.len);
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len() as u8;
    }

    /// Sets what the header of virtio says. Checksums begin at a place of the whole frame.
    pub fn say(&mut self, virtio: &Virtio, headers: u16) {
        self.bytes[..VIRTIO].copy_from_slice(&virtio.write(headers));
    }

    /// Returns a lead that says that a checksum is to be made: it begins at `start` of the IP packet and stands `offset`
    /// bytes later.
    pub fn with_pending(mut self, start: u16, offset: u16) -> Self {
        let virtio = Virtio { pending: Some((self.link_len() + start, offset)), ..Virtio::default() };
        self.say(&virtio, 0);
        self
    }

    /// Length of the headers of the link in bytes.
    pub fn link_len(&self) -> u16 {
        u16::from(self.len).saturating_sub(VIRTIO as u16)
    }

    /// True if an IP header follows.
    pub fn is_ip(&self) -> bool {
        self.is_ip
    }

    /// True if the checksum of the packet is still to be made.
    pub fn is_pending(&self) -> bool {
        self.bytes[0] != 0
    }

    /// Returns the bytes with which the frame leaves, before the IP header.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// Returns the addresses: for whom the frame is, and who sent it.
    pub fn addresses(&self) -> [[u8; 6]; 2] {
        let at = |at: usize| std::array::from_fn(|i| self.bytes[VIRTIO + at + i]);
        [at(0), at(6)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segments::Segments;
    use penstock_core::rng::Streams;

    const TO_FROM: [u8; 12] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];

    /// A frame with these bytes after its addresses.
    fn read(after: &[u8], tag: Option<[u16; 2]>, pending: Option<(u16, u16)>) -> Option<(Vec<u8>, usize, Lead)> {
        let bytes = [&TO_FROM[..], after].concat();
        let virtio = Virtio { pending, ..Virtio::default() };
        let (lead, at) = Lead::read(&Frame { bytes: &bytes, tag, virtio })?;
        Some((lead.bytes()[VIRTIO..].to_vec(), at, lead))
    }

    #[test]
    fn tags_leave_as_they_came() {
        let plain = [0x08, 0x00, 0x45];
        let (bytes, at, lead) = read(&plain, None, None).unwrap();
        assert_eq!((bytes, at), ([&TO_FROM[..], &plain[..2]].concat(), 14));
        assert_eq!(lead.addresses(), [[1, 2, 3, 4, 5, 6], [7, 8, 9, 10, 11, 12]]);
        // The outer one was taken away by the kernel, the inner one is in the frame.
        let inner = [0x81, 0x00, 0x00, 0x07, 0x86, 0xdd, 0x60];
        let (bytes, at, _) = read(&inner, Some([0x88a8, 0x2005]), None).unwrap();
        assert_eq!((bytes, at), ([&TO_FROM[..], &[0x88, 0xa8, 0x20, 5], &inner[..6]].concat(), 18));
    }

    #[test]
    fn a_session_of_pppoe_holds_ip() {
        let session = [0x88, 0x64, 0x11, 0, 0, 9, 0, 42, 0x00, 0x21, 0x45];
        assert_eq!(read(&session, None, None).unwrap().1, 22);
        let control = [0x88, 0x64, 0x11, 0, 0, 9, 0, 42, 0xc0, 0x21, 1];
        assert!(read(&control, None, None).is_none());
    }

    #[test]
    fn what_is_not_ip_or_cut_short_has_no_lead() {
        for after in [&[0x08, 0x06][..], &[0x81, 0x00, 0x00], &[0x81, 0, 0, 1, 0x08, 0x06], &[], &[0x88, 0x64, 0x11]] {
            assert!(read(after, None, None).is_none(), "{after:?}");
        }
    }

    /// Whatever comes, and whatever the kernel says of it.
    #[test]
    fn no_bytes_are_too_strange() {
        let mut rng = Streams::new(1).get("frames");
        let mut segments = Segments::default();
        let mut taken_apart = 0;
        for _ in 0..20_000 {
            let len = rng.below(120) as usize;
            let mut bytes: Vec<u8> = (0..len).map(|_| rng.below(256) as u8).collect();
            // Most begin like a frame.
            let kinds = [[8, 0, 0x45], [0x86, 0xdd, 0x60], [0x81, 0, 0], [0x88, 0x64, 0x11], [0x88, 0xa8, 1]];
            if let (Some(kind), Some(place)) = (kinds.get(rng.below(6) as usize), bytes.get_mut(12..15)) {
                place.copy_from_slice(kind);
            }
            if bytes.len() > 40 && bytes[14] == 0x45 {
                let total = (bytes.len() - 14) as u8;
                (bytes[16], bytes[17], bytes[20], bytes[21]) = (0, total, 0, 0);
                bytes[23] = [6, 17][rng.below(2) as usize];
            }
            let mut word = || rng.below(1 << 16) as u16;
            let pending = (word() % 2 == 0).then(|| (word(), word()));
            let virtio = Virtio { pending, merged: [0, 1, 4, 5, 0x81][usize::from(word() % 5)], size: word() % 50 };
            let tag = (word() % 2 == 0).then(|| [0x8100, word()]);
            let Some((lead, at)) = Lead::read(&Frame { bytes: &bytes, tag, virtio }) else { continue };
            assert_eq!(lead.bytes().len(), VIRTIO + at + if tag.is_some() { 4 } else { 0 });
            if segments.begin(lead, &bytes[at..], &virtio) {
                taken_apart += 1;
                while segments.advance().is_some() {
                    assert!(segments.packet().len() <= bytes.len() - at);
                }
            }
        }
        assert!(taken_apart > 100, "{taken_apart}");
    }

    #[test]
    fn a_pending_checksum_moves_with_the_tag() {
        let lead = read(&[0x08, 0x00], Some([0x8100, 5]), Some((34, 16))).unwrap().2;
        let words = |lead: Lead, at: usize| u16::from_ne_bytes([lead.bytes()[at], lead.bytes()[at + 1]]);
        assert!(lead.is_pending());
        assert_eq!((words(lead, 6), words(lead, 8)), (38, 16));
        assert_eq!(lead, read(&[0x08, 0x00], Some([0x8100, 5]), None).unwrap().2.with_pending(20, 16));
        assert!(!read(&[0x08, 0x00], None, Some((3, 2))).unwrap().2.is_pending());
    }
}
