"""HighSpeed TCP: RFC 3649 §5 with the table of Appendix B."""

from __future__ import annotations

from bisect import bisect_right
from math import log

from penstock.reference.cc import Ack, Control

# The window from which on the increase is 1, 2, 3, ... segments a round trip.
ROWS = [
    *(38, 118, 221, 347, 495, 663, 851, 1058, 1284, 1529, 1793, 2076, 2378, 2699, 3039, 3399, 3778, 4177, 4596, 5036),
    *(5497, 5979, 6483, 7009, 7558, 8130, 8726, 9346, 9991, 10661, 11358, 12082, 12834, 13614, 14424, 15265, 16137),
    *(17042, 17981, 18955, 19965, 21013, 22101, 23230, 24402, 25618, 26881, 28193, 29557, 30975, 32450, 33986, 35586),
    *(37253, 38992, 40808, 42707, 44694, 46776, 48961, 51258, 53677, 56230, 58932, 61799, 64851, 68113, 71617, 75401),
    *(79517, 84035, 89053, 94717),
]


def a(w: float) -> float:
    """Segments more each round trip: the table, and a straight line between its rows."""
    row = bisect_right(ROWS, w)
    if row == 0 or row == len(ROWS):
        return max(row, 1)
    return row + (w - ROWS[row - 1]) / (ROWS[row] - ROWS[row - 1])


def b(w: float) -> float:
    """The part of the window that a loss takes: 0.5 at 38 segments, 0.1 at 83,000."""
    w = min(max(w, 38), ROWS[-1])
    return (0.1 - 0.5) * (log(w) - log(38)) / (log(83_000) - log(38)) + 0.5


class HighSpeed(Control):
    """Both depend on the window."""

    timeout_by_window = True

    def avoid_congestion(self, ack: Ack, segments: float) -> None:
        """a(cwnd) each round trip."""
        del ack
        self.cwnd += segments / self.cwnd * a(self.cwnd)

    def kept(self, flight: float) -> float:
        """1 - b(flight)."""
        return (1 - b(flight)) * flight
