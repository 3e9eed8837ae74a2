//! A gateway by the law of cake-autorate: its probes are packets that wait in all queues, and its rates follow them. Expected
//! values come from the law, `core/src/estimate/autorate.rs`.

use penstock_core::units::Span;
use penstock_sim::summary::{BottleneckSummary, Summary};
use penstock_sim::{Scenario, Simulation};

/// A link of this rate whose gateway begins with 10 Mbit/s, and flows.
fn run(duration: &str, rate: &str, flows: &str) -> Summary {
    let text = format!(
        r#"
duration = "{duration}"
[topology]
kind = "graph"
[[topology.links]]
name = "home"
a = "lan"
b = "wan"
rate = "{rate}"
delay = "10ms"
limit = "1000p"
aqm = "fq-codel"
reverse_aqm = "fq-codel"
bottleneck = true
rate_from = "autorate"
first_rate = "10Mbit/s"
reverse_first_rate = "10Mbit/s"
{flows}"#
    );
    let scenario = Scenario::parse(&text, "autorate.toml").unwrap_or_else(|e| panic!("{e}\n{text}"));
    let again = Scenario::parse(&scenario.resolved(), "resolved.toml").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(scenario.resolved(), again.resolved());
    let mut simulation = Simulation::new(&scenario);
    simulation.advance(Span::MAX).unwrap_or_else(|e| panic!("{e}"));
    simulation.summary()
}

fn flow(keys: &str, from: &str, to: &str) -> String {
    format!("[[flows]]\n{keys}\nfrom = \"{from}\"\nto = \"{to}\"\n")
}

fn queue<'a>(summary: &'a Summary, name: &str) -> &'a BottleneckSummary {
    summary.bottlenecks.iter().find(|b| b.name == name).unwrap_or_else(|| panic!("{name} is not in the summary"))
}

/// The rate of a shaper at the end in Mbit/s, and whether there was bufferbloat.
fn rate(summary: &Summary, shaper: &str) -> (f64, bool) {
    let estimate = queue(summary, shaper).estimate.expect("a shaper that follows an estimate");
    (estimate.bps as f64 / 1e6, estimate.measured)
}

/// A probe is sent each 50 ms, at 0 first, and its answer comes after two ways of 10 ms over the link and two to the reflector, and
/// some microseconds. Probes rest with the first answer that is more than a minute after the first one: that to the probe of
/// 60.05 s. These are 1202 probes of 64 bytes.
#[test]
fn probes_and_answers_pass_all_four_queues_until_they_rest() {
    let later = flow("kind = \"cbr\"\nrate = \"1Mbit/s\"\nstart = \"70s\"", "lan", "wan");
    let summary = run("65s", "20Mbit/s", &later);
    for name in ["home", "home-modem", "home-provider", "home-reverse"] {
        let queue = queue(&summary, name);
        assert_eq!((queue.packets_all, queue.bytes_all, queue.drops_overflow), (1202, 1202 * 64, 0), "{name}");
    }
    assert_eq!([rate(&summary, "home"), rate(&summary, "home-reverse")], [(10.0, false); 2]);
}

/// 10 Mbit/s grow by 4 % while 9 Mbit/s are at least 76 % of them: 10.4, 10.816, 11.249, 11.699, 12.167. From there the rate decays by
/// 1 % in more than a second, to at least 11.8, of which the load is 76 % again.
#[test]
fn load_that_is_high_makes_room_above_itself_and_no_more() {
    let summary = run("20s", "20Mbit/s", &flow("kind = \"cbr\"\nrate = \"9Mbit/s\"", "lan", "wan"));
    let (up, bloated) = rate(&summary, "home");
    assert!((11.7..12.4).contains(&up) && !bloated, "{up}");
    assert_eq!(rate(&summary, "home-reverse"), (10.0, false));
    assert!(queue(&summary, "home-modem").queue_delay_ms.p99 < 1.0);
}

/// The link is half as fast as the base rate. An upload fills the queue of the modem until probes are delayed, and the rate falls:
/// the queue hardly ever holds the 1000 packets that it could, 2.4 s. Downloads keep their rate, because delays are one-way.
#[test]
fn an_upload_that_fills_the_modem_cuts_the_rate_of_uploads_alone() {
    let summary = run("60s", "5Mbit/s", &flow("kind = \"bulk\"", "lan", "wan"));
    let (up, bloated) = rate(&summary, "home");
    assert!((2.5..7.0).contains(&up) && bloated, "{up}");
    assert_eq!(rate(&summary, "home-reverse"), (10.0, false));
    let modem = queue(&summary, "home-modem");
    assert!(modem.queue_delay_ms.p90 < 150.0, "{:?}", modem.queue_delay_ms);
    assert!(queue(&summary, "home").utilization > 0.75, "{}", queue(&summary, "home").utilization);
}

/// The same for a download, which fills the queue of the provider.
#[test]
fn a_download_that_fills_the_provider_cuts_the_rate_of_downloads_alone() {
    let summary = run("60s", "5Mbit/s", &flow("kind = \"bulk\"", "wan", "lan"));
    let (down, bloated) = rate(&summary, "home-reverse");
    assert!((2.5..7.0).contains(&down) && bloated, "{down}");
    assert_eq!(rate(&summary, "home"), (10.0, false));
    assert!(queue(&summary, "home-provider").queue_delay_ms.p90 < 150.0);
}
