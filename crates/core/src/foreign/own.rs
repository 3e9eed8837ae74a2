//! The library of somebody's own crate. Its types implement the traits of the built-in algorithms, so that a file moves
//! into this crate, or out of it, without a change.

use super::{
    Config, Control, ForeignAqm, ForeignCc, Kind, Library, LibraryError, MakeAqm, MakeCc, ack_path, scheduler,
};
use crate::ack_path::AckPath;
use crate::cc::{Ack, Advice, CongestionControl, ControlConfig, Loss, Notice, Requirements, Setup as Connection};
use crate::config::{AqmConfig, ConfigError, LinkFacts};
use crate::fact::Fact;
use crate::judge::{Aqm, Meta};
use crate::qdisc::{Backlog, Verdict};
use crate::rng::Rng;
use crate::sched::{Scheduler, SchedulerConfig, Setup, Weight};
use crate::stack::{self, MakeStack};
use crate::units::{Bytes, Instant, Rate, Span};
use ack_path::{ElementConfig, ForeignElement, MakeElement, Segment};
use scheduler::{ForeignScheduler, MakeScheduler};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

type Found<T> = Result<T, LibraryError>;
type Read<T> = fn(&str, &Map<String, Value>) -> Found<T>;

/// The algorithms of a program, by name.
///
/// ```
/// use penstock_core::aqm::codel;
/// use penstock_core::foreign::{Library, Own};
///
/// let own = Own::new().with_aqm::<codel::Config>("my-codel");
/// assert!(own.aqm("my-codel", &serde_json::Map::new()).unwrap().is_ok());
/// let wrong = serde_json::Map::from_iter([("traget".to_owned(), "5ms".into())]);
/// assert!(own.aqm("my-codel", &wrong).unwrap().unwrap_err().to_string().contains("unknown field `traget`"));
/// ```
#[derive(Default)]
pub struct Own {
    aqms: BTreeMap<String, Read<Config>>,
    controls: BTreeMap<String, Read<Control>>,
    schedulers: BTreeMap<String, Read<scheduler::Config>>,
    elements: BTreeMap<String, Read<ack_path::Config>>,
    stacks: BTreeMap<String, Arc<dyn MakeStack>>,
}

impl Own {
    /// Creates a library without algorithms.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an AQM under this name.
    #[must_use]
    pub fn with_aqm<C>(mut self, name: &str) -> Self
    where
        C: AqmConfig + Debug + Send + Sync + 'static,
        C::Aqm: Debug + Send + 'static,
    {
        self.aqms.insert(name.to_owned(), read_aqm::<C>);
        self
    }

    /// Adds a congestion control under this name.
    #[must_use]
    pub fn with_control<C>(mut self, name: &str) -> Self
    where
        C: ControlConfig + Debug + Send + Sync + 'static,
        C::Control: Clone + Debug + Send + 'static,
    {
        self.controls.insert(name.to_owned(), read_control::<C>);
        self
    }

    /// Adds a packet scheduler under this name.
    #[must_use]
    pub fn with_scheduler<C>(mut self, name: &str) -> Self
    where
        C: SchedulerConfig + Debug + Send + Sync + 'static,
        C::Scheduler: Clone + Debug + Send + 'static,
    {
        self.schedulers.insert(name.to_owned(), read_scheduler::<C>);
        self
    }

    /// Adds an element on the ACK path under this name.
    #[must_use]
    pub fn with_ack_path<C>(mut self, name: &str) -> Self
    where
        C: ElementConfig + Debug + Send + Sync + 'static,
        C::Element: Clone + Debug + Send + 'static,
    {
        self.elements.insert(name.to_owned(), read_element::<C>);
        self
    }

    /// Adds a transport stack under this name.
    #[must_use]
    pub fn with_stack(mut self, name: &str, make: impl MakeStack + 'static) -> Self {
        self.stacks.insert(name.to_owned(), Arc::new(make));
        self
    }

    /// Returns the names of all algorithms.
    pub fn names(&self) -> Vec<&str> {
        let names = self.aqms.keys().chain(self.controls.keys()).chain(self.schedulers.keys());
        names.chain(self.elements.keys()).chain(self.stacks.keys()).map(String::as_str).collect()
    }
}

impl Library for Own {
    fn control(&self, name: &str, parameters: &Map<String, Value>) -> Option<Found<Control>> {
        Some(self.controls.get(name)?(name, parameters))
    }
    fn aqm(&self, name: &str, parameters: &Map<String, Value>) -> Option<Found<Config>> {
        Some(self.aqms.get(name)?(name, parameters))
    }
    fn scheduler(&self, name: &str, parameters: &Map<String, Value>) -> Option<Found<scheduler::Config>> {
        Some(self.schedulers.get(name)?(name, parameters))
    }
    fn ack_path(&self, name: &str, parameters: &Map<String, Value>) -> Option<Found<ack_path::Config>> {
        Some(self.elements.get(name)?(name, parameters))
    }
    fn stack(&self, name: &str) -> Option<Found<stack::Config>> {
        Some(Ok(stack::Config::new(name, self.stacks.get(name)?.clone())))
    }
    fn kind(&self, name: &str) -> Option<Kind> {
        let kinds = [
            (Kind::Aqm, self.aqms.contains_key(name)),
            (Kind::Scheduler, self.schedulers.contains_key(name)),
            (Kind::AckPath, self.elements.contains_key(name)),
        ];
        kinds.into_iter().find_map(|(kind, has)| has.then_some(kind))
    }
}

