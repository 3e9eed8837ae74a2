//! A checked request: every flag is parsed, and combinations without meaning are refused.
//!
//! | flag | meaning | default |
//! |---|---|---|
//! | `-n` | enqueues and dequeues together | 10M |
//! | `-qmin`, `-qmax` | packets that wait at the turn of the phases; `30n` is 30 for each flow | 0, 30n |
//! | `-len` | bytes of a packet | 1700 |
//! | `-burst` | 0 smooth, else bursts of 1 to burst times weight | 0 |
//! | `-qsing`, `-psing` | a flow with fewer packets ends the dequeue phase with this probability | 0, 0.5 |
//! | `-mode` | `single`, `integrated`, `double` | single |
//! | `-alg` | the scheduler | |
//! | `-qos`, `-mac` | the two schedulers of the double mode | |
//! | `-flows`, `-flowsets` | how many flows of weight 1, or weights::flows | |
//! | `-flowsmac`, `-flowsetsmac` | stations | 20 in a wireless mode |
//! | `-qmac` | packets between the two schedulers | 100 |
//! | `-qcount` | thresholds count packets before the `first` scheduler, or before `both` | first |
//! | `-wdistr` | the law from losses to the stations' weights | 3 |
//! | `-ploss` | loss of each station: `powers`, `steps` or a list | powers |
//! | `-intgr_th` | a station is good above this weight, or with `%` above this chance to transmit | 80% |
//!
//! In the document losses range "linearly from 10^0 to 10^-4" (002 §4.2.3.3, Tables 4.5 and 4.6). `powers` makes the
//! exponent linear, `steps` the probability; `docs/algorithms/hfs.md` has the arguments for each.
//!
//! DIFFERENCE: `-intgr_th` is a weight, as 002 §4.3.2.6 defines it. The text about Table 4.6 treats its value 80 as a
//! probability of 80 %, which on the scale of `-wdistr 3` is a weight of 800; `80%` has that meaning whatever the
//! weights are, and is the default. Tests `the_threshold_is_a_weight`, `the_threshold_may_be_a_chance_to_transmit`.
//! DIFFERENCE: in the double mode the thresholds count the packets before the first scheduler (002 §4.3.2.2 has "stored
//! in scheduler flows"), and packets between the schedulers are added. With `-qcount both` they are counted as well:
//! then each dequeue phase with `-qmin 0` sends all packets that came, and the second scheduler affects only their
//! order. Test `thresholds_count_what_waits_before_the_first_of_two_schedulers`.

use crate::controller::Pattern;
use crate::mistake::Mistake;
use crate::numbers::{Depth, count, weights};
use crate::request::Request;
use penstock_core::csi::{geometric, linear};
use penstock_core::foreign::Library;
use penstock_core::sched::modular::Weighting;
use penstock_core::sched::table::{AnySchedulerConfig, NAMES};
use penstock_core::sched::{Setup, Weight};
use penstock_core::suggest::nearest;
use penstock_core::units::{Bytes, Rate};

/// The largest numbers of events, flows and waiting packets in a run.
const MAX_EVENTS: u64 = 10_000_000_000;
const MAX_FLOWS: usize = 1_000_000;
const MAX_WAITING: u64 = 50_000_000;
const MAX_STATIONS: usize = 10_000;
const MAX_REPEAT: u64 = 1_000;

/// The kind of container that holds the scheduler (002 §4.3.2.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// One scheduler before a wired link.
    Single,
    /// One scheduler that knows which stations have a good channel.
    Integrated,
    /// A scheduler of flows, a buffer, and a scheduler of stations which knows their losses.
    Double,
}

impl Mode {
    /// The value of the flag `-mode`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Integrated => "integrated",
            Self::Double => "double",
        }
    }
}

/// A checked request: everything that a run needs.
#[derive(Debug, Clone)]
pub struct Plan {
    pub(crate) mode: Mode,
    /// The name of the scheduler in reports.
    pub(crate) name: String,
    pub(crate) alg: Algorithm,
    pub(crate) weights: Vec<Weight>,
    pub(crate) size: Bytes,
    pub(crate) pattern: Pattern,
    /// Probability of loss for each station; empty without a channel.
    pub(crate) losses: Vec<f64>,
    /// For each station, whether an integrated scheduler serves it.
    pub(crate) good: Vec<bool>,
    pub(crate) rate: Rate,
    pub(crate) seed: u64,
    pub(crate) repeat: u64,
    pub(crate) measure: Measure,
}

/// The parts of a run that are carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Measure {
    All,
    Time,
    Fairness,
    Harness,
}

