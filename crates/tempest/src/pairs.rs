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
//! A row knows that a common time is over by the number of h's busy period. The new one began with h's, when z was `S_k`
//! (k was not served since) minus what `S_h` was then; so it is found late and still exactly. When a busy period of k
//! begins, its whole row begins anew. A service costs one pass over a row, which lies in one piece.
//!
//! **Many flows.** n rows of n are too much for many thousand flows. Above [`EXACT`] flows, rows are kept for that many,
//! evenly chosen: what they give is a lower bound for RFI. An upper bound comes from all flows: z changes by
//! `(S_k - D) - (S_h - D)`, so it cannot exceed the sum of the two largest ranges of `S - D` within a busy period. Up to
//! [`EXACT`] flows the index is exact.

/// Flows up to which every pair is followed.
pub(crate) const EXACT: usize = 1024;

const NEVER: u32 = 0;

/// Range of `z` in a common busy time.
#[derive(Debug, Clone, Copy)]
struct Pair {
    least: f64,
    most: f64,
    /// Which busy period of the other flow it is in.
    period: u32,
}

/// All pairs, or those among the flows that were chosen.
#[derive(Debug)]
pub(crate) struct Pairs {
    /// The row of each flow, if it has one.
    row_of: Vec<Option<u32>>,
    flows: usize,
    /// 1 / phi.
    step: Vec<f64>,
    packets: Vec<u64>,
    /// S, and S when the busy period began.
    service: Vec<f64>,
    began: Vec<f64>,
    /// The number of the busy period; [`NEVER`] while there is none.
    period: Vec<u32>,
    periods: Vec<u32>,
    pairs: Vec<Pair>,
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
            began: vec![0.0; rows],
            period: vec![NEVER; rows],
            periods: vec![NEVER; rows],
            pairs: vec![Pair { least: 0.0, most: 0.0, period: NEVER }; rows * rows],
            worst: vec![0.0; rows],
        }
    }

    /// A busy period of flow k begins.
    pub fn begins(&mut self, k: usize) {
        let Some(k) = self.row_of[k].map(|row| row as usize) else { return };
        let rows = self.step.len();
        self.periods[k] = self.periods[k].wrapping_add(1).max(1);
        self.period[k] = self.periods[k];
        self.began[k] = self.service[k];
        let row = &mut self.pairs[k * rows..][..rows];
        for ((pair, &service), &period) in row.iter_mut().zip(&self.service).zip(&self.period) {
            let z = self.began[k] - service;
            *pair = Pair { least: z, most: z, period };
        }
    }

    /// Flow k is served; `ends` tells that it has run empty.
    pub fn serves(&mut self, k: usize, ends: bool) {
        let Some(k) = self.row_of[k].map(|row| row as usize) else { return };
        let before = self.service[k];
        self.packets[k] += 1;
        // Not a sum of steps: a product has one rounding, however long the run.
        let after = self.packets[k] as f64 * self.step[k];
        self.look(k, before, after);
        self.service[k] = after;
        if ends {
            self.period[k] = NEVER;
        }
    }

    /// Row k takes account of `S_k` as it was until now, and as it is.
    fn look(&mut self, k: usize, before: f64, after: f64) {
        let rows = self.step.len();
        let row = &mut self.pairs[k * rows..][..rows];
        let mut own = self.worst[k];
        for (h, pair) in row.iter_mut().enumerate() {
            if self.period[h] == NEVER || h == k {
                continue;
            }
            if pair.period != self.period[h] {
                let z = before - self.began[h];
                *pair = Pair { least: z, most: z, period: self.period[h] };
            }
            pair.least = pair.least.min(before - self.service[h]);
            pair.most = pair.most.max(after - self.service[h]);
            let range = pair.most - pair.least;
            own = own.max(range);
            self.worst[h] = self.worst[h].max(range);
        }
        self.worst[k] = own;
    }

    /// Ends the run; `ranges` are those of `S - D` of every flow.
    pub fn finish(&mut self, ranges: &[f64]) -> Indices {
        for k in 0..self.step.len() {
            if self.period[k] != NEVER {
                let service = self.service[k];
                self.look(k, service, service);
            }
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
