"""Hybla: Caini and Firrincieli, IJSCN 22, 2004, eq. (6) and (7), with the ceiling of slow start that Linux has."""

from __future__ import annotations

from penstock.reference.cc import Ack, Control

RTT0_S = 0.025


class Hybla(Control):
    """Grows as fast as a flow with a round trip of 25 ms."""

    timeout_by_window = True

    def __init__(self) -> None:
        super().__init__()
        self.rho = 1.0

    def on_ack(self, ack: Ack) -> None:
        """The smallest round trip counts."""
        self.rho = max(ack.min_rtt / RTT0_S, 1)
        super().on_ack(ack)

    def slow_start(self, ack: Ack) -> None:
        """2^rho - 1 for each segment; never above the threshold or 2^16."""
        limit = 1 if self.after_timeout else 2
        step = min(ack.segments, limit) * (2 ** min(self.rho, 16) - 1)
        most = min(self.ssthresh, max(self.cwnd, 65_536))
        self.cwnd = min(self.cwnd + min(step, 65_535), most)

    def avoid_congestion(self, ack: Ack, segments: float) -> None:
        """rho^2 segments each round trip."""
        del ack
        self.cwnd += segments / self.cwnd * self.rho**2
