//! A gateway and four hosts with agents in namespaces, before an emulated link.
//!
//! ```text
//! host i 10.90.i.2 --- gateway === emulated link, 60 ms === server 10.77.0.2
//! ```

use crate::link::{GATEWAY, Link, body, page};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use penstock_emulator::report::Report;
use penstock_linux::testing::{Program, Sender, Testbed, Transfer, skip, wait_until};
use serde_json::Value;
use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub const HOSTS: usize = 4;
pub const WEIGHTS: [u64; HOSTS] = [1, 1, 2, 4];
/// 95 % of the link, in eight parts.
pub const PART: f64 = 8e6 * 0.95 / 8.0;
/// The payload in packets of 1500 bytes.
pub const PAYLOAD: f64 = 1448.0 / 1500.0;

/// A gateway that divides 95 % of 8 Mbit/s among the hosts by weight.
pub const DIVIDED: &str =
    "[link]\nrate = \"8Mbit/s\"\n[c2ml]\nsharing = \"weighted\"\npercent = 95\ndirectory = \"c2ml\"\n";

/// A gateway that holds hosts to their parts of 90 % of 8 Mbit/s.
pub const ENFORCED: &str = "[interfaces]\nwan = \"eth0\"\n[link]\nrate = \"9.5Mbit/s\"\nreverse_rate = \"8Mbit/s\"\n\
    [discipline]\nname = \"droptail\"\n[reverse_discipline]\nname = \"qrm\"\n\
    [c2ml]\nsharing = \"weighted\"\npercent = 90\nenforce = true\ndirectory = \"c2ml\"\n";

/// How iperf3 sends.
pub const TCP: &str = "-l 4K -C cubic";

/// The sides: the gateway, the server, and the hosts.
const SIDES: [&str; 2 + HOSTS] = ["g", "s", "c0", "c1", "c2", "c3"];

pub struct Scene {
    pub agent: PathBuf,
    cgroups: Vec<PathBuf>,
    link: Option<Link>,
    /// True if agents know a second gateway, at port 7444.
    pub standby: bool,
    /// True if agents know the gateway by its address of IPv6.
    pub ipv6: bool,
    programs: Vec<Program>,
    bed: Testbed,
}

impl Deref for Scene {
    type Target = Testbed;

    fn deref(&self) -> &Testbed {
        &self.bed
    }
}

impl Scene {
    /// Makes hosts, gateway and server with a link of this rate; `None` if that is not possible here.
    pub fn new(rate: &str) -> Option<Self> {
        let agent = Path::new(GATEWAY).with_file_name("penstock-agent");
        if !agent.exists() {
            return skip("no penstock-agent beside penstock-gateway: build the whole workspace");
        }
        let bed = Testbed::new(&SIDES, &["iperf3"])?;
        let cgroups = SIDES[2..].iter().map(|side| bed.cgroup(side)).collect::<Option<_>>()?;
        for host in 0..HOSTS {
            let (own, port) = (format!("c{host}"), format!("h{host}"));
            bed.veth([&own, "eth0"], ["g", &port]);
            bed.up("g", &port, &[&format!("10.90.{host}.1/24"), &format!("fd90:{host}::1/64")]);
            bed.up(&own, "eth0", &[&format!("10.90.{host}.2/24"), &format!("fd90:{host}::2/64")]);
            bed.route(&own, "default", &format!("10.90.{host}.1"));
            bed.route(&own, "default", &format!("fd90:{host}::1"));
        }
        bed.forward("g");
        bed.sh("g", "echo 1 > /proc/sys/net/ipv6/conf/all/forwarding");
        let link = Link::new(&bed, ["g", "s"], &format!("--rate {rate} --delay 30ms --limit 500p"));
        bed.route("s", "10.90.0.0/16", "10.77.0.1");
        bed.up("g", "eth0", &["fd77::1/64"]);
        bed.up("s", "eth0", &["fd77::2/64"]);
        bed.route("s", "fd90::/16", "fd77::1");
        Some(Self { agent, cgroups, link: Some(link), standby: false, ipv6: false, programs: Vec::new(), bed })
    }

    /// Ends the link; returns its report.
    pub fn end_link(&mut self) -> Report {
        self.link.take().unwrap().end()
    }

