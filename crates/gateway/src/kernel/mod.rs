//! The kernel data path: the kernel forwards, and programs at the WAN interface write windows (`crates/linux`). This process
//! only tells them rates, gives a sign of life every tenth of a second and applies timeouts; no packet waits for it.

pub mod answers;
mod budgets;
pub mod report;

use crate::apply::{self, Own};
use crate::error::Error;
use crate::file::{File, parameters};
use crate::history::{History, Settings};
use crate::report::{Event, State, add_event};
use crate::setting;
use budgets::Budgets;
use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use penstock_appliance::change::Change;
use penstock_appliance::log::Log;
use penstock_appliance::service;
use penstock_appliance::socket::server::Server;
use penstock_budgets::served::Served;
use penstock_core::units::{Instant, Limit, Span};
use penstock_linux::bpf::{Attached, Control, Datapath, Way};
use penstock_linux::links::LinkWatch;
use penstock_linux::random;
use penstock_linux::signals::{Request, Signals, is_orderly};
use penstock_shaper::bottleneck::Config;
use penstock_shaper::keys::Keys;
use report::Report;
use serde_json::json;
use std::io::{self, Write as _};
use std::os::fd::AsFd;

/// How often the programs get a sign of life.
const BEAT: Span = Span::from_millis(100);
/// How often all timeouts are applied: what a pause of a flow leaves to others comes at most so much later.
const SWEEP: Span = Span::from_millis(250);
const TICK: Span = Span::from_secs(1);
/// Sets of 16 connections: 65,536 connections in 19 MB.
const SETS: u32 = 4096;
/// The hardware type of interfaces whose packets have an Ethernet header (ARPHRD_ETHER, ARPHRD_LOOPBACK).
const ETHERNET: [u16; 2] = [1, 772];

/// A gateway with the kernel data path that runs.
pub struct Kernel {
    pub(crate) settings: Settings,
    pub(crate) history: History,
    pub(crate) log: Log,
    pub(crate) changes: Vec<Change>,
    pub(crate) own: Own,
    path: Datapath,
    budgets: Option<Budgets>,
    attached: Attached,
    wan: LinkWatch,
    name: String,
    observe: bool,
    events: Vec<Event>,
    signals: Signals,
    server: Option<Server>,
    epoch: std::time::Instant,
    next: [Instant; 3],
    /// Packets that had passed because this process hung, when that was last looked at.
    stale: u64,
}

/// What the programs are told of the two directions, toward the link first.
fn ways(settings: &Settings) -> Result<[Way; 2], String> {
    let [down, up] = &settings.ways;
    let way = |config: &Config| {
        let pink = parameters(&config.aqm)?;
        let (room, in_packets) = match config.limit {
            Limit::Bytes(bytes) => (bytes.get(), false),
            Limit::Packets(packets) => (packets, true),
        };
        let rate = pink.rate.unwrap_or(config.rate);
        Ok::<Way, String>(Way {
            rate_bps: rate.as_bps(),
            capacity: pink.capacity(rate),
            room: room.min(1 << 40),
            in_packets,
            backlog: 0,
        })
    };
    Ok([way(up)?, way(down)?])
}

/// Returns whether packets of an interface have an Ethernet header. Tunnels have no address of the link.
fn is_ethernet(interface: &str) -> bool {
    let all = getifaddrs().into_iter().flatten().filter(|one| one.interface_name == interface);
    let mut kinds = all.filter_map(|one| one.address.as_ref()?.as_link_addr().map(|link| link.hatype()));
    kinds.next().is_some_and(|kind| ETHERNET.contains(&kind))
}

impl Kernel {
    /// Loads the programs and attaches them; `own` is the file without options. From here on signals end the run.
    ///
    /// # Errors
    /// Returns what is missing, and what to do about it. Nothing of a start that failed remains.
    pub fn open(file: &File, own: Own, wan: u32, server: Option<Server>) -> Result<Self, Error> {
        let signals = Signals::open()?;
        let watch = LinkWatch::here(wan)?;
        let keys = random::bytes()
            .map(|bytes| Keys::from_random(&bytes))
            .map_err(Error::io("cannot draw random numbers"))?
            .connections;
        let ways = ways(&Settings::of(file)).map_err(Error::Kernel)?;
        let control = Control {
            heartbeat: penstock_linux::bpf::datapath::clock(),
            ethernet: is_ethernet(&file.interfaces.wan),
            observe: file.keys.observe,
            ..Control::new(SETS, [keys.0, keys.1], ways)
        };
        let mut path = Datapath::load(control)?;
        let attached = path.attach(&file.interfaces.wan)?;
        let lan = file.interfaces.lan.as_deref().map(|lan| (lan, is_ethernet(lan)));
        let upload = file.bottlenecks[1].rate;
        let budgets = file.c2ml.as_ref().map(|keys| Budgets::open(keys, upload, lan, wan, file.keys.observe));
        let budgets = budgets.transpose().map_err(Error::Hosts)?;
        let mut log = Log::new(file.keys.log.clone());
        let details = json!({"wan": file.interfaces.wan, "datapath": "kernel", "version": env!("CARGO_PKG_VERSION")});
        log.add(None, "start", &details);
        Ok(Self {
            settings: Settings::of(file),
            history: History::default(),
            log,
            changes: Vec::new(),
            own,
            path,
            budgets,
            attached,
            wan: watch,
            name: file.interfaces.wan.clone(),
            observe: file.keys.observe,
            events: Vec::new(),
            signals,
            server,
            epoch: std::time::Instant::now(),
            next: [Instant::ZERO; 3],
            stale: 0,
        })
    }

