//! What the emulator answers at its control socket.

use crate::emulator::Emulator;
use penstock_appliance::change::{Change, MOST_CHANGES};
use penstock_appliance::live::{self, Changes, Present, Words};
use penstock_appliance::socket::message::{Answer, By, Refusal, Request, Set};
use penstock_core::packet::Packet;
use penstock_core::units::{Instant, Span};
use penstock_grammar::stations::StationSpec;
use penstock_shaper::bottleneck::{Bottleneck, Config};
use penstock_shaper::direction::Direction;
use serde::Serialize;
use serde_json::json;

/// A report is computed anew after this time; who asks more often gets the last one. One takes about as long as a hundred
/// packets.
const FRESH: Span = Span::from_millis(100);

/// The last report that was computed.
#[derive(Debug, Default)]
pub struct Snapshot {
    computed: Option<(Instant, String)>,
}

/// Carries out a request from the control socket and returns the answer to it.
pub fn answer(emulator: &mut Emulator, request: Request) -> Answer {
    match request {
        Request::Status => status(emulator),
        Request::Top { by: By::Flow, most } => text(&emulator.talkers.flows(most)),
        Request::Top { by: By::Node, most } => nodes(emulator, most),
        Request::Set(Set { values, until: None }) => set(emulator, &values),
        Request::Apply(_) => Err(Refusal::new("the emulator applies no files; `set` changes values")),
        Request::Set(_) | Request::Keep | Request::Rollback => {
            Err(Refusal::new("the emulator keeps no former values: set them again"))
        }
    }
}

fn nodes(emulator: &Emulator, most: usize) -> Answer {
    let now = emulator.now();
    text(&emulator.talkers.nodes(emulator.plan.nodes, most, |address| emulator.classifier.name_at(address, now)))
}

fn status(emulator: &mut Emulator) -> Answer {
    let now = emulator.now();
    if let Some((at, text)) = &emulator.snapshot.computed
        && now.since(*at) < FRESH
    {
        return Ok(text.clone());
    }
    let text = text(&emulator.report())?;
    emulator.snapshot.computed = Some((now, text.clone()));
    Ok(text)
}

fn text(value: &impl Serialize) -> Answer {
    serde_json::to_string(value).map_err(|e| Refusal::new(format!("the answer cannot be written: {e}")))
}

/// Sets all values, or none.
fn set(emulator: &mut Emulator, values: &[(String, String)]) -> Answer {
    // Events up to now happen under the old values.
    let now = emulator.write_what_is_due();
    let present = Direction::BOTH.map(|d| Present {
        config: &emulator.plan.bottlenecks[d.index()],
        keeps_connections: emulator.path.direction(d).keeps_connections(),
        stations: emulator.path.direction(d).stations(),
        words: Words::EMULATOR,
    });
    let changes = live::read(values, &present)?;
    let replaces = |d: Direction| changes[d.index()].replaces();
    if Direction::BOTH.into_iter().any(|d| replaces(d) && !emulator.path.direction(d).can_replace()) {
        return Err(Refusal::new("earlier queues still hold packets; try again when they are empty"));
    }
    for (direction, changes) in Direction::BOTH.into_iter().zip(changes) {
        let bottleneck = emulator.path.direction_mut(direction);
        let (replaces, stations) = (changes.replaces(), changes.stations.clone());
        apply(&mut emulator.plan.bottlenecks[direction.index()], bottleneck, changes, now)?;
        if let Some(stations) = stations {
            let channels = stations.iter().map(StationSpec::channel).collect();
            bottleneck.set_stations(channels, now, &mut emulator.pool);
        }
        if replaces {
            emulator.classifier.tell_again();
        }
    }
    let at_s = now.as_secs_f64();
    let listed = values.iter().map(|(key, value)| Change { at_s, key: key.clone(), value: value.clone() });
    let room = MOST_CHANGES.saturating_sub(emulator.changes.len());
    emulator.changes.extend(listed.take(room));
    emulator.snapshot.computed = None;
    let set: serde_json::Map<_, _> = values.iter().map(|(k, v)| (k.clone(), v.clone().into())).collect();
    text(&json!({"at_s": at_s, "set": set}))
}

fn apply<P: Packet>(
    config: &mut Config,
    bottleneck: &mut Bottleneck<P>,
    changes: Changes,
    now: Instant,
) -> Result<(), Refusal> {
    let replaces = changes.replaces();
    if let Some(rate) = changes.rate {
        config.rate = rate;
        bottleneck.set_rate(rate, now);
    }
    if let Some(delay) = changes.delay {
        config.delay = delay;
        bottleneck.set_delay(delay);
    }
    if let Some(loss) = changes.loss {
        bottleneck.set_loss(loss);
    }
    if replaces {
        config.limit = changes.limit.unwrap_or(config.limit);
        config.aqm = changes.aqm.unwrap_or_else(|| config.aqm.clone());
        bottleneck.replace(&config.aqm, config.limit, now).map_err(|e| Refusal::new(e.to_string()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_core::rng::Streams;
    use penstock_core::settings::config_from_settings;
    use penstock_core::units::{Limit, Rate};
    use penstock_core::wire::RealPacket;

    /// PINK knows connections and cannot be replaced: a new limit, which needs a new discipline, is refused, and a new rate is
    /// not.
    #[test]
    fn a_change_of_the_wire_leaves_the_discipline() {
        let aqm = config_from_settings("pink", &[]).unwrap();
        let rate = Rate::from_bps(1_000_000);
        let mut config = Config { aqm, rate, delay: Span::ZERO, limit: Limit::Packets(100) };
        let mut bottleneck: Bottleneck<RealPacket> = Bottleneck::new(&config, Streams::new(1).get("test"));
        let faster = Changes { rate: Some(Rate::from_bps(2_000_000)), ..Changes::default() };
        assert_eq!(apply(&mut config, &mut bottleneck, faster, Instant::ZERO), Ok(()));
        assert_eq!(config.rate, Rate::from_bps(2_000_000));
        let shorter = Changes { limit: Some(Limit::Packets(5)), ..Changes::default() };
        assert!(apply(&mut config, &mut bottleneck, shorter, Instant::ZERO).is_err());
    }
}
