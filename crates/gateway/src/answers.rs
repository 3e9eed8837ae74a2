//! What a gateway answers at its control socket.

use crate::begin::kernel_queue;
use crate::daemon::Daemon;
use crate::history::Settings;
use penstock_control::message::{Answer, By, Refusal, Request, Set, Until};
use penstock_control::server::Peer;
use penstock_core::units::{Instant, Rate, Span};
use penstock_net::direction::Direction;
use penstock_net::live::{self, Present, Words};
use penstock_net::nodes::Side;
use penstock_net::report::{Change, MOST_CHANGES};
use serde::Serialize;
use serde_json::{Value, json};

/// A status is computed anew after this time; who asks more often gets the last one.
const FRESH: Span = Span::from_millis(100);

/// Carries out a request from the control socket and returns the answer to it.
pub fn answer(daemon: &mut Daemon, peer: Peer, request: Request) -> Answer {
    match request {
        Request::Status => status(daemon),
        Request::Top { by: By::Flow, most } => text(&daemon.talkers.flows(most)),
        Request::Top { by: By::Node, most } => text(&daemon.talkers.nodes(Side::Right, most)),
        Request::Set(set) => change(daemon, peer, &set),
        Request::Keep => {
            daemon.history.keep()?;
            daemon.snapshot = None;
            daemon.log.add(Some(peer), "keep", &Value::Null);
            Ok("{}".into())
        }
        Request::Rollback => {
            let former = daemon.history.back()?;
            if let Err(refusal) = go_to(daemon, &former) {
                let now = daemon.now();
                daemon.history.again(former, now);
                return Err(refusal);
            }
            daemon.steer.by_hand(false);
            daemon.log.add(Some(peer), "rollback", &described(&former));
            text(&described(&former))
        }
    }
}

fn status(daemon: &mut Daemon) -> Answer {
    let now = daemon.now();
    if let Some((at, text)) = &daemon.snapshot
        && now.since(*at) < FRESH
    {
        return Ok(text.clone());
    }
    let text = text(&daemon.status())?;
    daemon.snapshot = Some((now, text.clone()));
    Ok(text)
}

fn text(value: &impl Serialize) -> Answer {
    serde_json::to_string(value).map_err(|e| Refusal::new(format!("the answer cannot be written: {e}")))
}

/// Sets all values, or none.
fn change(daemon: &mut Daemon, peer: Peer, Set { values, until }: &Set) -> Answer {
    daemon.history.may_set()?;
    let present = Direction::BOTH.map(|d| Present {
        config: &daemon.settings[d.index()],
        keeps_connections: daemon.path.direction(d).keeps_connections(),
        words: Words::GATEWAY,
    });
    let former = daemon.settings.clone();
    let mut wanted = former.clone();
    for (config, changes) in wanted.iter_mut().zip(live::read(values, &present)?) {
        config.rate = changes.rate.unwrap_or(config.rate);
        config.limit = changes.limit.unwrap_or(config.limit);
        config.aqm = changes.aqm.unwrap_or_else(|| config.aqm.clone());
    }
    let rates = |settings: &Settings| [settings[0].rate, settings[1].rate];
    let by_hand = rates(&former) != rates(&wanted);
    let now = go_to(daemon, &wanted)?;
    if by_hand {
        daemon.steer.by_hand(true);
    }
    let at_s = now.as_secs_f64();
    daemon.history.note(former, *until, now);
    let listed = values.iter().map(|(key, value)| Change { at_s, key: key.clone(), value: value.clone() });
    let room = MOST_CHANGES.saturating_sub(daemon.changes.len());
    daemon.changes.extend(listed.take(room));
    let set: serde_json::Map<_, _> = values.iter().map(|(k, v)| (k.clone(), v.clone().into())).collect();
    let mut details = json!({"at_s": at_s, "set": set});
    match until {
        Some(Until::For(span)) => details["for"] = span.to_string().into(),
        Some(Until::Confirmed(span)) => details["confirm"] = span.to_string().into(),
        None => {}
    }
    daemon.log.add(Some(peer), "set", &details);
    text(&details)
}

/// Makes these the settings, all of them or none; returns when.
fn go_to(daemon: &mut Daemon, wanted: &Settings) -> Result<Instant, Refusal> {
    // Events up to now happen under the old settings.
    let now = daemon.release();
    let replaced = Direction::BOTH.map(|d| {
        let (old, new) = (&daemon.settings[d.index()], &wanted[d.index()]);
        old.aqm != new.aqm || old.limit != new.limit
    });
    let busy = |d: &Direction| replaced[d.index()] && !daemon.path.direction(*d).can_replace();
    if Direction::BOTH.iter().any(busy) {
        return Err(Refusal::new("earlier queues still hold packets; try again when they are empty"));
    }
    for direction in Direction::BOTH {
        let (at, bottleneck) = (direction.index(), daemon.path.direction_mut(direction));
        if daemon.settings[at].rate != wanted[at].rate {
            bottleneck.set_rate(wanted[at].rate, now);
        }
        if replaced[at] {
            let (aqm, limit) = (&wanted[at].aqm, wanted[at].limit);
            bottleneck.replace(aqm, limit).map_err(|e| Refusal::new(e.to_string()))?;
            daemon.lengthen(direction, kernel_queue(limit));
        }
    }
    daemon.settings = wanted.clone();
    daemon.share();
    daemon.snapshot = None;
    Ok(now)
}

/// The source of the rates has others; only the rates change.
pub(crate) fn steer(daemon: &mut Daemon, rates: [Rate; 2]) {
    let now = daemon.release();
    for direction in Direction::BOTH {
        let (at, bottleneck) = (direction.index(), daemon.path.direction_mut(direction));
        bottleneck.set_rate(rates[at], now);
        daemon.settings[at].rate = rates[at];
    }
    daemon.snapshot = None;
}

/// The time of a change is over: the former settings return.
pub(crate) fn lapse(daemon: &mut Daemon, former: Settings, now: Instant) {
    match go_to(daemon, &former) {
        Ok(_) => {
            daemon.steer.by_hand(false);
            daemon.note(now, "the time of a change is over: the former values are back".into());
            daemon.log.add(None, "lapse", &described(&former));
        }
        Err(_) => daemon.history.again(former, now),
    }
}

fn described(settings: &Settings) -> Value {
    let [down, up] = settings;
    json!({"set": {
        "rate": down.rate.to_string(), "limit": down.limit.to_string(), "discipline": down.aqm.name(),
        "reverse_rate": up.rate.to_string(), "reverse_limit": up.limit.to_string(), "reverse_discipline": up.aqm.name(),
    }})
}
