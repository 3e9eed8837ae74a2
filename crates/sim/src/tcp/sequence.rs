//! Sequence numbers: 64-bit numbers inside, with their low 32 bits in the header, so that comparisons never wrap.
//! Timestamps, which do wrap.

use penstock_core::units::Instant;

/// Internal numbers begin at this value plus the initial sequence number, so that a number before another one is never
/// negative.
const BASE: u64 = 1 << 32;

/// Returns the internal number of an initial sequence number.
pub fn initial(iss: u32) -> u64 {
    BASE + u64::from(iss)
}

/// Returns the internal number nearest to `near` whose low 32 bits are `wire`.
#[inline]
pub fn unwrap(wire: u32, near: u64) -> u64 {
    near.wrapping_add_signed(i64::from(wire.wrapping_sub(near as u32) as i32))
}

/// Returns the timestamp clock in microseconds (RFC 7323 §4.1 leaves the tick to the host; Linux offers microseconds as
/// well).
pub fn timestamp(now: Instant) -> u32 {
    (now.as_nanos() / 1000) as u32
}

/// True if an echoed timestamp is older than a time.
pub fn is_before(echo: u32, at: Instant) -> bool {
    (echo.wrapping_sub(timestamp(at)) as i32) < 0
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
