//! What a gateway with the kernel data path answers at its control socket.

use super::Kernel;
use crate::history::Settings;
use penstock_control::message::{Answer, Refusal, Request, Set, Until};
use penstock_control::server::Peer;
use penstock_core::units::Instant;
use penstock_net::direction::Direction;
use penstock_net::live::{self, Present, Words};
use penstock_net::report::{Change, MOST_CHANGES};
use serde_json::{Value, json};

/// Carries out a request from the control socket and returns the answer to it.
pub fn answer(kernel: &mut Kernel, peer: Peer, request: Request) -> Answer {
    match request {
        Request::Status => serde_json::to_string(&kernel.report()).map_err(|e| Refusal::new(e.to_string())),
        Request::Top { .. } => {
            Err(Refusal::new("the kernel data path counts no flows by rate; `status` has its counters"))
        }
        Request::Set(set) => change(kernel, peer, &set),
        Request::Keep => {
            kernel.history.keep()?;
            kernel.log.add(Some(peer), "keep", &Value::Null);
            Ok("{}".into())
        }
        Request::Rollback => {
            let former = kernel.history.back()?;
            let told = described(&former);
            kernel.go_to(former).map_err(Refusal::new)?;
            kernel.log.add(Some(peer), "rollback", &told);
            Ok(told.to_string())
        }
    }
}

/// Sets all values, or none.
fn change(kernel: &mut Kernel, peer: Peer, Set { values, until }: &Set) -> Answer {
    kernel.history.may_set()?;
    let present = Direction::BOTH.map(|d| Present {
        config: &kernel.settings[d.index()],
        keeps_connections: true,
        words: Words::GATEWAY,
    });
    let former = kernel.settings.clone();
    let mut wanted = former.clone();
    for (config, changes) in wanted.iter_mut().zip(live::read(values, &present)?) {
        config.rate = changes.rate.unwrap_or(config.rate);
        config.limit = changes.limit.unwrap_or(config.limit);
    }
    kernel.go_to(wanted).map_err(Refusal::new)?;
    let now = kernel.now();
    let at_s = now.as_secs_f64();
    kernel.history.note(former, *until, now);
    let listed = values.iter().map(|(key, value)| Change { at_s, key: key.clone(), value: value.clone() });
    let room = MOST_CHANGES.saturating_sub(kernel.changes.len());
    kernel.changes.extend(listed.take(room));
    let set: serde_json::Map<_, _> = values.iter().map(|(k, v)| (k.clone(), v.clone().into())).collect();
    let mut details = json!({"at_s": at_s, "set": set});
    match until {
        Some(Until::For(span)) => details["for"] = span.to_string().into(),
        Some(Until::Confirmed(span)) => details["confirm"] = span.to_string().into(),
        None => {}
    }
    kernel.log.add(Some(peer), "set", &details);
    Ok(details.to_string())
}

/// The time of a change is over: the former settings return.
pub(crate) fn lapse(kernel: &mut Kernel, former: Settings, now: Instant) {
    let told = described(&former);
    match kernel.go_to(former.clone()) {
        Ok(()) => {
            kernel.note(now, "the time of a change is over: the former values are back".into());
            kernel.log.add(None, "lapse", &told);
        }
        Err(_) => kernel.history.again(former, now),
    }
}

fn described(settings: &Settings) -> Value {
    let [down, up] = settings;
    json!({"set": {
        "rate": down.rate.to_string(), "limit": down.limit.to_string(),
        "reverse_rate": up.rate.to_string(), "reverse_limit": up.limit.to_string(),
    }})
}
