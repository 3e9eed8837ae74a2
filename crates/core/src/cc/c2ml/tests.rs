use super::super::driver::{self, MSS};
use super::super::{AnyCc, NAMES};
use super::*;

const HEADERS: Bytes = Bytes::new(52);
/// Segments of Noordwijk in the dissertation.
const SMALL: Bytes = Bytes::new(500);
const RTT_MS: u64 = 600;

/// 1 Mbit/s.
const MBIT: Rate = Rate::from_bps(1_000_000);

fn adapted(name: &str, form: Form) -> C2ml<AnyCc> {
    let control = AnyCc::new(name, &driver::SETUP).expect(name);
    C2ml::new(control, &driver::SETUP, form, HEADERS)
}

/// One window's ACKs with this round trip time, as the endpoint would show them.
fn round(cc: &mut C2ml<AnyCc>, now: &mut Instant) {
    *now = driver::round_trip_from(cc, *now, RTT_MS);
}

/// 1 Mbit/s in 600 ms is 75,000 bytes: 71 frames of 1052 (74,692), or 75,000 bytes of payload literally.
#[test]
fn a_window_is_whole_segments_with_their_headers() {
    for (form, expected) in [(Form::On, 71 * MSS), (Form::Literal, 75 * MSS)] {
        let mut cc = adapted("newreno", form);
        cc.set_budget(Some(MBIT));
        let mut now = Instant::ZERO;
        (0..5).for_each(|_| round(&mut cc, &mut now));
        assert_eq!(cc.cwnd(), expected);
    }
}

/// Slow start from 10 segments: 20, 40, then 71, and there it ends.
#[test]
fn slow_start_leads_to_the_ceiling_and_growth_ends_there() {
    let mut cc = adapted("newreno", Form::On);
    cc.set_budget(Some(MBIT));
    let mut now = Instant::ZERO;
    for expected in [20, 40, 71, 71, 71] {
        round(&mut cc, &mut now);
        assert_eq!(cc.cwnd(), expected * MSS);
    }
    assert_eq!(cc.ssthresh(), 71 * MSS);
}

#[test]
fn every_control_stays_within_its_budget() {
    for name in NAMES {
        for form in [Form::On, Form::Literal] {
            let mut cc = adapted(name, form);
            cc.set_budget(Some(MBIT));
            let bursts = cc.next_burst() < Instant::MAX;
            let mut now = Instant::ZERO;
            for _ in 0..20 {
                if !bursts {
                    round(&mut cc, &mut now);
                    assert!(cc.cwnd() <= 75 * MSS, "{name}: {}", cc.cwnd());
                }
                assert!(cc.pacing_rate().is_none_or(|rate| rate <= MBIT), "{name}");
            }
        }
    }
}

/// Half of the ceiling is adopted by all but those with a model of the path or with bursts; growth ends at the ceiling.
#[test]
fn every_control_without_a_model_of_its_own_adopts_window_and_threshold() {
    for name in NAMES.iter().filter(|name| !["bbr", "bbr3", "noordwijk"].contains(name)) {
        let mut cc = adapted(name, Form::On);
        cc.set_budget(Some(MBIT));
        cc.set_rtt(Span::from_millis(RTT_MS));
        let expected = if *name == "cubic-linux" { 35 * MSS } else { 71 * MSS / 2 };
        assert_eq!((cc.control().cwnd(), cc.control().ssthresh()), (expected, 71 * MSS), "{name}");
    }
}

/// A control that a timer limits has no ceiling of its window: with 100 segments in flight, the next burst makes it larger
/// than the 71 segments of the budget.
#[test]
fn a_window_of_bursts_has_no_ceiling() {
    let mut cc = adapted("noordwijk", Form::On);
    cc.set_budget(Some(MBIT));
    cc.set_rtt(Span::from_millis(RTT_MS));
    cc.on_burst(Instant::ZERO, 100 * MSS);
    assert!(cc.cwnd() > 100 * MSS, "{}", cc.cwnd());
}

/// A loss halves the flight of 71 segments; after it, slow start leads back: 35.5, then 71.
#[test]
fn after_a_loss_the_control_falls_and_slow_start_leads_back() {
    let mut cc = adapted("newreno", Form::On);
    cc.set_budget(Some(MBIT));
    let mut now = Instant::ZERO;
    (0..4).for_each(|_| round(&mut cc, &mut now));
    cc.on_loss(&driver::loss(71 * MSS));
    cc.on_recovered(now);
    assert_eq!(cc.cwnd(), 71 * MSS / 2);
    (0..2).for_each(|_| round(&mut cc, &mut now));
    assert_eq!(cc.cwnd(), 71 * MSS);
}

