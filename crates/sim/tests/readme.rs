//! A test of another project, with penstock-sim and penstock-core under [dev-dependencies].
use penstock_core::units::Span;
use penstock_sim::{Scenario, Simulation};

const HOME: &str = r#"
duration = "10s"

[topology]
kind = "dumbbell"
rate = "10Mbit/s"
delay = "10ms"
limit = "100p"

[aqm]
name = "codel"

[[flows]]
kind = "bulk"
cc = "cubic"
"#;

#[test]
fn codel_keeps_the_queue_short() {
    let scenario = Scenario::parse(HOME, "home.toml").unwrap();
    let mut simulation = Simulation::new(&scenario);
    simulation.advance(Span::MAX).unwrap();
    let summary = simulation.summary();
    assert!(summary.flows[0].goodput_bps > 9e6);
    assert!(summary.bottlenecks[0].queue_delay_ms.p90 < 20.0);
}
