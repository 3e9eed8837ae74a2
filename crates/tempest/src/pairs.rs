//! The relative fairness index: the largest difference in normalized service (service / weight) over all pairs of
//! flows.
//!
//! Let `S_k = D_k / phi_k` and `z = S_k - S_h`. A *common time* of k and h is an interval in which neither runs empty.
//! Over a common time the largest value of |z(t2) - z(t1)| is the largest z minus the smallest z. So a pair needs the
//! smallest and the largest z since its common time began.
//!
//! **Which flow updates the pair.** Flow k keeps a row with the range of z in the present common time with each h. The
//! row is updated only when k is served, right before and right after the service: in between z can only fall, by
//! services of h. The row misses the end of a common time after k's last service only if h ended it by running empty.
//! In that case the row of h has the full range, since the end was a service of h. So the row of the flow which ended a
//! common time covers it completely, and the other row covers a part of it, whose range is never larger. At the end of
//! the run both rows are updated once more.
//!
//! **When a common time ends.** The busy periods of all flows are numbered in the order of their beginnings. A row
//! stores the last number at its last update; a flow with a later number has begun a new common time. The new one began
//! with h's busy period, when z was `S_k` (k was not served since) minus the value of `S_h` at that time, so it is
//! found late and still exactly. The range of the old common time counts when the new one is found, when k's own busy
//! period begins, or at the end of the run: until then it only grows.
//!
//! **Cost of an update.** A service is one pass over a row: two numbers of each pair, and `S_h` of the other flow. The
//! loop has no branch, so that the compiler can use vector instructions: `S_h` is NaN while h has no packets, and NaN
//! is neither smaller nor larger than any number. The largest z is stored less `1 / phi_k`, so that one difference
//! serves both comparisons: right after a service of k, z is larger by that amount than right before.
//!
//! **Many flows.** n rows of n need too much memory for many thousand flows. Above [`EXACT`] flows, rows are kept for
//! that many flows, evenly chosen: they give a lower bound of RFI. All flows give an upper bound: z changes by
//! `(S_k - D) - (S_h - D)`, so RFI is at most the sum of the two largest ranges of `S - D` within a busy period. Up to
//! [`EXACT`] flows the index is exact.

use std::ops::Range;

/// The largest number of flows for which every pair is tracked.
pub(crate) const EXACT: usize = 1024;

/// The value of `S` of a flow without packets, and of `z` of a pair in which a flow has none.
const NEITHER: f64 = f64::NAN;

/// All pairs of flows, or all pairs of the flows that were chosen.
#[derive(Debug)]
pub(crate) struct Pairs {
    /// The row of each flow; `None` if the flow was not chosen.
    row_of: Vec<Option<u32>>,
    flows: usize,
    /// 1 / phi of each row's flow.
    step: Vec<f64>,
    packets: Vec<u64>,
    /// S of each flow: now, now while the flow is busy (else [`NEITHER`]), and at the start of its busy period.
    service: Vec<f64>,
    busy: Vec<f64>,
    began: Vec<f64>,
    /// Number of each flow's last busy period, number of the last busy period of any flow, and that number at each
    /// row's last update.
    period: Vec<u64>,
    periods: u64,
    looked: Vec<u64>,
    /// The smallest and the largest z in the present common time, row by row; the largest is stored less the row's
    /// step.
    least: Vec<f64>,
    most: Vec<f64>,
    worst: Vec<f64>,
}

/// The relative fairness index of a run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Indices {
    /// A lower bound of RFI.
    pub at_least: f64,
    /// An upper bound of RFI; equal to the lower bound if RFI is exact.
    pub at_most: f64,
    worst: Vec<f64>,
    row_of: Vec<Option<u32>>,
}

impl Indices {
    /// The largest index of the pairs of flow `k`; `None` if `k` is in no tracked pair.
    pub fn of_flow(&self, k: usize) -> Option<f64> {
        (self.worst.len() > 1).then_some(()).and(self.row_of[k]).map(|row| self.worst[row as usize])
    }
}

