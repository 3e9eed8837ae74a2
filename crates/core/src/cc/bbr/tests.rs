use super::super::driver::{self, MSS};
use super::*;

/// A path: a bottleneck of `rate` bytes per second behind a propagation delay, and a sender that is never short of
/// data. It gives the control what an endpoint would: a sample per segment, by the definition in the draft on delivery
/// rates.
struct Path {
    rate: f64,
    delay: Span,
    /// The link is free again.
    free: Instant,
    now: Instant,
    delivered: Bytes,
    delivered_at: Instant,
    lost: Bytes,
    /// Segments in flight: when the ACK comes, when sent, what was delivered then and when.
    flight: std::collections::VecDeque<(Instant, Instant, Bytes, Instant)>,
    next_send: Instant,
    app_limited: bool,
    /// The largest number of segments in flight since last asked.
    peak: usize,
}

impl Path {
    fn new(segments_per_second: u64, delay_ms: u64) -> Self {
        let start = Instant::ZERO + Span::from_secs(1);
        Self {
            rate: (segments_per_second * MSS).as_f64(),
            delay: Span::from_millis(delay_ms),
            free: start,
            now: start,
            delivered: Bytes::ZERO,
            delivered_at: start,
            lost: Bytes::ZERO,
            flight: std::collections::VecDeque::new(),
            next_send: start,
            app_limited: false,
            peak: 0,
        }
    }

    fn send(&mut self, cc: &Bbr) {
        if self.flight.is_empty() {
            self.delivered_at = self.now;
        }
        self.free = self.free.max(self.now) + Span::from_secs_f64(MSS.as_f64() / self.rate);
        self.flight.push_back((self.free + self.delay, self.now, self.delivered, self.delivered_at));
        self.peak = self.peak.max(self.flight.len());
        let gap = cc.pacing_rate().map_or(0.0, |pace| MSS.as_f64() / pace.bytes_per_sec());
        self.next_send = self.now + Span::from_secs_f64(gap);
    }

    fn acknowledge(&mut self) -> Ack {
        let (now, sent, prior_delivered, prior_at) = self.flight.pop_front().expect("something is in flight");
        let in_flight = (self.flight.len() as u64 + 1) * MSS;
        self.delivered += MSS;
        self.delivered_at = now;
        let rtt = now.since(sent);
        let sample = RateSample {
            prior_delivered,
            interval: now.since(prior_at),
            app_limited: self.app_limited,
            in_flight: in_flight - MSS,
            lost: self.lost,
        };
        Ack {
            now,
            rtt: Some(rtt),
            srtt: rtt,
            in_flight,
            delivered: self.delivered,
            rate: Some(sample),
            ..driver::ack(MSS, 1)
        }
    }

    /// Runs the control until `until`, and tells `watch` after each ACK.
    fn run(&mut self, cc: &mut Bbr, until: Instant, mut watch: impl FnMut(&Bbr, Instant)) {
        while self.now < until {
            let may_send = (self.flight.len() as u64 + 1) * MSS <= cc.cwnd();
            let ack_at = self.flight.front().map_or(Instant::MAX, |first| first.0);
            if may_send && self.next_send.max(self.now) <= ack_at {
                self.now = self.now.max(self.next_send);
                self.send(cc);
            } else {
                self.now = ack_at;
                let ack = self.acknowledge();
                cc.on_ack(&ack);
                watch(cc, self.now);
            }
        }
    }
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Span::from_millis(1000 + ms)
}

/// 1000 segments/s and 40 ms (plus a millisecond of serialization): 41 segments fill the path.
fn settled() -> (Bbr, Path) {
    let mut cc = Bbr::new(&Config::default(), &driver::SETUP);
    let mut path = Path::new(1000, 40);
    path.run(&mut cc, at(2000), |_, _| {});
    assert_eq!(cc.mode, Mode::ProbeBw);
    (cc, path)
}

#[test]
fn the_model_is_the_rate_and_the_delay_of_the_path() {
    let (cc, _) = settled();
    assert!((cc.bandwidth() / 1e6 - 1.0).abs() < 0.01, "{}", cc.bandwidth());
    assert_eq!(cc.min_rtt, Span::from_millis(41));
    // 2 BDP and three quanta of two segments, an even number: 2 41 + 6, or two more if BtlBw is a little higher.
    assert!([88 * MSS, 90 * MSS].contains(&cc.cwnd()), "{}", cc.cwnd());
}