/// The scheduler or schedulers that serve the flows.
#[derive(Debug, Clone)]
pub(crate) enum Algorithm {
    One(AnySchedulerConfig),
    /// Two schedulers in series: one for the flows and one for the stations.
    Two(Box<Layers>),
}

impl Algorithm {
    /// Number of packets that wait behind the scheduler of flows.
    fn buffer(&self) -> u64 {
        match self {
            Self::One(_) => 0,
            Self::Two(layers) => layers.buffer,
        }
    }
}

/// The two schedulers of the double mode.
#[derive(Debug, Clone)]
pub(crate) struct Layers {
    pub qos: AnySchedulerConfig,
    pub mac: AnySchedulerConfig,
    pub buffer: u64,
    /// Weights of the stations.
    pub weights: Vec<Weight>,
}

impl Plan {
    /// Parses and checks a request.
    ///
    /// # Errors
    /// Names the first flag that is not allowed, with its value and the allowed values.
    pub fn of(request: &Request) -> Result<Self, Mistake> {
        Self::with(request, &())
    }

    /// Parses and checks a request whose schedulers may be those of a library.
    ///
    /// # Errors
    /// Those of [`Plan::of`], and a scheduler of the library that cannot be used.
    pub fn with(request: &Request, library: &dyn Library) -> Result<Self, Mistake> {
        let mode = mode(request)?;
        refuse_strangers(request, mode)?;
        let weights = flows(request)?;
        let losses = losses(request, mode)?;
        let (name, alg) = match mode {
            Mode::Double => two(request, &losses, library)?,
            _ => one(request, library)?,
        };
        let mut plan = Self {
            mode,
            name,
            size: Bytes::new(number(&request.len, "-len", 1700, 1, Setup::MAX_PACKET.get())?),
            good: good(request, &losses)?,
            pattern: pattern(request, weights.len(), uncounted(request, &alg)?)?,
            rate: rate(request)?,
            seed: number(&request.seed, "-seed", 1, 0, u64::MAX)?,
            repeat: number(&request.repeat, "-repeat", 3, 1, MAX_REPEAT)?,
            measure: measure(request)?,
            alg,
            losses,
            weights,
        };
        plan.try_schedulers()?;
        if mode == Mode::Integrated {
            plan.pattern.counts = (0..plan.weights.len()).map(|flow| plan.is_served(flow)).collect();
            if !plan.pattern.counts.contains(&true) {
                let value = request.intgr_th.as_deref().unwrap_or(THRESHOLD);
                return Err(Mistake::new("-intgr_th", value, "leaves no flow a good station; must be lower"));
            }
        }
        Ok(plan)
    }

    /// Builds the schedulers once, because they may refuse the weights.
    fn try_schedulers(&self) -> Result<(), Mistake> {
        let tried = |flag, config: &AnySchedulerConfig, setup: Setup<'_>| {
            config.build(&setup).map(|_| ()).map_err(|error| Mistake::new(flag, config.name(), error))
        };
        match &self.alg {
            Algorithm::One(config) => tried("-alg", config, self.setup()),
            Algorithm::Two(layers) => {
                tried("-qos", &layers.qos, self.setup())?;
                tried("-mac", &layers.mac, self.mac_setup(layers))
            }
        }
    }

    pub(crate) fn mac_setup<'a>(&self, layers: &'a Layers) -> Setup<'a> {
        Setup { weights: &layers.weights, max_packet: self.size }
    }

    pub(crate) fn setup(&self) -> Setup<'_> {
        Setup { weights: &self.weights, max_packet: self.size }
    }

    /// The station of a flow: flows are distributed to the stations in turn, so that each station gets flows of every
    /// set.
    pub(crate) fn station(&self, flow: usize) -> Option<usize> {
        flow.checked_rem(self.losses.len())
    }

    /// True if a flow's station is good, or if there are no stations.
    pub(crate) fn is_served(&self, flow: usize) -> bool {
        self.station(flow).is_none_or(|station| self.good[station])
    }

    /// The largest number of packets that may wait: the packets which count, and for each other flow the smallest
    /// backlog of a counted flow plus one burst.
    pub(crate) fn capacity(&self) -> usize {
        let (qmax, counts) = (self.pattern.qmax, &self.pattern.counts);
        let counted = counts.iter().filter(|counted| **counted).count() as u64;
        let most = |weight: &Weight| {
            qmax / counted.max(1) + 1 + u64::from(self.pattern.burst).max(1) * u64::from(weight.get())
        };
        let others = counts.iter().zip(&self.weights).filter(|(counted, _)| !**counted);
        (qmax + others.map(|(_, weight)| most(weight)).sum::<u64>()) as usize
    }
}