    /// Runs until a signal comes or something fails; returns the last status and why the run failed, if it did.
    pub fn run(mut self) -> (Report, Option<String>) {
        service::ready();
        let failed = loop {
            if let Err(error) = self.turn() {
                break Some(error.to_string());
            }
            if let Err(error) = self.sleep() {
                break Some(format!("cannot wait: {error}"));
            }
            if let Some(ended) = self.serve() {
                break ended;
            }
        };
        service::stopping();
        self.log.add(None, "end", &json!({ "why": failed }));
        (self.report(), failed)
    }

    /// Does what is due.
    fn turn(&mut self) -> Result<(), Error> {
        let now = self.now();
        let due = self.next.map(|next| now >= next);
        for (next, (due, period)) in self.next.iter_mut().zip(due.into_iter().zip([BEAT, SWEEP, TICK])) {
            *next = if due { now + period } else { *next };
        }
        if due[0] {
            self.path.beat()?;
            let upload = self.settings[1].rate;
            self.budgets.iter_mut().try_for_each(|budgets| budgets.beat(upload))?;
        }
        if due[1] {
            self.path.sweep()?;
        }
        if due[2] {
            self.tick(now)?;
        }
        Ok(())
    }

    fn tick(&mut self, now: Instant) -> Result<(), Error> {
        service::alive();
        self.wan.ask();
        let stale = self.path.gauges()?.stale;
        if stale > self.stale {
            self.note(now, format!("this process hung: {} packets passed untouched", stale - self.stale));
            self.stale = stale;
        }
        setting::lapse(self, now);
        let told = self.budgets.as_ref().map(|budgets| budgets.served.events()).unwrap_or_default();
        told.into_iter().for_each(|what| self.note(now, what));
        if !self.budgets.as_mut().map_or(Ok(true), Budgets::tick)? {
            self.note(now, "the kernel had other budgets than it was told; it has been told again".into());
        }
        if let Some(server) = &mut self.server {
            server.tidy(std::time::Instant::now());
        }
        Ok(())
    }

    /// Waits until something is due or somebody asks.
    fn sleep(&self) -> Result<(), Errno> {
        let next = self.next.into_iter().min().unwrap_or_default().since(self.now());
        let timeout = PollTimeout::try_from(next.as_nanos().div_ceil(1_000_000)).unwrap_or(PollTimeout::from(100u8));
        let mut fds = vec![
            PollFd::new(self.signals.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.wan.as_fd(), PollFlags::POLLIN),
        ];
        if let Some(server) = &self.server {
            fds.push(PollFd::new(server.as_fd(), PollFlags::POLLIN));
        }
        match poll(&mut fds, timeout) {
            Err(Errno::EINTR) => Ok(()),
            other => other.map(|_| ()),
        }
    }

    /// Answers signals and clients. Returns `Some` if the run ends, with what failed.
    fn serve(&mut self) -> Option<Option<String>> {
        while let Some(request) = self.signals.next() {
            match request {
                Request::End(Signal::SIGHUP) => {
                    let read = apply::again(&self.own);
                    apply::apply_again(self, read);
                }
                Request::End(signal) if is_orderly(signal) => return Some(None),
                Request::End(signal) => return Some(Some(format!("the run was ended by {signal}"))),
                Request::Report => {
                    let text = serde_json::to_string(&self.report()).unwrap_or_default();
                    let _ = writeln!(io::stderr(), "{text}");
                }
            }
        }
        self.wan.read();
        if let Some(mut server) = self.server.take() {
            server.turn(std::time::Instant::now(), &mut |peer, request| answers::answer(self, peer, request));
            self.server = Some(server);
        }
        None
    }

