use super::*;
use crate::packet::{Ecn, FlowId};
use crate::qdisc::Qdisc;
use crate::registry::AnyConfig;
use crate::rng::Streams;
use crate::testing::Numbered;
use crate::units::{Bytes, Limit, Rate};

#[derive(Debug)]
struct Maker;

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
    fn on_fact(&mut self, _: &Fact, _: Instant) {}
    fn copy(&self) -> Box<dyn ForeignAqm> {
        Box::new(self.clone())
    }
}

impl MakeAqm for Maker {
    fn make(&self, _: &LinkFacts) -> Box<dyn ForeignAqm> {
        Box::<Alternates>::default()
    }
}

#[test]
fn an_aqm_from_outside_judges_a_queue() {
    let parameters = Map::from_iter([("target_ms".to_owned(), Value::from(5))]);
    let config = AnyConfig::Foreign(Config::new("mine", parameters, Arc::new(Maker)));
    assert_eq!((config.name(), config.validate()), ("mine", Ok(())));
    assert_eq!(serde_json::to_value(&config).unwrap(), serde_json::json!({ "target_ms": 5 }));
    let link = LinkFacts { rate: Rate::from_bps(8_000_000), limit: Limit::Packets(3) };
    let (mut queue, mut rng) = (config.build::<Numbered>(&link), Streams::new(1).get("mine"));
    for ecn in [Ecn::Ect0, Ecn::NotEct, Ecn::Ect0, Ecn::Ect0, Ecn::Ect0] {
        let _ = queue.enqueue(
            Numbered::new(0, FlowId(0), Bytes::new(1000)).with_ecn(ecn),
            Instant::ZERO,
            &mut rng,
            &mut (),
        );
    }
    let sent: Vec<_> = std::iter::from_fn(|| queue.dequeue(Instant::ZERO, &mut rng, &mut ())).collect();
    assert_eq!(
        sent,
        [Numbered::new(0, FlowId(0), Bytes::new(1000)).with_ecn(Ecn::Ce); 2],
        "the second of three was dropped"
    );
    let stats = queue.stats();
    assert_eq!((stats.marked.packets, stats.dropped_dequeue.packets), (3, 1));
    assert_eq!(stats.dropped_early.packets, 1, "what cannot be marked is dropped");
    assert_eq!(stats.dropped_overflow.packets, 1, "the limit is the queue's");
    assert_eq!(stats.check(queue.backlog()), Ok(()));
}
