//! Every wrapper of a discipline or an AQM passes on every fact. Behind each wrapper is a probe which records the
//! facts.

use penstock_core::ack::AckPath;
use penstock_core::ack::gate::Gate;
use penstock_core::allocation::Members;
use penstock_core::aqm::{Aqm, Meta};
use penstock_core::config::LinkFacts;
use penstock_core::fact::{Fact, Greeting, Opening, Whom};
use penstock_core::foreign::{Config, ForeignAqm, MakeAqm};
use penstock_core::fq::{FlowQueue, Parameters};
use penstock_core::packet::{FlowId, NodeId};
use penstock_core::qdisc::{Backlog, Qdisc, Verdict};
use penstock_core::queue::Fifo;
use penstock_core::registry::tree::{self, Member};
use penstock_core::registry::{AnyAqmConfig, AnyConfig, AnyQdisc, NAMES};
use penstock_core::rng::{Rng, Streams};
use penstock_core::sched::Weight;
use penstock_core::sched::tree::Branch;
use penstock_core::testing::Numbered;
use penstock_core::units::{Bytes, Instant, Limit, Rate, Span};
use std::sync::{Arc, Mutex};

const LINK: LinkFacts = LinkFacts { rate: Rate::from_bps(10_000_000), limit: Limit::Packets(100) };

/// One fact of each kind.
fn every_fact() -> Vec<Fact> {
    let (flow, node, rate) = (FlowId(1), NodeId(1), Rate::from_bps(3_000_000));
    let greeting = Greeting::default();
    let all = vec![
        Fact::Rate(rate),
        Fact::Channel { station: 1, loss: 0.5 },
        Fact::Owner { flow, node },
        Fact::Class { flow, class: 3 },
        Fact::Budget { node, budget: Some(rate) },
        Fact::Gone(node),
        Fact::FlowGone(flow),
        Fact::Opened(Opening {
            flow,
            from_inside: true,
            opener: greeting,
            other: greeting,
            asked: None,
            answered: None,
        }),
        Fact::Rest(rate),
        Fact::Odds(0.5),
        Fact::Advised(Members { n: 3, lacking: 1, claims: 1_000_000 }),
    ];
    // A new variant fails to compile here until it has a number, and fails the test until it is in the list above.
    let number = |fact: &Fact| match fact {
        Fact::Rate(_) => 0,
        Fact::Channel { .. } => 1,
        Fact::Owner { .. } => 2,
        Fact::Class { .. } => 3,
        Fact::Budget { .. } => 4,
        Fact::Gone(_) => 5,
        Fact::FlowGone(_) => 6,
        Fact::Opened(_) => 7,
        Fact::Rest(_) => 8,
        Fact::Odds(_) => 9,
        Fact::Advised(_) => 10,
    };
    assert!(all.iter().map(number).eq(0..11));
    all
}

/// An AQM that records the facts it receives.
#[derive(Debug, Clone, Default)]
struct Probe(Vec<Fact>);

impl AckPath for Probe {}
impl Aqm for Probe {
    fn on_fact(&mut self, fact: &Fact, _: Instant) {
        self.0.push(*fact);
    }
}

fn tell_all(queue: &mut impl Qdisc<Numbered>, facts: &[Fact]) {
    facts.iter().for_each(|fact| queue.on_fact(fact, Instant::ZERO));
}

#[test]
fn a_fifo_tells_its_aqm() {
    let mut queue = Fifo::new(LINK.limit, Probe::default());
    tell_all(&mut queue, &every_fact());
    assert_eq!(queue.aqm().0, every_fact());
}

/// The AQM of a queue that is first used later starts with the facts received before, including facts about the rate.
#[test]
fn flow_queues_tell_the_aqm_of_each_queue_whenever_it_is_first_used() {
    let parameters = Parameters { flows: 8, perturbation: Some(1), ..Parameters::default() };
    let mut queue = FlowQueue::new(LINK.limit, &parameters, Probe::default());
    let mut rng = Streams::new(1).get("facts");
    let facts = every_fact();
    let told = |queue: &FlowQueue<Numbered, Probe>, facts: &[Fact]| {
        (0..8).filter(|at| queue.aqm(*at).is_some_and(|aqm| aqm.0 == facts)).count()
    };
    let _ = queue.enqueue(Numbered::new(0, FlowId(0), Bytes::new(1000)), Instant::ZERO, &mut rng, &mut ());
    tell_all(&mut queue, &facts[..3]);
    assert_eq!(told(&queue, &facts[..3]), 1, "the queue in use");
    for flow in 1..100 {
        let _ = queue.enqueue(Numbered::new(1, FlowId(flow), Bytes::new(1000)), Instant::ZERO, &mut rng, &mut ());
    }
    assert_eq!(told(&queue, &facts[..3]), 8, "queues used since");
    tell_all(&mut queue, &facts[3..]);
    assert_eq!(told(&queue, &facts), 8);
}

#[test]
fn a_gate_tells_its_element_and_the_discipline_behind() {
    let mut gate = Gate::new(Probe::default(), Fifo::new(LINK.limit, Probe::default()));
    tell_all(&mut gate, &every_fact());
    assert_eq!(gate.element().0, every_fact());
    assert_eq!(gate.queue().aqm().0, every_fact());
}

/// A foreign AQM, which records the facts where the test can read them.
#[derive(Debug, Clone, Default)]
struct Outside(Arc<Mutex<Vec<Fact>>>);

