"""CUBIC as Linux has it: net/ipv4/tcp_cubic.c, `bictcp_update()` and what tcp_cong.c makes of its count.

Windows are whole segments. Times are in jiffies of 1 ms, and on the curve in 1/1024 s (BICTCP_HZ). Without HyStart.
"""

from __future__ import annotations

from math import inf

from penstock.reference.cc import Ack, Control

BETA, C = 717, 410  # of 1024
BETA_SCALE = 8 * (1024 + BETA) // 3 // (1024 - BETA)
HZ = 1000
# cbrt(x << 18) for x in 0 to 63, times 64 and less 10, as the kernel's table has it
V = [0, 54, 54, 54, 118, 118, 118, 118, 123, 129, 134, 138, 143, 147, 151, 156]
V += [157, 161, 164, 168, 170, 173, 176, 179, 181, 185, 187, 190, 192, 194, 197, 199]
V += [200, 202, 204, 206, 209, 211, 213, 215, 217, 219, 221, 222, 224, 225, 227, 229]
V += [231, 232, 234, 236, 237, 239, 240, 242, 244, 245, 246, 248, 250, 251, 252, 254]


def jiffies(now_s: float) -> int:
    """Whole milliseconds; times are whole microseconds."""
    return round(now_s * 1e6) * HZ // 10**6


def cubic_root(a: int) -> int:
    """Corresponds to cubic_root() in the source: a table and one step of Newton's."""
    b = a.bit_length()
    if b < 7:
        return (V[a] + 35) >> 6
    b = (b * 84 >> 8) - 1
    x = ((V[a >> 3 * b] + 10) << b) >> 6
    x = 2 * x + a // (x * (x - 1))
    return x * 341 >> 10


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
        self.ack_cnt = self.tcp_cwnd = self.bic_k = self.origin = self.delay_min = 0
        self.last_time = -1
        self.epoch_start: int | None = None

    def on_ack(self, ack: Ack) -> None:
        """cubictcp_cong_avoid(): tcp_slow_start(), bictcp_update(), tcp_cong_avoid_ai()."""
        acked = int(ack.segments)
        self.acked(ack)
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

    def acked(self, ack: Ack) -> None:
        """Corresponds to cubictcp_acked() in the source."""
        if not ack.rtt or (self.epoch_start is not None and jiffies(ack.now) - self.epoch_start < HZ):
            return
        delay = round(ack.rtt * 1e6)
        if self.delay_min == 0 or self.delay_min > delay:
            self.delay_min = delay

    def update(self, ack: Ack, acked: int) -> None:
        """Corresponds to bictcp_update() in the source."""
        cwnd, now = self.cwnd, jiffies(ack.now)
        if self.epoch_start is not None:
            self.ack_cnt += acked
        if self.last_cwnd == cwnd and now - self.last_time <= HZ // 32:
            return
        if self.epoch_start is None or now != self.last_time:
            self.curve(cwnd, now, acked)
        step = cwnd * BETA_SCALE >> 3
        while self.ack_cnt > step:
            self.ack_cnt -= step
            self.tcp_cwnd += 1
        if self.tcp_cwnd > cwnd:
            self.cnt = min(self.cnt, cwnd // (self.tcp_cwnd - cwnd))
        self.cnt = max(self.cnt, 2)

    def curve(self, cwnd: int, now: int, acked: int) -> None:
        """The middle of bictcp_update()."""
        self.last_cwnd, self.last_time = cwnd, now
        if self.epoch_start is None:
            self.epoch_start, self.ack_cnt, self.tcp_cwnd = now, acked, cwnd
            short = max(self.last_max_cwnd - cwnd, 0)
            self.bic_k, self.origin = cubic_root((1 << 40) // C * short), max(self.last_max_cwnd, cwnd)
        t = (now - self.epoch_start + -(-self.delay_min * HZ // 10**6) << 10) // HZ
        delta = C * abs(t - self.bic_k) ** 3 >> 40
        target = max(self.origin - delta, 0) if t < self.bic_k else self.origin + delta
        self.cnt = cwnd // (target - cwnd) if target > cwnd else 100 * cwnd
        if self.last_max_cwnd == 0 and self.cnt > 20:
            self.cnt = 20

    def on_loss(self, now: float, flight: float) -> None:
        """cubictcp_recalc_ssthresh(): of the window, whatever is in flight."""
        del now, flight
        self.epoch_start = None
        fast = self.cwnd < self.last_max_cwnd
        self.last_max_cwnd = self.cwnd * (1024 + BETA) // 2048 if fast else self.cwnd
        self.ssthresh = max(self.cwnd * BETA >> 10, 2)
        self.snd_cwnd_cnt = 0  # tcp_init_cwnd_reduction()
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
