//! A gateway and four hosts with agents in namespaces: real TCP shares an emulated link by the budgets, and nothing breaks
//! when gateway or agent are killed.

use crate::link::GATEWAY;
use crate::scene::{DIVIDED, ENFORCED, HOSTS, PART, PAYLOAD, Scene, TCP, WEIGHTS, mean, median, seconds, send};
use nix::sys::signal::Signal;
use penstock_linux::testing::{Transfer, bpf, skip, wait_until};
use serde_json::Value;
use std::time::{Duration, Instant};

/// The log of an agent has its enrolment and its start, and `support` packs it with the status.
fn what_happened_is_packed(scene: &Scene) {
    let agent = scene.agent.display();
    scene.sh("c0", &format!("{agent} support agent0.toml --name {} --out agent0.tar.gz", scene.namespace("c0")));
    let log: Vec<Value> = (scene.sh("c0", "tar -xzOf agent0.tar.gz support/log.jsonl").lines())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let did: Vec<_> = log.iter().map(|line| line["do"].as_str().unwrap()).collect();
    assert_eq!(did[..2], ["enrol", "start"], "{log:?}");
    let status = scene.sh("c0", "tar -xzOf agent0.tar.gz support/status.json");
    assert!(serde_json::from_str::<Value>(&status).unwrap()["budget_bps"].is_u64(), "{status}");
}

#[test]
fn hosts_share_a_link_by_their_budgets_and_nothing_breaks() {
    let Some(mut scene) = Scene::new("8Mbit/s") else { return };
    scene.write(DIVIDED);
    let gateway = scene.gateway();
    let agents = scene.join(PART, "");
    what_happened_is_packed(&scene);

    // All four hosts send as much as they may.
    let rates: Vec<Vec<f64>> = scene.transfers(7).into_iter().map(seconds).collect();
    let shares: Vec<f64> = rates
        .iter()
        .zip(WEIGHTS)
        .map(|(rate, weight)| median(&rate[4..7]) / (PART * weight as f64 * PAYLOAD))
        .collect();
    eprintln!("rates in budgets: {shares:.3?} of {rates:.0?}");
    let status = scene.ask_gateway().unwrap();
    assert_eq!(status["c2ml"]["holders"], 4);

    // The agent of the first host is killed, then the gateway: limits go away, connections stay.
    let transfers = scene.transfers(12);
    std::thread::sleep(Duration::from_secs(3));
    send(agents[0], Signal::SIGKILL);
    let killed = Instant::now();
    std::thread::sleep(Duration::from_secs(4));
    send(gateway, Signal::SIGKILL);
    wait_until("agents go on without a gateway", || {
        (1..HOSTS).all(|host| scene.ask_agent(host)["budget_bps"].is_null())
    });
    let without = killed.elapsed() - Duration::from_secs(4);
    let free: Vec<Vec<f64>> = transfers.into_iter().map(seconds).collect();
    eprintln!("free after {without:?}: {free:.0?}");
    assert!(without < Duration::from_secs(5), "{without:?}: a lease");
    let first = &free[0];
    assert!(mean(&first[7..]) > 1.5 * PART * PAYLOAD, "the limit of a killed agent goes away: {first:?}");

    // A gateway that starts again finds its nodes, and gives the same budgets.
    scene.gateway();
    wait_until("budgets are back", || {
        (1..HOSTS).all(|host| scene.ask_agent(host)["budget_bps"].as_f64() >= Some(PART * WEIGHTS[host] as f64))
    });
    let link = scene.end_link();
    if link.disturbed {
        return eprintln!("disturbed: {:?}", link.disturbed_by);
    }
    for share in shares {
        // A busy machine is late with budgets; docs/results/hosts.md has what an idle one measures.
        assert!((0.75..=1.03).contains(&share), "{share}");
    }
}

