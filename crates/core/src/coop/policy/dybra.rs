//! DyBRA (2.3.2): clients that cannot use their share leave the rest to the other clients, in one step per event.
//!
//! ```text
//! S_eff = BW - sum of what bad clients hold
//! level = S_eff / (n - bad), never below BW / n
//! ```
//!
//! With weights, n and bad are sums of weights. A client is good if it can use what it would get as a good client. With
//! floors, the level is the one at which good clients use up S_eff, and BW / n the one at which all clients use up BW.
//!
//! DIFFERENCE: a client that returns to good gives back exactly what it held. Figure 2.32 adds S_eff / (n - bad)
//! instead and grants more than BW (`the_literal_form_gives_out_more_than_there_is`); `literal` selects that form.
//! DIFFERENCE: S_eff is computed as BW minus the claims and not kept separately, so it cannot drift. In Figure 2.31,
//! S_eff and the claims then always add up to BW (`budgets_never_exceed_the_bandwidth`).
//! DIFFERENCE: a bad client is compared with what it would get if it were good, and not with what the others get
//! without it, which is undefined if all clients are bad (`all_clients_can_be_bad`).
//! DIFFERENCE: no level is below BW / n, so that claims from before a fall of BW do not starve good clients; a bad
//! client uses at most the level (`good_clients_keep_an_equal_share_when_the_bandwidth_falls`). PINK has this rule,
//! too.

use super::floors::Sums;
use super::{Assessment, Policy};
use crate::allocation::pour;
use crate::coop::state::{Claim, Share, Status};

/// The sums n and bad, and what bad clients hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Dybra {
    capacity: u64,
    threshold: u64,
    /// n, the sum of all weights.
    total: u64,
    /// bad, the sum of the weights of bad clients.
    bad: u64,
    /// The sum of what bad clients hold, in bits per second.
    claims: u64,
    /// The floors of all clients, and of good ones.
    floors: [Sums; 2],
    /// S_eff, kept as in the figures; `None` unless the policy is `literal`.
    literal: Option<u64>,
}

impl Dybra {
    pub fn new(capacity: u64, policy: &Policy) -> Self {
        let literal = policy.literal.then_some(capacity);
        let (threshold, floors) = (policy.threshold_percent.into(), Default::default());
        Self { capacity, threshold, total: 0, bad: 0, claims: 0, floors, literal }
    }

    pub fn set_capacity(&mut self, capacity: u64) {
        self.literal = self.literal.map(|s_eff| (s_eff + capacity).saturating_sub(self.capacity));
        self.capacity = capacity;
    }

    pub fn join(&mut self, share: Share) {
        self.total += u64::from(share.weight);
        self.floors.iter_mut().for_each(|floors| floors.add(share, Claim::ALL));
    }

    pub fn leave(&mut self, share: Share, assessment: Assessment) {
        if assessment.status == Status::Bad {
            self.recover(share, assessment.claim);
            self.literal = self.literal.map(|s_eff| s_eff + assessment.claim.as_bps());
        }
        self.total -= u64::from(share.weight);
        self.floors.iter_mut().for_each(|floors| floors.remove(share, Claim::ALL));
    }

    /// What good clients get per unit of weight, in bits per second.
    pub fn level(&self) -> u64 {
        if let Some(s_eff) = self.literal {
            return s_eff / (self.total - self.bad).max(1);
        }
        match self.total - self.bad {
            // No client is good. Bad clients keep what they hold, if the capacity suffices.
            0 if self.claims <= self.capacity => self.capacity,
            _ => self.shared(),
        }
    }

    /// The rest that bad clients leave, per unit of weight of the good clients, but at least an equal share: claims
    /// from before a fall of BW starve nobody.
    fn shared(&self) -> u64 {
        let [all, good] = &self.floors;
        let rest = level(self.capacity.saturating_sub(self.claims), self.total - self.bad, good);
        rest.max(level(self.capacity, self.total, all))
    }

    pub fn used(&mut self, share: Share, assessment: Assessment, claim: Claim) -> Assessment {
        if self.literal.is_some() {
            return self.used_to_the_letter(share, assessment, claim);
        }
        if assessment.status == Status::Bad {
            self.recover(share, assessment.claim);
        }
        let given = self.shared().saturating_mul(share.weight.into()).max(share.floor.as_bps());
        if claim.as_bps() >= given {
            return Assessment::GOOD;
        }
        let kept = assessment.status == Status::Bad && !self.matters(assessment.claim, claim);
        let claim = if kept { assessment.claim } else { claim };
        self.lack(share, claim);
        Assessment { status: Status::Bad, claim }
    }

    /// Moves a client from good to bad (Figure 2.31).
    fn lack(&mut self, share: Share, claim: Claim) {
        self.bad += u64::from(share.weight);
        self.claims += claim.as_bps();
        self.floors[0].remove(share, Claim::ALL);
        self.floors[0].add(share, claim);
        self.floors[1].remove(share, Claim::ALL);
    }

    /// Moves a client from bad to good (Figure 2.32, corrected): what it held becomes free.
    fn recover(&mut self, share: Share, claim: Claim) {
        self.bad -= u64::from(share.weight);
        self.claims -= claim.as_bps();
        self.floors[0].remove(share, claim);
        self.floors.iter_mut().for_each(|floors| floors.add(share, Claim::ALL));
    }

    /// Memory in bytes beyond the value itself.
    pub fn memory(&self) -> usize {
        self.floors.iter().map(Sums::memory).sum()
    }

    /// "In either case the appropriate action is triggered exclusively if a set threshold is exceeded."
    fn matters(&self, before: Claim, now: Claim) -> bool {
        let (before, now) = (before.as_bps(), now.as_bps());
        u128::from(before.abs_diff(now)) * 100 >= u128::from(before) * u128::from(self.threshold)
    }

    /// Follows Figures 2.31 to 2.33 line by line.
    fn used_to_the_letter(&mut self, share: Share, assessment: Assessment, claim: Claim) -> Assessment {
        let (c, weight) = (claim.as_bps(), u64::from(share.weight));
        let s_eff = self.literal.unwrap_or(self.capacity);
        let good_enough = c >= self.level().saturating_mul(weight);
        let s_eff = match (assessment.status, good_enough) {
            (Status::Bad, true) => {
                self.recover(share, assessment.claim);
                s_eff + s_eff / (self.total - self.bad) * weight
            }
            (Status::Bad, false) if !self.matters(assessment.claim, claim) => return assessment,
            (Status::Bad, false) => {
                self.recover(share, assessment.claim);
                self.lack(share, claim);
                (s_eff + assessment.claim.as_bps()).saturating_sub(c)
            }
            (_, true) => s_eff,
            (_, false) => {
                self.lack(share, claim);
                s_eff.saturating_sub(c)
            }
        };
        self.literal = Some(s_eff);
        if good_enough { Assessment::GOOD } else { Assessment { status: Status::Bad, claim } }
    }
}

/// The level at which clients of this weight use up `capacity`; zero if not even their floors fit, or if there are none.
fn level(capacity: u64, weight: u64, floors: &Sums) -> u64 {
    if weight == 0 || floors.total() > capacity {
        return 0;
    }
    pour(capacity, weight, floors.iter(), [(u64::MAX, weight)]).0
}
