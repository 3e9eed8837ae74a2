//! Shares: eq. 1, eq. 2 and its states (Table 1, Figures 2 to 4), from sums over all flows that are kept up to date.
//!
//! The paper keeps BW_free, what *bad* flows leave, as a number that goes stale when n changes, counts the
//! redistributed part of a bad flow's share as wasted once more, and applies c twice. Here the *claims* of bad flows
//! are kept instead: what each is able to use. Then
//!
//! ```text
//! BW_free = c * BW * n_bad / n - claims            (never below zero)
//! eq. 2   = c * BW / n + BW_free / n_good = (c * BW - claims) / n_good
//! ```
//!
//! holds for any arrival or departure of flows. A bad flow is compared with the share that it would get if it were
//! good, so the shares settle at the max-min allocation: no flow gets less than it asks for while another gets more
//! than that flow.

use crate::allocation::{Members, ratio, rest};
use crate::units::{Rate, Span};

/// Largest window that TCP can advertise (RFC 7323 §2.3).
pub(super) const MAX_WINDOW: u64 = 0xffff << 14;
/// Rates are kept in thousandths of a byte per second, so that eq. 1 has one exact floor.
pub(super) const MILLI: u64 = 1000;
/// Bound of the error that a flow carries over, in segments: a step of two segments and a rounding of nearly one. With a
/// smaller bound a part of the error would be lost before it is used.
pub(super) const CREDIT: u64 = 3;
const NS: u64 = 1_000_000_000;
/// Denominator of `c` as an integer.
const C_UNIT: f64 = 1e9;

/// Returns the payload that may be given out per second: (BW - reserve) * c, in thousandths of a byte.
pub(super) fn payload_rate(bw: Rate, reserve: Option<Rate>, c: f64) -> u64 {
    let bps = bw.as_bps().saturating_sub(reserve.map_or(0, Rate::as_bps)).max(1);
    let exact = u128::from(bps) * (c * C_UNIT + 0.5) as u128 * u128::from(MILLI) / (8 * C_UNIT as u128);
    exact.clamp(1, u64::MAX.into()) as u64
}

/// Returns the rate on the wire in bits per second of a payload in bytes per second: the inverse of [`payload_rate`].
pub(super) fn wire_rate(payload: u64, c: f64) -> u64 {
    let parts = (c * C_UNIT + 0.5).max(1.0) as u128;
    (u128::from(payload) * 8 * C_UNIT as u128 / parts).min(u64::MAX.into()) as u64
}

/// Returns `rate` divided by `n` flows, in bytes per round trip: PINK eq. 1 if `rate` is BW * c.
pub(super) fn window_of(rate: u64, rtt: Span, n: u64) -> u64 {
    let parts = NS * MILLI * n.clamp(1, 1 << 24);
    ratio(rate, rtt.as_nanos(), parts).min(MAX_WINDOW)
}

/// Returns the rate of a flow which fills a window of `bytes`, in bytes per second.
pub(super) fn rate_of(bytes: u64, rtt: Span) -> u32 {
    (bytes.saturating_mul(NS) / rtt.as_nanos().max(1)).min(u32::MAX.into()) as u32
}

/// Returns the transmission time of a segment's payload on the link.
pub(super) fn time_of(payload: u64, bw: Rate) -> Span {
    Span::from_nanos(payload * 8 * NS / bw.as_bps().max(1))
}

/// The sums over all flows from which every share follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shares {
    /// BW * c, in thousandths of a byte per second.
    pub capacity: u64,
    /// Number of flows that count, n.
    pub n: u64,
    /// Number of flows that count and cannot use their share, n_bad.
    pub lacking: u64,
    /// Sum of what the n_bad flows can use, in bytes per second.
    pub claims: u64,
    /// Flows that keep to advice and are not in n; claims in thousandths of a byte of payload per second.
    pub advised: Members,
}

impl Shares {
    pub fn new(capacity: u64) -> Self {
        Self { capacity, n: 0, lacking: 0, claims: 0, advised: Members::default() }
    }

    /// Moves a flow from good to bad, with its claim in bytes per second (Figure 2).
    pub fn lack(&mut self, claim: u32) {
        self.lacking += 1;
        self.claims += u64::from(claim);
    }

    /// Moves a flow from bad to good (Figure 4), or removes a bad flow that stops counting.
    pub fn recover(&mut self, claim: u32) {
        self.lacking -= 1;
        self.claims -= u64::from(claim);
    }

    /// Returns the rate which the good flows share, and their number, if `lacking` of `n` flows can use only `claims`.
    fn rest(&self, n: u64, lacking: u64, claims: u64) -> (u64, u64) {
        let own = Members { n, lacking, claims: claims.saturating_mul(MILLI) };
        let all = own.and(self.advised);
        rest(self.capacity, all.n, all.lacking, all.claims)
    }

    /// Computes eq. 2 for a flow that counts, as if it were good, in bytes. `claim` is the flow's claim if it is bad.
    pub fn level(&self, claim: Option<u32>, rtt: Span) -> u64 {
        let (lacking, claims) = match claim {
            Some(own) => (self.lacking - 1, self.claims - u64::from(own)),
            None => (self.lacking, self.claims),
        };
        let (rate, good) = self.rest(self.n, lacking, claims);
        window_of(rate, rtt, good)
    }

    /// Computes eq. 2 in bytes for a flow that would count if it sent now, together with `others` that may send as
    /// well.
    pub fn level_of_newcomer(&self, others: u64, rtt: Span) -> u64 {
        let (rate, good) = self.rest(self.n + 1 + others, self.lacking, self.claims);
        window_of(rate, rtt, good)
    }

    /// Computes eq. 1, in bytes.
    pub fn equal(&self, rtt: Span) -> u64 {
        window_of(self.capacity, rtt, self.n + self.advised.n - self.advised.lacking)
    }
}
