//! What budgets for hosts cost, as one JSON object: `hosts_cost [NODES] [CHANGES] [SECONDS] [CHURN]`, as root for all of it.
//!
//! - `join`: NODES agents join a gateway over loopback, all at once. `s` is how long that takes, `gateway_ms` and `agent_ms`
//!   what a join computes at either side, `waited_s` how long the gateway's thread and that of all agents were ready while
//!   others had the processors; `crowded` attempts were told to come again, `overflowed` datagrams found no room at the
//!   gateway's socket.
//! - `machine_ns`: what the state machine takes per USED_BW, with signature and table.
//! - `thread_us`: CPU time of the gateway's thread per message that arrives, with TLS, over SECONDS of all nodes' reports.
//! - `churn`: in CHURN seconds each node leaves and joins again once in 100 s. `resident_kb` is the memory of the process
//!   after each tenth, `rejoin_s` the median and the longest time from leaving to the next budget.
//! - `change`: from a new rate at the gateway to the new pacing rate at a socket of the host, in the kernel.

use penstock_budgets::agent::{Agent, Identity};
use penstock_budgets::gateway::{Status, defaults};
use penstock_budgets::identity::{Credentials, Secret, Token};
use penstock_budgets::roster::Roster;
use penstock_budgets::served::{Keys, Served};
use penstock_core::coop::gateway::Start;
use penstock_core::coop::message::{Message, Request};
use penstock_core::coop::state::State;
use penstock_core::coop::{Claim, Key, Keyring, NodeId, Share};
use penstock_core::units::{Instant, Rate, Span};
use penstock_linux::bpf::datapath::clock;
use penstock_linux::limit::{Limit, hierarchy};
use penstock_linux::udp::Socket;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

fn main() {
    let number = |at: usize, default: u64| std::env::args().nth(at).and_then(|n| n.parse().ok()).unwrap_or(default);
    let (nodes, changes, seconds, churn) = (number(1, 1000) as usize, number(2, 300), number(3, 20), number(4, 0));
    let directory = std::env::temp_dir().join(format!("penstock-hosts-cost-{}", std::process::id()));
    let result = json!({
        "nodes": nodes,
        "machine_ns": machine(),
        "sessions": sessions(&directory, nodes, seconds, churn),
        "change": change(&directory, changes),
    });
    let _ = std::fs::remove_dir_all(&directory);
    println!("{result}");
}

/// Nanoseconds per USED_BW in the state machine, among 1,000 nodes.
fn machine() -> f64 {
    let ring = Keyring::new(1, &Key::new([1; 32]));
    let (mut now, mut out) = (Instant::ZERO, Vec::new());
    let config = defaults(Rate::from_bps(100_000_000));
    let gateway = penstock_core::coop::gateway::Gateway::new(config, ring.clone(), 1, Start::Fresh, now).unwrap();
    let mut gateway = gateway.with_table_key([1, 2]);
    let answer = |out: &mut Vec<penstock_core::coop::gateway::Outgoing>| {
        let mut answers = out.drain(..).filter_map(|o| match o.message {
            Message::AckHello(answer) | Message::AckUsed(answer) => Some(answer.state),
            _ => None,
        });
        answers.next_back().unwrap()
    };
    let mut states: Vec<_> = (1..=1000)
        .map(|n| {
            let node = NodeId(n);
            let mut state = State::ticket(node, Share::default()).sign(&ring);
            for ask in 1..=2 {
                gateway.handle(&Message::ClientHello { node, ask, state: Some(state) }, node, now, &mut out);
                state = answer(&mut out);
            }
            state
        })
        .collect();
    let (start, rounds) = (std::time::Instant::now(), 100);
    for ask in 3..3 + rounds {
        now += Span::from_millis(10);
        for state in &mut states {
            let node = state.state().node;
            gateway.handle(&Message::UsedBw(Request { node, ask, state: *state }, Claim::ALL), node, now, &mut out);
            *state = answer(&mut out);
        }
    }
    start.elapsed().as_nanos() as f64 / (1000 * rounds) as f64
}

/// An identity, made without the network.
fn identity(roster: &Roster, token: &Token) -> Identity {
    let secret = Secret::draw().unwrap();
    let enrolled = roster.enrol(&token.secret.public().unwrap(), &secret.public().unwrap(), "node").unwrap();
    let (node, share) = (NodeId(enrolled.0.node), enrolled.0.share);
    let ticket = State::ticket(node, share).sign(&roster.keyring());
    let own = Credentials { secret, certificate: enrolled.1 };
    Identity { node, own, authority: roster.authority().clone(), ticket }
}

struct Node {
    agent: Agent,
    socket: Socket,
}

