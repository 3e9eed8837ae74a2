//! Names of tests that begin with `rfc9959_3_2` and the like are those of a MUST or MUST NOT in that section of RFC 9959.

use super::super::driver::{self, MSS};
use super::super::{AnyCc, AnyControlConfig};
use super::*;
use serde_json::{Value, json};

const SAVED_RTT_MS: u64 = 600;

/// A connection of ten segments in its first window, whose path has delivered everything so far.
#[derive(Clone)]
struct Sender {
    cc: AnyCc,
    now: Instant,
    /// Segments in flight, and segments delivered.
    flight: u64,
    delivered: u64,
}

/// The controls that can be started, as sources and Linux have them, with these parameters.
fn each_control(parameters: &Value) -> Vec<(String, Sender)> {
    let forms = [("newreno", json!({})), ("newreno", json!({ "compat": "linux" })), ("cubic", json!({}))];
    let forms = forms.into_iter().chain([("cubic", json!({ "hystart": true })), ("cubic-linux", json!({}))]);
    let made = forms.map(|(name, form)| {
        let mut keys = form.as_object().unwrap().clone();
        keys.extend(parameters.as_object().unwrap().clone());
        let config = AnyControlConfig::deserialize(name, Value::Object(keys)).unwrap().unwrap();
        config.validate().unwrap();
        (format!("{name} {form}"), Sender::new(config.build(&driver::SETUP)))
    });
    made.collect()
}

/// Those controls with 300 segments and 600 ms to resume.
fn resuming() -> Vec<(String, Sender)> {
    each_control(&json!({ "resume_cwnd": "300kB", "resume_rtt": "600ms" }))
}

impl Sender {
    fn new(cc: AnyCc) -> Self {
        Self { cc, now: Instant::ZERO, flight: 10, delivered: 0 }
    }

    fn window(&self) -> u64 {
        self.cc.cwnd() / MSS
    }

    /// Sends as much as the window allows.
    fn fill(&mut self) {
        self.flight = self.flight.max(self.window());
    }

    fn facts(&mut self, rtt_ms: u64) -> Ack {
        self.now += Span::from_millis(1);
        self.delivered += 1;
        let (in_flight, delivered) = (self.flight * MSS, self.delivered * MSS);
        self.flight -= 1;
        Ack { now: self.now, in_flight, delivered, ..driver::ack(MSS, rtt_ms) }
    }

    /// Takes `count` ACKs of a segment each, a millisecond apart, without sending.
    fn acks(&mut self, count: u64, rtt_ms: u64) {
        for _ in 0..count {
            let facts = self.facts(rtt_ms);
            self.cc.on_ack(&facts);
        }
    }

    /// The first window is acknowledged, and each ACK lets segments go.
    fn confirm(&mut self, rtt_ms: u64) {
        for _ in 0..10 {
            self.acks(1, rtt_ms);
            if self.cc.pacing_rate().is_none() {
                self.fill();
            }
        }
    }

    /// Jumps and sends all of the 150 segments that this allows.
    fn jump(&mut self) {
        self.confirm(SAVED_RTT_MS);
        assert_eq!(self.window(), 150);
        self.fill();
    }

    /// Loss recovery: `count` ACKs within it, and its end.
    fn recover(&mut self, count: u64) {
        for _ in 0..count {
            let facts = self.facts(SAVED_RTT_MS);
            self.cc.on_recovery_ack(&facts);
        }
        self.cc.on_recovered(self.now);
    }

    fn lose(&mut self, ecn: bool) {
        let in_flight = self.flight * MSS;
        self.cc.on_loss(&Loss { now: self.now, in_flight, ecn });
    }

    fn phase(&self) -> String {
        let state = self.cc.state();
        let at = state.find("phase: ").map(|at| at + 7);
        at.map_or("none".into(), |at| state[at..].chars().take_while(char::is_ascii_alphabetic).collect())
    }
}

