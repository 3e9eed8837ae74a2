//! Replay against queueing theory: Poisson arrivals of equal packets before a link of constant rate are M/D/1.
//!
//! With load r and service time S: the mean wait is r S / (2 (1 - r)) (Pollaczek-Khinchine), and an arrival finds the
//! system in state n with the probabilities of the embedded chain: p0 = 1 - r, p1 = (1 - r)(e^r - 1),
//! p2 = (1 - r)(e^2r - e^r (1 + r)) (Crommelin). An arrival waits not at all in state 0, up to S in state 1, and from S
//! to 2 S in state 2.

use penstock_core::config::LinkFacts;
use penstock_core::packet::{Ecn, Ern, FlowId};
use penstock_core::registry::AnyConfig;
use penstock_core::rng::Streams;
use penstock_core::units::{Bytes, Instant, Limit, Rate};
use penstock_trace::arrival::Arrival;
use penstock_trace::replay::replay_each;

/// Time in nanoseconds that 1000 bytes take at 8 Mbit/s.
const SERVICE_NS: f64 = 1e6;

/// Returns the mean wait in service times, and the shares of arrivals that wait 0, up to S, and S to 2 S.
fn m_d_1(load: f64, packets: u64, seed: u64) -> (f64, [f64; 3]) {
    let mut rng = Streams::new(seed).get("arrivals");
    let mut clock = 0.0;
    let arrivals = (0..packets).map(|_| {
        clock += rng.exponential(SERVICE_NS / load);
        let t = Instant::from_nanos(clock as u64);
        Ok(Arrival {
            t,
            flow: FlowId(0),
            label: 0,
            node: None,
            size: Bytes::new(1000),
            ecn: Ecn::NotEct,
            ern: Ern::default(),
            dscp: None,
        })
    });
    let link = LinkFacts { rate: Rate::from_bps(8_000_000), limit: Limit::Packets(u64::MAX) };
    let mut states = [0u64; 3];
    let summary = replay_each(arrivals, &AnyConfig::default_of("droptail").unwrap(), link, seed, |packet| {
        let state = packet.sojourn().as_nanos().div_ceil(SERVICE_NS as u64) as usize;
        if let Some(count) = states.get_mut(state) {
            *count += 1;
        }
    })
    .unwrap();
    assert_eq!(summary.sent, packets);
    assert!((summary.utilization.unwrap() - load).abs() < 0.005, "the link is busy for a share {load} of the time");
    (summary.sojourn_ms.mean * 1e6 / SERVICE_NS, states.map(|n| n as f64 / packets as f64))
}

/// The lengths are such that the standard error of the mean is about a quarter of the 1 % that is allowed: under heavy
/// load the relative variance of the mean of n waits is about 2 r / (1 - r)^2 / n.
#[test]
fn m_d_1_waits_as_theory_says() {
    for (load, packets) in [(0.5, 2_000_000), (0.8, 6_000_000), (0.9, 30_000_000)] {
        let (mean, states) = m_d_1(load, packets, 1);
        let expected = load / (2.0 * (1.0 - load));
        assert!((mean / expected - 1.0).abs() < 0.01, "load {load}: mean wait {mean} S, theory {expected} S");
        let idle = 1.0 - load;
        let (e1, e2) = (libm::exp(load), libm::exp(2.0 * load));
        let shares = [idle, idle * (e1 - 1.0), idle * (e2 - e1 * (1.0 + load))];
        for (n, (share, theory)) in states.iter().zip(shares).enumerate() {
            assert!((share / theory - 1.0).abs() < 0.01, "load {load}: share of state {n} {share}, theory {theory}");
        }
    }
}
