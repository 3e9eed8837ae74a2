//! The TCP options an ACK-path element or a queue reads: MSS, window scale, timestamps (RFC 9293 §3.1 and §3.2,
//! RFC 7323), signatures (RFC 2385, RFC 5925) and the rate of explicit rate notification (document 003 §III.A).
//!
//! A signature covers the window field (RFC 2385 §2.0; RFC 5925 §5.1), so nobody on the path may write a window into a
//! signed segment: its receiver would drop it.
//!
//! The document leaves the kind of its option to IANA, which has not assigned one. This implementation uses an
//! experimental kind of RFC 4727. The identifier that RFC 6994 §3 requires after such a kind does not fit into the
//! document's 6 bytes, so a reader looks for the option only if the header bits or the ECN field announce it. Kind 254
//! cannot be used, because a SYN of RFC 7609 has an option of that kind and length.

use crate::packet::{RateNotice, Timestamps};

/// Kind of the option for explicit rate notification.
pub const ERN: u8 = 253;
/// Length of the option for explicit rate notification in bytes, including kind and length.
pub const ERN_LENGTH: u8 = 6;
const END: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const TIMESTAMPS: u8 = 8;
/// Kind of the option of TCP-MD5 (RFC 2385 §3.0).
const MD5: u8 = 19;
/// Kind of the option of TCP-AO (RFC 5925 §2.2).
const AO: u8 = 29;
/// The options field of most segments: two NOPs, then timestamps.
const STAMPED: [u8; 4] = [NOP, NOP, TIMESTAMPS, 10];

/// The options which are present with a valid length; of several options of one kind the first counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TcpOptions {
    /// Maximum segment size in bytes.
    pub mss: Option<u16>,
    /// Window scale as it was sent, 0 to 255 (RFC 7323 §2.3 limits its use to 14).
    pub window_scale: Option<u8>,
    /// Timestamps.
    pub timestamps: Option<Timestamps>,
    /// Window and round trip time from explicit rate notification.
    pub rate: Option<RateNotice>,
    /// The segment has a signature, of whatever length: TCP-MD5 or TCP-AO.
    pub signed: bool,
}

impl TcpOptions {
    /// Parses an options field.
    pub fn parse(field: &[u8]) -> Self {
        let mut options = Self::default();
        Self::each(field).for_each(|(kind, data)| options.take(kind, data));
        options
    }

    /// Returns the options of a field, each as its kind and what follows kind and length. They end before one with an invalid
    /// length, since the next one cannot be found.
    #[inline]
    pub fn each(mut field: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
        std::iter::from_fn(move || {
            while let [NOP, rest @ ..] = field {
                field = rest;
            }
            let [kind, length, rest @ ..] = field else { return None };
            let length = usize::from(*length).checked_sub(2).filter(|_| *kind != END)?;
            let (data, rest) = rest.split_at_checked(length)?;
            field = rest;
            Some((*kind, data))
        })
    }

    /// Returns whether an options field has a signature.
    pub fn are_signed(field: &[u8]) -> bool {
        let only_stamps = field.len() == 12 && field.starts_with(&STAMPED);
        !field.is_empty() && !only_stamps && Self::parse(field).signed
    }

    fn take(&mut self, kind: u8, data: &[u8]) {
        match (kind, data) {
            (MD5 | AO, _) => self.signed = true,
            (MSS, &[a, b]) => self.mss = self.mss.or(Some(u16::from_be_bytes([a, b]))),
            (WINDOW_SCALE, &[shift]) => self.window_scale = self.window_scale.or(Some(shift)),
            (TIMESTAMPS, &[a, b, c, d, e, f, g, h]) => {
                let stamps =
                    Timestamps { val: u32::from_be_bytes([a, b, c, d]), ecr: u32::from_be_bytes([e, f, g, h]) };
                self.timestamps = self.timestamps.or(Some(stamps));
            }
            (ERN, &[a, b, c, d]) => self.rate = self.rate.or(RateNotice::from_bytes([a, b, c, d])),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_of_a_linux_syn_are_read() {
        let field = [2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 1, 3, 3, 7];
        let expected = TcpOptions {
            mss: Some(1460),
            window_scale: Some(7),
            timestamps: Some(Timestamps { val: 1, ecr: 2 }),
            rate: None,
            signed: false,
        };
        assert_eq!(TcpOptions::parse(&field), expected);
    }

    #[test]
    fn signatures_are_found_wherever_they_stand() {
        let stamps = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
        let md5 = [&[1, 1, 19, 18][..], &[7; 16]].concat();
        let ao = [&[29, 16, 100, 100][..], &[7; 12]].concat();
        for field in [md5.clone(), ao.clone(), [&stamps[..], &md5].concat(), [&ao[..], &stamps].concat()] {
            assert!(TcpOptions::are_signed(&field) && TcpOptions::parse(&field).signed, "{field:?}");
        }
        // Nothing, timestamps alone, a 19 within timestamps, and an option behind the end of the list.
        for field in [&[][..], &stamps, &[1, 1, 8, 10, 19, 18, 0, 1, 29, 4, 0, 2], &[0, 0, 19, 18], &[1, 1, 5, 2]] {
            assert!(!TcpOptions::are_signed(field), "{field:?}");
        }
    }

    #[test]
    fn nothing_after_the_end_of_the_list_counts() {
        assert_eq!(TcpOptions::parse(&[1, 1, 0, 2, 4, 5, 180]), TcpOptions::default());
    }

    #[test]
    fn a_length_that_cannot_be_ends_the_reading() {
        for broken in [&[3, 3, 7, 2][..], &[3, 3, 7, 2, 0, 5, 180], &[3, 3, 7, 2, 1, 5, 180], &[3, 3, 7, 2, 9, 5, 180]]
        {
            let expected = TcpOptions { window_scale: Some(7), ..TcpOptions::default() };
            assert_eq!(TcpOptions::parse(broken), expected, "{broken:?}");
        }
    }

    #[test]
    fn an_option_of_the_wrong_length_is_skipped_and_the_first_of_two_counts() {
        let field = [2, 3, 9, 3, 4, 1, 1, 2, 4, 5, 180, 2, 4, 1, 1];
        assert_eq!(TcpOptions::parse(&field), TcpOptions { mss: Some(1460), ..TcpOptions::default() });
    }

    #[test]
    fn a_rate_is_read_beside_timestamps() {
        // 10720 B in 100 ms, after the timestamps and two NOPs.
        let field = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 1, 1, 253, 6, 0x29, 0xe0, 0, 100];
        let rate = TcpOptions::parse(&field).rate.unwrap();
        assert_eq!((rate.cwnd().get(), rate.rtt_ms()), (10_720, 100));
        // With a wrong length or without a round trip time the option is ignored.
        assert_eq!(TcpOptions::parse(&[253, 5, 0x29, 0xe0, 0]).rate, None);
        assert_eq!(TcpOptions::parse(&[253, 6, 0x29, 0xe0, 0, 0]).rate, None);
    }
}
