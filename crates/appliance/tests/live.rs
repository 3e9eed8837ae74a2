//! What can be set of a bottleneck while packets pass.

use penstock_appliance::live::{Changes, Present, Words, read};
use penstock_appliance::socket::message::Refusal;
use penstock_core::impair::Impairments;
use penstock_core::link_layer::{Framing, LinkLayer};
use penstock_core::settings::config_from_settings;
use penstock_core::units::{Limit, Rate, Span};
use penstock_shaper::bottleneck::Config;

fn config(aqm: &str, settings: &[&str]) -> Config {
    let settings: Vec<String> = settings.iter().map(|s| (*s).to_owned()).collect();
    let aqm = config_from_settings(aqm, &settings).unwrap();
    Config {
        aqm,
        rate: Rate::from_bps(1_000_000),
        layer: LinkLayer::default(),
        delay: Span::ZERO,
        limit: Limit::Packets(100),
    }
}

/// Reads values for CoDel with two stations on the way there, and PINK on the way back.
fn read_for(values: &[(&str, &str)]) -> Result<[Changes; 2], Refusal> {
    let values: Vec<_> = values.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let (codel, pink) = (config("codel", &["interval=200ms"]), config("pink", &[]));
    let (words, impairments) = (Words::EMULATOR, Impairments::default());
    let present = [
        Present { config: &codel, keeps_connections: false, stations: 2, impairments, words },
        Present { config: &pink, keeps_connections: true, stations: 0, impairments, words },
    ];
    read(&values, &present)
}

/// Returns a bottleneck after changes.
fn changed(changes: Changes, before: &[&str]) -> Config {
    let mut config = config("codel", before);
    changes.over(&mut config);
    config
}

#[test]
fn a_gateway_has_no_wire_and_calls_its_table_discipline() {
    let codel = config("codel", &[]);
    let (words, impairments) = (Words::GATEWAY, Impairments::default());
    let present = Present { config: &codel, keeps_connections: false, stations: 0, impairments, words };
    let set = |key: &str, value: &str| read(&[(key.to_owned(), value.to_owned())], &[present, present]);
    let [forward, reverse] = set("reverse_discipline.target", "7ms").unwrap();
    assert_eq!((changed(forward, &[]), changed(reverse, &[])), (codel.clone(), config("codel", &["target=7ms"])));
    for key in ["delay", "loss", "aqm.target", "reverse_delay", "stations"] {
        let refused = set(key, "1").unwrap_err();
        assert!(refused.allowed.contains(&"discipline.target".into()), "{key}: {refused}");
    }
}

#[test]
fn each_direction_has_its_values() {
    let values = [("rate", "5Mbit/s"), ("reverse_delay", "10ms"), ("loss", "0.01"), ("limit", "50p")];
    let [forward, reverse] = read_for(&values).unwrap();
    assert_eq!((forward.loss, reverse.loss), (Some(0.01), None));
    let before = config("codel", &[]);
    let (rate, limit) = (Rate::from_bps(5_000_000), Limit::Packets(50));
    assert_eq!(changed(forward, &[]), Config { rate, limit, ..before.clone() });
    assert_eq!(changed(reverse, &[]), Config { delay: Span::from_millis(10), ..before });
}

