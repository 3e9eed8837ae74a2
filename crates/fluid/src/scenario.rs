//! A scenario as a model: what the equations can say of it, and a refusal with the line of what they cannot.

use crate::model::{Class, Control, Discipline, Losses, Model};
use penstock_core::cc::AnyControlConfig;
use penstock_core::foreign::Library;
use penstock_core::registry::AnyConfig;
use penstock_core::units::{Limit, Span};
use penstock_grammar::{Diagnosis, Source};
use penstock_sim::Scenario;
use penstock_sim::scenario::{FlowSpec, Invariants, Link, LinkSpec, Traffic};

const IP_AND_TCP: f64 = 40.0;
const IP_AND_UDP: f64 = 28.0;
const TIMESTAMPS: f64 = 12.0;

/// What the equations cannot say: the path of the key, and why.
struct Refusal {
    path: Vec<String>,
    message: String,
}

impl Refusal {
    fn new(path: &[&str], message: impl Into<String>) -> Self {
        Self { path: path.iter().map(|key| (*key).to_owned()).collect(), message: message.into() }
    }
}

type Told<T> = Result<T, Refusal>;

/// A scenario and the model of it.
pub struct Read {
    /// The scenario.
    pub scenario: Scenario,
    /// Its model. The group of a class is the index of the `[[flows]]` that it stands for.
    pub model: Model,
}

/// Reads a scenario; `file` is its name in messages.
///
/// # Errors
/// Returns the first mistake, or the first key that the equations have nothing for, with its line.
pub fn read(text: &str, file: &str, seed: Option<u64>, library: &dyn Library) -> Result<Read, Diagnosis> {
    let mut scenario = Scenario::parse_with(text, file, library)?;
    if let Some(seed) = seed {
        scenario.seed = seed;
    }
    let model = model(&scenario).or_else(|refusal| {
        let source = Source::parse(text, file)?;
        let path: Vec<&str> = refusal.path.iter().map(String::as_str).collect();
        Err(source.at(&path, &format!("--on fluid: {}", refusal.message)))
    })?;
    Ok(Read { scenario, model })
}

fn model(scenario: &Scenario) -> Told<Model> {
    refuse_parts(scenario)?;
    let [link] = scenario.links.as_slice() else {
        return Err(Refusal::new(&["topology", "kind"], "the equations have one link: a dumbbell"));
    };
    // Delays are a part of each class; what comes back needs no queue.
    let Link { rate, delay: _, reverse_rate, reverse_delay: _, limit, reverse_limit: _, loss } = link.link;
    if reverse_rate.is_some_and(|reverse| reverse < rate) {
        let message = "the equations have no queue of ACKs, which a slower way back would need";
        return Err(Refusal::new(&["topology", "reverse_rate"], message));
    }
    if loss > 0.0 {
        return Err(Refusal::new(&["topology", "loss"], "the equations have no wire that loses packets"));
    }
    if link.estimate.is_some() {
        let message = "the equations have no gateway that estimates a rate";
        return Err(Refusal::new(&["topology", "rate_from"], message));
    }
    let written = [("", &link.queue), ("reverse_", &link.reverse_queue)];
    for (prefix, queue) in written {
        if let Some(key) = queue.impairments.key() {
            let message = "the equations have no link that does this to packets";
            return Err(Refusal::new(&["topology", &format!("{prefix}{key}")], message));
        }
        if !queue.layer.is_plain() {
            let message = "the equations have no link that adds bytes to packets";
            return Err(Refusal::new(&["topology", &format!("{prefix}overhead")], message));
        }
        if queue.advice {
            return Err(Refusal::new(&["topology", &format!("{prefix}scone")], "the equations have no advice"));
        }
    }
    let mut classes = Vec::new();
    for (index, spec) in scenario.flows.iter().enumerate() {
        classes
            .extend(classes_of(scenario, link, index, spec)?.into_iter().map(|class| Class { group: index, ..class }));
    }
    let rate = rate.bytes_per_sec();
    let discipline = discipline(&link.queue.config)?;
    let model = Model { rate, room: 0.0, discipline, classes, losses: Losses::Rounds, seed: scenario.seed };
    let room = match limit {
        Limit::Packets(packets) => packets as f64 * model.mean_packet(),
        Limit::Bytes(bytes) => bytes.get() as f64,
    };
    Ok(Model { room, ..model })
}

