use super::*;
use crate::cc::{AnyCc, NAMES, newreno::NewReno};
use crate::packet::{Ecn, FlowId, NoTcp, Packet};
use crate::qdisc::Qdisc;
use crate::registry::AnyConfig;
use crate::rng::Streams;
use crate::units::{Bytes, Limit};

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
        Box::new(Outside(NewReno::new(setup), seed))
    }
    fn wants(&self) -> Wants {
        Wants::default()
    }
}

/// Marks what arrives, drops every second packet that leaves.
#[derive(Debug, Clone, Default)]
struct Alternates(u64);

impl ForeignAqm for Alternates {
    fn on_enqueue(&mut self, _: &Meta, _: Backlog, _: Instant, _: &mut Rng) -> Verdict {
        Verdict::Mark
    }
    fn on_dequeue(&mut self, _: &Meta, _: Span, _: Backlog, _: Instant, _: &mut Rng) -> Verdict {
        self.0 += 1;
        if self.0.is_multiple_of(2) { Verdict::Drop } else { Verdict::Pass }
    }
    fn copy(&self) -> Box<dyn ForeignAqm> {
        Box::new(self.clone())
    }
}

impl MakeAqm for Maker {
    fn make(&self, _: &LinkFacts) -> Box<dyn ForeignAqm> {
        Box::<Alternates>::default()
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Thing(Ecn);

impl Packet for Thing {
    type Tcp = NoTcp;

    fn size(&self) -> Bytes {
        Bytes::new(1000)
    }
    fn flow(&self) -> FlowId {
        FlowId(0)
    }
    fn ecn(&self) -> Ecn {
        self.0
    }
    fn mark_ce(&mut self) {
        self.0 = Ecn::Ce;
    }
    fn tcp(&mut self) -> Option<&mut NoTcp> {
        None
    }
}

const SETUP: Setup = Setup { mss: 1000, initial_window: 10_000, initial_ssthresh: u64::MAX, hystart: false };

#[test]
fn a_control_from_outside_is_one_among_all() {
    let control = Control::new("mine", Arc::new(Maker));
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
    let one = Control::new("mine", Arc::new(Maker));
    assert_eq!(one, one.clone());
    assert_ne!(one, Control::new("mine", Arc::new(Maker)));
}

#[test]
fn an_aqm_from_outside_judges_a_queue() {
    let parameters = Map::from_iter([("target_ms".to_owned(), Value::from(5))]);
    let config = AnyConfig::Foreign(Config::new("mine", parameters, Arc::new(Maker)));
    assert_eq!((config.name(), config.validate()), ("mine", Ok(())));
    assert_eq!(serde_json::to_value(&config).unwrap(), serde_json::json!({ "target_ms": 5 }));
    let link = LinkFacts { rate: Rate::from_bps(8_000_000), limit: Limit::Packets(3) };
    let (mut queue, mut rng) = (config.build::<Thing>(&link), Streams::new(1).get("mine"));
    for ecn in [Ecn::Ect0, Ecn::NotEct, Ecn::Ect0, Ecn::Ect0, Ecn::Ect0] {
        let _ = queue.enqueue(Thing(ecn), Instant::ZERO, &mut rng, &mut ());
    }
    let sent: Vec<_> = std::iter::from_fn(|| queue.dequeue(Instant::ZERO, &mut rng, &mut ())).collect();
    assert_eq!(sent, [Thing(Ecn::Ce), Thing(Ecn::Ce)], "the second of three was dropped");
    let stats = queue.stats();
    assert_eq!((stats.marked.packets, stats.dropped_dequeue.packets), (3, 1));
    assert_eq!(stats.dropped_early.packets, 1, "what cannot be marked is dropped");
    assert_eq!(stats.dropped_overflow.packets, 1, "the limit is the queue's");
    assert_eq!(stats.check(queue.backlog()), Ok(()));
}
