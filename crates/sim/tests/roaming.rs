//! Nodes that keep to budgets and move: the fate of their datagrams, their budgets and their sockets.

use std::sync::LazyLock;

use penstock_core::units::Span;
use penstock_sim::summary::Summary;
use penstock_sim::{Scenario, Simulation};
use proptest::prelude::*;

/// Three cells behind a gateway with 4 Mbit/s and 100 ms to the far end, one of them for a node which stays. A fourth
/// cell has a path of 100 ms to the far end without the gateway, and a link of its own to the gateway.
const LAND: &str = r#"[topology]
kind = "graph"
access_rate = "100Mbit/s"
access_delay = "1ms"
links = [
  { name = "bottleneck", a = "gw", b = "far", rate = "4Mbit/s", delay = "100ms", limit = "9999p", reverse_limit = "9999p", aqm = { name = "AQM" } },
  { name = "cell1", a = "ue1", b = "enb1", rate = "20Mbit/s", delay = "5ms", limit = "60p", reverse_limit = "60p" },
  { name = "cell2", a = "ue2", b = "enb2", rate = "20Mbit/s", delay = "5ms", limit = "60p", reverse_limit = "60p" },
  { name = "cell3", a = "ue3", b = "enb3", rate = "20Mbit/s", delay = "5ms", limit = "60p", reverse_limit = "60p" },
  { name = "cell4", a = "ue4", b = "gw", rate = "20Mbit/s", delay = "6ms", limit = "60p", reverse_limit = "60p" },
  { name = "x2", a = "enb1", b = "enb2", rate = "100Mbit/s", delay = "2ms" },
  { name = "gw1", a = "enb1", b = "gw", rate = "100Mbit/s", delay = "1ms" },
  { name = "gw2", a = "enb2", b = "gw", rate = "100Mbit/s", delay = "1ms" },
  { name = "back", a = "enb3", b = "gw", rate = "100Mbit/s", delay = "60ms", loss = LOSS },
  { name = "land", a = "enb3", b = "far", rate = "20Mbit/s", delay = "100ms", limit = "60p", reverse_limit = "60p" },
]
"#;

/// A network with its flows and moves; `rest` is the text before the tables.
fn text(rest: &str, flows: &[&str], handovers: &[String]) -> String {
    let flows: String = flows.iter().map(|flow| format!("[[flows]]\n{}\n", flow.replace(", ", "\n"))).collect();
    let handovers: String = handovers.iter().map(|handover| format!("[[handovers]]\n{handover}\n")).collect();
    let coop = if rest.contains("cooperation") { "" } else { "cooperation = { link = \"bottleneck\" }\n" };
    let net = LAND.replace("AQM", "droptail").replace("LOSS", "0.0");
    format!("tcp = {{ c2ml = \"on\", mss = \"500B\" }}\n{coop}{rest}\n{net}{flows}{handovers}")
}

fn moves(at_ms: u64, from: &str, to: &str, procedure: &str) -> String {
    format!("at = \"{at_ms}ms\"\nfrom = \"{from}\"\nto = \"{to}\"\nprocedure = \"{procedure}\"")
}

/// The state of a run at the end of each step.
struct Run {
    steps: Vec<Summary>,
    step_ms: usize,
}

impl Run {
    /// For what happens at a moment.
    fn of(text: &str) -> Self {
        Self::every(text, 10)
    }

    /// For rates over seconds.
    fn by_seconds(text: &str) -> Self {
        Self::every(text, 1000)
    }

    /// The sum of the budgets in the gateway's books never exceeds the rate of the link.
    fn every(text: &str, step_ms: u64) -> Self {
        let scenario = Scenario::parse(text, "roaming.toml").unwrap_or_else(|e| panic!("{e}\n{text}"));
        let mut simulation = Simulation::new(&scenario);
        let mut steps = vec![simulation.summary()];
        let mut over = false;
        while !over {
            over = simulation.advance(Span::from_millis(step_ms)).unwrap_or_else(|e| panic!("{e}"));
            let summary = simulation.summary();
            let coop = summary.cooperation.as_ref().unwrap();
            assert!(coop.granted_bps <= coop.bandwidth_bps, "{coop:?}");
            steps.push(summary);
        }
        Self { steps, step_ms: step_ms as usize }
    }

