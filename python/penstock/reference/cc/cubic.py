"""CUBIC: RFC 9438. Symbols are the RFC's; segments and seconds."""

from __future__ import annotations

from penstock.reference.cc import MSS, Ack, Control

C = 0.4
BETA = 0.7
ALPHA = 3 * (1 - BETA) / (1 + BETA)


class Cubic(Control):
    """The window is a cubic function of the time since the last reduction."""

    keep = BETA

    def __init__(self) -> None:
        super().__init__()
        self.w_max = 0.0
        self.cwnd_prior = 0.0
        self.t_epoch: float | None = None
        self.k = self.w_est = 0.0
        self.reduced: float | None = None

    def begin(self, now: float) -> None:
        """§4.2 and §4.3. After a timeout K = 0 and W_max is the window (§4.8)."""
        self.t_epoch, self.w_est = now, self.cwnd
        if self.after_timeout or self.cwnd >= self.w_max:
            self.w_max, self.k = self.cwnd, 0.0
        else:
            self.k = float(((self.w_max - self.cwnd) / C) ** (1 / 3))

    def on_ack(self, ack: Ack) -> None:
        """The first acknowledgment in congestion avoidance begins the stage."""
        if self.cwnd >= self.ssthresh and self.t_epoch is None:
            self.begin(ack.now)
        super().on_ack(ack)

    def w_cubic(self, t: float) -> float:
        """Eq. (1)."""
        return float(C * (t - self.k) ** 3 + self.w_max)

    def avoid_congestion(self, ack: Ack, segments: float) -> None:
        """Follows §4.2 to §4.5 of the source."""
        assert self.t_epoch is not None
        t, before = ack.now - self.t_epoch, self.cwnd
        target = min(max(self.w_cubic(t + ack.srtt), before), 1.5 * before)
        alpha = ALPHA if self.w_est < self.cwnd_prior else 1
        self.w_est += alpha * segments / before
        if self.w_cubic(t) < self.w_est:
            self.cwnd = max(self.w_est, before)
        else:
            self.cwnd += segments * (target - before) / before

    def reduce(self) -> None:
        """Follows §4.7 of the source."""
        self.cwnd_prior = self.cwnd
        self.w_max = self.cwnd * (1 + BETA) / 2 if self.cwnd < self.w_max else self.cwnd
        self.t_epoch = None

    def on_loss(self, now: float, flight: float) -> None:
        """Follows §4.6 of the source."""
        self.reduce()
        super().on_loss(now, flight)
        self.reduced = self.ssthresh

    def on_recovered(self, now: float) -> None:
        """The window that the loss left, also if a budget changed the threshold since."""
        super().on_recovered(now)
        self.cwnd = self.cwnd if self.reduced is None else self.reduced

    def adopt(self, cwnd: float, ssthresh: float) -> None:
        """The curve of a stage belongs to its window. The RFC knows no budgets."""
        if abs(cwnd - self.shown()) > 0.5 / MSS:
            self.t_epoch = None
            super().adopt(cwnd, ssthresh)
        self.ssthresh = max(ssthresh, 2)

    def on_ecn(self, now: float, flight: float) -> None:
        """§4.6: after an echo the window may be a single segment."""
        self.on_loss(now, flight)
        self.cwnd = max(BETA * flight, 1)