    /// Starts a program; returns the number of its process.
    pub fn start(&mut self, side: &str, line: &str) -> i32 {
        let program = Program::start(self.endless(side, &["sh", "-ec", &format!("exec {line} > /dev/null")]));
        let pid = program.pid() as i32;
        self.programs.push(program);
        pid
    }

    /// What a program has said.
    pub fn said(&self, pid: i32) -> String {
        self.programs.iter().find(|program| program.pid() as i32 == pid).unwrap().said()
    }

    /// Writes a file of a gateway, called `g`, with this text.
    pub fn write(&self, text: &str) {
        self.write_named("gateway.toml", "g", text);
    }

    /// Writes a file of another gateway.
    pub fn write_named(&self, file: &str, name: &str, text: &str) {
        fs::write(self.file(file), format!("name = \"{}\"\n{text}", self.namespace(name))).unwrap();
    }

    /// A scene whose gateway serves, and divides 95 % of 8 Mbit/s among the hosts by weight.
    pub fn divided() -> Option<Self> {
        let mut scene = Self::new("8Mbit/s")?;
        scene.write(DIVIDED);
        scene.gateway();
        Some(scene)
    }

    pub fn gateway(&mut self) -> i32 {
        let pid = self.start("g", &format!("{GATEWAY} run gateway.toml"));
        wait_until("the gateway serves", || self.ask_gateway().is_some());
        pid
    }

    pub fn ask_gateway(&self) -> Option<Value> {
        self.ask("status")
    }

    pub fn ask(&self, verb: &str) -> Option<Value> {
        self.ask_named("g", verb)
    }

    /// Asks another program than that of `gateway.toml`.
    pub fn ask_named(&self, name: &str, verb: &str) -> Option<Value> {
        let line = format!("{GATEWAY} {verb} --json --name {}", self.namespace(name));
        let output = self.asked("g", &line);
        if output.status.success() { serde_json::from_slice(&output.stdout).ok() } else { None }
    }

    fn asked(&self, side: &str, line: &str) -> Output {
        self.command(side, &["sh", "-ec", line]).output().unwrap()
    }

    /// What the page of the gateway answers; empty if there is none.
    pub fn page(&self, path: &str) -> String {
        body(&page(self, "g", &format!("GET {path} HTTP/1.1"))).to_owned()
    }

    pub fn agent(&mut self, host: usize) -> i32 {
        let line = format!("{} run agent{host}.toml", self.agent.display());
        self.start(&format!("c{host}"), &line)
    }

    pub fn ask_agent(&self, host: usize) -> Value {
        let side = format!("c{host}");
        let line = format!("{} status --json --name {}", self.agent.display(), self.namespace(&side));
        serde_json::from_slice(&self.asked(&side, &line).stdout).unwrap_or_default()
    }

    /// Enrols all hosts by tokens, and starts their agents; of each part of the upload they have as many as their weight.
    /// `more` are further lines of their files.
    pub fn join(&mut self, part: f64, more: &str) -> Vec<i32> {
        self.join_each(part, &[more; HOSTS])
    }

    /// The same with other lines for each host.
    pub fn join_each(&mut self, part: f64, more: &[&str; HOSTS]) -> Vec<i32> {
        let pids = self.start_agents(more);
        wait_until("all hosts have budgets", || {
            (0..HOSTS).all(|host| self.ask_agent(host)["budget_bps"].as_f64() == Some(part * WEIGHTS[host] as f64))
        });
        pids
    }

    /// Enrols all hosts, and starts their agents.
    pub fn start_agents(&mut self, more: &[&str; HOSTS]) -> Vec<i32> {
        let mut pids = Vec::new();
        for (host, weight) in WEIGHTS.into_iter().enumerate() {
            let file = format!(
                "name = \"{0}\"\ngateways = [\"{4}:7443\"{3}]\ndirectory = \"agent{host}\"\ncgroup = \"{1}\"\nlog = \"agent{host}.jsonl\"\n{2}\n",
                self.namespace(&format!("c{host}")),
                self.cgroups[host].display(),
                more[host],
                if self.standby { format!(", \"10.90.{host}.1:7444\"") } else { String::new() },
                if self.ipv6 { format!("[fd90:{host}::1]") } else { format!("10.90.{host}.1") },
            );
            fs::write(self.file(&format!("agent{host}.toml")), file).unwrap();
            self.sh("g", &format!("{GATEWAY} invite gateway.toml --weight {weight} > token{host}"));
            let enrol =
                format!("{} enrol agent{host}.toml --token token{host} --called host{host}", self.agent.display());
            self.sh(&format!("c{host}"), &enrol);
            pids.push(self.agent(host));
        }
        pids
    }

