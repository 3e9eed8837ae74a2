//! What a real packet tells of the rate of its flow, for RED-ERN: by the header bits of document 003, or by the option
//! alone. Hosts with an agent write the option and cannot set the bits: a segment with the option is then of a flow that
//! announces its rate, and one whose option has a round trip time of 0 announces none.

use penstock_core::packet::{Ern, Packet as _, RateNotice};
use penstock_core::wire::{ERN, RealPacket, Transport};

const END: u8 = 0;
const NOP: u8 = 1;

/// Returns the bits of a packet, or what its option says if it has none.
pub fn explicit_rate(packet: &RealPacket) -> Ern {
    let said = packet.explicit_rate();
    if said.capable {
        return said;
    }
    let Transport::Tcp { offset, payload } = packet.headers().transport else { return said };
    let options = packet.bytes().get(offset + 20..payload).unwrap_or_default();
    let Some(data) = option(options) else { return said };
    let rate = RateNotice::from_bytes(data);
    Ern { capable: true, tells_rate: rate.is_some(), rate }
}

/// Returns what follows kind and length of the first option for explicit rate notification in an options field.
fn option(mut field: &[u8]) -> Option<[u8; 4]> {
    loop {
        match *field {
            [NOP, ref rest @ ..] => field = rest,
            [END, ..] | [] | [_] => return None,
            [kind, length, ..] => {
                let data = field.get(2..usize::from(length))?;
                if let (ERN, Ok(data)) = (kind, data.try_into()) {
                    return Some(data);
                }
                field = &field[usize::from(length)..];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::carrier::Carrier;
    use penstock_core::aqm::Aqm as _;
    use penstock_core::aqm::red_ern::{self, Identify};
    use penstock_core::config::{AqmConfig as _, LinkFacts};
    use penstock_core::packet::FlowId;
    use penstock_core::qdisc::{Backlog, Verdict};
    use penstock_core::rng::Streams;
    use penstock_core::units::{Bytes, Instant, Limit, Rate, Span};
    use penstock_core::wire::TcpOptions;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    struct Carried(RealPacket);

    impl Carrier for Carried {
        fn real(&self) -> &RealPacket {
            &self.0
        }
        fn real_mut(&mut self) -> &mut RealPacket {
            &mut self.0
        }
    }

    crate::carrier!(Carried);

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
        let carried = Carried(segment(0, &with([0x53, 0xc0, 0, 100])));
        assert_eq!(carried.explicit_rate(), told, "what carries a packet asks as well");
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

        /// Wherever the option stands in whatever bytes, it is found where the core finds it.
        #[test]
        fn options_are_found_where_the_core_finds_them(
            before in proptest::collection::vec(0..12u8, 0..20),
            data in any::<[u8; 4]>(),
            after in proptest::collection::vec(any::<u8>(), 0..10),
        ) {
            let field = [&before[..], &[253, 6], &data, &after].concat();
            let (first, core) = (option(&field), TcpOptions::parse(&field).rate);
            match first.and_then(RateNotice::from_bytes) {
                Some(rate) => prop_assert_eq!(core, Some(rate)),
                // The core goes on behind an option without a rate.
                None => prop_assert!(core.is_none() || first.is_some()),
            }
        }

        /// Other options, each whole, hide nothing.
        #[test]
        fn the_option_is_found_behind_others(
            others in proptest::collection::vec((2..=252u8, proptest::collection::vec(any::<u8>(), 0..6)), 0..5),
            data in any::<[u8; 4]>(),
        ) {
            let whole = |(kind, data): &(u8, Vec<u8>)| [&[*kind, data.len() as u8 + 2], &data[..]].concat();
            let field = [others.iter().flat_map(whole).collect(), vec![1, 253, 6], data.to_vec()].concat();
            prop_assert_eq!(option(&field), Some(data));
        }
    }
}