fn mode(request: &Request) -> Result<Mode, Mistake> {
    match request.mode.as_deref().unwrap_or("single") {
        "single" => Ok(Mode::Single),
        "integrated" => Ok(Mode::Integrated),
        "double" => Ok(Mode::Double),
        other => Err(Mistake::new("-mode", other, "must be single, integrated or double")),
    }
}

/// Refuses flags of other modes and flags that exclude each other.
fn refuse_strangers(request: &Request, mode: Mode) -> Result<(), Mistake> {
    let goes_with = |flag: &str, given: &Option<String>, only: Mode| match given {
        Some(value) if mode != only => {
            let allowed = format!("goes with -mode {}, and this is {}", only.name(), mode.name());
            Err(Mistake::new(flag, value, allowed))
        }
        _ => Ok(()),
    };
    for (flag, given) in [
        ("-qos", &request.qos),
        ("-mac", &request.mac),
        ("-qmac", &request.qmac),
        ("-qcount", &request.qcount),
        ("-flowsetsmac", &request.flowsetsmac),
    ] {
        goes_with(flag, given, Mode::Double)?;
    }
    if let (Some(value), Mode::Single) = (&request.wdistr, mode) {
        return Err(Mistake::new("-wdistr", value, "goes with -mode double or integrated, and this is single"));
    }
    goes_with("-intgr_th", &request.intgr_th, Mode::Integrated)?;
    for (flag, given, other, also) in [
        ("-flowsmac", &request.flowsmac, "-flowsetsmac", &request.flowsetsmac),
        ("-wdistr", &request.wdistr, "-flowsetsmac", &request.flowsetsmac),
        ("-alg", &request.alg, "-qos and -mac", if request.qos.is_some() { &request.qos } else { &request.mac }),
    ] {
        if let (Some(value), Some(_)) = (given, also) {
            return Err(Mistake::new(flag, value, format!("excludes {other}; give one of them")));
        }
    }
    if let (Some(value), None) = (&request.psing, &request.qsing) {
        return Err(Mistake::new("-psing", value, "goes with -qsing"));
    }
    Ok(())
}

/// Names that stand for two schedulers: the name, the scheduler of flows, the scheduler of stations.
const DOUBLES: &[(&str, &str, &str)] = &[
    ("hfs", "qfq-plus", "qfq-plus"),
    ("hfs-drr", "qfq-plus", "drr"),
    ("double-drr", "drr", "drr"),
    ("double-wf2q-plus", "wf2q-plus", "wf2q-plus"),
];

fn one(request: &Request, library: &dyn Library) -> Result<(String, Algorithm), Mistake> {
    if let Some(given) = &request.alg
        && DOUBLES.iter().any(|(double, ..)| *double == plain(given))
    {
        return Err(Mistake::new("-alg", given, "is made of two schedulers and goes with -mode double"));
    }
    let config = scheduler(&request.alg, "-alg", library)?;
    Ok((config.name().to_owned(), Algorithm::One(config)))
}

fn two(request: &Request, losses: &[f64], library: &dyn Library) -> Result<(String, Algorithm), Mistake> {
    let (name, qos, mac) = match &request.alg {
        None => {
            let named = |given, flag| scheduler(given, flag, library);
            let (qos, mac) = (named(&request.qos, "-qos")?, named(&request.mac, "-mac")?);
            let known = DOUBLES.iter().find(|(_, q, m)| (*q, *m) == (qos.name(), mac.name()));
            let name = known.map_or_else(|| format!("{}/{}", qos.name(), mac.name()), |(name, ..)| (*name).to_owned());
            (name, qos, mac)
        }
        Some(given) => {
            let names: Vec<_> = DOUBLES.iter().map(|(name, ..)| *name).collect();
            let known = DOUBLES.iter().find(|(double, ..)| *double == plain(given));
            let allowed = || {
                let (meant, all) = (meant(given, &names), names.join(", "));
                format!("{meant}in the double mode must be one of {all}, or give -qos and -mac")
            };
            let (name, qos, mac) = known.ok_or_else(|| Mistake::new("-alg", given, allowed()))?;
            let config = |part: &str| scheduler(&Some(part.to_owned()), "-alg", library);
            ((*name).to_owned(), config(qos)?, config(mac)?)
        }
    };
    let buffer = number(&request.qmac, "-qmac", 100, 0, MAX_WAITING)?;
    let weights = match &request.flowsetsmac {
        None => policy(request)?.weights(losses),
        Some(sets) => weights_of("-flowsetsmac", sets, MAX_STATIONS)?,
    };
    Ok((name, Algorithm::Two(Box::new(Layers { qos, mac, buffer, weights }))))
}