/// A third of 1 Mbit/s: 25,000 bytes, 23 frames. Then half: 37,500, 35 frames, of which 23 is more than the half.
#[test]
fn a_new_budget_leaves_a_window_that_fits() {
    let mut cc = adapted("newreno", Form::On);
    cc.set_budget(Some(MBIT));
    let mut now = Instant::ZERO;
    (0..4).for_each(|_| round(&mut cc, &mut now));
    cc.set_budget(Some(Rate::from_bps(333_333)));
    assert_eq!(cc.cwnd(), 23 * MSS, "cut at once, and no lower");
    cc.set_budget(Some(Rate::from_bps(500_000)));
    assert_eq!((cc.cwnd(), cc.ssthresh()), (23 * MSS, 35 * MSS));
    cc.set_budget(Some(MBIT));
    assert_eq!((cc.cwnd(), cc.ssthresh()), (71 * MSS / 2, 71 * MSS), "half of the new one");
    let mut literal = adapted("newreno", Form::Literal);
    literal.set_budget(Some(MBIT));
    (0..4).for_each(|_| round(&mut literal, &mut now));
    literal.set_budget(Some(Rate::from_bps(500_000)));
    assert_eq!(
        (literal.cwnd(), literal.ssthresh()),
        (Bytes::new(18_750), Bytes::new(37_500)),
        "Figure 2.13: ssThres/2"
    );
}

/// Half of 71 segments, told before the handshake was over.
#[test]
fn the_first_flight_is_half_of_what_the_budget_allows() {
    let mut cc = adapted("cubic", Form::On);
    cc.set_budget(Some(MBIT));
    assert_eq!(cc.cwnd(), 10 * MSS);
    cc.set_rtt(Span::from_millis(RTT_MS));
    assert_eq!((cc.cwnd(), cc.ssthresh()), (71 * MSS / 2, 71 * MSS));
    // 50 kbit/s in 600 ms: 3750 bytes, three frames.
    let mut small = adapted("cubic", Form::On);
    small.set_budget(Some(Rate::from_bps(50_000)));
    small.set_rtt(Span::from_millis(RTT_MS));
    assert_eq!(small.cwnd(), 3 * MSS, "a first window that is larger is cut");
}

/// The path takes 600 ms, a queue 300 more. By the current round trip time the window would be 112,500 bytes.
#[test]
fn a_queue_does_not_feed_itself() {
    let queued = Ack { min_rtt: Span::from_millis(600), ..driver::ack(MSS, 900) };
    let grown = |form| {
        let mut cc = adapted("newreno", form);
        cc.set_budget(Some(MBIT));
        (0..500).for_each(|_| cc.on_ack(&queued));
        cc.cwnd()
    };
    assert_eq!(grown(Form::On), 71 * MSS);
    assert_eq!(grown(Form::Literal), Bytes::new(112_500));
}

#[test]
fn a_budget_below_a_segment_leaves_one() {
    let mut cc = adapted("newreno", Form::On);
    cc.set_budget(Some(Rate::from_bps(1)));
    cc.on_ack(&driver::ack(MSS, RTT_MS));
    assert_eq!(cc.cwnd(), MSS);
}

/// Never told, the control is the plain one; told and then silent, it goes on as one from where it was.
#[test]
fn without_a_budget_the_control_is_the_plain_one() {
    for name in NAMES {
        let mut plain = AnyCc::new(name, &driver::SETUP).expect(name);
        let mut cc = adapted(name, Form::On);
        let mut now = Instant::ZERO;
        for _ in 0..5 {
            driver::round_trip_from(&mut plain, now, RTT_MS);
            round(&mut cc, &mut now);
            plain.on_loss(&driver::loss(8 * MSS));
            cc.on_loss(&driver::loss(8 * MSS));
            plain.on_recovered(now);
            cc.on_recovered(now);
            assert_eq!(cc.control(), &plain, "{name}");
            assert_eq!((cc.cwnd(), cc.ssthresh()), (plain.cwnd(), plain.ssthresh()));
        }
    }
    let mut cc = adapted("newreno", Form::On);
    cc.set_budget(Some(Rate::from_bps(500_000)));
    let mut now = Instant::ZERO;
    (0..4).for_each(|_| round(&mut cc, &mut now));
    assert_eq!(cc.cwnd(), 35 * MSS);
    cc.set_budget(None);
    round(&mut cc, &mut now);
    assert_eq!(cc.cwnd(), 36 * MSS, "congestion avoidance from there");
}

