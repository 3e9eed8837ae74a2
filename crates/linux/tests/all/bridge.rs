//! The programs that take frames from a bridge of the kernel.

use penstock_linux::bpf::bridge::{Bridge, Count, Taking};
use penstock_linux::testing::bpf;
use std::time::Duration;

#[test]
fn frames_are_hidden_from_the_kernel_from_a_sign_of_life_until_the_rest() {
    let Some(()) = bpf() else { return };
    let patience = Duration::from_secs(3600);
    let mut bridge = Bridge::load(&Taking { patience, observe: false, wan: 0, own: [[2; 6]; 3] }).unwrap();
    // A datagram of IPv4 between two hosts.
    let frame = [&[4; 12][..], &[8, 0, 0x45], &[0; 45]].concat();
    assert!(!bridge.test(&frame).unwrap(), "before the first sign of life");
    bridge.beat().unwrap();
    assert!(bridge.test(&frame).unwrap());
    bridge.rest().unwrap();
    assert!(!bridge.test(&frame).unwrap());
    bridge.beat().unwrap();
    assert!(bridge.test(&frame).unwrap());
    let passed = bridge.passed().unwrap();
    let two = Count { packets: 2, bytes: 2 * frame.len() as u64 };
    assert_eq!((passed.taken, passed.hung), ([Count::default(), two], [Count::default(), two]));
}
