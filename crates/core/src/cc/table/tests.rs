use super::super::driver::{self, MSS};
use super::super::{RateSample, cubic, cubic_linux, newreno};
use super::*;
use crate::units::Span;

#[test]
fn every_name_builds_its_control_and_no_other_name_does() {
    for name in NAMES {
        let cc = AnyCc::new(name, &driver::SETUP).expect(name);
        assert_eq!((cc.cwnd(), cc.ssthresh(), cc.pacing_rate()), (10 * MSS, Bytes::MAX, None));
        assert_eq!(cc.name(), *name);
    }
    assert_eq!(AnyCc::new("tahoe", &driver::SETUP), None);
}

/// The only control inside the enum takes no more room than six words, and nothing on the heap.
#[test]
fn any_control_takes_six_words_and_newreno_nothing_beside_them() {
    let heap = |name| AnyCc::new(name, &driver::SETUP).unwrap().heap_bytes();
    assert_eq!((size_of::<AnyCc>(), heap("newreno"), heap("cubic")), (48, 0, size_of::<cubic::Cubic>()));
}

#[test]
fn the_controls_that_count_marks_need_ecn() {
    let found: Vec<_> = NAMES.iter().copied().filter(|name| needs_ecn(name)).collect();
    assert_eq!(found, ["dctcp", "prague"]);
    assert!(!needs_ecn("tahoe"));
}

/// Gives a control one of each event, by itself and through the enum: the same state after each.
struct SameThroughTheEnum;

impl ForEachControl for SameThroughTheEnum {
    fn one<C: CongestionControl + Clone>(&mut self, mut cc: C, wrap: fn(C) -> AnyCc) {
        let mut any = wrap(cc.clone());
        let now = Instant::from_nanos(1_000_000);
        let events: [fn(&mut dyn CongestionControl, Instant); 5] = [
            |cc, _| cc.on_ack(&driver::ack(MSS, 100)),
            |cc, _| cc.on_loss(&driver::loss(10 * MSS)),
            |cc, now| cc.on_recovered(now),
            |cc, now| cc.on_idle(now, 3 * MSS),
            |cc, _| cc.on_rto(&driver::loss(8 * MSS)),
        ];
        for event in events {
            let before = any.clone();
            event(&mut cc, now);
            event(&mut any, now);
            assert_eq!(any, wrap(cc.clone()), "{}", any.name());
            assert_ne!(any, before, "{}: each of these events changes something", any.name());
        }
    }
}

#[test]
fn the_enum_passes_every_event_on() {
    for_each_control(&driver::SETUP, &mut SameThroughTheEnum);
}

#[test]
fn every_default_is_valid_and_every_parameter_documented() {
    for entry in entries() {
        let config = AnyControlConfig::default_of(entry.name).unwrap();
        assert_eq!((config.validate(), config.name()), (Ok(()), entry.name));
        assert_eq!(serde_json::to_value(&config).unwrap(), Value::from(entry.name), "the name alone");
        assert!(!entry.parameters.is_empty(), "{} has constants", entry.name);
        for parameter in entry.parameters {
            assert!(parameter.about.len() > 20, "{}.{} has no description", entry.name, parameter.name);
            assert_eq!(config.parameters()[&parameter.name], parameter.default);
        }
    }
}

/// Each number of each control, made negative or far too large, is refused, by the type or by the range; the error
/// names it.
#[test]
fn a_value_out_of_range_is_refused() {
    for name in NAMES {
        let defaults = AnyControlConfig::default_of(name).unwrap().parameters();
        for (key, value) in defaults.into_iter().filter(|(_, value)| value.is_number()) {
            for wrong in [Value::from(-1), Value::from(1e18)] {
                let read = AnyControlConfig::deserialize(name, serde_json::json!({ key.clone(): wrong }));
                let Some(Ok(config)) = read else { continue };
                assert_eq!(config.validate().unwrap_err().key, key, "{name}.{key} = {wrong}, not {value}");
            }
        }
    }
}

#[test]
fn a_configuration_is_read_from_its_name_or_its_table_and_written_as_it_is_read() {
    let read = |value: Value| serde_json::from_value::<AnyControlConfig>(value).map_err(|error| error.to_string());
    let cubic = read(serde_json::json!({ "name": "cubic", "beta": 0.8, "hystart": true })).unwrap();
    let expected = cubic::Config { beta: 0.8, hystart: true, ..cubic::Config::default() };
    assert_eq!(cubic, AnyControlConfig::Cubic(expected));
    assert_eq!(read(serde_json::to_value(&cubic).unwrap()), Ok(cubic));
    let written = serde_json::to_value(AnyControlConfig::Cubic(expected)).unwrap();
    assert!(
        written.as_object().unwrap().values().all(|value| !value.is_null()),
        "formats without null have it too: {written}"
    );
    assert_eq!(read("vegas".into()), Ok(AnyControlConfig::default_of("vegas").unwrap()));
    assert!(read("vegsa".into()).unwrap_err().contains("did you mean \"vegas\"?"));
    assert!(read(serde_json::json!({ "name": "vegas", "beat": 3.0 })).unwrap_err().contains("unknown field `beat`"));
    assert!(read(serde_json::json!({ "beta": 3.0 })).unwrap_err().contains("name"));
}