fn policy(request: &Request) -> Result<Weighting, Mistake> {
    Ok(Weighting::ALL[number(&request.wdistr, "-wdistr", 3, 0, 3)? as usize])
}

/// The default of `-intgr_th`: up to a loss of 20 % a station is in good condition (002 §4.2.3.3).
const THRESHOLD: &str = "80%";

/// For each station, whether its weight or its probability of success exceeds the threshold.
fn good(request: &Request, losses: &[f64]) -> Result<Vec<bool>, Mistake> {
    let text = request.intgr_th.as_deref().unwrap_or(THRESHOLD).trim();
    let allowed = "must be a weight from 0, or a chance to transmit from 0% to 100%";
    let read = |text: &str, most: f64| {
        let number = text.parse::<f64>().ok().filter(|number| (0.0..=most).contains(number));
        number.ok_or_else(|| Mistake::new("-intgr_th", text, allowed))
    };
    if let Some(percent) = text.strip_suffix('%') {
        let least = read(percent.trim(), 100.0)?;
        return Ok(losses.iter().map(|loss| (1.0 - loss) * 100.0 > least).collect());
    }
    let least = read(text, f64::MAX)?;
    Ok(policy(request)?.weights(losses).iter().map(|weight| f64::from(weight.get()) > least).collect())
}

/// Number of packets between two schedulers which the thresholds do not count.
fn uncounted(request: &Request, alg: &Algorithm) -> Result<u64, Mistake> {
    match request.qcount.as_deref().unwrap_or("first") {
        "first" => Ok(alg.buffer()),
        "both" => Ok(0),
        other => Err(Mistake::new("-qcount", other, "must be first or both")),
    }
}

fn flows(request: &Request) -> Result<Vec<Weight>, Mistake> {
    match (&request.flows, &request.flowsets) {
        (Some(flows), Some(_)) => Err(Mistake::new("-flows", flows, "excludes -flowsets; give one of them")),
        (None, None) => Err(Mistake::alone("-flows", "give it or -flowsets: 1000, or 20::20,10::20,1::60")),
        (Some(flows), None) => {
            let flows = number(&Some(flows.clone()), "-flows", 0, 1, MAX_FLOWS as u64)?;
            Ok(vec![Weight::ONE; flows as usize])
        }
        (None, Some(sets)) => weights_of("-flowsets", sets, MAX_FLOWS),
    }
}

fn weights_of(flag: &str, sets: &str, most: usize) -> Result<Vec<Weight>, Mistake> {
    weights(sets, most).map_err(|error| Mistake::new(flag, sets, error.1))
}

/// The name of a scheduler in the spelling of this project, from the spelling of the document or of a user.
fn plain(name: &str) -> String {
    name.trim().to_lowercase().replace('+', "-plus").replace('*', "-drr").replace('_', "-").replace('²', "2")
}

fn scheduler(name: &Option<String>, flag: &str, library: &dyn Library) -> Result<AnySchedulerConfig, Mistake> {
    let names = || NAMES.join(", ");
    let Some(given) = name else { return Err(Mistake::alone(flag, format!("give one of {}", names()))) };
    let built_in = AnySchedulerConfig::default_of(&plain(given));
    if built_in.is_none()
        && let Some(found) = library.scheduler(given, &Default::default())
    {
        return found.map(AnySchedulerConfig::Foreign).map_err(|error| Mistake::new(flag, given, error));
    }
    built_in.ok_or_else(|| Mistake::new(flag, given, format!("{}must be one of {}", meant(given, NAMES), names())))
}

/// The text "did you mean X? " with the most similar known name; empty if none is similar.
fn meant(given: &str, known: &[&str]) -> String {
    nearest(&plain(given), known).first().map(|name| format!("did you mean {name}? ")).unwrap_or_default()
}