impl ForeignAqm for Outside {
    fn on_enqueue(&mut self, _: &Meta, _: Backlog, _: Instant, _: &mut Rng) -> Verdict {
        Verdict::Pass
    }
    fn on_dequeue(&mut self, _: &Meta, _: Span, _: Backlog, _: Instant, _: &mut Rng) -> Verdict {
        Verdict::Pass
    }
    fn on_fact(&mut self, fact: &Fact, _: Instant) {
        self.0.lock().unwrap().push(*fact);
    }
    fn copy(&self) -> Box<dyn ForeignAqm> {
        Box::new(self.clone())
    }
}

impl MakeAqm for Outside {
    fn make(&self, _: &LinkFacts) -> Box<dyn ForeignAqm> {
        Box::new(self.clone())
    }
}

#[test]
fn a_foreign_aqm_is_told_as_one_of_the_registry() {
    let outside = Outside::default();
    let config = AnyConfig::Foreign(Config::new("mine", serde_json::Map::new(), Arc::new(outside.clone())));
    tell_all(&mut config.build::<Numbered>(&LINK), &every_fact());
    assert_eq!(*outside.0.lock().unwrap(), every_fact());
}

/// A tree tells a fact only the queues of those whom it concerns.
#[test]
fn a_tree_tells_those_whom_a_fact_concerns() {
    let probes: [Outside; 3] = Default::default();
    let queue = |at: usize| AnyConfig::Foreign(Config::new("mine", Default::default(), Arc::new(probes[at].clone())));
    let branch = Branch { parent: None, weight: Weight::new(1).unwrap(), guaranteed: None, ceiling: None };
    let member =
        |at: usize| Member { name: format!("member {at}"), branch, queue: Some((NodeId(at as u32), queue(at))) };
    let config = tree::Config { members: vec![member(0), member(1)], others: queue(2) };
    let mut tree = config.build::<Numbered>(&LINK);
    tell_all(&mut tree, &[Fact::Owner { flow: FlowId(1), node: NodeId(1) }]);
    for fact in every_fact() {
        probes.iter().for_each(|probe| probe.0.lock().unwrap().clear());
        tell_all(&mut tree, &[fact]);
        let told = |at: usize| probes[at].0.lock().unwrap().len();
        let all = fact.concerns() == Whom::All;
        assert_eq!([told(0), told(1), told(2)], [usize::from(all), 1, usize::from(all)], "{fact:?}");
    }
}

/// The text of an enum's variant without the variant's name.
fn inner(text: &str) -> &str {
    let (_, inner) = text.split_once('(').expect("a variant with a value");
    inner.strip_suffix(')').expect("a variant with a value")
}

/// An AQM chosen by name reaches the state of the AQM used directly, and reports equal values.
#[test]
fn an_aqm_by_name_is_told_as_one_alone() {
    let mut changed = Vec::new();
    for name in AnyAqmConfig::NAMES {
        let config = AnyConfig::default_of(name).unwrap();
        let fresh: AnyQdisc<Numbered> = config.build(&LINK);
        let mut alone = fresh.clone();
        let parameters = serde_json::to_value(&config).unwrap();
        let mut by_name = AnyAqmConfig::per_flow(name).unwrap().read_as_this(parameters).unwrap().aqm(&LINK);
        for fact in every_fact() {
            alone.on_fact(&fact, Instant::ZERO);
            by_name.on_fact(&fact, Instant::ZERO);
            let state = format!("{by_name:?}");
            assert!(format!("{alone:?}").contains(inner(&state)), "{name} after {fact:?}: {state}");
            assert_eq!(by_name.report(), alone.report(), "{name} after {fact:?}");
        }
        if format!("{alone:?}") != format!("{fresh:?}") {
            changed.push(*name);
        }
    }
    assert_eq!(changed, ["an-aqm", "cobalt", "rem", "avq", "blue", "qrm"], "those that use facts");
}

/// QRM behind PINK reaches the state of QRM alone.
#[test]
fn the_queue_behind_pink_is_told() {
    let build = |name, parameters| {
        let config = AnyConfig::deserialize(name, parameters).unwrap().unwrap();
        config.build::<Numbered>(&LINK)
    };
    let mut pink = build("pink", serde_json::json!({ "queue": "qrm" }));
    let mut alone = build("qrm", serde_json::json!({ "slack": "4500B" })); // three packets, as PINK sets it
    for fact in every_fact() {
        let before = inner(&format!("{alone:?}")).to_owned();
        pink.on_fact(&fact, Instant::ZERO);
        alone.on_fact(&fact, Instant::ZERO);
        let after = inner(&format!("{alone:?}")).to_owned();
        assert!(format!("{pink:?}").contains(&after), "after {fact:?}");
        let uses = !matches!(
            fact,
            Fact::Channel { .. } | Fact::Class { .. } | Fact::Opened(_) | Fact::Advised(_) | Fact::Odds(_)
        );
        assert_eq!(before != after, uses, "QRM uses {fact:?}");
    }
}

/// Each kind of fact changes the state of at least one discipline; odds concern AQMs that others decide for, which come from
/// outside of the registry.
#[test]
fn each_fact_changes_some_discipline() {
    let mut queues: Vec<AnyQdisc<Numbered>> =
        NAMES.iter().map(|name| AnyConfig::default_of(name).unwrap().build(&LINK)).collect();
    for fact in every_fact().into_iter().filter(|fact| !matches!(fact, Fact::Odds(_))) {
        let state = |queue: &AnyQdisc<Numbered>| format!("{queue:?}");
        let before: Vec<String> = queues.iter().map(state).collect();
        queues.iter_mut().for_each(|queue| queue.on_fact(&fact, Instant::ZERO));
        let users = queues.iter().zip(&before).filter(|(queue, before)| state(queue) != **before).count();
        assert!(users > 0, "nobody uses {fact:?}");
    }
}