    /// Why this kernel refuses a file of an agent with these lines; `None` if it does not.
    pub fn refused(&self, more: &str) -> Option<String> {
        let file = format!(
            "gateways = [\"10.90.0.1:7443\"]\ndirectory = \"none\"\ncgroup = \"{}\"\n{more}\n",
            self.cgroups[0].display()
        );
        fs::write(self.file("asks.toml"), file).unwrap();
        let text = self.sh("c0", &format!("{} explain asks.toml", self.agent.display()));
        text.lines().find(|line| line.contains("the kernel's program")).map(str::to_owned)
    }

    /// Starts transfers of all hosts, which nobody limits but the agent.
    pub fn transfers(&self, seconds: u32) -> Vec<Transfer> {
        self.transfers_of(&[0, 1, 2, 3], seconds, TCP)
    }

    pub fn transfers_of(&self, hosts: &[usize], seconds: u32, how: &str) -> Vec<Transfer> {
        let words = format!("-t {seconds} -i 1 {how} --get-server-output");
        let sender = |host: &usize| Sender::new(SIDES[2 + host], &words).in_cgroup(&self.cgroups[*host]);
        self.begin(&hosts.iter().map(sender).collect::<Vec<_>>(), ["s", "10.77.0.2"])
    }

    /// Bits per second that come out of the link to the server, of all hosts together, with all headers of IP.
    pub fn arriving(&self, time: Duration) -> f64 {
        let bytes = || {
            let line = self.sh("s", "grep eth0: /proc/net/dev");
            line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap()
        };
        let (begin, before) = (Instant::now(), bytes());
        std::thread::sleep(time);
        let after = bytes();
        (after - before) * 8.0 / begin.elapsed().as_secs_f64()
    }

    /// Sends datagrams of about 1200 bytes from a host to an address of the server, 10.77.0.2 or fd77::2, at 12 Mbit/s or as
    /// fast as possible, until the flood is dropped.
    pub fn flood(&self, host: usize, to: &str) -> Flood {
        let to: std::net::IpAddr = to.parse().unwrap();
        let socket = self.udp(SIDES[2 + host], if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" });
        socket.connect((to, 9)).unwrap();
        let goes = Arc::new(AtomicBool::new(true));
        let still = goes.clone();
        let thread = std::thread::spawn(move || {
            let (begin, mut sent) = (Instant::now(), 0u32);
            while still.load(Ordering::Relaxed) {
                while f64::from(sent) < begin.elapsed().as_secs_f64() * 1250.0 {
                    // The server refuses them, of which the kernel tells.
                    let _ = socket.send(&[0; 1172]);
                    sent += 1;
                }
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        Flood { goes, thread: Some(thread) }
    }
}

/// A flood that ends with its owner.
pub struct Flood {
    goes: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.goes.store(false, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Sends a signal to a process.
pub fn send(pid: i32, signal: Signal) {
    kill(Pid::from_raw(pid), signal).unwrap();
}

/// What arrived of a transfer in each second, in bits per second. What the client counts lies in its socket's buffer, which
/// grows while it sends. The last, shorter interval is left out.
pub fn seconds(transfer: Transfer) -> Vec<f64> {
    let result = transfer.result();
    let intervals = result["server_output_json"]["intervals"].as_array().unwrap().iter();
    let sums = intervals.map(|one| &one["sum"]).filter(|sum| sum["seconds"].as_f64() > Some(0.9));
    sums.map(|sum| sum["bits_per_second"].as_f64().unwrap()).collect()
}

pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the middle one of an odd number of values: what a second in which a busy machine stood still does not change.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}
