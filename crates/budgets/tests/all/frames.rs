//! The bytes of frames.

use penstock_budgets::frame::{Enrolled, Frame, LONGEST, put, take};
use penstock_core::coop::message::{Message, encode, version};
use penstock_core::coop::state::State;
use penstock_core::coop::{Floor, Key, Keyring, NodeId, Share};

fn frames() -> Vec<Frame> {
    let ring = Keyring::new(1, &Key::new([1; 32]));
    let ticket = State::ticket(NodeId(7), Share { class: 0, weight: 5, floor: Floor::NONE }).sign(&ring);
    let hello = Message::ClientHello { node: NodeId(7), ask: 0, state: Some(ticket) };
    let enrolled = Enrolled { certificate: vec![1; 300].into(), authority: vec![2; 200].into(), hello };
    let enrol = Frame::Enrol { key: [3; 32], name: "truck".into() };
    vec![Frame::Message(hello), enrol, Frame::Enrolled(enrolled)]
}

#[test]
fn frames_are_read_as_they_are_written_and_no_part_of_them_is_one() {
    for frame in frames() {
        let bytes = frame.encode();
        assert!(bytes.len() <= LONGEST);
        assert_eq!(Frame::decode(&bytes).as_ref(), Ok(&frame));
        let parts = (0..bytes.len()).filter(|len| Frame::decode(&bytes[..*len]).is_ok()).count();
        // A hello without its state is a hello, and a name may be shorter.
        let whole = match frame {
            Frame::Message(_) => 1,
            Frame::Enrol { name, .. } => name.len(),
            Frame::Enrolled(_) => 0,
        };
        assert_eq!(parts, whole);
    }
}

#[test]
fn a_stream_is_cut_into_frames_wherever_it_is_cut() {
    let mut wire = Vec::new();
    frames().iter().for_each(|frame| put(&frame.encode(), &mut wire));
    for piece in [1, 2, 3, 1000] {
        let (mut input, mut seen) = (Vec::new(), Vec::new());
        for bytes in wire.chunks(piece) {
            input.extend_from_slice(bytes);
            while let Some(frame) = take(&mut input).unwrap() {
                seen.push(Frame::decode(&frame).unwrap());
            }
        }
        assert_eq!(seen, frames());
    }
    assert!(take(&mut vec![0xff, 0xff]).is_err());
}

#[test]
fn version_1_is_refused_by_its_name() {
    let ring = Keyring::new(1, &Key::new([1; 32]));
    let old = encode(&Message::ClientHello { node: NodeId(7), ask: 1, state: None }, &ring);
    assert_eq!([version(&old), version(&frames()[0].encode())], [Some(1), Some(2)]);
    let refused = Frame::decode(&old).unwrap_err();
    assert_eq!(refused.to_string(), "version 1 of C2LP; this is version 2");
}