/// §3.2: a loss or a mark before the path is confirmed leaves what a control without Careful Resume has, for good.
#[test]
fn rfc9959_3_2_congestion_in_reconnaissance_is_left_to_the_control() {
    let plain = each_control(&json!({}));
    for (ecn, ((name, mut resuming), (_, mut plain))) in
        [true, false].into_iter().flat_map(|ecn| resuming().into_iter().zip(plain.clone()).map(move |pair| (ecn, pair)))
    {
        for sender in [&mut resuming, &mut plain] {
            sender.acks(5, SAVED_RTT_MS);
            sender.lose(ecn);
            sender.cc.on_recovered(sender.now);
            for _ in 0..40 {
                sender.fill();
                sender.acks(1, SAVED_RTT_MS);
            }
        }
        assert_eq!((resuming.cc.cwnd(), resuming.cc.ssthresh()), (plain.cc.cwnd(), plain.cc.ssthresh()), "{name}");
        assert_eq!((resuming.phase(), resuming.cc.pacing_rate()), ("none".into(), None), "{name}");
    }
}

/// §3.2: a smallest round trip of 300 ms is half of the saved 600 and too small; 301 are not.
#[test]
fn rfc9959_3_2_half_of_the_saved_round_trip_time_is_too_small() {
    for (rtt_ms, window) in [(100, 20), (300, 20), (301, 150), (600, 150)] {
        for (name, mut sender) in resuming() {
            sender.confirm(rtt_ms);
            assert_eq!(sender.window(), window, "{name}: {rtt_ms} ms");
        }
    }
}

/// §4.2.1: more than ten times the saved round trip is another path. No MUST.
#[test]
fn more_than_ten_saved_round_trips_are_another_path() {
    for (rtt_ms, window) in [(6000, 150), (6001, 20)] {
        for (name, mut sender) in resuming() {
            sender.confirm(rtt_ms);
            assert_eq!(sender.window(), window, "{name}: {rtt_ms} ms");
        }
    }
}

/// §3.3: 150 of 300 segments, 37 of 75, and none if slow start is there already. No threshold appears.
#[test]
fn rfc9959_3_3_the_window_jumps_to_half_of_the_saved_one() {
    for (saved, window) in [("300kB", 150), ("75kB", 37), ("40kB", 20), ("1kB", 20)] {
        for (name, mut sender) in each_control(&json!({ "resume_cwnd": saved, "resume_rtt": "600ms" })) {
            sender.confirm(SAVED_RTT_MS);
            assert_eq!((sender.window(), sender.cc.ssthresh()), (window, Bytes::MAX), "{name}: {saved}");
        }
    }
}

/// Nobody forgets what was saved when a first connection resumes it, and no `max_jump` holds a second one back.
#[test]
fn two_connections_jump_as_far_as_they_are_told() {
    for _ in 0..2 {
        for (name, mut sender) in each_control(&json!({ "resume_cwnd": "400MB", "resume_rtt": "600ms" })) {
            sender.confirm(SAVED_RTT_MS);
            assert_eq!(sender.window(), 200_000, "{name}");
        }
    }
}

/// §3.2: the first window must be acknowledged, and a sender that does not fill its window waits until it does.
#[test]
fn the_jump_waits_for_the_first_window_and_for_data() {
    for (name, mut sender) in resuming() {
        for _ in 0..9 {
            sender.acks(1, SAVED_RTT_MS);
            sender.fill();
        }
        assert_eq!(sender.window(), 19, "{name}");
        let facts = Ack { cwnd_limited: false, ..sender.facts(SAVED_RTT_MS) };
        sender.cc.on_ack(&facts);
        assert_eq!(sender.window(), 19, "{name}");
        sender.acks(1, SAVED_RTT_MS);
        assert_eq!(sender.window(), 150, "{name}");
    }
}

/// §3.3, §4.3.2: jump_cwnd in the current round trip: 150 segments of 1000 bytes in 600 ms are 2 Mbit/s, in 750 ms 1.6 Mbit/s.
/// Nothing paces before and after.
#[test]
fn rfc9959_3_3_unvalidated_packets_are_paced_over_the_current_round_trip() {
    for (name, mut sender) in resuming() {
        assert_eq!(sender.cc.pacing_rate(), None, "{name}");
        sender.confirm(SAVED_RTT_MS);
        assert_eq!(sender.cc.pacing_rate(), Some(Rate::from_bps(2_000_000)), "{name}");
        sender.acks(1, 750);
        assert_eq!(sender.cc.pacing_rate(), Some(Rate::from_bps(1_600_000)), "{name}");
        sender.fill();
        sender.acks(1, SAVED_RTT_MS);
        assert_eq!((sender.phase().as_str(), sender.cc.pacing_rate()), ("Validating", None), "{name}");
    }
}

