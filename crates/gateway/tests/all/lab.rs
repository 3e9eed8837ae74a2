//! A client, a router or a bridge, and a server in namespaces of their own, with an emulated link between router and server:
//!
//! ```text
//! client 10.88.0.2 --- eth1 router eth0 === emulated link === server 10.77.0.2
//! ```

use crate::link::{GATEWAY, Link, page};
use nix::sys::signal::Signal;
use penstock_emulator::report::Report;
use penstock_linux::testing::{Program, Testbed, bpf, wait_until};
use serde_json::Value;
use std::net::UdpSocket;
use std::ops::Deref;
use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The sides `c`, `r` and `s`: client, router and server.
pub struct Lab {
    link: Option<Link>,
    bed: Testbed,
}

impl Deref for Lab {
    type Target = Testbed;

    fn deref(&self) -> &Testbed {
        &self.bed
    }
}

impl Lab {
    /// Makes the namespaces, if what a test needs of the router works there; `None` if that is not possible here.
    fn namespaces(needed: &str) -> Option<Testbed> {
        Testbed::new(&["c", "r", "s"], &["iperf3", "iptables-legacy-save"])?.that_can("r", needed)
    }

    /// Makes the namespaces and the link; `None` if that is not possible here.
    pub fn new(link: &str) -> Option<Self> {
        let needed = "test -e /proc/net/netfilter/nfnetlink_queue && iptables-legacy-save -t mangle";
        let bed = Self::namespaces(needed)?;
        bed.veth(["c", "eth0"], ["r", "eth1"]);
        bed.up("c", "eth0", &["10.88.0.2/24"]);
        bed.up("r", "eth1", &["10.88.0.1/24"]);
        bed.forward("r");
        bed.route("c", "default", "10.88.0.1");
        let link = Some(Link::new(&bed, ["r", "s"], link));
        bed.route("s", "10.88.0.0/24", "10.77.0.1");
        Some(Self { link, bed })
    }

    /// The same without an emulated link: the interface to the link is one end of a cable, and can be made again.
    pub fn on_a_cable() -> Option<Self> {
        let lab = Self { link: None, bed: Self::namespaces("iptables-legacy-save -t mangle")? };
        lab.veth(["c", "eth0"], ["r", "eth1"]);
        lab.up("c", "eth0", &["10.88.0.2/24"]);
        lab.up("r", "eth1", &["10.88.0.1/24"]);
        lab.forward("r");
        lab.route("c", "default", "10.88.0.1");
        Some(lab)
    }

    /// Makes the interface to the link, as a modem does when it dials.
    pub fn dial(&self) {
        self.veth(["r", "eth0"], ["s", "eth0"]);
        self.up("r", "eth0", &["10.77.0.1/24"]);
        self.up("s", "eth0", &["10.77.0.2/24"]);
        self.route("s", "default", "10.77.0.1");
    }

    /// Bytes of IP that the kernel says the interface to the link has sent.
    pub fn sent_to_link(&self) -> u64 {
        let line = self.sh("r", "ip -s -j link show eth0");
        let all: Value = serde_json::from_str(&line).unwrap();
        let tx = &all[0]["stats64"]["tx"];
        tx["bytes"].as_u64().unwrap() - 14 * tx["packets"].as_u64().unwrap()
    }

    /// Makes a bridge of the kernel in the place of the router: client and server, 10.77.0.1 and 10.77.0.2, are on one
    /// network. `None` if that is not possible here.
    pub fn on_a_bridge() -> Option<Self> {
        bpf()?;
        let bed = Self::namespaces("ip link add br1 type bridge && ip link del br1")?;
        for (side, port, n) in [("c", "eth1", 1), ("s", "eth0", 2)] {
            bed.veth([side, "eth0"], ["r", port]);
            bed.up(side, "eth0", &[&format!("10.77.0.{n}/24"), &format!("fd77::{n}/64")]);
        }
        bed.bridge("r", "br0", &["eth1", "eth0"]);
        Some(Self { link: None, bed })
    }

    /// Ends the link; returns its report.
    pub fn end_link(&mut self) -> Report {
        self.link.take().unwrap().end()
    }

    /// Runs the gateway's program in the router.
    pub fn ask(&self, words: &[&str]) -> Output {
        self.command("r", &[&[GATEWAY], words].concat()).output().unwrap()
    }

    /// Writes a file of a gateway with this text and the keys that a test needs.
    pub fn write(&self, text: &str) -> PathBuf {
        let path = self.file("gateway.toml");
        let keys = format!("name = \"{}\"\nlog = \"{}\"\n", self.name(), self.file("log.jsonl").display());
        std::fs::write(&path, format!("{keys}{text}")).unwrap();
        path
    }

    /// Starts a gateway and waits until it governs.
    pub fn govern(&self, text: &str) -> Gateway {
        self.govern_under(&[], text)
    }

    /// Starts a gateway under another program, and waits until it governs.
    pub fn govern_under(&self, other: &[&str], text: &str) -> Gateway {
        let state = if text.contains("observe = true") { "observing eth0:" } else { "governing eth0:" };
        self.start(other, text, state)
    }

    /// Starts a gateway and waits until it says this.
    pub fn start(&self, other: &[&str], text: &str, says: &str) -> Gateway {
        let path = self.write(text);
        let run = self.endless("r", &[other, &[GATEWAY, "run", path.to_str().unwrap(), "--json"]].concat());
        Gateway(Program::ready(run, &[says]))
    }

    pub fn status(&self) -> Value {
        let output = self.ask(&["status", "--json", "--name", self.name()]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Changes the gateway; returns what it said and whether it did.
    pub fn set(&self, words: &[&str]) -> (bool, String) {
        let output = self.ask(&[words, &["--name", self.name()]].concat());
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
        page(self, "r", request)
    }

    /// Returns a socket in a namespace, which waits a moment for what it reads.
    pub fn socket(&self, side: &str, address: &str) -> UdpSocket {
        let socket = self.udp(side, address);
        socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        socket
    }
}

/// A gateway that ends with the test.
pub struct Gateway(pub Program);

impl Gateway {
    pub fn send(&self, signal: Signal) {
        self.0.signal(signal);
    }

    /// Kills it, and waits until it is dead.
    pub fn kill(self) {
        drop(self);
    }

    /// Ends it as people do; returns its last status.
    pub fn end(self) -> Value {
        let ended = self.0.end();
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        serde_json::from_str(&ended.stdout).unwrap()
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
pub fn transfer(lab: &Lab, words: &str) -> Value {
    lab.transfer("c", ["s", "10.77.0.2"], words)
}

/// Returns whether a datagram that is sent now, or one of a few after it, comes from one to the other.
pub fn passes(client: &UdpSocket, server: &UdpSocket, to: &str) -> bool {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    // What an earlier call sent may come only now.
    let mark = CALLS.fetch_add(1, Ordering::Relaxed).to_ne_bytes().repeat(5);
    let mut buffer = [0; 600];
    while server.recv(&mut buffer).is_ok() {}
    (0..50).any(|_| {
        let _ = client.send_to(&mark, to);
        server.recv(&mut buffer).is_ok_and(|len| buffer[..len] == mark)
    })
}
