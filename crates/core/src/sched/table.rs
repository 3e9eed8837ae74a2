//! Every scheduler by name. A new scheduler needs its file and one line in the table below.

use super::foreign::{self, AnyForeignScheduler};
use super::{Scheduler, SchedulerConfig, Setup, Weight};
use crate::config::ConfigError;
use crate::listing::{Entry, parameters};
use crate::units::Bytes;
use serde::de::Deserializer;
use serde::{Deserialize, Serialize};

/// An operation on a scheduler whose type is known at compile time, so that calls of the scheduler are direct.
pub trait WithScheduler {
    /// The result of the operation.
    type Out;

    /// Runs the operation with `scheduler`.
    fn with<S: Scheduler + Clone>(self, scheduler: S) -> Self::Out;
}

macro_rules! schedulers {
    ($($variant:ident $module:ident, $name:literal, $about:literal, $source:literal;)*) => {
        /// The configuration of any scheduler.
        #[derive(Debug, Clone, PartialEq, Serialize)]
        #[serde(untagged)]
        pub enum AnySchedulerConfig {
            $(#[doc = $about] $variant(super::$module::Config),)*
            /// The configuration of a scheduler from outside this crate.
            Foreign(foreign::Config),
        }

        /// Any scheduler, with a match in each call. To measure the cost of a scheduler use
        /// [`AnySchedulerConfig::build_with`].
        #[derive(Debug, Clone)]
        pub enum AnyScheduler {
            $(#[doc = $about] $variant(<super::$module::Config as SchedulerConfig>::Scheduler),)*
            /// A scheduler from outside this crate.
            Foreign(AnyForeignScheduler),
        }

        /// The names of all schedulers, in the order of the table.
        pub const NAMES: &[&str] = &[$($name,)*];

        /// The entry of each scheduler in a listing: name, description, source and parameters.
        pub fn entries() -> Vec<Entry> {
            vec![$(Entry {
                name: $name, kind: "scheduler", about: $about, source: $source,
                parameters: parameters::<super::$module::Config>(),
            },)*]
        }

        impl AnySchedulerConfig {
            /// The default configuration of the scheduler `name`; `None` if there is no such scheduler.
            pub fn default_of(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant(Default::default())),)*
                    _ => None,
                }
            }

            /// Reads the parameters of the scheduler `name`; `None` if there is no such scheduler.
            ///
            /// # Errors
            /// The errors of the deserializer, with their positions in the text.
            pub fn deserialize<'de, D: Deserializer<'de>>(name: &str, parameters: D) -> Option<Result<Self, D::Error>> {
                match name {
                    $($name => Some(Deserialize::deserialize(parameters).map(Self::$variant)),)*
                    _ => None,
                }
            }

            /// The name of the scheduler in configurations.
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$variant(_) => $name,)*
                    Self::Foreign(config) => config.name(),
                }
            }

            /// Builds the scheduler.
            ///
            /// # Errors
            /// Names the first parameter that is out of its range.
            pub fn build(&self, setup: &Setup<'_>) -> Result<AnyScheduler, ConfigError> {
                match self {
                    $(Self::$variant(config) => {
                        config.validate(setup)?;
                        Ok(AnyScheduler::$variant(config.scheduler(setup)))
                    })*
                    Self::Foreign(config) => {
                        config.validate(setup)?;
                        Ok(AnyScheduler::Foreign(config.scheduler(setup)))
                    }
                }
            }

            /// Builds the scheduler and passes it, with its own type, to `with`.
            ///
            /// # Errors
            /// Names the first parameter that is out of its range.
            pub fn build_with<W: WithScheduler>(&self, setup: &Setup<'_>, with: W) -> Result<W::Out, ConfigError> {
                match self {
                    $(Self::$variant(config) => {
                        config.validate(setup)?;
                        Ok(with.with(config.scheduler(setup)))
                    })*
                    Self::Foreign(config) => {
                        config.validate(setup)?;
                        Ok(with.with(config.scheduler(setup)))
                    }
                }
            }
        }

        impl AnyScheduler {
            /// Returns the state of the scheduler, for people to read.
            pub fn state(&self) -> String {
                match self {
                    $(Self::$variant(s) => format!("{s:?}"),)*
                    Self::Foreign(s) => s.state(),
                }
            }
        }

        impl Scheduler for AnyScheduler {
            fn classes(&self) -> usize {
                match self {
                    $(Self::$variant(s) => s.classes(),)*
                    Self::Foreign(s) => s.classes(),
                }
            }
            fn max_packet(&self) -> Bytes {
                match self {
                    $(Self::$variant(s) => s.max_packet(),)*
                    Self::Foreign(s) => s.max_packet(),
                }
            }
            #[inline]
            fn enqueue(&mut self, class: u32, size: Bytes, idle: bool) {
                match self {
                    $(Self::$variant(s) => s.enqueue(class, size, idle),)*
                    Self::Foreign(s) => s.enqueue(class, size, idle),
                }
            }
            #[inline]
            fn dequeue(&mut self) -> Option<u32> {
                match self {
                    $(Self::$variant(s) => s.dequeue(),)*
                    Self::Foreign(s) => s.dequeue(),
                }
            }
            #[inline]
            fn served(&mut self, class: u32, size: Bytes, head: Option<Bytes>) {
                match self {
                    $(Self::$variant(s) => s.served(class, size, head),)*
                    Self::Foreign(s) => s.served(class, size, head),
                }
            }
            #[inline]
            fn progress(&mut self, sent: Bytes) {
                match self {
                    $(Self::$variant(s) => s.progress(sent),)*
                    Self::Foreign(s) => s.progress(sent),
                }
            }
            fn set_weight(&mut self, class: u32, weight: Weight) -> Result<(), ConfigError> {
                match self {
                    $(Self::$variant(s) => s.set_weight(class, weight),)*
                    Self::Foreign(s) => s.set_weight(class, weight),
                }
            }
            fn set_channel(&mut self, class: u32, good: bool) {
                match self {
                    $(Self::$variant(s) => s.set_channel(class, good),)*
                    Self::Foreign(s) => s.set_channel(class, good),
                }
            }
        }
    };
}