/// §3.3: a round trip of 250 ms while unvalidated packets leave. 18 segments were in flight when the window jumped, and 5 more were
/// delivered: PipeSize is 23, and 11.5 segments are left.
#[test]
fn rfc9959_3_3_a_path_that_becomes_short_ends_in_safe_retreat() {
    for (name, mut sender) in resuming() {
        sender.confirm(SAVED_RTT_MS);
        assert_eq!(sender.flight, 18);
        sender.flight = 60;
        sender.acks(4, SAVED_RTT_MS);
        sender.acks(1, 250);
        assert_eq!((sender.phase().as_str(), sender.window()), ("SafeRetreat", 11), "{name}");
    }
}

/// §3.3: a loss or a mark before the first unvalidated packet is acknowledged; PipeSize is 18 + 4.
#[test]
fn rfc9959_3_3_congestion_ends_in_safe_retreat() {
    for (ecn, (name, mut sender)) in
        [false, true].into_iter().flat_map(|ecn| resuming().into_iter().map(move |s| (ecn, s)))
    {
        sender.confirm(SAVED_RTT_MS);
        sender.flight = 60;
        sender.acks(4, SAVED_RTT_MS);
        sender.lose(ecn);
        assert_eq!((sender.phase().as_str(), sender.window()), ("SafeRetreat", 11), "{name}");
    }
}

/// §3.3: 18 segments were in flight at the jump, and the sender had 50 more. The 19th ACK is that of the first unvalidated one: 49
/// are in flight, and CWND is that; the next ACK validates a segment, and opens the window by it. With all 150 in flight at once, the
/// phase ends before, and CWND stays.
#[test]
fn rfc9959_3_3_the_window_becomes_what_is_in_flight() {
    for (name, mut sender) in resuming() {
        sender.confirm(SAVED_RTT_MS);
        sender.flight = 18 + 50;
        sender.acks(18, SAVED_RTT_MS);
        assert_eq!((sender.phase().as_str(), sender.window()), ("Unvalidated", 150), "{name}");
        sender.acks(1, SAVED_RTT_MS);
        assert_eq!((sender.phase().as_str(), sender.window()), ("Validating", 49), "{name}");
        sender.acks(1, SAVED_RTT_MS);
        assert_eq!(sender.window(), 50, "{name}");
    }
    for (name, mut sender) in resuming() {
        sender.jump();
        sender.acks(1, SAVED_RTT_MS);
        assert_eq!((sender.phase().as_str(), sender.window()), ("Validating", 151), "{name}");
    }
}

/// §3.3, Check flight_size: who has sent 4 segments more than the 18 has used less than PipeSize, 18 + 19. The window is that, and
/// never below the first one.
#[test]
fn a_window_that_was_not_used_becomes_the_pipe() {
    for (name, mut sender) in resuming() {
        sender.confirm(SAVED_RTT_MS);
        sender.flight = 18 + 4;
        sender.acks(19, SAVED_RTT_MS);
        assert_eq!((sender.phase().as_str(), sender.window()), ("none", 37), "{name}");
    }
    for (name, mut sender) in resuming() {
        sender.confirm(SAVED_RTT_MS);
        sender.flight = 1;
        sender.now += Span::from_millis(SAVED_RTT_MS);
        sender.acks(1, SAVED_RTT_MS);
        assert_eq!((sender.phase().as_str(), sender.window()), ("none", 19), "{name}");
    }
}

/// §3.3: the phase lasts no longer than a round trip, also if no ACK comes: a sender that wants to send later asks first.
#[test]
fn the_jump_is_over_after_a_round_trip() {
    for (name, mut sender) in resuming() {
        sender.confirm(SAVED_RTT_MS);
        let begin = sender.now;
        assert_eq!(sender.cc.next_burst(), begin + Span::from_millis(SAVED_RTT_MS) + Span::from_nanos(1), "{name}");
        sender.cc.on_burst(begin + Span::from_millis(SAVED_RTT_MS), 40 * MSS);
        assert_eq!(sender.window(), 150, "{name}: not yet");
        sender.cc.on_burst(sender.cc.next_burst(), 40 * MSS);
        assert_eq!((sender.phase().as_str(), sender.window()), ("Validating", 40), "{name}");
        assert_eq!(sender.cc.next_burst(), Instant::MAX, "{name}");
    }
}

