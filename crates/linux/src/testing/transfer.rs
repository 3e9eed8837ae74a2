//! Transfers of iperf3.

use super::{Testbed, wait_until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::Ordering;

/// Who sends, and how.
#[derive(Debug, Clone)]
pub struct Sender<'a> {
    side: &'a str,
    words: &'a str,
    cgroup: Option<PathBuf>,
}

impl<'a> Sender<'a> {
    /// A client on a side, with these options of iperf3.
    pub fn new(side: &'a str, words: &'a str) -> Self {
        Self { side, words, cgroup: None }
    }

    /// The same in a control group.
    pub fn in_cgroup(self, cgroup: &Path) -> Self {
        Self { cgroup: Some(cgroup.to_owned()), ..self }
    }
}

/// A transfer, which ends with this value.
#[derive(Debug)]
pub struct Transfer {
    client: Child,
    server: Child,
    /// The port of its server.
    pub port: u16,
}

impl Testbed {
    /// Runs a transfer to its end, to an address of a side, or from there with `-R`; returns its result.
    pub fn transfer(&self, from: &str, to: [&str; 2], words: &str) -> Value {
        self.begin(&[Sender::new(from, words)], to).remove(0).result()
    }

    /// Sends 200 kbit/s of UDP payload with the codepoint of expedited forwarding beside ten uploads; returns the part that arrives.
    pub fn expedited(&self, from: &str, to: [&str; 2]) -> f64 {
        let senders = ["-C cubic -P 10 -t 8", "-u -b 200k -l 160 -t 6 -S 184"].map(|words| Sender::new(from, words));
        let call = self.begin(&senders, to).remove(1).result();
        let [lost, sent] = ["lost_packets", "packets"].map(|key| call["end"]["sum"][key].as_f64().unwrap());
        1.0 - lost / sent
    }

    /// Begins transfers at once, each to a server of its own.
    pub fn begin(&self, senders: &[Sender<'_>], [side, address]: [&str; 2]) -> Vec<Transfer> {
        let serve = |_: &Sender<'_>| {
            let port = self.ports.fetch_add(1, Ordering::Relaxed);
            let mut command = self.command(side, &["iperf3", "-s", "-1", "--json", "-p", &port.to_string()]);
            (port, command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
        };
        let servers: Vec<(u16, Child)> = senders.iter().map(serve).collect();
        wait_until("servers listen", || {
            let listening = self.sh(side, "ss -Hltn");
            servers.iter().all(|(port, _)| listening.contains(&format!(":{port} ")))
        });
        let connect = |(sender, (port, server)): (&Sender<'_>, (u16, Child))| {
            let join = sender.cgroup.as_ref().map(|cgroup| format!("echo 0 > {}/cgroup.procs; ", cgroup.display()));
            let client = format!("exec iperf3 -c {address} -p {port} --json {}", sender.words);
            let mut command =
                self.command(sender.side, &["sh", "-ec", &format!("{}{client}", join.unwrap_or_default())]);
            Transfer { client: command.stdout(Stdio::piped()).spawn().unwrap(), server, port }
        };
        senders.iter().zip(servers).map(connect).collect()
    }
}

impl Transfer {
    /// Waits for the end; returns the result.
    pub fn result(mut self) -> Value {
        let text = std::io::read_to_string(self.client.stdout.take().unwrap()).unwrap();
        let result: Value = serde_json::from_str(&text).unwrap_or_else(|why| panic!("iperf3: {why}: {text}"));
        assert!(result["error"].is_null(), "iperf3: {result}");
        let _ = self.server.wait(); // it ends by itself, or by its timeout
        result
    }

    /// True if it goes on.
    pub fn runs(&mut self) -> bool {
        self.client.try_wait().is_ok_and(|ended| ended.is_none())
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        for child in [&mut self.client, &mut self.server] {
            // `timeout` passes that on.
            if child.try_wait().is_ok_and(|ended| ended.is_none()) {
                let _ = kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM);
                let _ = child.wait();
            }
        }
    }
}
