use super::*;
use crate::cc::c2ml::Form;
use crate::cc::newreno::{Config, NewReno};
use crate::cc::{AnyCc, BurstLimit, NAMES, driver};
use driver::MSS;
use std::sync::Mutex;

/// NewReno from outside, with a window that the seed shifts.
#[derive(Debug, Clone)]
struct Outside(NewReno, u64);

impl CongestionControl for Outside {
    crate::cc::without!(requirements, recovery, bursts, advice);

    fn cwnd(&self) -> Bytes {
        self.0.cwnd() + Bytes::new(self.1)
    }
    fn ssthresh(&self) -> Bytes {
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
    fn on_idle(&mut self, now: Instant, initial_window: Bytes) {
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
    fn requirements(&self) -> Requirements {
        Requirements::default()
    }
}

const SETUP: Setup = driver::SETUP;

#[test]
fn a_control_from_outside_is_one_among_all() {
    let control = Control::new("mine", Map::new(), Arc::new(Maker));
    let mut any = AnyCc::Foreign(Box::new(control.make(&SETUP, 3)));
    assert!(!NAMES.contains(&any.name()));
    assert_eq!(
        (any.name(), any.cwnd(), any.pacing_rate()),
        ("mine", Bytes::new(10_003), Some(Rate::from_bps(1_000_000)))
    );
    let loss = Loss { now: Instant::ZERO, in_flight: 8 * MSS, ecn: false };
    any.on_loss(&loss);
    any.on_recovered(Instant::ZERO);
    assert_eq!((any.cwnd(), any.ssthresh()), (Bytes::new(4003), 4 * MSS));
    let mut copy = any.clone();
    copy.on_rto(&loss);
    assert_eq!((copy.cwnd(), any.cwnd()), (Bytes::new(1003), Bytes::new(4003)), "a copy goes its own way");
    assert_ne!(copy, any);
}

#[test]
fn controls_are_equal_if_they_share_the_factory() {
    let one = Control::new("mine", Map::new(), Arc::new(Maker));
    assert_eq!(one, one.clone());
    assert_ne!(one, Control::new("mine", Map::new(), Arc::new(Maker)));
}

/// Writes down what it hears.
#[derive(Debug, Clone)]
struct Records(Arc<Mutex<Vec<String>>>);

impl Records {
    fn hears(&self, what: &str) {
        self.0.lock().unwrap().push(what.to_owned());
    }
}

impl CongestionControl for Records {
    fn cwnd(&self) -> Bytes {
        self.hears("cwnd");
        5 * MSS
    }
    fn ssthresh(&self) -> Bytes {
        self.hears("ssthresh");
        7 * MSS
    }
    fn on_ack(&mut self, _: &Ack) {
        self.hears("on_ack");
    }
    fn on_loss(&mut self, _: &Loss) {
        self.hears("on_loss");
    }
    fn on_recovered(&mut self, _: Instant) {
        self.hears("on_recovered");
    }
    fn on_rto(&mut self, _: &Loss) {
        self.hears("on_rto");
    }
    fn on_idle(&mut self, _: Instant, _: Bytes) {
        self.hears("on_idle");
    }
    fn pacing_rate(&self) -> Option<Rate> {
        self.hears("pacing_rate");
        Some(Rate::from_bps(8_000_000))
    }
    fn requirements(&self) -> Requirements {
        self.hears("requirements");
        Requirements { ect1: true, ..Requirements::default() }
    }
    fn on_recovery_ack(&mut self, _: &Ack) {
        self.hears("on_recovery_ack");
    }
    fn on_notice(&mut self, _: &Notice) {
        self.hears("on_notice");
    }
    fn next_burst(&self) -> Instant {
        self.hears("next_burst");
        Instant::MAX
    }
    fn on_burst(&mut self, _: Instant, _: Bytes) {
        self.hears("on_burst");
    }
    fn advise(&mut self, advice: Advice) {
        self.hears(&format!("{advice:?}"));
    }
}

impl ForeignCc for Records {
    fn copy(&self) -> Box<dyn ForeignCc> {
        Box::new(self.clone())
    }
}

impl MakeCc for Records {
    fn make(&self, _: &Setup, _: u64) -> Box<dyn ForeignCc> {
        Box::new(self.clone())
    }
    fn requirements(&self) -> Requirements {
        Requirements { ack_per_segment: true, ..Requirements::default() }
    }
}

/// Every question and every event, by itself and with C²ML around it, reaches the control, and its answer comes back.
#[test]
fn nothing_that_stands_around_a_control_forgets_a_method() {
    let heard = Arc::new(Mutex::new(vec![]));
    let control = Control::new("records", Map::new(), Arc::new(Records(heard.clone())));
    // The endpoints ask the factory before there is a connection.
    assert_eq!(control.requirements(), Requirements { ack_per_segment: true, ..Requirements::default() });
    let plain = AnyCc::Foreign(Box::new(control.make(&SETUP, 1)));
    let with_budget = plain.clone().with_budget(&SETUP, Form::On, Bytes::new(52));
    let (now, ack) = (Instant::ZERO, driver::ack(MSS, 100));
    let loss = driver::loss(3 * MSS);
    let adopt = Advice::Adopt { cwnd: 3 * MSS, ssthresh: 4 * MSS };
    for mut cc in [plain, with_budget] {
        heard.lock().unwrap().clear();
        assert_eq!((cc.cwnd(), cc.ssthresh()), (5 * MSS, 7 * MSS));
        assert_eq!((cc.pacing_rate(), cc.requirements().ect1), (Some(Rate::from_bps(8_000_000)), true));
        assert_eq!(cc.next_burst(), Instant::MAX);
        cc.on_ack(&ack);
        cc.on_loss(&loss);
        cc.on_recovered(now);
        cc.on_rto(&loss);
        cc.on_idle(now, 4 * MSS);
        cc.on_recovery_ack(&ack);
        cc.on_notice(&Notice::Restart(now));
        cc.on_burst(now, 2 * MSS);
        cc.advise(adopt);
        cc.advise(Advice::LimitBursts(None));
        let expected = [
            "cwnd",
            "ssthresh",
            "pacing_rate",
            "requirements",
            "next_burst",
            "on_ack",
            "on_loss",
            "on_recovered",
            "on_rto",
        ];
        let expected =
            expected.into_iter().chain(["on_idle", "on_recovery_ack", "on_notice", "on_burst"]).map(String::from);
        let advice = [adopt, Advice::LimitBursts(None)].map(|advice| format!("{advice:?}"));
        assert_eq!(*heard.lock().unwrap(), expected.chain(advice).collect::<Vec<_>>());
    }
}

/// 1 Mbit/s in 100 ms are 12,500 bytes, eleven frames of 1052: that is the threshold of the control from its first ACK
/// on.
#[test]
fn a_control_from_outside_hears_the_budget_of_its_node() {
    let heard = Arc::new(Mutex::new(vec![]));
    let control = Control::new("records", Map::new(), Arc::new(Records(heard.clone())));
    let mut cc = AnyCc::Foreign(Box::new(control.make(&SETUP, 1))).with_budget(&SETUP, Form::On, Bytes::new(52));
    let rate = Rate::from_bps(1_000_000);
    cc.cooperation().unwrap().set_budget(Some(rate));
    cc.on_ack(&driver::ack(MSS, 100));
    let heard = heard.lock().unwrap();
    let limit = BurstLimit { rate, frame: Bytes::new(1052) };
    for advice in [Advice::LimitBursts(Some(limit)), Advice::Adopt { cwnd: 5 * MSS, ssthresh: 11 * MSS }] {
        assert!(heard.contains(&format!("{advice:?}")), "{advice:?} is not in {heard:?}");
    }
}
