//! Proportional rate reduction: how much may be sent in recovery (RFC 6937).

/// The state of RFC 6937 §3; bytes.
#[derive(Debug, Clone, Default)]
pub struct Prr {
    delivered: u64,
    pub out: u64,
    recover_fs: u64,
}

impl Prr {
    /// Recovery begins with so much in flight.
    pub fn new(flight: u64) -> Self {
        Self { delivered: 0, out: 0, recover_fs: flight }
    }

    /// `sndcnt` for this ACK.
    pub fn send_count(&mut self, delivered: u64, pipe: u64, ssthresh: u64, mss: u64) -> u64 {
        self.delivered += delivered;
        if pipe > ssthresh {
            let target =
                (u128::from(self.delivered) * u128::from(ssthresh)).div_ceil(u128::from(self.recover_fs.max(1)));
            return (target as u64).saturating_sub(self.out);
        }
        // Slow start reduction bound.
        let limit = self.delivered.saturating_sub(self.out).max(delivered) + mss;
        (ssthresh - pipe).min(limit)
    }
}
