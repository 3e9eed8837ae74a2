"""Scalable TCP: Kelly, CCR 33(2), 2003: a = 0.01 and b = 1/8. Below 100 segments it grows as Reno."""

from __future__ import annotations

from penstock.reference.cc import Ack, Control


class Scalable(Control):
    """cwnd + 0.01 for each segment acknowledged."""

    keep = 7 / 8
    timeout_by_window = True

    def avoid_congestion(self, ack: Ack, segments: float) -> None:
        """As Reno until 0.01 is more."""
        del ack
        self.cwnd += segments * max(0.01, 1 / self.cwnd)