/// 1.25 MB/s for 40 ms are 50 segments, 1.26 MB/s 50.4. A quantum is a segment at 0.8 Mbit/s, two at 8 Mbit/s and, of
/// 6250 bytes in a millisecond, six at 50 Mbit/s.
#[test]
fn the_flight_is_an_even_number_of_segments() {
    let flight = |pace: f64, bandwidth: f64| {
        let cc =
            Bbr { min_rtt: Span::from_millis(40), pacing: Some(pace), ..Bbr::new(&Config::default(), &driver::SETUP) };
        cc.inflight(bandwidth, 1.0) / MSS
    };
    assert_eq!([flight(0.1e6, 1.25e6), flight(1e6, 1.25e6), flight(1e6, 1.26e6)], [54, 56, 58]);
    assert_eq!(flight(6.25e6, 1.25e6), 50 + 18);
}

#[test]
fn startup_drain_and_probing_follow_each_other() {
    let mut cc = Bbr::new(&Config::default(), &driver::SETUP);
    let mut seen = vec![];
    Path::new(1000, 40).run(&mut cc, at(2000), |cc, _| {
        if seen.last() != Some(&cc.mode) {
            seen.push(cc.mode);
        }
    });
    assert_eq!(seen, [Mode::Startup, Mode::Drain, Mode::ProbeBw]);
}

/// The gains of Startup double the rate each round; the first pace is 2.885 windows per round trip, less 1 %.
#[test]
fn startup_paces_at_two_over_ln_two() {
    assert!((Config::default().high_gain - 2.0 / 2f64.ln()).abs() < 0.001);
    let mut cc = Bbr::new(&Config::default(), &driver::SETUP);
    let mut path = Path::new(1000, 40);
    path.send(&cc);
    let ack = path.acknowledge();
    cc.on_ack(&ack);
    let expected = 8.0 * 0.99 * 2.885 * 10_000.0 / 0.041;
    let pace = cc.pacing_rate().map_or(0.0, |rate| rate.as_bps() as f64);
    assert!((pace / expected - 1.0).abs() < 1e-6, "{pace}, {expected}");
}

/// Three rounds without a quarter more: full. A quarter more begins the count anew, and rounds in which the application
/// had too little do not count.
#[test]
fn the_pipe_is_full_after_three_rounds_without_growth() {
    let mut cc = Bbr::new(&Config::default(), &driver::SETUP);
    cc.round_started = true;
    let round = |cc: &mut Bbr, rate: f64, app_limited| {
        cc.round += 1;
        cc.btl_bw.update(cc.round, rate);
        cc.check_full(app_limited);
        cc.filled
    };
    for (rate, app_limited, full) in [
        (100.0, false, false),
        (120.0, false, false),
        (124.0, false, false),
        (125.0, false, false), // a quarter more
        (125.0, false, false),
        (125.0, true, false),
        (130.0, false, false),
        (130.0, false, true),
    ] {
        assert_eq!(round(&mut cc, rate, app_limited), full, "at {rate}");
    }
}