/// Reads a configuration; `check` validates it.
fn read<C: DeserializeOwned>(
    name: &str,
    parameters: &Map<String, Value>,
    check: impl FnOnce(&C) -> Result<(), ConfigError>,
) -> Found<C> {
    let told = |what: String| LibraryError(format!("{name}: {what}"));
    let config: C = serde_json::from_value(Value::Object(parameters.clone())).map_err(|e| told(e.to_string()))?;
    check(&config).map_err(|e| told(e.to_string()))?;
    Ok(config)
}

/// A configuration as the factory of its algorithms.
#[derive(Debug)]
struct Factory<C>(C);

/// An algorithm of a type of its own behind the traits for foreign ones.
#[derive(Debug, Clone)]
struct Adapter<A>(A);

fn read_aqm<C>(name: &str, parameters: &Map<String, Value>) -> Found<Config>
where
    C: AqmConfig + Debug + Send + Sync + 'static,
    C::Aqm: Debug + Send + 'static,
{
    let config: C = read(name, parameters, C::validate)?;
    if config.watches() {
        return Err(LibraryError(format!("{name} looks at segments: add it as an element on the ACK path")));
    }
    Ok(Config::new(name, parameters.clone(), Arc::new(Factory(config))))
}

impl<C> MakeAqm for Factory<C>
where
    C: AqmConfig + Debug + Send + Sync,
    C::Aqm: Debug + Send + 'static,
{
    fn make(&self, link: &LinkFacts) -> Box<dyn ForeignAqm> {
        Box::new(Adapter(self.0.aqm(link)))
    }
}

impl<A: Aqm + Clone + Debug + Send + 'static> ForeignAqm for Adapter<A> {
    fn on_enqueue(&mut self, packet: &Meta, backlog: Backlog, now: Instant, rng: &mut Rng) -> Verdict {
        self.0.on_enqueue(packet, backlog, now, rng)
    }
    fn on_dequeue(&mut self, packet: &Meta, sojourn: Span, backlog: Backlog, now: Instant, rng: &mut Rng) -> Verdict {
        self.0.on_dequeue(packet, sojourn, backlog, now, rng)
    }
    fn on_overflow(&mut self, now: Instant) {
        self.0.on_overflow(now);
    }
    fn was_forced(&self) -> bool {
        self.0.was_forced()
    }
    fn drops_head(&self) -> bool {
        self.0.drops_head()
    }
    fn on_shed(&mut self, backlog: Backlog, now: Instant) {
        self.0.on_shed(backlog, now);
    }
    fn wants_whole_backlog(&self) -> bool {
        self.0.wants_whole_backlog()
    }
    fn on_empty(&mut self, now: Instant) {
        self.0.on_empty(now);
    }
    fn next_wakeup(&self) -> Option<Instant> {
        if A::WAKES { self.0.next_wakeup() } else { None }
    }
    fn on_wakeup(&mut self, backlog: Backlog, now: Instant) {
        self.0.on_wakeup(backlog, now);
    }
    fn report(&self) -> Option<Value> {
        self.0.report()
    }
    fn state(&self) -> String {
        format!("{:?}", self.0)
    }
    fn on_fact(&mut self, fact: &Fact, now: Instant) {
        self.0.on_fact(fact, now);
    }
    fn copy(&self) -> Box<dyn ForeignAqm> {
        Box::new(self.clone())
    }
}

fn read_control<C>(name: &str, parameters: &Map<String, Value>) -> Found<Control>
where
    C: ControlConfig + Debug + Send + Sync + 'static,
    C::Control: Clone + Debug + Send + 'static,
{
    let config: C = read(name, parameters, C::validate)?;
    Ok(Control::new(name, parameters.clone(), Arc::new(Factory(config))))
}

impl<C> MakeCc for Factory<C>
where
    C: ControlConfig + Debug + Send + Sync,
    C::Control: Clone + Debug + Send + 'static,
{
    fn make(&self, setup: &Connection, _: u64) -> Box<dyn ForeignCc> {
        Box::new(Adapter(self.0.control(setup)))
    }
    fn requirements(&self) -> Requirements {
        self.0.control(&Connection::ANY).requirements()
    }
}

