//! SipHash-2-4 with a 128-bit secret key (Aumasson and Bernstein 2012), recommended for gateways: a sender who chooses
//! ports and addresses cannot choose collisions.

/// The hash with its key, which must be secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SipHash(pub u64, pub u64);

impl SipHash {
    /// The hash of any bytes.
    pub fn of(&self, bytes: &[u8]) -> u64 {
        let mut v = [
            self.0 ^ 0x736f_6d65_7073_6575,
            self.1 ^ 0x646f_7261_6e64_6f6d,
            self.0 ^ 0x6c79_6765_6e65_7261,
            self.1 ^ 0x7465_6462_7974_6573,
        ];
        let (words, tail) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| absorb(&mut v, u64::from_le_bytes(*word)));
        let tail = tail.iter().rev().fold(0, |word, b| word << 8 | u64::from(*b));
        absorb(&mut v, tail | (bytes.len() as u64) << 56);
        v[2] ^= 0xff;
        (0..4).for_each(|_| round(&mut v));
        v[0] ^ v[1] ^ v[2] ^ v[3]
    }
}

fn absorb(v: &mut [u64; 4], word: u64) {
    v[3] ^= word;
    round(v);
    round(v);
    v[0] ^= word;
}

fn round(v: &mut [u64; 4]) {
    v[0] = v[0].wrapping_add(v[1]);
    v[2] = v[2].wrapping_add(v[3]);
    v[1] = v[1].rotate_left(13) ^ v[0];
    v[3] = v[3].rotate_left(16) ^ v[2];
    v[0] = v[0].rotate_left(32);
    v[2] = v[2].wrapping_add(v[1]);
    v[0] = v[0].wrapping_add(v[3]);
    v[1] = v[1].rotate_left(17) ^ v[2];
    v[3] = v[3].rotate_left(21) ^ v[0];
    v[2] = v[2].rotate_left(32);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn siphash_agrees_with_its_authors() {
        // Appendix A of the paper: key 00..0f, message 00..0e.
        let message: Vec<u8> = (0..15).collect();
        assert_eq!(SipHash(0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908).of(&message), 0xa129_ca61_49be_45e5);
    }

    /// The vector of the reference implementation for the input 00 01 02 03.
    #[test]
    fn four_bytes_have_the_hash_of_the_reference_implementation() {
        let key = SipHash(0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908);
        assert_eq!(key.of(&[0, 1, 2, 3]), 0xcf27_94e0_2771_87b7);
    }
}
