//! Proportional rate reduction: how many bytes may be sent in recovery (RFC 6937).

/// The state variables of RFC 6937 §3, in bytes.
#[derive(Debug, Clone, Default)]
pub struct Prr {
    delivered: u64,
    pub out: u64,
    recover_fs: u64,
}

impl Prr {
    /// Begins recovery with `flight` bytes in flight (RecoverFS).
    pub fn new(flight: u64) -> Self {
        Self { delivered: 0, out: 0, recover_fs: flight }
    }

    /// Returns `sndcnt`, the bytes that may be sent after this ACK, which delivered `delivered` bytes.
    pub fn send_count(&mut self, delivered: u64, pipe: u64, ssthresh: u64, mss: u64) -> u64 {
        self.delivered += delivered;
        if pipe > ssthresh {
            let target =
                (u128::from(self.delivered) * u128::from(ssthresh)).div_ceil(u128::from(self.recover_fs.max(1)));
            return (target as u64).saturating_sub(self.out);
        }
        // The slow start reduction bound (PRR-SSRB).
        let limit = self.delivered.saturating_sub(self.out).max(delivered) + mss;
        (ssthresh - pipe).min(limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;

    /// Takes ACKs which each deliver one segment; returns, after each of them, the pipe and the number of segments
    /// sent. As in the figures of §4, everything is counted in segments, and lost segments are not in the pipe.
    fn recovery(flight: u64, lost: u64, ssthresh: u64, acks: u64) -> (Vec<u64>, Vec<u64>) {
        let mut prr = Prr::new(flight);
        let (mut pipe, mut pipes, mut sent) = (flight - lost, Vec::new(), Vec::new());
        for _ in 0..acks {
            pipe -= 1;
            let segments = prr.send_count(1, pipe, ssthresh, 1);
            prr.out += segments;
            pipe += segments;
            pipes.push(pipe);
            sent.push(segments);
        }
        (pipes, sent)
    }

    /// §3: sndcnt = CEIL(prr_delivered * ssthresh / RecoverFS) - prr_out. One of 20 segments is lost, and ssthresh is
    /// 10. The first ACK and then every other one sends a segment. At the 17th ACK the pipe is at ssthresh, where the
    /// bound leaves no room; from then on each ACK sends one segment, and 10 stay in flight.
    #[test]
    fn every_other_ack_sends_a_segment_while_the_pipe_is_above_ssthresh() {
        let (pipes, sent) = recovery(20, 1, 10, 18);
        assert_eq!(sent, [1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1]);
        assert_eq!(pipes, [19, 18, 18, 17, 17, 16, 16, 15, 15, 14, 14, 13, 13, 12, 12, 11, 10, 10]);
    }

    /// ssthresh is seven tenths of the flight, as with CUBIC: after n ACKs ceil(0.7 n) segments were sent.
    #[test]
    fn the_proportion_is_that_of_ssthresh_to_what_was_in_flight() {
        let (_, sent) = recovery(20, 1, 14, 16);
        let out: Vec<u64> = (1..=sent.len()).map(|n| sent[..n].iter().sum()).collect();
        assert_eq!(out[..5], [1, 2, 3, 3, 4]);
        assert_eq!(out[9], 7);
    }

    /// The slow start reduction bound applies: 15 of 20 segments are lost, the pipe is 5 and ssthresh 10, with limit =
    /// MAX(prr_delivered - prr_out, DeliveredData) + MSS. The first ACK sends two segments, and so does the second: 2
    /// delivered - 2 out is less than the 1 segment that it delivers. The pipe grows by one for each ACK until it is
    /// 10.
    #[test]
    fn below_ssthresh_it_is_slow_start() {
        let (pipes, sent) = recovery(20, 15, 10, 8);
        assert_eq!(sent, [2, 2, 2, 2, 2, 1, 1, 1]);
        assert_eq!(pipes, [6, 7, 8, 9, 10, 10, 10, 10]);
    }

    /// The bound includes what was not sent before: three ACKs deliver three segments while the application has no
    /// data, so the third may send 3 + 1 segments, but no more than fit below ssthresh.
    #[test]
    fn what_was_not_sent_may_be_sent_later_up_to_ssthresh() {
        for (ssthresh, allowed) in [(10, 4), (6, 3)] {
            let mut prr = Prr::new(20 * MSS);
            let counts = [5, 4, 3].map(|pipe| prr.send_count(MSS, pipe * MSS, ssthresh * MSS, MSS));
            assert_eq!(counts[2], allowed * MSS, "ssthresh {ssthresh}");
        }
    }

    /// An ACK that delivers several segments counts all of them: of 12 segments 3 were delivered, of which half may be
    /// sent.
    #[test]
    fn bytes_are_rounded_up_and_what_is_out_is_taken_off() {
        let mut prr = Prr::new(12_000);
        assert_eq!(prr.send_count(3001, 9000, 6000, MSS), 1501);
        prr.out = 1501;
        assert_eq!(prr.send_count(0, 9000, 6000, MSS), 0);
        prr.out = 5000;
        assert_eq!(prr.send_count(1000, 8000, 6000, MSS), 0, "more is out than the proportion");
    }

    /// With the pipe exactly at ssthresh, the bound applies and leaves no room.
    #[test]
    fn at_ssthresh_nothing_is_sent() {
        assert_eq!(Prr::new(20_000).send_count(4000, 10_000, 10_000, MSS), 0);
    }
}
