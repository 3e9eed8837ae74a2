//! The relative fairness index: over all pairs of flows, how far their service in proportion to weight may differ.
//!
//! Let `S_k = D_k / phi_k` and `z = S_k - S_h`. In a time in which neither k nor h runs empty, the most that |z(t2) - z(t1)|
//! can be is the largest z minus the least. So a pair needs the least and the most of z since their common busy time began.
//!
//! **Who looks when.** Flow k keeps a row: for each h the range of z in the present common time. It looks only when k is
//! served, right before and right after: in between, z can only fall, by services of h. What a row misses is the end of
//! a common time after k's last service, and only if h ended it by running empty. Then h's own row has it all, for that
//! end was a service of h. So each common time is seen whole by the row of the flow that ended it, and the other row sees
//! a part of it, which is never more. At the end of the run both rows look once more.
//!
//! **When a common time is over.** Busy periods of all flows are numbered in the order in which they begin. A row remembers
//! the last number at its last look; a flow with a later one has begun a new common time. It began with h's period, when z
//! was `S_k` (k was not served since) minus what `S_h` was then; so it is found late and still exactly. The range of the old
//! one counts when the new one is found, when k's own period begins, or at the end of the run: it only grows until then.
//!
//! **What a look costs.** A service is one pass over a row: two numbers of each pair, and `S_h` of the other flow. It has no
//! branch, as the compiler needs it for vector instructions: `S_h` is not a number while h has no packets, and what is
//! not a number is neither less nor more. The largest z is kept less `1 / phi_k`, so that one difference serves both: right
//! after a service of k, z is by so much more than right before.
//!
//! **Many flows.** n rows of n are too much for many thousand flows. Above [`EXACT`] flows, rows are kept for that many,
//! evenly chosen: what they give is a lower bound for RFI. An upper bound comes from all flows: z changes by
//! `(S_k - D) - (S_h - D)`, so it cannot exceed the sum of the two largest ranges of `S - D` within a busy period. Up to
//! [`EXACT`] flows the index is exact.

use std::ops::Range;

/// Flows up to which every pair is followed.
pub(crate) const EXACT: usize = 1024;

/// `S` of a flow without packets, and `z` of a pair of which one has none.
const NEITHER: f64 = f64::NAN;

/// All pairs, or those among the flows that were chosen.
#[derive(Debug)]
pub(crate) struct Pairs {
    /// The row of each flow, if it has one.
    row_of: Vec<Option<u32>>,
    flows: usize,
    /// 1 / phi.
    step: Vec<f64>,
    packets: Vec<u64>,
    /// S; while the flow is busy; and when its busy period began.
    service: Vec<f64>,
    busy: Vec<f64>,
    began: Vec<f64>,
    /// The number of the flow's last busy period, and of the last of any flow: now, and when its row last looked.
    period: Vec<u64>,
    periods: u64,
    looked: Vec<u64>,
    /// Of z in the present common time, row by row; the most is kept less the row's step.
    least: Vec<f64>,
    most: Vec<f64>,
    worst: Vec<f64>,
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Indices {
    /// RFI is no less.
    pub at_least: f64,
    /// RFI is no more; the same where it is exact.
    pub at_most: f64,
    worst: Vec<f64>,
    row_of: Vec<Option<u32>>,
}

impl Indices {
    /// The worst of a flow's pairs.
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

    /// A busy period of flow k begins.
    pub fn begins(&mut self, k: usize) {
        let Some(k) = self.row_of[k].map(|row| row as usize) else { return };
        (0..self.step.len()).for_each(|h| self.count(k, h));
        self.periods += 1;
        (self.period[k], self.looked[k]) = (self.periods, self.periods);
        let (service, step) = (self.service[k], self.step[k]);
        self.began[k] = service;
        let row = self.row(k);
        // k itself is not busy yet, so its own place in its row stays without a number.
        for ((least, most), other) in self.least[row.clone()].iter_mut().zip(&mut self.most[row]).zip(&self.busy) {
            *least = service - other;
            *most = *least - step;
        }
        self.busy[k] = service;
    }

    /// Flow k is served; `ends` tells that it has run empty.
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
        // Not a sum of steps: a product has one rounding, however long the run.
        self.service[k] = self.packets[k] as f64 * self.step[k];
        self.busy[k] = if ends { NEITHER } else { self.service[k] };
    }

    fn row(&self, k: usize) -> Range<usize> {
        let rows = self.step.len();
        k * rows..(k + 1) * rows
    }

    /// Row k finds the common times that have begun since its last look.
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

    /// The range that row k has seen of its pair with h is one of those that happened.
    fn count(&mut self, k: usize, h: usize) {
        let at = k * self.step.len() + h;
        let range = self.most[at] + self.step[k] - self.least[at];
        self.worst[k] = self.worst[k].max(range);
        self.worst[h] = self.worst[h].max(range);
    }

    /// z as it is at the end of the run.
    fn last_look(&mut self, k: usize) {
        self.renew(k);
        let (service, step) = (self.service[k], self.step[k]);
        let row = self.row(k);
        for ((least, most), other) in self.least[row.clone()].iter_mut().zip(&mut self.most[row]).zip(&self.busy) {
            let z = service - other;
            (*least, *most) = (least.min(z), most.max(z - step));
        }
    }

    /// Ends the run; `ranges` are those of `S - D` of every flow.
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