impl<C: CongestionControl> CongestionControl for Adapter<C> {
    fn cwnd(&self) -> Bytes {
        self.0.cwnd()
    }
    fn ssthresh(&self) -> Bytes {
        self.0.ssthresh()
    }
    fn on_ack(&mut self, ack: &Ack) {
        self.0.on_ack(ack);
    }
    fn on_loss(&mut self, loss: &Loss) {
        self.0.on_loss(loss);
    }
    fn on_recovered(&mut self, now: Instant) {
        self.0.on_recovered(now);
    }
    fn on_rto(&mut self, loss: &Loss) {
        self.0.on_rto(loss);
    }
    fn on_idle(&mut self, now: Instant, initial_window: Bytes) {
        self.0.on_idle(now, initial_window);
    }
    fn pacing_rate(&self) -> Option<Rate> {
        self.0.pacing_rate()
    }
    fn requirements(&self) -> Requirements {
        self.0.requirements()
    }
    fn on_recovery_ack(&mut self, ack: &Ack) {
        self.0.on_recovery_ack(ack);
    }
    fn on_notice(&mut self, notice: &Notice) {
        self.0.on_notice(notice);
    }
    fn next_burst(&self) -> Instant {
        self.0.next_burst()
    }
    fn on_burst(&mut self, now: Instant, in_flight: Bytes) {
        self.0.on_burst(now, in_flight);
    }
    fn advise(&mut self, advice: Advice) {
        self.0.advise(advice);
    }
}

impl<C: CongestionControl + Clone + Debug + Send + 'static> ForeignCc for Adapter<C> {
    fn copy(&self) -> Box<dyn ForeignCc> {
        Box::new(self.clone())
    }
    fn state(&self) -> String {
        format!("{:?}", self.0)
    }
}

fn read_scheduler<C>(name: &str, parameters: &Map<String, Value>) -> Found<scheduler::Config>
where
    C: SchedulerConfig + Debug + Send + Sync + 'static,
    C::Scheduler: Clone + Debug + Send + 'static,
{
    let config: C = read(name, parameters, |_| Ok(()))?;
    Ok(scheduler::Config::new(name, parameters.clone(), Arc::new(Factory(config))))
}

impl<C> MakeScheduler for Factory<C>
where
    C: SchedulerConfig + Debug + Send + Sync,
    C::Scheduler: Clone + Debug + Send + 'static,
{
    fn validate(&self, setup: &Setup<'_>) -> Result<(), ConfigError> {
        self.0.validate(setup)
    }
    fn make(&self, setup: &Setup<'_>) -> Box<dyn ForeignScheduler> {
        Box::new(Adapter(self.0.scheduler(setup)))
    }
}

impl<S: Scheduler> Scheduler for Adapter<S> {
    fn classes(&self) -> usize {
        self.0.classes()
    }
    fn max_packet(&self) -> Bytes {
        self.0.max_packet()
    }
    fn enqueue(&mut self, class: u32, size: Bytes, idle: bool) {
        self.0.enqueue(class, size, idle);
    }
    fn dequeue(&mut self) -> Option<u32> {
        self.0.dequeue()
    }
    fn served(&mut self, class: u32, size: Bytes, head: Option<Bytes>) {
        self.0.served(class, size, head);
    }
    fn progress(&mut self, sent: Bytes) {
        self.0.progress(sent);
    }
    fn set_weight(&mut self, class: u32, weight: Weight) -> Result<(), ConfigError> {
        self.0.set_weight(class, weight)
    }
    fn set_channel(&mut self, class: u32, good: bool) {
        self.0.set_channel(class, good);
    }
}

impl<S: Scheduler + Clone + Debug + Send + 'static> ForeignScheduler for Adapter<S> {
    fn copy(&self) -> Box<dyn ForeignScheduler> {
        Box::new(self.clone())
    }
    fn state(&self) -> String {
        format!("{:?}", self.0)
    }
}

fn read_element<C>(name: &str, parameters: &Map<String, Value>) -> Found<ack_path::Config>
where
    C: ElementConfig + Debug + Send + Sync + 'static,
    C::Element: Clone + Debug + Send + 'static,
{
    let config: C = read(name, parameters, C::validate)?;
    Ok(ack_path::Config::new(name, parameters.clone(), Arc::new(Factory(config))))
}

impl<C> MakeElement for Factory<C>
where
    C: ElementConfig + Debug + Send + Sync,
    C::Element: Clone + Debug + Send + 'static,
{
    fn make(&self, link: &LinkFacts) -> Box<dyn ForeignElement> {
        Box::new(Adapter(self.0.element(link)))
    }
}

impl<E: AckPath + Clone + Debug + Send + 'static> ForeignElement for Adapter<E> {
    fn outbound(&mut self, segment: &mut Segment, now: Instant) {
        self.0.outbound(segment, now);
    }
    fn inbound(&mut self, segment: &mut Segment, now: Instant) {
        self.0.inbound(segment, now);
    }
    fn copy(&self) -> Box<dyn ForeignElement> {
        Box::new(self.clone())
    }
    fn state(&self) -> String {
        format!("{:?}", self.0)
    }
}

#[cfg(test)]
mod tests;
