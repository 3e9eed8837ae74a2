//! Golden traces: short runs of an algorithm, whose results were derived by hand in the files of `golden/`, or by a readable twin.

use penstock_core::aqm::{codel, red};
use penstock_core::config::{Discipline, LinkFacts};
use penstock_core::estimate::autorate::{Autorate, Params};
use penstock_core::estimate::{Estimator, Way};
use penstock_core::packet::{FlowId, NoTcp, Packet};
use penstock_core::qdisc::{DropReason, Enqueued, PacketObserver, Qdisc};
use penstock_core::registry::AnyConfig;
use penstock_core::rng::{Rng, Streams};
use penstock_core::settings::config_from_settings;
use penstock_core::testing::Numbered;
use penstock_core::units::{Bytes, Instant, Limit, Rate, Serializer, Span};

/// Dropped packets: the time and the number of each.
#[derive(Default)]
struct Drops(Vec<(Span, u64)>);

impl PacketObserver<Numbered> for Drops {
    fn dropped(&mut self, packet: Numbered, _: DropReason, now: Instant) {
        self.0.push((now.since(Instant::ZERO), packet.number));
    }
    fn marked(&mut self, _: &Numbered, _: Instant) {}
}

/// The words of each line that is not a comment.
fn lines(file: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    file.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split_whitespace().collect())
        .filter(|words: &Vec<&str>| !words.is_empty())
}

