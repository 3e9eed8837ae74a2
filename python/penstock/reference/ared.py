"""Adaptive RED as Floyd, Gummadi and Shenker wrote it in 2001 (§3, Figure 2), around the twin of RED.

Draws random numbers as RED does. The interval is checked at arrivals.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp
from typing import Literal

from penstock.reference import red
from penstock.reference.link import Arrival, Fate, Limit, Packet, serve

TOP, BOTTOM, ALPHA, BETA = 0.5, 0.01, 0.01, 0.9


@dataclass(frozen=True)
class Params:
    """The parameters that are not derived from the link."""

    target_s: float = 0.005
    interval_ns: int = 500_000_000
    max_p: float = 0.1
    mean_packet: int = 1000
    ecn: bool = False
    wait: bool = False
    gentle_slope: Literal["current", "initial"] = "current"
    least_waiting: int = 0


class Ared(red.Red):
    """Gentle RED which counts packets and adapts max_p."""

    def __init__(self, limit: Limit, params: Params, rate_bps: int, uniform: Callable[[], float]) -> None:
        packets_per_s = rate_bps / 8 / params.mean_packet
        low = max(5.0, params.target_s * packets_per_s / 2)
        derived = red.Params(
            min_threshold=low,
            max_threshold=3 * low,
            max_p=params.max_p,
            weight=1 - exp(-1 / packets_per_s),
            mean_packet=params.mean_packet,
            ecn=params.ecn,
            wait=params.wait,
            least_waiting=params.least_waiting,
        )
        super().__init__(limit, derived, rate_bps, uniform)
        if params.gentle_slope == "initial":
            self.slope_from = params.max_p
        self.interval_ns = params.interval_ns
        self.adapted_ns = 0

    def adapt(self) -> None:
        """Additive increase above the target zone, multiplicative decrease below it."""
        low, high = self.params.min_threshold, self.params.max_threshold
        part = 0.4 * (high - low)
        if self.avg > high - part and self.max_p <= TOP:
            self.max_p += min(ALPHA, self.max_p / 4)
        elif self.avg < low + part and self.max_p >= BOTTOM:
            self.max_p *= BETA

    def judge_arrival(self, packet: Packet, now_ns: int) -> Literal["pass", "mark", "drop"]:
        """Adapts max_p if the interval is over, then judges the arrival as RED does."""
        if now_ns - self.adapted_ns >= self.interval_ns:
            self.adapted_ns = now_ns
            self.adapt()
        return super().judge_arrival(packet, now_ns)


def replay(
    arrivals: Sequence[Arrival], rate_bps: int, limit: Limit, params: Params, uniform: Callable[[], float]
) -> list[Fate]:
    """Returns the fate of each packet, in the order of arrival."""
    return serve(Ared(limit, params, rate_bps, uniform), arrivals, rate_bps)
