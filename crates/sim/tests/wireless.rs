//! Wireless links: a loss for each station, disciplines that know it, and simulated TCP and UDP over both.

use penstock_core::units::Span;
use penstock_sim::summary::Summary;
use penstock_sim::{Scenario, Simulation};

fn parse(text: &str) -> Scenario {
    Scenario::parse(text, "wireless.toml").unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn run(text: &str) -> Summary {
    let mut simulation = Simulation::new(&parse(text));
    while !simulation.advance(Span::MAX).unwrap() {}
    simulation.summary()
}

/// A link of 10 Mbit/s with these stations.
fn link(aqm: &str, stations: &str, more: &str) -> String {
    format!(
        r#"
duration = "10s"
[topology]
kind = "dumbbell"
rate = "10Mbit/s"
delay = "5ms"
limit = "200p"
stations = {stations}
[aqm]
{aqm}
{more}"#
    )
}

/// Streams of 1 Mbit/s in packets of 1000 B, 125 in a second.
fn streams(count: u32) -> String {
    format!("[[flows]]\nkind = \"cbr\"\nrate = \"1Mbit/s\"\npacket_size = \"972B\"\ncount = {count}\n")
}

/// Returns the share of all packets sent that arrived.
fn normalized(summary: &Summary) -> f64 {
    let bottleneck = &summary.bottlenecks[0];
    1.0 - bottleneck.lost as f64 / bottleneck.packets_all as f64
}

#[test]
fn each_flow_loses_what_its_station_loses() {
    let summary = run(&link("name = \"droptail\"", "[0, 0.5, 1]", &streams(6)));
    let arrived: Vec<u64> = summary.flows.iter().map(|flow| flow.delivered_bytes / 972).collect();
    // 1250 packets sent by each flow, a few of them still on their way at the end.
    assert!([arrived[0], arrived[3]].iter().all(|n| (1240..=1250).contains(n)), "{arrived:?}");
    assert_eq!((arrived[2], arrived[5]), (0, 0));
    // The count is binomial with mean 625 and standard deviation 17.7; the bound is five of them.
    assert!([arrived[1], arrived[4]].iter().all(|n| n.abs_diff(623) < 90), "{arrived:?}");
    let expected = 2.0 * (1250.0 + 625.0);
    assert!((summary.bottlenecks[0].lost as f64 - expected).abs() < 150.0, "{}", summary.bottlenecks[0].lost);
}

/// Sixteen streams of 1 Mbit/s over 10 Mbit/s, half of them to a station that gets nothing. The wired scheduler sends
/// half of its packets to it. With a MAC-SAL the dead station's packets wait there: each of its streams may have 4
/// packets waiting, 32 together, and Q = 64 holds them with room to spare for those of the good one. That one's
/// streams fill 8 of the 10 Mbit/s; what is left over goes to the other: 0.8.
#[test]
fn what_a_bad_station_is_sent_waits_in_the_mac_sal() {
    let told = |aqm: &str| {
        let aqm = format!("name = \"{aqm}\nclass_limit = \"4p\"\nstations = 2");
        normalized(&run(&link(&aqm, "[0.0, 1.0]", &streams(16))))
    };
    let wired = told("drr\"");
    assert!((wired - 0.5).abs() < 0.01, "{wired}");
    let none = told("double-drr\"\nbuffer = \"0p\"");
    assert_eq!(none, wired, "without a buffer it is the wired scheduler");
    let blind = told("double-drr\"\nbuffer = \"64p\"\nweighting = \"constant\"");
    assert!((blind - 0.5).abs() < 0.02, "{blind}: not told of the channel");
    let knowing = told("double-drr\"\nbuffer = \"64p\"");
    assert!((knowing - 0.8).abs() < 0.01, "{knowing}");
}

/// W²F²Q sends nothing to a station while its channel is bad. When it has packets for that station only, the link is
/// idle, and continues at the moment when the channel is good again.
#[test]
fn an_idle_link_goes_on_when_a_channel_becomes_good() {
    let change = "[[changes]]\nlink = \"bottleneck\"\nat = \"5s\"\nstations = [0.0, 0.0]\n";
    let flows = streams(2).replace("1Mbit/s", "100kbit/s");
    let stations = "[1.0, 1.0]";
    let aqm = "name = \"w2f2q\"\nclass_limit = \"50p\"\nstations = 2";
    let summary = run(&link(aqm, stations, &format!("{flows}{change}")));
    // 12.5 packets a second of each: 50 wait at 5 s, the others were refused, and all that come later arrive.
    for flow in &summary.flows {
        assert!((110..=114).contains(&(flow.delivered_bytes / 972)), "{}", flow.delivered_bytes / 972);
    }
    assert_eq!(summary.bottlenecks[0].lost, 0, "nothing was sent to a station that loses all");
    let markov = r#"[{ good = 0.0, bad = 1.0, mean_good = "20ms", mean_bad = "20ms" }]"#;
    let summary = run(&link("name = \"w2f2q\"\nstations = 1\nclass_limit = \"100p\"", markov, &flows));
    assert_eq!(summary.bottlenecks[0].lost, 0);
    assert!(summary.flows.iter().all(|flow| flow.delivered_bytes / 972 > 110), "{:?}", summary.bottlenecks[0]);
}

/// 75 packets come in 50 ms and find the channel bad every other 2 ms on average. None comes later: the link goes on by itself
/// whenever the channel is good, until all are sent.
#[test]
fn an_idle_link_goes_on_when_nothing_arrives_any_more() {
    let markov = r#"[{ good = 0.0, bad = 1.0, mean_good = "2ms", mean_bad = "2ms" }]"#;
    let flow = streams(1).replace("1Mbit/s", "12Mbit/s") + "stop = \"50ms\"\n";
    let summary = run(&link("name = \"w2f2q\"\nstations = 1\nclass_limit = \"100p\"", markov, &flow));
    assert_eq!(summary.bottlenecks[0].lost, 0);
    assert_eq!(summary.flows[0].delivered_bytes / 972, 75);
}

/// The second flow is at the second station with every connection that it opens, whatever number that has, as its first
/// packets would be.
#[test]
fn connections_are_at_the_station_of_their_flow() {
    let flows = format!("{}[[flows]]\nkind = \"http\"\nsize = \"20kB\"\nidle = \"200ms\"\n", streams(1));
    for (stations, arrives) in [("[1.0, 0.0]", true), ("[0.0, 1.0]", false)] {
        let summary = run(&link("name = \"droptail\"", stations, &flows));
        assert_eq!(summary.flows[1].delivered_bytes > 200_000, arrives, "{stations}");
        assert_eq!(summary.flows[1].delivered_bytes > 0, arrives, "{stations}");
    }
}

/// A list of ten thousand stations is the longest.
#[test]
fn a_link_has_ten_thousand_stations_at_most() {
    let read = |count: usize| {
        Scenario::parse(&link("name = \"droptail\"", &format!("{:?}", vec![0.5; count]), &streams(1)), "wireless.toml")
    };
    assert!(read(10_000).is_ok());
    let error = read(10_001).unwrap_err().to_string();
    assert!(error.contains("up to 10000 stations"), "{error}");
}

/// At 5 s the two stations exchange their losses.
#[test]
fn a_change_of_channels_is_told() {
    let change = "[[changes]]\nlink = \"bottleneck\"\nat = \"5s\"\nstations = [1.0, 0.0]\n";
    let aqm = "name = \"double-drr\"\nclass_limit = \"4p\"\nstations = 2\nbuffer = \"64p\"";
    let summary = run(&link(aqm, "[0.0, 1.0]", &format!("{}{change}", streams(16))));
    let arrived = |odd: u32| -> u64 {
        summary.flows.iter().filter(|flow| flow.id % 2 == odd).map(|flow| flow.delivered_bytes / 972).sum()
    };
    // Eight streams of 125 packets a second for 5 s are 5000, if all their packets get through.
    assert!((4400..=5100).contains(&arrived(0)), "{}", arrived(0));
    assert!((4400..=5100).contains(&arrived(1)), "{}", arrived(1));
    assert!((normalized(&summary) - 0.8).abs() < 0.02, "{}", normalized(&summary));
}

/// TCP uses little of the link to a station that loses half of its packets, and the good station has the rest.
#[test]
fn tcp_and_udp_run_over_lossy_stations() {
    let flows = "[[flows]]\nkind = \"bulk\"\ncount = 4\n";
    let summary = run(&link("name = \"double-drr\"\nstations = 2\nbuffer = \"20p\"", "[0.0, 0.5]", flows));
    let goodput =
        |odd: u32| -> f64 { summary.flows.iter().filter(|flow| flow.id % 2 == odd).map(|flow| flow.goodput_bps).sum() };
    assert!(goodput(0) > 8e6, "{}", goodput(0));
    assert!(goodput(1) > 0.0 && goodput(1) < 1e6, "{}", goodput(1));
}

#[test]
fn every_kind_of_channel_is_read_and_written() {
    let stations = r#"[1, 0.25, { good = 0.01, bad = 0.9, mean_good = "300ms", mean_bad = "100ms" },
        { technology = "wifi", snr_db = 22.5 }, { technology = "wimax", near_m = 100.0, far_m = 400.0, period = "60s" }]"#;
    let scenario = parse(&link("name = \"drr\"", stations, &streams(5)));
    assert_eq!(scenario.links[0].queue.stations.len(), 5);
    let again = parse(&scenario.resolved());
    assert_eq!(again.links[0].queue.stations, scenario.links[0].queue.stations);
    let (one, other) = (run(&scenario.resolved()), run(&scenario.resolved()));
    assert_eq!(serde_json::to_string(&one).unwrap(), serde_json::to_string(&other).unwrap());
    assert!(one.bottlenecks[0].lost > 1250, "the first station gets nothing");
}

