//! The agent's loop: one thread that serves the session, gives the kernel its orders, and answers the control socket.

use crate::agent::{self, Agent, Identity};
use crate::file::{Apply, File, OfOthers};
use crate::guard;
use penstock_appliance::appliance::{Appliance, Clock, Desk, Rest, wait};
use penstock_appliance::command;
use penstock_appliance::guard::Guard;
use penstock_appliance::run::run;
use penstock_appliance::socket::message::{By, Refusal};
use penstock_core::units::{Instant, Rate, Span, UnitError};
use penstock_linux::limit::{Census, Limit, Others};
use penstock_linux::udp::{self, Side as _, Socket};
use serde::Serialize;
use serde_json::{Value, json};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// The longest time between two orders, which hold four times as long.
const BEAT: Span = Span::from_millis(500);

/// An agent that runs.
pub struct Daemon {
    agent: Agent,
    node: u32,
    socket: Socket,
    limit: Option<(Limit, Guard)>,
    usable: Option<Receiver<Result<Option<Rate>, String>>>,
    said: Option<Rate>,
    applied: Option<Rate>,
    wrong: Option<String>,
    clock: Clock,
}

/// The status.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Status {
    /// The number of this node.
    pub node: u32,
    /// Time since the start in seconds.
    pub elapsed_s: f64,
    /// The budget in bits per second; `None` if there is none and TCP is plain.
    pub budget_bps: Option<u64>,
    /// The rate that this node says it can use; `None` for all.
    pub usable_bps: Option<u64>,
    /// The gateway of the session.
    pub gateway: Option<SocketAddr>,
    /// True if the kernel holds connections to the budget.
    pub applied: bool,
    /// The congestion control that connections get; `None` if they keep theirs.
    pub control: Option<String>,
    /// Number of connections that are limited now.
    pub connections: u64,
    /// The sum of the weights of connections that send, as the budget is divided.
    pub sending: u64,
    /// Number of times at which the rate of a connection was changed.
    pub changes: u64,
    /// What became of packets that are not TCP, if they are held to the budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub others: Option<Others>,
    /// Counters of sessions.
    pub sessions: agent::Counters,
    /// What is wrong now, as sentences; empty if all is well.
    pub marks: Vec<String>,
}

impl Daemon {
    /// Attaches the program of the kernel and starts its guard. From here on signals end the run. The error says what is
    /// missing.
    pub fn open(file: &File, identity: &Identity, desk: &Desk<Self>, lock: &Path) -> Result<Self, String> {
        let socket = Socket::bind(udp::any(file.gateways[0])).map_err(|e| format!("cannot open a socket: {e}"))?;
        desk.watch(socket.udp()).map_err(|e| e.to_string())?;
        let limit = match file.apply {
            Apply::Kernel => Some(attach(file, &socket, lock)?),
            Apply::Nothing => None,
        };
        let mut agent = Agent::new(identity, file.gateways.clone()).map_err(|e| e.to_string())?;
        agent.set_usable(file.usable, Instant::ZERO);
        Ok(Self {
            agent,
            node: identity.node.0,
            socket,
            limit,
            usable: file.usable_command.as_ref().map(|command| asked(command.clone(), file.usable_every)),
            said: file.usable,
            applied: None,
            wrong: None,
            clock: desk.clock,
        })
    }

    /// Runs until a signal comes; returns the last status, and what failed if anything did.
    pub fn run(mut self, mut desk: Desk<Self>) -> (Status, Option<String>) {
        let ended = run(&mut self, &mut desk);
        self.agent.end(self.clock.now());
        self.work(&mut desk);
        if let Some((limit, _)) = &self.limit {
            let _ = limit.order(None);
        }
        desk.log("end", &json!({"why": ended.failure(), "sessions": self.agent.counters()}));
        (self.status(&desk), ended.failure())
    }

    /// Does all that is due; returns the time up to which it was done.
    fn work(&mut self, desk: &mut Desk<Self>) -> Instant {
        let clock = self.clock;
        self.socket.turn(&mut self.agent, &mut || clock.now());
        let now = clock.now();
        while let Some(usable) = self.usable.as_ref().and_then(|usable| usable.try_recv().ok()) {
            match usable {
                Ok(usable) => {
                    (self.said, self.wrong) = (usable, None);
                    self.agent.set_usable(usable, now);
                }
                Err(why) => self.wrong = Some(why),
            }
        }
        self.order(now, desk);
        now
    }

    /// Gives the kernel its order in each turn: at once when the budget changes, and every half second at least.
    fn order(&mut self, now: Instant, desk: &mut Desk<Self>) {
        let budget = self.agent.budget(now);
        if budget.is_some() != self.applied.is_some() {
            let gateway = self.agent.gateway().map_or_else(|| "no gateway".to_owned(), |one| one.to_string());
            desk.note(match budget {
                Some(budget) => format!("a budget of {budget} from {gateway}"),
                None => format!("no budget, plain TCP: {}", self.agent.why().unwrap_or("no answer for a lease")),
            });
        }
        self.applied = budget;
        if let Some((limit, guard)) = &mut self.limit {
            let given = limit.order(budget);
            self.wrong = match given {
                Err(error) => Some(format!("the kernel takes no order: {error}")),
                Ok(()) if !guard.is_there() => Some("the guard is gone: if this process dies, limits stay".into()),
                Ok(()) => self.wrong.take().filter(|_| self.usable.is_some()),
            };
        }
    }
}

