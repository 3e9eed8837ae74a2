//! Every algorithm by name. Command-line listings, scenario parsing, docs tables and bindings are read from here;
//! adding an algorithm is its file and one line in the `registry!` table below.

use crate::ack::AckPath;
use crate::aqm::foreign::{self, AnyForeignAqm};
use crate::aqm::{self, Aqm, Meta};
use crate::fq;
use crate::packet::{FlowId, NodeId, Packet, TcpView};
use crate::qdisc::{Backlog, Enqueued, Fates, Qdisc, Stats, Verdict};
use crate::queue::Fifo;
use crate::rng::Rng;
use crate::sched::classful::{self, ByName, Layers, Single};
use crate::sched::{drr, kps, lte_bearers, prio, qfq, qfq_plus, sfq, stfq, w2f2q, wf2q_plus};
use crate::units::{Instant, Limit, Rate, Span};
use serde::de::{DeserializeOwned, Deserializer};
use serde::{Deserialize, Serialize};

/// A parameter whose value cannot work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {message}")]
pub struct ConfigError {
    /// The parameter, as it is written in a scenario.
    pub key: &'static str,
    /// What is wrong and what is allowed.
    pub message: String,
}

impl ConfigError {
    /// `key` is wrong because of `message`.
    pub fn new(key: &'static str, message: impl Into<String>) -> Self {
        Self { key, message: message.into() }
    }
}

/// What a discipline is told of the link it feeds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkFacts {
    /// The rate of the link.
    pub rate: Rate,
    /// How much the queue may hold.
    pub limit: Limit,
}

/// The configuration of a discipline is its factory.
pub trait Discipline: Default + Clone + Serialize + DeserializeOwned + schemars::JsonSchema {
    /// What it builds.
    type Queue<P: Packet>: Qdisc<P> + AckPath;

    /// Refuses values that cannot work.
    ///
    /// # Errors
    /// The first parameter that is out of its range.
    fn validate(&self) -> Result<(), ConfigError>;

    /// Builds the discipline for a link. Call only after [`Discipline::validate`].
    fn build<P: Packet>(&self, link: &LinkFacts) -> Self::Queue<P>;
}

/// The configuration of an [`Aqm`] is its factory. Alone it is the discipline of one [`Fifo`].
pub trait AqmConfig: Default + Clone + Serialize + DeserializeOwned + schemars::JsonSchema {
    /// What it makes.
    type Aqm: Aqm + Clone;

    /// Refuses values that cannot work.
    ///
    /// # Errors
    /// The first parameter that is out of its range.
    fn validate(&self) -> Result<(), ConfigError>;

    /// Makes the algorithm for a queue before `link`. Call only after [`AqmConfig::validate`].
    fn aqm(&self, link: &LinkFacts) -> Self::Aqm;

    /// The defaults as the AQM of each flow queue, where the source has others than alone. May change those of the
    /// `queues` as well.
    fn per_flow(queues: &mut fq::Parameters) -> Self {
        let _ = queues;
        Self::default()
    }
}

impl<C: AqmConfig> Discipline for C {
    type Queue<P: Packet> = Fifo<P, C::Aqm>;

    fn validate(&self) -> Result<(), ConfigError> {
        AqmConfig::validate(self)
    }

    fn build<P: Packet>(&self, link: &LinkFacts) -> Self::Queue<P> {
        Fifo::new(link.limit, self.aqm(link))
    }
}

/// What a listing says of an algorithm.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    /// The name used everywhere.
    pub name: &'static str,
    /// `aqm`, `ack-path`, `flow-queueing`, `scheduler` or `cc`.
    pub kind: &'static str,
    /// One line.
    pub about: &'static str,
    /// Document and section, or RFC.
    pub source: &'static str,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
}

/// One parameter of an algorithm.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Parameter {
    /// Its key.
    pub name: String,
    /// Its default, as JSON; `null` means derived from the link.
    pub default: serde_json::Value,
    /// What it means.
    pub about: String,
}

/// The parameters of a configuration, from its doc comments and its defaults.
pub(crate) fn parameters<C: Default + Serialize + schemars::JsonSchema>() -> Vec<Parameter> {
    let schema = schemars::schema_for!(C);
    let defaults = serde_json::to_value(C::default()).unwrap_or_default();
    let Some(properties) = schema.get("properties").and_then(|p| p.as_object()) else { return Vec::new() };
    properties
        .iter()
        .map(|(name, property)| Parameter {
            name: name.clone(),
            default: defaults.get(name).cloned().unwrap_or_default(),
            about: property.get("description").and_then(|d| d.as_str()).unwrap_or_default().replace('\n', " "),
        })
        .collect()
}

