//! A run that is watched and steered has the results of the scenario that it writes down.

use penstock_core::units::{Instant, Span};
use penstock_sim::{Scenario, Simulation};
use penstock_web::packets::packets;
use penstock_web::samples::{FLOW_COLUMNS, QUEUE_COLUMNS};
use penstock_web::session::{FILE, Session};

const TEXT: &str = r#"# four flows through CoDel
name = "steered"
duration = "20s"

[topology]
kind = "dumbbell"
rate = "10Mbit/s"
delay = "10ms"
limit = "100p"

[aqm]
name = "codel"

[[flows]]
kind = "bulk"
count = 4
start_spread = "1s"
"#;

fn whole(text: &str) -> Simulation {
    let mut simulation = Simulation::new(&Scenario::parse(text, FILE).unwrap());
    simulation.advance(Span::MAX).unwrap();
    simulation
}

fn native(text: &str) -> String {
    serde_json::to_string(&whole(text).summary()).unwrap()
}

/// The tables of the link and by seconds; a delay that nobody measured is NaN, which equals itself as a text.
fn tables(simulation: &Simulation) -> String {
    format!("{:?}", simulation.tables())
}

fn open(text: &str) -> Session {
    Session::open(text, Span::from_millis(10)).unwrap()
}

#[test]
fn samples_change_nothing() {
    let mut session = open(TEXT);
    while !session.advance(Span::from_millis(137)).unwrap() {}
    assert_eq!(session.summary(), native(TEXT));
}

#[test]
fn a_steered_run_is_that_of_the_text_it_writes() {
    for aqm in ["codel", "fq-codel", "pink", "pie"] {
        let text = TEXT.replace("codel", aqm);
        let mut session = open(&text);
        let steps: [(u64, &str); 5] = [
            (3_000, "rate = \"4Mbit/s\""),
            (1_777, "delay = \"25ms\"\nloss = 0.01"),
            (1, "rate = \"6Mbit/s\""),
            (5_005, "delay = \"1ms\""),
            (2_000, "loss = 0.0\nrate = \"12500kbit/s\""),
        ];
        for (after_ms, keys) in steps {
            session.advance(Span::from_millis(after_ms)).unwrap();
            session.change("bottleneck", keys).unwrap();
        }
        session.advance(Span::MAX).unwrap();
        assert_eq!(session.summary(), native(session.text()), "{aqm}");
        assert_ne!(session.summary(), native(&text), "{aqm}: the changes are felt");
        assert!(session.text().contains("at = \"3001ms\"\nrate = \"4Mbit/s\""), "{}", session.text());
    }
}

/// On a link with two rates each direction is steered alone, and the other keeps its own.
#[test]
fn each_direction_of_an_asymmetric_link_is_steered_alone() {
    let text = TEXT.replace("rate = \"10Mbit/s\"", "rate = \"10Mbit/s\"\nreverse_rate = \"40kbit/s\"");
    let mut session = open(&text);
    for (after_ms, keys) in [
        (3_000, "rate = \"4Mbit/s\"\ndirection = \"forward\""),
        (2_000, "rate = \"60kbit/s\"\ndirection = \"reverse\""),
    ] {
        session.advance(Span::from_millis(after_ms)).unwrap();
        session.change("bottleneck", keys).unwrap();
    }
    session.advance(Span::MAX).unwrap();
    assert_eq!(session.summary(), native(session.text()));
    let both = session.text().replace("direction = \"forward\"\n", "");
    assert_ne!(session.summary(), native(&both), "the way back had kept its rate");
    assert_eq!(tables(session.simulation()), tables(&whole(session.text())));
}