    fn end(&self) -> &Summary {
        self.steps.last().unwrap()
    }

    /// Returns the state at the last step until a time.
    fn at(&self, at_ms: usize) -> &Summary {
        &self.steps[at_ms / self.step_ms]
    }

    fn clients(&self, at_ms: usize) -> u32 {
        self.at(at_ms).cooperation.as_ref().unwrap().clients
    }

    /// Returns the first time, at or after `from_ms`, at which there are this many clients.
    fn when_clients(&self, count: u32, from_ms: usize) -> usize {
        let steps = (from_ms..self.step_ms * self.steps.len()).step_by(self.step_ms);
        steps.into_iter().find(|at| self.clients(*at) == count).expect("it comes to that")
    }

    /// Returns what a flow delivered between two times, in Mbit/s of its payload.
    fn mbps(&self, flow: usize, from_ms: usize, to_ms: usize) -> f64 {
        let at = |ms: usize| self.at(ms).flows[flow].delivered_bytes as f64;
        8e-3 * (at(to_ms) - at(from_ms)) / (to_ms - from_ms) as f64
    }

    fn timeouts(&self) -> u64 {
        self.end().flows.iter().map(|flow| flow.timeouts).sum()
    }
}

/// Nodes that joined, left, were forgotten, and are there at the end.
fn counted(run: &Run) -> (u64, u64, u64, u32) {
    let coop = run.end().cooperation.as_ref().unwrap();
    (coop.joined, coop.left, coop.lapsed, coop.clients)
}

/// 500 of 552 bytes are payload.
const PAYLOAD: f64 = 500.0 / 552.0;
const ROAMER: &str = "kind = \"bulk\", node = \"a\", from = \"ue1\", to = \"far\"";
const STAYER: &str = "kind = \"bulk\", node = \"b\", from = \"ue4\", to = \"far\"";

/// Node a has two flows and moves to and fro behind the same gateway. A window of 1 Mbit/s and 216 ms is 48 segments. With
/// each move the node sends nothing for 27.5 ms, and what is forwarded takes 2 ms more over X2; over S1, to the far end and
/// back, 202 ms. A round trip time that is measured anew may have the transmission of a segment in it, so windows are as
/// they were or a segment apart.
#[test]
fn behind_the_same_gateway_budgets_hold() {
    let flows = [ROAMER, ROAMER, STAYER];
    let stays = Run::by_seconds(&text("duration = \"40s\"", &flows, &[]));
    for (procedure, pause) in [("x2-lossless", 0.0295), ("s1", 0.2295)] {
        let turns = [moves(15_000, "ue1", "ue2", procedure), moves(25_000, "ue2", "ue1", procedure)];
        let run = Run::by_seconds(&text("duration = \"40s\"", &flows, &turns));
        assert_eq!(counted(&run), (2, 0, 0, 2), "{procedure}");
        assert_eq!(run.end().handovers.unwrap().moves, 2 + 2, "{procedure}");
        for (flow, ends) in run.end().flows.iter().zip(&stays.end().flows) {
            let share = if flow.id == 2 { 2e6 } else { 1e6 };
            let allowed = 2.0 * pause * share / 8.0 + ends.delivered_bytes as f64 / 48.0;
            let apart = flow.delivered_bytes.abs_diff(ends.delivered_bytes) as f64;
            assert!(apart < allowed, "{procedure}: {apart} of {ends:?}");
            assert_eq!(flow.timeouts, 0, "{procedure}");
            // Over S1 ACKs overtake others.
            assert!(flow.retransmits == 0 || procedure == "s1" && flow.id < 2, "{flow:?}");
        }
        assert_eq!(run.end().bottlenecks[0].drops_overflow, 0);
    }
}

/// What is in the air is lost: 5 ms of two windows that are sent evenly, both ways. Fast recovery makes up for it.
#[test]
fn a_seamless_handover_costs_no_budget() {
    let turns = [moves(15_000, "ue1", "ue2", "x2-seamless"), moves(25_000, "ue2", "ue1", "x2-seamless")];
    let run = Run::by_seconds(&text("duration = \"40s\"", &[ROAMER, ROAMER, STAYER], &turns));
    assert_eq!(counted(&run), (2, 0, 0, 2));
    assert!(run.end().handovers.unwrap().lost_in_air > 0);
    assert_eq!(run.timeouts(), 0);
    for (flow, share) in [(0, 1.0), (1, 1.0), (2, 2.0)] {
        assert!((0.93..1.0).contains(&(run.mbps(flow, 30_000, 40_000) / share / PAYLOAD)));
    }
}

