//! Changes of settings while a gateway runs, the same for both data paths: `set`, `keep`, `rollback` and the end of a
//! temporary change.

use crate::apply::Own;
use crate::history::{History, Settings};
use penstock_appliance::change::{Change, MOST_CHANGES};
use penstock_appliance::live::{self, Present, Words};
use penstock_appliance::log::Log;
use penstock_appliance::socket::message::{Answer, Refusal, Set, Until};
use penstock_appliance::socket::server::Peer;
use penstock_core::units::Instant;
use penstock_shaper::direction::Direction;
use serde_json::{Value, json};

/// A gateway whose settings can be changed.
pub trait Adjustable {
    fn settings(&self) -> &Settings;

    /// Returns whether the discipline of a direction keeps a table of connections.
    fn keeps_connections(&self, direction: Direction) -> bool;

    /// Returns why a direction cannot get this discipline or limit while packets pass; `None` if it can, or has it.
    fn refuses(&self, direction: Direction, wanted: &Settings) -> Option<String>;

    /// Reads back what packets meet; returns what is not as it was set.
    ///
    /// # Errors
    /// Returns what differs.
    fn read_back(&self) -> Result<(), String>;

    /// The file with which the run began.
    fn own(&self) -> &Own;

    /// Makes these the settings, all of them or none; returns when.
    ///
    /// # Errors
    /// Refuses what the data path cannot do.
    fn go_to(&mut self, wanted: &Settings) -> Result<Instant, Refusal>;

    /// Hears that the rates are now set by hand, or no longer.
    fn by_hand(&mut self, by_hand: bool);

    fn now(&self) -> Instant;

    /// Notes an event.
    fn note(&mut self, now: Instant, what: String);

    fn records(&mut self) -> Records<'_>;
}

/// Where changes are noted.
pub struct Records<'a> {
    pub history: &'a mut History,
    pub changes: &'a mut Vec<Change>,
    pub log: &'a mut Log,
}

/// Sets all values, or none.
///
/// # Errors
/// Refuses unknown values, and any while a change is temporary.
pub fn set(gateway: &mut impl Adjustable, peer: Peer, Set { values, until }: &Set) -> Answer {
    gateway.records().history.may_set()?;
    let former = gateway.settings().clone();
    let present = Direction::BOTH.map(|d| Present {
        config: &former[d.index()],
        keeps_connections: gateway.keeps_connections(d),
        stations: 0,
        words: Words::GATEWAY,
    });
    let mut wanted = former.clone();
    for (config, changes) in wanted.ways.iter_mut().zip(live::read(values, &present)?) {
        config.rate = changes.rate.unwrap_or(config.rate);
        config.limit = changes.limit.unwrap_or(config.limit);
        config.aqm = changes.aqm.unwrap_or_else(|| config.aqm.clone());
    }
    let rates = |settings: &Settings| [settings[0].rate, settings[1].rate];
    let by_hand = rates(&former) != rates(&wanted);
    let now = gateway.go_to(&wanted)?;
    if by_hand {
        gateway.by_hand(true);
    }
    let at_s = now.as_secs_f64();
    let Records { history, changes, log } = gateway.records();
    history.note(former, *until, now);
    let listed = values.iter().map(|(key, value)| Change { at_s, key: key.clone(), value: value.clone() });
    let room = MOST_CHANGES.saturating_sub(changes.len());
    changes.extend(listed.take(room));
    let set: serde_json::Map<_, _> = values.iter().map(|(k, v)| (k.clone(), v.clone().into())).collect();
    let details = done(at_s, set, *until);
    log.add(Some(peer), "set", &details);
    Ok(details.to_string())
}

/// What is answered and logged of a change.
pub(crate) fn done(at_s: f64, set: serde_json::Map<String, Value>, until: Option<Until>) -> Value {
    let mut details = json!({"at_s": at_s, "set": set});
    match until {
        Some(Until::For(span)) => details["for"] = span.to_string().into(),
        Some(Until::Confirmed(span)) => details["confirm"] = span.to_string().into(),
        None => {}
    }
    details
}

/// A temporary change stays.
///
/// # Errors
/// Fails if there is none.
pub fn keep(gateway: &mut impl Adjustable, peer: Peer) -> Answer {
    let Records { history, log, .. } = gateway.records();
    history.keep()?;
    log.add(Some(peer), "keep", &Value::Null);
    Ok("{}".into())
}

/// Returns to the settings before the last change.
///
/// # Errors
/// Fails if nothing was changed, or if the data path refuses them; then they can be asked for again.
pub fn rollback(gateway: &mut impl Adjustable, peer: Peer) -> Answer {
    let former = gateway.records().history.back()?;
    if let Err(refusal) = gateway.go_to(&former) {
        let now = gateway.now();
        gateway.records().history.again(former, now);
        return Err(refusal);
    }
    gateway.by_hand(false);
    let told = described(&former);
    gateway.records().log.add(Some(peer), "rollback", &told);
    Ok(told.to_string())
}

/// If the time of a change is over, the former settings return.
pub fn lapse(gateway: &mut impl Adjustable, now: Instant) {
    let Some(former) = gateway.records().history.lapsed(now) else { return };
    if gateway.go_to(&former).is_err() {
        gateway.records().history.again(former, now);
        return;
    }
    gateway.by_hand(false);
    gateway.note(now, "the time of a change is over: the former values are back".into());
    gateway.records().log.add(None, "lapse", &described(&former));
}

fn described(settings: &Settings) -> Value {
    let [down, up] = &settings.ways;
    json!({"set": {
        "rate": down.rate.to_string(), "limit": down.limit.to_string(), "discipline": down.aqm.name(),
        "reverse_rate": up.rate.to_string(), "reverse_limit": up.limit.to_string(), "reverse_discipline": up.aqm.name(),
    }})
}
