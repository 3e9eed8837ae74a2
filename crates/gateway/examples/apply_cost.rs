//! How long it takes to read a file with many subscribers, and to make it what holds while packets wait:
//! cargo run --release -p penstock-gateway --example apply_cost [-- NUMBER]

use penstock_conntrack::Config;
use penstock_core::packet::NodeId;
use penstock_core::rng::Streams;
use penstock_core::units::{Instant, Span};
use penstock_gateway::file::{File, Kind};
use penstock_gateway::held::Held;
use penstock_gateway::settings::Settings;
use penstock_shaper::classify::Classifier;
use penstock_shaper::direction::Direction;
use penstock_shaper::keys::Keys;
use penstock_shaper::nodes::Side;
use penstock_shaper::path::Path;
use std::fmt::Write as _;
use std::time::Instant as Clock;

/// Every part is measured so often; the median counts.
const ROUNDS: usize = 21;

fn text(subscribers: usize, round: usize) -> String {
    let mut text = String::from("[interfaces]\nwan = \"eth0\"\nlan = \"eth1\"\n[link]\nrate = \"1Gbit/s\"\n");
    for at in 0..subscribers {
        let (a, b, weight) = (at / 250, at % 250, 1 + (at + round) % 7);
        let _ = write!(
            text,
            "[subscribers.s{at}]\nprefixes = [\"10.{a}.{b}.0/24\", \"02:00:00:00:{a:02x}:{b:02x}\"]\nweight = {weight}\n\
             guaranteed = \"100kbit/s\"\n"
        );
    }
    text
}

fn parse(text: &str) -> Settings {
    match Kind::parse(text, "f").unwrap() {
        Kind::Link(file) => file.settings,
        Kind::Alone(_) => unreachable!("the file has interfaces"),
    }
}

fn main() {
    let subscribers = std::env::args().nth(1).map_or(1000, |number| number.parse().expect("a number of subscribers"));
    let file = File::parse(&text(subscribers, 0), "f").unwrap();
    let first = file.settings.clone();
    let config = Config { subscribers: file.settings.subscribers.named(), ..Config::default() };
    let mut classifier = Classifier::new(config, Keys::from_seed(1), Side::Right);
    let number =
        |classifier: &Classifier, name: &str| classifier.table.subscribers.number_of(name).unwrap_or(NodeId::NOBODY);
    let [down, up] = Direction::BOTH.map(|d| first.way(d, |name| number(&classifier, name)));
    let mut path: Path<Held> = Path::new(&down, &up, Streams::new(1));
    let mut parts = [const { Vec::new() }; 4];
    for round in 1..=ROUNDS {
        let text = text(subscribers, round);
        let mut begin = Clock::now();
        let mut lap = |part: usize| {
            parts[part].push(begin.elapsed().as_secs_f64() * 1e3);
            begin = Clock::now();
        };
        let wanted = parse(&text);
        lap(0);
        classifier.table.subscribers.rename(&wanted.subscribers.named());
        lap(1);
        let ways = Direction::BOTH.map(|d| wanted.way(d, |name| number(&classifier, name)));
        for (direction, way) in Direction::BOTH.into_iter().zip(&ways) {
            let now = Instant::ZERO + Span::from_secs(round as u64);
            assert!(path.direction_mut(direction).change_tree(&way.aqm, way.limit, now, &mut ()));
        }
        lap(2);
        for (direction, way) in Direction::BOTH.into_iter().zip(&ways) {
            path.direction(direction).read_back(way).unwrap();
        }
        assert!(classifier.table.subscribers.are(&wanted.subscribers.named()));
        lap(3);
    }
    println!("{subscribers} subscribers, {} kB, milliseconds:", text(subscribers, 0).len() / 1000);
    for (part, mut times) in ["file read", "names and prefixes", "both trees", "read back"].into_iter().zip(parts) {
        times.sort_by(f64::total_cmp);
        println!("{part:<20} {:8.3}", times[ROUNDS / 2]);
    }
}
