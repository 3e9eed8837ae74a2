"""TCP Prague: draft-briscoe-iccrg-prague-congestion-control; growth as of a path of 25 ms where the path is shorter.

The script tells of no marked bytes, so `alpha` falls by 1/16 of itself each 25 ms or round trip, once a mark has come.
"""

from __future__ import annotations

from penstock.reference.cc import Ack, Control

G = 1 / 16
REFERENCE_RTT_S = 0.025


class Prague(Control):
    """A mark takes alpha / 2 of the window, a loss half of the flight."""

    timeout_by_window = True

    def __init__(self) -> None:
        super().__init__()
        self.alpha = 1.0
        self.averaged: float | None = None  # when, from the first mark on

    def on_ack(self, ack: Ack) -> None:
        """alpha once per RTT_virt."""
        if self.averaged is not None and ack.now - self.averaged >= max(ack.srtt, REFERENCE_RTT_S) - 1e-12:
            self.alpha *= 1 - G
            self.averaged = ack.now
        super().on_ack(ack)

    def avoid_congestion(self, ack: Ack, segments: float) -> None:
        """(srtt / RTT_virt)^2 segments each round trip."""
        self.cwnd += segments / self.cwnd * (ack.srtt / max(ack.srtt, REFERENCE_RTT_S)) ** 2

    def on_ecn(self, now: float, flight: float) -> None:
        """The first mark finds alpha = 1."""
        del flight
        self.averaged = now if self.averaged is None else self.averaged
        self.after_timeout = False
        self.ssthresh = max(self.cwnd * (1 - self.alpha / 2), 2)
        self.on_recovered(now)
