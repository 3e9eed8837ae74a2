//! A client, a router or a bridge, and a server in namespaces of their own, with an emulated link between router and server:
//!
//! ```text
//! client 10.88.0.2 --- eth1 router eth0 === emulated link === server 10.77.0.2
//! ```

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
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long anything may take on a machine with much other work.
pub const PATIENCE: Duration = Duration::from_secs(60);

static TURN: Mutex<()> = Mutex::new(());
static LABS: AtomicU32 = AtomicU32::new(0);

/// Returns why nothing can be tested here; `None` if tests can run.
fn impossible() -> Option<String> {
    if !nix::unistd::geteuid().is_root() {
        return Some("not root".into());
    }
    if !std::path::Path::new("/dev/net/tun").exists() {
        return Some("no /dev/net/tun".into());
    }
    for program in ["ip", "iperf3", "nsenter", "timeout", "iptables-legacy-save"] {
        let found = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        if found.is_err() {
            return Some(format!("no {program}"));
        }
    }
    None
}

pub struct Lab {
    name: String,
    pub directory: PathBuf,
    link: Option<JoinHandle<Report>>,
    _turn: MutexGuard<'static, ()>,
}

impl Lab {
    /// Makes the namespaces, if what a test needs of the router works there; `None` if that is not possible here.
    fn namespaces(needed: &str) -> Option<Self> {
        if let Some(why) = impossible() {
            eprintln!("skipped: {why}");
            return None;
        }
        // One at a time, because two would disturb each other.
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let name = format!("pgwt{}n{}", std::process::id(), LABS.fetch_add(1, Ordering::Relaxed));
        let directory = std::env::temp_dir().join(&name);
        std::fs::create_dir_all(&directory).unwrap();
        let lab = Self { name, directory, link: None, _turn: turn };
        for side in ["c", "r", "s"] {
            if !Command::new("ip").args(["netns", "add", &lab.namespace(side)]).status().unwrap().success() {
                eprintln!("skipped: no namespaces");
                return None;
            }
            lab.sh(side, "ip link set lo up");
        }
        let there = lab.command("r", &["sh", "-c", needed]).stdout(Stdio::null()).stderr(Stdio::null()).status();
        if !there.is_ok_and(|status| status.success()) {
            eprintln!("skipped: this does not work here: {needed}");
            return None;
        }
        Some(lab)
    }

    /// Makes the namespaces and the link; `None` if that is not possible here.
    pub fn new(link: &str) -> Option<Self> {
        let needed = "test -e /proc/net/netfilter/nfnetlink_queue && iptables-legacy-save -t mangle";
        let mut lab = Self::namespaces(needed)?;
        let (client, router) = (lab.namespace("c"), lab.namespace("r"));
        lab.sh("c", &format!("ip link add eth0 netns {client} type veth peer name eth1 netns {router}"));
        lab.sh("c", "ip addr add 10.88.0.2/24 dev eth0; ip link set eth0 up");
        lab.sh("r", "ip addr add 10.88.0.1/24 dev eth1; ip link set eth1 up; echo 1 > /proc/sys/net/ipv4/ip_forward");
        lab.sh("c", "ip route add default via 10.88.0.1");
        lab.emulate(link);
        lab.sh("s", "ip route add 10.88.0.0/24 via 10.77.0.1");
        Some(lab)
    }

    /// Makes a bridge of the kernel in the place of the router: client and server, 10.77.0.1 and 10.77.0.2, are on one
    /// network. `None` if that is not possible here.
    pub fn on_a_bridge() -> Option<Self> {
        let lab = Self::namespaces("ip link add br0 type bridge && ip link set br0 up")?;
        if !penstock_linux::bpf::MISSING.is_empty() {
            eprintln!("skipped: {}", penstock_linux::bpf::MISSING);
            return None;
        }
        for (side, port, n) in [("c", "eth1", 1), ("s", "eth0", 2)] {
            let (host, bridge) = (lab.namespace(side), lab.namespace("r"));
            lab.sh(side, &format!("ip link add eth0 netns {host} type veth peer name {port} netns {bridge}"));
            lab.sh("r", &format!("ip link set {port} master br0; ip link set {port} up"));
            let addresses = format!("ip addr add 10.77.0.{n}/24 dev eth0; ip addr add fd77::{n}/64 dev eth0 nodad");
            lab.sh(side, &format!("{addresses}; ip link set eth0 up"));
        }
        Some(lab)
    }

