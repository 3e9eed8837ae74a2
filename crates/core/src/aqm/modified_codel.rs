//! Modified CoDel: CoDel with a shorter interval and drops that come closer together sooner.
//!
//! Source: Patil, thesis 2020, §3.2.2, Algorithm 5. Against unresponsive flows CoDel takes too long to reach the
//! necessary rate of drops, because its rate of drops grows only slowly with the time spent in the dropping state.
//!
//! ```text
//! interval = 30 ms
//! control_law(t) = t + interval / count                                                          Algorithm 5
//! ```
//!
//! All else, including states and re-entry, is [`codel`] in the form of RFC 8289, since the thesis's own listing of
//! CoDel (Algorithm 2) compares the time of the next drop the wrong way round and drops at the first packet above
//! target. By this law the first n drops take interval (ln n + 0.577) in all (eq. 3.11).

use super::codel::{self, Codel, Law};
use crate::config::{AqmConfig, ConfigError, FlowQueues, LinkFacts};
use crate::units::{Bytes, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of Modified CoDel. Defaults are those of the thesis and of RFC 8289.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Acceptable standing queueing delay (§3.2.5 compares 5ms to 20ms).
    pub target: Span,
    /// How long the delay may stay above the target (Algorithm 5: 30ms).
    pub interval: Span,
    /// Nothing is dropped if at most this many bytes stay in the queue (RFC 8289 §5.5: the largest packet).
    pub mtu: Bytes,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
}

impl Default for Config {
    fn default() -> Self {
        let codel::Config { target, mtu, ecn, .. } = codel::Config::default();
        Self { target, interval: Span::from_millis(30), mtu, ecn }
    }
}

impl Config {
    fn as_codel(&self) -> codel::Config {
        let Self { target, interval, mtu, ecn } = self.clone();
        codel::Config { target, interval, mtu, ecn, ..codel::Config::default() }
    }
}

impl AqmConfig for Config {
    type Aqm = Codel;

    fn validate(&self) -> Result<(), ConfigError> {
        self.as_codel().validate()
    }

    fn aqm(&self, _: &LinkFacts) -> Codel {
        Codel::with_law(self.as_codel(), Law::Count)
    }

    /// In flow queues ECN is on by default, as in FQ-CoDel (RFC 8290 §5.2).
    fn per_flow(_: &mut FlowQueues) -> Self {
        Self { ecn: true, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::{Aqm, Meta};
    use crate::packet::{Ecn, FlowId};
    use crate::qdisc::{Backlog, Verdict};
    use crate::rng::Streams;
    use crate::units::{Instant, Limit, Rate};

    /// A head that has always waited 10 ms, looked at every 10 us. Above from 0, so the first drop is at 30 ms; then
    /// 30/1, 30/2, 30/3, 30/4, 30/5 ms later: 60, 75, 85, 92.5, 98.5 ms.
    #[test]
    fn drops_come_at_the_interval_over_their_count() {
        let link = LinkFacts { rate: Rate::from_bps(10_000_000), limit: Limit::Packets(1000) };
        let (mut codel, mut rng) = (Config::default().aqm(&link), Streams::new(1).get("unused"));
        let packet = Meta { size: Bytes::new(1500), ecn: Ecn::NotEct, flow: FlowId(0) };
        let full = Backlog { packets: 100, bytes: 150_000 };
        let mut dropped = Vec::new();
        for us in (0..100_000).step_by(10) {
            let now = Instant::ZERO + Span::from_micros(us);
            while codel.on_dequeue(&packet, Span::from_millis(10), full, now, &mut rng) == Verdict::Drop {
                dropped.push(us);
            }
        }
        assert_eq!(dropped, [30_000, 60_000, 75_000, 85_000, 92_500, 98_500]);
    }

    #[test]
    fn an_interval_below_the_target_is_refused() {
        let config = Config { target: Span::from_millis(30), ..Config::default() };
        assert_eq!(AqmConfig::validate(&config).unwrap_err().key, "interval");
    }
}