    pub(crate) fn now(&self) -> Instant {
        Instant::from_nanos(u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    pub(crate) fn note(&mut self, now: Instant, what: String) {
        let _ = writeln!(io::stderr(), "{what}");
        self.log.add(None, "event", &json!(what));
        add_event(&mut self.events, now.as_secs_f64(), what);
    }

    /// Returns the status. Counters that cannot be read are zero, and a mark says so.
    pub(crate) fn report(&self) -> Report {
        let now = self.now();
        let read = self.path.sums().and_then(|sums| Ok((sums, self.path.gauges()?)));
        let failed = read.as_ref().err().map(|error| format!("the counters cannot be read: {error}"));
        let (sums, gauges) = read.unwrap_or_default();
        let enforced = self.budgets.as_ref().map_or(Ok(None), Budgets::report);
        let unread = enforced.as_ref().err().map(|error| format!("the accounts of hosts cannot be read: {error}"));
        let c2ml = self.budgets.as_ref().map(|budgets| &budgets.served);
        let facts = self.wan.facts();
        let marks = [
            failed,
            unread,
            c2ml.filter(|served| served.has_failed())
                .map(|_| "budgets for hosts have stopped by a fault of this program".into()),
            facts.gone.then(|| format!("the interface {} is gone", self.name)),
            (!facts.gone && !facts.up).then(|| format!("the interface {} is down", self.name)),
            (gauges.refused > 0).then(|| format!("{} connections had no place in the table", gauges.refused)),
            (gauges.unwritten > 0).then(|| format!("{} windows could not be written", gauges.unwritten)),
            self.log.error().map(|error| format!("the log cannot be written: {error}")),
        ];
        Report {
            elapsed_s: now.as_secs_f64(),
            state: if self.observe { State::Observing } else { State::Governing },
            datapath: "kernel",
            attached: self.attached,
            marks: marks.into_iter().flatten().collect(),
            events: self.events.clone(),
            wan: self.name.clone(),
            changes: self.changes.clone(),
            lapse: self.history.lapse(now),
            capacity: SETS * penstock_linux::bpf::datapath::WAYS,
            forward: report::way(&self.settings[0], &sums[1], gauges.packets[1], gauges.bytes[1]),
            reverse: report::way(&self.settings[1], &sums[0], gauges.packets[0], gauges.bytes[0]),
            c2ml: c2ml.and_then(Served::status),
            enforcement: enforced.ok().flatten(),
            table: gauges,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "datapath = \"kernel\"\n[interfaces]\nwan = \"w0\"\n[link]\nrate = \"10Mbit/s\"\nreverse_rate = \"2Mbit/s\"\nlimit = \"125kB\"\n";

    /// 0.95 of 10 Mbit/s and of 2 Mbit/s, in thousandths of a byte per second.
    #[test]
    fn the_programs_are_told_rates_and_queues() {
        let file = File::parse(FILE, "f").unwrap();
        let [up, down] = ways(&Settings::of(&file)).unwrap();
        assert_eq!(
            (down.rate_bps, down.capacity, down.room, down.in_packets),
            (10_000_000, 1_187_500_000, 125_000, false)
        );
        assert_eq!((up.rate_bps, up.capacity), (2_000_000, 237_500_000));
    }

    #[test]
    fn what_the_programs_do_not_have_is_refused() {
        let refused = |piece: &str| File::parse(&format!("{FILE}[discipline]\n{piece}"), "f").unwrap_err().to_string();
        assert!(refused("name = \"codel\"").contains("allowed is \"pink\""));
        assert!(refused("name = \"pink\"\nwindow = \"literal\"").contains("only c, rate and reserve"));
        assert!(File::parse(&format!("{FILE}[discipline]\nname = \"pink\"\nc = 0.9"), "f").is_ok());
    }

    /// Budgets are given with any file; they are enforced at the interface of the LAN, so it must be named, and only then.
    #[test]
    fn budgets_are_enforced_where_the_file_says() {
        let with = |lan: &str, c2ml: &str| {
            File::parse(&format!("{}{c2ml}", FILE.replace("wan =", &format!("{lan}wan ="))), "f")
        };
        let (lan, enforce) = ("lan = \"h1\"\n", "[c2ml]\npercent = 90\nenforce = true\n");
        assert!(with("", "[c2ml]\n").is_ok() && with(lan, enforce).is_ok());
        for (lan, c2ml, said) in
            [("", enforce, "write lan"), (lan, "[c2ml]\n", "leave `lan` out"), (lan, "", "leave `lan` out")]
        {
            let refused = with(lan, c2ml).unwrap_err();
            assert!(refused.line > 2 && refused.to_string().contains(said), "{refused}");
        }
    }
}
