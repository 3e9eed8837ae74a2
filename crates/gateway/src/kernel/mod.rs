//! The kernel data path: the kernel forwards, and programs at the WAN interface write windows (`penstock_linux::bpf`). This
//! process only tells them rates, gives a sign of life every tenth of a second and applies timeouts; no packet waits for it.

mod budgets;

use crate::apply::Read;
use crate::error::Error;
use crate::file::{File, parameters};
use crate::offloaded::Offloaded;
use crate::report::{Common, State};
use crate::settings::Settings;
use crate::surroundings::mark;
use budgets::Budgets;
use nix::ifaddrs::getifaddrs;
use penstock_appliance::appliance::{Appliance, Clock, Desk, Rest, wait};
use penstock_appliance::run::run;
use penstock_appliance::socket::message::{By, Refusal};
use penstock_budgets::served::Served;
use penstock_core::qdisc::Backlog;
use penstock_core::units::{Instant, Limit, Span};
use penstock_linux::bpf::{Attached, Control, Datapath, Way};
use penstock_linux::links::LinkWatch;
use penstock_linux::random;
use penstock_shaper::bottleneck::Config;
use penstock_shaper::keys::Keys;
use serde_json::{Value, json};

/// How often the programs get a sign of life.
const BEAT: Span = Span::from_millis(100);
/// How often all timeouts are applied: what a pause of a flow leaves to others comes at most so much later.
const SWEEP: Span = Span::from_millis(250);
/// Sets of 16 connections: 65,536 connections in 19 MB.
const SETS: u32 = 4096;
/// The hardware type of interfaces whose packets have an Ethernet header (ARPHRD_ETHER, ARPHRD_LOOPBACK).
const ETHERNET: [u16; 2] = [1, 772];

pub struct Kernel {
    settings: Settings,
    path: Datapath,
    budgets: Option<Budgets>,
    attached: Attached,
    wan: LinkWatch,
    name: String,
    observe: bool,
    clock: Clock,
    /// When the programs get a sign of life, and when timeouts are applied.
    next: [Instant; 2],
    /// Packets that had passed because this process hung, when that was last looked at.
    stale: u64,
    offloaded: Offloaded,
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
        let rate = pink.rate.unwrap_or_else(|| config.layer.of_packets(config.rate));
        let (rate_bps, capacity, room) = (rate.as_bps(), pink.capacity(rate), room.min(1 << 40));
        Ok::<Way, String>(Way { rate_bps, capacity, room, in_packets, backlog: 0 })
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
    /// Loads the programs and attaches them to the interface with the number `wan`. Nothing of a start that failed remains.
    pub fn open(file: &File, wan: u32, desk: &mut Desk<Self>) -> Result<Self, Error> {
        let watch = LinkWatch::here(wan)?;
        desk.watch(&watch)?;
        let keys = random::bytes().map(|bytes| Keys::from_random(&bytes).connections);
        let keys = keys.map_err(Error::io("cannot draw random numbers"))?;
        let ways = ways(&file.settings).map_err(Error::User)?;
        let control = Control {
            heartbeat: penstock_linux::bpf::datapath::clock(),
            ethernet: is_ethernet(&file.interfaces.wan),
            observe: file.keys.observe,
            ..Control::new(SETS, [keys.0, keys.1], ways)
        };
        let mut path = Datapath::load(control)?;
        let attached = path.attach(&file.interfaces.wan)?;
        let lan = file.interfaces.lan.as_deref().map(|lan| (lan, is_ethernet(lan)));
        let upload = file.settings.ways[1].rate;
        let budgets = file.c2ml.as_ref().map(|keys| Budgets::open(keys, upload, lan, wan, file.keys.observe));
        let budgets = budgets.transpose().map_err(Error::budgets)?;
        let (settings, name, observe) = (file.settings.clone(), file.interfaces.wan.clone(), file.keys.observe);
        desk.log("start", &json!({"wan": name, "datapath": "kernel", "version": env!("CARGO_PKG_VERSION")}));
        let (clock, next) = (desk.clock, [Instant::ZERO; 2]);
        Ok(Self {
            settings,
            path,
            budgets,
            attached,
            wan: watch,
            name,
            observe,
            clock,
            next,
            stale: 0,
            offloaded: Offloaded::watch(file),
        })
    }

    /// Runs until a signal comes or something fails; returns the last status and why the run failed, if it did.
    pub fn run(mut self, mut desk: Desk<Self>) -> (Value, Option<String>) {
        let ended = run(&mut self, &mut desk);
        desk.log("end", &json!({ "why": ended.failure() }));
        (self.status(&desk), ended.failure())
    }

    fn do_what_is_due(&mut self, now: Instant) -> Result<(), Error> {
        if now >= self.next[0] {
            self.next[0] = now + BEAT;
            self.path.beat()?;
            let upload = self.settings.ways[1].rate;
            self.budgets.iter_mut().try_for_each(|budgets| budgets.beat(upload))?;
        }
        if now >= self.next[1] {
            self.next[1] = now + SWEEP;
            self.path.sweep()?;
        }
        Ok(())
    }

    fn look_at_counters(&mut self, desk: &mut Desk<Self>) -> Result<(), Error> {
        let stale = self.path.gauges()?.stale;
        if stale > self.stale {
            desk.note(format!("this process hung: {} packets passed untouched", stale - self.stale));
            self.stale = stale;
        }
        self.budgets.iter().flat_map(|budgets| budgets.served.events()).for_each(|what| desk.note(what));
        if !self.budgets.as_mut().map_or(Ok(true), Budgets::tick)? {
            desk.note("the kernel had other budgets than it was told; it has been told again".into());
        }
        Ok(())
    }
}

