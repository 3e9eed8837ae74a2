//! What real segments tell of the rates of their flows.

use penstock_core::aqm::Aqm as _;
use penstock_core::aqm::red_ern::{self, Identify};
use penstock_core::config::{AqmConfig as _, LinkFacts};
use penstock_core::packet::FlowId;
use penstock_core::packet::{Ern, RateNotice};
use penstock_core::qdisc::{Backlog, Verdict};
use penstock_core::rng::Streams;
use penstock_core::units::{Bytes, Instant, Limit, Rate, Span};
use penstock_core::wire::RealPacket;
use penstock_shaper::announced::explicit_rate;
use proptest::prelude::{any, proptest};

/// A segment of IPv4 with these options, of which the whole length must be a multiple of 4.
fn segment(bits: u8, options: &[u8]) -> RealPacket {
    let mut bytes = vec![0; 40];
    let size = (40 + options.len()) as u16;
    bytes[0] = 0x45;
    bytes[2..4].copy_from_slice(&size.to_be_bytes());
    bytes[9] = 6;
    bytes[32] = ((20 + options.len()) as u8 / 4) << 4 | bits;
    bytes.extend_from_slice(options);
    RealPacket::new(bytes.into_boxed_slice(), FlowId(0))
}

/// As a Linux host writes it: timestamps, the option, two NOPs. 0x53c0 = 21440 bytes, 100 ms.
#[test]
fn the_option_alone_announces_a_rate_or_that_the_flow_announces() {
    let stamps = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
    let with = |data: [u8; 4]| [&stamps[..], &[253, 6], &data, &[1, 1]].concat();
    let told = explicit_rate(&segment(0, &with([0x53, 0xc0, 0, 100])));
    let rate = RateNotice::new(Bytes::new(21_440), Span::from_millis(100));
    assert_eq!(told, Ern { capable: true, tells_rate: true, rate: Some(rate) });
    let between = Ern { capable: true, ..Ern::default() };
    assert_eq!(explicit_rate(&segment(0, &with([0; 4]))), between);
    assert_eq!(explicit_rate(&segment(0, &stamps)), Ern::default());
    // What the bits say counts: here that there is no rate, although the option has one.
    assert!(!explicit_rate(&segment(Ern::ERC, &with([0x29, 0xe0, 0x10, 100]))).tells_rate);
    for other in [[254, 6, 1, 1, 1, 1, 1, 1], [253, 4, 1, 1, 1, 1, 1, 1], [0, 0, 253, 6, 1, 1, 1, 1]] {
        assert_eq!(explicit_rate(&segment(0, &other)), Ern::default(), "{other:?}");
    }
}

/// Section V: ECT(1) in the IP header takes the place of the bits, on real packets as in the simulator. RED drops all
/// that is above the hard limit of 15 packets.
#[test]
fn ect1_identifies_real_segments_of_flows_that_announce() {
    let link = LinkFacts { rate: Rate::from_bps(8_000_000), limit: Limit::Packets(1000) };
    let config = red_ern::Config { identify: Identify::Ect1, weight: 1.0, gentle: false, ..Default::default() };
    let mut rng = Streams::new(1).get("red-ern");
    let mut judge = |ecn: u8, options: &[u8]| {
        let mut bytes = segment(0, options).into_bytes();
        bytes[1] = ecn;
        let (packet, backlog) = (RealPacket::new(bytes, FlowId(0)), Backlog { packets: 30, bytes: 30_000 });
        let mut aqm = config.aqm(&link);
        let at = |ms| Instant::ZERO + Span::from_millis(ms);
        aqm.on_arrival(&packet, Backlog::default(), at(0), &mut rng);
        aqm.on_arrival(&packet, backlog, at(700), &mut rng)
    };
    let rate = [&[253, 6][..], &[0x53, 0xc0, 0, 100], &[1, 1]].concat();
    let (ect1, ect0, ce) = (1, 2, 3);
    assert_eq!([ect1, ce].map(|ecn| judge(ecn, &rate)), [Verdict::Mark; 2]);
    assert_eq!(judge(ect1, &[]), Verdict::Pass, "between two rates");
    assert_eq!([judge(ect0, &rate), judge(0, &rate), judge(ce, &[])], [Verdict::Drop; 3]);
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
        let _ = explicit_rate(&RealPacket::new(bytes.into_boxed_slice(), FlowId(0)));
    }
}
