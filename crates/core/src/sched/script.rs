//! A scheduler driven by a list of events, for comparison with its readable twin or with another scheduler.

use super::table::AnySchedulerConfig;
use super::{Limits, Scheduled, Scheduler, Setup, Weight};
use crate::config::ConfigError;
use crate::units::Bytes;

/// What a scheduler did with a list of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Played {
    /// For each departure the number of the packet that left, in the order of arrival; `None` where no packet left.
    pub order: Vec<Option<u64>>,
    /// The state of the scheduler at the end, for people to read.
    pub state: String,
}

/// Passes the events ("arrive", class, size), ("depart", 0, 0), ("progress", 0, bytes sent of the packet that departed
/// last), ("weight", class, weight) and ("channel", class, 0 or 1) to the scheduler that `config` builds, and with
/// `drain` takes all packets that are left.
///
/// # Errors
/// The scheduler refuses its classes, or an event has another name, no such class or a value that is not allowed.
pub fn play(
    config: &AnySchedulerConfig,
    weights: &[u32],
    max_packet: Bytes,
    events: impl IntoIterator<Item = (String, u32, u64)>,
    drain: bool,
) -> Result<Played, ConfigError> {
    let weights = weights.iter().map(|weight| Weight::new(*weight)).collect::<Result<Vec<_>, _>>()?;
    let scheduler = config.build(&Setup { weights: &weights, max_packet })?;
    let mut queues = Scheduled::new(scheduler, Limits::default());
    let (mut order, mut number) = (Vec::new(), 0);
    for (event, class, value) in events {
        match event.as_str() {
            "arrive" => {
                let refused = queues.enqueue(class, Bytes::new(value), number).err();
                if let Some(refused) = refused {
                    let message = format!("packet {number} was refused: {:?}", refused.reason);
                    return Err(ConfigError::new("arrive", message));
                }
                number += 1;
            }
            "depart" => order.push(queues.dequeue().map(|served| served.packet)),
            "progress" => queues.scheduler_mut().progress(Bytes::new(value)),
            "weight" => {
                let weight = u32::try_from(value).map_err(|error| ConfigError::new("weight", error.to_string()))?;
                queues.scheduler_mut().set_weight(class, Weight::new(weight)?)?;
            }
            "channel" => queues.scheduler_mut().set_channel(class, value != 0),
            _ => {
                let message = format!("{event:?} must be arrive, depart, progress, weight or channel");
                return Err(ConfigError::new("event", message));
            }
        }
    }
    if drain {
        order.extend(std::iter::from_fn(|| queues.dequeue()).map(|served| Some(served.packet)));
    }
    Ok(Played { order, state: queues.scheduler().state() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet of each class; the channel of class 0 is bad, then good again.
    #[test]
    fn a_channel_is_bad_at_0_and_good_at_1() {
        let config = AnySchedulerConfig::default_of("w2f2q").unwrap();
        let events = [
            ("arrive", 0, 1000),
            ("arrive", 1, 1000),
            ("channel", 0, 0),
            ("depart", 0, 0),
            ("depart", 0, 0),
            ("channel", 0, 1),
            ("depart", 0, 0),
        ];
        let events = events.map(|(event, class, value)| (event.to_owned(), class, value));
        let played = play(&config, &[1, 1], Bytes::new(1500), events, false).unwrap();
        assert_eq!(played.order, [Some(1), None, Some(0)]);
    }
}