fn node(identity: &Identity, gateway: SocketAddr) -> Node {
    let socket = Socket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    Node { agent: Agent::new(identity, vec![gateway]).unwrap(), socket }
}

fn turn(nodes: &mut [Node], epoch: std::time::Instant) {
    for node in nodes {
        node.socket.turn(&mut node.agent, &mut || Instant::from_nanos(epoch.elapsed().as_nanos() as u64));
    }
}

fn keys(directory: &Path) -> Keys {
    Keys { listen: "127.0.0.1:0".parse().unwrap(), directory: directory.to_owned(), ..Keys::default() }
}

/// What threads had of the processors, in seconds.
#[derive(Clone, Copy)]
struct Time {
    ran: f64,
    /// Ready to run while others ran.
    waited: f64,
}

/// The times of the gateway's thread and of all others, which are the agents.
fn times() -> [Time; 2] {
    let mut times = [Time { ran: 0.0, waited: 0.0 }; 2];
    for task in std::fs::read_dir("/proc/self/task").unwrap().flatten() {
        let read = |name: &str| std::fs::read_to_string(task.path().join(name)).unwrap_or_default();
        let of = &mut times[usize::from(read("comm").trim() != "c2ml")];
        let mut ns = read("schedstat").split(' ').map(|ns| ns.parse().unwrap_or(0.0)).collect::<Vec<f64>>().into_iter();
        of.ran += ns.next().unwrap_or_default() / 1e9;
        of.waited += ns.next().unwrap_or_default() / 1e9;
    }
    times
}

fn since(before: [Time; 2]) -> [Time; 2] {
    let now = times();
    [0, 1].map(|n| Time { ran: now[n].ran - before[n].ran, waited: now[n].waited - before[n].waited })
}

/// Datagrams for which a socket of this port had no room.
fn overflowed(port: u16) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/net/udp").ok()?;
    let line = text
        .lines()
        .find(|line| line.split_whitespace().nth(1).is_some_and(|local| local.ends_with(&format!(":{port:04X}"))))?;
    line.split_whitespace().last()?.parse().ok()
}

fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or_default()
}

/// Lets each node leave and join again once in 100 s.
fn churn(
    nodes: &mut [Node],
    identities: &[Identity],
    gateway: SocketAddr,
    seconds: u64,
    epoch: std::time::Instant,
) -> Value {
    let now = || Instant::from_nanos(epoch.elapsed().as_nanos() as u64);
    let (begin, mut left, mut memory) = (std::time::Instant::now(), 0usize, vec![resident()]);
    let (mut away, mut took) = (Vec::<(usize, std::time::Instant)>::new(), Vec::<f64>::new());
    while begin.elapsed().as_secs() < seconds {
        let elapsed = begin.elapsed().as_secs_f64();
        while (left as f64) < elapsed * nodes.len() as f64 / 100.0 {
            let at = left % nodes.len();
            left += 1;
            nodes[at].agent.end(now());
            turn(&mut nodes[at..=at], epoch);
            nodes[at] = node(&identities[at], gateway);
            away.push((at, std::time::Instant::now()));
        }
        turn(nodes, epoch);
        away.retain(|(at, since)| {
            let back = nodes[*at].agent.budget(now()).is_some();
            took.extend(back.then(|| since.elapsed().as_secs_f64()));
            !back
        });
        if elapsed >= seconds as f64 * memory.len() as f64 / 10.0 {
            memory.push(resident());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    memory.push(resident());
    took.sort_by(f64::total_cmp);
    json!({"left": left, "away": away.len(), "resident_kb": memory, "rejoin_s": [took.get(took.len() / 2), took.last()]})
}

fn sessions(directory: &Path, count: usize, seconds: u64, churned: u64) -> Value {
    let roster = Roster::open(directory).unwrap();
    let token = roster.invite(Share::default(), count as u32, Span::from_secs(3600)).unwrap();
    let identities: Vec<_> = (0..count).map(|_| identity(&roster, &token)).collect();
    let mut served =
        Served::start(&Keys { most: count as u32, ..keys(directory) }, Rate::from_bps(1_000_000_000), false).unwrap();
    let gateway = served.address();
    let epoch = std::time::Instant::now();
    let now = || Instant::from_nanos(epoch.elapsed().as_nanos() as u64);
    let mut nodes: Vec<Node> = identities.iter().map(|one| node(one, gateway)).collect();
    let (start, idle) = (std::time::Instant::now(), times());
    let all = |nodes: &[Node]| nodes.iter().all(|node| node.agent.budget(now()).is_some());
    while !all(&nodes) && start.elapsed().as_secs() < 120 {
        turn(&mut nodes, epoch);
    }
    let (join_s, joined) = (start.elapsed().as_secs_f64(), since(idle));
    let status = |served: &Served| -> Status {
        std::thread::sleep(Duration::from_millis(400));
        served.status().unwrap()
    };
    let (before, busy) = (status(&served), times());
    let memory = resident();
    let begin = std::time::Instant::now();
    while begin.elapsed().as_secs() < seconds {
        turn(&mut nodes, epoch);
        std::thread::sleep(Duration::from_millis(1));
    }
    let (cpu, wall) = (since(busy)[0].ran, begin.elapsed().as_secs_f64());
    let after = status(&served);
    let churned = (churned > 0).then(|| churn(&mut nodes, &identities, gateway, churned, epoch));
    let arrived = (after.sessions.datagrams - before.sessions.datagrams) as f64;
    // A change reaches everybody.
    let told = std::time::Instant::now();
    served.set_upload(Rate::from_bps(500_000_000));
    let half = |nodes: &[Node]| {
        nodes.iter().all(|node| node.agent.budget(now()).is_some_and(|b| b.as_bps() <= 500_000_000 / count as u64))
    };
    while !half(&nodes) && told.elapsed().as_secs() < 20 {
        turn(&mut nodes, epoch);
    }
    let told_ms = told.elapsed().as_secs_f64() * 1e3;
    json!({
        "join": {
            "s": join_s,
            "gateway_ms": joined[0].ran * 1e3 / count as f64,
            "agent_ms": joined[1].ran * 1e3 / count as f64,
            "waited_s": joined.map(|time| time.waited),
            "crowded": before.sessions.crowded,
            "overflowed": overflowed(gateway.port()),
        },
        "churn": churned,
        "holders": after.holders,
        "lapsed": after.messages.lapsed,
        "thread_us_per_datagram": cpu * 1e6 / arrived,
        "thread_cores": cpu / wall,
        "table_bytes": after.table_bytes,
        "resident_kb": [memory, resident()],
        "change_told_to_all_ms": told_ms,
    })
}

/// A cgroup in which this process is.
struct Cgroup(PathBuf);

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = std::fs::write(self.0.with_file_name("cgroup.procs"), std::process::id().to_string());
        let _ = std::fs::remove_dir(&self.0);
    }
}

