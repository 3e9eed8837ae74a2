"""DCTCP: RFC 8257 §3.3. The script tells of no marked bytes, so `alpha` falls by 1/16 of itself each window."""

from __future__ import annotations

from penstock.reference.cc import Ack, Control, Round

G = 1 / 16


class Dctcp(Control):
    """A mark takes alpha / 2 of the window, a loss half of it."""

    timeout_by_window = True

    def __init__(self) -> None:
        super().__init__()
        self.alpha, self.round = 1.0, Round()

    def on_ack(self, ack: Ack) -> None:
        """(6) and (7) with M = 0 once per window."""
        if self.round.ends(ack):
            self.alpha *= 1 - G
        super().on_ack(ack)

    def on_ecn(self, now: float, flight: float) -> None:
        """(9)."""
        del flight
        self.ssthresh = max(self.cwnd * (1 - self.alpha / 2), 2)
        self.after_timeout = False
        self.on_recovered(now)