/// The only line that begins with `key`, without the key.
fn header(file: &'static str, key: &str) -> Vec<&'static str> {
    lines(file).find(|words| words[0] == key).expect("the header is complete")[1..].to_vec()
}

fn link(file: &'static str) -> LinkFacts {
    let words = header(file, "link");
    LinkFacts { rate: words[0].parse().unwrap(), limit: words[1].parse().unwrap() }
}

fn rng(file: &'static str, stream: &str) -> Rng {
    Streams::new(header(file, "seed")[0].parse().unwrap()).get(stream)
}

/// The configuration that the `set` line describes.
fn config<C: Discipline>(file: &'static str) -> C {
    let mut json = serde_json::Map::new();
    for setting in header(file, "set") {
        let (key, value) = setting.split_once('=').unwrap();
        let value = value.parse::<f64>().map_or_else(|_| value.into(), serde_json::Value::from);
        json.insert(key.to_owned(), value);
    }
    let config: C = serde_json::from_value(json.into()).unwrap();
    config.validate().unwrap();
    config
}

fn ms(text: &str) -> Span {
    text.parse().unwrap()
}

/// Serves bursts one after another; each is served completely before the next arrives.
fn serve_bursts<Q: Qdisc<Numbered>>(file: &'static str, mut queue: Q, rate: Rate) -> Vec<(Span, u64)> {
    let (mut drops, mut random, mut number) = (Drops::default(), rng(file, "golden"), 0);
    for burst in lines(file).filter(|words| words[0] == "burst") {
        let mut now = Instant::ZERO + ms(burst[1]);
        for _ in 0..burst[2].parse::<u32>().unwrap() {
            let size: Bytes = burst[3].parse().unwrap();
            let packet = Numbered::new(number, FlowId(0), size);
            assert_eq!(queue.enqueue(packet, now, &mut random, &mut drops), Enqueued::Queued);
            number += 1;
        }
        let mut wire = Serializer::new(rate);
        while let Some(packet) = queue.dequeue(now, &mut random, &mut drops) {
            now += wire.send(packet.size());
        }
    }
    drops.0
}

#[test]
fn codel_drops_at_the_times_of_the_control_law() {
    let file = include_str!("golden/codel.txt");
    let link = link(file);
    let drops = serve_bursts(file, config::<codel::Config>(file).build(&link), link.rate);
    let expected: Vec<(Span, u64)> =
        lines(file).filter(|w| w[0] == "drop").map(|w| (ms(w[1]), w[2].parse().unwrap())).collect();
    assert_eq!(drops, expected);
}

#[test]
fn red_follows_its_equations_step_by_step() {
    let file = include_str!("golden/red.txt");
    let link = link(file);
    assert_eq!(link.limit, Limit::Packets(7), "with room for all, every drop is early");
    let mut queue = config::<red::Config>(file).build(&link);
    let (mut drops, mut random, mut number) = (Drops::default(), rng(file, "golden/red"), 0);
    let mut unused = random.clone();
    for step in lines(file).filter(|words| ["arrive", "depart"].contains(&words[0])) {
        let now = Instant::ZERO + ms(step[1]);
        if step[0] == "depart" {
            assert!(queue.dequeue(now, &mut random, &mut drops).is_some(), "{step:?}");
            continue;
        }
        assert_eq!(queue.backlog().packets.to_string(), step[2], "{step:?}");
        let fate = match queue.enqueue(Numbered::new(number, FlowId(0), Bytes::new(1000)), now, &mut random, &mut drops)
        {
            Enqueued::Queued => "queued",
            Enqueued::Dropped(reason) => reason.fate(),
        };
        assert_eq!(format!("{:.6}", queue.aqm().average()), step[3], "{step:?}");
        assert_eq!(fate, step[8], "{step:?}");
        if step[7] != "-" {
            assert_eq!(format!("{:.6}", unused.uniform()), step[7], "{step:?}");
        }
        assert_eq!(random, unused, "as many random numbers are drawn as the file says: {step:?}");
        number += 1;
    }
    assert_eq!(number, 18, "all arrivals were read");
}

#[test]
fn sfb_raises_and_lowers_its_bins_and_keeps_its_penalty_box() {
    let file = include_str!("golden/sfb.txt");
    let settings: Vec<String> = header(file, "set").iter().map(|s| (*s).to_owned()).collect();
    let Ok(AnyConfig::Sfb(config)) = config_from_settings("sfb", &settings) else { panic!("the header is wrong") };
    let mut queue = Discipline::build(&config, &link(file));
    let (mut drops, mut random, mut number) = (Drops::default(), rng(file, "golden/sfb"), 0);
    let mut unused = random.clone();
    let _keys = [unused.bits(), unused.bits()];
    for step in lines(file).filter(|words| ["arrive", "depart"].contains(&words[0])) {
        let now = Instant::ZERO + ms(step[1]);
        if step[0] == "depart" {
            assert!(queue.dequeue(now, &mut random, &mut drops).is_some(), "{step:?}");
            continue;
        }
        assert_eq!(queue.backlog().packets.to_string(), step[2], "{step:?}");
        let fate = match queue.enqueue(Numbered::new(number, FlowId(0), Bytes::new(1000)), now, &mut random, &mut drops)
        {
            Enqueued::Queued => "queued",
            Enqueued::Dropped(reason) => reason.fate(),
        };
        assert_eq!(format!("{:.3}", queue.aqm().probability(FlowId(0))), step[3], "{step:?}");
        if step[4] != "-" {
            assert_eq!(format!("{:.6}", unused.uniform()), step[4], "{step:?}");
        }
        assert_eq!(fate, step[5], "{step:?}");
        assert_eq!(random, unused, "as many random numbers are drawn as the file says: {step:?}");
        number += 1;
    }
    assert_eq!(number, 23, "all arrivals were read");
}

#[test]
fn autorate_follows_its_twin() {
    let mut law = Autorate::new(Params::default());
    let mut number = 0;
    for step in lines(include_str!("golden/autorate.txt")) {
        let value = |at: usize| step[at].parse::<u64>().unwrap();
        let now = Instant::ZERO + Span::from_micros(value(0));
        if step[1] == "achieved" {
            // What passes in the 200 ms before: 25 bytes for each kbit/s.
            for (way, at) in Way::BOTH.into_iter().zip(2..) {
                law.pass::<NoTcp>(way, 0, Bytes::new(25 * value(at)), None, now - Span::from_micros(1));
            }
            law.step(Default::default(), now);
        } else {
            law.ping([2, 3].map(|at| Span::from_micros(value(at))), now);
        }
        let rates = law.capacity().map(|rate| (rate.as_bps() / 1000).to_string());
        let probes = if law.next_ping() == Instant::MAX { "no" } else { "yes" };
        assert_eq!([&rates[0], &rates[1], probes], step[4..], "{step:?}");
        number += 1;
    }
    assert!(number > 1000, "all events were read");
}