/// Entries of the scenario come before and after what a person changes, in both directions of the link.
#[test]
fn steering_fits_between_the_changes_of_the_scenario() {
    let own =
        "[[changes]]\nlink = \"bottleneck\"\ndirection = \"reverse\"\nat = \"2s\"\nevery = \"4s\"\ndelay = \"30ms\"\n";
    let mut session = open(&format!("{TEXT}\n{own}"));
    session.advance(Span::from_secs(7)).unwrap();
    session.change("bottleneck", "rate = \"3Mbit/s\"\ndelay = \"5ms\"").unwrap();
    session.advance(Span::MAX).unwrap();
    assert_eq!(session.summary(), native(session.text()));
    let expected = tables(&whole(session.text()));
    assert!(expected.contains("link_changes"));
    assert_eq!(tables(session.simulation()), expected);
}

#[test]
fn a_wrong_change_is_refused_and_the_run_goes_on_as_it_was() {
    let mut session = open(TEXT);
    session.advance(Span::from_secs(1)).unwrap();
    let wrong = session.change("bottleneck", "rate = \"fast\"").unwrap_err();
    assert!(wrong.line > 17 && wrong.text.contains("playground.toml"), "{}", wrong.text);
    assert!(session.change("bottelneck", "loss = 0.1").unwrap_err().text.contains("did you mean \"bottleneck\"?"));
    session.advance(Span::MAX).unwrap();
    assert_eq!((session.text(), session.summary()), (TEXT, native(TEXT)));
}

/// Over all rows, drops add up to those of the summary, and goodput to the bytes delivered.
#[test]
fn rows_add_up_to_the_summary() {
    let mut session = open(TEXT);
    session.advance(Span::MAX).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&session.summary()).unwrap();
    let samples = session.samples();
    let width = samples.width();
    assert_eq!(width, 1 + QUEUE_COLUMNS.len() + 4 * FLOW_COLUMNS.len());
    let rows: Vec<&[f32]> = samples.rows().chunks(width).collect();
    assert_eq!(rows.len(), 2000);
    let values = |index: usize| rows.iter().map(move |row| f64::from(row[index]));
    let column = |index: usize| values(index).filter(|value| !value.is_nan()).sum::<f64>();
    let queue = &summary["bottlenecks"][0];
    let drops = queue["drops_aqm"].as_f64().unwrap() + queue["drops_overflow"].as_f64().unwrap();
    assert!(drops > 0.0 && column(3) == drops);
    for flow in 0..4 {
        let delivered = summary["flows"][flow]["delivered_bytes"].as_f64().unwrap() * 8.0;
        let goodput = column(1 + QUEUE_COLUMNS.len() + FLOW_COLUMNS.len() * flow + 2) * 0.01;
        assert!((goodput - delivered).abs() < 1e-4 * delivered, "flow {flow}: {goodput} of {delivered}");
    }
    // A row has a window while there is a connection, and a round trip from the first that was measured; never a zero.
    for at in [0, 1] {
        let index = 1 + QUEUE_COLUMNS.len() + at;
        assert!(
            values(index).next().unwrap().is_nan() && values(index).nth(999).unwrap() > 0.0,
            "{}",
            FLOW_COLUMNS[at]
        );
        assert!(values(index).all(|value| value != 0.0), "{}", FLOW_COLUMNS[at]);
    }
    assert!(rows.iter().all(|row| row[7] == 1e7 && row[8] == 10.0), "rate and delay of the link");
}

#[test]
fn packets_are_those_of_the_whole_run() {
    let (from, length) = (Instant::ZERO + Span::from_secs(5), Span::from_millis(100));
    let some = packets(TEXT, from, length).unwrap();
    let all = packets(TEXT, Instant::ZERO, Span::from_secs(20)).unwrap();
    let rows: Vec<&str> = some.lines().skip(1).collect();
    // 10 Mbit/s send a full packet in 1.2 ms, so 83 of them in 100 ms; a queue behind four flows is never empty for long.
    assert!((70..=130).contains(&rows.len()), "{} packets", rows.len());
    assert!(all.contains(&rows.join("\n")), "the same rows stand in a capture of the whole run");
}