impl Appliance for Kernel {
    type Settings = Settings;
    type File = Read;
    type Status = Value;
    const APPLIES_AT_HANGUP: bool = true;

    fn turn(&mut self, _: &mut Desk<Self>) -> Result<Instant, String> {
        let now = self.clock.now();
        self.do_what_is_due(now).map_err(|error| error.to_string())?;
        Ok(now)
    }

    fn sleep(&mut self, rest: &Rest<'_>) -> Result<bool, String> {
        wait(rest, self.next.into_iter().min().unwrap_or(rest.until))
    }

    fn look(&mut self, _: &mut Desk<Self>) -> Result<(), String> {
        self.wan.read();
        Ok(())
    }

    fn tick(&mut self, _: Instant, desk: &mut Desk<Self>) -> Result<(), String> {
        self.wan.ask();
        self.look_at_counters(desk).map_err(|error| error.to_string())
    }

    /// Counters that cannot be read are zero, and a mark says so.
    fn status(&mut self, desk: &Desk<Self>) -> Value {
        let read = self.path.sums().and_then(|sums| Ok((sums, self.path.gauges()?)));
        let failed = read.as_ref().err().map(|error| format!("the counters cannot be read: {error}"));
        let (sums, gauges) = read.unwrap_or_default();
        let enforced = self.budgets.as_ref().map_or(Ok(None), Budgets::report);
        let unread = enforced.as_ref().err().map(|error| format!("the accounts of hosts cannot be read: {error}"));
        let c2ml = self.budgets.as_ref().map(|budgets| &budgets.served);
        let marks = [
            failed,
            unread,
            mark(&self.wan, &self.name),
            self.offloaded.mark(),
            (gauges.refused > 0).then(|| format!("{} connections had no place in the table", gauges.refused)),
            (gauges.unwritten > 0).then(|| format!("{} windows could not be written", gauges.unwritten)),
        ];
        let mut status =
            json!(Common::of(desk, marks.into_iter().flatten().chain(c2ml.into_iter().flat_map(Served::marks))));
        let mut tell = |key: &str, value: Value| status[key] = value;
        tell("state", json!(if self.observe { State::Observing } else { State::Governing }));
        tell("datapath", "kernel".into());
        tell("attached", json!(self.attached));
        tell("wan", json!(self.name));
        tell("capacity", (SETS * penstock_linux::bpf::datapath::WAYS).into());
        tell("table", json!(gauges));
        // The programs count what goes to the link first. What arrived is what passed the interface.
        for (config, (key, own)) in self.settings.ways.iter().zip([("forward", 1), ("reverse", 0)]) {
            let Config { aqm, rate, limit, .. } = config;
            let arrived = Backlog { packets: gauges.packets[own], bytes: gauges.bytes[own] };
            let (name, rate_bps, pink) = (aqm.name(), rate.as_bps(), sums[own]);
            let way = json!({"aqm": name, "parameters": aqm, "rate_bps": rate_bps, "limit": limit, "arrived": arrived, "pink": pink});
            tell(key, way);
        }
        c2ml.and_then(Served::status).into_iter().for_each(|budgets| tell("c2ml", json!(budgets)));
        enforced.ok().flatten().into_iter().for_each(|enforced| tell("enforcement", json!(enforced)));
        status
    }

    fn top(&self, _: By, _: usize, _: Instant) -> Result<Value, Refusal> {
        Err(Refusal::new("the kernel data path counts no flows by rate; `status` has its counters"))
    }

    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn read(&self, values: &[(String, String)]) -> Result<Settings, Refusal> {
        self.settings.with(values, [true; 2])
    }

    fn wanted(&self, file: &Read) -> Result<Settings, Refusal> {
        file.wanted(&self.settings, |_, _| None)
    }

    fn go_to(&mut self, wanted: &Settings) -> Result<Instant, Refusal> {
        let control = Control { ways: ways(wanted).map_err(Refusal::new)?, ..self.path.told().clone() };
        self.path.tell(control).map_err(|error| Refusal::of(&error))?;
        self.settings.clone_from(wanted);
        Ok(self.clock.now())
    }

    fn read_back(&self) -> Result<(), String> {
        let wanted = ways(&self.settings)?;
        let is_as_told = self.path.is_as_told().map_err(|error| error.to_string())?;
        if is_as_told && self.path.told().ways == wanted {
            return Ok(());
        }
        Err("the programs have other values than they were told".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "datapath = 'kernel'\n[interfaces]\nwan = 'w0'\n[link]\nrate = '10Mbit/s'\n\
                        reverse_rate = '2Mbit/s'\nlimit = '125kB'\n";

    /// 0.95 of 10 Mbit/s and of 2 Mbit/s, in thousandths of a byte per second.
    #[test]
    fn the_programs_are_told_rates_and_queues() {
        let file = File::parse(FILE, "f").unwrap();
        let [up, down] = ways(&file.settings).unwrap();
        let told = (down.rate_bps, down.capacity, down.room, down.in_packets);
        assert_eq!(told, (10_000_000, 1_187_500_000, 125_000, false));
        assert_eq!((up.rate_bps, up.capacity), (2_000_000, 237_500_000));
    }
}
