//! A gateway and four hosts with agents in namespaces, before an emulated link.
//!
//! ```text
//! host i 10.90.i.2 --- gateway === emulated link, 60 ms === server 10.77.0.2
//! ```
#![allow(dead_code)] // Each test uses a part.

use clap::Parser;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use penstock_appliance::output::Printer;
use penstock_emulator::cli::Options;
use penstock_emulator::emulator::{Emulator, Outside};
use penstock_emulator::report::Report;
use penstock_linux::netns::Namespace;
use penstock_linux::signals::Signals;
use serde_json::Value;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The program.
pub const GATEWAY: &str = env!("CARGO_BIN_EXE_penstock-gateway");
pub const HOSTS: usize = 4;
pub const WEIGHTS: [u64; HOSTS] = [1, 1, 2, 4];
/// 95 % of the link, in eight parts.
pub const PART: f64 = 8e6 * 0.95 / 8.0;
/// The payload in packets of 1500 bytes.
pub const PAYLOAD: f64 = 1448.0 / 1500.0;

/// How iperf3 sends.
pub const TCP: &str = "-l 4K -C cubic";

/// How long anything may take on a machine with much other work.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub fn wait_until(what: &str, mut is: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is() {
        assert!(begin.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

static TURN: Mutex<()> = Mutex::new(());
static SCENES: AtomicU32 = AtomicU32::new(0);

pub struct Scene {
    pub name: String,
    pub directory: PathBuf,
    pub agent: PathBuf,
    cgroups: PathBuf,
    pub link: Option<JoinHandle<Report>>,
    /// True if agents know a second gateway, at port 7444.
    pub standby: bool,
    /// True if agents know the gateway by its address of IPv6.
    pub ipv6: bool,
    children: Vec<Child>,
    _turn: MutexGuard<'static, ()>,
}

impl Scene {
    /// Makes hosts, gateway and server with a link of this rate; `None` if that is not possible here.
    pub fn new(rate: &str) -> Option<Self> {
        let agent = Path::new(GATEWAY).with_file_name("penstock-agent");
        let cgroups = penstock_linux::limit::hierarchy();
        let missing = if !nix::unistd::geteuid().is_root() {
            Some("not root".to_owned())
        } else if !agent.exists() {
            Some("no penstock-agent beside penstock-gateway: build the whole workspace".to_owned())
        } else if cgroups.is_none() || !Path::new("/dev/net/tun").exists() {
            Some("no cgroups of version 2, or no TUN".to_owned())
        } else {
            ["ip", "iperf3", "nsenter"].into_iter().find_map(|program| {
                let found = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
                found.err().map(|_| format!("no {program}"))
            })
        };
        if let Some(why) = missing {
            eprintln!("skipped: {why}");
            return None;
        }
        // One at a time, because two would disturb each other.
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let number = SCENES.fetch_add(1, Ordering::Relaxed);
        let (cgroups, name) = (cgroups?, format!("pght{}n{number}", std::process::id()));
        let directory = std::env::temp_dir().join(&name);
        fs::create_dir_all(&directory).unwrap();
        let mut scene = Self {
            name,
            directory,
            agent,
            cgroups,
            link: None,
            standby: false,
            ipv6: false,
            children: Vec::new(),
            _turn,
        };
        for side in scene.sides() {
            if !Command::new("ip").args(["netns", "add", &scene.namespace(&side)]).status().unwrap().success() {
                eprintln!("skipped: no namespaces");
                return None;
            }
            scene.sh(&side, "ip link set lo up");
        }
        for host in 0..HOSTS {
            fs::create_dir_all(scene.cgroup(host)).unwrap();
            let (own, gateway) = (scene.namespace(&format!("c{host}")), scene.namespace("g"));
            let veth = format!("ip link add eth0 netns {own} type veth peer name h{host} netns {gateway}");
            scene.sh("g", &veth);
            scene.sh("g", &format!("ip addr add 10.90.{host}.1/24 dev h{host}; ip link set h{host} up"));
            let side = format!("c{host}");
            scene.sh(&side, &format!("ip addr add 10.90.{host}.2/24 dev eth0; ip link set eth0 up"));
            scene.sh(&side, &format!("ip route add default via 10.90.{host}.1"));
            scene.sh("g", &format!("ip addr add fd90:{host}::1/64 dev h{host} nodad"));
            scene.sh(&side, &format!("ip addr add fd90:{host}::2/64 dev eth0 nodad"));
            scene.sh(&side, &format!("ip route add default via fd90:{host}::1"));
        }
        scene.sh("g", "echo 1 > /proc/sys/net/ipv4/ip_forward; echo 1 > /proc/sys/net/ipv6/conf/all/forwarding");
        scene.emulate(rate);
        scene.sh("s", "ip route add 10.90.0.0/16 via 10.77.0.1");
        scene.sh("g", "ip addr add fd77::1/64 dev eth0 nodad");
        scene.sh("s", "ip addr add fd77::2/64 dev eth0 nodad; ip route add fd90::/16 via fd77::1");
        Some(scene)
    }

    pub fn sides(&self) -> Vec<String> {
        ["g".to_owned(), "s".to_owned()].into_iter().chain((0..HOSTS).map(|host| format!("c{host}"))).collect()
    }

    pub fn namespace(&self, side: &str) -> String {
        format!("{}{side}", self.name)
    }

    pub fn cgroup(&self, host: usize) -> PathBuf {
        self.cgroups.join(format!("{}c{host}", self.name))
    }

    pub fn emulate(&mut self, rate: &str) {
        let words =
            format!("x --left eth0 --right eth0 --realtime --duration 300s --rate {rate} --delay 30ms --limit 500p");
        let options = Options::parse_from(words.split_ascii_whitespace());
        let plan = options.plans(&()).unwrap().remove(0);
        let namespaces = ["g", "s"].map(|side| Namespace::open(Some(&self.namespace(side))).unwrap());
        let (ready, is_ready) = std::sync::mpsc::channel();
        self.link = Some(std::thread::spawn(move || {
            let (signals, printer) = (Signals::open().unwrap(), Printer::open(1).unwrap());
            let outside = Outside { signals, server: None, printer: printer.offers() };
            let (emulator, desk) = Emulator::open(plan, &options, &namespaces, outside).unwrap();
            ready.send(()).unwrap();
            emulator.run(desk).0.report
        }));
        is_ready.recv_timeout(PATIENCE).unwrap();
    }

    pub fn command(&self, side: &str, line: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.namespace(side))).args(["sh", "-ec", line]);
        command.current_dir(&self.directory).stdin(Stdio::null());
        command
    }

    pub fn sh(&self, side: &str, line: &str) -> String {
        let output = self.command(side, line).output().unwrap();
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    pub fn start(&mut self, side: &str, line: &str) -> i32 {
        let log = fs::File::create(self.directory.join(format!("{side}.log"))).unwrap();
        let child = self.command(side, line).stdout(Stdio::null()).stderr(log).spawn().unwrap();
        let pid = child.id() as i32;
        self.children.push(child);
        pid
    }

    /// A scene whose gateway serves, and divides 95 % of 8 Mbit/s among the hosts by weight.
    pub fn divided() -> Option<Self> {
        let mut scene = Self::new("8Mbit/s")?;
        let file = format!(
            "name = \"{}g\"\n[link]\nrate = \"8Mbit/s\"\n[c2ml]\nsharing = \"weighted\"\npercent = 95\ndirectory = \"c2ml\"\n",
            scene.name
        );
        fs::write(scene.directory.join("gateway.toml"), file).unwrap();
        scene.gateway();
        Some(scene)
    }

    pub fn gateway(&mut self) -> i32 {
        let pid = self.start("g", &format!("exec {GATEWAY} run gateway.toml"));
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
        let line = format!("{GATEWAY} {verb} --json --name {}{name}", self.name);
        let output = self.command("g", &line).output().ok().filter(|output| output.status.success())?;
        serde_json::from_slice(&output.stdout).ok()
    }

    /// What the page of the gateway answers at 127.0.0.1:7080; empty if there is none.
    pub fn page(&self, path: &str) -> String {
        let connect =
            || TcpStream::connect("127.0.0.1:7080").map_err(penstock_linux::error::Error::io("cannot connect"));
        let Ok(mut stream) = Namespace::open(Some(&self.namespace("g"))).unwrap().run(connect) else {
            return String::new();
        };
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost:7080\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default()
    }

    pub fn agent(&mut self, host: usize) -> i32 {
        let line = format!("exec {} run agent{host}.toml", self.agent.display());
        self.start(&format!("c{host}"), &line)
    }

    pub fn ask_agent(&self, host: usize) -> Value {
        let line = format!("{} status --json --name {}c{host}", self.agent.display(), self.name);
        serde_json::from_slice(&self.command(&format!("c{host}"), &line).output().unwrap().stdout).unwrap_or_default()
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
                "name = \"{0}c{host}\"\ngateways = [\"{4}:7443\"{3}]\ndirectory = \"agent{host}\"\ncgroup = \"{1}\"\nlog = \"agent{host}.jsonl\"\n{2}\n",
                self.name,
                self.cgroup(host).display(),
                more[host],
                if self.standby { format!(", \"10.90.{host}.1:7444\"") } else { String::new() },
                if self.ipv6 { format!("[fd90:{host}::1]") } else { format!("10.90.{host}.1") },
            );
            fs::write(self.directory.join(format!("agent{host}.toml")), file).unwrap();
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
        let cgroup = self.cgroup(0);
        let file = format!(
            "gateways = [\"10.90.0.1:7443\"]\ndirectory = \"none\"\ncgroup = \"{}\"\n{more}\n",
            cgroup.display()
        );
        fs::write(self.directory.join("asks.toml"), file).unwrap();
        let text = self.sh("c0", &format!("{} explain asks.toml", self.agent.display()));
        text.lines().find(|line| line.contains("the kernel's program")).map(str::to_owned)
    }

    /// Starts transfers of all hosts to ports of the server from `first` on, which nobody limits but the agent.
    pub fn transfers(&self, first: usize, seconds: u32) -> Vec<Child> {
        self.transfers_of(&[0, 1, 2, 3], first, seconds, TCP)
    }

    pub fn transfers_of(&self, hosts: &[usize], first: usize, seconds: u32, how: &str) -> Vec<Child> {
        for host in hosts {
            self.sh("s", &format!("iperf3 -s -1 -D --json -p {}", first + host));
        }
        // Servers go into the background before they listen.
        self.sh(
            "s",
            &format!(
                "for n in $(seq 100); do [ $(ss -Htln | grep -c ':{}') -ge {} ] && break; sleep 0.1; done",
                first / 10,
                hosts.len()
            ),
        );
        let start = |host: usize| {
            let cgroup = self.cgroup(host).join("cgroup.procs");
            let line = format!(
                "echo 0 > {}; exec timeout 60 iperf3 -c 10.77.0.2 -p {} -t {seconds} -i 1 {how} --json --get-server-output",
                cgroup.display(),
                first + host
            );
            self.command(&format!("c{host}"), &line).stdout(Stdio::piped()).spawn().unwrap()
        };
        hosts.iter().copied().map(start).collect()
    }

    /// A socket in the namespace of a side.
    pub fn socket(&self, side: &str, address: &str) -> UdpSocket {
        let bind = || UdpSocket::bind(address).map_err(penstock_linux::error::Error::io("cannot bind"));
        Namespace::open(Some(&self.namespace(side))).unwrap().run(bind).unwrap()
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
        let socket = self.socket(&format!("c{host}"), if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" });
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

impl Drop for Scene {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
        for side in self.sides() {
            let _ = Command::new("ip").args(["netns", "delete", &self.namespace(&side)]).stderr(Stdio::null()).status();
        }
        for host in 0..HOSTS {
            // The guard of an agent that was killed goes when its connections are free.
            let lock = format!("/run/penstock/{}c{host}.guard", self.name);
            if let Some(guard) = fs::read_to_string(&lock).ok().and_then(|pid| pid.trim().parse().ok()) {
                let _ = kill(Pid::from_raw(guard), Signal::SIGTERM);
            }
            let _ = fs::remove_file(lock);
            let _ = fs::remove_dir(self.cgroup(host));
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// What arrived of a transfer in each second, in bits per second. What the client counts lies in its socket's buffer, which
/// grows while it sends. The last, shorter interval is left out.
pub fn seconds(transfer: Child) -> Vec<f64> {
    let output = transfer.wait_with_output().unwrap();
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(result["error"].is_null(), "no connection breaks: {}", result["error"]);
    let intervals = result["server_output_json"]["intervals"].as_array().unwrap().iter();
    let sums = intervals.map(|one| &one["sum"]).filter(|sum| sum["seconds"].as_f64() > Some(0.9));
    sums.map(|sum| sum["bits_per_second"].as_f64().unwrap()).collect()
}

pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
