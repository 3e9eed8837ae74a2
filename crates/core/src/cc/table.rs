//! Every congestion control by name: adding one is its file and one line in the table below.

use super::c2ml::{self, C2ml};
use super::foreign::{self, Running};
use super::{Ack, Advice, CongestionControl, ControlConfig, Loss, Requirements, Setup};
use crate::config::ConfigError;
use crate::listing::{Entry, parameters};
use crate::suggest::nearest;
use crate::units::{Bytes, Instant, Rate};
use serde::de::{Deserializer, Error as _};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

type Of<C> = <C as ControlConfig>::Control;

/// A test of controls whose types are known.
#[cfg(test)]
trait ForEachControl {
    /// One of them, and what makes an [`AnyCc`] of it.
    fn one<C: CongestionControl + Clone>(&mut self, control: C, wrap: fn(Box<C>) -> AnyCc);
}

/// Makes all that there is once per control of its lines.
macro_rules! controls {
    ($($variant:ident $module:ident, $name:literal, $about:literal, $source:literal;)*) => {
        /// The configuration of any control: what it is called, and its parameters.
        ///
        /// In files it is written as its name, or as a table of its name and those parameters that are not the defaults.
        #[derive(Debug, Clone, PartialEq)]
        pub enum AnyControlConfig {
            $(#[doc = $about] $variant(super::$module::Config),)*
            /// One that is not in this crate.
            Foreign(foreign::Control),
        }

        /// Any control, by match and not by a table of functions: a control is asked several times per segment. All are
        /// boxed, so that a flow that does without is small.
        #[derive(Debug, Clone, PartialEq)]
        pub enum AnyCc {
            $(#[doc = $about] $variant(Box<Of<super::$module::Config>>),)*
            /// One that is not in this crate.
            Foreign(Box<Running>),
            /// Any of them with a budget.
            C2ml(Box<C2ml<AnyCc>>),
        }

        /// The names of all controls.
        pub const NAMES: &[&str] = &[$($name,)*];

        /// What a listing says of each.
        pub fn entries() -> Vec<Entry> {
            vec![$(Entry {
                name: $name, kind: "cc", about: $about, source: $source,
                parameters: parameters::<super::$module::Config>(),
            },)*]
        }

        impl AnyControlConfig {
            /// The default configuration of `name`.
            pub fn default_of(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant(Default::default())),)*
                    _ => None,
                }
            }

            /// Reads the parameters of `name`; `None` if no such control exists.
            ///
            /// # Errors
            /// Those of the deserializer, with its spans.
            pub fn deserialize<'de, D: Deserializer<'de>>(name: &str, parameters: D) -> Option<Result<Self, D::Error>> {
                match name {
                    $($name => Some(Deserialize::deserialize(parameters).map(Self::$variant)),)*
                    _ => None,
                }
            }

            /// The name in the table, or that of a foreign one.
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$variant(_) => $name,)*
                    Self::Foreign(config) => config.name(),
                }
            }

            /// Its parameters and their values.
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

            /// Refuses values that cannot work.
            ///
            /// # Errors
            /// The first parameter that is out of its range.
            pub fn validate(&self) -> Result<(), ConfigError> {
                match self {
                    $(Self::$variant(config) => config.validate(),)*
                    Self::Foreign(_) => Ok(()),
                }
            }

            /// Builds the control of a new connection. Call only after [`AnyControlConfig::validate`]. `seed` differs from
            /// connection to connection and is the same in every run with the same scenario and seed.
            pub fn build(&self, setup: &Setup, seed: u64) -> AnyCc {
                match self {
                    $(Self::$variant(config) => AnyCc::$variant(Box::new(config.control(setup))),)*
                    Self::Foreign(config) => AnyCc::Foreign(Box::new(config.make(setup, seed))),
                }
            }
        }

        impl AnyCc {
            /// Bytes on the heap.
            pub fn heap_bytes(&self) -> usize {
                match self {
                    $(Self::$variant(_) => size_of::<Of<super::$module::Config>>(),)*
                    Self::Foreign(_) => size_of::<Running>(),
                    Self::C2ml(cc) => size_of::<C2ml<AnyCc>>() + cc.control().heap_bytes(),
                }
            }

            /// The name of its configuration.
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$variant(_) => $name,)*
                    Self::Foreign(cc) => cc.name(),
                    Self::C2ml(cc) => cc.control().name(),
                }
            }
        }

        /// Shows every control, made with its defaults, by itself.
        #[cfg(test)]
        fn for_each_control(setup: &Setup, test: &mut impl ForEachControl) {
            $(test.one(super::$module::Config::default().control(setup), AnyCc::$variant);)*
        }

        macro_rules! each {
            ($self:ident, $cc:ident => $call:expr) => {
                match $self {
                    $(Self::$variant($cc) => $call,)*
                    Self::Foreign($cc) => $call,
                    Self::C2ml($cc) => $call,
                }
            };
        }
    };
}

