//! A capture of two hosts, one of which opens nine flows and the other one: what each has of the link.

use penstock_core::config::LinkFacts;
use penstock_core::packet::Ecn;
use penstock_core::settings::config_from_settings;
use penstock_core::units::{Bytes, Limit, Rate};
use penstock_core::wire::End;
use penstock_trace::headers::{Ip, Udp, udp};
use penstock_trace::read::read;
use penstock_trace::record::{Fate, Record};
use penstock_trace::replay::{Outcome, replay};

/// 1000 bytes take a millisecond, and each host sends as much every millisecond.
const RATE: Rate = Rate::from_bps(8_000_000);
const TICKS: u32 = 10_000;
/// The second flow to appear belongs to the host with only one flow.
const MODEST: u64 = 1;

/// Raw IP packets in a pcap file of microseconds: host 1 takes turns with nine flows, host 2 has one, both to host 9, or all
/// of that `back`.
fn capture(back: bool) -> Vec<u8> {
    let mut file = Vec::new();
    let fields = |file: &mut Vec<u8>, fields: &[u32]| {
        fields.iter().for_each(|field| file.extend_from_slice(&field.to_le_bytes()));
    };
    fields(&mut file, &[0xa1b2_c3d4, 0x0004_0002, 0, 0, 96, 101]);
    for tick in 0..TICKS {
        for (host, port) in [(1, 1000 + (tick % 9) as u16), (2, 1000)] {
            let (src, dst, src_port, dst_port) = if back { (9, host, 53, port) } else { (host, 9, port, 53) };
            let ip = Ip { src, dst, ecn: Ecn::NotEct };
            let packet = udp(&Udp { ip, src_port, dst_port, payload: Bytes::new(972) });
            let captured = packet.bytes.len() as u32;
            fields(&mut file, &[tick / 1000, tick % 1000 * 1000, captured, packet.original_len.get() as u32]);
            file.extend_from_slice(&packet.bytes);
        }
    }
    file
}

fn replayed(aqm: &str, settings: &[&str], nodes: Option<End>, back: bool) -> Outcome {
    let settings: Vec<_> = settings.iter().map(|text| (*text).to_owned()).collect();
    let config = config_from_settings(aqm, &settings).unwrap();
    let file = capture(back);
    let arrivals = read(&file[..]).unwrap();
    let arrivals = match nodes {
        Some(end) => arrivals.with_nodes(end),
        None => arrivals,
    };
    replay(arrivals, &config, LinkFacts { rate: RATE, limit: Limit::Packets(1000) }, 1).unwrap()
}

/// Returns the number of packets sent of the greedy and of the modest host.
fn shares(aqm: &str, settings: &[&str], nodes: Option<End>, back: bool) -> (u64, u64) {
    let outcome = replayed(aqm, settings, nodes, back);
    let sent = outcome.packets.iter().filter(|packet| packet.fate == Fate::Sent);
    let (one, many): (Vec<&Record>, Vec<&Record>) = sent.partition(|packet| packet.flow == MODEST);
    (many.len() as u64, one.len() as u64)
}

/// Each of two nodes has 4 Mbit/s, so that a packet takes 2 ms of its account, which holds 105 ms (a round trip of 100 ms,
/// 5% of tolerance) and is full at the end to within the two packets that the next would be one too many for. In the
/// 9999 ms to the last arrival that is (9999 + 105) / 2 = 5052 packets; the very first took half, for there was one node.
fn is_half(packets: u64) -> bool {
    (5050..=5053).contains(&packets)
}

#[test]
fn a_host_with_nine_flows_has_what_a_host_with_one_has() {
    for (end, back) in [(End::Source, false), (End::Destination, true)] {
        let (many, one) = shares("qrm", &[], Some(end), back);
        assert!(is_half(many) && is_half(one), "{end:?}: {many} and {one}");
    }
}

/// Without nodes ten flows have a tenth each. A packet takes 10 ms, less while not all have begun, in the first 9 ms:
/// (9999 + 105) / 10 = 1010, and at most nine more.
#[test]
fn without_nodes_who_opens_more_gets_more() {
    let (many, one) = shares("qrm", &[], None, false);
    assert!((1008..=1020).contains(&one), "{one}");
    assert!((9 * 1008..=9 * 1020).contains(&many), "{many}");
}

/// At the other end there is only one host. It has all of the link, of which a packet takes 1 ms: 9999 + 105.
#[test]
fn one_host_at_the_other_end_has_it_all() {
    let (many, one) = shares("qrm", &[], Some(End::Destination), false);
    assert!((10_102..=10_105).contains(&(many + one)), "{many} and {one}");
}

/// Behind PINK the accounts are deeper by three segments: 4500 bytes, 9 ms more.
#[test]
fn qrm_behind_pink_knows_the_nodes() {
    let (many, one) = shares("pink", &["queue=qrm"], Some(End::Source), false);
    for packets in [many, one] {
        assert!((5054..=5058).contains(&packets), "(9999 + 105 + 9) / 2 = 5056, not {packets}");
    }
}

#[test]
fn other_disciplines_do_not_care() {
    for aqm in ["droptail", "codel", "red", "fq-codel", "pink", "pie"] {
        let without = replayed(aqm, &[], None, false);
        assert!(without.summary.sent > 0 && replayed(aqm, &[], Some(End::Source), false) == without, "{aqm}");
    }
}