#[test]
fn stations_get_other_channels() {
    let [forward, _] = read_for(&[("stations", r#"[0.5, { "technology": "wifi", "snr_db": 3 }]"#)]).unwrap();
    assert_eq!(forward.stations.map(|stations| stations.len()), Some(2));
    let fast = r#"[0.5, { "good": 0, "bad": 1, "mean_good": "1us", "mean_bad": "1s" }]"#;
    for (key, value, said) in [
        ("stations", "[0.5]", "the link has 2 stations, and this gives 1"),
        ("stations", "[0.5, 2]", "a station's loss is 2"),
        ("stations", fast, "a mean of 1ms or more"),
        ("stations", "half", "such as [0.1, 0.02]"),
        ("reverse_stations", "[]", "no parameter"),
    ] {
        let refused = read_for(&[(key, value)]).unwrap_err().to_string();
        assert!(refused.contains(said), "{refused}");
    }
}

#[test]
fn a_parameter_leaves_the_others_as_they_are() {
    let [forward, _] = read_for(&[("aqm.target", "7ms")]).unwrap();
    assert_eq!(changed(forward, &["interval=200ms"]), config("codel", &["interval=200ms", "target=7ms"]));
}

/// What is not written stays: PPPoE of VDSL2 with another overhead, and then with another framing.
#[test]
fn what_the_link_adds_changes_key_by_key() {
    let (first, second) =
        ([("link_layer", "pppoe-ptm"), ("overhead", "34")], [("framing", "ethernet"), ("reverse_mpu", "84")]);
    let [forward, reverse] = read_for(&first).unwrap();
    let (mut there, mut back) = (config("codel", &[]), config("pink", &[]));
    forward.over(&mut there);
    reverse.over(&mut back);
    assert_eq!(
        [there.layer, back.layer],
        [LinkLayer { overhead: 34, mpu: 0, framing: Framing::Ptm }, LinkLayer::default()]
    );
    let (words, impairments) = (Words::GATEWAY, Impairments::default());
    let present =
        [&there, &back].map(|config| Present { config, keeps_connections: true, stations: 0, impairments, words });
    let [forward, reverse] = read(&second.map(|(key, value)| (key.into(), value.into())), &present).unwrap();
    let (mut there, mut back) = (there.clone(), back.clone());
    forward.over(&mut there);
    reverse.over(&mut back);
    assert_eq!(
        [there.layer, back.layer],
        [LinkLayer { overhead: 34, ..LinkLayer::default() }, LinkLayer { mpu: 84, ..LinkLayer::default() }]
    );
    for (key, value, said) in [
        ("overhead", "many", "whole number"),
        ("mpu", "257", "at most 256"),
        ("link_layer", "dsl", "no preset"),
        ("framing", "cells", "atm"),
    ] {
        let refused = read_for(&[(key, value)]).unwrap_err().to_string();
        assert!(refused.contains(said), "{key}: {refused}");
    }
    for key in ["rate", "reverse_rate"] {
        let refused = read(&[(key.into(), "11kbit/s".into())], &present).unwrap_err().to_string();
        assert!(refused.contains("11kbit/s; allowed is 12kbit/s or more, a packet in a second"), "{key}: {refused}");
    }
}

#[test]
fn mistakes_are_refused_with_what_is_allowed() {
    let refused = |key, value| read_for(&[("rate", "1Mbit/s"), (key, value)]).unwrap_err();
    let key = refused("dealy", "1ms");
    assert!(key.what.contains("did you mean \"delay\"?"), "{key}");
    let allowed = |word: &str| key.allowed.iter().any(|allowed| allowed == word);
    assert!(allowed("aqm.target") && allowed("reverse_rate") && !allowed("reverse_limit"), "{key}");
    let pink = refused("reverse_aqm.c", "0.9");
    assert!(pink.what.contains("pink keeps state") && pink.allowed.contains(&"reverse_loss".into()), "{pink}");
    for (key, value, expected) in [
        ("delay", "5", "5ms"),
        ("rate", "0bit/s", "rate"),
        ("rate", "2Tbit/s", "1Tbit/s"),
        ("delay", "1h", "delay"),
        ("loss", "1.5", "0 to 1"),
        ("loss", "many", "0 to 1"),
        ("limit", "many", "limit"),
        ("reverse_limit", "9p", "pink keeps state"),
        ("aqm.interval", "0ms", "interval"),
    ] {
        let message = refused(key, value).to_string();
        assert!(message.contains(expected), "{key}={value}: {message}");
    }
}

/// What a link does to packets is set key by key, in either form, and what is not written stays.
#[test]
fn impairments_change_one_by_one() {
    let [forward, reverse] =
        read_for(&[("jitter", "5ms"), ("duplicate", "0.01"), ("reverse_gilbert", "to_bad=0.1,to_good=0.5")]).unwrap();
    assert_eq!(forward.impairments.jitter.map(|jitter| jitter.by), Some(Span::from_millis(5)));
    assert_eq!((forward.impairments.duplicate, forward.impairments.gilbert), (0.01, None));
    assert_eq!(reverse.impairments.gilbert.map(|model| (model.to_bad, model.bad)), Some((0.1, 1.0)));
    let refused = read_for(&[("reverse_jitter", "5ms,by=3")]).unwrap_err().to_string();
    assert!(refused.contains("reverse_jitter"), "{refused}");
    let codel = config("codel", &[]);
    let impairments = forward.impairments;
    let present =
        Present { config: &codel, keeps_connections: false, stations: 0, impairments, words: Words::EMULATOR };
    let [ended, _] = read(&[("jitter".to_owned(), "none".to_owned())], &[present, present]).unwrap();
    assert_eq!(ended.impairments, Impairments { duplicate: 0.01, ..Impairments::default() });
}
