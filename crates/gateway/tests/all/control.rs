//! Equations 2.1 and 2.2 in the kernel beside the control of the core: real connections of hosts whose budgets go up and
//! down have the windows that the core computes.

use crate::link::GATEWAY;
use crate::scene::{PART, Scene, TCP, WEIGHTS, send};
use nix::sys::signal::Signal;
use penstock_core::cc::c2ml::{C2ml, Form};
use penstock_core::cc::{Ack, AnyCc, CongestionControl, Setup};
use penstock_core::units::{Bytes, Instant, Rate, Span};
use penstock_linux::testing::{skip, wait_until};
use std::fs;

const MSS: Bytes = Bytes::new(1448);
const HEADERS: Bytes = Bytes::new(52);
/// Hosts with a control, and its name.
const CONTROLS: [(usize, &str); 2] = [(2, "c2ml_reno"), (3, "c2ml_cubic")];

/// What `ss` tells of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Seen {
    window: u64,
    threshold: u64,
    smallest_rtt: Span,
}

/// Reads what `ss -tinO` says of the connection with this control that has sent most.
fn seen(text: &str, control: &str) -> Option<Seen> {
    let number =
        |line: &str, key: &str| line.split_whitespace().find_map(|word| word.strip_prefix(key)?.parse::<f64>().ok());
    // A second agent of the same kernel has a control with a number.
    let has =
        |line: &&str| line.split_whitespace().any(|word| word == control || word.starts_with(&format!("{control}_")));
    let sent = |line: &&str| number(line, "bytes_acked:").unwrap_or(0.0) as u64;
    let line = text.lines().filter(has).max_by_key(sent).filter(|line| sent(line) > 10 * MSS.get())?;
    let number = |key: &str| number(line, key);
    let smallest_rtt = Span::from_nanos((number("minrtt:")? * 1e6) as u64);
    Some(Seen { window: number("cwnd:")? as u64, threshold: number("ssthresh:").unwrap_or(0.0) as u64, smallest_rtt })
}

/// The core's control on the same ladder, with ACKs of one segment and nothing lost.
struct Core {
    control: C2ml<AnyCc>,
    now: Instant,
}

impl Core {
    fn new(control: &str) -> Self {
        let setup = Setup { mss: MSS, initial_window: 10 * MSS, initial_ssthresh: Bytes::MAX, paced: false, seed: 1 };
        let name = if control == "c2ml_reno" { "newreno" } else { "cubic-linux" };
        let control = AnyCc::new(name, &setup).unwrap();
        Self { control: C2ml::new(control, &setup, Form::On, HEADERS), now: Instant::ZERO }
    }

    /// Goes on for four round trips with this budget; returns window and threshold in segments.
    fn step(&mut self, budget: Rate, rtt: Span) -> (u64, u64) {
        self.control.set_budget(Some(budget));
        for _ in 0..4 {
            self.now += rtt;
            for _ in 0..self.control.cwnd() / MSS {
                self.control.on_ack(&Ack {
                    now: self.now,
                    acked: MSS,
                    rtt: Some(rtt),
                    srtt: rtt,
                    min_rtt: rtt,
                    in_flight: self.control.cwnd(),
                    cwnd_limited: true,
                    delivered: Bytes::ZERO,
                    marked: Bytes::ZERO,
                    rate: None,
                });
            }
        }
        (self.control.cwnd() / MSS, self.control.ssthresh() / MSS)
    }
}

#[test]
fn windows_in_the_kernel_are_those_of_the_core() {
    let Some(mut scene) = Scene::divided() else { return };
    if let Some(why) = scene.refused("control = \"c2ml_cubic\"") {
        return skip(why);
    }
    let agents = scene.join_each(PART, &["", "", "control = \"c2ml_reno\"", "control = \"c2ml_cubic\""]);
    let hosts = CONTROLS.map(|(host, _)| host);
    let transfers = scene.transfers_of(&hosts, 50, TCP);
    let ports: Vec<u16> = transfers.iter().map(|transfer| transfer.port).collect();
    let look = |at: usize| {
        let (host, control) = CONTROLS[at];
        seen(&scene.sh(&format!("c{host}"), &format!("ss -tinHO dport = :{}", ports[at])), control)
    };
    let mut cores = CONTROLS.map(|(_, control)| Core::new(control));
    // Parts of the whole link, three quarters, a quarter, and the whole again.
    for reverse_rate in [8u64, 6, 2, 8] {
        let set = format!("{} set reverse_rate={reverse_rate}Mbit/s --name {}", GATEWAY, scene.namespace("g"));
        scene.sh("g", &set);
        for (at, (host, control)) in CONTROLS.into_iter().enumerate() {
            // iperf3 has two connections, of which one is silent: both count when they begin, and later one.
            let budget = Rate::from_bps(reverse_rate * 1_000_000 * 95 / 100 * WEIGHTS[host] / 8);
            let mut last = None;
            wait_until(&format!("{control} at {budget}"), || {
                let Some(seen) = look(at) else { return false };
                // Half a microsecond is what `ss` leaves out of the round trip.
                let expected = cores[at].step(budget, seen.smallest_rtt);
                if last != Some((seen, expected)) {
                    eprintln!("{control} at {budget}: {seen:?}, the core {expected:?}");
                }
                last = Some((seen, expected));
                (seen.window, seen.threshold) == expected
            });
        }
    }
    // Nobody is left who could free the connection: the end of the order does.
    let (host, control) = CONTROLS[1];
    send(agents[host], Signal::SIGKILL);
    let guard = fs::read_to_string(format!("/run/penstock/{}.guard", scene.namespace(&format!("c{host}")))).unwrap();
    send(guard.trim().parse().unwrap(), Signal::SIGKILL);
    wait_until(&format!("{control} is free"), || look(1).is_some_and(|seen| seen.window > 2 * 19));
    drop(transfers);
    scene.end_link();
}