impl Pairs {
    pub fn new(weights: &[u32]) -> Self {
        let total: u64 = weights.iter().map(|&weight| u64::from(weight)).sum();
        let rows = weights.len().min(EXACT);
        let mut row_of = vec![None; weights.len()];
        let mut step = Vec::with_capacity(rows);
        for row in 0..rows {
            let flow = row * weights.len() / rows;
            row_of[flow] = Some(row as u32);
            step.push(total as f64 / f64::from(weights[flow]));
        }
        Self {
            row_of,
            flows: weights.len(),
            step,
            packets: vec![0; rows],
            service: vec![0.0; rows],
            busy: vec![NEITHER; rows],
            began: vec![0.0; rows],
            period: vec![0; rows],
            periods: 0,
            looked: vec![0; rows],
            least: vec![NEITHER; rows * rows],
            most: vec![NEITHER; rows * rows],
            worst: vec![0.0; rows],
        }
    }

    /// Reports that a busy period of flow k begins.
    pub fn begins(&mut self, k: usize) {
        let Some(k) = self.row_of[k].map(|row| row as usize) else { return };
        (0..self.step.len()).for_each(|h| self.count(k, h));
        self.periods += 1;
        (self.period[k], self.looked[k]) = (self.periods, self.periods);
        let (service, step) = (self.service[k], self.step[k]);
        self.began[k] = service;
        let row = self.row(k);
        // Flow k is not busy yet, so the entry of k in its own row stays NaN.
        for ((least, most), other) in self.least[row.clone()].iter_mut().zip(&mut self.most[row]).zip(&self.busy) {
            *least = service - other;
            *most = *least - step;
        }
        self.busy[k] = service;
    }

    /// Reports that flow k is served; `ends` is true if it runs empty.
    pub fn serves(&mut self, k: usize, ends: bool) {
        let Some(k) = self.row_of[k].map(|row| row as usize) else { return };
        self.renew(k);
        let before = self.service[k];
        let row = self.row(k);
        for ((least, most), other) in self.least[row.clone()].iter_mut().zip(&mut self.most[row]).zip(&self.busy) {
            let z = before - other;
            *least = if z < *least { z } else { *least };
            *most = if z > *most { z } else { *most };
        }
        self.packets[k] += 1;
        // A product has one rounding, however long the run; a sum of steps would have many.
        self.service[k] = self.packets[k] as f64 * self.step[k];
        self.busy[k] = if ends { NEITHER } else { self.service[k] };
    }

    fn row(&self, k: usize) -> Range<usize> {
        let rows = self.step.len();
        k * rows..(k + 1) * rows
    }

    /// Starts the common times in row k that have begun since its last update.
    fn renew(&mut self, k: usize) {
        if self.looked[k] == self.periods {
            return;
        }
        let rows = self.step.len();
        for h in 0..rows {
            if self.period[h] > self.looked[k] {
                self.count(k, h);
                let z = if self.busy[h].is_nan() { NEITHER } else { self.service[k] - self.began[h] };
                (self.least[k * rows + h], self.most[k * rows + h]) = (z, z - self.step[k]);
            }
        }
        self.looked[k] = self.periods;
    }

    /// Takes the range in row k of its pair with h into account for the index of both flows.
    fn count(&mut self, k: usize, h: usize) {
        let at = k * self.step.len() + h;
        let range = self.most[at] + self.step[k] - self.least[at];
        self.worst[k] = self.worst[k].max(range);
        self.worst[h] = self.worst[h].max(range);
    }

    /// Updates row k with z at the end of the run.
    fn last_look(&mut self, k: usize) {
        self.renew(k);
        let (service, step) = (self.service[k], self.step[k]);
        let row = self.row(k);
        for ((least, most), other) in self.least[row.clone()].iter_mut().zip(&mut self.most[row]).zip(&self.busy) {
            let z = service - other;
            (*least, *most) = (least.min(z), most.max(z - step));
        }
    }

    /// Ends the run; `ranges` are the ranges of `S - D` of all flows.
    pub fn finish(&mut self, ranges: &[f64]) -> Indices {
        let rows = self.step.len();
        for k in 0..rows {
            if !self.busy[k].is_nan() {
                self.last_look(k);
            }
            (0..rows).for_each(|h| self.count(k, h));
        }
        let found = self.worst.iter().copied().fold(0.0, f64::max);
        let mut sorted = ranges.to_vec();
        sorted.sort_by(|a, b| b.total_cmp(a));
        let bound = sorted.iter().take(2).sum::<f64>().max(found);
        Indices {
            at_least: found,
            at_most: if self.flows <= EXACT { found } else { bound },
            worst: std::mem::take(&mut self.worst),
            row_of: std::mem::take(&mut self.row_of),
        }
    }
}
