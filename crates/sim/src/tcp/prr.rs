//! Proportional rate reduction: how many bytes may be sent in recovery (RFC 9937, which replaces RFC 6937).
//!
//! ```text
//! RecoverFS      SND.NXT - SND.UNA - bytes SACKed before this ACK + bytes acknowledged by it
//! SafeACK        SND.UNA advances, and no further loss is indicated
//! pipe > ssthresh   sndcnt = CEIL(prr_delivered ssthresh / RecoverFS) - prr_out
//! otherwise         sndcnt = MAX(prr_delivered - prr_out, DeliveredData), one SMSS more with a SafeACK (PRR-SSRB),
//!                   at most ssthresh - pipe; without a SafeACK this conserves packets (PRR-CRB)
//! nothing sent yet  sndcnt is at least one SMSS
//! cwnd           pipe + sndcnt
//! ```
//!
//! DIFFERENCE: where a timer declares segments lost, as that of RACK does, no data is delivered. The RFC changes nothing
//! then, and the window that was allowed to a larger pipe would let all that is lost be sent at once. Here the window
//! follows the pipe. Pinned by `a_timer_that_finds_losses_allows_no_burst`.

/// What an ACK tells proportional rate reduction.
#[derive(Debug, Clone, Copy)]
pub struct Delivery {
    /// Bytes that this ACK newly acknowledges or SACKs (DeliveredData).
    pub bytes: u64,
    /// The cumulative acknowledgment advances, and no further loss is indicated (SafeACK).
    pub safe: bool,
}

/// What bounds the sender when an ACK arrives, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// What is in flight (pipe).
    pub pipe: u64,
    /// The window at which recovery ends.
    pub ssthresh: u64,
    /// A full segment (SMSS).
    pub mss: u64,
}

/// The state variables of RFC 9937 §6, in bytes.
#[derive(Debug, Clone, Default)]
pub struct Prr {
    delivered: u64,
    pub out: u64,
    recover_fs: u64,
}

impl Prr {
    /// Begins recovery with `recover_fs` bytes in flight (RecoverFS).
    pub fn new(recover_fs: u64) -> Self {
        Self { delivered: 0, out: 0, recover_fs }
    }