/// The pattern of arrivals, with `buffer` packets behind the scheduler of flows.
fn pattern(request: &Request, flows: usize, buffer: u64) -> Result<Pattern, Mistake> {
    let qmax = depth(&request.qmax, "-qmax", "30n", flows)?;
    if !(1..=MAX_WAITING).contains(&qmax) {
        let value = request.qmax.as_deref().unwrap_or("30n");
        return Err(Mistake::new("-qmax", value, format!("is {qmax} packets; must be 1 to {MAX_WAITING}")));
    }
    let qmin = depth(&request.qmin, "-qmin", "0", flows)?;
    if qmin >= qmax {
        let value = request.qmin.as_deref().unwrap_or("0");
        let allowed = format!("is {qmin} packets; must be less than -qmax, which is {qmax}");
        return Err(Mistake::new("-qmin", value, allowed));
    }
    Ok(Pattern {
        events: number(&request.n, "-n", 10_000_000, 2, MAX_EVENTS)?,
        qmin: qmin + buffer,
        qmax: qmax + buffer,
        burst: number(&request.burst, "-burst", 0, 0, 1_000_000)? as u32,
        single: number(&request.qsing, "-qsing", 0, 0, MAX_WAITING)? as u32,
        refill: fraction(&request.psing, "-psing", 0.5, 1.0)?,
        counts: Vec::new(),
    })
}

fn depth(given: &Option<String>, flag: &str, default: &str, flows: usize) -> Result<u64, Mistake> {
    let text = given.as_deref().unwrap_or(default);
    let depth: Depth = text.parse().map_err(|error: crate::numbers::NumberError| Mistake::new(flag, text, error.1))?;
    Ok(depth.packets(flows))
}

fn number(given: &Option<String>, flag: &str, default: u64, least: u64, most: u64) -> Result<u64, Mistake> {
    let Some(text) = given else { return Ok(default) };
    let number = count(text).map_err(|error| Mistake::new(flag, text, error.1))?;
    if (least..=most).contains(&number) {
        return Ok(number);
    }
    Err(Mistake::new(flag, text, format!("must be {least} to {most}")))
}

fn fraction(given: &Option<String>, flag: &str, default: f64, most: f64) -> Result<f64, Mistake> {
    let Some(text) = given else { return Ok(default) };
    let read = text.trim().parse::<f64>().ok().filter(|number| (0.0..=most).contains(number));
    read.ok_or_else(|| Mistake::new(flag, text, format!("must be a number from 0 to {most}")))
}

fn rate(request: &Request) -> Result<Rate, Mistake> {
    let text = request.rate.as_deref().unwrap_or("54Mbit/s");
    text.parse().map_err(|error: penstock_core::units::UnitError| Mistake::new("-rate", text, error))
}

fn measure(request: &Request) -> Result<Measure, Mistake> {
    match request.measure.as_deref().unwrap_or("all") {
        "all" => Ok(Measure::All),
        "time" => Ok(Measure::Time),
        "fairness" => Ok(Measure::Fairness),
        "harness" => Ok(Measure::Harness),
        other => Err(Mistake::new("-measure", other, "must be all, time, fairness or harness")),
    }
}

/// The probability of loss of each station (Tables 4.5 and 4.6, from 10^0 to 10^-4): by powers, in steps, or as given.
fn losses(request: &Request, mode: Mode) -> Result<Vec<f64>, Mistake> {
    let (flag, default) = match &request.flowsetsmac {
        Some(sets) => ("-flowsetsmac", Some(weights_of("-flowsetsmac", sets, MAX_STATIONS)?.len() as u64)),
        None => ("-flowsmac", (mode != Mode::Single).then_some(20)),
    };
    let stations = |default| number(&request.flowsmac, "-flowsmac", default, 1, MAX_STATIONS as u64);
    let text = match request.ploss.as_deref().unwrap_or("powers").trim() {
        "powers" => return Ok(geometric(stations(default.unwrap_or(0))? as usize, 1.0..=1e-4)),
        "steps" => return Ok(linear(stations(default.unwrap_or(0))? as usize, 1.0..=1e-4)),
        list => list,
    };
    let read = |part: &str| part.trim().parse::<f64>().ok().filter(|loss| (0.0..=1.0).contains(loss));
    let losses: Option<Vec<f64>> = text.split(':').map(read).collect();
    let allowed = "must be powers, steps, or losses from 0 to 1 with colons between, one for each station: 0.1:0.05:0";
    let losses = losses.ok_or_else(|| Mistake::new("-ploss", text, allowed))?;
    let stations = match default.filter(|_| request.flowsetsmac.is_some()) {
        Some(stations) => stations,
        None => stations(losses.len() as u64)?,
    };
    if losses.len() as u64 == stations {
        return Ok(losses);
    }
    let allowed = format!("has {} losses and {flag} {stations} stations; there must be as many", losses.len());
    Err(Mistake::new("-ploss", text, allowed))
}

#[cfg(test)]
mod tests;