/// What passed of the hosts with a session and of all others in bits per second between two readings of the status.
fn passed(before: &Value, after: &Value) -> (Vec<(String, f64)>, f64) {
    let seconds = after["elapsed_s"].as_f64().unwrap() - before["elapsed_s"].as_f64().unwrap();
    let bytes = |one: &Value| {
        one["arrived"]["bytes"].as_f64().unwrap_or_default() - one["policed"]["bytes"].as_f64().unwrap_or_default()
    };
    let nodes = |status: &Value| status["enforcement"]["nodes"].as_array().cloned().unwrap_or_default();
    let of = |node: &Value| {
        let old = nodes(before).iter().find(|old| old["node"] == node["node"]).map_or(0.0, bytes);
        (node["address"].as_str().unwrap().to_owned(), (bytes(node) - old) * 8.0 / seconds)
    };
    let [old, new] = [before, after].map(|status| bytes(&status["enforcement"]["strangers"]));
    (nodes(after).iter().map(of).collect(), (new - old) * 8.0 / seconds)
}

/// A host without an agent that sends over four connections, and one whose agent is there while it floods UDP, get their
/// parts and no more; those of the two honest ones stay. `more` are further lines of the files of agents.
fn liars_are_held_to_their_parts(discipline: &str, more: &str) {
    let Some(mut scene) = Scene::new("10Mbit/s") else { return };
    scene.write(&format!("log = \"log.jsonl\"\n{ENFORCED}").replace("name = \"qrm\"", discipline));
    scene.gateway();
    let agents = scene.join(0.9e6, more);
    send(agents[0], Signal::SIGKILL);
    wait_until("the lease of the dead agent ends", || {
        scene.ask_gateway().is_some_and(|status| status["c2ml"]["holders"] == 3)
    });
    // 7.2 Mbit/s in seven parts, and 0.8 for those without a session.
    let part = 7.2e6 / 7.0;
    let dead: Vec<Transfer> = (0..4).flat_map(|_| scene.transfers_of(&[0], 12, TCP)).collect();
    let flood = scene.flood(1, "10.77.0.2");
    let honest = scene.transfers_of(&[2, 3], 12, TCP);
    std::thread::sleep(Duration::from_secs(6));
    let before = scene.ask_gateway().unwrap();
    std::thread::sleep(Duration::from_secs(4));
    let after = scene.ask_gateway().unwrap();
    let top = scene.ask("top --by node").unwrap();
    let honest: Vec<Vec<f64>> = honest.into_iter().map(seconds).collect();
    drop(flood);
    drop(dead);
    let shares = [0, 1].map(|at| median(&honest[at][4..11]) / (part * WEIGHTS[2 + at] as f64 * PAYLOAD));
    let (nodes, strangers) = passed(&before, &after);
    let flooded = nodes.iter().find(|(address, _)| address == "10.90.1.2").unwrap().1;
    eprintln!("{discipline}: of their parts honest hosts get {shares:.3?}, the flood {:.3}", flooded / part);
    eprintln!("of the rest the host without an agent gets {:.3}; {honest:.0?}", strangers / 0.8e6);
    eprintln!("queue {}", after["reverse"]["sojourn_ms"]);
    let policed = |node: &Value| node["policed"]["packets"].as_u64().unwrap();
    let enforced = &after["enforcement"];
    let of = |address: &str, what: &str| {
        let node = enforced["nodes"].as_array().unwrap().iter().find(|node| node["address"] == address).unwrap();
        node[what]["packets"].as_u64().unwrap()
    };
    let row = |name: &str| top["entries"].as_array().unwrap().iter().find(|row| row["name"] == name).unwrap().clone();
    let (flooding, dead) = (row("10.90.1.2"), row("10.90.0.2"));
    assert!(flooding["budget_bps"].as_f64().unwrap() > 0.99 * part && policed(&flooding) > 1000, "{flooding}");
    assert!(dead["budget_bps"].is_null() && policed(&dead) > 10, "{dead}");
    for address in ["10.90.2.2", "10.90.3.2"] {
        let (arrived, refused) = (of(address, "arrived"), of(address, "policed"));
        eprintln!("{refused} of {arrived} packets of {address} were refused");
        assert!(refused * 50 <= arrived, "who is honest is left alone: {refused} of {arrived}");
    }
    let link = scene.end_link();
    assert_eq!(enforced["nodes"].as_array().unwrap().len(), 3);
    assert!(of("10.90.1.2", "policed") > 1000 && policed(&enforced["strangers"]) > 10, "who lies is seen: {enforced}");
    assert!(flooded < 1.05 * part && strangers < 1.05 * 0.8e6, "{flooded} {strangers}");
    if link.disturbed {
        return eprintln!("disturbed: {:?}", link.disturbed_by);
    }
    for share in shares {
        // docs/results/hosts.md has what is measured; a simulation pins 0.95, which a machine that is busy enough does not give.
        assert!((0.85..=1.03).contains(&share), "{share}");
    }
}

