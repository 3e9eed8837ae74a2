//! A scheduler from outside this crate before a link: its own parameters and those of the classes in one table.

use super::{Classes, Classful};
use crate::config::tables::{table, written};
use crate::config::{ConfigError, LinkFacts};
use crate::packet::Packet;
use crate::sched::foreign::{self, AnyForeignScheduler};
use crate::sched::{Limits, Scheduled, Setup, Weight};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

/// The queues that a foreign scheduler serves.
pub type Queues<P> = Classful<P, Scheduled<P, AnyForeignScheduler>>;

/// The configuration of a foreign scheduler and its classes.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Parameters of the classes.
    pub classes: Classes,
    /// The scheduler, with its parameters.
    pub scheduler: foreign::Config,
}

/// Takes the keys of the classes out of a table of parameters; the others are those of the scheduler.
///
/// # Errors
/// Names a key of the classes whose value cannot be read.
pub fn split(parameters: &Map<String, Value>) -> serde_json::Result<(Classes, Map<String, Value>)> {
    let mut classes = table(&Classes::default());
    let mut own = Map::new();
    for (key, value) in parameters {
        match classes.get_mut(key) {
            Some(place) => *place = value.clone(),
            None => drop(own.insert(key.clone(), value.clone())),
        }
    }
    Ok((serde_json::from_value(Value::Object(classes))?, own))
}

impl Config {
    fn setup<'a>(&self, weights: &'a [Weight]) -> Setup<'a> {
        Setup { weights, max_packet: self.classes.max_packet }
    }

    /// Refuses parameters that do not work.
    ///
    /// # Errors
    /// Names the first parameter that is out of its range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.classes.validate()?;
        self.scheduler.validate(&self.setup(&self.classes.class_weights()))
    }

    /// Builds the queues before a link. Call only after [`Config::validate`].
    pub fn build<P: Packet>(&self, link: &LinkFacts) -> Queues<P> {
        let scheduler = self.scheduler.scheduler(&self.setup(&self.classes.class_weights()));
        let limits = Limits { total: None, per_class: Some(self.classes.limit_of_class(link)) };
        Classful::new(link, &self.classes, Scheduled::new(scheduler, limits))
    }
}

impl Serialize for Config {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut all = written(&self.classes);
        all.append(&mut written(&self.scheduler));
        all.serialize(serializer)
    }
}
