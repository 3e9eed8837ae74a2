//! The table against test vectors that its readable twin, tests/test_conntrack.py, made.

use penstock_conntrack::{Arrived, Config, FlowTable, Named, Seen, SipHash, State};
use penstock_core::fact::Greeting;
use penstock_core::units::{Instant, Span};
use penstock_core::wire::{End, Headers};
use serde_json::{Value, json};
use std::net::IpAddr;

const VECTORS: &str = include_str!("vectors.json");

fn number(value: &Value) -> u32 {
    value.as_u64().and_then(|n| u32::try_from(n).ok()).expect("a number")
}

fn config(value: &Value) -> Config {
    let of = |key: &str| number(&value[key]);
    let named = |named: &Value| Named {
        name: named[0].as_str().unwrap().to_owned(),
        prefixes: named[1].as_array().unwrap().iter().map(|p| p.as_str().unwrap().parse().unwrap()).collect(),
    };
    Config {
        entries: of("entries"),
        half_open: of("half_open"),
        shown: of("shown"),
        hosts: of("hosts"),
        others: of("others"),
        quota: of("quota"),
        idle: Span::from_millis(of("idle_ms").into()),
        opening: Span::from_millis(of("opening_ms").into()),
        subscribers: value["subscribers"].as_array().unwrap().iter().map(named).collect(),
    }
}

fn ip(protocol: u8, source: IpAddr, to: IpAddr, rest: &[u8]) -> Vec<u8> {
    let mut bytes = match (source, to) {
        (IpAddr::V4(source), IpAddr::V4(to)) => {
            let length = (20 + rest.len()) as u16;
            let mut header = vec![0x45, 0, (length >> 8) as u8, length as u8, 0, 0, 0, 0, 64, protocol, 0, 0];
            header.extend([source.octets(), to.octets()].concat());
            header
        }
        (IpAddr::V6(source), IpAddr::V6(to)) => {
            let length = rest.len() as u16;
            let mut header = vec![0x60, 0, 0, 0, (length >> 8) as u8, length as u8, protocol, 64];
            header.extend([source.octets(), to.octets()].concat());
            header
        }
        _ => panic!("two versions in one packet"),
    };
    bytes.extend(rest);
    bytes
}

/// Makes the bytes of a packet: `[ms, source, to, flags, seq, ack, len, window, scale, mss, inside]`.
fn bytes(row: &Value) -> Vec<u8> {
    let end = |at: usize| {
        let (address, port) = row[at].as_str().unwrap().split_once(' ').unwrap();
        (address.parse::<IpAddr>().unwrap(), port.parse::<u16>().unwrap())
    };
    let ((source, from), (to, port)) = (end(1), end(2));
    let mut header = [from.to_be_bytes(), port.to_be_bytes()].concat();
    let flags = row[3].as_str().unwrap();
    if flags == "udp" {
        header.extend([0, 8, 0, 0]);
        return ip(17, source, to, &header);
    }
    let mut options = Vec::new();
    row[8].as_u64().into_iter().for_each(|scale| options.extend([1, 3, 3, scale as u8]));
    row[9].as_u64().into_iter().for_each(|mss| options.extend([2, 4, (mss >> 8) as u8, mss as u8]));
    let bit = |flag: char| match flag {
        'F' => 1,
        'S' => 2,
        'R' => 4,
        _ => 16u8,
    };
    header.extend([number(&row[4]).to_be_bytes(), number(&row[5]).to_be_bytes()].concat());
    header.extend([((20 + options.len()) * 4) as u8, flags.chars().map(bit).sum()]);
    header.extend((number(&row[7]) as u16).to_be_bytes());
    header.extend([0; 4]);
    header.extend(options);
    header.extend(vec![0; number(&row[6]) as usize]);
    ip(6, source, to, &header)
}

/// The answer in the form of the vectors.
fn answer(seen: &Seen) -> Value {
    let state = match seen.state {
        State::Entry => "entry",
        State::HalfOpen => "half",
        State::Other => "other",
    };
    let greeting = |g: Greeting| json!([g.isn, g.end, g.window_scale, g.mss]);
    let ms = |span: Option<Span>| span.map(|span| span.as_nanos() / 1_000_000);
    let opening = seen.opening.map(|o| {
        assert_eq!(o.flow, seen.flow);
        json!([o.from_inside, greeting(o.opener), greeting(o.other), ms(o.asked), ms(o.answered)])
    });
    json!([state, seen.flow.0, seen.shown, seen.fresh, seen.owner.map(|owner| owner.0), opening])
}

#[test]
fn the_table_answers_as_its_twin() {
    let vectors: Vec<Value> = serde_json::from_str(VECTORS).unwrap();
    for vector in &vectors {
        let config = config(&vector["config"]);
        let own = config.entries.next_power_of_two().max(8) + config.shown;
        let mut table = FlowTable::new(config, SipHash(1, 2), SipHash(3, 4));
        for (at, step) in vector["packets"].as_array().unwrap().iter().enumerate() {
            let (row, expected) = (&step[0], &step[1]);
            let bytes = bytes(row);
            let end = if row[10] == 0 { End::Source } else { End::Destination };
            let packet = Arrived::read(&bytes, &Headers::parse(&bytes), end);
            let seen = table.see(&packet, Instant::ZERO + Span::from_millis(number(&row[0]).into()));
            assert_eq!(answer(&seen), *expected, "{}, packet {at}: {row}", vector["name"]);
            assert!(!seen.shown || seen.flow.0 < own, "{}, packet {at}: {row}", vector["name"]);
        }
        let gauges = serde_json::to_value(table.gauges()).unwrap();
        for (name, expected) in vector["gauges"].as_object().unwrap() {
            assert_eq!(gauges[name], *expected, "{} of {}", name, vector["name"]);
        }
    }
    assert!(vectors.len() >= 40);
}
