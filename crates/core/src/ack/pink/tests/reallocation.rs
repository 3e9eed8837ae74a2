//! Reallocation: eq. 2 and Figures 2 to 4 by hand, and who gets what on a link.

use super::path::*;
use super::*;

fn gate(reallocation: Reallocation) -> Gate {
    let mut gate = Gate::new(|c| (c.window, c.reallocation) = (Window::Literal, reallocation));
    gate.open(0..4, None, None);
    (0..4).for_each(|f| gate.out(Seg::data(f, ISN + 1, 60_000)));
    gate.wait(WAN + LAN); // past the least round trip, so that these data do not shorten it
    (0..4).for_each(|f| assert!(gate.back(Seg::ack(f, ISN + 1001, 65_535)) > 0));
    (0..4).for_each(|f| assert!(gate.back(Seg::ack(f, ISN + 32_001, 65_535)) > 0));
    gate
}

#[test]
fn eq_2_by_hand() {
    let mut gate = gate(Reallocation::Paper);
    assert_eq!(gate.back(Seg::ack(0, ISN + 33_001, 65_535)), 30_875, "eq. 1: 123500 / 4");
    // Figure 2: flow 1 may send 10000 bytes per 104 ms, 96153 B/s; three share the rest of 1187500 B/s.
    assert_eq!(gate.back(Seg::ack(1, ISN + 33_001, 10_000)), 10_000);
    assert_eq!((gate.pink.shares.lacking, gate.pink.shares.claims), (1, 96_153));
    assert_eq!(gate.back(Seg::ack(0, ISN + 33_001, 65_535)), 37_833); // (1187500 - 96153) * 0.104 / 3
    // Figure 3: it remains bad.
    gate.back(Seg::ack(1, ISN + 33_001, 20_000));
    assert_eq!(gate.pink.shares.claims, 192_307);
    assert_eq!(gate.back(Seg::ack(2, ISN + 33_001, 65_535)), 34_500); // (123500 - 20000) / 3
    // Figure 4: it returns, and is clamped like the others.
    assert_eq!(gate.back(Seg::ack(1, ISN + 33_001, 65_535)), 30_875);
    assert_eq!((gate.pink.shares.lacking, gate.pink.shares.claims, gate.pink.stats.lacking), (0, 0, 0));
}

#[test]
fn without_reallocation_it_is_eq_1() {
    let mut gate = gate(Reallocation::Off);
    gate.back(Seg::ack(1, ISN + 33_001, 10_000));
    assert_eq!(gate.back(Seg::ack(0, ISN + 33_001, 65_535)), 30_875);
}

#[test]
fn when_all_are_bad_nothing_is_divided_by_zero_and_the_first_to_ask_gets_the_rest() {
    let mut gate = gate(Reallocation::Paper);
    (0..4).for_each(|f| assert_eq!(gate.back(Seg::ack(f, ISN + 33_001, 20_000)), 20_000));
    assert_eq!((gate.pink.shares.lacking, gate.pink.shares.n), (4, 4));
    assert_eq!(gate.back(Seg::ack(2, ISN + 33_001, 65_535)), 63_500, "123500 less three times 20000");
    assert_eq!(gate.pink.shares.lacking, 3);
}

#[test]
fn what_a_flow_left_returns_when_it_goes() {
    let ways: [fn(&mut Gate); 3] = [
        |gate| {
            gate.back(Seg::ack(1, ISN + 33_001, 65_535).with(TcpFlags::RST));
        },
        |gate| {
            gate.out(Seg::data(1, ISN + 60_001, 0).with(TcpFlags::FIN));
            gate.back(Seg::ack(1, ISN + 60_002, 10_000));
        },
        |gate| {
            gate.wait(Span::from_secs(59));
            [0, 2, 3].into_iter().for_each(|f| gate.out(Seg::data(f, ISN + 60_001, 1000)));
            gate.wait(Span::from_secs(2));
        },
    ];
    for go in ways {
        let mut gate = gate(Reallocation::Paper);
        gate.back(Seg::ack(1, ISN + 33_001, 10_000));
        go(&mut gate);
        assert_eq!(gate.back(Seg::ack(0, ISN + 33_001, 65_535)), 41_166, "123500 / 3");
        assert_eq!((gate.pink.shares.lacking, gate.pink.shares.claims, gate.pink.active()), (0, 0, 3));
    }
}

/// Figures 2 to 4 to the letter: one flow that can use 2 of 10, among `n`, judged again and again. The rate given out.
fn to_the_letter(n: f64) -> f64 {
    let (bw, used) = (10.0, 2.0);
    let (mut free, mut own) = (0.0, 0.0);
    for _ in 0..100 {
        let pink = bw / n + free / (n - 1.0);
        free -= own;
        own = pink - used;
        free += own;
    }
    (n - 1.0) * (bw / n + free / (n - 1.0)) + used
}

#[test]
fn the_letter_of_the_figures_gives_out_more_than_there_is() {
    assert!(to_the_letter(2.0) > 100.0, "with one good flow it grows without bound");
    assert!((to_the_letter(4.0) - 10.25).abs() < 1e-9, "with three, what is handed on counts as wasted again");
}

