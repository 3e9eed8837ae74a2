"""LEDBAT++: draft-irtf-iccrg-ledbat-plus-plus-02, with the filters of delays of RFC 6817."""

from __future__ import annotations

from collections import deque
from math import ceil, inf

from penstock.reference.cc import Ack, Control

TARGET, CONSTANT, FACTOR = 0.060, 1, 9


class LedbatPp(Control):
    """Gives way to a queue of 60 ms, and slows down from time to time to see the path without itself."""

    timeout_by_window = True

    def __init__(self) -> None:
        super().__init__()
        self.samples: deque[int] = deque(maxlen=4)
        self.lowest: dict[int, int] = {}  # of each minute
        self.first, self.avoids = True, False
        self.frozen_until = self.began = None  # type: float | None
        self.next = inf

    def on_ack(self, ack: Ack) -> None:
        """Looks at the delay, and at the time."""
        if ack.rtt_ns:
            minute = ack.now_ns // 60_000_000_000
            self.samples.append(ack.rtt_ns)
            self.lowest[minute] = min(self.lowest.get(minute, ack.rtt_ns), ack.rtt_ns)
            self.lowest = {then: least for then, least in self.lowest.items() if then > minute - 10}
        if self.frozen_until is not None and ack.now_ns < self.frozen_until:
            return
        if self.avoids and ack.now_ns >= self.next:
            self.ssthresh, self.cwnd = self.cwnd, 2
            self.began, self.frozen_until = ack.now_ns, ack.now_ns + 2 * ack.srtt_ns
            self.avoids, self.next = False, inf
        elif self.avoids:
            self.steer(ack)
        else:
            self.frozen_until = None
            self.rise(ack)

    @property
    def base(self) -> float:
        """Returns the round trip time without a queue in ns."""
        return min(self.lowest.values(), default=inf)

    @property
    def delay(self) -> float:
        """Returns the queueing delay in targets."""
        return (min(self.samples) - self.base) / (TARGET * 1e9) if self.samples else 0

    @property
    def gain(self) -> float:
        """Returns the segments per round trip by which the window grows."""
        return 1 / min(16, max(1, ceil(2 * TARGET * 1e9 / self.base)))

    def rise(self, ack: Ack) -> None:
        """Slow start up to the threshold, the first time up to a delay."""
        if self.first and self.delay > 3 / 4:
            self.ssthresh = self.cwnd
        elif self.cwnd < self.ssthresh:
            before = self.cwnd
            self.slow_start(ack)
            self.cwnd = min(before + self.gain * (self.cwnd - before), self.ssthresh)
        if self.cwnd < self.ssthresh:
            return
        self.avoids, self.first = True, False
        if self.began is not None:
            self.next, self.began = ack.now_ns + FACTOR * (ack.now_ns - self.began), None
        elif self.next == inf:
            self.next = ack.now_ns + 2 * ack.srtt_ns

    def steer(self, ack: Ack) -> None:
        """Congestion avoidance."""
        self.after_timeout = False
        change = self.gain
        if self.delay > 1:
            change = max(change - CONSTANT * self.cwnd * (self.delay - 1), -self.cwnd / 2)
        self.cwnd = max(self.cwnd + change * min(ack.segments / self.cwnd, 1), 2)

    def on_rto(self, now: float, flight: float) -> None:
        """Slow start again."""
        super().on_rto(now, flight)
        self.first = self.avoids = False
        self.frozen_until = None