const LEASE_3S: &str = "duration = \"30s\"\ncooperation = { link = \"bottleneck\", lease = \"3s\" }";

/// Goodbye goes from the new cell to the gateway in 1 + 5 + 60 ms, and what the gateway then tells comes to node b in 7 ms
/// and at most 10 ms later. Without interruption that is 93 ms after the move; with it, so much more.
#[test]
fn who_leaves_the_gateway_leaves_its_budget_to_others() {
    for (interruption, procedure) in [(0, "s1"), (50, "x2-lossless")] {
        let leaves = moves(10_000, "ue1", "ue3", procedure) + &format!("\ninterruption = \"{interruption}ms\"");
        let run = Run::of(&text(LEASE_3S, &[ROAMER, ROAMER, STAYER], &[leaves]));
        let attached = 10_000 + interruption;
        let gone = run.when_clients(1, 10_000);
        assert!((attached + 66..=attached + 80).contains(&gone), "{gone}");
        let coop = run.end().cooperation.clone().unwrap();
        assert_eq!((coop.joined, coop.left, coop.lapsed, coop.granted_bps), (2, 1, 0, 4_000_000));
        assert!(run.mbps(2, 5_000, 10_000) < 2.0 * PAYLOAD);
        // A round trip after it was told, it has all.
        let told = gone + 20 + 214;
        assert!(run.mbps(2, told, 30_000) > 0.97 * 4.0 * PAYLOAD, "{}", run.mbps(2, told, 30_000));
        // The others are plain controls with 20 Mbit/s of their own.
        let own = run.mbps(0, 20_000, 30_000) + run.mbps(1, 20_000, 30_000);
        assert!(own > 0.8 * 20.0 * PAYLOAD, "{own}");
    }
}

/// If no goodbye arrives, a lease after the gateway last handled a request. A node says that it is there every third of it.
#[test]
fn who_cannot_say_goodbye_is_forgotten_after_a_lease() {
    let leaves = moves(10_000, "ue1", "ue3", "s1");
    let text = text(LEASE_3S, &[ROAMER, STAYER], &[leaves]).replace("loss = 0.0", "loss = 0.999999");
    let run = Run::of(&text);
    let gone = run.when_clients(1, 10_000);
    assert!((11_900..=13_030).contains(&gone), "{gone}");
    let coop = run.end().cooperation.clone().unwrap();
    assert_eq!((coop.joined, coop.left, coop.lapsed, coop.clients), (2, 0, 1, 1));
    assert!(run.mbps(1, gone + 300, 30_000) > 0.97 * 4.0 * PAYLOAD);
}

/// Hello, invitation, hello: three ways of 7 ms. Then levels for all, 10 ms later at most.
#[test]
fn who_comes_to_the_gateway_gets_its_share() {
    let roamer = ROAMER.replace("ue1", "ue3");
    let come = moves(10_000, "ue3", "ue1", "s1");
    let run = Run::of(&text(LEASE_3S, &[&roamer, &roamer, STAYER], &[come]));
    assert_eq!(run.clients(9_990), 1);
    let counts = run.when_clients(2, 10_000);
    assert!((10_027 + 21..=10_027 + 21 + 15).contains(&counts), "{counts}");
    assert!(run.mbps(2, 1_000, 10_000) > 0.97 * 4.0 * PAYLOAD);
    for (flow, share) in [(0, 1.0), (1, 1.0), (2, 2.0)] {
        let rate = run.mbps(flow, 20_000, 30_000);
        assert!((0.93..1.0).contains(&(rate / share / PAYLOAD)), "{flow}: {rate}");
    }
    let coop = run.end().cooperation.clone().unwrap();
    assert_eq!((coop.joined, coop.left, coop.lapsed, coop.granted_bps), (2, 0, 0, 4_000_000));
}

