"""Compound TCP: Tan, Song, Zhang and Sridharan, INFOCOM 2006, eq. (2) to (8)."""

from __future__ import annotations

from penstock.reference.cc import Ack, Control
from penstock.reference.cc.vegas import Delay

ALPHA, BETA, K = 1 / 8, 1 / 2, 3 / 4
GAMMA, ZETA = 30, 1


class Compound(Control):
    """`cwnd` is the sum of both windows, `dwnd` the part that delay controls."""

    timeout_by_window = True

    def __init__(self) -> None:
        super().__init__()
        self.delay, self.dwnd = Delay(), 0.0

    def on_ack(self, ack: Ack) -> None:
        """Once in a round trip the part that delay controls, then Reno's with the sum."""
        part = self.delay.at_end_of_round(ack)
        if part is not None and self.cwnd >= self.ssthresh:
            diff = self.cwnd * part
            more = max(ALPHA * self.cwnd**K - 1, 0) if diff < GAMMA else -min(ZETA * diff, self.dwnd)
            self.cwnd, self.dwnd = self.cwnd + more, self.dwnd + more
        super().on_ack(ack)

    def on_recovered(self, now: float) -> None:
        """Half of the sum stays: half of Reno's window, and the rest in the other."""
        self.delay.restart()
        reno = (self.cwnd - self.dwnd) / 2
        super().on_recovered(now)
        self.dwnd = max(self.cwnd - reno, 0)

    def on_rto(self, now: float, flight: float) -> None:
        """Without the other window."""
        super().on_rto(now, flight)
        self.dwnd = 0
        self.delay.restart()