/// First the AQMs, each of which is a discipline with one queue; after the arrow the disciplines of several queues.
macro_rules! registry {
    (
        $($aqm:ident $aqm_config:ty, $aqm_name:literal, $aqm_kind:literal, $aqm_about:literal, $aqm_source:literal;)*
        => $($more:tt)*
    ) => {
        aqms! { $($aqm $aqm_config, $aqm_name, $aqm_about;)* }
        disciplines! {
            $($aqm $aqm_config, $aqm_name, $aqm_kind, $aqm_about, $aqm_source;)*
            $($more)*
        }
    };
}

/// The algorithms that judge packets of any one queue.
macro_rules! aqms {
    ($($variant:ident $config:ty, $name:literal, $about:literal;)*) => {
        /// The configuration of any AQM of the registry.
        #[derive(Debug, Clone, PartialEq, Serialize)]
        #[serde(untagged)]
        pub enum AnyAqmConfig { $(#[doc = $about] $variant($config),)* }

        /// Any AQM of the registry, for queues whose AQM is chosen by name.
        #[derive(Debug, Clone)]
        pub enum AnyAqm { $(#[doc = $about] $variant(<$config as AqmConfig>::Aqm),)* }

        impl AnyAqmConfig {
            /// The names of all AQMs.
            pub const NAMES: &[&str] = &[$($name,)*];

            /// The defaults of `name` as the AQM of a flow queue.
            pub fn per_flow(name: &str) -> Option<Self> {
                let mut queues = fq::Parameters::default();
                match name {
                    $($name => Some(Self::$variant(<$config>::per_flow(&mut queues))),)*
                    _ => None,
                }
            }

            /// Reads other parameters of the same AQM.
            ///
            /// # Errors
            /// Those of the deserializer.
            pub fn read_as_this(&self, parameters: serde_json::Value) -> Result<Self, serde_json::Error> {
                match self { $(Self::$variant(_) => serde_json::from_value(parameters).map(Self::$variant),)* }
            }

            /// The name in the registry.
            pub fn name(&self) -> &'static str {
                match self { $(Self::$variant(_) => $name,)* }
            }

            /// True when it has to see the segments of both directions.
            pub fn is_ack_path(&self) -> bool {
                match self { $(Self::$variant(_) => <<$config as AqmConfig>::Aqm as AckPath>::ACTIVE,)* }
            }

            /// Refuses values that cannot work.
            ///
            /// # Errors
            /// The first parameter that is out of its range.
            pub fn validate(&self) -> Result<(), ConfigError> {
                match self { $(Self::$variant(config) => AqmConfig::validate(config),)* }
            }

            /// Makes the algorithm for a queue before `link`. Call only after [`AnyAqmConfig::validate`].
            pub fn aqm(&self, link: &LinkFacts) -> AnyAqm {
                match self { $(Self::$variant(config) => AnyAqm::$variant(config.aqm(link)),)* }
            }
        }

        impl Aqm for AnyAqm {
            const WAKES: bool = true;

            #[inline]
            fn on_arrival<P: Packet>(&mut self, packet: &P, backlog: Backlog, now: Instant, rng: &mut Rng) -> Verdict {
                match self { $(Self::$variant(aqm) => aqm.on_arrival(packet, backlog, now, rng),)* }
            }
            #[inline]
            fn on_enqueue(&mut self, packet: &Meta, backlog: Backlog, now: Instant, rng: &mut Rng) -> Verdict {
                match self { $(Self::$variant(aqm) => aqm.on_enqueue(packet, backlog, now, rng),)* }
            }
            #[inline]
            fn on_dequeue(
                &mut self, packet: &Meta, sojourn: Span, backlog: Backlog, now: Instant, rng: &mut Rng,
            ) -> Verdict {
                match self { $(Self::$variant(aqm) => aqm.on_dequeue(packet, sojourn, backlog, now, rng),)* }
            }
            fn on_overflow(&mut self, now: Instant) {
                match self { $(Self::$variant(aqm) => aqm.on_overflow(now),)* }
            }
            fn on_shed(&mut self, backlog: Backlog, now: Instant) {
                match self { $(Self::$variant(aqm) => aqm.on_shed(backlog, now),)* }
            }
            fn wants_whole_backlog(&self) -> bool {
                match self { $(Self::$variant(aqm) => aqm.wants_whole_backlog(),)* }
            }
            fn on_empty(&mut self, now: Instant) {
                match self { $(Self::$variant(aqm) => aqm.on_empty(now),)* }
            }
            fn next_wakeup(&self) -> Option<Instant> {
                match self { $(Self::$variant(aqm) => aqm.next_wakeup(),)* }
            }
            fn on_wakeup(&mut self, backlog: Backlog, now: Instant) {
                match self { $(Self::$variant(aqm) => aqm.on_wakeup(backlog, now),)* }
            }
            fn set_rate(&mut self, rate: Rate, now: Instant) {
                match self { $(Self::$variant(aqm) => aqm.set_rate(rate, now),)* }
            }
        }

        /// Those that edit segments are refused as the AQM of one flow, so none of these does.
        impl AckPath for AnyAqm {}
    };
}

/// The disciplines: each AQM in one queue, and those of several queues.
macro_rules! disciplines {
    ($($variant:ident $config:ty, $name:literal, $kind:literal, $about:literal, $source:literal;)*) => {
        /// The configuration of any discipline of the registry.
        #[derive(Debug, Clone, PartialEq, Serialize)]
        #[serde(untagged)]
        pub enum AnyConfig {
            $(#[doc = $about] $variant($config),)*
            /// One that is not in this crate.
            Foreign(foreign::Config),
        }

        /// Any discipline of the registry.
        #[derive(Debug, Clone)]
        pub enum AnyQdisc<P: Packet> {
            $(#[doc = $about] $variant(<$config as Discipline>::Queue<P>),)*
            /// One that is not in this crate.
            Foreign(Fifo<P, AnyForeignAqm>),
        }

        /// Everything there is, in the order of the docs.
        pub fn entries() -> Vec<Entry> {
            vec![$(Entry {
                name: $name, kind: $kind, about: $about, source: $source,
                parameters: parameters::<$config>(),
            },)*]
        }

        /// The names of all disciplines.
        pub const NAMES: &[&str] = &[$($name,)*];

        impl AnyConfig {
            /// The default configuration of `name`.
            pub fn default_of(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant(Default::default())),)*
                    _ => None,
                }
            }

            /// Reads the parameters of `name`; `None` if no such algorithm exists.
            ///
            /// # Errors
            /// Those of the deserializer, with its spans.
            pub fn deserialize<'de, D: Deserializer<'de>>(name: &str, parameters: D) -> Option<Result<Self, D::Error>> {
                match name {
                    $($name => Some(Deserialize::deserialize(parameters).map(Self::$variant)),)*
                    _ => None,
                }
            }

            /// The name in the registry, or that of a foreign one.
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$variant(_) => $name,)*
                    Self::Foreign(config) => config.name(),
                }
            }

            /// Refuses values that cannot work.
            ///
            /// # Errors
            /// The first parameter that is out of its range.
            pub fn validate(&self) -> Result<(), ConfigError> {
                match self {
                    $(Self::$variant(config) => Discipline::validate(config),)*
                    Self::Foreign(_) => Ok(()),
                }
            }

            /// Builds the discipline for a link. Call only after [`AnyConfig::validate`].
            pub fn build<P: Packet>(&self, link: &LinkFacts) -> AnyQdisc<P> {
                match self {
                    $(Self::$variant(config) => AnyQdisc::$variant(config.build(link)),)*
                    Self::Foreign(config) => AnyQdisc::Foreign(Fifo::new(link.limit, config.aqm(link))),
                }
            }
        }

        macro_rules! each {
            ($self:ident, $q:ident => $call:expr) => {
                match $self {
                    $(Self::$variant($q) => $call,)*
                    Self::Foreign($q) => $call,
                }
            };
        }

        impl<P: Packet> Qdisc<P> for AnyQdisc<P> {
            #[inline]
            fn enqueue<F: Fates<P>>(&mut self, packet: P, now: Instant, rng: &mut Rng, fates: &mut F) -> Enqueued {
                if let Self::DropTail(q) = self {
                    return q.enqueue(packet, now, rng, fates);
                }
                self.enqueue_managed(packet, now, rng, fates)
            }
            #[inline]
            fn dequeue<F: Fates<P>>(&mut self, now: Instant, rng: &mut Rng, fates: &mut F) -> Option<P> {
                if let Self::DropTail(q) = self {
                    return q.dequeue(now, rng, fates);
                }
                self.dequeue_managed(now, rng, fates)
            }
            fn next_wakeup(&self) -> Option<Instant> {
                each!(self, q => q.next_wakeup())
            }
            fn on_wakeup(&mut self, now: Instant) {
                each!(self, q => q.on_wakeup(now))
            }
            fn set_rate(&mut self, rate: Rate, now: Instant) {
                each!(self, q => q.set_rate(rate, now))
            }
            fn set_channel(&mut self, station: u32, loss: f64, now: Instant) {
                each!(self, q => q.set_channel(station, loss, now))
            }
            fn set_node(&mut self, flow: FlowId, node: NodeId) {
                each!(self, q => q.set_node(flow, node))
            }
            fn forget_node(&mut self, node: NodeId) {
                each!(self, q => q.forget_node(node))
            }
            fn set_class(&mut self, flow: FlowId, class: u32) {
                each!(self, q => q.set_class(flow, class))
            }
            fn set_budget(&mut self, node: NodeId, budget: Option<Rate>, now: Instant) {
                each!(self, q => q.set_budget(node, budget, now))
            }
            fn take_out(&mut self, flow: FlowId, taken: &mut Vec<P>) {
                each!(self, q => q.take_out(flow, taken))
            }
            #[inline]
            fn backlog(&self) -> Backlog {
                if let Self::DropTail(q) = self {
                    return q.backlog();
                }
                self.backlog_managed()
            }
            fn stats(&self) -> &Stats {
                each!(self, q => q.stats())
            }
            fn report(&self) -> Option<serde_json::Value> {
                each!(self, q => q.report())
            }
        }

        // The simplest discipline stands before most links: it is told apart first and inlined where it is used. What
        // the others have to do is worth a call and a jump.
        impl<P: Packet> AnyQdisc<P> {
            #[inline(never)]
            fn enqueue_managed<F: Fates<P>>(
                &mut self, packet: P, now: Instant, rng: &mut Rng, fates: &mut F,
            ) -> Enqueued {
                each!(self, q => q.enqueue(packet, now, rng, fates))
            }
            #[inline(never)]
            fn dequeue_managed<F: Fates<P>>(&mut self, now: Instant, rng: &mut Rng, fates: &mut F) -> Option<P> {
                each!(self, q => q.dequeue(now, rng, fates))
            }
            #[inline(never)]
            fn backlog_managed(&self) -> Backlog {
                each!(self, q => q.backlog())
            }

            /// True when this discipline ever asks to be woken.
            pub fn wakes(&self) -> bool {
                match self {
                    $(Self::$variant(_) => <<$config as Discipline>::Queue<P> as Qdisc<P>>::WAKES,)*
                    Self::Foreign(_) => <Fifo<P, AnyForeignAqm> as Qdisc<P>>::WAKES,
                }
            }

            /// True when this discipline can give up a flow.
            pub fn gives_up(&self) -> bool {
                match self {
                    $(Self::$variant(_) => <<$config as Discipline>::Queue<P> as Qdisc<P>>::GIVES_UP,)*
                    Self::Foreign(_) => <Fifo<P, AnyForeignAqm> as Qdisc<P>>::GIVES_UP,
                }
            }

            /// True when this discipline wants to see the segments of both directions.
            pub fn sees_segments(&self) -> bool {
                match self {
                    $(Self::$variant(_) => <<$config as Discipline>::Queue<P> as AckPath>::ACTIVE,)*
                    Self::Foreign(_) => <Fifo<P, AnyForeignAqm> as AckPath>::ACTIVE,
                }
            }
        }

        impl<P: Packet> AckPath for AnyQdisc<P> {
            fn outbound<S: TcpView>(&mut self, segment: &mut S, now: Instant) {
                each!(self, q => q.outbound(segment, now))
            }
            fn inbound<S: TcpView>(&mut self, segment: &mut S, now: Instant) {
                each!(self, q => q.inbound(segment, now))
            }
        }
    };
}

