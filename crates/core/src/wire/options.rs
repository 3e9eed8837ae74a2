//! The TCP options an ACK-path element reads: MSS, window scale, timestamps (RFC 9293 §3.1 and §3.2, RFC 7323).

const END: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const TIMESTAMPS: u8 = 8;

/// Options that were present with their right length; the first of each kind counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TcpOptions {
    /// Maximum segment size.
    pub mss: Option<u16>,
    /// Window scale, as it was sent (RFC 7323 §2.3 caps it at 14 when it is used).
    pub window_scale: Option<u8>,
    /// TSval and TSecr.
    pub timestamps: Option<(u32, u32)>,
}

impl TcpOptions {
    /// Reads an options field. An option whose length cannot be right ends the reading, for what follows cannot be
    /// found; options before it count.
    pub fn parse(mut field: &[u8]) -> Self {
        let mut options = Self::default();
        while let Some((&kind, rest)) = field.split_first() {
            match kind {
                END => break,
                NOP => field = rest,
                _ => {
                    let Some(length) = rest.first().map(|l| usize::from(*l)) else { break };
                    if length < 2 || length > field.len() {
                        break;
                    }
                    options.take(kind, &field[2..length]);
                    field = &field[length..];
                }
            }
        }
        options
    }

    fn take(&mut self, kind: u8, data: &[u8]) {
        match (kind, data) {
            (MSS, &[a, b]) => self.mss = self.mss.or(Some(u16::from_be_bytes([a, b]))),
            (WINDOW_SCALE, &[shift]) => self.window_scale = self.window_scale.or(Some(shift)),
            (TIMESTAMPS, &[a, b, c, d, e, f, g, h]) => {
                let stamps = (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]));
                self.timestamps = self.timestamps.or(Some(stamps));
            }
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
        let expected = TcpOptions { mss: Some(1460), window_scale: Some(7), timestamps: Some((1, 2)) };
        assert_eq!(TcpOptions::parse(&field), expected);
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
}
