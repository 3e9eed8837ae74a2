use super::*;

fn text(control: &str, aqm: &str) -> String {
    format!(
        "duration = \"4s\"\n[topology]\nkind = \"dumbbell\"\nrate = \"10Mbit/s\"\ndelay = \"10ms\"\nlimit = \"60p\"\n\
         [aqm]\nname = \"{aqm}\"\n[[flows]]\nkind = \"bulk\"\ncc = \"{control}\"\n[[flows]]\nkind = \"bulk\"\ncc = \"cubic\"\n"
    )
}

fn settings(agent: Agent) -> Settings {
    let weights = Weights { throughput: 1.0, delay: 1.0, loss: 1.0 };
    Settings { agent, interval: Span::from_millis(20), weights, pacing: None }
}

fn episode(agent: Agent) -> Episode {
    let text = match agent {
        Agent::Control => text("agent", "codel"),
        Agent::Aqm => text("newreno", "agent"),
    };
    Episode::new(&text, "test.toml", 7, settings(agent)).unwrap_or_else(|e| panic!("{e}"))
}

/// Plays an episode to its end; returns the rewards.
fn play(episode: &mut Episode, mut policy: impl FnMut(&[f32; WIDTH]) -> f32) -> Vec<f64> {
    let mut row = [0.0; WIDTH];
    episode.begin(&mut row);
    let mut rewards = Vec::new();
    while !episode.is_over() {
        let action = policy(&row);
        rewards.push(episode.step(action, &mut row).unwrap());
    }
    rewards
}

#[test]
fn an_episode_at_which_nobody_acts_is_a_run() {
    for agent in [Agent::Control, Agent::Aqm] {
        let mut watched = episode(agent);
        assert_eq!(play(&mut watched, |_| 0.0).len(), 200);
        let mut alone = episode(agent);
        alone.simulation.advance(Span::MAX).unwrap();
        assert_eq!(watched.simulation.summary(), alone.simulation.summary());
    }
}

#[test]
fn a_larger_window_has_more_throughput_and_more_delay() {
    let told = |packets: f32| {
        let mut one = episode(Agent::Control);
        play(&mut one, |seen| (packets / seen[6]).log2());
        let summary = one.simulation.summary();
        (summary.flows[0].goodput_bps, summary.flows[0].rtt_ms.mean)
    };
    let (small, large) = (told(2.0), told(30.0));
    assert!(large.0 > 2.0 * small.0 && large.1 > small.1, "{small:?} {large:?}");
}

fn steps(episode: &mut Episode, count: usize, action: f32, row: &mut [f32; WIDTH]) {
    for _ in 0..count {
        episode.step(action, row).unwrap();
    }
}

#[test]
fn an_aqm_that_drops_everything_stops_the_flows() {
    let mut row = [0.0; WIDTH];
    let mut one = episode(Agent::Aqm);
    one.begin(&mut row);
    steps(&mut one, 50, 0.0, &mut row);
    assert!(row[1] > 8.0, "{row:?}");
    steps(&mut one, 30, 1.0, &mut row);
    let before = one.simulation.summary().flows[0].delivered_bytes;
    steps(&mut one, 50, 1.0, &mut row);
    assert_eq!(one.simulation.summary().flows[0].delivered_bytes, before);
    assert_eq!([row[1], row[7]], [0.0, 1.0], "{row:?}");
}

/// A window of ten segments, at half of a window per round trip.
#[test]
fn a_pace_is_kept() {
    let settings = Settings { pacing: Some(0.5), ..settings(Agent::Control) };
    let text = text("agent", "codel").replace("10Mbit/s", "100Mbit/s");
    let mut one = Episode::new(&text, "test.toml", 7, settings).unwrap();
    play(&mut one, |_| 0.0);
    let flow = &one.simulation.summary().flows[0];
    let windows = flow.goodput_bps * flow.rtt_ms.mean / 1e3 / (one.window * 8.0);
    assert!((windows - 0.5).abs() < 0.05, "{windows} windows per round trip");
}

/// The link is gone from the second second on: after the timeout the window is one segment, which the agent sees, and it grows
/// from there.
#[test]
fn after_a_timeout_the_window_is_one_segment() {
    let gone = "[[changes]]\nlink = \"bottleneck\"\nat = \"1s\"\nloss = 1\n";
    let text = format!("{}{gone}", text("agent", "codel"));
    let mut one = Episode::new(&text, "test.toml", 7, settings(Agent::Control)).unwrap_or_else(|e| panic!("{e}"));
    let (mut row, mut seen) = ([0.0; WIDTH], Vec::new());
    while !one.is_over() {
        one.step(0.0, &mut row).unwrap();
        seen.push((row[5], row[6]));
    }
    let first = seen.iter().position(|(timeouts, _)| *timeouts > 0.0).expect("a timeout");
    assert!(seen[..first].iter().all(|(_, cwnd)| *cwnd == 10.0), "{seen:?}");
    assert!(seen[first..].iter().all(|(_, cwnd)| *cwnd == 1.0), "{seen:?}");
}

#[test]
fn a_scenario_without_an_agent_is_refused() {
    let refused = |text: &str, agent| Episode::new(text, "test.toml", 1, settings(agent)).unwrap_err().to_string();
    assert!(refused(&text("cubic", "codel"), Agent::Control).contains("first flow"));
    assert!(refused(&text("agent", "codel"), Agent::Aqm).contains("first bottleneck"));
    assert!(refused("duration = \"1s\"", Agent::Aqm).contains("test.toml"));
}
