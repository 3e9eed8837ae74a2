use super::*;
use crate::ack::foreign::ElementConfig;
use crate::aqm::{codel, pie};
use crate::cc::{self, AnyControlConfig};
use crate::packet::{FlowId, TcpView};
use crate::qdisc::Qdisc;
use crate::registry::{AnyConfig, AnyQdisc};
use crate::rng::Streams;
use crate::sched::table::AnySchedulerConfig;
use crate::sched::{drr, script, w2f2q};
use crate::testing::Numbered;
use crate::units::Limit;

const LINK: LinkFacts = LinkFacts { rate: Rate::from_bps(10_000_000), limit: Limit::Packets(20) };

/// Lowers every window to a limit.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct Clamp {
    most: u16,
}

impl AckPath for Clamp {
    const ACTIVE: bool = true;
    fn inbound<S: TcpView>(&mut self, segment: &mut S, _: Instant) {
        segment.set_window(segment.window().min(self.most));
    }
}

impl ElementConfig for Clamp {
    type Element = Self;
    fn validate(&self) -> Result<(), ConfigError> {
        if self.most == 0 { Err(ConfigError::new("most", "must be above 0")) } else { Ok(()) }
    }
    fn element(&self, _: &LinkFacts) -> Self {
        self.clone()
    }
}

fn own() -> Own {
    Own::new()
        .with_aqm::<codel::Config>("my-codel")
        .with_aqm::<pie::Config>("my-pie")
        .with_control::<cc::newreno::Config>("my-reno")
        .with_scheduler::<drr::Config>("my-drr")
        .with_ack_path::<Clamp>("my-clamp")
}

fn config(name: &str, parameters: Value) -> Result<AnyConfig, String> {
    let Value::Object(parameters) = parameters else { panic!("a table") };
    match AnyConfig::foreign(&own(), name, &parameters) {
        Some(found) => found.map_err(|error| error.to_string()),
        None => Err("unknown".into()),
    }
}

/// What leaves a queue, and when, if packets of four flows come faster than they leave.
fn fates(mut queue: AnyQdisc<Numbered>) -> Vec<(u64, u64)> {
    let mut rng = Streams::new(3).get("fates");
    let (mut now, mut left) = (Instant::ZERO, Vec::new());
    for number in 0..4_000 {
        now += Span::from_micros(700);
        let packet = Numbered::new(number, FlowId((number % 7 % 4) as u32), Bytes::new(1000));
        let _ = queue.enqueue(packet, now, &mut rng, &mut ());
        while queue.next_wakeup().is_some_and(|due| due <= now) {
            queue.on_wakeup(now);
        }
        if number % 8 != 0 {
            left.extend(queue.dequeue(now, &mut rng, &mut ()).map(|packet| (packet.number, now.as_nanos())));
        }
    }
    assert_eq!(queue.stats().check(queue.backlog()), Ok(()));
    left
}

