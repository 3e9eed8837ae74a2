"""Vegas: Brakmo and Peterson, JSAC 13(8), 1995, with Linux's use of the lowest sample of a round trip."""

from __future__ import annotations

from math import inf

from penstock.reference.cc import Ack, Control, Round

ALPHA, BETA, GAMMA = 2, 4, 1


class Delay:
    """BaseRTT and the lowest sample of each round trip."""

    def __init__(self) -> None:
        self.base = inf
        self.restart()

    def restart(self) -> None:
        """What was in flight went through a recovery and tells nothing."""
        self.round, self.lowest = Round(), inf

    def at_end_of_round(self, ack: Ack) -> float | None:
        """1 - BaseRTT / RTT at the end of a round with a sample: the part of the window that waits in queues."""
        if ack.rtt:
            self.base, self.lowest = min(self.base, ack.rtt), min(self.lowest, ack.rtt)
        if not self.round.ends(ack) or self.lowest == inf:
            return None
        part, self.lowest = 1 - self.base / self.lowest, inf
        return part


class Vegas(Control):
    """Two to four segments wait in the queue."""

    timeout_by_window = True

    def __init__(self) -> None:
        super().__init__()
        self.delay, self.grows = Delay(), False

    def on_ack(self, ack: Ack) -> None:
        """Decides once in a round trip."""
        part = self.delay.at_end_of_round(ack)
        in_slow_start = self.cwnd < self.ssthresh
        if part is not None:
            diff = self.cwnd * part
            if in_slow_start and diff > GAMMA:
                self.cwnd = max(min(self.cwnd, self.cwnd * (1 - part) + 1), 2)
                self.ssthresh = min(self.ssthresh, self.cwnd)
                return
            if in_slow_start:
                self.grows = not self.grows
            elif diff < ALPHA:
                self.cwnd += 1
            elif diff > BETA:
                self.cwnd = max(self.cwnd - 1, 2)
                self.ssthresh = min(self.ssthresh, self.cwnd)
        if in_slow_start and self.grows:
            self.slow_start(ack)

    def on_recovered(self, now: float) -> None:
        """The next round trip begins."""
        self.delay.restart()
        super().on_recovered(now)

    def on_rto(self, now: float, flight: float) -> None:
        """The next round trip begins."""
        self.delay.restart()
        self.grows = False
        super().on_rto(now, flight)
