//! All congestion controls by name. A new control needs its file and one line in the table below.

use super::c2ml::{self, C2ml};
use super::foreign::{self, Running};
use super::start::{Start, Started};
use super::{Ack, Advice, CongestionControl, ControlConfig, Loss, Notice, Requirements, Setup};
use crate::config::ConfigError;
use crate::listing::{Entry, choice, parameters};
use crate::suggest::nearest;
use crate::units::{Bytes, Instant, Rate};
use serde::de::{Deserializer, Error as _};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

type Of<C> = <C as ControlConfig>::Control;

/// A test which runs with each control in its own type.
#[cfg(test)]
trait ForEachControl {
    /// Tests one control; `wrap` converts it to an [`AnyCc`].
    fn one<C: CongestionControl + Clone>(&mut self, control: C, wrap: fn(C) -> AnyCc);
}

/// How [`AnyCc`] keeps a control: in a box, or inside the enum if the line of the control in the table says `(inline)`.
macro_rules! kept {
    (inline type $control:ty) => { $control };
    (inline new $control:expr) => { $control };
    (inline heap $control:ty) => { 0 };
    (type $control:ty) => { Box<$control> };
    (new $control:expr) => { Box::new($control) };
    (heap $control:ty) => { size_of::<$control>() };
}

/// Writes what exists once per control: the variants of both enums and the functions that look at each of them.
macro_rules! controls {
    ($($variant:ident $(($inline:ident))? $module:ident, $name:literal, $about:literal, $source:literal;)*) => {
        /// The configuration of any control: its name and its parameters.
        ///
        /// Files have it as a name, or as a table of the name and of those parameters that are not the defaults.
        #[derive(Debug, Clone, PartialEq)]
        pub enum AnyControlConfig {
            $(#[doc = $about] $variant(super::$module::Config),)*
            /// A control from outside this crate.
            Foreign(foreign::Control),
        }

        /// Any control. Calls are dispatched by `match` and not by a table of functions, since the sender calls its
        /// control several times per segment. All controls but the smallest are boxed, so that every flow is small.
        #[derive(Debug, Clone, PartialEq)]
        pub enum AnyCc {
            $(#[doc = $about] $variant(kept!($($inline)? type Of<super::$module::Config>)),)*
            /// A control from outside this crate.
            Foreign(Box<Running>),
            /// Any control with a budget.
            C2ml(Box<C2ml<AnyCc>>),
            /// Any control with a start of its own.
            Started(Box<Started<AnyCc>>),
        }

        /// The names of all controls.
        pub const NAMES: &[&str] = &[$($name,)*];

        /// Name, summary, source and parameters of each control, for listings.
        pub fn entries() -> Vec<Entry> {
            vec![$(Entry {
                name: $name, kind: "cc", about: $about, source: $source,
                parameters: parameters::<super::$module::Config>(),
            },)*]
        }

        impl schemars::JsonSchema for AnyControlConfig {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                "Control".into()
            }
            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                choice(vec![$(($name, <super::$module::Config as schemars::JsonSchema>::json_schema(generator)),)*])
            }
        }

        impl AnyControlConfig {
            /// The default configuration of `name`.
            pub fn default_of(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant(Default::default())),)*
                    _ => None,
                }
            }

            /// Reads the parameters of the control `name`; `None` if no such control exists.
            ///
            /// # Errors
            /// The errors of the deserializer, with their positions.
            pub fn deserialize<'de, D: Deserializer<'de>>(name: &str, parameters: D) -> Option<Result<Self, D::Error>> {
                match name {
                    $($name => Some(Deserialize::deserialize(parameters).map(Self::$variant)),)*
                    _ => None,
                }
            }

            /// The name in the table, or the name of the foreign control.
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$variant(_) => $name,)*
                    Self::Foreign(config) => config.name(),
                }
            }

            /// All parameters with their values.
            pub fn parameters(&self) -> Map<String, Value> {
                let value = match self {
                    $(Self::$variant(config) => serde_json::to_value(config),)*
                    Self::Foreign(config) => return config.parameters().clone(),
                };
                match value {
                    Ok(Value::Object(parameters)) => parameters,
                    _ => Map::new(),
                }
            }

            /// Checks that every parameter is in its range.
            ///
            /// # Errors
            /// The first parameter that is out of its range.
            pub fn validate(&self) -> Result<(), ConfigError> {
                match self {
                    $(Self::$variant(config) => config.validate(),)*
                    Self::Foreign(_) => Ok(()),
                }
            }

            /// Creates the control of a new connection. Call it only after [`AnyControlConfig::validate`].
            pub fn build(&self, setup: &Setup) -> AnyCc {
                let control = match self {
                    $(Self::$variant(config) => AnyCc::$variant(kept!($($inline)? new config.control(setup))),)*
                    Self::Foreign(config) => AnyCc::Foreign(Box::new(config.make(setup, setup.seed))),
                };
                match self.start() {
                    start if start.is_plain() => control,
                    start => AnyCc::Started(Box::new(Started::new(control, start, setup))),
                }
            }

            /// How its connections start, beside what the control does.
            pub fn start(&self) -> Start {
                match self {
                    $(Self::$variant(config) => config.start(),)*
                    Self::Foreign(_) => Start::default(),
                }
            }
        }

        impl AnyCc {
            /// Bytes that the control takes on the heap.
            pub fn heap_bytes(&self) -> usize {
                match self {
                    $(Self::$variant(_) => kept!($($inline)? heap Of<super::$module::Config>),)*
                    Self::Foreign(_) => size_of::<Running>(),
                    Self::C2ml(cc) => size_of::<C2ml<AnyCc>>() + cc.control().heap_bytes(),
                    Self::Started(cc) => size_of::<Started<AnyCc>>() + cc.heap_bytes() + cc.control().heap_bytes(),
                }
            }

            /// The control's own state, field by field, for people to read. Its form is not promised.
            pub fn state(&self) -> String {
                match self {
                    $(Self::$variant(cc) => format!("{cc:?}"),)*
                    Self::Foreign(cc) => cc.state(),
                    Self::C2ml(cc) => format!("{cc:?}"),
                    Self::Started(cc) => format!("{cc:?}"),
                }
            }

            /// The name in the table, or the name of the foreign control.
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$variant(_) => $name,)*
                    Self::Foreign(cc) => cc.name(),
                    Self::C2ml(cc) => cc.control().name(),
                    Self::Started(cc) => cc.control().name(),
                }
            }
        }

        /// Runs `test` with every control, created with its default parameters.
        #[cfg(test)]
        fn for_each_control(setup: &Setup, test: &mut impl ForEachControl) {
            $(
                let wrap = |cc| AnyCc::$variant(kept!($($inline)? new cc));
                test.one(super::$module::Config::default().control(setup), wrap);
            )*
        }

        macro_rules! each {
            ($self:ident, $cc:ident => $call:expr) => {
                match $self {
                    $(Self::$variant($cc) => $call,)*
                    Self::Foreign($cc) => $call,
                    Self::C2ml($cc) => $call,
                    Self::Started($cc) => $call,
                }
            };
        }
    };
}