/// For what is asked with every packet: the two controls that are used most by a branch each, to be inlined; the others
/// by a call and a jump through a table.
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
    NewReno newreno, "newreno", "slow start, one segment more each round trip, half the window on loss", "RFC 5681, 6582, 3465";
    Cubic cubic, "cubic", "the window is a cubic function of the time since the last loss", "RFC 9438, RFC 9406";
    CubicLinux cubic_linux, "cubic-linux", "CUBIC in whole segments, as Linux computes it", "Linux tcp_cubic.c";
    Bic bic, "bic", "a binary search for the window of the last loss", "Xu, Harfoush, Rhee, INFOCOM 2004";
    HighSpeed highspeed, "highspeed", "growth and reduction that depend on the window", "RFC 3649";
    Hybla hybla, "hybla", "a long path grows as fast as a short one", "Caini, Firrincieli, IJSCN 22, 2004";
    Westwood westwood, "westwood", "a loss leaves what the path carries, by an estimate of the bandwidth (Westwood+)", "Grieco, Mascolo, CCR 34(2), 2004";
    Scalable scalable, "scalable", "growth and reduction in proportion to the window", "Kelly, CCR 33(2), 2003";
    Vegas vegas, "vegas", "two to four segments in the queue, by round trip times", "Brakmo, Peterson, JSAC 13(8), 1995";
    Compound compound, "compound", "Reno's window, and beside it one that delay controls", "Tan, Song, Zhang, Sridharan, INFOCOM 2006";
    Noordwijk noordwijk, "noordwijk", "bursts by a timer, for satellite links with bandwidth on demand", "Roseti, Kristiansen, 2008; the Modena dissertation 2.2";
    Bbr bbr, "bbr", "the window and the pace are made of a model of the path (version 1)", "Cardwell et al., ACM Queue 14(5), 2016";
    Dctcp dctcp, "dctcp", "the window falls with the part of the packets that were marked", "RFC 8257";
    Prague prague, "prague", "a scalable control for L4S queues", "draft-briscoe-iccrg-prague-congestion-control";
}

impl AnyControlConfig {
    /// What the control asks of its endpoint.
    pub fn requirements(&self) -> Requirements {
        match self {
            Self::Foreign(config) => config.requirements(),
            config => config
                .build(&Setup { mss: Bytes::new(1), initial_window: Bytes::new(1), initial_ssthresh: Bytes::MAX }, 0)
                .requirements(),
        }
    }
}

/// The name alone where all parameters are the defaults, else a table with `name` and every parameter.
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
        serializer.collect_map(std::iter::once(name).chain(self.parameters()))
    }
}

/// Reads what [`Serialize`] writes; parameters that are not written are the defaults. Foreign ones are not found.
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

/// What to say of a name that no control has.
pub fn unknown(name: &str) -> String {
    let near = nearest(name, NAMES).first().map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
    format!("{name:?} is not one of {NAMES:?}{near}")
}

/// True for a control that counts marks: without ECN it has nothing to go by.
pub fn needs_ecn(name: &str) -> bool {
    AnyControlConfig::default_of(name).is_some_and(|config| config.requirements().accurate_ecn)
}

impl AnyCc {
    /// The control with this name and the parameters of its source.
    pub fn new(name: &str, setup: &Setup) -> Option<Self> {
        Some(AnyControlConfig::default_of(name)?.build(setup, 0))
    }

    /// The same with a budget, as `form` says; segments have `headers` bytes besides payload.
    #[must_use]
    pub fn with_budget(self, setup: &Setup, form: c2ml::Form, headers: Bytes) -> Self {
        match form {
            c2ml::Form::Off => self,
            _ => Self::C2ml(Box::new(C2ml::new(self, setup, form, headers))),
        }
    }

    /// The budget of a control that has one.
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
