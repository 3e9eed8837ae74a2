//! Namespaces with interfaces, addresses and routes, and commands and sockets in them.

use super::{impossible, mark, skip};
use crate::limit::hierarchy;
use crate::netns::Namespace;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::{self, File};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};
use std::time::Duration;

/// Who has one of these locked has a place on the machine. Testbeds wait most of their time, so that a few beside each other
/// leave each the processors it needs.
const PLACES: [&str; 4] =
    ["/run/penstock-testbed.0", "/run/penstock-testbed.1", "/run/penstock-testbed.2", "/run/penstock-testbed.3"];
/// Where programs have their sockets and locks.
const CONTROL: &str = "/run/penstock";
/// Seconds after which a command is killed in any case.
const LONGEST: &str = "120";

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// Waits for a place.
fn place() -> File {
    loop {
        for place in PLACES {
            let place = File::options().create(true).append(true).open(place).unwrap();
            if place.try_lock().is_ok() {
                return place;
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Namespaces with names of their own, a directory for files, and a place on the machine.
#[derive(Debug)]
pub struct Testbed {
    mark: String,
    sides: Vec<String>,
    room: PathBuf,
    pub(super) ports: AtomicU16,
    /// Many at a time would disturb each other, also those of several processes.
    _place: File,
}

impl Testbed {
    /// Makes a namespace for each side, with its loopback interface up; `None` if that is not possible here, which it tells. A
    /// test also needs these programs.
    pub fn new(sides: &[&str], programs: &[&str]) -> Option<Self> {
        if let Some(why) = impossible(programs) {
            return skip(why);
        }
        let place = place();
        let mark = format!("{}-{}", mark("test"), NUMBER.fetch_add(1, Ordering::Relaxed));
        let room = std::env::temp_dir().join(&mark);
        fs::create_dir(&room).unwrap();
        let mut bed = Self { mark, sides: Vec::new(), room, ports: AtomicU16::new(5201), _place: place };
        for side in sides {
            let made = Command::new("ip").args(["netns", "add", &bed.namespace(side)]).output().unwrap();
            if !made.status.success() {
                return skip(format!("no namespaces: {}", String::from_utf8_lossy(&made.stderr).trim()));
            }
            bed.sides.push((*side).to_owned());
            bed.sh(side, "ip link set lo up");
        }
        Some(bed)
    }

    /// Returns the testbed if a line of a shell succeeds in a namespace; else tells that it does not.
    pub fn that_can(self, side: &str, line: &str) -> Option<Self> {
        let done = self.command(side, &["sh", "-c", line]).stdout(Stdio::null()).stderr(Stdio::null()).status();
        let can = done.is_ok_and(|status| status.success());
        if can { Some(self) } else { skip(format!("this does not work here: {line}")) }
    }

    /// The name of this testbed, with which the names of all of it begin.
    pub fn name(&self) -> &str {
        &self.mark
    }

    /// The name of the namespace of a side.
    pub fn namespace(&self, side: &str) -> String {
        format!("{}-{side}", self.mark)
    }

    /// A path in the directory of this testbed, where commands run.
    pub fn file(&self, name: &str) -> PathBuf {
        self.room.join(name)
    }

    /// Opens the namespace of a side.
    pub fn open(&self, side: &str) -> Namespace {
        Namespace::open(Some(&self.namespace(side))).unwrap()
    }

    /// Does something in the namespace of a side; what it opens stays there.
    pub fn run<T: Send>(&self, side: &str, work: impl FnOnce() -> T + Send) -> T {
        self.open(side).run(|| Ok(work())).unwrap()
    }

    /// A socket for datagrams in the namespace of a side.
    pub fn udp(&self, side: &str, address: &str) -> UdpSocket {
        self.run(side, || UdpSocket::bind(address).unwrap_or_else(|why| panic!("{side} {address}: {why}")))
    }

    /// A command in the namespace of a side, which is killed after two minutes in any case.
    pub fn command(&self, side: &str, words: &[&str]) -> Command {
        let mut command = Command::new("timeout");
        command.args(["--kill-after=1", LONGEST, "nsenter", &self.enter(side)]).args(words);
        command.current_dir(&self.room).stdin(Stdio::null());
        command
    }

    /// A command which gets the signals itself, and has no end.
    pub fn endless(&self, side: &str, words: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(self.enter(side)).args(words).current_dir(&self.room).stdin(Stdio::null());
        command
    }

    fn enter(&self, side: &str) -> String {
        format!("--net=/run/netns/{}", self.namespace(side))
    }

    /// Runs a line of a shell; returns its output.
    pub fn sh(&self, side: &str, line: &str) -> String {
        let output = self.command(side, &["sh", "-ec", line]).output().unwrap();
        assert!(output.status.success(), "{side}: {line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Makes a control group; `None` without a hierarchy of version 2, which it tells.
    pub fn cgroup(&self, side: &str) -> Option<PathBuf> {
        let Some(root) = hierarchy() else { return skip("no cgroup of version 2") };
        let cgroup = root.join(self.namespace(side));
        fs::create_dir(&cgroup).unwrap_or_else(|why| panic!("{}: {why}", cgroup.display()));
        Some(cgroup)
    }

    /// Connects an interface of a side with one of another side.
    pub fn veth(&self, [side, interface]: [&str; 2], [peer, port]: [&str; 2]) {
        let (own, other) = (self.namespace(side), self.namespace(peer));
        self.sh(side, &format!("ip link add {interface} netns {own} type veth peer name {port} netns {other}"));
    }

    /// Gives an interface addresses with their prefixes, and sets it up.
    pub fn up(&self, side: &str, interface: &str, addresses: &[&str]) {
        for address in addresses {
            let nodad = if address.contains(':') { "nodad" } else { "" };
            self.sh(side, &format!("ip addr add {address} dev {interface} {nodad}"));
        }
        self.sh(side, &format!("ip link set {interface} up"));
    }

    /// Makes a bridge of the kernel with these ports.
    pub fn bridge(&self, side: &str, bridge: &str, ports: &[&str]) {
        self.sh(side, &format!("ip link add {bridge} type bridge; ip link set {bridge} up"));
        for port in ports {
            self.sh(side, &format!("ip link set {port} master {bridge}; ip link set {port} up"));
        }
    }

    /// Sends what is for a network to a neighbour.
    pub fn route(&self, side: &str, network: &str, via: &str) {
        self.sh(side, &format!("ip route add {network} via {via}"));
    }

    /// Makes a router for IPv4 of a side.
    pub fn forward(&self, side: &str) {
        self.sh(side, "echo 1 > /proc/sys/net/ipv4/ip_forward");
    }

    /// Paths in a directory whose names are the name of this testbed, or begin with it.
    fn own(&self, directory: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let is_own = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str()?.strip_prefix(&self.mark));
            // Not of the testbed whose number only begins as the one of this.
            name.is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()))
        };
        entries.map(|entry| entry.path()).filter(is_own).collect()
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        for side in &self.sides {
            let namespace = self.namespace(side);
            let inside = Command::new("ip").args(["netns", "pids", &namespace]).stderr(Stdio::null()).output();
            kill_all(&inside.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default());
            let _ = Command::new("ip").args(["netns", "delete", &namespace]).stderr(Stdio::null()).status();
        }
        for cgroup in hierarchy().map(|root| self.own(&root)).unwrap_or_default() {
            // Its processes take a moment to end.
            for _ in 0..100 {
                kill_all(&fs::read_to_string(cgroup.join("cgroup.procs")).unwrap_or_default());
                if fs::remove_dir(&cgroup).is_ok() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        self.own(Path::new(CONTROL)).iter().for_each(|file| drop(fs::remove_file(file)));
        let _ = fs::remove_dir_all(&self.room);
    }
}

/// Kills processes, whose numbers are the words of a text; not this one.
fn kill_all(pids: &str) {
    for pid in
        pids.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()).filter(|pid| *pid != std::process::id())
    {
        let _ = kill(Pid::from_raw(pid as i32), Signal::SIGKILL);
    }
}