impl Appliance for Daemon {
    type Settings = ();
    type File = ();
    type Status = Status;

    fn turn(&mut self, desk: &mut Desk<Self>) -> Result<Instant, String> {
        Ok(self.work(desk))
    }

    fn sleep(&mut self, rest: &Rest<'_>) -> Result<bool, String> {
        wait(rest, self.agent.next_timeout().unwrap_or(rest.until).min(rest.now + BEAT))
    }

    fn status(&mut self, desk: &Desk<Self>) -> Status {
        let now = self.clock.now();
        let census = self.limit.as_ref().and_then(|(limit, _)| limit.census().ok());
        let Census { now: counted, before, held, changes, .. } = census.unwrap_or_default();
        let budget = self.agent.budget(now).map(Rate::as_bps);
        let plain = budget.is_none().then(|| {
            format!("no budget, TCP is plain: {}", self.agent.why().unwrap_or("the gateway has not answered"))
        });
        Status {
            node: self.node,
            elapsed_s: now.as_secs_f64(),
            budget_bps: budget,
            usable_bps: self.said.map(Rate::as_bps),
            gateway: self.agent.gateway(),
            applied: self.limit.is_some() && budget.is_some(),
            control: self.limit.as_ref().and_then(|(limit, _)| limit.control()),
            connections: held,
            sending: counted.max(before),
            changes,
            others: self.limit.as_ref().and_then(|(limit, _)| limit.others().ok()?),
            sessions: self.agent.counters(),
            marks: plain.into_iter().chain(self.wrong.clone()).chain(desk.marks()).collect(),
        }
    }

    fn top(&self, _: By, _: usize, _: Instant) -> Result<Value, Refusal> {
        Err(Refusal::new("an agent counts no flows; `status` has its counters"))
    }

    fn settings(&self) -> &() {
        &()
    }

    fn read(&self, _: &[(String, String)]) -> Result<(), Refusal> {
        Err(Refusal { what: "nothing of an agent can be set: its gateway does".into(), allowed: vec!["status".into()] })
    }

    fn wanted(&self, (): &()) -> Result<(), Refusal> {
        Ok(())
    }

    fn go_to(&mut self, (): &()) -> Result<Instant, Refusal> {
        Ok(self.clock.now())
    }
}

fn attach(file: &File, socket: &Socket, lock: &Path) -> Result<(Limit, Guard), String> {
    let limit = limit(file, socket.udp().as_fd())?;
    let guard = guard::start(&limit, lock).map_err(|e| format!("cannot start the guard: {e}"))?;
    Ok((limit, guard))
}

/// Attaches the programs of the kernel that a file asks for; `own` is the socket of the agent's session. The error says what
/// is missing.
pub(crate) fn limit(file: &File, own: BorrowedFd<'_>) -> Result<Limit, String> {
    let cgroup = file.limited()?;
    let cannot = |what: &str, e: io::Error, instead: &str| {
        format!(
            "cannot hold {what} of {} to a budget, or tell them: {e}; this needs cgroups of version 2, and root or CAP_BPF with \
             CAP_NET_ADMIN ({instead})",
            cgroup.display()
        )
    };
    let weights = file.weights.iter().map(|(mark, weight)| (mark.0, *weight)).collect();
    let instead = match file.control {
        Some(_) => "without `control` connections keep theirs below a limit, which older kernels can as well",
        None => "`apply = \"nothing\"` only shows the budget",
    };
    let limit = Limit::attach(&cgroup, &weights, file.control);
    let mut limit = limit.map_err(|e| cannot("the connections", e, instead))?;
    if file.others == OfOthers::Police {
        let attached = limit.attach_others(&cgroup, own);
        attached.map_err(|e| cannot("what is not TCP", e, "`others = \"nothing\"` leaves that alone"))?;
    }
    if file.announce_rates {
        let attached = limit.attach_rates(&cgroup);
        attached.map_err(|e| cannot("the rates", e, "without `announce_rates` nobody is told them"))?;
    }
    Ok(limit)
}

/// Asks a command again and again, in a thread, as it may take its time.
fn asked(command: Vec<String>, every: Span) -> Receiver<Result<Option<Rate>, String>> {
    let (tell, told) = channel();
    std::thread::spawn(move || {
        let every = Duration::from_nanos(every.as_nanos());
        while tell.send(usable(&command, every)).is_ok() {
            std::thread::sleep(every);
        }
    });
    told
}

/// What a command prints within a time: a rate, or `all`.
fn usable(words: &[String], longest: Duration) -> Result<Option<Rate>, String> {
    let wrong = |what: String| format!("usable_command: {what}");
    let text = command::run(words, longest).map_err(wrong)?;
    match text.trim() {
        "all" => Ok(None),
        rate => rate.parse().map(Some).map_err(|e: UnitError| wrong(e.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_prints_a_rate_or_all() {
        let said = |line: &str| usable(&["sh".into(), "-c".into(), line.into()], Duration::from_secs(1));
        assert_eq!(said("echo 4.5Mbit/s"), Ok(Some(Rate::from_bps(4_500_000))));
        assert_eq!(said("echo all"), Ok(None));
        for wrong in ["echo 5", "exit 3", "echo", "echo all; sleep 5"] {
            assert!(said(wrong).is_err(), "{wrong}");
        }
    }
}
