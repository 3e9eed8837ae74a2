//! On which side of a bridge an address was seen last, so that a frame between two hosts of one side stays there, as with the
//! kernel's bridge. A table of fixed size; an address that lost its place is unknown, and its frames go to the other side.

use penstock_core::units::{Instant, Span};
use penstock_shaper::direction::Direction;

/// Number of places, a power of two.
const PLACES: usize = 4096;
/// An address is forgotten after this time, as with the kernel's bridge by default.
const AGE: Span = Span::from_secs(300);

#[derive(Debug, Clone, Copy)]
struct Known {
    address: u64,
    /// The direction of frames from there.
    direction: Direction,
    seen: Instant,
}

#[derive(Debug)]
pub struct Neighbours(Vec<Option<Known>>);

impl Default for Neighbours {
    fn default() -> Self {
        Self(vec![None; PLACES])
    }
}

fn number([a, b, c, d, e, f]: [u8; 6]) -> u64 {
    u64::from_be_bytes([0, 0, a, b, c, d, e, f])
}

fn place(address: u64) -> usize {
    // Fibonacci hashing: the upper bits of a product with 2^64 over the golden ratio.
    (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52) as usize % PLACES
}

impl Neighbours {
    /// Learns from whom a frame is, and returns whether it is for somebody on the same side.
    pub fn stays(&mut self, [to, from]: [[u8; 6]; 2], direction: Direction, now: Instant) -> bool {
        let [to, from] = [to, from].map(number);
        self.0[place(from)] = Some(Known { address: from, direction, seen: now });
        self.0[place(to)]
            .is_some_and(|known| known.address == to && known.direction == direction && now.since(known.seen) < AGE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(n: u8) -> [u8; 6] {
        [2, 0, 0, 0, 0, n]
    }

    #[test]
    fn only_frames_between_two_of_one_side_stay() {
        let mut known = Neighbours::default();
        let mut stays =
            |to, from, direction, s| known.stays([host(to), host(from)], direction, Instant::ZERO + Span::from_secs(s));
        let [down, up] = Direction::BOTH;
        assert!(!stays(1, 2, up, 0), "nobody knows 1");
        assert!(stays(2, 3, up, 1), "2 is on this side");
        assert!(!stays(2, 1, down, 1) && !stays(1, 2, up, 2), "they are on different sides");
        assert!(!stays(3, 2, up, 302), "3 was not seen for long");
        assert!(!stays(1, 2, down, 303), "2 has moved, and 1 was not seen for long");
        assert!(stays(2, 1, down, 304), "2 is on the other side now");
    }
}