#[test]
fn mistakes_are_told() {
    for (stations, change, says) in [
        ("[0.5, 1.5]", "", "a station's loss is 1.5"),
        ("[{ good = 0.1, bad = 2.0, mean_good = \"1s\", mean_bad = \"1s\" }]", "", "losses of a station are 0.1 and 2"),
        ("[{ good = 0.1, bad = 0.2, mean_good = \"1s\", mean_bad = \"0s\" }]", "", "a mean of 1us or more"),
        ("[{ technology = \"wifi\", near_m = 90.0, far_m = 10.0, period = \"1s\" }]", "", "1 to 1e6 metres"),
        ("[{ technology = \"wifi\" }]", "", "a station is a probability of loss, or a table"),
        ("[0.5]", "stations = [0.1, 0.2]", "2 losses for the 1 stations"),
        ("[0.5]", "stations = [-0.1]", "a loss is -0.1"),
        ("[0.5]", "", "nothing changes"),
    ] {
        let change = match says {
            "nothing changes" => "[[changes]]\nlink = \"bottleneck\"\nat = \"1s\"\n".to_owned(),
            _ if change.is_empty() => String::new(),
            _ => format!("[[changes]]\nlink = \"bottleneck\"\nat = \"1s\"\n{change}\n"),
        };
        let text = link("name = \"drr\"", stations, &format!("{}{change}", streams(1)));
        let error = Scenario::parse(&text, "wireless.toml").unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}