fn refuse_parts(scenario: &Scenario) -> Told<()> {
    let parts = [
        ("changes", !scenario.changes.is_empty()),
        ("handovers", !scenario.handovers.is_empty()),
        ("cooperation", scenario.cooperation.is_some()),
        ("invariants", scenario.invariants != Invariants::default()),
    ];
    if let Some((part, _)) = parts.iter().find(|(_, there)| *there) {
        return Err(Refusal::new(&[part], format!("the equations have no [{part}]")));
    }
    match scenario.output.pcapng.is_empty() {
        true => Ok(()),
        false => Err(Refusal::new(&["output", "pcapng"], "the equations have no packets to write")),
    }
}

fn discipline(config: &AnyConfig) -> Told<Discipline> {
    Ok(match config {
        AnyConfig::DropTail(_) => Discipline::Tail,
        AnyConfig::Red(config) => Discipline::Red(config.clone()),
        AnyConfig::Ared(config) => Discipline::Ared(config.clone()),
        AnyConfig::Pi(config) => Discipline::Pi(config.clone()),
        AnyConfig::Pie(config) => Discipline::Pie(config.clone()),
        AnyConfig::Codel(config) => Discipline::Codel(config.clone()),
        AnyConfig::ModifiedCodel(config) => Discipline::ModifiedCodel(config.clone()),
        AnyConfig::Pink(config) => Discipline::Pink(config.clone()),
        _ => {
            let there = "droptail, red, ared, pi, pie, codel, modified-codel and pink";
            return Err(Refusal::new(&["aqm", "name"], format!("there are equations of {there}")));
        }
    })
}

/// Returns the classes of a group: one, or one for each flow if they start one after another.
fn classes_of(scenario: &Scenario, link: &LinkSpec, index: usize, spec: &FlowSpec) -> Told<Vec<Class>> {
    let place = index.to_string();
    let at = |key: &str| vec!["flows".to_owned(), place.clone(), key.to_owned()];
    if spec.from != link.a {
        return Err(Refusal { path: at("direction"), message: "the equations have flows in one direction".into() });
    }
    if spec.tcp.scone.is_some() {
        return Err(Refusal { path: at("kind"), message: "the equations have no advice (tcp.scone)".into() });
    }
    if !spec.tcp.cc.start().is_plain() {
        let message = "the equations have no SEARCH and no Careful Resume (search, resume_cwnd, resume_rtt)".into();
        return Err(Refusal { path: at("cc"), message });
    }
    let class = match &spec.traffic {
        Traffic::Bulk(_) => window(scenario, link, spec).ok_or_else(|| {
            let message = format!("there are equations of newreno and cubic, and not of {}", spec.tcp.cc.name());
            Refusal { path: at("cc"), message }
        })?,
        Traffic::Cbr(cbr) => {
            let payload = cbr.packet_size.iter().map(|size| size.get() as f64).sum::<f64>();
            let payload = payload / cbr.packet_size.len().max(1) as f64;
            let control = Control::Constant(cbr.rate.bytes_per_sec());
            class(scenario, link, spec, control, (payload, payload + IP_AND_UDP))
        }
        traffic => {
            let message = format!("the equations have flows of kind bulk and cbr, and not {}", traffic.name());
            return Err(Refusal { path: at("kind"), message });
        }
    };
    Ok(spread(spec, class))
}