#[test]
fn qrm_holds_liars_to_their_parts() {
    liars_are_held_to_their_parts("name = \"qrm\"", "");
}

#[test]
fn pink_before_qrm_holds_liars_to_their_parts() {
    liars_are_held_to_their_parts("name = \"pink\"\nqueue = \"qrm\"", "");
}

/// Windows of PINK are enough, and `percent` leaves what `c` would.
#[test]
fn pink_before_qrm_holds_hosts_whose_agents_do_not() {
    liars_are_held_to_their_parts("name = \"pink\"\nqueue = \"qrm\"\nc = 1.0", "apply = \"nothing\"");
}

/// IPv4 and IPv6 of a subscriber have one budget, that of the session of either.
#[test]
fn both_families_of_a_subscriber_have_one_budget() {
    let Some(mut scene) = Scene::new("10Mbit/s") else { return };
    scene.write(&format!("{ENFORCED}[subscribers]\nhouse = [\"10.90.1.0/24\", \"fd90:1::/64\"]\n"));
    scene.gateway();
    scene.join(0.9e6, "");
    let received = || {
        let counters = scene.sh("s", "grep -w Ip6InReceives /proc/net/snmp6");
        counters.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    let floods = ["10.77.0.2", "fd77::2"].map(|to| scene.flood(1, to));
    wait_until("both floods are held", || scene.arriving(Duration::from_secs(1)) > 0.8 * 0.9e6);
    std::thread::sleep(Duration::from_secs(2));
    let before = received();
    let arriving = scene.arriving(Duration::from_secs(3));
    let (packets, status) = (received() - before, scene.ask_gateway().unwrap());
    drop(floods);
    eprintln!("of one budget both families get {:.3}, IPv6 {packets} packets", arriving / 0.9e6);
    scene.end_link();
    assert!((0.8..1.05).contains(&(arriving / 0.9e6)), "{arriving} {}", status["enforcement"]);
    // Of a whole budget, 281 packets would be 3 s of IPv6 alone.
    assert!((20..270).contains(&packets), "{packets}");
    // A kernel may say a word of its own from an address of no session.
    let strangers = status["enforcement"]["strangers"]["arrived"]["packets"].as_u64().unwrap();
    assert!(strangers < 20, "{}", status["enforcement"]);
}

/// The sessions are over IPv6, so budgets are of the networks of hosts, /64. A flood of IPv6 is held to the budget of its host;
/// what the host sends by IPv4 is that of one without a session.
#[test]
fn a_session_over_ipv6_is_held_to_its_budget() {
    let Some(mut scene) = Scene::new("10Mbit/s") else { return };
    scene.ipv6 = true;
    scene.write(&format!("{ENFORCED}listen = \"[::]:7443\"\n"));
    scene.gateway();
    scene.join(0.9e6, "apply = \"nothing\"");
    let enforcement = |scene: &Scene| scene.ask_gateway().unwrap()["enforcement"].clone();
    let node = |enforcement: &Value| {
        let nodes = enforcement["nodes"].as_array().unwrap();
        nodes.iter().find(|node| node["address"] == "fd90:1::2").unwrap().clone()
    };
    let flood = scene.flood(1, "fd77::2");
    wait_until("the flood of IPv6 is held", || {
        let node = node(&enforcement(&scene));
        node["over"] == true && node["policed"]["packets"].as_u64() > Some(2000)
    });
    let before = scene.ask_gateway().unwrap();
    let arriving = scene.arriving(Duration::from_secs(3));
    let after = scene.ask_gateway().unwrap();
    drop(flood);
    let used = passed(&before, &after).0.iter().find(|(address, _)| address == "fd90:1::2").unwrap().1;
    eprintln!("of its budget a flood of IPv6 gets {:.3}, {:.3} come", used / 0.9e6, arriving / 0.9e6);
    let flood = scene.flood(1, "10.77.0.2");
    wait_until("a flood of IPv4 is one of no session", || {
        enforcement(&scene)["strangers"]["policed"]["packets"].as_u64() > Some(1000)
    });
    drop(flood);
    scene.end_link();
    assert!((0.9..1.05).contains(&(used / 0.9e6)), "{used} {after}");
    assert!(arriving < 1.2 * 0.9e6, "{arriving}");
}

/// A flood of UDP and a connection of one host get its budget together, and each a part of it. When the agent hangs or is
/// killed nothing is held any more.
#[test]
fn udp_and_tcp_of_a_host_stay_within_its_budget() {
    let Some(mut scene) = Scene::divided() else { return };
    let agents = scene.join(PART, "others = \"police\"");
    let budget = 2.0 * PART;
    let udp = scene.transfers_of(&[2], 59, "-u -b 12M -l 1172").remove(0);
    let tcp = scene.transfers_of(&[2], 10, TCP).remove(0);
    std::thread::sleep(Duration::from_secs(5));
    let both = scene.arriving(Duration::from_secs(4)) / budget;
    let tcp = seconds(tcp);
    let status = scene.ask_agent(2);
    let tcp_share = mean(&tcp[5..9]) / PAYLOAD / budget;
    let udp_share = both - tcp_share;
    eprintln!("of the budget TCP gets {tcp_share:.3}, UDP {udp_share:.3}: {tcp:.0?}; {}", status["others"]);

    // An agent that hangs holds nobody, one that goes on holds again, and one that is killed does not.
    let second = Duration::from_secs(1);
    for (signal, held) in [(Signal::SIGSTOP, false), (Signal::SIGCONT, true), (Signal::SIGKILL, false)] {
        send(agents[2], signal);
        wait_until(&format!("after {signal} held is {held}"), || {
            let arriving = scene.arriving(second) / budget;
            if held { arriving < 1.1 } else { arriving > 2.0 }
        });
    }
    drop(udp);
    let link = scene.end_link();
    assert!(status["others"]["refused"].as_u64() > Some(1000), "{status}");
    assert!(tcp_share + udp_share < 1.05, "{tcp_share} {udp_share}");
    if link.disturbed {
        return eprintln!("disturbed: {:?}", link.disturbed_by);
    }
    assert!(tcp_share > 0.25 && udp_share > 0.25, "{tcp_share} {udp_share}");
}

/// The value of a metric without labels, or with these.
fn metric(metrics: &str, name: &str) -> Option<f64> {
    let value = metrics.lines().find_map(|line| line.strip_prefix(&format!("penstock_gateway_{name} ")));
    value.and_then(|value| value.parse().ok())
}

/// Page, Prometheus and status tell the same of budgets, and whose is exceeded.
fn the_page_tells_the_same(scene: &Scene, enforced: bool) {
    let now = || serde_json::from_str::<Value>(&scene.page("/api/now")).unwrap_or_default();
    let mut last = (Value::Null, String::new());
    wait_until("status, page and metrics tell the same", || {
        // Between two equal answers of the gateway nothing has changed.
        let before = scene.ask_gateway().unwrap();
        std::thread::sleep(Duration::from_millis(1500));
        last = (now()["status"].clone(), scene.page("/metrics"));
        let same = |key: &str| before.pointer(key) == last.0.pointer(key);
        let budgets = |status: &Value| -> Vec<(Value, Value)> {
            let nodes = status["c2ml"]["nodes"].as_array().cloned().unwrap_or_default();
            nodes.into_iter().map(|node| (node["node"].clone(), node["budget_bps"].clone())).collect()
        };
        ["/enforcement", "/c2ml/granted_bps", "/c2ml/floors_bps", "/c2ml/holders", "/c2ml/enrolled"]
            .iter()
            .all(|key| same(key))
            && budgets(&before) == budgets(&last.0)
            && metric(&last.1, "c2ml_granted_bytes_per_second")
                == before["c2ml"]["granted_bps"].as_f64().map(|bps| bps / 8.0)
    });
    let (status, metrics) = last;
    let bytes = |pointer: &str| status.pointer(pointer).and_then(Value::as_f64).map(|bps| bps / 8.0);
    let number = |pointer: &str| status.pointer(pointer).and_then(Value::as_f64);
    for (name, value) in [
        ("c2ml_enrolled", Some(HOSTS as f64)),
        ("c2ml_budgets", Some(HOSTS as f64)),
        ("c2ml_nodes", Some(HOSTS as f64)),
        ("c2ml_floors_bytes_per_second", bytes("/c2ml/floors_bps")),
    ] {
        assert_eq!(metric(&metrics, name), value, "{name}: {metrics}");
    }
    let seen = [
        ("c2ml_over", number("/enforcement/over")),
        ("c2ml_used_bytes_per_second", bytes("/enforcement/used_bps")),
        ("c2ml_rest_bytes_per_second", bytes("/enforcement/rest_bps")),
        ("policed_packets_total{session=\"yes\"}", number("/enforcement/sessions/policed/packets")),
        ("enforced_bytes_total{session=\"no\"}", number("/enforcement/strangers/arrived/bytes")),
    ];
    for (name, value) in seen {
        assert_eq!(metric(&metrics, name), value, "{name}: {metrics}");
        assert_eq!(value.is_some(), enforced, "{name}");
    }
}

/// 7.2 Mbit/s in nine parts with floors of 1.6 for two of the hosts, so that 4 are left for weights of 2 and 4 and less than
/// a floor for the others. One of them floods: it is seen while it does, and held.
#[test]
fn the_page_tells_who_takes_more_than_its_budget() {
    let Some(mut scene) = Scene::new("10Mbit/s") else { return };
    let floors = "floors = [\"none\", \"none\", \"none\", \"1.2Mbit/s\"]\n[page]\n";
    scene.write(&format!("log = \"log.jsonl\"\n{ENFORCED}{floors}"));
    scene.gateway();
    scene.start_agents(&["apply = \"nothing\""; HOSTS]);
    // The level is 0.8: hosts of weight 1 have their floors instead, those of 2 and 4 have 1.6 and 3.2.
    let budgets = [1.2e6, 1.2e6, 1.6e6, 3.2e6].map(Some);
    wait_until("budgets have their floors", || {
        [0, 1, 2, 3].map(|host| scene.ask_agent(host)["budget_bps"].as_f64()) == budgets
    });
    let over = |scene: &Scene| {
        let status = serde_json::from_str::<Value>(&scene.page("/api/now")).unwrap_or_default()["status"].clone();
        let enforced = status["enforcement"].clone();
        let nodes = enforced["nodes"].as_array().cloned().unwrap_or_default();
        let who: Vec<String> = nodes
            .iter()
            .filter(|node| node["over"] == true)
            .map(|node| node["address"].as_str().unwrap_or_default().to_owned())
            .collect();
        (enforced["over"].as_u64(), who)
    };
    let flood = scene.flood(1, "10.77.0.2");
    wait_until("the flood is seen", || over(&scene) == (Some(1), vec!["10.90.1.2".to_owned()]));
    drop(flood);
    wait_until("it is over", || over(&scene) == (Some(0), Vec::new()));
    the_page_tells_the_same(&scene, true);
    let status = scene.ask_gateway().unwrap();
    assert_eq!(status["c2ml"]["floors_bps"].as_u64(), Some(4_800_000));
    assert!(status["enforcement"]["sessions"]["policed"]["packets"].as_u64() > Some(100), "{status}");
    scene.end_link();
}

/// A gateway of budgets only has a page as well; what hosts send it does not see.
#[test]
fn budgets_alone_have_a_page() {
    let Some(mut scene) = Scene::new("8Mbit/s") else { return };
    scene.write("[link]\nrate = \"8Mbit/s\"\n[page]\n[c2ml]\nsharing = \"weighted\"\ndirectory = \"c2ml\"\n");
    scene.gateway();
    scene.join(1e6, "apply = \"nothing\"");
    the_page_tells_the_same(&scene, false);
    assert!(scene.page("/").contains("id=\"budgets-table\""));
}

/// In the kernel data path sessions fill the programs at the interface of the LAN: a host that floods is held to its budget
/// there, the counters are those of what arrives at the server, and when the gateway dies everything passes.
#[test]
fn the_kernel_holds_a_flood_to_its_budget() {
    if bpf().is_none() {
        return;
    }
    let Some(mut scene) = Scene::new("10Mbit/s") else { return };
    scene.write(
        "log = \"log.jsonl\"\ndatapath = \"kernel\"\n[interfaces]\nwan = \"eth0\"\nlan = \"h1\"\n[link]\nrate = \"9.5Mbit/s\"\n\
         reverse_rate = \"8Mbit/s\"\n[c2ml]\nsharing = \"weighted\"\npercent = 90\nenforce = true\ndirectory = \"c2ml\"\n",
    );
    let gateway = scene.start("g", &format!("{GATEWAY} run gateway.toml"));
    let said = || scene.said(gateway);
    wait_until("the gateway serves, or says why not", || scene.ask_gateway().is_some() || said().contains("error"));
    if scene.ask_gateway().is_none() {
        return skip(said());
    }
    scene.join(0.9e6, "apply = \"nothing\"");
    let node = |scene: &Scene| {
        let nodes = scene.ask_gateway()?["enforcement"]["nodes"].as_array().cloned()?;
        nodes.into_iter().find(|node| node["address"] == "10.90.1.2")
    };
    // Datagrams to a port that nobody has.
    let arrived = |scene: &Scene| {
        let line = scene.sh("s", "grep '^Udp: [0-9]' /proc/net/snmp");
        line.split_whitespace().nth(2).unwrap().parse::<u64>().unwrap()
    };
    wait_until("the budget is told", || node(&scene).is_some_and(|node| node["budget_bps"] == 900_000));
    let flood = scene.flood(1, "10.77.0.2");
    wait_until("the flood is held", || {
        node(&scene).is_some_and(|node| node["over"] == true && node["policed"]["packets"].as_u64() > Some(2000))
    });
    let used = node(&scene).unwrap()["used_bps"].as_f64().unwrap();
    drop(flood);
    let passed =
        |node: &Value| node["arrived"]["packets"].as_u64().unwrap() - node["policed"]["packets"].as_u64().unwrap();
    let mut last = (0, 0);
    wait_until("what passed has arrived", || {
        last = (passed(&node(&scene).unwrap()), arrived(&scene));
        last.0 == last.1 && node(&scene).unwrap()["over"] == false
    });
    assert!(last.0 > 100, "{last:?}");
    eprintln!("of its budget the flood used {:.3}, {} datagrams passed", used / 0.9e6, last.0);
    // A second of the gateway may be late on a busy machine.
    assert!(used < 1.3 * 0.9e6, "{used}");
    let status = scene.ask_gateway().unwrap();
    assert_eq!(status["enforcement"]["sessions"]["policed"]["packets"], node(&scene).unwrap()["policed"]["packets"]);
    assert_eq!(status["c2ml"]["holders"], 4);
    send(gateway, Signal::SIGKILL);
    let before = arrived(&scene);
    let flood = scene.flood(1, "10.77.0.2");
    // 2000 datagrams at its budget would take 21 s.
    let begin = std::time::Instant::now();
    wait_until("everything passes", || arrived(&scene) > before + 2000);
    drop(flood);
    eprintln!("2000 datagrams in {:.1?} without a gateway", begin.elapsed());
    scene.end_link();
}
