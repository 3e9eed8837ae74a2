//! Shares: eq. 1, eq. 2 and its states (Table 1, Figures 2 to 4), as sums that are kept and never walked.
//!
//! The paper keeps BW_free, what *bad* flows leave, as a number that goes stale when n changes, counts the redistributed
//! part of a bad flow's share as wasted once more, and applies c twice. Here the *claims* of bad flows are kept instead:
//! what each is able to use. Then
//!
//! ```text
//! BW_free = c * BW * n_bad / n - claims            (never below zero)
//! eq. 2   = c * BW / n + BW_free / n_good = (c * BW - claims) / n_good
//! ```
//!
//! holds whatever comes and goes. A bad flow is compared with what it would get if it were good, which also makes the
//! fixed point that of water-filling: no flow gets less than it asks for while another gets more than it.

use crate::redistribution::{ratio, redistribute};
use crate::units::{Rate, Span};

/// The largest window there is (RFC 7323 §2.3).
pub(super) const MAX_WINDOW: u64 = 0xffff << 14;
/// Rates are kept in thousandths of a byte per second, so that eq. 1 has one exact floor.
pub(super) const MILLI: u64 = 1000;
/// Segments that a flow may be owed, or owe. A step of two, and rounding that takes nearly one: less would be forgotten
/// before it is used.
pub(super) const CREDIT: u64 = 3;
const NS: u64 = 1_000_000_000;
/// Denominator of `c` as an integer.
const C_UNIT: f64 = 1e9;

/// Payload that may be given out per second: (BW - reserve) * c, in thousandths of a byte.
pub(super) fn payload_rate(bw: Rate, reserve: Option<Rate>, c: f64) -> u64 {
    let bps = bw.as_bps().saturating_sub(reserve.map_or(0, Rate::as_bps)).max(1);
    let exact = u128::from(bps) * (c * C_UNIT + 0.5) as u128 * u128::from(MILLI) / (8 * C_UNIT as u128);
    exact.clamp(1, u64::MAX.into()) as u64
}

/// `rate` over `n` flows, as bytes of a round trip. PINK eq. 1 if `rate` is BW * c.
pub(super) fn window_of(rate: u64, rtt: Span, n: u64) -> u64 {
    let parts = NS * MILLI * n.clamp(1, 1 << 24);
    ratio(rate, rtt.as_nanos(), parts).min(MAX_WINDOW)
}

/// What keeps a window of `bytes` full, in bytes per second.
pub(super) fn rate_of(bytes: u64, rtt: Span) -> u32 {
    (bytes.saturating_mul(NS) / rtt.as_nanos().max(1)).min(u32::MAX.into()) as u32
}

/// What the payload of a segment takes on the link.
pub(super) fn time_of(payload: u64, bw: Rate) -> Span {
    Span::from_nanos(payload * 8 * NS / bw.as_bps().max(1))
}

/// The sums.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shares {
    /// BW * c, in thousandths of a byte per second.
    pub capacity: u64,
    /// n: flows that count.
    pub n: u64,
    /// n_bad: flows that count and cannot use their share.
    pub lacking: u64,
    /// What these can use together, in bytes per second.
    pub claims: u64,
}

impl Shares {
    pub fn new(capacity: u64) -> Self {
        Self { capacity, n: 0, lacking: 0, claims: 0 }
    }

    /// A flow moves from good to bad (Figure 2).
    pub fn lack(&mut self, claim: u32) {
        self.lacking += 1;
        self.claims += u64::from(claim);
    }

    /// A flow moves from bad to good (Figure 4), or stops counting.
    pub fn recover(&mut self, claim: u32) {
        self.lacking -= 1;
        self.claims -= u64::from(claim);
    }

    /// The rate that `n_good` flows share, and n_good, among `n` of which `lacking` can use `claims`.
    fn redistribute(&self, n: u64, lacking: u64, claims: u64) -> (u64, u64) {
        redistribute(self.capacity, n, lacking, claims.saturating_mul(MILLI))
    }

    /// Eq. 2 for a flow that counts: what it gets, or would get if it were good. `claim` is its own if it is bad.
    pub fn level(&self, claim: Option<u32>, rtt: Span) -> u64 {
        let (lacking, claims) = match claim {
            Some(own) => (self.lacking - 1, self.claims - u64::from(own)),
            None => (self.lacking, self.claims),
        };
        let (rate, good) = self.redistribute(self.n, lacking, claims);
        window_of(rate, rtt, good)
    }

    /// Eq. 2 for a flow that would count if it sent now, beside `others` that may do so as well.
    pub fn level_of_newcomer(&self, others: u64, rtt: Span) -> u64 {
        let (rate, good) = self.redistribute(self.n + 1 + others, self.lacking, self.claims);
        window_of(rate, rtt, good)
    }

    /// Eq. 1.
    pub fn equal(&self, rtt: Span) -> u64 {
        window_of(self.capacity, rtt, self.n)
    }
}
