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
