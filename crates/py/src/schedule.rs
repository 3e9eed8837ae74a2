//! Packet schedulers driven by a list of events, for comparison with their readable twins.

use penstock_core::sched::table::{AnySchedulerConfig, NAMES};
use penstock_core::sched::{Limits, Scheduled, Scheduler, Setup, Weight};
use penstock_core::units::Bytes;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

fn mistake(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Passes the events ("arrive", class, size), ("depart", 0, 0), ("weight", class, weight) and ("channel", class, 0 or
/// 1) to the scheduler `name`, then takes all packets that are left. Returns the numbers of packets, in order of
/// arrival, as they leave; -1 where no packet left. `settings` are the scheduler's parameters as JSON.
#[pyfunction]
#[pyo3(signature = (name, weights, events, max_packet=1500, settings="{}"))]
pub(crate) fn schedule(
    name: &str,
    weights: Vec<u32>,
    events: Vec<(String, u32, u64)>,
    max_packet: u64,
    settings: &str,
) -> PyResult<Vec<i64>> {
    let weights: Vec<Weight> = weights.into_iter().map(Weight::new).collect::<Result<_, _>>().map_err(mistake)?;
    let config = AnySchedulerConfig::deserialize(name, &mut serde_json::Deserializer::from_str(settings))
        .ok_or_else(|| mistake(format!("there is no scheduler {name:?}; known: {}", NAMES.join(", "))))?
        .map_err(mistake)?;
    let setup = Setup { weights: &weights, max_packet: Bytes::new(max_packet) };
    let mut queues = Scheduled::new(config.build(&setup).map_err(mistake)?, Limits::default());
    let (mut order, mut number) = (Vec::new(), 0i64);
    for (kind, class, value) in events {
        match kind.as_str() {
            "arrive" => {
                let taken = queues.enqueue(class, Bytes::new(value), number);
                taken.map_err(|refused| mistake(format!("packet {number} was refused: {:?}", refused.reason)))?;
                number += 1;
            }
            "depart" => order.push(queues.dequeue().map_or(-1, |served| served.packet)),
            "weight" => {
                let weight = u32::try_from(value).map_err(mistake).and_then(|w| Weight::new(w).map_err(mistake))?;
                queues.scheduler_mut().set_weight(class, weight).map_err(mistake)?;
            }
            "channel" => queues.scheduler_mut().set_channel(class, value != 0),
            _ => return Err(mistake(format!("{kind:?} must be arrive, depart, weight or channel"))),
        }
    }
    order.extend(std::iter::from_fn(|| queues.dequeue()).map(|served| served.packet));
    Ok(order)
}
