//! Sequence numbers: 64-bit inside, their low 32 bits on the wire, so that comparisons never wrap. Timestamps, which wrap.

use penstock_core::units::Instant;

/// Internal numbers start at this plus the initial sequence number, so that looking back never goes below zero.
const BASE: u64 = 1 << 32;

/// The internal number of an initial sequence number.
pub fn initial(iss: u32) -> u64 {
    BASE + u64::from(iss)
}

/// The internal number nearest to `near` whose low 32 bits are `wire`.
#[inline]
pub fn unwrap(wire: u32, near: u64) -> u64 {
    near.wrapping_add_signed(i64::from(wire.wrapping_sub(near as u32) as i32))
}

/// The timestamp clock: microseconds (RFC 7323 §4.1 leaves the tick to the host; Linux offers the same).
pub fn timestamp(now: Instant) -> u32 {
    (now.as_nanos() / 1000) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_continue_across_the_wrap() {
        let start = initial(u32::MAX - 1);
        assert_eq!(unwrap(2, start), start + 4);
        assert_eq!(unwrap((start - 7) as u32, start), start - 7);
    }
}