/// §3.4: the ACK of the last unvalidated segment ends Careful Resume, and slow start has gone on.
#[test]
fn the_last_unvalidated_segment_ends_it() {
    for (name, mut sender) in resuming() {
        sender.jump();
        sender.acks(149, SAVED_RTT_MS);
        assert_eq!((sender.phase().as_str(), sender.window()), ("Validating", 150 + 149), "{name}");
        sender.acks(1, SAVED_RTT_MS);
        assert_eq!((sender.phase().as_str(), sender.window()), ("none", 300), "{name}");
        assert_eq!(sender.cc.ssthresh(), Bytes::MAX, "{name}");
    }
}

/// The example of appendix B with 18 segments instead of 29: 34 of the unvalidated ones are acknowledged when a loss is found.
/// PipeSize is 18 + 18 + 34 = 70.
fn in_retreat() -> impl Iterator<Item = (String, Sender)> {
    resuming().into_iter().map(|(name, mut sender)| {
        sender.jump();
        sender.acks(18 + 34, SAVED_RTT_MS);
        sender.lose(false);
        (name, sender)
    })
}

/// §3.5: PipeSize/2 = 35 segments, of a window of 202. It holds at once, without proportional rate reduction (§4.5): the endpoint
/// sees a window that is no larger than its threshold.
#[test]
fn rfc9959_3_5_the_window_falls_to_half_of_the_pipe() {
    for (name, sender) in in_retreat() {
        assert_eq!(
            (sender.phase().as_str(), sender.window(), sender.cc.ssthresh()),
            ("SafeRetreat", 35, 35 * MSS),
            "{name}"
        );
        assert!(sender.cc.requirements().falls_at_once, "{name}");
    }
}

/// CUBIC does not return to a window of which nothing beyond PipeSize was validated: its plateau is 70 segments, not 202.
#[test]
fn the_plateau_of_cubic_is_what_was_validated() {
    let plateaus: Vec<String> = in_retreat()
        .filter(|(name, _)| name.starts_with("cubic"))
        .map(|(_, sender)| {
            let state = sender.cc.state();
            let at = state.find(" w_max: ").unwrap() + 8;
            state[at..].chars().take_while(char::is_ascii_digit).collect()
        })
        .collect();
    assert_eq!(plateaus, ["70"; 3]);
}

/// §3.5: neither ACKs within the recovery nor a mark's ACKs open the window, nor does the end of a recovery.
#[test]
fn rfc9959_3_5_the_window_does_not_grow_in_safe_retreat() {
    for (name, mut sender) in in_retreat() {
        for _ in 0..90 {
            let facts = sender.facts(SAVED_RTT_MS);
            sender.cc.on_recovery_ack(&facts);
            assert_eq!(sender.window(), 35, "{name}");
        }
    }
    for (name, mut sender) in resuming() {
        sender.jump();
        sender.acks(18 + 34, SAVED_RTT_MS);
        sender.lose(true);
        sender.cc.on_recovered(sender.now);
        let mut left = 150 - 52;
        while left > 1 {
            sender.acks(1, SAVED_RTT_MS);
            left -= 1;
            assert_eq!((sender.phase().as_str(), sender.window()), ("SafeRetreat", 35), "{name}");
        }
        sender.acks(1, SAVED_RTT_MS);
        assert_eq!(sender.phase(), "none", "{name}");
    }
}

/// §3.5: with the end of the recovery 98 more are delivered. Half of PipeSize, 70 + 98, is the threshold, and slow start goes on up to
/// it.
#[test]
fn rfc9959_3_5_the_threshold_is_half_of_the_pipe_in_the_end() {
    for (name, mut sender) in in_retreat() {
        sender.recover(98);
        let end = (sender.phase(), sender.window(), sender.cc.ssthresh() / MSS);
        assert_eq!(end, ("none".into(), 35, 84), "{name}");
        sender.flight = 200;
        sender.acks(5, SAVED_RTT_MS);
        assert_eq!(sender.window(), 40, "{name}");
    }
}

/// A second loss within Safe Retreat takes the window down, and never up.
#[test]
fn a_further_loss_takes_the_window_further_down() {
    for (name, mut sender) in in_retreat() {
        sender.flight = 35;
        sender.lose(false);
        assert!(sender.window() < 35 && sender.phase() == "SafeRetreat", "{name}: {}", sender.window());
    }
}