/// A built-in algorithm that comes through the library of a crate does what it does by its own name: as the discipline
/// of a link, in flow queues, in one layer of the modular architecture.
#[test]
fn an_algorithm_of_a_crate_does_what_the_built_in_one_does() {
    let built_in = |name: &str, parameters: &str| {
        AnyConfig::deserialize(name, &mut serde_json::Deserializer::from_str(parameters)).unwrap().unwrap()
    };
    let found = |name: &str, parameters: &str| {
        let mut config = built_in(name, parameters);
        assert!(config.validate().is_err(), "before it is looked up");
        config.find_foreign(&own()).unwrap();
        config
    };
    let target = serde_json::json!({ "target": "2ms" });
    let classes = serde_json::json!({ "flows": 4, "weights": "1::1,3::3", "quantum": "900B" });
    let pairs = [
        (config("my-codel", target).unwrap(), built_in("codel", r#"{"target": "2ms"}"#)),
        (config("my-pie", serde_json::json!({})).unwrap(), built_in("pie", "{}")),
        (
            config("my-drr", classes).unwrap(),
            built_in("drr", r#"{"flows": 4, "weights": "1::1,3::3", "quantum": "900B"}"#),
        ),
        (
            found("fq", r#"{"perturbation": 5, "per_flow": {"name": "my-pie", "target": "3ms"}}"#),
            built_in("fq", r#"{"perturbation": 5, "per_flow": {"name": "pie", "target": "3ms"}}"#),
        ),
        (
            found("modular", r#"{"flows": 4, "stations": 2, "qos": "my-drr", "mac": "my-drr"}"#),
            built_in("modular", r#"{"flows": 4, "stations": 2, "qos": "drr", "mac": "drr"}"#),
        ),
        (
            config("my-clamp", serde_json::json!({ "most": 9, "queue": { "name": "my-codel", "target": "2ms" } }))
                .unwrap(),
            built_in("codel", r#"{"target": "2ms"}"#),
        ),
    ];
    for (mine, theirs) in pairs {
        mine.validate().unwrap();
        let (mine_left, theirs_left) = (fates(mine.build(&LINK)), fates(theirs.build(&LINK)));
        assert!(theirs_left.len() > 1_000);
        assert!(mine_left == theirs_left, "{} is not {}", mine.name(), theirs.name());
    }
}

/// A scheduler of a crate is told weights and channels. DRR with a quantum of 1000 B: the next turn of class 0 is twice as
/// long. W2F2Q: class 0 waits while its channel is bad, though the link is idle.
#[test]
fn a_scheduler_of_a_crate_is_told_weights_and_channels() {
    let own = Own::new().with_scheduler::<drr::Config>("my-drr").with_scheduler::<w2f2q::Config>("my-w2f2q");
    let play = |name: &str, parameters: Value, packets: u32, events: &[(&str, u32, u64)]| {
        let Value::Object(parameters) = parameters else { panic!("a table") };
        let mine = AnySchedulerConfig::Foreign(own.scheduler(name, &parameters).unwrap().unwrap());
        let arrive = (0..packets).map(|number| ("arrive", 2 * number / packets, 1000));
        let events = arrive.chain(events.iter().copied()).map(|(event, class, value)| (event.to_owned(), class, value));
        script::play(&mine, &[1, 1], Bytes::new(1500), events, true).unwrap().order
    };
    let weighted = play("my-drr", serde_json::json!({ "quantum": "1000B" }), 8, &[("weight", 0, 2)]);
    assert_eq!(weighted, [0, 4, 1, 2, 5, 3, 6, 7].map(Some));
    let depart = ("depart", 0, 0);
    let steps = [("channel", 0, 0), depart, depart, ("channel", 0, 1), depart];
    assert_eq!(play("my-w2f2q", serde_json::json!({}), 2, &steps), [Some(1), None, Some(0)]);
}

#[test]
fn a_control_of_a_crate_does_what_the_built_in_one_does() {
    let parameters = Map::from_iter([("beta".to_owned(), Value::from(0.7))]);
    let mine = AnyControlConfig::Foreign(own().control("my-reno", &parameters).unwrap().unwrap());
    let theirs = AnyControlConfig::deserialize("newreno", Value::Object(parameters)).unwrap().unwrap();
    let mss = Bytes::new(1000);
    let setup = Connection { mss, initial_window: 10 * mss, initial_ssthresh: Bytes::MAX, paced: false, seed: 1 };
    let windows = |config: &AnyControlConfig| {
        let mut control = config.build(&setup);
        let mut seen = Vec::new();
        for round in 0..20 {
            let now = Instant::ZERO + Span::from_millis(100 * round);
            let in_flight = control.cwnd();
            if round % 7 == 5 {
                control.on_loss(&Loss { now, in_flight, ecn: false });
                control.on_recovered(now);
            }
            seen.push((control.cwnd(), control.ssthresh()));
        }
        seen
    };
    assert_eq!(windows(&mine), windows(&theirs));
    assert_eq!(mine.requirements(), theirs.requirements());
}

#[test]
fn mistakes_name_the_algorithm_and_the_parameter() {
    let told = |name: &str, parameters| config(name, parameters).unwrap_err();
    assert!(told("my-codel", serde_json::json!({ "traget": "5ms" })).starts_with("my-codel: unknown field `traget`"));
    assert!(told("my-codel", serde_json::json!({ "interval": "0ms" })).contains("my-codel: interval"));
    assert!(told("my-drr", serde_json::json!({ "flows": 2.5 })).starts_with("my-drr: "));
    assert!(told("my-clamp", serde_json::json!({ "queue": "codle" })).contains("did you mean \"codel\"?"));
    assert!(told("my-clamp", serde_json::json!({ "most": 0 })).contains("most: must be above 0"));
    let behind = told("my-clamp", serde_json::json!({ "most": 1, "queue": { "name": "codel", "interval": "0ms" } }));
    assert!(behind.starts_with("my-clamp: queue: codel: interval"), "{behind}");
    assert_eq!(told("nobody", serde_json::json!({})), "unknown");
    let mut wrong = AnyConfig::deserialize("modular", serde_json::json!({ "qos": "nobody" })).unwrap().unwrap();
    wrong.find_foreign(&own()).unwrap();
    assert!(wrong.validate().unwrap_err().to_string().contains("qos: is no scheduler"));
    let heavy = config("my-drr", serde_json::json!({ "flows": 1, "weights": "1::2" })).unwrap();
    assert!(heavy.validate().is_err());
}

#[test]
fn the_names_and_kinds_are_told() {
    assert_eq!(own().names(), ["my-codel", "my-pie", "my-reno", "my-drr", "my-clamp"]);
    let kinds = ["my-pie", "my-drr", "my-clamp", "my-reno"].map(|name| own().kind(name));
    assert_eq!(kinds, [Some(Kind::Aqm), Some(Kind::Scheduler), Some(Kind::AckPath), None]);
}
