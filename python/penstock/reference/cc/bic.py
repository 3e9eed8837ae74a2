"""BIC: Xu, Harfoush and Rhee, INFOCOM 2004, with the constants and the smooth steps of Linux's tcp_bic.c."""

from __future__ import annotations

from penstock.reference.cc import Ack, Control

BETA = 819 / 1024
S_MAX, LOW_WINDOW, B, SMOOTH = 16, 14, 4, 20


class Bic(Control):
    """A binary search for the window of the last loss, and a search beyond it that becomes faster."""

    timeout_by_window = True

    def __init__(self) -> None:
        super().__init__()
        self.w_max = 0.0

    def per_round(self) -> float:
        """bictcp_update(): cwnd / cnt."""
        if self.cwnd <= LOW_WINDOW:
            return 1
        if self.cwnd < self.w_max:
            distance = (self.w_max - self.cwnd) / B
            step = S_MAX if distance > S_MAX else B / SMOOTH if distance <= 1 else distance
        elif self.cwnd < self.w_max + B:
            step = B / SMOOTH
        elif self.cwnd < self.w_max + S_MAX * (B - 1):
            step = (self.cwnd - self.w_max) / (B - 1)
        else:
            step = S_MAX
        return max(step, self.cwnd / 20) if self.w_max == 0 else step

    def avoid_congestion(self, ack: Ack, segments: float) -> None:
        """Real numbers in place of counted ACKs."""
        del ack
        self.cwnd += segments / self.cwnd * self.per_round()

    def on_loss(self, now: float, flight: float) -> None:
        """bictcp_recalc_ssthresh(), fast convergence."""
        self.w_max = self.cwnd * (1 + BETA) / 2 if self.cwnd < self.w_max else self.cwnd
        super().on_loss(now, flight)

    def kept(self, flight: float) -> float:
        """Half of a small window."""
        return flight / 2 if self.cwnd <= LOW_WINDOW else BETA * flight
