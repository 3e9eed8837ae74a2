//! Measures fairness and delay of a run: exactly, event by event, in memory that does not grow with the run.
//!
//! Time is counted in departures: `D` of all flows so far, `D_k` of flow k. `phi_k` = weight over the sum of weights `W`.
//! Packets have one size, so service is counted in packets; a link of rate R sends one in L/R.
//!
//! ```text
//! delay   max over packets of D(left) - D(arrived); D(left) counts the packet itself, so one that waits for none has 1
//! T-WFI   max over packets of D(left) - D(arrived) - Q_k(arrived) / phi_k, times L/R; Q_k counts the packet itself
//! B-WFI   max over [t1, t2] in which k never runs empty of phi_k (D(t2) - D(t1)) - (D_k(t2) - D_k(t1))
//! lag     B-WFI with t1 only where a busy period of k begins
//! RFI     max over k, h and [t1, t2] in which neither runs empty of |dD_h / phi_h - dD_k / phi_k|: file `pairs`
//! ```
//!
//! **Why B-WFI needs two numbers for each flow.** Let `x = phi_k D - D_k`. B-WFI is the largest rise of x from any
//! moment to a later one of one busy period: the largest difference between x(t2) and the smallest x before it. x falls
//! by 1 - phi_k when k is served and rises by phi_k when another flow is served. So x is smallest right after a service
//! of k or at the start of the period, and largest right before a service of k or at the end. It is enough to look at
//! these moments, and a busy period ends with a service. All sums are of integers: `weight * D - W * D_k` is W times x,
//! and exact.
//!
//! Tests compare every number with its definition, computed literally over all intervals, on random short runs.

use crate::pairs::{Indices, Pairs};

/// Observes every packet; the unit type measures nothing and costs nothing.
pub(crate) trait Meter {
    /// `packet` joined its flow's queue, in which `waiting` packets wait now.
    fn arrived(&mut self, flow: u32, packet: u32, waiting: u32);
    /// `packet` left its flow's queue, in which `waiting` packets are left.
    fn left(&mut self, flow: u32, packet: u32, waiting: u32);
}

impl Meter for () {
    #[inline]
    fn arrived(&mut self, _: u32, _: u32, _: u32) {}
    #[inline]
    fn left(&mut self, _: u32, _: u32, _: u32) {}
}

/// The measures of one flow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Given {
    pub weight: u32,
    pub packets: u64,
    /// The B-WFI in packets; `None` if no packet arrived.
    pub b_wfi: Option<f64>,
    /// The B-WFI with t1 only at the start of a busy period, in packets.
    pub lag: Option<f64>,
    /// The T-WFI in transmission times of a packet; `None`, like the delay, if no packet of the flow left.
    pub t_wfi: Option<f64>,
    pub delay: Option<u64>,
    /// The RFI in packets per relative weight; `None` for a flow that is in no pair.
    pub rfi: Option<f64>,
}

/// The departures so far when a packet arrived, and the backlog of its flow including the packet.
#[derive(Debug, Clone, Copy, Default)]
struct Stamp {
    departures: u64,
    waiting: u32,
}

#[derive(Debug, Clone, Copy)]
struct Flow {
    weight: u32,
    packets: u64,
    delay: u64,
    /// The largest T-WFI so far, in transmission times of a packet, multiplied by the flow's weight: so it is an integer.
    t_wfi: i128,
    /// The largest B-WFI so far, times the sum of the weights.
    b_wfi: Option<i128>,
    lag: i128,
    /// `x` times the sum of the weights when the busy period began.
    first: i128,
    /// The smallest and the largest `x` since the busy period began, times the sum of the weights.
    least: i128,
    most: i128,
    /// The largest range of `x` in one busy period so far, times the sum of the weights.
    range: i128,
}

/// Computes the measures of 002 §4.3.2.5.
#[derive(Debug)]
pub(crate) struct Fairness {
    flows: Vec<Flow>,
    stamps: Vec<Stamp>,
    waiting: Vec<u32>,
    total: i128,
    departures: u64,
    pairs: Pairs,
}