/// From 30 ms of round trip to 526 ms, by a satellite: a window is of the way that it is sent on.
#[test]
fn a_budget_is_used_on_a_longer_way() {
    let far = |text: String| {
        text.replace("rate = \"4Mbit/s\", delay = \"100ms\"", "rate = \"4Mbit/s\", delay = \"250ms\"")
            .replace("\"20Mbit/s\", delay = \"100ms\"", "\"20Mbit/s\", delay = \"8ms\"")
            .replace("delay = \"60ms\"", "delay = \"300ms\"")
    };
    let roamer = ROAMER.replace("ue1", "ue3");
    let there = moves(10_000, "ue3", "ue1", "s1");
    let run = Run::by_seconds(&far(text("duration = \"60s\"", &[&roamer, STAYER], std::slice::from_ref(&there))));
    let rate = run.mbps(0, 40_000, 60_000);
    assert!(rate > 0.9 * 2.0 * PAYLOAD, "{rate}");
    // And back: no longer than its own way takes, it is a plain control again.
    let back = moves(30_000, "ue1", "ue3", "s1");
    let run = Run::by_seconds(&far(text("duration = \"60s\"", &[&roamer, STAYER], &[there, back])));
    assert!(run.mbps(0, 45_000, 60_000) > 0.9 * 20.0 * PAYLOAD, "{}", run.mbps(0, 45_000, 60_000));
    assert!(run.mbps(1, 45_000, 60_000) > 0.97 * 4.0 * PAYLOAD);
}

/// While it has no cell for longer than a lease a node is forgotten, and what it holds goes to others; then it comes again.
#[test]
fn an_interruption_may_be_longer_than_a_lease() {
    let long = moves(10_000, "ue1", "ue2", "x2-lossless") + "\ninterruption = \"8s\"";
    let run = Run::of(&text(LEASE_3S, &[ROAMER, STAYER], &[long]));
    let gone = run.when_clients(1, 10_000);
    assert!((11_900..=13_030).contains(&gone), "{gone}");
    assert!(run.mbps(1, gone + 300, 18_000) > 0.97 * 4.0 * PAYLOAD);
    let again = run.when_clients(2, gone);
    assert!((18_000..18_100).contains(&again), "what waited is said at once: {again}");
    assert!(run.mbps(0, 22_000, 30_000) > 0.9 * 2.0 * PAYLOAD, "{}", run.mbps(0, 22_000, 30_000));
    assert_eq!(run.end().cooperation.as_ref().unwrap().clients, 2);
}

/// Every connection of a session is a socket where its flow crosses the gateway's link, and none elsewhere.
#[test]
fn sessions_come_and_go_with_their_connections() {
    let sessions = ROAMER
        .replace("bulk", "http")
        .replace("node", "count = 3, size = \"150kB\", idle = \"50ms\", connection = \"same\", node");
    let pages = ROAMER.replace("bulk", "http").replace("node", "size = \"50kB\", idle = \"100ms\", node");
    let turns = [moves(10_000, "ue1", "ue3", "s1"), moves(20_000, "ue3", "ue2", "s1")];
    let run = Run::by_seconds(&text(LEASE_3S, &[&sessions, &pages, STAYER], &turns));
    assert_eq!([9_000, 15_000, 29_000].map(|at| run.clients(at)), [2, 1, 2]);
    for (from, to, share) in [(5_000, 10_000, 2.0), (12_000, 20_000, 4.0), (24_000, 30_000, 2.0)] {
        let rate = run.mbps(4, from, to) / share / PAYLOAD;
        assert!((0.93..1.01).contains(&rate), "{rate} of its share from {from} to {to}");
    }
    for flow in &run.end().flows[..4] {
        let transfers = flow.measures.transfers().unwrap();
        assert!(transfers.count > 8 && transfers.failed == 0, "{transfers:?}");
    }
    let own = |from, to| (0..4).map(|flow| run.mbps(flow, from, to)).sum::<f64>();
    assert!(own(5_000, 10_000) < 2.0 * PAYLOAD && own(24_000, 30_000) < 2.0 * PAYLOAD);
    assert!(own(12_000, 20_000) > 2.5 * PAYLOAD, "{}", own(12_000, 20_000));
}

