//! The scoreboard of the sender's flight: which bytes arrived beyond a gap, which are lost, and which were
//! retransmitted.
//!
//! RFC 6675 §4 is implemented with edges instead of flags for each segment. A byte is *lost* if it is below `lost_edge`
//! and not SACKed; one edge suffices because every byte below a lost byte is SACKed or lost as well. A byte is
//! *retransmitted* if it is below `high_rxt` and not SACKed. After a timeout `lost_edge` is the end of the flight.
//!
//! With [`Rack`] the answers come from the times at which segments were sent.

use super::rack::Rack;
use super::ranges::Ranges;
use penstock_core::units::Instant;
use std::ops::Range;

const DUP_THRESH: usize = 3; // RFC 6675 §2

/// The scoreboard of one sender.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scoreboard {
    sacked: Ranges,
    lost_edge: u64,
    high_rxt: u64,
    rescued: bool,
    /// RACK (RFC 8985), which replaces the edges; `None` without it.
    pub rack: Option<Box<Rack>>,
}

impl Scoreboard {
    /// Creates a scoreboard that detects losses with RACK; the first byte has the number `first`.
    pub fn with_rack(first: u64) -> Self {
        Self { rack: Some(Box::new(Rack::new(first))), ..Self::default() }
    }

    /// Returns the number of bytes of memory on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.sacked.heap_bytes() + self.rack.as_ref().map_or(0, |rack| rack.bytes())
    }

    /// Returns the number of bytes that are SACKed.
    pub fn sacked(&self) -> u64 {
        self.sacked.total()
    }

    /// Takes a SACK block; returns how many of its bytes were not SACKed before.
    pub fn sack(&mut self, block: Range<u64>) -> u64 {
        self.sacked.insert(block)
    }

    /// Handles a cumulative ACK up to `una`; returns how many of the bytes below it had been SACKed.
    pub fn advance(&mut self, una: u64) -> u64 {
        self.lost_edge = self.lost_edge.max(una);
        self.high_rxt = self.high_rxt.max(una);
        self.sacked.remove_below(una)
    }

    /// Implements IsLost of RFC 6675 §4 for all bytes at once: a byte is lost if, above it, three ranges or more than
    /// two segments' worth of bytes are SACKed. Returns true if further bytes are lost now. RACK has declared its losses
    /// before.
    pub fn update_lost(&mut self, mss: u64) -> bool {
        if let Some(rack) = &mut self.rack {
            return rack.take_found_losses();
        }
        let (mut ranges, mut bytes) = (0, 0);
        for (start, end) in self.sacked.as_slice().iter().rev() {
            ranges += 1;
            bytes += end - start;
            if ranges >= DUP_THRESH || bytes > (DUP_THRESH as u64 - 1) * mss {
                let (before, edge) = (self.lost_edge, *start);
                self.lost_edge = before.max(edge);
                return before < edge; // the byte before a range is not SACKed
            }
        }
        false
    }

    /// True if some byte at or above `una` is lost.
    pub fn any_lost(&self, una: u64) -> bool {
        if let Some(rack) = &self.rack {
            return rack.any_lost();
        }
        self.sacked.gap_from(una).0 < self.lost_edge
    }

    /// Returns the bytes from `start` on that are lost without a gap and left together, as one packet that the kernel segments
    /// late. Without RACK all that is lost counts.
    pub fn lost_run(&self, start: u64) -> u64 {
        match &self.rack {
            Some(rack) => rack.lost_run(start),
            None => self.sacked.gap_from(start).1.unwrap_or(u64::MAX).min(self.lost_edge).saturating_sub(start),
        }
    }

    /// True if something at or above `una` was retransmitted since recovery began. Not used with RACK.
    pub fn any_again(&self, una: u64) -> bool {
        self.high_rxt > una
    }

    /// Returns the number below which every byte is lost that was not SACKed. RACK has no such edge.
    pub fn lost_edge(&self) -> u64 {
        self.lost_edge
    }

    /// Takes back that segments are lost.
    pub fn nothing_is_lost(&mut self, una: u64) {
        self.lost_edge = una;
        self.high_rxt = una;
        if let Some(rack) = &mut self.rack {
            rack.nothing_is_lost();
        }
    }

    /// Begins loss recovery; no segment counts as retransmitted in it yet.
    pub fn begin(&mut self, una: u64) {
        self.high_rxt = una;
        self.rescued = false;
        if let Some(rack) = &mut self.rack {
            rack.forget_probe();
        }
    }

    /// Ends loss recovery.
    pub fn recovered(&mut self) {
        if let Some(rack) = &mut self.rack {
            rack.recovered();
        }
    }

    /// Handles a retransmission timeout: all bytes of the flight that are not SACKed are lost. Not used with RACK,
    /// which has a rule of its own.
    pub fn all_lost(&mut self, flight: Range<u64>) {
        self.begin(flight.start);
        self.lost_edge = flight.end;
    }

    /// Records that these bytes were retransmitted.
    pub fn retransmitted(&mut self, bytes: Range<u64>, now: Instant) {
        self.high_rxt = self.high_rxt.max(bytes.end);
        if let Some(rack) = &mut self.rack {
            rack.sent_again(bytes.start, now);
        }
    }

    /// Returns how many bytes of the flight are still on their way, SetPipe of RFC 6675 §4.
    pub fn pipe(&self, flight: Range<u64>) -> u64 {
        if let Some(rack) = &self.rack {
            return rack.pipe(flight);
        }
        let Range { start: una, end: nxt } = flight;
        if self.sacked.is_empty() && self.lost_edge <= una {
            return nxt - una;
        }
        let lost_edge = self.lost_edge.max(una);
        let not_lost = (nxt - lost_edge) - self.sacked.bytes_from(lost_edge); // few ranges are above the edge
        let high_rxt = self.high_rxt.max(una);
        not_lost + (high_rxt - una) - self.sacked.bytes_below(high_rxt)
    }

    /// Returns the gap that begins at `from`: its start, and the begin of the SACKed range after it.
    pub fn sacked_gap(&self, from: u64) -> (u64, Option<u64>) {
        self.sacked.gap_from(from)
    }

    /// Returns the next lost bytes that were not retransmitted yet, at most `mss` of them: NextSeg rule 1 of RFC 6675
    /// §4.
    pub fn next_lost(&mut self, mss: u64) -> Option<(u64, u64)> {
        if let Some(rack) = &mut self.rack {
            return rack.next_lost();
        }
        let (start, resume) = self.sacked.gap_from(self.high_rxt);
        (start < self.lost_edge).then(|| (start, (start + mss).min(resume.unwrap_or(u64::MAX)).min(self.lost_edge)))
    }

    /// Returns bytes to retransmit if there is no new data: NextSeg rules 3 and 4. These are bytes which are not lost
    /// but below a SACKed range, and once per recovery the last bytes of the flight. RACK-TLP has its probe for this
    /// purpose.
    pub fn next_spare(&mut self, mss: u64, nxt: u64) -> Option<(u64, u64)> {
        if self.rack.is_some() {
            return None;
        }
        let highest = self.sacked.as_slice().last().map_or(0, |(_, end)| *end);
        let (start, resume) = self.sacked.gap_from(self.high_rxt);
        if start < highest {
            let end = (start + mss).min(resume.unwrap_or(u64::MAX));
            self.high_rxt = end;
            return Some((start, end));
        }
        let (last, resume) = self.sacked.gap_from(nxt.saturating_sub(mss).max(self.high_rxt));
        if self.rescued || last >= nxt {
            return None;
        }
        self.rescued = true;
        Some((last, resume.unwrap_or(nxt)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    const MSS: u64 = 1000;

    /// A flight of ten segments, [0, 10000), of which the given segments were SACKed.
    fn board(segments: &[u64]) -> Scoreboard {
        let mut board = Scoreboard::default();
        segments.iter().for_each(|n| assert_eq!(board.sack(n * MSS..(n + 1) * MSS), MSS));
        board.update_lost(MSS);
        board
    }

    #[test]
    fn three_separate_ranges_above_make_a_loss() {
        assert!(!board(&[2, 4]).any_lost(0));
        let mut board = board(&[2, 4, 6]);
        assert!(board.any_lost(0));
        assert_eq!(board.next_lost(MSS), Some((0, 1000)));
    }

    #[test]
    fn more_than_two_segments_above_make_a_loss() {
        assert!(!board(&[1, 2]).any_lost(0));
        assert!(board(&[1, 2, 3]).any_lost(0));
    }

    #[test]
    fn pipe_counts_what_is_neither_sacked_nor_lost_and_what_was_sent_again() {
        // Segments 1, 3, 4 and 5 are SACKed: 0 and 2 are lost, 6 to 9 are in flight.
        let mut board = board(&[1, 3, 4, 5]);
        board.begin(0);
        assert_eq!(board.pipe(0..10 * MSS), 4 * MSS);
        board.retransmitted(0..MSS, Instant::ZERO);
        assert_eq!(board.pipe(0..10 * MSS), 5 * MSS);
        assert_eq!(board.next_lost(MSS), Some((2 * MSS, 3 * MSS)));
    }

    #[test]
    fn a_timeout_makes_everything_lost_that_was_not_sacked() {
        let mut board = board(&[8]);
        board.all_lost(0..10 * MSS);
        assert_eq!(board.pipe(0..10 * MSS), 0);
        board.retransmitted(0..8 * MSS, Instant::ZERO);
        assert_eq!(board.next_lost(MSS), Some((9 * MSS, 10 * MSS)));
    }

    #[test]
    fn the_rescue_is_sent_once() {
        // Segments 1 to 3 are SACKed and 0 was retransmitted; nothing above 4 to 9 is SACKed.
        let mut board = board(&[1, 2, 3]);
        board.begin(0);
        board.retransmitted(0..MSS, Instant::ZERO);
        assert_eq!(board.next_lost(MSS), None);
        assert_eq!(board.next_spare(MSS, 10 * MSS), Some((9 * MSS, 10 * MSS)));
        assert_eq!(board.next_spare(MSS, 10 * MSS), None);
    }

    /// RFC 6675 §5.1: after a timeout everything up to the end of the flight is lost, and what is sent later is not.
    /// The flight ends within a segment, and data sent later begins at that place.
    #[test]
    fn nothing_beyond_the_lost_edge_is_sent_again() {
        let mut board = Scoreboard::default();
        board.all_lost(0..2500);
        for wanted in [(0, 1000), (1000, 2000), (2000, 2500)] {
            assert_eq!(board.next_lost(MSS), Some(wanted));
            board.retransmitted(wanted.0..wanted.1, Instant::ZERO);
        }
        assert_eq!(board.next_lost(MSS), None);
        assert_eq!(board.pipe(0..3500), 3500, "what was sent again, and a new segment");
    }

    /// RFC 9937 §6.2 is safe to send only if an ACK reveals no further loss. SACKs of 1, 2 and 3 say that 0 is lost, that
    /// of 4 says nothing new, and those of 6, 7 and 8 say that 5 is lost.
    #[test]
    fn a_loss_is_found_once() {
        let mut board = Scoreboard::default();
        for (segments, found) in
            [(1..4, true), (1..4, false), (4..5, false), (6..8, false), (8..9, true), (8..9, false)]
        {
            board.sack(segments.start * MSS..segments.end * MSS);
            assert_eq!(board.update_lost(MSS), found, "{segments:?}");
        }
    }
}