registry! {
    DropTail aqm::droptail::Config, "droptail", "aqm", "no management: packets die only for want of room", "000 §5; Linux pfifo, bfifo";
    Red aqm::red::Config, "red", "aqm", "drops arrivals with a probability that grows with the average queue", "Floyd and Jacobson 1993";
    Ared aqm::ared::Config, "ared", "aqm", "RED that adapts max_p to hold the average between its thresholds", "Floyd, Gummadi, Shenker 2001";
    RedErn aqm::red_ern::Config, "red-ern", "aqm", "RED that marks flows by the rates which their senders tell", "003 §III, §V";
    FengRed aqm::feng_red::Config, "feng-red", "aqm", "RED that scales max_p each time the average crosses a threshold", "Feng, Kandlur, Saha, Shin 1999";
    NonlinearRed aqm::nonlinear_red::Config, "nonlinear-red", "aqm", "RED whose probability rises with the square of the average", "Zhou, Yeung, Li 2006";
    AnAqm aqm::an_aqm::Config, "an-aqm", "aqm", "a neuron learns how errors of queue and rate move the drop probability", "Sun and Zukerman 2007; 001 §2";
    Lindrop aqm::lindrop::Config, "lindrop", "aqm", "drops one packet in so many, ever more often while the average queue grows; no random numbers", "001 §3, Algorithm 1";
    Codel aqm::codel::Config, "codel", "aqm", "drops from the head while the delay stays above a target for an interval", "RFC 8289";
    ModifiedCodel aqm::modified_codel::Config, "modified-codel", "aqm", "CoDel whose drops come at interval / count, with an interval of 30 ms", "Patil 2020 §3.2.2";
    Cobalt aqm::cobalt::Config, "cobalt", "aqm", "CoDel that forgets slowly, and BLUE against flows that do not listen", "Morton 2016; cake (Linux); Patil 2020 §2.3.2";
    Pie aqm::pie::Config, "pie", "aqm", "drops arrivals with a probability that a PI controller sets to hold the delay at a target", "RFC 8033";
    MinstrelPie aqm::minstrel_pie::Config, "minstrel-pie", "aqm", "PIE whose target falls while the link is busy, against unresponsive flows", "004 §4.2";
    Pi2 aqm::pi2::Config, "pi2", "aqm", "a PI controller whose output is squared for classic traffic and doubled for scalable", "De Schepper et al. 2016";
    Green aqm::green::Config, "green", "aqm", "drops each flow at the rate at which TCP's law gives it the fair share", "Feng, Kapadia, Thulasidasan 2002";
    Pi aqm::pi::Config, "pi", "aqm", "steers the drop probability so that the queue settles at a reference length", "Hollot, Misra, Towsley, Gong 2001";
    Rem aqm::rem::Config, "rem", "aqm", "drops by a price that grows with excess input and excess queue", "Athuraliya, Low, Li, Yin 2001";
    Avq aqm::avq::Config, "avq", "aqm", "signals when a virtual queue with less capacity overflows", "Kunniyur and Srikant 2001";
    Blue aqm::blue::Config, "blue", "aqm", "drops with a probability that losses raise and an idle link lowers", "Feng, Shin, Kandlur, Saha 2002";
    Sfb aqm::sfb::Config, "sfb", "aqm", "BLUE for each flow in a few shared bins, with a penalty box for flows that do not react", "Feng, Kandlur, Saha, Shin 2001";
    Qrm crate::ack::qrm::Config, "qrm", "ack-path", "refuses what a node sends beyond its budget; the queue stays below the bandwidth-delay product", "002 §3.1";
    =>
    Pink crate::ack::pink::Config, "pink", "ack-path", "writes each flow's share of the link into the windows of passing ACKs; drops nothing", "000 §3, §4";
    Choke aqm::choke::Config, "choke", "aqm", "compares an arrival with a packet drawn from the queue and drops both if of one flow", "Pan, Prabhakar, Psounis 2000";
    DualPi2 aqm::dualpi2::Config, "dualpi2", "aqm", "PI2 with a queue of its own for L4S traffic, coupled to the classic one", "RFC 9332";
    FqCodel fq::Config<aqm::codel::Config>, "fq-codel", "flow-queueing", "a queue with CoDel for each flow; flows take turns, new ones first", "RFC 8290";
    FqCobalt fq::Config<aqm::cobalt::Config>, "fq-cobalt", "flow-queueing", "a queue with COBALT for each flow; flows take turns, new ones first", "cake (Linux); RFC 8290";
    FqPie fq::Config<aqm::pie::Config>, "fq-pie", "flow-queueing", "a queue with PIE for each flow; flows take turns, new ones first", "Patil 2020 §5.2; Al-Saadi and Armitage 2016";
    FqMinstrelPie fq::Config<aqm::minstrel_pie::Config>, "fq-minstrel-pie", "flow-queueing", "a queue with Minstrel PIE for each flow; flows take turns, new ones first", "Patil 2020 §5.3";
    Fq fq::Config<fq::PerFlow>, "fq", "flow-queueing", "a queue for each flow, with any AQM by name; flows take turns, new ones first", "RFC 8290 §3; Patil 2020 §5.1";
    Drr classful::Config<Single<drr::Config>>, "drr", "scheduler", "classes take turns of as many bytes as their weight", "Shreedhar and Varghese 1996";
    Prio classful::Config<Single<prio::Config>>, "prio", "scheduler", "strict priority: the largest weight first", "Linux sch_prio";
    Sfq classful::Config<Single<sfq::Config>>, "sfq", "scheduler", "classes are hashed to buckets, buckets take turns", "McKenney 1990";
    Stfq classful::Config<Single<stfq::Config>>, "stfq", "scheduler", "the least virtual start first", "Goyal, Vin, Cheng 1996";
    Wf2qPlus classful::Config<Single<wf2q_plus::Config>>, "wf2q-plus", "scheduler", "of what a fluid system would have begun, what it would finish first", "Bennett and Zhang 1997";
    Kps classful::Config<Single<kps::Config>>, "kps", "scheduler", "WF2Q+ with timer wheels for strata of weights", "after Karsten 2006, 2010";
    Qfq classful::Config<Single<qfq::Config>>, "qfq", "scheduler", "WF2Q+ with rounded timestamps, in a fixed number of steps", "Checconi, Rizzo, Valente 2013";
    QfqPlus classful::Config<Single<qfq_plus::Config>>, "qfq-plus", "scheduler", "QFQ over groups of classes with DRR inside", "Valente 2013";
    W2f2q classful::Config<Single<w2f2q::Config>>, "w2f2q", "scheduler", "WF2Q+ that skips stations with a bad channel and makes up for it later", "after Yi and others 2000";
    LteBearers lte_bearers::Config, "lte-bearers", "scheduler", "guaranteed bit rates first, then bearers by priority, then the excess of guarantees", "002 §2.1.2.2; 3GPP TS 36.321 §5.4.3.1";
    Hfs classful::Config<Layers<qfq_plus::Config, qfq_plus::Config>>, "hfs", "scheduler", "two QFQ+ with a buffer between them: guarantees first, then the channel", "002 §4.2.4.3";
    HfsDrr classful::Config<Layers<qfq_plus::Config, drr::Config>>, "hfs-drr", "scheduler", "HFS with DRR beside the channel", "002 §4.3.3.3";
    DoubleDrr classful::Config<Layers<drr::Config, drr::Config>>, "double-drr", "scheduler", "the modular wireless architecture with DRR in both layers", "002 §4.2.5";
    DoubleWf2qPlus classful::Config<Layers<wf2q_plus::Config, wf2q_plus::Config>>, "double-wf2q-plus", "scheduler", "the modular wireless architecture with WF2Q+ in both layers", "002 §4.2.5";
    Modular classful::Config<ByName>, "modular", "scheduler", "the modular wireless architecture with any two schedulers by name", "002 §4.1.2";
}

