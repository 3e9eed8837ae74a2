//! Ports: the emulator reads and writes frames of two interfaces that are there, between two hosts in namespaces of their
//! own. Where that is not possible, the tests skip and say why.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use penstock_linux::netns::Namespace;
use penstock_trace::packets::Packets;
use penstock_trace::read::read;
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

static LABS: AtomicU32 = AtomicU32::new(0);
const PATIENCE: Duration = Duration::from_secs(20);

fn ip(words: &str) -> bool {
    Command::new("ip").args(words.split(' ')).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// A host on each side of a third namespace with the ports `pl` and `pr`, in which the kernel would forward.
struct Lab {
    /// Namespaces: left, middle, right.
    netns: [String; 3],
}

impl Lab {
    fn new() -> Option<Self> {
        let name = format!("pnport-{}-{}", std::process::id(), LABS.fetch_add(1, Ordering::Relaxed));
        let lab = Self { netns: ["l", "m", "r"].map(|part| format!("{name}-{part}")) };
        if !lab.netns.iter().all(|name| ip(&format!("netns add {name}"))) {
            println!("SKIPPED: no namespaces");
            return None;
        }
        let [left, middle, right] = &lab.netns;
        for (host, port, address) in [(left, "pl", 1), (right, "pr", 2)] {
            assert!(ip(&format!("-n {host} link add e0 type veth peer name {port} netns {middle}")));
            assert!(ip(&format!("-n {host} addr add 10.9.0.{address}/24 dev e0")));
            assert!(ip(&format!("-n {host} link set e0 up")) && ip(&format!("-n {middle} link set {port} up")));
        }
        lab.on(1, || std::fs::write("/proc/sys/net/ipv4/ip_forward", "1")).unwrap();
        Some(lab)
    }

    fn emulator(&self, arguments: &[&str]) -> Command {
        let middle = &self.netns[1];
        let mut command = Command::new(env!("CARGO_BIN_EXE_penstock-emulate"));
        command.args(["--left-netns", middle, "--right-netns", middle, "--left-port", "pl", "--right-port", "pr"]);
        command.args(["--json", "--duration", "60s"]).args(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn start(&self, arguments: &[&str]) -> Running {
        let mut running = Running(self.emulator(arguments).spawn().unwrap());
        let mut lines = BufReader::new(running.0.stderr.as_mut().unwrap()).lines().map_while(Result::ok);
        assert!(lines.any(|line| line.starts_with("ready: port pl -> port pr")), "the emulator did not start");
        running
    }

    /// Returns how an emulator ends that cannot start.
    fn refused(&self, arguments: &[&str]) -> String {
        let Output { status, stderr, .. } = self.emulator(arguments).output().unwrap();
        let told = String::from_utf8_lossy(&stderr).into_owned();
        assert_eq!(status.code(), Some(2), "{told}");
        told
    }

    fn on<T: Send>(&self, side: usize, work: impl FnOnce() -> T + Send) -> T {
        Namespace::open(Some(&self.netns[side])).unwrap().run(|| Ok(work())).unwrap()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.netns.iter().for_each(|name| _ = ip(&format!("netns delete {name}")));
    }
}

struct Running(Child);

impl Running {
    fn report(&mut self) -> Value {
        kill(Pid::from_raw(self.0.id() as i32), Signal::SIGTERM).unwrap();
        let text = std::io::read_to_string(self.0.stdout.as_mut().unwrap()).unwrap();
        assert!(self.0.wait().unwrap().success(), "{text}");
        let report: Value = serde_json::from_str(&text).unwrap();
        for way in ["forward", "reverse"] {
            let of = |pointer: &str| report[way].pointer(pointer).and_then(Value::as_u64).unwrap();
            let ends = ["/delivered/packets", "/dropped/early", "/dropped/overflow", "/dropped/dequeue", "/in_flight"];
            let all: u64 = ends.iter().map(|end| of(end)).sum::<u64>() + of("/waiting/packets") + of("/lost");
            assert_eq!((of("/arrived/packets"), of("/refused")), (all, 0), "{way}: {report}");
        }
        report
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Each datagram comes once: the kernel between the hosts, which forwards, has no part in it. ARP passes as well.
#[test]
fn each_datagram_comes_once_and_edited_ones_are_right() {
    let Some(lab) = Lab::new() else { return };
    let mut running = lab.start(&["--rate", "100Mbit/s", "--delay", "1ms"]);
    let bind = |address: &'static str| move || UdpSocket::bind(address).unwrap();
    let (left, right) = (lab.on(0, bind("10.9.0.1:7007")), lab.on(2, bind("10.9.0.2:7007")));
    for socket in [&left, &right] {
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
    }
    let mut bytes = [0; 1500];
    for number in 0..100_u32 {
        left.send_to(&number.to_be_bytes(), "10.9.0.2:7007").unwrap();
        let (len, from) = right.recv_from(&mut bytes).unwrap();
        assert_eq!((&bytes[..len], from.to_string().as_str()), (&number.to_be_bytes()[..], "10.9.0.1:7007"));
        right.send_to(&bytes[..len], from).unwrap();
        assert_eq!(left.recv(&mut bytes).unwrap(), 4);
    }
    right.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    assert!(right.recv(&mut bytes).is_err(), "a datagram came twice");
    let report = running.report();
    for way in ["forward", "reverse"] {
        assert!(report[way]["delivered"]["packets"].as_u64().unwrap() >= 100, "{report}");
        assert_eq!(report[way]["frames"]["taken_apart"], 0);
    }
    assert!(report["unclassified"]["malformed"].as_u64().unwrap() >= 2, "ARP: {report}");
}

/// Hosts send super-packets of up to 64 kB, which are taken apart before the queue: no packet in it is longer than the MTU.
/// A discipline edits segments whose checksums the kernel makes later; what arrives is what was sent.
#[test]
fn merged_segments_are_queued_one_by_one() {
    let Some(lab) = Lab::new() else { return };
    let file = std::env::temp_dir().join(format!("{}.pcapng", lab.netns[0]));
    let arguments = ["--rate", "50Mbit/s", "--delay", "5ms", "--aqm", "pink", "--limit", "200p", "--pcapng"];
    let mut running = lab.start(&[&arguments[..], &[file.to_str().unwrap()]].concat());
    let sent: Vec<u8> = (0..1_000_000_u32).map(|n| (n.wrapping_mul(7919) >> 5) as u8).collect();
    let listener = lab.on(2, || TcpListener::bind("10.9.0.2:7008").unwrap());
    let received = std::thread::scope(|scope| {
        let server = scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let mut all = Vec::new();
            stream.read_to_end(&mut all).unwrap();
            all
        });
        let mut stream = lab.on(0, || TcpStream::connect("10.9.0.2:7008").unwrap());
        stream.write_all(&sent).unwrap();
        drop(stream);
        server.join().unwrap()
    });
    assert!(received == sent, "{} of {} bytes", received.len(), sent.len());
    let report = running.report();
    assert!(report["forward"]["frames"]["taken_apart"].as_u64().unwrap() > 0, "{report}");
    assert_eq!(report["forward"]["frames"]["refused"], 0);
    let packets = Packets::of(read(BufReader::new(std::fs::File::open(&file).unwrap())).unwrap()).unwrap();
    std::fs::remove_file(&file).unwrap();
    let largest = packets.columns[1].iter().max();
    assert_eq!(largest, Some(&1500), "sizes of IP packets");
}

#[test]
fn what_cannot_be_a_port_is_told_with_what_to_do() {
    let Some(lab) = Lab::new() else { return };
    let middle = &lab.netns[1];
    let rate = ["--rate", "10Mbit/s"];
    assert!(ip(&format!("-n {middle} addr add 10.9.9.1/24 dev pl")));
    assert!(lab.refused(&rate).contains("ip addr flush dev pl"));
    assert!(ip(&format!("-n {middle} addr flush dev pl")) && ip(&format!("-n {middle} link set pl up")));
    assert!(ip(&format!("-n {middle} link set pr mtu 1400")));
    assert!(lab.refused(&rate).contains("MTUs of 1500 and 1400"));
    assert!(ip(&format!("-n {middle} link add br0 type bridge")) && ip(&format!("-n {middle} link set pr master br0")));
    assert!(lab.refused(&rate).contains("ip link set pr nomaster"));
    assert!(ip(&format!("-n {middle} link set pr nomaster down")));
    assert!(lab.refused(&rate).contains("pr is down"));
    let mut one = Command::new(env!("CARGO_BIN_EXE_penstock-emulate"));
    let one = one.args(["--rate", "1Mbit/s", "--left-port", "pl"]).output().unwrap();
    assert!(String::from_utf8_lossy(&one.stderr).contains("both ends must be ports"));
}

/// A port goes down and comes up again: the run goes on, and uses no more of a processor meanwhile. Then it is removed.
#[test]
fn a_port_that_goes_down_comes_back_and_one_that_is_removed_ends_the_run() {
    let Some(lab) = Lab::new() else { return };
    let mut running = lab.start(&["--rate", "10Mbit/s"]);
    let socket = lab.on(0, || UdpSocket::bind("10.9.0.1:7007").unwrap());
    let other = lab.on(2, || UdpSocket::bind("10.9.0.2:7007").unwrap());
    other.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let arrives = || {
        (0..50).any(|_| {
            let _ = socket.send_to(&[1], "10.9.0.2:7007");
            other.recv(&mut [0]).is_ok()
        })
    };
    assert!(arrives());
    let middle = &lab.netns[1];
    assert!(ip(&format!("-n {middle} link set pl down")));
    let ticks = |pid: u32| -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let (_, fields) = stat.rsplit_once(") ").unwrap(); // from field 3 on
        fields.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum()
    };
    let before = ticks(running.0.id());
    std::thread::sleep(Duration::from_millis(500));
    assert!(ticks(running.0.id()) - before < 25, "it polls all the time");
    assert!(ip(&format!("-n {middle} link set pl up")));
    assert!(arrives(), "after the port came up");
    assert!(ip(&format!("-n {middle} link delete pr")));
    assert_eq!(running.0.wait().unwrap().code(), Some(1));
    let told = std::io::read_to_string(running.0.stdout.as_mut().unwrap()).unwrap();
    assert!(told.contains("was it removed?"), "{told}");
}
