//! Measurements by seconds: the goodput of each flow, fairness, and queues.

use crate::flow::Flow;
use crate::link::Link;
use crate::network::Bottleneck;
use crate::quantiles::round;
use crate::table::{Column, Table};
use penstock_core::qdisc::Qdisc;
use penstock_core::units::Instant;

/// What was measured at the end of each second.
#[derive(Debug, Default)]
pub struct Seconds {
    keep_series: bool,
    /// When the last second was closed.
    closed: Instant,
    /// Goodput of all flows together, in bit/s, for each second after the warm-up.
    pub goodput_bps: Vec<f64>,
    /// Jain's index over the TCP flows active throughout, for each second after the warm-up.
    pub jain: Vec<f64>,
    flow_time: Vec<f64>,
    flow_id: Vec<u32>,
    flow_bps: Vec<f64>,
    flow_cwnd: Vec<u64>,
    queue_time: Vec<f64>,
    queue_id: Vec<u32>,
    queue_bps: Vec<f64>,
    queue_max: Vec<u64>,
    queue_mean: Vec<f64>,
    queue_delay_ms: Vec<f64>,
}

/// Returns Jain's index `(sum x)^2 / (n sum x^2)`; `None` without flows or if all rates are zero.
pub fn jain(rates: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut n, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for rate in rates {
        n += 1.0;
        sum += rate;
        squares += rate * rate;
    }
    (squares > 0.0).then(|| sum * sum / (n * squares))
}

impl Seconds {
    /// Creates an empty record; with `keep_series` it keeps a row for each second of each flow and each queue.
    pub fn new(keep_series: bool) -> Self {
        Self { keep_series, ..Self::default() }
    }

    /// True if a row is kept for each second of each flow and each queue.
    pub fn keeps_series(&self) -> bool {
        self.keep_series
    }

    /// Returns when the last second was closed.
    pub fn closed_at(&self) -> Instant {
        self.closed
    }

    /// Closes the second which ends at `now`, or the part of a second with which the run ends. The statistics by seconds
    /// leave such a part out.
    pub fn close(
        &mut self,
        now: Instant,
        warmup: Instant,
        flows: &mut [Flow],
        links: &mut [Link],
        bottlenecks: &[Bottleneck],
    ) {
        let begin = std::mem::replace(&mut self.closed, now);
        let seconds = now.since(begin).as_secs_f64();
        let mut fair = Vec::with_capacity(flows.len());
        let mut total = 0.0;
        for (id, flow) in flows.iter_mut().enumerate() {
            let delivered = flow.delivered();
            let bps = round((delivered - flow.counted) as f64 * 8.0 / seconds);
            flow.counted = delivered;
            total += bps;
            if flow.fills_a_window() && flow.active_throughout(begin, now) {
                fair.push(bps);
            }
            if self.keep_series && flow.start < now {
                self.flow_time.push(now.as_secs_f64());
                self.flow_id.push(id as u32);
                self.flow_bps.push(bps);
                self.flow_cwnd.push(flow.cwnd());
            }
        }
        if begin >= warmup && seconds == 1.0 {
            self.goodput_bps.push(total);
            self.jain.extend(jain(fair.into_iter()));
        }
        self.close_queues(now, links, bottlenecks);
    }

    fn close_queues(&mut self, now: Instant, links: &mut [Link], bottlenecks: &[Bottleneck]) {
        for (id, bottleneck) in bottlenecks.iter().enumerate() {
            let link = &mut links[bottleneck.link.index()];
            let sent = link.sent(now);
            let queue = &mut link.queue;
            let Some(probe) = &mut queue.probe else { continue };
            let window = probe.take_window(queue.qdisc.backlog(), sent, now);
            if self.keep_series {
                self.queue_time.push(now.as_secs_f64());
                self.queue_id.push(id as u32);
                self.queue_bps.push(round(window.sent_bits / window.seconds));
                self.queue_max.push(window.max_bytes);
                self.queue_mean.push(window.mean_bytes);
                self.queue_delay_ms.push(window.mean_delay_ns / 1e6);
            }
        }
    }

    /// Returns the series as tables; no tables without `keep_series`.
    pub fn tables(&self) -> Vec<Table> {
        if !self.keep_series {
            return Vec::new();
        }
        let flow = Table {
            name: "flow_seconds",
            columns: vec![
                ("t_s", Column::F64(self.flow_time.clone())),
                ("flow", Column::U32(self.flow_id.clone())),
                ("goodput_bps", Column::F64(self.flow_bps.clone())),
                ("cwnd_bytes", Column::U64(self.flow_cwnd.clone())),
            ],
        };
        let queue = Table {
            name: "queue_seconds",
            columns: vec![
                ("t_s", Column::F64(self.queue_time.clone())),
                ("queue", Column::U32(self.queue_id.clone())),
                ("throughput_bps", Column::F64(self.queue_bps.clone())),
                ("queue_bytes_max", Column::U64(self.queue_max.clone())),
                ("queue_bytes_mean", Column::F64(self.queue_mean.clone())),
                ("queue_delay_ms_mean", Column::F64(self.queue_delay_ms.clone())),
            ],
        };
        vec![flow, queue]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jain_of_the_textbook() {
        assert_eq!(jain([5.0, 5.0, 5.0].into_iter()), Some(1.0));
        assert_eq!(jain([1.0, 0.0, 0.0, 0.0].into_iter()), Some(0.25));
        assert_eq!(jain([3.0, 1.0].into_iter()), Some(16.0 / 20.0));
        assert_eq!(jain([0.0, 0.0].into_iter()), None);
    }
}