/// §3.5: a pipe of one segment leaves two.
#[test]
fn two_segments_are_the_least() {
    let saved = Saved { cwnd: 300 * MSS, rtt: Span::from_millis(SAVED_RTT_MS) };
    let mut resume = CarefulResume::new(saved, MSS, MSS);
    let one = Ack { in_flight: 2 * MSS, ..driver::ack(MSS, SAVED_RTT_MS) };
    assert_eq!(resume.on_ack(&one), Step::Control);
    assert_eq!(resume.confirm(&one, MSS), Some(150 * MSS));
    assert_eq!(resume.on_loss(&driver::loss(MSS)), Step::Retreat(2 * MSS));
}

/// §3.6: a timeout leaves the control alone, in every phase.
#[test]
fn a_timeout_ends_it() {
    for (name, sender) in resuming().into_iter().chain(in_retreat()) {
        let (mut jumped, mut at_once) = (sender.clone(), sender);
        if jumped.phase() == "Reconnaissance" {
            jumped.jump();
        }
        for sender in [&mut jumped, &mut at_once] {
            sender.cc.on_rto(&driver::loss(10 * MSS));
            assert_eq!((sender.phase().as_str(), sender.cc.pacing_rate()), ("none", None), "{name}");
            sender.flight = 400;
            sender.acks(30, SAVED_RTT_MS);
            assert!(sender.window() < 60, "{name}: {}", sender.window());
        }
    }
}

/// After a time in which nothing was sent the window is the first one, and what was not validated does not come back.
#[test]
fn an_idle_time_ends_a_jump() {
    for (name, mut sender) in resuming() {
        sender.confirm(SAVED_RTT_MS);
        sender.cc.on_idle(sender.now, 10 * MSS);
        assert_eq!((sender.phase().as_str(), sender.window()), ("none", 10), "{name}");
    }
}

/// A control whose parameters ask for nothing is what it was: no wrapper, and no further requirement.
#[test]
fn a_control_without_a_start_has_nothing_around_it() {
    for (name, sender) in each_control(&json!({})) {
        assert!(!matches!(sender.cc, AnyCc::Started(_)), "{name}");
        assert!(!sender.cc.requirements().falls_at_once, "{name}");
    }
    for (name, sender) in each_control(&json!({ "search": true })) {
        assert!(matches!(sender.cc, AnyCc::Started(_)) && !sender.cc.requirements().falls_at_once, "{name}");
        let (heap, state) = (sender.cc.heap_bytes(), sender.cc.state());
        assert!(heap > size_of::<Search>() && name.starts_with(sender.cc.name()), "{name}");
        assert!(!state.contains("HyStart"), "{name}: in its place");
    }
    let plain = each_control(&json!({}));
    assert!(plain.iter().any(|(_, sender)| sender.cc.state().contains("HyStart")));
}

/// A full path: 1000 ACKs a round trip apart in which nothing more is delivered. With a loss before, slow start goes on.
#[test]
fn a_loss_ends_search() {
    for (name, sender) in each_control(&json!({ "search": true })) {
        for loses in [false, true] {
            let mut sender = sender.clone();
            if loses {
                sender.lose(false);
                sender.cc.on_recovered(sender.now);
            }
            assert_eq!(sender.cc.state().contains("search: Some"), !loses, "{name}");
        }
    }
}

/// Lets a control send over a path of 100 ms and `rate` segments per 100 ms, with a queue that holds everything. `look` sees it after
/// each ACK, with the round trips since the start.
fn over_path(cc: &mut AnyCc, rate: u64, rounds: u64, mut look: impl FnMut(f64, &AnyCc)) {
    const RTT_NS: u64 = 100_000_000;
    let mut arrivals = std::collections::VecDeque::from([RTT_NS; 10]);
    let (mut free, mut delivered) = (0, 0);
    while let Some(arrives) = arrivals.pop_front().filter(|arrives| *arrives < rounds * RTT_NS) {
        let now = arrives.max(free);
        free = now + RTT_NS / rate;
        delivered += 1;
        let rtt = Span::from_nanos(RTT_NS + now - arrives);
        let in_flight = (arrivals.len() as u64 + 1) * MSS;
        let facts = Ack { in_flight, delivered: delivered * MSS, rtt: Some(rtt), srtt: rtt, ..driver::ack(MSS, 100) };
        cc.on_ack(&Ack { now: Instant::from_nanos(now), ..facts });
        look(now as f64 / RTT_NS as f64, cc);
        while ((arrivals.len() as u64) + 1) * MSS <= cc.cwnd() {
            arrivals.push_back(now + RTT_NS);
        }
    }
}