    pub fn namespace(&self, side: &str) -> String {
        format!("{}{side}", self.name)
    }

    pub fn open(&self, side: &str) -> Namespace {
        Namespace::open(Some(&self.namespace(side))).unwrap()
    }

    /// Starts the emulated link.
    fn emulate(&mut self, link: &str) {
        let words = format!("x --left eth0 --right eth0 --realtime --duration 1800s {link}");
        let options = Options::parse_from(words.split_ascii_whitespace());
        let plan = options.plans(&()).unwrap().remove(0);
        let namespaces = [self.open("r"), self.open("s")];
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

    /// Ends the link; returns its report.
    pub fn end_link(&mut self) -> Report {
        self.sh("r", "ip link del eth0");
        self.link.take().unwrap().join().unwrap()
    }

    /// A command in a namespace, which is killed after some time in any case.
    pub fn command(&self, side: &str, words: &[&str]) -> Command {
        let mut command = Command::new("timeout");
        command.args(["--kill-after=1", "120", "nsenter", &format!("--net=/run/netns/{}", self.namespace(side))]);
        command.args(words).current_dir(&self.directory).stdin(Stdio::null());
        command
    }

    /// Runs a line of a shell, which must succeed; returns its output.
    pub fn sh(&self, side: &str, line: &str) -> String {
        let output = self.command(side, &["sh", "-ec", line]).output().unwrap();
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs the gateway's program in the router.
    pub fn ask(&self, words: &[&str]) -> Output {
        self.command("r", &[&[env!("CARGO_BIN_EXE_penstock-gateway")], words].concat()).output().unwrap()
    }

    /// Writes a file of a gateway with this text and the keys that a test needs.
    pub fn write(&self, text: &str) -> PathBuf {
        let path = self.directory.join("gateway.toml");
        let keys = format!("name = \"{}\"\nlog = \"{}/log.jsonl\"\n", self.name, self.directory.display());
        std::fs::write(&path, format!("{keys}{text}")).unwrap();
        path
    }

    /// Starts a gateway and waits until it governs.
    pub fn govern(&self, text: &str) -> Gateway {
        let path = self.write(text);
        // Not by `timeout`, so that signals reach it and not that.
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.namespace("r")));
        command.args([env!("CARGO_BIN_EXE_penstock-gateway"), "run", path.to_str().unwrap(), "--json"]);
        let mut gateway = Gateway(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
        let mut lines = BufReader::new(gateway.0.stderr.take().unwrap()).lines().map_while(Result::ok);
        let mut seen = Vec::new();
        while let Some(line) = lines.next() {
            let is_ready = line.starts_with("governing") || line.starts_with("observing");
            seen.push(line);
            if is_ready {
                std::thread::spawn(move || lines.for_each(drop));
                return gateway;
            }
        }
        panic!("it did not start: {seen:?}");
    }

    pub fn status(&self) -> Value {
        let output = self.ask(&["status", "--json", "--name", &self.name]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Changes the gateway; returns what it said and whether it did.
    pub fn set(&self, words: &[&str]) -> (bool, String) {
        let output = self.ask(&[words, &["--name", &self.name]].concat());
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    }

    /// Returns the rules of the gateway with their counters.
    pub fn rules(&self) -> String {
        let both = "iptables-legacy-save -c -t mangle; ip6tables-legacy-save -c -t mangle";
        self.sh("r", both).lines().filter(|line| line.contains("penstock")).map(|line| format!("{line}\n")).collect()
    }

    /// Sends a request to the page of the router's gateway; returns the answer as it came.
    pub fn page(&self, request: &str) -> String {
        let connect =
            || TcpStream::connect("127.0.0.1:7080").map_err(penstock_linux::error::Error::io("cannot connect"));
        let Ok(mut stream) = self.open("r").run(connect) else { return String::new() };
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let (head, body) = request.split_once("\n\n").unwrap_or((request, ""));
        let head = head.replacen('\n', "\r\n", 99);
        let lines = format!("Host: localhost:7080\r\nConnection: close\r\nContent-Length: {}", body.len());
        stream.write_all(format!("{head}\r\n{lines}\r\n\r\n{body}").as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Returns a socket in a namespace, which waits a moment for what it reads.
    pub fn socket(&self, side: &str, address: &str) -> UdpSocket {
        let bind = || UdpSocket::bind(address).map_err(penstock_linux::error::Error::io("cannot bind"));
        let socket = self.open(side).run(bind).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        socket
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for side in ["c", "r", "s"] {
            let _ = Command::new("ip").args(["netns", "delete", &self.namespace(side)]).stderr(Stdio::null()).status();
        }
        let _ = std::fs::remove_dir_all(&self.directory);
        for end in ["", "rb"] {
            let _ = std::fs::remove_file(format!("/run/penstock/{}{end}.sock.lock", self.name));
        }
    }
}

/// A gateway that ends with the test.
pub struct Gateway(pub Child);

impl Gateway {
    pub fn send(&self, signal: Signal) {
        kill(Pid::from_raw(self.0.id() as i32), signal).unwrap();
    }

    /// Ends it as people do; returns its last status.
    pub fn end(mut self) -> Value {
        self.send(Signal::SIGTERM);
        let stdout = self.0.stdout.take().unwrap();
        let text: String = BufReader::new(stdout).lines().map_while(Result::ok).collect();
        assert!(self.0.wait().unwrap().success());
        serde_json::from_str(&text).unwrap()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until something is so.
pub fn wait_until(what: &str, mut is: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is() {
        assert!(begin.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// One end of a connection with signatures of TCP-MD5: its role, its address and port, and that of the other.
const SIGNED: &str = r#"
import socket, struct, sys
role, own, other = sys.argv[1:]
place = struct.pack("<H", socket.AF_INET) + bytes(2) + socket.inet_aton(other)
option = place + bytes(128 - len(place)) + struct.pack("<BBHI", 0, 0, 6, 0) + b"secret" + bytes(74)
end = socket.socket()
end.setsockopt(socket.IPPROTO_TCP, 14, option)
end.settimeout(30)
end.bind((own, 5179))
if role == "server":
    end.listen(1)
    peer = end.accept()[0]
    print(sum(map(len, iter(lambda: peer.recv(1 << 16), b""))))
else:
    end.connect((other, 5179))
    end.sendall(bytes(1_000_000))
"#;

/// Sends a million bytes with signatures from the client to the server; returns how many came, and how many segments had
/// another signature than they must have.
pub fn signed(lab: &Lab) -> [u64; 2] {
    let words = |role, own, other| ["python3", "-c", SIGNED, role, own, other];
    let server = lab.command("s", &words("server", "10.77.0.2", "10.88.0.2")).stdout(Stdio::piped()).spawn().unwrap();
    let listens = "ss -Hltn 'sport = :5179' | grep -q 5179";
    wait_until("the server listens", || lab.command("s", &["sh", "-c", listens]).status().unwrap().success());
    let client = lab.command("c", &words("client", "10.88.0.2", "10.77.0.2")).output().unwrap();
    let came = String::from_utf8_lossy(&server.wait_with_output().unwrap().stdout).trim().parse().unwrap_or(0);
    assert!(came > 0, "{}", String::from_utf8_lossy(&client.stderr));
    let wrong = |side| {
        let counters = lab.sh(side, "nstat -asz TcpExtTCPMD5Failure");
        counters.split_whitespace().filter_map(|word| word.parse::<u64>().ok()).sum::<u64>()
    };
    [came, wrong("c") + wrong("s")]
}

/// Runs `iperf3` from the client to the server, or from the server with `-R`; returns its result.
pub fn transfer(lab: &Lab, words: &[&str]) -> Value {
    let mut server = lab.command("s", &["iperf3", "-s", "-1"]).stdout(Stdio::null()).spawn().unwrap();
    let listens = "ss -Hltn 'sport = :5201' | grep -q 5201";
    wait_until("the server listens", || lab.command("s", &["sh", "-c", listens]).status().unwrap().success());
    let client = [&["iperf3", "-c", "10.77.0.2", "--json"], words].concat();
    let output = lab.command("c", &client).output().unwrap();
    // It ends by itself, or by its timeout.
    let _ = server.wait();
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(result["error"].is_null(), "{result}");
    result
}
