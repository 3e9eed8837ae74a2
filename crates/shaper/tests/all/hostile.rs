//! Floods beside transfers through PINK with its defaults, in virtual time.
//!
//! The reference is a run with the same bytes at the same times as packets that nobody tracks (another protocol in their
//! header), so that what is compared is the harm of tracking and not that of the bytes. `examples/hostile.rs` has the long
//! forms.

use crate::lab::{self, Flood, Lab, Measures, at, forged_syn, short_connection, way};
use penstock_conntrack::Gauges;
use penstock_core::units::{Instant, Span};
use penstock_shaper::direction::Direction;

/// Four transfers from the beginning on and four that begin at 2.5 to 4 s, beside a flood from 1 s to 6 s: the ring is full
/// at 2.3 s.
struct Case {
    settings: &'static [&'static str],
    flood: fn(bool) -> Flood,
}

const END: Instant = Instant::from_nanos(6_000_000_000);

impl Case {
    /// Returns what those that were there and the new ones got, and the counters of the table.
    fn run(&self, tracked: bool) -> ([Measures; 2], Gauges) {
        let there = way("pink", self.settings, "100Mbit/s", 20);
        let mut lab = Lab::new(&there, &way("droptail", &[], "1Gbit/s", 20), penstock_conntrack::Config::default());
        (0..4).for_each(|flow| lab.bulk(at(10 * flow), [at(1500), END]));
        (5..9).map(|half| at(500 * half)).for_each(|start| lab.bulk(start, [start, END]));
        lab.flood((self.flood)(tracked));
        lab.run_until(END);
        assert_eq!(lab.drops(), 0);
        ([lab.measures(0..4), lab.measures(4..8)], lab.gauges())
    }

    /// Checks that existing and new transfers get what they get beside the reference, and returns the counters.
    fn check(&self) -> Gauges {
        let ((tracked, gauges), (reference, _)) = (self.run(true), self.run(false));
        for (who, (tracked, reference)) in ["existing", "new"].iter().zip(tracked.iter().zip(&reference)) {
            let differs = tracked.differs(reference);
            println!(
                "{who}: {:.3} of {:.3} MB, {:.3} of {:.3} ms, {:.0} of {:.0} B: {:.2} %",
                tracked.bytes / 1e6,
                reference.bytes / 1e6,
                tracked.rtt() * 1e3,
                reference.rtt() * 1e3,
                tracked.window(),
                reference.window(),
                100.0 * differs
            );
            assert!(differs < 0.02, "{who}: {tracked:?} beside {reference:?}");
            assert!(reference.bytes > 1e6);
        }
        println!("{gauges:?}");
        assert_eq!(gauges.refused, 0);
        gauges
    }
}

fn flood(tracked: bool, every: Span, packets: fn(u32) -> Vec<(Span, lab::Sent)>) -> Flood {
    Flood { from: at(1000), until: END, every, tracked, packets: Box::new(packets), sent: 0 }
}

const TEN_MICROSECONDS: Span = Span::from_micros(10);

/// 48 bytes each, 38.4 Mbit/s, for which room is reserved in both runs.
const RESERVED: &[&str] = &["reserve=39Mbit/s"];

#[test]
fn a_hundred_thousand_forged_syns_per_second_from_inside() {
    let syns = |tracked| flood(tracked, TEN_MICROSECONDS, |n| forged_syn(Direction::Forward, n, false));
    let gauges = Case { settings: RESERVED, flood: syns }.check();
    // The eight transfers, and no other entry.
    assert_eq!((gauges.entries, gauges.promoted), (8, 8));
    assert!(gauges.overwritten > 350_000 && gauges.half_open_most <= 131_072);
}

#[test]
fn a_hundred_thousand_forged_syns_per_second_from_outside_that_are_answered() {
    let syns = |tracked| flood(tracked, TEN_MICROSECONDS, |n| forged_syn(Direction::Reverse, n, true));
    let gauges = Case { settings: RESERVED, flood: syns }.check();
    assert_eq!((gauges.entries, gauges.promoted), (8, 8));
}

/// Each asks for something with 100 bytes in the direction of the transfers. Half of them are left open, so the number of
/// those which nobody closed grows. If first data counted, transfers would get a tenth.
#[test]
fn a_thousand_new_connections_per_second() {
    let churn = |tracked| flood(tracked, Span::from_millis(1), |n| short_connection(n, 100));
    let gauges = Case { settings: &["reserve=3Mbit/s"], flood: churn }.check();
    assert!(gauges.promoted > 4700 && gauges.entries > 2300 && gauges.evicted_full == 0, "{gauges:?}");
}

/// A datagram from one host on the left to each port of a server, 65,536 in 2.4 s, of 48 bytes. In the reference they all
/// go to one port.
fn sweep(tracked: bool) -> Flood {
    let every = Span::from_nanos(2_400_000_000 / 65_536);
    let ports: fn(u32) -> Vec<(Span, lab::Sent)> =
        if tracked { |n| lab::datagram(n as u16) } else { |_| lab::datagram(9) };
    Flood { from: at(1000), until: at(3400), every, tracked: true, packets: Box::new(ports), sent: 0 }
}

/// It used to take all places of the table for an hour: new transfers then met PINK as if it were drop-tail.
#[test]
fn datagrams_to_every_port_leave_no_trace() {
    let gauges = Case { settings: &["reserve=11Mbit/s"], flood: sweep }.check();
    assert!(gauges.entries == 8 && gauges.half_open_most <= 4, "{gauges:?}");
}

#[test]
fn a_table_that_is_nearly_full_says_so_once() {
    let flows = penstock_conntrack::Config { entries: 8, ..penstock_conntrack::Config::default() };
    let mut lab = Lab::new(&way("pink", &[], "100Mbit/s", 20), &way("droptail", &[], "1Gbit/s", 20), flows);
    let open = |from: u64, count: u64| Flood {
        from: at(from),
        until: at(from + count),
        every: Span::from_millis(1),
        tracked: true,
        packets: Box::new(move |n| short_connection(2 * (from as u32 + n) + 1, 0)),
        sent: 0,
    };
    lab.flood(open(0, 6));
    lab.run_until(at(1000));
    assert_eq!((lab.gauges().entries, lab.classifier.warning()), (6, None), "6 of 8 are 75 %");
    lab.flood(open(1000, 4));
    lab.run_until(at(2000));
    let gauges = lab.gauges();
    assert_eq!((gauges.entries, gauges.entries_most, gauges.evicted_full, gauges.refused), (8, 8, 2, 0));
    assert!(lab.classifier.warning().is_some_and(|warning| warning.contains("8 of 8")));
    assert_eq!(lab.classifier.warning(), None);
}
