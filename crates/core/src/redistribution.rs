//! Equal shares with redistribution: a capacity is shared by `n`, some of which cannot use their share and leave the
//! rest to the others. The sum behind eq. 2 of PINK and behind S_eff of DyBRA, kept and never walked.

/// a * b / c, at most what fits. Most often the product does, and the division is several times faster.
pub(crate) fn ratio(a: u64, b: u64, c: u64) -> u64 {
    match a.checked_mul(b) {
        Some(product) => product / c,
        None => (u128::from(a) * u128::from(b) / u128::from(c)).min(u64::MAX.into()) as u64,
    }
}

/// What the good ones share, and how many they are, among `n` of which `lacking` can use `claims` together. Those who
/// lack hold no more than an equal share each on average, or claims from before a cut would starve the good ones.
pub(crate) fn redistribute(capacity: u64, n: u64, lacking: u64, claims: u64) -> (u64, u64) {
    if lacking == 0 {
        return (capacity, n);
    }
    let equal = ratio(capacity, lacking, n.max(1));
    (capacity - claims.min(equal), n - lacking)
}