/// QRM refuses a node that is not listed, and knows it again when it has come back.
#[test]
fn qrm_knows_a_node_that_returns() {
    let turns = [moves(10_000, "ue1", "ue3", "s1"), moves(20_000, "ue3", "ue2", "s1")];
    let flood = "kind = \"cbr\", rate = \"8Mbit/s\", node = \"flood\", from = \"ue4\", to = \"far\"";
    let text =
        text(&LEASE_3S.replace("30s", "60s"), &[ROAMER, STAYER, flood], &turns).replace("\"droptail\"", "\"qrm\"");
    let run = Run::by_seconds(&text);
    let third = 4.0 / 3.0 * PAYLOAD;
    assert!(
        run.mbps(0, 5_000, 10_000) > 0.9 * third && run.mbps(0, 40_000, 60_000) > 0.9 * third,
        "{}",
        run.mbps(0, 40_000, 60_000)
    );
    assert!(run.mbps(1, 12_000, 20_000) > 0.9 * 2.0 * PAYLOAD && run.mbps(1, 40_000, 60_000) > 0.9 * third);
    assert!(run.mbps(2, 5_000, 60_000) < 2.05);
}

/// Node a says that its cell is what limits it, to 1 Mbit/s; the next one has 20.
#[test]
fn a_cell_that_limits_a_node_is_left_behind() {
    let coop = "duration = \"40s\"\ncooperation = { link = \"bottleneck\", sharing = \"dybra\", nodes = [{ name = \"a\", csi = \"cell1\" }] }";
    let turns = [moves(15_000, "ue1", "ue2", "s1"), moves(30_000, "ue2", "ue1", "s1")];
    let text = text(coop, &[ROAMER, STAYER], &turns)
        .replace("a = \"ue1\", b = \"enb1\", rate = \"20Mbit/s\"", "a = \"ue1\", b = \"enb1\", rate = \"1Mbit/s\"");
    let run = Run::by_seconds(&text);
    for (from, to, a, b) in [(5_000, 15_000, 1.0, 3.0), (18_000, 30_000, 2.0, 2.0), (33_000, 40_000, 1.0, 3.0)] {
        let (rates, shares) = ([run.mbps(0, from, to), run.mbps(1, from, to)], [a * PAYLOAD, b * PAYLOAD]);
        assert!(rates.iter().zip(shares).all(|(rate, share)| (0.9..1.01).contains(&(rate / share))), "{rates:?}");
    }
}

/// Both servers of a node move at 10 s, one from beyond the gateway's link and the other to there. The client learns of the one
/// in 27.5 + 7 ms, of the other in 28.5 + 6: who keeps a socket there does not say goodbye.
#[test]
fn a_server_that_moves_takes_its_flow_along() {
    let out = "kind = \"bulk\", node = \"a\", from = \"ue1\", to = \"ue3\"";
    let turns = [
        moves(10_000, "far", "ue2", "s1") + "\nflows = [0]",
        moves(10_000, "ue3", "far", "s1") + "\nflows = [1]\ninterruption = \"28500us\"",
    ];
    let text = text(LEASE_3S, &[ROAMER, out, STAYER], &turns);
    let run = Run::by_seconds(&text);
    let coop = run.end().cooperation.clone().unwrap();
    assert_eq!((coop.joined, coop.left, coop.lapsed, coop.clients), (2, 0, 0, 2));
    let before = run.mbps(0, 5_000, 10_000);
    let after = run.mbps(1, 15_000, 30_000);
    assert!(
        (0.9..1.01).contains(&(before / 2.0 / PAYLOAD)) && (0.9..1.01).contains(&(after / 2.0 / PAYLOAD)),
        "{before} {after}"
    );
    assert!(run.mbps(0, 15_000, 30_000) > 10.0, "it is on its own between the cells");
}

const PLACES: [&str; 4] = ["ue1", "ue2", "ue3", "gw"];