schedulers! {
    Fifo fifo, "fifo", "first in, first out, whatever the class", "002 §4.3.3.1";
    Prio prio, "prio", "strict priority: the largest weight first, equal ones in turn", "RFC 3290 §7.1.2; Linux sch_prio";
    Drr drr, "drr", "turns of so many bytes for each unit of weight; what is left over counts in the next turn", "Shreedhar and Varghese 1996";
    Sfq sfq, "sfq", "classes are hashed to buckets, buckets take turns", "McKenney 1990; Linux sch_sfq";
    Stfq stfq, "stfq", "the least virtual start first", "Goyal, Vin, Cheng 1996";
    Wf2qPlus wf2q_plus, "wf2q-plus", "of what a fluid system would have begun, what it would finish first", "Bennett and Zhang 1997 §IV";
    Kps kps, "kps", "WF²Q+ with two interleaved timer wheels for each stratum of weights, a fixed number of steps", "after Karsten 2006, 2010";
    Qfq qfq, "qfq", "WF²Q+ with rounded timestamps: groups of classes, a fixed number of steps", "Checconi, Rizzo, Valente 2013; Linux 3.6 sch_qfq.c";
    QfqPlus qfq_plus, "qfq-plus", "QFQ over aggregates of up to 8 classes of equal weight, DRR inside", "Valente 2013; Linux sch_qfq.c";
    W2f2q w2f2q, "w2f2q", "WF²Q+ that skips classes with a bad channel and makes up for it later", "after Yi and others 2000; 002 §4.2.5";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_can_be_built_and_is_documented() {
        let weights = [Weight::ONE, Weight::new(20).unwrap()];
        let setup = Setup { weights: &weights, max_packet: Bytes::new(1700) };
        for entry in entries() {
            let config = AnySchedulerConfig::default_of(entry.name).unwrap();
            let scheduler = config.build(&setup).unwrap();
            assert_eq!((config.name(), scheduler.classes()), (entry.name, 2));
            assert_eq!(scheduler.max_packet(), Bytes::new(1700));
            for parameter in entry.parameters {
                assert!(!parameter.about.is_empty(), "{}.{} has no description", entry.name, parameter.name);
            }
        }
    }

    #[test]
    fn what_no_scheduler_can_do_is_refused_by_each() {
        let fits = [Weight::ONE];
        let heavy = vec![Weight::MAX; 1025];
        for name in NAMES {
            let config = AnySchedulerConfig::default_of(name).unwrap();
            for (weights, max_packet) in [(&fits[..0], 1500), (&fits[..], 0), (&fits[..], 2 << 20), (&heavy[..], 1500)]
            {
                let setup = Setup { weights, max_packet: Bytes::new(max_packet) };
                assert!(config.build(&setup).is_err(), "{name} takes {} classes of {max_packet} B", weights.len());
            }
        }
    }

    #[test]
    fn parameters_are_read_by_name() {
        let read =
            |name, text: &str| AnySchedulerConfig::deserialize(name, &mut serde_json::Deserializer::from_str(text));
        assert!(read("drrr", "{}").is_none());
        assert!(read("drr", r#"{"quantom": "1B"}"#).unwrap().is_err());
        let config = read("drr", r#"{"quantum": "300B"}"#).unwrap().unwrap();
        assert_eq!(
            config,
            AnySchedulerConfig::Drr(super::super::drr::Config { quantum: Some(Bytes::new(300)), ..Default::default() })
        );
    }
}
