//! What stands before the IP header of frames.

use penstock_core::rng::Streams;
use penstock_linux::lead::Lead;
use penstock_linux::port::{Frame, VIRTIO, Virtio};
use penstock_linux::segments::Segments;

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
