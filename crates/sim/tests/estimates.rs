//! Gateways that are not told the rates of their links, in whole runs: what they use, and what waits behind them.

use penstock_core::units::Span;
use penstock_sim::summary::{BottleneckSummary, Summary};
use penstock_sim::{Scenario, Simulation};

fn read(text: &str) -> Scenario {
    Scenario::parse(text, "estimates.toml").unwrap_or_else(|e| panic!("{e}"))
}

fn run(text: &str) -> Summary {
    let mut simulation = Simulation::new(&read(text));
    simulation.advance(Span::MAX).unwrap();
    simulation.summary()
}

const ESTIMATE: &str = "rate_from = \"estimate\"\nmodem_limit = \"125kB\"\nprovider_limit = \"125kB\"\n";

/// A home link with fq-codel in both directions.
fn home(mbit: u32, link: &str, rest: &str) -> String {
    format!(
        "duration = \"60s\"\nwarmup = \"10s\"\n{rest}\n[topology]\nkind = \"dumbbell\"\nrate = \"{mbit}Mbit/s\"\n\
         delay = \"20ms\"\nlimit = \"1000p\"\nreverse_aqm = \"fq-codel\"\n{link}\n[aqm]\nname = \"fq-codel\"\n\
         [tcp]\nprofile = \"linux\"\n"
    )
}

fn queue<'a>(summary: &'a Summary, name: &str) -> &'a BottleneckSummary {
    summary.bottlenecks.iter().find(|one| one.name == name).unwrap_or_else(|| panic!("no {name}"))
}

/// The law of the gateway before this one took its own packets for a queue, and used a tenth of this link.
#[test]
fn four_uploads_fill_a_slow_link_that_nobody_tells() {
    let flows = "flows = [{ kind = \"bulk\", count = 4 }]";
    let (told, estimated) = (run(&home(2, "", flows)), run(&home(2, ESTIMATE, flows)));
    let (whole, link) = (&told.bottlenecks[0], queue(&estimated, "bottleneck"));
    assert!(link.utilization >= 0.95 * whole.utilization, "{} of {}", link.utilization, whole.utilization);
    let found = link.estimate.expect("a rate is estimated");
    assert!(found.measured && (found.bps as f64 / 2e6 - 1.0).abs() < 0.05, "{found:?}");
    // Three packets of 1500 B are 18 ms at 2 Mbit/s.
    let behind = &queue(&estimated, "bottleneck-modem").queue_delay_ms;
    assert!(behind.p90 <= 15.0 + 18.0, "{behind:?}");
}

#[test]
fn downloads_fill_a_link_that_nobody_tells_and_wait_in_the_gateway() {
    let flows = "flows = [{ kind = \"bulk\", count = 4, direction = \"reverse\" }]";
    let estimated = run(&home(20, ESTIMATE, flows));
    let (link, behind) = (queue(&estimated, "bottleneck-reverse"), queue(&estimated, "bottleneck-provider"));
    assert!(link.utilization >= 0.94, "{}", link.utilization);
    assert!(behind.queue_delay_ms.p90 <= 15.0 + 1.8, "{:?}", behind.queue_delay_ms);
    assert!(link.queue_delay_ms.mean > 0.0 && link.drops_aqm + link.marks > 0, "the discipline has work");
}

/// A told rate of a tenth or of ten times is found out.
#[test]
fn a_first_rate_that_is_wrong_is_found_out() {
    for first in ["200kbit/s", "20Mbit/s"] {
        let flows = "flows = [{ kind = \"bulk\", count = 4 }]";
        let told = format!("{ESTIMATE}first_rate = \"{first}\"");
        let estimated = run(&home(2, &told, flows));
        let link = queue(&estimated, "bottleneck");
        let bps = link.estimate.map_or(0, |found| found.bps);
        assert!(
            (bps as f64 / 2e6 - 1.0).abs() < 0.1 && link.utilization >= 0.9,
            "{first}: {bps}, {}",
            link.utilization
        );
    }
}

/// The link becomes slower and faster: what it carries then is known at the end.
#[test]
fn a_link_that_changes_is_followed() {
    for (rate, bps) in [("5Mbit/s", 5e6), ("40Mbit/s", 40e6)] {
        let rest = format!(
            "flows = [{{ kind = \"bulk\", count = 8 }}]\nchanges = [{{ link = \"bottleneck\", at = \"20s\", rate = \"{rate}\" }}]"
        );
        let estimated = run(&home(20, ESTIMATE, &rest));
        let found = queue(&estimated, "bottleneck").estimate.map_or(0.0, |found| found.bps as f64);
        assert!((found / bps - 1.0).abs() < 0.1, "{found} bit/s of {bps}");
    }
}

/// 20 Mbit/s become 5. Who knows it 140 ms later has sent 15 Mbit/s too much by then, which take 420 ms. A step takes 25 ms: who knows
/// it at once has sent too much for up to that time.
#[test]
fn a_late_oracle_knows_the_rate_a_round_trip_and_a_tenth_of_a_second_later() {
    let rest = "flows = [{ kind = \"cbr\", rate = \"30Mbit/s\" }]\n\
                changes = [{ link = \"bottleneck\", at = \"20s\", rate = \"5Mbit/s\" }]";
    for (law, range) in [("oracle", 0.0..0.075 + 0.01), ("late-oracle", 0.42..0.42 + 0.075 + 0.01)] {
        let link = format!("rate_from = \"{law}\"\nmodem_limit = \"2MB\"\nprovider_limit = \"2MB\"\n");
        let found = run(&home(20, &link, rest));
        let waited = queue(&found, "bottleneck-modem").queue_delay_ms.max / 1e3;
        assert!(range.contains(&waited), "{law}: {waited} s");
        assert!(queue(&found, "bottleneck").utilization > 0.98, "{law}");
    }
}

#[test]
fn a_scenario_that_is_written_out_has_what_the_gateway_knows() {
    let first = read(&home(2, ESTIMATE, "flows = [{ kind = \"bulk\" }]"));
    let resolved = first.resolved();
    for line in
        ["rate_from = \"estimate\"", "first_rate = \"2Mbit/s\"", "lowest = \"100kbit/s\"", "modem_limit = \"125kB\""]
    {
        assert!(resolved.contains(line), "{line} in\n{resolved}");
    }
    assert_eq!(read(&resolved).links, first.links);
}

#[test]
fn mistakes_are_told_with_their_line() {
    let flows = "flows = [{ kind = \"bulk\" }]";
    for (link, told) in [
        ("modem_limit = \"9p\"", "rate_from = \\\"estimate\\\""),
        (
            "rate_from = \"estimate\"\nfirst_rate = \"1Mbit/s\"\nlowest = \"2Mbit/s\"",
            "allowed are the bounds, 2Mbit/s to 20Mbit/s",
        ),
        ("rate_from = \"guess\"", "guess"),
    ] {
        let told = told.replace('\\', "");
        let message = Scenario::parse(&home(2, link, flows), "estimates.toml").expect_err(link).to_string();
        assert!(message.contains("estimates.toml:") && message.contains(&told), "{message}");
    }
    let moves = "handovers = [{ at = \"1s\", from = \"left\", to = \"right\", procedure = \"s1\" }]";
    let message =
        Scenario::parse(&home(2, ESTIMATE, &format!("{flows}\n{moves}")), "estimates.toml").expect_err("moves");
    assert!(message.to_string().contains("no [handovers]"), "{message}");
}