impl Fairness {
    /// Creates a meter for flows of these weights, of which at most `packets` packets wait.
    pub fn new(weights: &[u32], packets: usize) -> Self {
        let new = |&weight| Flow {
            weight,
            packets: 0,
            delay: 0,
            t_wfi: i128::MIN,
            b_wfi: None,
            lag: 0,
            first: 0,
            least: 0,
            most: 0,
            range: 0,
        };
        Self {
            flows: weights.iter().map(new).collect(),
            stamps: vec![Stamp::default(); packets],
            waiting: vec![0; weights.len()],
            total: weights.iter().map(|&weight| i128::from(weight)).sum(),
            departures: 0,
            pairs: Pairs::new(weights),
        }
    }

    /// Ends the run: busy periods that have not ended are evaluated up to now.
    pub fn finish(mut self) -> (Vec<Given>, Indices) {
        for k in 0..self.flows.len() {
            if self.waiting[k] > 0 {
                self.look(k);
            }
        }
        let ranges = self.flows.iter().map(|flow| flow.range as f64 / f64::from(flow.weight)).collect::<Vec<_>>();
        let indices = self.pairs.finish(&ranges);
        let total = self.total as f64;
        let given = |(flow, rfi): (&Flow, Option<f64>)| {
            let left = flow.packets > 0;
            Given {
                weight: flow.weight,
                packets: flow.packets,
                b_wfi: flow.b_wfi.map(|wfi| wfi as f64 / total),
                lag: flow.b_wfi.map(|_| flow.lag as f64 / total),
                t_wfi: left.then(|| flow.t_wfi as f64 / f64::from(flow.weight)),
                delay: left.then_some(flow.delay),
                rfi,
            }
        };
        let per_flow = (0..self.flows.len()).map(|k| indices.of_flow(k));
        (self.flows.iter().zip(per_flow).map(given).collect(), indices)
    }

    /// `x` of flow k times the sum of the weights.
    #[inline]
    fn lag(&self, k: usize) -> i128 {
        let flow = &self.flows[k];
        i128::from(flow.weight) * i128::from(self.departures) - self.total * i128::from(flow.packets)
    }

    /// Updates the measures of flow k with the present `x`, within a busy period.
    #[inline]
    fn look(&mut self, k: usize) {
        let lag = self.lag(k);
        let flow = &mut self.flows[k];
        flow.least = flow.least.min(lag);
        flow.most = flow.most.max(lag);
        flow.b_wfi = flow.b_wfi.max(Some(lag - flow.least));
        flow.lag = flow.lag.max(lag - flow.first);
        flow.range = flow.range.max(flow.most - flow.least);
    }
}

impl Meter for Fairness {
    fn arrived(&mut self, flow: u32, packet: u32, waiting: u32) {
        let k = flow as usize;
        self.stamps[packet as usize] = Stamp { departures: self.departures, waiting };
        self.waiting[k] = waiting;
        if waiting == 1 {
            let lag = self.lag(k);
            let flow = &mut self.flows[k];
            (flow.first, flow.least, flow.most) = (lag, lag, lag);
            self.look(k);
            self.pairs.begins(k);
        }
    }

    fn left(&mut self, flow: u32, packet: u32, waiting: u32) {
        let k = flow as usize;
        let stamp = self.stamps[packet as usize];
        self.look(k);
        self.departures += 1;
        self.waiting[k] = waiting;
        let (departures, total) = (self.departures, self.total);
        let flow = &mut self.flows[k];
        flow.packets += 1;
        let delay = departures - stamp.departures;
        flow.delay = flow.delay.max(delay);
        let ideal = total * i128::from(stamp.waiting);
        flow.t_wfi = flow.t_wfi.max(i128::from(flow.weight) * i128::from(delay) - ideal);
        self.look(k);
        self.pairs.serves(k, waiting == 0);
    }
}

#[cfg(test)]
mod tests;
