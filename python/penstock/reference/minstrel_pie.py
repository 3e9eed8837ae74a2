"""Minstrel PIE (thesis 004 §4.2, Algorithm 6), around the twin of PIE.

Draws random numbers as PIE does. Rates are whole bytes per second. With timestamps the rate is that of departures
between updates, averaged 7/8 to 1/8.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from penstock.reference import pie
from penstock.reference.link import NS_PER_S, Arrival, Fate, Limit, Packet, serve


@dataclass(frozen=True)
class Params(pie.Params):
    """§4.2.1 and §4.2.2; `target_ns` is the upper bound."""

    tupdate_ns: int = 16_000_000
    min_target_ns: int = 5_000_000


class MinstrelPie(pie.Pie):
    """PIE which adapts its target."""

    def __init__(self, limit: Limit, params: Params, uniform: Callable[[], float]) -> None:
        super().__init__(limit, params, uniform)
        self.lowest = params.min_target_ns / 1e9
        self.highest = params.target_ns / 1e9
        self.departed_bytes = 0
        self.avg_dq_rate = 0
        self.maxavg_dq_rate = 0

    def departed(self, packet: Packet, now_ns: int) -> None:
        """Counts the bytes that left the queue."""
        super().departed(packet, now_ns)
        self.departed_bytes += packet.size

    def measured_rate(self) -> int:
        """avg_dq_rate."""
        if self.params.by_rate:
            return int(self.params.dq_threshold / self.avg_dq_time) if self.avg_dq_time > 0 else 0
        rate = self.departed_bytes * NS_PER_S // self.params.tupdate_ns
        if self.avg_dq_rate == 0:
            return rate
        return self.avg_dq_rate - self.avg_dq_rate // 8 + rate // 8

    def adapt_target(self, qdelay: float) -> None:
        """Algorithm 6."""
        self.avg_dq_rate = self.measured_rate()
        self.departed_bytes = 0
        if self.avg_dq_rate > self.maxavg_dq_rate:
            self.maxavg_dq_rate = self.avg_dq_rate
        if 10 * self.avg_dq_rate <= 9 * self.maxavg_dq_rate:
            self.target += abs(self.target - qdelay) / 2
        elif qdelay < self.target:
            self.target = qdelay
        else:
            self.target -= abs(self.target - qdelay) / 2
        self.target = max(self.lowest, min(self.highest, self.target))


def replay(
    arrivals: Sequence[Arrival], rate_bps: int, limit: Limit, params: Params, uniform: Callable[[], float]
) -> list[Fate]:
    """Returns the fate of each packet, in the order of arrival."""
    return serve(MinstrelPie(limit, params, uniform), arrivals, rate_bps)