/// A node that moves about, also to the router of the gateway itself: a stream, a file and pages; and one that stays.
fn roamer_and_stayer(aqm: &str, handovers: &[String]) -> Summary {
    let rest = "duration = \"25s\"\ncooperation = { link = \"bottleneck\", lease = \"1s\", advertise = \"200ms\" }";
    let at = |kind: &str| format!("{kind}, node = \"a\", from = \"ue1\", to = \"far\"");
    let flows = [
        at("kind = \"cbr\", rate = \"500kbit/s\", packet_size = \"500B\", stop = \"5s\""),
        at("kind = \"transfer\", size = \"500kB\""),
        at("kind = \"http\", size = \"30kB\", idle = \"50ms\", stop = \"5s\""),
        STAYER.replace("\"bulk\"", "\"transfer\", size = \"1500kB\""),
    ];
    let text = text(rest, &flows.each_ref().map(String::as_str), handovers);
    Run::every(&text.replace("60p", "9999p").replace("droptail", aqm), 100).end().clone()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Whenever and wherever it goes, for however long it has no cell: what was sent arrives or was lost in the air, and each
    /// transfer ends. Then nobody holds a budget.
    #[test]
    fn however_a_node_moves_about_nothing_breaks(
        moved in prop::collection::vec((1..1_500_000u64, 0..1_500_000u64, 0..3usize, 0..3usize), 1..6),
        qrm: bool,
    ) {
        let (mut here, mut at, mut handovers) = (0, 0, Vec::new());
        for (wait, interruption, procedure, step) in moved {
            // With its cell at the gateway's own link, what is forwarded to it passes QRM in the wrong direction.
            let places = if qrm { 3 } else { 4 };
            let (from, there) = (PLACES[here], (here + 1 + step % (places - 1)) % places);
            (here, at) = (there, at + wait);
            let procedure = ["x2-lossless", "x2-seamless", "s1"][procedure];
            handovers.push(format!(
                "at = \"{at}us\"\nfrom = \"{from}\"\nto = \"{}\"\nprocedure = \"{procedure}\"\ninterruption = \"{interruption}us\"",
                PLACES[there]
            ));
            at += interruption;
        }
        let aqm = if qrm { "qrm" } else { "droptail" };
        let summary = roamer_and_stayer(aqm, &handovers);
        let (coop, lost) = (summary.cooperation.unwrap(), summary.handovers.unwrap().lost_in_air);
        prop_assert_eq!((coop.clients, coop.granted_bps, coop.forged, coop.ignored), (0, 0, 0, 0));
        prop_assert!(summary.flows[1].completion_s.is_some() && summary.flows[3].completion_s.is_some());
        let pages = summary.flows[2].measures.transfers().unwrap();
        prop_assert_eq!(pages.failed, 0);
        prop_assert_eq!(pages.started, pages.count);
        // 500 kbit/s for 5 s in packets of 528 bytes on the wire are 591.9; all arrive if nobody takes some out.
        if !qrm {
            static STAYS: LazyLock<u64> = LazyLock::new(|| roamer_and_stayer("droptail", &[]).flows[0].delivered_bytes / 500);
            let stays = *STAYS;
            let came = summary.flows[0].delivered_bytes / 500;
            prop_assert_eq!(stays, 592);
            prop_assert!(came <= stays && came + lost >= stays, "{} of {}, {} lost", came, stays, lost);
        }
    }
}

#[test]
fn it_is_the_same_again_and_written_back() {
    let text = text(LEASE_3S, &[ROAMER, ROAMER, STAYER], &[moves(10_000, "ue1", "ue3", "s1")]);
    let scenario = Scenario::parse(&text, "roaming.toml").unwrap();
    let again = Scenario::parse(&scenario.resolved(), "roaming.toml").unwrap();
    assert_eq!((&again.handovers, &again.cooperation), (&scenario.handovers, &scenario.cooperation));
    assert_eq!(again.handovers[0].flows, [0, 1]);
    assert_eq!(Run::every(&text, 10_000).end(), Run::every(&scenario.resolved(), 10_000).end());
}