/// Dispatches calls that occur with every packet: a branch for each of the two most frequent controls, which can be
/// inlined, and `others` for the rest, a function call with a jump table.
macro_rules! most {
    ($self:ident, $cc:ident => $call:expr, $others:expr) => {
        if let Self::NewReno($cc) = $self {
            $call
        } else if let Self::Cubic($cc) = $self {
            $call
        } else {
            $others
        }
    };
}

controls! {
    NewReno(inline) newreno, "newreno", "slow start, one segment more each round trip, half the window on loss", "RFC 5681, 6582, 3465";
    Cubic cubic, "cubic", "the window is a cubic function of the time since the last loss", "RFC 9438, RFC 9406";
    CubicLinux cubic_linux, "cubic-linux", "CUBIC in whole segments, as Linux computes it", "Linux tcp_cubic.c";
    Bic bic, "bic", "a binary search for the window of the last loss", "Xu, Harfoush, Rhee, INFOCOM 2004";
    HighSpeed highspeed, "highspeed", "growth and reduction that depend on the window", "RFC 3649";
    Hybla hybla, "hybla", "a long path grows as fast as a short one", "Caini, Firrincieli, IJSCN 22, 2004";
    Westwood westwood, "westwood", "a loss leaves what the path carries, by an estimate of the bandwidth (Westwood+)", "Grieco, Mascolo, CCR 34(2), 2004";
    Scalable scalable, "scalable", "growth and reduction in proportion to the window", "Kelly, CCR 33(2), 2003";
    Vegas vegas, "vegas", "two to four segments in the queue, by round trip times", "Brakmo, Peterson, JSAC 13(8), 1995";
    LedbatPp ledbat_pp, "ledbat-pp", "gives way to everybody else (LEDBAT++)", "draft-irtf-iccrg-ledbat-plus-plus-02";
    Compound compound, "compound", "Reno's window, and beside it one that delay controls", "Tan, Song, Zhang, Sridharan, INFOCOM 2006";
    Noordwijk noordwijk, "noordwijk", "bursts by a timer, for satellite links with bandwidth on demand", "Roseti, Kristiansen, 2008; the Modena dissertation 2.2";
    Bbr bbr, "bbr", "the window and the pace are made of a model of the path (version 1)", "Cardwell et al., ACM Queue 14(5), 2016";
    Bbr3 bbr3, "bbr3", "the model of the path is bounded by losses (version 3)", "draft-ietf-ccwg-bbr-06";
    Dctcp dctcp, "dctcp", "the window falls with the part of the packets that were marked", "RFC 8257";
    Prague prague, "prague", "a scalable control for L4S queues", "draft-briscoe-iccrg-prague-congestion-control";
}

impl AnyControlConfig {
    /// What the control requires of its endpoint.
    pub fn requirements(&self) -> Requirements {
        match self {
            Self::Foreign(config) => config.requirements(),
            config => config.build(&Setup::ANY).requirements(),
        }
    }
}