/// Each phase of ProbeBW lasts a round trip, and they are 1.25, 0.75 and six of 1.
#[test]
fn the_gain_cycle_is_that_of_the_paper() {
    let (mut cc, mut path) = settled();
    let mut gains: Vec<(f64, Instant)> = vec![];
    path.run(&mut cc, at(4000), |cc, now| {
        if gains.is_empty() || cc.phase_at > gains[gains.len() - 1].1 {
            gains.push((cc.pacing_gain(), now));
        }
    });
    let first = gains.iter().position(|g| g.0 == 1.25).expect("it probes");
    let cycle: Vec<f64> = gains[first..first + 8].iter().map(|g| g.0).collect();
    assert_eq!(cycle, [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
    let length = gains[first + 8].1.since(gains[first].1).as_millis_f64();
    assert!((8.0 * 41.0..8.0 * 41.0 * 1.3).contains(&length), "{length} ms");
}

#[test]
fn probing_begins_anywhere_but_in_the_phase_that_drains() {
    let mut phases = [0; 8];
    for us in 0..700 {
        let mut cc = Bbr::new(&Config::default(), &driver::SETUP);
        cc.enter_probe_bw(Instant::from_nanos(us * 1000));
        phases[cc.phase] += 1;
    }
    assert_eq!(phases, [100, 0, 100, 100, 100, 100, 100, 100]);
}

/// A link twice as fast is found by probing a quarter more per cycle of eight round trips: 3.1 cycles.
#[test]
fn a_faster_link_is_found() {
    let (mut cc, mut path) = settled();
    path.rate *= 2.0;
    path.run(&mut cc, at(2000 + 5 * 8 * 50), |_, _| {});
    assert!(cc.bandwidth() > 1.95e6, "{}", cc.bandwidth());
}

/// And a slower one after ten round trips, when the old maximum leaves the window.
#[test]
fn a_slower_link_is_believed_after_ten_round_trips() {
    let (mut cc, mut path) = settled();
    path.rate /= 2.0;
    path.run(&mut cc, at(2300), |_, _| {});
    assert!(cc.bandwidth() > 0.9e6);
    path.run(&mut cc, at(6000), |_, _| {});
    assert!((cc.bandwidth() / 0.5e6 - 1.0).abs() < 0.02, "{}", cc.bandwidth());
}

/// Ten seconds after the smallest round trip time was last seen the window falls to four segments, for 200 ms and a
/// round trip, and is restored.
#[test]
fn the_round_trip_time_is_probed_every_ten_seconds_for_200_ms() {
    let (mut cc, mut path) = settled();
    // A longer path: the old minimum is not seen again.
    path.delay = Span::from_millis(60);
    let mut probes: Vec<(Instant, Instant)> = vec![];
    let mut probing = false;
    path.run(&mut cc, at(30_000), |cc, now| {
        if cc.mode == Mode::ProbeRtt {
            assert!(cc.cwnd() <= 4 * MSS);
            if !probing {
                probes.push((now, now));
            }
            let last = probes.len() - 1;
            probes[last].1 = now;
        }
        probing = cc.mode == Mode::ProbeRtt;
    });
    let (begin, end) = probes[0];
    let since = begin.since(at(0)).as_millis_f64();
    assert!((10_000.0..12_200.0).contains(&since), "{since} ms");
    let length = end.since(begin).as_millis_f64();
    assert!((200.0..420.0).contains(&length), "{length} ms");
    assert_eq!(cc.min_rtt, Span::from_millis(61), "the new path is known");
    assert!(cc.cwnd() > 100 * MSS, "and used: {}", cc.cwnd());
}

/// 200 ms are ten round trips of 20 ms, as long as BtlBw is kept for: the last of the four segments in flight then are
/// acknowledged in ProbeBW, and are no reason to slow down. What follows them is sent at three quarters of the rate or
/// faster.
#[test]
fn probing_the_round_trip_time_does_not_lower_the_rate_on_a_short_path() {
    let mut cc = Bbr::new(&Config::default(), &driver::SETUP);
    let mut path = Path::new(4000, 16);
    let (mut probed, mut least) = (false, f64::MAX);
    path.run(&mut cc, at(12_000), |cc, now| {
        probed |= cc.mode == Mode::ProbeRtt;
        if probed && now < at(11_500) {
            least = least.min(cc.bandwidth());
        }
    });
    assert!(probed);
    assert!(least > 0.74 * (4000 * MSS).as_f64(), "{least}");
}

#[test]
fn a_loss_leaves_the_window_and_the_model() {
    let (mut cc, _) = settled();
    let (cwnd, bandwidth, pace) = (cc.cwnd(), cc.bandwidth(), cc.pacing_rate());
    cc.on_loss(&driver::loss(80 * MSS));
    assert_eq!(cc.ssthresh(), cwnd, "recovery does not reduce");
    cc.on_recovered(at(2100));
    assert_eq!((cc.cwnd(), cc.bandwidth(), cc.pacing_rate()), (cwnd, bandwidth, pace));
    cc.on_loss(&Loss { ecn: true, ..driver::loss(80 * MSS) });
    cc.on_recovered(at(2200));
    assert_eq!(cc.cwnd(), cwnd);
}

/// Draft §4.2.3.4. After a loss the first ACK sets the window to what is in flight and what it delivers. In the first round
/// trip the window is at least that, and losses do not lower it below. Then losses are taken off, and each ACK opens the
/// window by what it delivers up to the model's.
#[test]
fn recovery_conserves_packets_for_a_round_trip_and_then_follows_the_model() {
    let (mut cc, mut path) = settled();
    let model = cc.cwnd();
    cc.on_loss(&driver::loss(model));
    path.lost += 20 * MSS;
    path.flight.truncate(path.flight.len() - 20);
    let (before, flight) = (path.delivered, path.flight.len());
    let mut conserved = 0;
    loop {
        path.now = path.flight.front().unwrap().0;
        let ack = path.acknowledge();
        let sample = ack.rate.unwrap();
        if sample.prior_delivered > before {
            break;
        }
        cc.on_recovery_ack(&ack);
        conserved += 1;
        assert_eq!(cc.cwnd(), sample.in_flight + MSS, "one goes for one that arrived");
        path.send(&cc);
    }
    assert_eq!(conserved, flight, "until the ACK of what was sent after the first");
    let (cwnd, ack) = (cc.cwnd(), path.acknowledge());
    path.lost += MSS;
    let lost = Ack { rate: ack.rate.map(|sample| RateSample { lost: path.lost, ..sample }), ..ack };
    cc.on_recovery_ack(&lost);
    assert_eq!(cc.cwnd(), cwnd, "a loss less, a delivery more");
    for _ in 0..100 {
        let ack = path.acknowledge();
        path.send(&cc);
        cc.on_recovery_ack(&Ack { rate: ack.rate.map(|sample| RateSample { lost: path.lost, ..sample }), ..ack });
    }
    assert_eq!(cc.cwnd(), model, "{} segments", cc.cwnd() / MSS);
    cc.on_recovered(path.now);
    assert_eq!(cc.cwnd(), model);
}

#[test]
fn after_a_timeout_the_window_returns_to_the_model_s() {
    let (mut cc, mut path) = settled();
    cc.on_rto(&driver::loss(80 * MSS));
    assert_eq!(cc.cwnd(), MSS);
    path.flight.clear();
    path.free = path.now;
    path.run(&mut cc, at(2600), |_, _| {});
    assert!(cc.cwnd() >= 87 * MSS, "{}", cc.cwnd());
}

#[test]
fn what_the_application_limits_does_not_lower_the_model() {
    let (mut cc, mut path) = settled();
    path.app_limited = true;
    path.rate /= 4.0;
    path.run(&mut cc, at(5000), |_, _| {});
    assert!(cc.bandwidth() > 0.99e6);
}

#[test]
fn without_samples_it_is_slow_start() {
    let mut cc = Bbr::new(&Config::default(), &driver::SETUP);
    (0..10).for_each(|_| cc.on_ack(&driver::ack(MSS, 100)));
    assert_eq!(cc.cwnd(), 20 * MSS);
}

/// By the draft's flow of a rate sample: rounds of 10 segments, of which 3 are lost. A loss begins the first interval,
/// which ends after four rounds with a loss; the second has the same rate, 7 segments per 100 ms.
#[test]
fn a_policer_is_found_after_two_intervals_of_the_same_rate() {
    let mut cc = Bbr::new(&Config::default(), &driver::SETUP);
    cc.mode = Mode::ProbeBw;
    cc.filled = true;
    let mut rates = vec![];
    let (mut delivered, mut lost) = (Bytes::ZERO, Bytes::ZERO);
    for round in 1..=60u64 {
        let prior_delivered = delivered;
        delivered += 7 * MSS;
        lost += 3 * MSS;
        let interval = Span::from_millis(50); // tokens arrive in bursts: the samples say 140 segments/s
        let sample = RateSample { prior_delivered, interval, app_limited: false, in_flight: 10 * MSS, lost };
        cc.on_ack(&Ack { now: at(100 * round), delivered, rate: Some(sample), ..driver::ack(7 * MSS, 100) });
        rates.push(cc.bandwidth());
    }
    let found = rates.iter().position(|rate| (rate / 70e3 - 1.0).abs() < 0.01).expect("the policer is found");
    assert_eq!(found, 7, "two intervals of four rounds; that of the first loss counts");
    let used = rates[found..].iter().take_while(|rate| **rate < 100e3).count();
    assert_eq!(used, 48);
}

/// Losses of a tenth are congestion, or radio, but no policer.
#[test]
fn a_small_loss_is_no_policer() {
    let mut policer = Policer::default();
    let (mut delivered, mut lost) = (Bytes::ZERO, Bytes::ZERO);
    for round in 1..=60u64 {
        delivered += 9 * MSS;
        lost += MSS;
        let interval = Span::from_millis(100);
        let (prior_delivered, in_flight) = (Bytes::ZERO, Bytes::ZERO);
        let sample = RateSample { prior_delivered, interval, app_limited: false, in_flight, lost };
        policer.sample(&Ack { now: at(100 * round), delivered, ..driver::ack(MSS, 100) }, &sample, true, true, true);
        assert_eq!(policer.rate(), None);
    }
}

/// Two intervals that end with losses belong to a policer if their rates are within an eighth of the first, or within
/// 4 kbit/s (500 B/s), of each other.
#[test]
fn a_policer_is_two_intervals_at_one_rate() {
    for (first, second, found) in [
        (1000, 1500, true),
        (1000, 1501, false),
        (1500, 1000, true),
        (80_000, 90_000, true),
        (80_000, 90_001, false),
        (80_000, 70_000, true),
        (80_000, 69_999, false),
    ] {
        let mut policer = Policer::default();
        let (mut delivered, mut lost) = (Bytes::ZERO, Bytes::ZERO);
        let mut now = Instant::ZERO + Span::from_secs(1);
        let mut look = |delivered, lost, now, losses| {
            let sample = RateSample {
                prior_delivered: Bytes::ZERO,
                interval: Span::from_secs(1),
                app_limited: false,
                in_flight: MSS,
                lost,
            };
            let ack = Ack { now, delivered, ..driver::ack(MSS, 100) };
            assert!(!policer.sample(&ack, &sample, losses, true, false));
            policer.rate()
        };
        look(delivered, lost, now, true);
        let mut rate = None;
        for bytes in [first, second] {
            for _ in 0..3 {
                look(delivered, lost, now, false);
            }
            let bytes = Bytes::new(bytes);
            (delivered, lost, now) = (delivered + bytes, lost + bytes, now + Span::from_secs(1));
            rate = look(delivered, lost, now, true);
        }
        let mean = (first + second) as f64 / 2.0;
        assert_eq!(rate, found.then_some(mean), "{first} B/s, then {second} B/s");
    }
}

/// A sample in which nothing was delivered is no round trip and says nothing of the bandwidth.
#[test]
fn a_sample_that_delivered_nothing_begins_no_round_trip() {
    let mut cc = Bbr::new(&Config::default(), &driver::SETUP);
    let sample = RateSample {
        prior_delivered: Bytes::ZERO,
        interval: Span::from_millis(1),
        app_limited: false,
        in_flight: MSS,
        lost: Bytes::ZERO,
    };
    cc.update_bandwidth(&driver::ack(MSS, 100), &sample, false);
    assert_eq!((cc.round, cc.round_started), (0, false));
    cc.update_bandwidth(&Ack { delivered: MSS, ..driver::ack(MSS, 100) }, &sample, false);
    assert_eq!((cc.round, cc.round_started), (1, true));
}

/// draft §4.2.3.6: before the pipe is filled the window opens only while it is below its target, never falls below
/// BBRMinPipeCwnd, and is that while the round trip time is probed.
#[test]
fn the_window_stays_between_its_least_and_its_target() {
    let mut cc = Bbr::new(&Config { min_segments: 10, ..Config::default() }, &driver::SETUP);
    cc.min_rtt = Span::from_millis(100);
    let beyond_the_first_window = Ack { delivered: cc.initial_window, ..driver::ack(MSS, 100) };
    let target = cc.inflight(cc.bandwidth(), cc.cwnd_gain());
    assert!(target < 10 * MSS, "no bandwidth is known");
    let after = |cc: &mut Bbr, cwnd| {
        cc.cwnd = cwnd;
        cc.set_cwnd(&beyond_the_first_window);
        cc.cwnd
    };
    assert_eq!(after(&mut cc, target), 10 * MSS);
    cc.config.min_segments = 1;
    let below = target - Bytes::new(1);
    assert_eq!(after(&mut cc, below), below + MSS);
    assert_eq!(after(&mut cc, target), target);
    // Until an initial window is delivered, the window opens beyond its target as well.
    let still_the_first_window = Ack { delivered: cc.initial_window - Bytes::new(1), ..beyond_the_first_window };
    cc.set_cwnd(&still_the_first_window);
    assert_eq!(cc.cwnd, target + MSS);
    cc.config.min_segments = 10;
    cc.filled = true;
    assert_eq!(after(&mut cc, MSS), 10 * MSS);
    cc.mode = Mode::ProbeRtt;
    assert_eq!(after(&mut cc, 50 * MSS), 10 * MSS);
}

/// §4.3.5: ProbeRTT leads back to Startup while the pipe was never full, and to ProbeBW afterwards.
#[test]
fn probing_the_round_trip_time_ends_where_it_began() {
    for (filled, then) in [(false, Mode::Startup), (true, Mode::ProbeBw)] {
        let mut cc = Bbr { mode: Mode::ProbeRtt, filled, ..Bbr::new(&Config::default(), &driver::SETUP) };
        cc.leave_probe_rtt(at(0));
        assert_eq!(cc.mode, then);
    }
}
