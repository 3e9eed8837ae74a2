//! Equal shares with redistribution: `n` members share a capacity; those that cannot use their share leave the rest to
//! the others. This is the sum in eq. 2 of PINK and S_eff of DyBRA, computed from totals without visiting the members.

/// a * b / c, at most `u64::MAX`. The product usually fits 64 bits, in which case the division is several times faster.
pub(crate) fn ratio(a: u64, b: u64, c: u64) -> u64 {
    match a.checked_mul(b) {
        Some(product) => product / c,
        None => (u128::from(a) * u128::from(b) / u128::from(c)).min(u64::MAX.into()) as u64,
    }
}

/// The capacity for the members that can use their share and the number of these members, if `lacking` of the `n`
/// members can use `claims` in total. The lacking members hold at most an equal share each on average; otherwise claims
/// from before a fall of the capacity would starve the others.
pub(crate) fn redistribute(capacity: u64, n: u64, lacking: u64, claims: u64) -> (u64, u64) {
    if lacking == 0 {
        return (capacity, n);
    }
    let equal = ratio(capacity, lacking, n.max(1));
    (capacity - claims.min(equal), n - lacking)
}