#[test]
fn a_node_moves_as_a_whole() {
    let refused = |flows: &[&str], of: &str, says: &[&str]| {
        let one = moves(10_000, "ue1", "ue2", "s1") + of;
        let error = Scenario::parse(&text(LEASE_3S, flows, &[one]), "roaming.toml").unwrap_err().to_string();
        assert!(says.iter().all(|part| error.contains(part)), "{error}");
        assert!(error.contains("roaming.toml:"), "{error}");
    };
    let whole = ["node \"a\" takes part in [cooperation] and moves as one host", "name its flows [0, 2]", "^"];
    refused(&[ROAMER, STAYER, ROAMER], "\nflows = [2]", &whole);
    let elsewhere = ROAMER.replace("ue1", "ue3");
    let apart = ["node \"a\"", "flow 1 is at \"ue3\", not at \"ue1\"", "all its flows at one router", "^"];
    refused(&[ROAMER, &elsewhere], "", &apart);
    refused(&[ROAMER, &elsewhere], "\nflows = [0]", &apart);
    let there = ROAMER.replace("ue1", "ue2");
    refused(&[ROAMER, &there], "", &["flow 1 is at \"ue2\", not at \"ue1\"", "^"]);
    // At another time, or to another cell, is apart.
    let first =
        [moves(9_999, "ue1", "ue2", "s1"), moves(10_000, "ue1", "ue3", "s1")].map(|one| one + "\nflows = [0]\n");
    for first in first {
        refused(&[ROAMER, ROAMER], &format!("\nflows = [1]\n[[handovers]]\n{first}"), &["name its flows [0, 1]"]);
    }
    // Flows without a node, and servers, are hosts of their own.
    let single = ROAMER.replace("node = \"a\", ", "");
    let served = "kind = \"bulk\", node = \"b\", from = \"far\", to = \"ue1\"";
    for of in ["[1]", "[2]", "[0, 1, 2]"] {
        let one = moves(10_000, "ue1", "ue2", "s1") + "\nflows = " + of;
        let text = text(LEASE_3S, &[&single, &single, served, &served.replace("ue1", "ue3")], &[one]);
        assert!(Scenario::parse(&text, "roaming.toml").is_ok(), "{of}");
    }
}

/// From when it leaves, nothing is sent by the old cell any more, in neither direction: neither packets nor datagrams.
#[test]
fn nothing_goes_through_a_cell_that_was_left() {
    let looked_at = "limit = \"60p\", reverse_limit = \"60p\", aqm = { name = \"droptail\" }, reverse_aqm = { name = \"droptail\" }";
    for procedure in ["x2-lossless", "x2-seamless", "s1"] {
        for to in ["ue2", "ue3"] {
            let text = text(LEASE_3S, &[ROAMER, STAYER], &[moves(10_000, "ue1", to, procedure)]);
            let run = Run::by_seconds(&text.replace("limit = \"60p\", reverse_limit = \"60p\"", looked_at));
            let sent = |ms: usize, queue: &str| {
                let mut queues = run.at(ms).bottlenecks.iter();
                queues.find(|one| one.name == queue).map(|one| one.packets_all).unwrap()
            };
            for queue in ["cell1", "cell1-reverse"] {
                assert!(sent(10_000, queue) > 1000);
                assert_eq!(sent(10_000, queue), sent(30_000, queue), "{queue} {procedure} {to}");
            }
        }
    }
}

/// Bearers of one host: a call moves seamlessly, a file loses nothing. The node is the same before, after and in between.
#[test]
fn flows_of_a_node_may_move_by_two_procedures() {
    let call = ROAMER.replace("bulk", "voip");
    let turns = [(10_000, "ue1", "ue2"), (20_000, "ue2", "ue3")].map(|(at, from, to)| {
        let of = |procedure, flow| moves(at, from, to, procedure) + &format!("\nflows = [{flow}]");
        [of("x2-seamless", 1), of("x2-lossless", 0)]
    });
    let run = Run::of(&text(LEASE_3S, &[ROAMER, &call, STAYER], turns.as_flattened()));
    assert_eq!(counted(&run), (2, 1, 0, 1));
    assert_eq!((run.clients(19_990), run.clients(21_000)), (2, 1));
    assert_eq!(run.end().handovers.unwrap().moves, 4);
    assert!(run.mbps(2, 12_000, 20_000) < 2.0 * PAYLOAD && run.mbps(2, 21_000, 30_000) > 0.97 * 4.0 * PAYLOAD);
}

/// A queue that cannot give up what waits of a node's datagrams, though none of its flows goes that way.
#[test]
fn the_way_to_the_gateway_is_looked_at_too() {
    let fq = "rate = \"100Mbit/s\", delay = \"60ms\", aqm = { name = \"fq-codel\" }, loss";
    let one = moves(10_000, "ue1", "enb3", "s1");
    let text = text(LEASE_3S, &[ROAMER], &[one]).replace("rate = \"100Mbit/s\", delay = \"60ms\", loss", fq);
    let error = Scenario::parse(&text, "roaming.toml").unwrap_err().to_string();
    assert!(error.contains("\"fq-codel\" of link \"back\" cannot give up a flow that moves"), "{error}");
}