/// Mbit/s of payload that each host receives after the first five of twenty-five seconds.
fn rates(edit: impl FnOnce(&mut Config), hosts: Vec<Host>) -> (Vec<f64>, Path) {
    let mut path = Path::new(edit, LINK, hosts);
    path.run_until(at_ms(5000));
    path.take_received();
    path.run_until(at_ms(25_000));
    let rates = path.take_received().iter().map(|bytes| *bytes as f64 * 8.0 / 20e6).collect();
    (rates, path)
}

fn assert_near(rates: &[f64], expected: &[f64]) {
    assert_eq!(rates.len(), expected.len());
    for (rate, expected) in rates.iter().zip(expected) {
        assert!((rate / expected - 1.0).abs() < 0.06, "{rates:?} instead of {expected:?}");
    }
}

/// §6.4: the receiver's window allows 2 Mbit/s, as a PINK before another bottleneck would.
fn told_two_mbit(host: Host) -> Host {
    Host { told: (2e6 / 8.0 * 0.1 / 128.0) as u16, ..host }
}

#[test]
fn figures_20_and_21_what_the_bad_flow_leaves_goes_to_the_good() {
    let hosts = |n| {
        let mut hosts = greedy(n);
        hosts[1] = told_two_mbit(hosts[1].clone());
        hosts
    };
    let run = |reallocation, n| rates(|c| c.reallocation = reallocation, hosts(n)).0;
    assert_near(&run(Reallocation::Off, 2), &[4.75, 2.0]);
    for reallocation in [Reallocation::Paper, Reallocation::MaxMin] {
        assert_near(&run(reallocation, 2), &[7.5, 2.0]);
        assert_near(&run(reallocation, 4), &[2.5, 2.0, 2.5, 2.5]);
        // From five flows on its share is below 2 Mbit/s and nothing is left over.
        assert_near(&run(reallocation, 8), &[9.5 / 8.0; 8]);
    }
}

#[test]
fn max_min_gives_each_what_it_can_use_and_the_rest_in_equal_parts() {
    let mut hosts = greedy(6);
    hosts[0].app = Some(62_500); // 0.5 Mbit/s
    hosts[1].cwnd_limit = 15_000; // 1.2 Mbit/s over 100 ms: ten segments are 1.16
    hosts[2] = Host { told: (1.5e6 / 8.0 * 0.1 / 128.0) as u16, ..hosts[2].clone() };
    let (max_min, path) = rates(|c| c.reallocation = Reallocation::MaxMin, hosts.clone());
    // 9.5 - 0.5 - 1.16 - 1.5 = 6.34 for three.
    assert_near(&max_min[..2], &[0.5, 1.16]);
    let rest = max_min[3..].iter().sum::<f64>();
    assert!(rest > 0.93 * 6.34 && rest < 1.02 * 6.34, "{max_min:?}");
    assert_near(&max_min[3..], &[rest / 3.0; 3]);
    assert!(path.wait_at(0.99, at_ms(5000), at_ms(25_000)) < Span::from_millis(20));
    // The paper sees only the flow whose window is told: 9.5 - 1.5 for five.
    let (paper, _) = rates(|c| c.reallocation = Reallocation::Paper, hosts);
    assert_near(&paper[3..], &[1.6; 3]);
}

#[test]
fn hardly_anybody_is_misjudged_in_start_up_after_cuts_or_for_delaying_acks() {
    for stretch in [1, 2] {
        let mut hosts = greedy(4);
        // Four more join after ten seconds, and cut the shares of the first in half.
        hosts.extend((0..4).map(|i: u64| Host::new(at_ms(10_000 + i), Span::from_millis(60 + 40 * i))));
        hosts.iter_mut().for_each(|host| host.stretch = stretch);
        let mut path = Path::new(|c| c.reallocation = Reallocation::MaxMin, LINK, hosts);
        let mut lacking = 0;
        for ms in (0..20_000).step_by(20) {
            path.run_until(at_ms(ms));
            lacking += path.pink().stats.lacking;
        }
        // 6000 looks at flows: 0.5 %; where a lone segment's ACK waits, which looks like a pause, 3 %.
        assert!(lacking <= if stretch == 1 { 30 } else { 180 }, "stretch {stretch}: {lacking}");
        assert!(path.utilization(at_ms(5000), at_ms(20_000), LINK) > 0.93);
    }
}

#[test]
fn a_flow_that_pauses_lends_its_share_and_takes_it_back() {
    let mut hosts = greedy(2);
    hosts[1].app = Some(0);
    hosts[1].start = Instant::ZERO;
    let mut path = Path::new(|c| c.reallocation = Reallocation::MaxMin, LINK, hosts);
    path.run_until(at_ms(1000));
    path.hosts[1].app = None;
    path.run_until(at_ms(10_000));
    path.take_received();
    path.hosts[1].app = Some(0); // and has nothing more to write
    path.run_until(at_ms(12_000));
    path.take_received();
    path.run_until(at_ms(17_000));
    let alone = path.take_received()[0] as f64 * 8.0 / 5e6;
    assert!(alone > 9.0, "{alone} Mbit/s, the other being quiet");
    assert_eq!((path.pink().stats.active, path.pink().stats.lacking), (2, 1));
    path.hosts[1].app = None;
    path.kick(1);
    path.run_until(at_ms(20_000));
    path.take_received();
    path.run_until(at_ms(30_000));
    let rates: Vec<f64> = path.take_received().iter().map(|b| *b as f64 * 8.0 / 10e6).collect();
    assert_near(&rates, &[4.75; 2]);
}
