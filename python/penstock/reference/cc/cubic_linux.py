"""CUBIC as Linux has it: net/ipv4/tcp_cubic.c, `bictcp_update()` and what tcp_cong.c makes of its count.

Windows are whole segments. Times are in 1/1024 s (BICTCP_HZ); jiffies are so short that they do not show.
"""

from __future__ import annotations

from math import cbrt, inf

from penstock.reference.cc import Ack, Control

BETA, C = 717, 410  # of 1024
BETA_SCALE = 8 * (1024 + BETA) // 3 // (1024 - BETA)
LOOK_S = 1 / 32


def cubic_root(a: int) -> int:
    """The whole part of the root, exact."""
    root = int(cbrt(a))
    while root**3 > a:
        root -= 1
    while (root + 1) ** 3 <= a:
        root += 1
    return root


class CubicLinux(Control):
    """`bictcp`; names as there."""

    def __init__(self) -> None:
        super().__init__()
        self.cwnd: int = 10
        self.ssthresh: float = inf
        self.snd_cwnd_cnt = self.recovering = 0
        self.forget()

    def forget(self) -> None:
        """Corresponds to bictcp_reset() in the source."""
        self.cnt = self.last_max_cwnd = self.last_cwnd = 0
        self.ack_cnt = self.tcp_cwnd = self.bic_k = self.origin = 0
        self.last_time = -inf
        self.epoch_start: float | None = None

    def on_ack(self, ack: Ack) -> None:
        """cubictcp_cong_avoid(): tcp_slow_start(), bictcp_update(), tcp_cong_avoid_ai()."""
        acked = int(ack.segments)
        if self.cwnd < self.ssthresh:
            opened = int(min(acked, self.ssthresh - self.cwnd))
            self.cwnd, acked = self.cwnd + opened, acked - opened
        if not acked:
            return
        self.update(ack, acked)
        if self.snd_cwnd_cnt >= self.cnt:
            self.snd_cwnd_cnt = 0
            self.cwnd += 1
        self.snd_cwnd_cnt += acked
        if self.snd_cwnd_cnt >= self.cnt:
            more = self.snd_cwnd_cnt // self.cnt
            self.snd_cwnd_cnt -= more * self.cnt
            self.cwnd += more

    def update(self, ack: Ack, acked: int) -> None:
        """Corresponds to bictcp_update() in the source."""
        cwnd = self.cwnd
        if self.epoch_start is not None:
            self.ack_cnt += acked
        if self.last_cwnd == cwnd and ack.now - self.last_time <= LOOK_S + 1e-12:
            return
        self.last_cwnd, self.last_time = cwnd, ack.now
        if self.epoch_start is None:
            self.epoch_start, self.ack_cnt, self.tcp_cwnd = ack.now, acked, cwnd
            short = max(self.last_max_cwnd - cwnd, 0)
            self.bic_k, self.origin = cubic_root((short << 40) // C), max(self.last_max_cwnd, cwnd)
        t = int((round((ack.now - self.epoch_start) * 1e9) + round(ack.min_rtt * 1e9)) * 1024 // 10**9)
        delta = C * abs(t - self.bic_k) ** 3 >> 40
        target = max(self.origin - delta, 0) if t < self.bic_k else self.origin + delta
        self.cnt = cwnd // (target - cwnd) if target > cwnd else 100 * cwnd
        if self.last_max_cwnd == 0 and self.cnt > 20:
            self.cnt = 20
        step = max(cwnd * BETA_SCALE >> 3, 1)
        self.tcp_cwnd += self.ack_cnt // step
        self.ack_cnt %= step
        if self.tcp_cwnd > cwnd:
            self.cnt = min(self.cnt, cwnd // (self.tcp_cwnd - cwnd))
        self.cnt = max(self.cnt, 2)

    def on_loss(self, now: float, flight: float) -> None:
        """cubictcp_recalc_ssthresh(): of the window, whatever is in flight."""
        del now, flight
        self.epoch_start = None
        fast = self.cwnd < self.last_max_cwnd
        self.last_max_cwnd = self.cwnd * (1024 + BETA) // 2048 if fast else self.cwnd
        self.ssthresh = max(self.cwnd * BETA >> 10, 2)
        self.recovering = 1

    def on_recovered(self, now: float) -> None:
        """The threshold is the window."""
        del now
        self.cwnd, self.recovering = int(self.ssthresh), 0

    def on_rto(self, now: float, flight: float) -> None:
        """In recovery the threshold stays as it is."""
        if not self.recovering:
            self.on_loss(now, flight)
        self.recovering = 0
        self.cwnd, self.snd_cwnd_cnt = 1, 0
        self.forget()
