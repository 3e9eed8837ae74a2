//! A test of another project, with penstock-stacks, penstock-sim, penstock-core and quinn-proto under [dev-dependencies].
use penstock_core::{foreign::Own, units::Span};
use penstock_sim::{Scenario, Simulation};
use penstock_stacks::quinn::{Control, Quinn};
use quinn_proto::congestion::NewRenoConfig;
use std::sync::Arc;

const HOME: &str = r#"
duration = "20s"

[topology]
kind = "dumbbell"
rate = "10Mbit/s"
delay = "20ms"
limit = "200p"

[aqm]
name = "codel"

[[flows]]
kind = "stack"
stack = "mine"
"#;

#[test]
fn mine_uses_the_link_and_keeps_its_queue_short() {
    let mut mine = NewRenoConfig::default(); // here stands your own ControllerFactory
    mine.loss_reduction_factor(0.8);
    let library = Own::new().with_stack("mine", Quinn::with(Control::Own("mine".into(), Arc::new(mine))));
    let mut run = Simulation::new(&Scenario::parse_with(HOME, "home.toml", &library).unwrap());
    run.advance(Span::MAX).unwrap();
    let summary = run.summary();
    assert!(summary.flows[0].goodput_bps > 8e6);
    assert!(summary.bottlenecks[0].queue_delay_ms.p90 < 20.0);
}
