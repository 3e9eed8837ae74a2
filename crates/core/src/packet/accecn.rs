//! Accurate ECN in the TCP header: the option with counters of bytes, and the field ACE of three flags.
//!
//! Source: RFC 9768 §3.2.2 (Figure 3), §3.2.3 (Figure 4, Table 5).

/// The flag AE in byte 12 of the TCP header, beside the data offset.
pub const AE: u8 = 0x01;

/// How many payload bytes arrived with each ECN field, modulo 2^24 in an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ByteCounters {
    /// Bytes that arrived with ECT(0).
    pub ect0: u32,
    /// Bytes that arrived with CE.
    pub ce: u32,
    /// Bytes that arrived with ECT(1).
    pub ect1: u32,
}

/// An AccECN option: up to three counters of 24 bits, those of ECT(0) first (order 0) or those of ECT(1) first (order 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AccEcn {
    ect1_first: bool,
    count: u8,
    /// The fields in the order of the option; zero beyond `count`.
    fields: [u32; 3],
}

const FIELD: u32 = 0x00ff_ffff;

impl AccEcn {
    /// The kind of an option in order 0.
    pub const KIND0: u8 = 172;
    /// The kind of an option in order 1.
    pub const KIND1: u8 = 174;

    /// Makes an option with the first `count` fields of an order, three at most.
    pub fn new(ect1_first: bool, count: u8, counters: &ByteCounters) -> Self {
        let ByteCounters { ect0, ce, ect1 } = *counters;
        let mut fields = if ect1_first { [ect1, ce, ect0] } else { [ect0, ce, ect1] };
        let count = count.min(3);
        for (place, field) in fields.iter_mut().enumerate() {
            *field = if place < usize::from(count) { *field & FIELD } else { 0 };
        }
        Self { ect1_first, count, fields }
    }

    /// True if the counter of ECT(1) is the first.
    pub fn ect1_first(&self) -> bool {
        self.ect1_first
    }

    /// Returns the fields in their order.
    pub fn fields(&self) -> &[u32] {
        &self.fields[..usize::from(self.count)]
    }

    /// Returns the counter of bytes that arrived with ECT(0), if the option has it.
    pub fn ect0(&self) -> Option<u32> {
        self.fields().get(if self.ect1_first { 2 } else { 0 }).copied()
    }

    /// Returns the counter of bytes that arrived with CE, if the option has it.
    pub fn ce(&self) -> Option<u32> {
        self.fields().get(1).copied()
    }

    /// Returns the counter of bytes that arrived with ECT(1), if the option has it.
    pub fn ect1(&self) -> Option<u32> {
        self.fields().get(if self.ect1_first { 0 } else { 2 }).copied()
    }

    /// Returns the length of the option, without padding (Table 5).
    pub fn length(&self) -> u8 {
        2 + 3 * self.count
    }

    /// Returns the bytes of the option; the first [`AccEcn::length`] count.
    pub fn to_bytes(self) -> [u8; 11] {
        let mut bytes = [0; 11];
        (bytes[0], bytes[1]) = (if self.ect1_first { Self::KIND1 } else { Self::KIND0 }, self.length());
        for (place, field) in bytes[2..].chunks_mut(3).zip(self.fields) {
            place.copy_from_slice(&field.to_be_bytes()[1..]);
        }
        bytes
    }

    /// Reads an option that begins with its kind and its length. A length that is not in Table 5 counts for the whole
    /// fields that fit (§3.2.3). `None` if it is another option, or cut off.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (&[kind, length], rest) = bytes.split_first_chunk::<2>()?;
        let ect1_first = match kind {
            Self::KIND0 => false,
            Self::KIND1 => true,
            _ => return None,
        };
        let rest = rest.get(..usize::from(length).checked_sub(2)?)?;
        let mut found = Self { ect1_first, ..Self::default() };
        for (place, field) in found.fields.iter_mut().zip(rest.chunks_exact(3)) {
            *place = u32::from_be_bytes([0, field[0], field[1], field[2]]);
            found.count += 1;
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTERS: ByteCounters = ByteCounters { ect0: 0x0101_0203, ce: 0x0004_0506, ect1: 0x0007_0809 };

    /// Figure 4 and Table 5: kinds, lengths, and the order of the fields in each.
    #[test]
    fn fields_stand_in_two_orders_and_may_be_left_out_from_the_tail() {
        let bytes = |ect1_first, count| {
            let option = AccEcn::new(ect1_first, count, &COUNTERS);
            option.to_bytes()[..usize::from(option.length())].to_vec()
        };
        assert_eq!(bytes(false, 3), [172, 11, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(bytes(true, 3), [174, 11, 7, 8, 9, 4, 5, 6, 1, 2, 3]);
        assert_eq!(bytes(false, 2), [172, 8, 1, 2, 3, 4, 5, 6]);
        assert_eq!(bytes(true, 1), [174, 5, 7, 8, 9]);
        assert_eq!(bytes(true, 0), [174, 2]);
        let all = |option: AccEcn| (option.ect0(), option.ce(), option.ect1());
        assert_eq!(all(AccEcn::new(false, 2, &COUNTERS)), (Some(0x01_0203), Some(0x04_0506), None));
        assert_eq!(all(AccEcn::new(true, 1, &COUNTERS)), (None, None, Some(0x07_0809)));
    }

    #[test]
    fn an_option_is_read_as_it_was_written() {
        for ect1_first in [false, true] {
            for count in 0..=3 {
                let option = AccEcn::new(ect1_first, count, &COUNTERS);
                assert_eq!(AccEcn::from_bytes(&option.to_bytes()), Some(option));
            }
        }
    }

    /// §3.2.3: of another length the whole fields count. What is cut off, or is another option, is none.
    #[test]
    fn other_lengths_are_read_as_far_as_whole_fields_fit() {
        let read = |bytes: &[u8]| AccEcn::from_bytes(bytes).map(|option| option.fields().to_vec());
        assert_eq!(read(&[172, 7, 0, 0, 1, 9, 9]), Some(vec![1]));
        assert_eq!(read(&[174, 14, 0, 0, 1, 0, 0, 2, 0, 0, 3, 9, 9, 9]), Some(vec![1, 2, 3]));
        assert_eq!(read(&[172, 4, 1, 1]), Some(vec![]));
        for bytes in [&[172, 5, 0, 0][..], &[172, 1], &[172], &[], &[173, 2]] {
            assert_eq!(read(bytes), None, "{bytes:?}");
        }
    }
}
