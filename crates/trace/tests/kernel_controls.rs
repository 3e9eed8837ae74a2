//! The Linux forms of the congestion controls beside the kernel's own modules: 500 scripted rounds of each
//! (`tests/data/README.md`).

use penstock_core::settings::control_from_settings;
use penstock_core::units::{Bytes, Span};
use penstock_trace::control::{Endpoint, Event, Round, play_rounds};

/// One line of a reference; windows are in segments.
struct Line {
    round: Round,
    ssthresh: u64,
    cwnd_end: u64,
}

fn lines(text: &str) -> Vec<Line> {
    let line = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        let number = |at: usize| cells[at].parse().unwrap();
        let round = Round { t_us: number(1), segments: number(2), event: Event::named(cells[4]) };
        Line { round, ssthresh: number(3), cwnd_end: number(5) }
    };
    text.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())).map(line).collect()
}

/// The largest difference of windows in segments over all rounds, and the number of rounds that differ.
fn difference(name: &str, settings: &[&str], reference: &str) -> (u64, usize) {
    let settings: Vec<String> = settings.iter().map(ToString::to_string).collect();
    let cc = control_from_settings(name, &settings).unwrap();
    let lines = lines(reference);
    assert_eq!(lines.len(), 500, "{name}");
    let mut endpoint = Endpoint::default();
    let mss = endpoint.setup.mss;
    endpoint.setup.initial_window = lines[0].round.segments * mss;
    endpoint.setup.initial_ssthresh = lines[0].ssthresh * mss;
    let played = play_rounds(&cc, &endpoint, Span::from_millis(100), lines.iter().map(|line| line.round));
    let segments = |size: Bytes| size / mss;
    let apart: Vec<u64> =
        lines.iter().zip(played).map(|(line, (cwnd, _))| segments(cwnd).abs_diff(line.cwnd_end)).collect();
    (*apart.iter().max().unwrap(), apart.iter().filter(|apart| **apart > 0).count())
}

macro_rules! reference {
    ($name:literal) => {
        include_str!(concat!("data/tcp_", $name, "_rtt100.csv"))
    };
}

#[test]
fn every_window_is_that_of_the_kernel() {
    for (name, setting, reference) in [
        ("newreno", "compat=linux", reference!("reno")),
        ("scalable", "compat=linux", reference!("scalable")),
        ("highspeed", "compat=linux", reference!("highspeed")),
        ("hybla", "compat=linux", reference!("hybla")),
        ("bic", "compat=linux", reference!("bic")),
        ("cubic-linux", "hystart=true", reference!("cubic")),
        ("cubic-linux", "hystart=false", reference!("cubic_nohystart")),
    ] {
        assert_eq!(difference(name, &[setting], reference), (0, 0), "{name}");
    }
}

/// Westwood+ begins its samples at a tick that the references do not tell: its threshold after a loss may be a segment
/// away, and with it the windows until the next one.
#[test]
fn westwood_is_within_a_segment_of_the_kernel() {
    let (largest, _) = difference("westwood", &["compat=linux"], reference!("westwood"));
    assert!(largest <= 1, "{largest} segments");
}

/// What makes the test worth something: the forms of the literature are far away.
#[test]
fn the_forms_of_the_literature_are_not_the_kernels() {
    for (name, reference) in [("bic", reference!("bic")), ("hybla", reference!("hybla"))] {
        let (largest, _) = difference(name, &[], reference);
        assert!(largest > 100, "{name}: {largest}");
    }
}
