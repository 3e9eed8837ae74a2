//! The addresses of network interfaces.

/// The hardware address of one interface (MAC-48).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mac(u64);

impl From<[u8; 6]> for Mac {
    fn from([a, b, c, d, e, f]: [u8; 6]) -> Self {
        Self(u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
    }
}

impl Mac {
    /// Reads `02:00:5e:00:53:01` or `02-00-5E-00-53-01`; `None` for any other text, and for the address of a group or of
    /// nobody.
    pub fn read(text: &str) -> Option<Self> {
        let parts = text.split(if text.contains('-') { '-' } else { ':' });
        let pair = |part: &str| {
            let hex = part.len() == 2 && part.bytes().all(|c| c.is_ascii_hexdigit());
            hex.then(|| u8::from_str_radix(part, 16).ok()).flatten()
        };
        let bytes: [u8; 6] = parts.map(pair).collect::<Option<Vec<u8>>>()?.try_into().ok()?;
        (bytes[0] & 1 == 0 && bytes != [0; 6]).then(|| bytes.into())
    }

    /// The address as a number of 48 bits.
    pub(crate) fn bits(self) -> u64 {
        self.0
    }
}