/// A parameter that was set is the one that is used: what a loss leaves of 100 segments.
#[test]
fn a_parameter_reaches_its_control() {
    for (name, key, value, left) in [
        ("newreno", "beta", Value::from(0.8), 80.0),
        ("cubic", "beta", Value::from(0.5), 50.0),
        ("cubic-linux", "beta", Value::from(512), 50.0),
        ("bic", "beta", Value::from(0.6), 60.0),
        ("scalable", "b", Value::from(0.3), 70.0),
        ("compound", "beta", Value::from(0.1), 90.0),
        ("highspeed", "low_window", Value::from(100.0), 50.0),
    ] {
        let config = AnyControlConfig::deserialize(name, serde_json::json!({ key: value })).unwrap().unwrap();
        let mut cc = config.build(&Setup { initial_window: 100 * MSS, ..driver::SETUP });
        cc.on_loss(&driver::loss(100 * MSS));
        assert_eq!(cc.ssthresh().as_f64() / MSS.as_f64(), left, "{name}");
    }
}

proptest::proptest! {
    /// Whatever happens, there is a window to send with or a time at which it opens, a threshold of two segments, and
    /// no panic.
    #[test]
    fn no_order_of_events_leaves_a_connection_without_a_window(
        mss in 0u64..9000,
        events in proptest::collection::vec((0u8..8, 0u64..1 << 40, 0u64..100_000_000), 1..200),
    ) {
        for name in NAMES {
            let initial_ssthresh = if mss % 3 == 0 { Bytes::new(4 * mss) } else { Bytes::MAX };
            let initial_window = Bytes::new(10 * mss.max(1));
            let setup = Setup { mss: Bytes::new(mss), initial_window, initial_ssthresh, paced: false, seed: 1 };
            let mut config = AnyControlConfig::default_of(name).expect(name);
            let (search, resume) = (mss % 5 < 2, (mss % 7 < 3).then_some((Bytes::new(200 * mss + 1), Span::from_millis(100))));
            let (resume_cwnd, resume_rtt) = resume.unzip();
            match &mut config {
                AnyControlConfig::NewReno(config) => {
                    *config = newreno::Config { search, resume_cwnd, resume_rtt, ..*config };
                }
                AnyControlConfig::Cubic(config) => {
                    *config = cubic::Config { hystart: mss % 2 == 1, search, resume_cwnd, resume_rtt, ..*config };
                }
                AnyControlConfig::CubicLinux(config) => {
                    *config = cubic_linux::Config { search, resume_cwnd, resume_rtt, ..*config };
                }
                _ => {}
            }
            let mut cc = config.build(&setup);
            let (mut now, mut delivered) = (Instant::ZERO, Bytes::ZERO);
            for (what, bytes, gap_us) in &events {
                now += Span::from_micros(*gap_us);
                let size = Bytes::new(*bytes);
                let loss = Loss { now, in_flight: size, ecn: bytes % 2 == 0 };
                delivered += size;
                let rate = (bytes % 3 > 0).then_some(RateSample {
                    prior_delivered: delivered.saturating_sub(Bytes::new(gap_us * 7)),
                    interval: Span::from_micros(*gap_us),
                    app_limited: bytes % 5 == 0,
                    in_flight: size / 2,
                    lost: delivered / 3,
                });
                let facts = Ack { now, delivered, marked: size / 2, rate, ..driver::ack(size, 100) };
                match what {
                    0 | 1 => cc.on_ack(&Ack { cwnd_limited: *what == 0, ..facts }),
                    2 => cc.on_loss(&loss),
                    3 => cc.on_recovered(now),
                    4 => cc.on_rto(&loss),
                    5 => cc.on_idle(now, setup.initial_window),
                    6 => cc.on_recovery_ack(&facts),
                    _ => cc.on_burst(now, size),
                }
                let opens = cc.next_burst() < Instant::MAX;
                proptest::prop_assert!(cc.cwnd().get() >= mss || opens, "{name}: {} after {what}", cc.cwnd());
                proptest::prop_assert!(cc.ssthresh().get() >= 2 * mss);
            }
        }
    }
}
