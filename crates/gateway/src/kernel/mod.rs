//! The kernel data path: the kernel forwards, and programs at the WAN interface write windows (`penstock_linux::bpf`). This
//! process only tells them rates, gives a sign of life every tenth of a second and applies timeouts; no packet waits for it.

mod budgets;
mod place;

use crate::account::Allowed;
use crate::apply::Read;
use crate::error::Error;
use crate::file::{File, parameters};
use crate::life::{Life, Sight, Standing};
use crate::offloaded::Offloaded;
use crate::report::{Common, Past};
use crate::settings::Settings;
use crate::surroundings::prompt;
use budgets::Budgets;
use penstock_appliance::appliance::{Appliance, Clock, Desk, Rest, wait};
use penstock_appliance::run::run;
use penstock_appliance::socket::message::{By, Refusal};
use penstock_budgets::served::Served;
use penstock_core::qdisc::Backlog;
use penstock_core::units::{Instant, Limit, Span};
use penstock_linux::bpf::{Control, Datapath, Way};
use penstock_linux::random;
use penstock_linux::stalls::Stalls;
use penstock_shaper::bottleneck::Config;
use penstock_shaper::keys::Keys;
use place::Place;
use serde_json::{Value, json};

/// How often the programs get a sign of life.
const BEAT: Span = Span::from_millis(100);
/// How often all timeouts are applied: what a pause of a flow leaves to others comes at most so much later.
const SWEEP: Span = Span::from_millis(250);
/// Sets of 16 connections: 65,536 connections in 19 MB.
const SETS: u32 = 4096;
/// Without a sign of life for so long the programs pass everything untouched.
const PATIENCE: Span = Span::from_secs(1);

pub struct Kernel {
    settings: Settings,
    path: Datapath,
    budgets: Option<Budgets>,
    place: Place,
    life: Life,
    clock: Clock,
    /// When the programs get a sign of life, and when timeouts are applied.
    next: [Instant; 2],
    /// Packets that had passed because this process hung, when that was last looked at.
    stale: u64,
    /// When this process hung, and when it did not run although it had to.
    past: Past,
    stalls: Stalls,
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

impl Kernel {
    /// Loads the programs and attaches them to the interface to the link, when it comes if it is not there. Nothing of
    /// a start that failed remains.
    pub fn open(file: &File, desk: &mut Desk<Self>) -> Result<Self, Error> {
        let life = Life::watch(&file.interfaces.wan, file.keys.observe, Allowed::Little)?;
        desk.watch(&life)?;
        let keys = random::bytes().map(|bytes| Keys::from_random(&bytes).connections);
        let keys = keys.map_err(Error::io("cannot draw random numbers"))?;
        let ways = ways(&file.settings).map_err(Error::User)?;
        let control = Control {
            heartbeat: penstock_linux::bpf::datapath::clock(),
            observe: file.keys.observe,
            ..Control::new(SETS, [keys.0, keys.1], ways)
        };
        let mut path = Datapath::load(control)?;
        let mut place = Place::default();
        place.attach(&mut path, &life)?;
        let (upload, lan) = (file.settings.ways[1].rate, file.interfaces.lan.as_deref());
        let budgets = file.c2ml.as_ref().map(|keys| Budgets::open(keys, upload, lan, life.index(), file.keys.observe));
        let budgets = budgets.transpose().map_err(Error::budgets)?;
        desk.log("start", &json!({"wan": life.name(), "datapath": "kernel", "version": env!("CARGO_PKG_VERSION")}));
        prompt(file.keys.realtime)?.into_iter().for_each(|what| desk.begun(what));
        let (settings, clock, next) = (file.settings.clone(), desk.clock, [Instant::ZERO; 2]);
        let (past, stalls) = Default::default();
        let offloaded = Offloaded::watch(file);
        Ok(Self { settings, path, budgets, place, life, clock, next, stale: 0, past, stalls, offloaded })
    }

    /// Runs until a signal comes or something fails; returns the last status and why the run failed, if it did.
    pub fn run(mut self, mut desk: Desk<Self>) -> (Value, Option<String>) {
        let ended = run(&mut self, &mut desk);
        desk.log("end", &json!({ "why": ended.failure() }));
        (self.status(&desk), ended.failure())
    }