fn change(directory: &Path, changes: u64) -> Value {
    let Some(root) = hierarchy() else { return json!({"skipped": "no cgroups of version 2"}) };
    let cgroup = Cgroup(root.join(format!("penstock-cost{}", std::process::id())));
    let joined = std::fs::create_dir(&cgroup.0).and_then(|()| std::fs::write(cgroup.0.join("cgroup.procs"), "0"));
    let limit = joined.and_then(|()| Limit::attach(&cgroup.0, &BTreeMap::new(), None));
    let limit = match limit {
        Ok(limit) => limit,
        Err(why) => return json!({"skipped": why.to_string()}),
    };
    let directory = directory.join("change");
    let roster = Roster::open(&directory).unwrap();
    let token = roster.invite(Share::default(), 1, Span::from_secs(3600)).unwrap();
    let identity = identity(&roster, &token);
    let mut served = Served::start(&keys(&directory), Rate::from_bps(20_000_000), false).unwrap();
    let mut nodes = vec![node(&identity, served.address())];
    let epoch = std::time::Instant::now();
    let now = || Instant::from_nanos(epoch.elapsed().as_nanos() as u64);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut writer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut reader, _) = listener.accept().unwrap();
    std::thread::spawn(move || while writer.write_all(&[7; 16_384]).is_ok() {});
    std::thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        while reader.read(&mut buffer).is_ok_and(|len| len > 0) {}
    });
    let mut waits: Vec<f64> = Vec::new();
    for n in 0..changes {
        let rate = 20_000_000 + (n % 2) * 10_000_000;
        let start = clock();
        served.set_upload(Rate::from_bps(rate));
        let begin = std::time::Instant::now();
        let mut ordered = None;
        loop {
            turn(&mut nodes, epoch);
            let budget = nodes[0].agent.budget(now());
            if budget != ordered || begin.elapsed().as_millis().is_multiple_of(500) {
                limit.order(budget).unwrap();
                ordered = budget;
            }
            let census = limit.census().unwrap();
            if census.changed_to == rate && census.changed_at >= start {
                waits.push((census.changed_at - start) as f64 / 1e6);
                break;
            }
            if begin.elapsed().as_secs() > 5 {
                break;
            }
            std::thread::sleep(Duration::from_micros(100));
        }
        std::thread::sleep(Duration::from_millis(30));
    }
    waits.sort_by(f64::total_cmp);
    let at = |part: f64| waits.get(((waits.len() as f64 * part) as usize).min(waits.len().saturating_sub(1))).copied();
    json!({"changes": changes, "applied": waits.len(), "p50_ms": at(0.5), "p99_ms": at(0.99), "most_ms": waits.last()})
}