/// Returns a class of flows that start together, or one for each flow: a random start is the middle of its span.
fn spread(spec: &FlowSpec, class: Class) -> Vec<Class> {
    let middle = spec.start_spread.as_secs_f64() / 2.0;
    if spec.start_step == Span::ZERO {
        let start = spec.start.as_secs_f64() + middle;
        return vec![Class { count: spec.count as f64, start, ..class }];
    }
    let start = |n: u64| spec.start.as_secs_f64() + n as f64 * spec.start_step.as_secs_f64() + middle;
    (0..spec.count).map(|n| Class { count: 1.0, start: start(n), ..class.clone() }).collect()
}

/// Returns the class of flows with a congestion control; `None` if there are no equations of the control.
fn window(scenario: &Scenario, link: &LinkSpec, spec: &FlowSpec) -> Option<Class> {
    let control = match &spec.tcp.cc {
        AnyControlConfig::NewReno(_) => Control::Reno,
        AnyControlConfig::Cubic(config) => Control::Cubic { c: config.c, beta: config.beta },
        _ => return None,
    };
    let payload = spec.tcp.mss.get() as f64;
    let options = if spec.tcp.timestamps { TIMESTAMPS } else { 0.0 };
    let mut class = class(scenario, link, spec, control, (payload, payload + IP_AND_TCP + options));
    class.threshold = spec.tcp.initial_ssthresh.map_or(f64::INFINITY, |bytes| bytes.get() as f64 / payload);
    class.ecn = spec.tcp.ecn && marks(&link.queue.config);
    Some(class)
}

/// True if the discipline marks what is ECN-capable.
fn marks(config: &AnyConfig) -> bool {
    match config {
        AnyConfig::Red(config) => config.ecn,
        AnyConfig::Ared(config) => config.ecn,
        AnyConfig::Pi(config) => config.ecn,
        AnyConfig::Pie(config) => config.ecn,
        AnyConfig::Codel(config) => config.ecn,
        AnyConfig::ModifiedCodel(config) => config.ecn,
        _ => false,
    }
}