/// Writes the name alone if all parameters are the defaults, else a table with `name` and all parameters that have a value.
impl Serialize for AnyControlConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let plain = match self {
            Self::Foreign(config) => config.parameters().is_empty(),
            config => Self::default_of(config.name()).as_ref() == Some(config),
        };
        if plain {
            return serializer.serialize_str(self.name());
        }
        let name = ("name".to_owned(), Value::from(self.name()));
        let set = self.parameters().into_iter().filter(|(_, value)| !value.is_null());
        serializer.collect_map(std::iter::once(name).chain(set))
    }
}

/// Reads the form that [`Serialize`] writes; missing parameters are the defaults. Foreign controls cannot be read.
impl<'de> Deserialize<'de> for AnyControlConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (name, parameters) = match Value::deserialize(deserializer)? {
            Value::String(name) => (name, Map::new()),
            Value::Object(mut table) => match table.remove("name") {
                Some(Value::String(name)) => (name, table),
                _ => return Err(D::Error::missing_field("name")),
            },
            _ => return Err(D::Error::custom("write the name of a control, or a table with `name` and parameters")),
        };
        match Self::deserialize(&name, Value::Object(parameters)) {
            Some(config) => config.map_err(|error| D::Error::custom(format!("{name}: {error}"))),
            None => Err(D::Error::custom(unknown(&name))),
        }
    }
}

/// Error message for a name that no control has, with the nearest name.
pub fn unknown(name: &str) -> String {
    let near = nearest(name, NAMES).first().map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
    format!("{name:?} is not one of {}{near}", NAMES.join(", "))
}

/// True for a control which counts marks and therefore works only with ECN.
pub fn needs_ecn(name: &str) -> bool {
    AnyControlConfig::default_of(name).is_some_and(|config| config.requirements().accurate_ecn)
}

impl AnyCc {
    /// Creates the control `name` with default parameters; `None` if no such control exists.
    pub fn new(name: &str, setup: &Setup) -> Option<Self> {
        Some(AnyControlConfig::default_of(name)?.build(setup))
    }

    /// Adds C²ML in this `form` around the control; segments have `headers` besides their payload.
    #[must_use]
    pub fn with_budget(self, setup: &Setup, form: c2ml::Form, headers: Bytes) -> Self {
        match form {
            c2ml::Form::Off => self,
            _ => Self::C2ml(Box::new(C2ml::new(self, setup, form, headers))),
        }
    }

    /// The C²ML around this control, if there is one.
    pub fn cooperation(&mut self) -> Option<&mut C2ml<AnyCc>> {
        match self {
            Self::C2ml(cc) => Some(cc),
            _ => None,
        }
    }

    #[inline(never)]
    fn cwnd_of_others(&self) -> Bytes {
        each!(self, cc => cc.cwnd())
    }
    #[inline(never)]
    fn ssthresh_of_others(&self) -> Bytes {
        each!(self, cc => cc.ssthresh())
    }
    #[inline(never)]
    fn on_ack_of_others(&mut self, ack: &Ack) {
        each!(self, cc => cc.on_ack(ack));
    }
}

impl CongestionControl for AnyCc {
    #[inline]
    fn cwnd(&self) -> Bytes {
        most!(self, cc => cc.cwnd(), self.cwnd_of_others())
    }
    #[inline]
    fn ssthresh(&self) -> Bytes {
        most!(self, cc => cc.ssthresh(), self.ssthresh_of_others())
    }
    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        most!(self, cc => cc.on_ack(ack), self.on_ack_of_others(ack));
    }
    fn on_loss(&mut self, loss: &Loss) {
        each!(self, cc => cc.on_loss(loss));
    }
    fn on_recovered(&mut self, now: Instant) {
        each!(self, cc => cc.on_recovered(now));
    }
    fn on_rto(&mut self, loss: &Loss) {
        each!(self, cc => cc.on_rto(loss));
    }
    fn on_idle(&mut self, now: Instant, initial_window: Bytes) {
        each!(self, cc => cc.on_idle(now, initial_window));
    }
    #[inline]
    fn pacing_rate(&self) -> Option<Rate> {
        each!(self, cc => cc.pacing_rate())
    }
    fn requirements(&self) -> Requirements {
        each!(self, cc => cc.requirements())
    }
    fn on_recovery_ack(&mut self, ack: &Ack) {
        each!(self, cc => cc.on_recovery_ack(ack));
    }
    fn on_notice(&mut self, notice: &Notice) {
        each!(self, cc => cc.on_notice(notice));
    }
    #[inline]
    fn next_burst(&self) -> Instant {
        each!(self, cc => cc.next_burst())
    }
    fn on_burst(&mut self, now: Instant, in_flight: Bytes) {
        each!(self, cc => cc.on_burst(now, in_flight));
    }
    fn advise(&mut self, advice: Advice) {
        each!(self, cc => cc.advise(advice));
    }
}

#[cfg(test)]
mod tests;