/// All disciplines, the packet schedulers that are not among them, and all congestion controls.
pub fn all_entries() -> Vec<Entry> {
    let mut all = entries();
    all.extend(crate::sched::table::entries().into_iter().filter(|entry| !NAMES.contains(&entry.name)));
    all.extend(crate::cc::ABOUT.iter().map(|(name, about, source)| Entry {
        name,
        kind: "cc",
        about,
        source,
        parameters: Vec::new(),
    }));
    all
}

/// The names closest to `name`, best first, for "did you mean".
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> Vec<&'a str> {
    let most = (name.chars().count() / 2).clamp(1, 3);
    let mut scored: Vec<_> =
        known.iter().map(|k| (strsim::osa_distance(name, k), *k)).filter(|(d, _)| *d <= most).collect();
    scored.sort_unstable();
    scored.into_iter().map(|(_, k)| k).take(3).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_finds_its_neighbour() {
        assert_eq!(nearest("droptial", NAMES), ["droptail"]);
        assert_eq!(nearest("codle", NAMES), ["codel"]);
        assert!(nearest("zzzzzzzzzz", NAMES).is_empty());
        assert_eq!(nearest("rde", &["pie", "red"]), ["red"]);
    }

    #[test]
    fn every_default_is_valid_and_documented() {
        for entry in entries() {
            AnyConfig::default_of(entry.name).unwrap().validate().unwrap();
            for parameter in entry.parameters {
                assert!(!parameter.about.is_empty(), "{}.{} has no description", entry.name, parameter.name);
            }
        }
    }
}