fn class(
    scenario: &Scenario,
    link: &LinkSpec,
    spec: &FlowSpec,
    control: Control,
    (payload, packet): (f64, f64),
) -> Class {
    let access = spec.access_delay.unwrap_or(scenario.access.delay) + scenario.access.delay;
    let [there, back] = link.link.delays();
    let propagation = (there + back + access * 2).as_secs_f64();
    let transmission = packet / link.link.rate.bytes_per_sec() + 2.0 * packet / scenario.access.rate.bytes_per_sec();
    let most = spec.tcp.receive_buffer.get().min(spec.tcp.send_buffer.get()) as f64 / payload;
    Class {
        count: spec.count as f64,
        control,
        base_rtt: propagation + transmission,
        packet,
        payload,
        initial_window: f64::from(spec.tcp.initial_window),
        threshold: f64::INFINITY,
        most,
        slow_start: true,
        ecn: false,
        start: 0.0,
        stop: spec.stop.map_or(f64::INFINITY, Span::as_secs_f64),
        group: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three flows with packets of 1500 bytes and one with packets of 1000, with headers and timestamps: 1375 bytes on
    /// average, however the flows are written down.
    #[test]
    fn a_limit_in_packets_counts_the_packets_of_flows_and_not_of_groups() {
        let text = "duration = \"10s\"\n[topology]\nkind = \"dumbbell\"\nrate = \"10Mbit/s\"\ndelay = \"20ms\"\nlimit = \"400p\"\n\
                    [[flows]]\nkind = \"bulk\"\ncount = 3\ntcp = { cc = \"newreno\", mss = \"1448B\" }\n\
                    [[flows]]\nkind = \"bulk\"\ntcp = { cc = \"newreno\", mss = \"948B\" }\n";
        let read = read(text, "mixed.toml", None, &()).unwrap_or_else(|mistake| panic!("{mistake}"));
        assert_eq!(read.model.room, 400.0 * 1375.0);
    }

    /// The round trip is the delay of both directions and of four access links; a way back that ACKs could fill is
    /// refused.
    #[test]
    fn a_way_back_has_its_delay_and_is_never_the_slower() {
        let read = |keys: &str| {
            let text = format!(
                "duration = \"10s\"\n[topology]\nkind = \"dumbbell\"\nrate = \"12Mbit/s\"\ndelay = \"20ms\"\nlimit = \"400p\"\n\
                 access_delay = \"1ms\"\n{keys}\n[[flows]]\nkind = \"bulk\"\ntcp = {{ mss = \"1448B\" }}\n"
            );
            read(&text, "ways.toml", None, &())
        };
        let round_trip = |keys: &str| read(keys).map(|read| read.model.classes[0].base_rtt * 1e3);
        // 1500 bytes take 1 ms on the link and 12 us on each of two access links.
        for (keys, ms) in [("", 45.024), ("reverse_delay = \"5ms\"", 30.024), ("reverse_rate = \"100Mbit/s\"", 45.024)]
        {
            let found = round_trip(keys).unwrap_or_else(|mistake| panic!("{mistake}"));
            assert!((found - ms).abs() < 1e-9, "{keys}: {found}");
        }
        let Err(mistake) = read("reverse_rate = \"1Mbit/s\"") else { panic!("a slower way back is read") };
        assert!(mistake.to_string().contains(":8:") && mistake.to_string().contains("no queue of ACKs"), "{mistake}");
    }

    #[test]
    fn advice_is_refused_at_its_key() {
        for (link, tcp, place) in
            [("scone = true", "", ":7:"), ("reverse_scone = true", "", ":7:"), ("", "scone = \"20s\"", ":9:")]
        {
            let text = format!(
                "duration = \"10s\"\n[topology]\nkind = \"dumbbell\"\nrate = \"10Mbit/s\"\ndelay = \"20ms\"\nlimit = \"400p\"\n\
                 {link}\n[[flows]]\nkind = \"bulk\"\n[flows.tcp]\ncc = \"newreno\"\n{tcp}\n"
            );
            let Err(mistake) = read(&text, "advised.toml", None, &()) else { panic!("{text} is read") };
            let told = mistake.to_string();
            assert!(told.contains("no advice") && told.contains(place), "{told}");
        }
    }

    #[test]
    fn a_start_that_has_no_equations_is_refused_at_its_control() {
        for cc in [
            "{ name = \"cubic\", search = true }",
            "{ name = \"newreno\", resume_cwnd = \"1MB\", resume_rtt = \"1s\" }",
        ] {
            let text = format!(
                "duration = \"10s\"\n[topology]\nkind = \"dumbbell\"\nrate = \"10Mbit/s\"\ndelay = \"20ms\"\nlimit = \"400p\"\n\
                 [[flows]]\nkind = \"bulk\"\ncc = {cc}\n"
            );
            let Err(mistake) = read(&text, "started.toml", None, &()) else { panic!("{text} is read") };
            let told = mistake.to_string();
            assert!(told.contains("no SEARCH") && told.contains(":9:"), "{told}");
        }
    }

    #[test]
    fn links_that_police_aggregate_or_reorder_are_refused_at_their_key() {
        for (keys, place) in [
            ("police = { rate = \"1Mbit/s\", burst = \"9kB\" }", ":7:"),
            ("reverse_aggregate = { interval = \"5ms\" }", ":7:"),
        ] {
            let text = format!(
                "duration = \"10s\"\n[topology]\nkind = \"dumbbell\"\nrate = \"10Mbit/s\"\ndelay = \"20ms\"\nlimit = \"400p\"\n\
                 {keys}\n[[flows]]\nkind = \"bulk\"\n"
            );
            let Err(mistake) = read(&text, "impaired.toml", None, &()) else { panic!("{keys} is read") };
            let told = mistake.to_string();
            assert!(told.contains("does this to packets") && told.contains(place), "{told}");
        }
    }
}
