//! The Internet checksum, updated in place when one word of what it covers changes (RFC 1624 §3, eqn. 3).
//!
//! The older forms of this equation (RFC 1071, RFC 1141) can turn a right 0x0000 into a wrong 0xffff; this one does not.

/// The checksum `HC'` after the 16-bit word `m` became `m'`: `HC' = ~(~HC + ~m + m')`.
pub const fn update(checksum: u16, old: u16, new: u16) -> u16 {
    let mut sum = !checksum as u32 + !old as u32 + new as u32;
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::update;

    /// RFC 1624 §4: 0xdd2f with 0x5555 turned into 0x3285 becomes 0x0000, where the equation of RFC 1141 gives 0xffff.
    #[test]
    fn the_example_of_rfc_1624() {
        assert_eq!(update(0xdd2f, 0x5555, 0x3285), 0x0000);
    }
}