/// §2.2.4.2: 2 Mbit/s for 16 nodes is 125 kbit/s each; segments of 500 bytes, bursts of three, about 100 ms apart. With
/// their 52 bytes of headers three take 3 552 8 / 125,000 = 105.984 ms; a burst of 50 ms would be one of 1.4.
#[test]
fn noordwijk_sends_three_segments_about_every_100_ms() {
    let setup = Setup { mss: SMALL, initial_window: 20 * SMALL, ..driver::SETUP };
    let mut cc = C2ml::new(AnyCc::new("noordwijk", &setup).unwrap(), &setup, Form::On, HEADERS);
    cc.set_budget(Some(Rate::from_bps(125_000)));
    cc.on_burst(Instant::ZERO, Bytes::ZERO);
    assert_eq!((cc.cwnd(), cc.next_burst()), (3 * SMALL, Instant::ZERO + Span::from_micros(105_984)));
    // 1 Mbit/s carries 6250 bytes in 50 ms: 11 frames, which take 48.576 ms.
    cc.set_budget(Some(MBIT));
    cc.on_burst(Instant::ZERO, Bytes::ZERO);
    assert_eq!((cc.cwnd(), cc.next_burst()), (11 * SMALL, Instant::ZERO + Span::from_micros(48_576)));
    cc.set_budget(None);
    cc.on_burst(Instant::ZERO, Bytes::ZERO);
    assert_eq!((cc.cwnd(), cc.next_burst()), (20 * SMALL, Instant::ZERO + Span::from_millis(500)));
}

/// Trains that tell of a fast path: tracking alone would make the timer 11 times 0.1 ms.
#[test]
fn noordwijk_tracks_no_faster_than_its_budget() {
    let setup = Setup { mss: SMALL, initial_window: 20 * SMALL, ..driver::SETUP };
    let mut cc = C2ml::new(AnyCc::new("noordwijk", &setup).unwrap(), &setup, Form::On, HEADERS);
    cc.set_budget(Some(MBIT));
    let mut now = Instant::ZERO;
    for _ in 0..6 {
        now = cc.next_burst();
        cc.on_burst(now, Bytes::ZERO);
        for i in 0..11 {
            cc.on_ack(&Ack { now: now + Span::from_micros(100 * i), ..driver::ack(SMALL, 600 + i) });
        }
    }
    assert_eq!(cc.next_burst().since(now), Span::from_micros(48_576));
}

/// 3 Mbit/s among weights 1, 1 and 4: 500, 500 and 2000 kbit/s.
#[test]
fn a_budget_is_divided_by_weight() {
    let mut sockets = Sockets::default();
    assert_eq!(sockets.part(1), None);
    sockets.set_budget(Some(Rate::from_bps(3_000_000)));
    assert!(sockets.open(1));
    assert_eq!(sockets.part(1), Some(Rate::from_bps(3_000_000)));
    assert!(!sockets.open(1));
    assert!(!sockets.open(4));
    assert_eq!([1, 4].map(|w| sockets.part(w)), [500_000, 2_000_000].map(|bps| Some(Rate::from_bps(bps))));
    assert!(!sockets.close(4));
    assert_eq!(sockets.part(1), Some(Rate::from_bps(1_500_000)));
    assert!(!sockets.close(1));
    assert!(sockets.close(1));
}

proptest::proptest! {
    /// Whatever is open, all parts together are no more than the budget.
    #[test]
    fn parts_never_add_up_to_more_than_the_budget(
        bps in 1_000u64..1 << 40,
        weights in proptest::collection::vec(1u32..1000, 1..100),
    ) {
        let mut sockets = Sockets::default();
        sockets.set_budget(Some(Rate::from_bps(bps)));
        weights.iter().for_each(|w| { sockets.open(*w); });
        let sum: u64 = weights.iter().filter_map(|w| sockets.part(*w)).filter(|r| r.as_bps() > 1).map(Rate::as_bps).sum();
        proptest::prop_assert!(sum <= bps);
    }
}