    fn do_what_is_due(&mut self, now: Instant) -> Result<(), Error> {
        if now >= self.next[0] {
            self.note_late(self.next[0], now);
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

    /// Notes that a sign of life was due at another time than it comes. After [`PATIENCE`] the programs had let all
    /// pass.
    fn note_late(&mut self, due: Instant, now: Instant) {
        if due == Instant::ZERO {
            return;
        }
        self.stalls.note(due, now);
        let open = (now.since(due) + BEAT).saturating_sub(PATIENCE);
        if open > Span::ZERO {
            self.past.times += 1;
            self.past.open_s += open.as_secs_f64();
        }
    }

    fn see(&mut self) -> Result<(), Error> {
        self.life.refresh();
        let gauges = self.path.gauges()?;
        let standing = self.place.failed().map_or(Standing::Takes, Standing::Wrong);
        let (taken, late_s) = (self.place.taken(&gauges, &self.life), self.stalls.total_s);
        self.life.see(Sight { standing, taken, past: self.past, late_s });
        Ok(())
    }

    /// Follows the interface to the link, whatever its number is now, and keeps the account of what passes.
    fn look_at_link(&mut self, now: Instant, desk: &mut Desk<Self>) -> Result<(), Error> {
        if let Some(event) = self.place.follow(&mut self.path, &self.life)? {
            desk.note(event);
        }
        self.see()?;
        if let Some(event) = self.life.look(now) {
            desk.note(event);
            desk.forget_status();
        }
        let wan = self.life.index();
        self.budgets.as_mut().and_then(|budgets| budgets.follow(wan)).into_iter().for_each(|what| desk.note(what));
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

    fn turn(&mut self, desk: &mut Desk<Self>) -> Result<Instant, String> {
        let now = self.clock.now();
        self.do_what_is_due(now).map_err(|error| error.to_string())?;
        if now >= self.life.due {
            self.look_at_link(now, desk).map_err(|error| error.to_string())?;
        }
        Ok(now)
    }

    fn sleep(&mut self, rest: &Rest<'_>) -> Result<bool, String> {
        wait(rest, self.next.into_iter().min().unwrap_or(rest.until))
    }

    /// An interface has changed.
    fn look(&mut self, desk: &mut Desk<Self>) -> Result<(), String> {
        let now = self.clock.now();
        if self.life.has_news() {
            self.look_at_link(now, desk).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn standing(&self) -> String {
        self.life.sentence()
    }

    fn tick(&mut self, _: Instant, desk: &mut Desk<Self>) -> Result<(), String> {
        self.place.check(&self.path, self.life.name());
        self.look_at_counters(desk).map_err(|error| error.to_string())
    }

    /// Counters that cannot be read are zero, and a mark says so.
    fn status(&mut self, desk: &Desk<Self>) -> Value {
        let seen = self.see();
        let read = self.path.sums().and_then(|sums| Ok((sums, self.path.gauges()?)));
        let failed = seen.err().map(|error| format!("the counters cannot be read: {error}"));
        let (sums, gauges) = read.unwrap_or_default();
        let enforced = self.budgets.as_ref().map_or(Ok(None), Budgets::report);
        let unread = enforced.as_ref().err().map(|error| format!("the accounts of hosts cannot be read: {error}"));
        let c2ml = self.budgets.as_ref().map(|budgets| &budgets.served);
        let marks = [
            failed,
            unread,
            self.offloaded.mark(),
            (gauges.refused > 0).then(|| format!("{} connections had no place in the table", gauges.refused)),
            (gauges.unwritten > 0).then(|| format!("{} windows could not be written", gauges.unwritten)),
        ];
        let marks = marks.into_iter().flatten().chain(c2ml.into_iter().flat_map(Served::marks));
        let mut status = json!(Common::of(desk, self.life.marks().chain(marks)));
        let mut tell = |key: &str, value: Value| status[key] = value;
        tell("state", json!(self.life.state()));
        tell("account", json!(self.life.account([0; 2])));
        tell("past", json!(self.past));
        tell("stalled", json!(self.stalls));
        tell("datapath", "kernel".into());
        let attached = self.place.attached().filter(|_| !self.life.facts().gone);
        tell("attached", json!(attached));
        tell("wan", json!(self.life.name()));
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
