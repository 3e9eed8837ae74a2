//! Several wires in one process: two links in a row between three namespaces. Where that is not possible, the tests skip and
//! say why.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use penstock_linux::netns::Namespace;
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Lines, Read as _};
use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

static LABS: AtomicU32 = AtomicU32::new(0);
const PATIENCE: Duration = Duration::from_secs(20);

fn ip(words: &str) -> bool {
    Command::new("ip").args(words.split(' ')).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// The namespaces a, b and c, of which b forwards, and a file of two wires between them.
struct Lab {
    netns: [String; 3],
    directory: PathBuf,
}

impl Lab {
    fn new() -> Option<Self> {
        let name = format!("pnwires-{}-{}", std::process::id(), LABS.fetch_add(1, Ordering::Relaxed));
        let lab = Self {
            netns: ["a", "b", "c"].map(|part| format!("{name}-{part}")),
            directory: std::env::temp_dir().join(name),
        };
        if !std::path::Path::new("/dev/net/tun").exists() || !lab.netns.iter().all(|n| ip(&format!("netns add {n}"))) {
            println!("SKIPPED: no namespaces or no /dev/net/tun");
            return None;
        }
        std::fs::create_dir_all(&lab.directory).unwrap();
        lab.on(1, || std::fs::write("/proc/sys/net/ipv4/ip_forward", "1")).unwrap();
        Some(lab)
    }

    fn on<T: Send>(&self, at: usize, job: impl FnOnce() -> std::io::Result<T> + Send) -> std::io::Result<T> {
        let refused = |error| penstock_linux::error::Error::Io { what: "in a namespace", source: error };
        let done = Namespace::open(Some(&self.netns[at])).unwrap().run(|| job().map_err(refused));
        done.map_err(std::io::Error::other)
    }

    /// Path of something of this lab.
    fn path(&self, name: &str) -> String {
        self.directory.join(name).to_str().unwrap().to_owned()
    }

    fn text(&self) -> String {
        let [a, b, c] = &self.netns;
        let wire = |name: &str, [left, right]: [&str; 2], net: u8| {
            let socket = self.path(&format!("{name}.sock"));
            let end = |netns: &str, interface: &str, host: u8| {
                format!("{{ netns = {netns:?}, interface = {interface:?}, address = \"10.66.{net}.{host}/24\" }}")
            };
            format!(
                "[[wire]]\nname = {name:?}\nsocket = {socket:?}\nlink = {{ rate = \"10Mbit/s\", delay = \"1ms\" }}\n\
                 aqm = {{ name = \"codel\" }}\nleft = {}\nright = {}\n",
                end(left, "out", 1),
                end(right, "in", 2)
            )
        };
        format!("seed = 1\nduration = \"60s\"\n{}{}", wire("first", [a, b], 1), wire("second", [b, c], 2))
    }

    fn command(&self, text: &str) -> Command {
        let file = self.path("wires.toml");
        std::fs::write(&file, text).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_penstock-emulate"));
        command.args(["--config", &file, "--json"]).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Starts both wires, and makes the routes.
    fn start(&self) -> Running {
        let mut child = self.command(&self.text()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let said: Vec<String> = lines.by_ref().map_while(Result::ok).take(3).collect();
        assert!(said.len() == 3 && said[0] == "ready: 2 wires; Ctrl-C ends the run", "{said:?}");
        assert!(said[1].starts_with("  first: out 10.66.1.1 -> in 10.66.1.2; there 10Mbit/s"), "{said:?}");
        assert!(said[2].ends_with(&format!("control socket {}", self.path("second.sock"))), "{said:?}");
        let [a, _, c] = &self.netns;
        assert!(ip(&format!("-n {a} route add 10.66.2.0/24 dev out")));
        assert!(ip(&format!("-n {c} route add 10.66.1.0/24 dev in")));
        Running { child, lines }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for name in &self.netns {
            ip(&format!("netns delete {name}"));
        }
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

struct Running {
    child: Child,
    /// What it says on its standard error.
    lines: Lines<BufReader<ChildStderr>>,
}

impl Running {
    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }

    /// Waits for the end; returns the exit code, the reports of both wires, and what was said.
    fn end(mut self) -> (Option<i32>, Value, String) {
        let begin = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            assert!(begin.elapsed() < PATIENCE, "it does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
        let mut text = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        let said: Vec<String> = self.lines.by_ref().map_while(Result::ok).collect();
        let last = text.lines().last().unwrap_or_default();
        let reports: Value = serde_json::from_str(last).unwrap_or_else(|e| panic!("{e}: {text:?} {said:?}"));
        (self.child.wait().unwrap().code(), reports["wires"].clone(), said.join("\n"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn ask(socket: &str, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_penstock-emulate"));
    command.args(&words[..1]).args(["--socket", socket]).args(&words[1..]).output().unwrap()
}

#[test]
fn packets_pass_two_wires_of_one_process_and_each_reports() {
    let Some(lab) = Lab::new() else { return };
    let mut running = lab.start();
    let from = lab.on(0, || UdpSocket::bind("10.66.1.1:0")).unwrap();
    let to = lab.on(2, || UdpSocket::bind("10.66.2.2:9")).unwrap();
    to.set_read_timeout(Some(PATIENCE)).unwrap();
    for number in 0..20u8 {
        from.send_to(&[number; 400], "10.66.2.2:9").unwrap();
        let mut got = [0; 500];
        assert_eq!(to.recv_from(&mut got).unwrap().0, 400);
        assert_eq!(got[399], number);
    }
    let set = ask(&lab.path("second.sock"), &["set", "rate=2Mbit/s"]);
    assert!(set.status.success(), "{}", String::from_utf8_lossy(&set.stderr));
    let asked = ask(&lab.path("first.sock"), &["status", "--json"]);
    let first: Value = serde_json::from_slice(&asked.stdout).unwrap();
    assert_eq!((&first["wire"], &first["forward"]["rate_bps"]), (&"first".into(), &10_000_000.into()));

    // The report of each wire meanwhile.
    running.signal(Signal::SIGUSR1);
    let mut printed = BufReader::new(running.child.stdout.take().unwrap());
    let mut told: Vec<String> = (0..2)
        .map(|_| {
            let mut line = String::new();
            printed.read_line(&mut line).unwrap();
            let report: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(report["ended"], "running");
            report["wire"].as_str().unwrap().to_owned()
        })
        .collect();
    told.sort();
    assert_eq!(told, ["first", "second"]);
    running.child.stdout = Some(printed.into_inner());

    running.signal(Signal::SIGINT);
    let (code, wires, said) = running.end();
    assert_eq!((code, said.as_str()), (Some(0), ""));
    let names: Vec<&Value> = wires.as_array().unwrap().iter().map(|wire| &wire["wire"]).collect();
    assert_eq!(names, ["first", "second"]);
    for (wire, rate, changes) in [(&wires[0], 10_000_000, 0), (&wires[1], 2_000_000, 1)] {
        assert_eq!(wire["ended"], "SIGINT");
        assert_eq!(wire["forward"]["aqm"], "codel");
        assert_eq!(wire["forward"]["rate_bps"], rate);
        assert_eq!(wire["changes"].as_array().unwrap().len(), changes);
        // Each datagram has 28 bytes of headers. The kernels may send packets of their own.
        let delivered = &wire["forward"]["delivered"];
        assert!(delivered["packets"].as_u64().unwrap() >= 20 && delivered["bytes"].as_u64().unwrap() >= 20 * 428);
    }
    assert_eq!((&wires[0]["seed"], &wires[1]["seed"]), (&1.into(), &2.into()));
}

#[test]
fn a_wire_that_fails_ends_all_with_their_reports() {
    let Some(lab) = Lab::new() else { return };
    let running = lab.start();
    assert!(ip(&format!("-n {} link delete in", lab.netns[2])));
    let (code, wires, said) = running.end();
    assert_eq!(code, Some(1));
    assert!(said.starts_with("error: wire second: cannot read from the interface in"), "{said}");
    assert_eq!(wires[0]["ended"], "SIGTERM");
    assert!(wires[1]["ended"].as_str().unwrap().contains("was it removed?"));
}

#[test]
fn all_wires_are_opened_or_none() {
    let Some(lab) = Lab::new() else { return };
    let refused = |text: &str| {
        let Output { status, stdout, stderr } = lab.command(text).output().unwrap();
        assert_eq!((status.code(), stdout.len()), (Some(2), 0));
        String::from_utf8(stderr).unwrap()
    };
    let nowhere = refused(&lab.text().replace(&format!("{:?}", lab.netns[2]), "\"nowhere-at-all\""));
    assert!(nowhere.starts_with("error: there is no network namespace") && nowhere.contains("nowhere-at-all"));
    assert!(!ip(&format!("-n {} link show out", lab.netns[0])), "nothing is left of the first wire");
    let key = refused(&lab.text().replacen("aqm =", "amq =", 1));
    assert!(key.contains("wires.toml:7:1") && key.contains("did you mean `aqm`?"), "{key}");
    let both = lab.command(&lab.text()).args(["--rate", "1Mbit/s"]).output().unwrap();
    assert!(String::from_utf8_lossy(&both.stderr).starts_with("error: --rate is for one wire"));
}