/// From ten segments, slow start delivers at the rate of the path after n = 1 + log2(rate / 10) round trips. In these units, and C for
/// what the path holds, S(s) = 2.885 C 2^(s - n) is sent by s <= n, and 2 C per round trip afterwards. What arrives x after n was sent
/// at s = n + (x - 1.443)/2. norm_diff is 0.26 where 3.5 C = 0.74 (S(s) - S(s - 3.5)): s = n + 1.22, x = 3.9. Bins and bursts add up to
/// one round trip. The window is 1 + x times C there. It drains to what arrives in three bins, 1.05 C.
#[test]
fn search_ends_slow_start_four_round_trips_after_the_path_is_full_and_drains_the_queue() {
    for (rate, full) in [(160, 5.0), (1280, 8.0)] {
        for (name, mut sender) in each_control(&json!({ "search": true })) {
            let (mut highest, mut drains, mut over) = (0, None, None);
            over_path(&mut sender.cc, rate, 30, |round, cc| {
                highest = highest.max(cc.cwnd() / MSS);
                if drains.is_none() && cc.state().contains("drain: Some") {
                    drains = Some(round);
                }
                if over.is_none() && cc.ssthresh() < Bytes::MAX {
                    over = Some((round, cc.cwnd() / MSS));
                }
            });
            let (drains, (_, window)) = (drains.unwrap(), over.unwrap());
            assert!((full + 3.8..full + 5.0).contains(&drains), "{name}, {rate}: after {drains} round trips");
            assert!((rate * 9 / 2..rate * 6).contains(&highest), "{name}, {rate}: {highest}");
            assert!((rate..=rate * 11 / 10).contains(&window), "{name}, {rate}: {window}");
        }
    }
}

/// A path that holds everything: slow start is never over, whatever the round trip.
#[test]
fn search_leaves_a_path_alone_that_is_never_full() {
    for (name, mut sender) in each_control(&json!({ "search": true })) {
        over_path(&mut sender.cc, 200_000, 13, |_, cc| assert_eq!(cc.ssthresh(), Bytes::MAX, "{name}"));
        assert!(sender.window() > 20_000, "{name}: {}", sender.window());
    }
}

/// C²ML around it: the window that jumps is no larger than the budget allows, 71 segments of 1 Mbit/s and 600 ms.
#[test]
fn a_budget_holds_while_the_window_jumps() {
    for (name, mut sender) in resuming() {
        sender.cc = sender.cc.with_budget(&driver::SETUP, super::super::c2ml::Form::On, Bytes::new(52));
        let budget = sender.cc.cooperation().unwrap();
        budget.set_budget(Some(Rate::from_bps(1_000_000)));
        for _ in 0..80 {
            sender.acks(1, SAVED_RTT_MS);
            sender.fill();
            assert!(sender.window() <= 71, "{name}: {}", sender.window());
        }
        assert_eq!(sender.window(), 71, "{name}");
    }
}

/// §3.3, Check flight_size, at its bounds: 18 segments in flight are no more than PipeSize, 19 are; a pipe of nothing leaves the first
/// window.
#[test]
fn what_is_in_flight_is_compared_with_the_pipe_and_the_first_window() {
    let saved = Saved { cwnd: 300 * MSS, rtt: Span::from_millis(SAVED_RTT_MS) };
    let end = |left: u64, flight: u64| {
        let mut resume = CarefulResume::new(saved, MSS, 10 * MSS);
        let all = Ack { in_flight: (10 + left) * MSS, ..driver::ack(10 * MSS, SAVED_RTT_MS) };
        resume.on_ack(&all);
        assert_eq!(resume.confirm(&all, 20 * MSS), Some(150 * MSS));
        let step = resume.on_deadline(flight * MSS);
        (step, resume.is_over())
    };
    assert_eq!(end(18, 18), (Step::Window(18 * MSS), true));
    assert_eq!(end(18, 19), (Step::Window(19 * MSS), false));
    assert_eq!(end(4, 9), (Step::Window(10 * MSS), true), "less than the first window");
    assert_eq!(end(4, 10), (Step::Window(10 * MSS), false));
    assert_eq!(end(0, 0), (Step::Window(10 * MSS), true));
}
