use super::*;
use crate::cc::newreno::{Config, NewReno};
use crate::cc::{AnyCc, NAMES};

/// NewReno from outside, with a window that the seed shifts.
#[derive(Debug, Clone)]
struct Outside(NewReno, u64);

impl CongestionControl for Outside {
    fn cwnd(&self) -> u64 {
        self.0.cwnd() + self.1
    }
    fn ssthresh(&self) -> u64 {
        self.0.ssthresh()
    }
    fn on_ack(&mut self, ack: &Ack) {
        self.0.on_ack(ack);
    }
    fn on_loss(&mut self, loss: &Loss) {
        self.0.on_loss(loss);
    }
    fn on_recovered(&mut self, now: Instant) {
        self.0.on_recovered(now);
    }
    fn on_rto(&mut self, loss: &Loss) {
        self.0.on_rto(loss);
    }
    fn on_idle(&mut self, now: Instant, initial_window: u64) {
        self.0.on_idle(now, initial_window);
    }
    fn pacing_rate(&self) -> Option<Rate> {
        Some(Rate::from_bps(1_000_000))
    }
}

impl ForeignCc for Outside {
    fn copy(&self) -> Box<dyn ForeignCc> {
        Box::new(self.clone())
    }
}

#[derive(Debug)]
struct Maker;

impl MakeCc for Maker {
    fn make(&self, setup: &Setup, seed: u64) -> Box<dyn ForeignCc> {
        Box::new(Outside(NewReno::new(&Config::default(), setup), seed))
    }
    fn wants(&self) -> Wants {
        Wants::default()
    }
}

const SETUP: Setup = Setup { mss: 1000, initial_window: 10_000, initial_ssthresh: u64::MAX };

#[test]
fn a_control_from_outside_is_one_among_all() {
    let control = Control::new("mine", Map::new(), Arc::new(Maker));
    let mut any = AnyCc::Foreign(Box::new(control.make(&SETUP, 3)));
    assert!(!NAMES.contains(&any.name()));
    assert_eq!((any.name(), any.cwnd(), any.pacing_rate()), ("mine", 10_003, Some(Rate::from_bps(1_000_000))));
    let loss = Loss { now: Instant::ZERO, in_flight: 8000, ecn: false };
    any.on_loss(&loss);
    any.on_recovered(Instant::ZERO);
    assert_eq!((any.cwnd(), any.ssthresh()), (4003, 4000));
    let mut copy = any.clone();
    copy.on_rto(&loss);
    assert_eq!((copy.cwnd(), any.cwnd()), (1003, 4003), "a copy goes its own way");
    assert_ne!(copy, any);
}

#[test]
fn controls_are_equal_if_they_share_the_factory() {
    let one = Control::new("mine", Map::new(), Arc::new(Maker));
    assert_eq!(one, one.clone());
    assert_ne!(one, Control::new("mine", Map::new(), Arc::new(Maker)));
}