    /// Returns `sndcnt`, the bytes that may be sent after this ACK.
    pub fn send_count(&mut self, delivery: Delivery, bounds: Bounds) -> u64 {
        let Bounds { pipe, ssthresh, mss } = bounds;
        self.delivered += delivery.bytes;
        let count = if pipe > ssthresh {
            let target =
                (u128::from(self.delivered) * u128::from(ssthresh)).div_ceil(u128::from(self.recover_fs.max(1)));
            (target as u64).saturating_sub(self.out)
        } else {
            let limit = self.delivered.saturating_sub(self.out).max(delivery.bytes);
            (ssthresh - pipe).min(limit + if delivery.safe { mss } else { 0 })
        };
        if self.out == 0 && count == 0 { mss } else { count }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;

    fn delivered(bytes: u64, safe: bool) -> Delivery {
        Delivery { bytes, safe }
    }

    /// Bounds in segments of `mss` bytes.
    fn bounds(pipe: u64, ssthresh: u64, mss: u64) -> Bounds {
        Bounds { pipe: pipe * mss, ssthresh: ssthresh * mss, mss }
    }

    /// Takes ACKs which each deliver one segment; returns, after each of them, the pipe and the number of segments
    /// sent. As in the figures of §8, everything is counted in segments, and lost segments are not in the pipe.
    fn recovery(flight: u64, lost: u64, ssthresh: u64, acks: u64, safe: bool) -> (Vec<u64>, Vec<u64>) {
        let mut prr = Prr::new(flight);
        let (mut pipe, mut pipes, mut sent) = (flight - lost, Vec::new(), Vec::new());
        for _ in 0..acks {
            pipe -= 1;
            let segments = prr.send_count(delivered(1, safe), bounds(pipe, ssthresh, 1));
            prr.out += segments;
            pipe += segments;
            pipes.push(pipe);
            sent.push(segments);
        }
        (pipes, sent)
    }

    /// sndcnt = CEIL(prr_delivered * ssthresh / RecoverFS) - prr_out. One of 20 segments is lost, and ssthresh is 10.
    /// The first ACK and then every other one sends a segment. At the 17th ACK the pipe is at ssthresh, where the bound
    /// leaves no room; from then on each ACK sends one segment, and 10 stay in flight.
    #[test]
    fn every_other_ack_sends_a_segment_while_the_pipe_is_above_ssthresh() {
        let (pipes, sent) = recovery(20, 1, 10, 18, false);
        assert_eq!(sent, [1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1]);
        assert_eq!(pipes, [19, 18, 18, 17, 17, 16, 16, 15, 15, 14, 14, 13, 13, 12, 12, 11, 10, 10]);
    }

    /// ssthresh is seven tenths of the flight, as with CUBIC: after n ACKs ceil(0.7 n) segments were sent.
    #[test]
    fn the_proportion_is_that_of_ssthresh_to_what_was_in_flight() {
        let (_, sent) = recovery(20, 1, 14, 16, false);
        let out: Vec<u64> = (1..=sent.len()).map(|n| sent[..n].iter().sum()).collect();
        assert_eq!(out[..5], [1, 2, 3, 3, 4]);
        assert_eq!(out[9], 7);
    }

    /// 15 of 20 segments are lost, the pipe is 5 and ssthresh 10. While further losses are indicated, each ACK lets one
    /// segment go for one that arrived, and the pipe does not grow (PRR-CRB).
    #[test]
    fn below_ssthresh_packets_are_conserved_without_a_safe_ack() {
        let (pipes, sent) = recovery(20, 15, 10, 4, false);
        assert_eq!((sent, pipes), (vec![1; 4], vec![5; 4]));
    }

    /// With safe ACKs the pipe grows by a segment for each of them until it is at ssthresh (PRR-SSRB).
    #[test]
    fn below_ssthresh_safe_acks_are_slow_start() {
        let (pipes, sent) = recovery(20, 15, 10, 8, true);
        assert_eq!(sent, [2, 2, 2, 2, 2, 1, 1, 1]);
        assert_eq!(pipes, [6, 7, 8, 9, 10, 10, 10, 10]);
    }

    /// The bound includes what was not sent before: three ACKs deliver three segments while the application has no
    /// data, so the third may send 3 + 1 segments, but no more than fit below ssthresh.
    #[test]
    fn what_was_not_sent_may_be_sent_later_up_to_ssthresh() {
        for (ssthresh, allowed) in [(10, 4), (6, 3)] {
            let mut prr = Prr::new(20 * MSS);
            let counts = [5, 4, 3].map(|pipe| prr.send_count(delivered(MSS, true), bounds(pipe, ssthresh, MSS)));
            assert_eq!(counts[2], allowed * MSS, "ssthresh {ssthresh}");
        }
    }

    /// An ACK that delivers several segments counts all of them: of 12 segments 3 were delivered, of which half may be
    /// sent.
    #[test]
    fn bytes_are_rounded_up_and_what_is_out_is_taken_off() {
        let mut prr = Prr::new(12_000);
        assert_eq!(prr.send_count(delivered(3001, false), bounds(9, 6, MSS)), 1501);
        prr.out = 1501;
        assert_eq!(prr.send_count(delivered(0, false), bounds(9, 6, MSS)), 0);
        prr.out = 5000;
        assert_eq!(prr.send_count(delivered(1000, false), bounds(8, 6, MSS)), 0, "more is out than the proportion");
    }

    /// With the pipe exactly at ssthresh, the bound leaves no room, but the first retransmission is sent in any case.
    #[test]
    fn the_first_retransmission_needs_no_room() {
        let mut prr = Prr::new(20_000);
        assert_eq!(prr.send_count(delivered(4000, true), bounds(10, 10, MSS)), MSS);
        prr.out = MSS;
        assert_eq!(prr.send_count(delivered(4000, true), bounds(10, 10, MSS)), 0);
    }

    #[test]
    fn a_timer_that_finds_losses_allows_no_burst() {
        let mut prr = Prr::new(20 * MSS);
        prr.out = prr.send_count(delivered(4 * MSS, false), bounds(16, 10, MSS));
        assert_eq!(prr.out, 2 * MSS);
        // The timer finds 15 segments lost: the pipe falls from 18 to 3, of ssthresh 10. Two more may be sent for the
        // four that were delivered.
        assert_eq!(prr.send_count(delivered(0, false), bounds(3, 10, MSS)), 2 * MSS);
    }
}
