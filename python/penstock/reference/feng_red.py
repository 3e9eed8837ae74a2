"""Feng's self-configuring RED (Feng, Kandlur, Saha and Shin, 1999), around the twin of RED.

Draws random numbers as RED does. The average starts out below the lower threshold.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from penstock.reference import red
from penstock.reference.link import Arrival, Fate, Limit, serve

LEAST_MAX_P = 1e-6


@dataclass(frozen=True)
class Params(red.Params):
    """Those of RED, where max_p is the first one, and the two factors."""

    gentle: bool = False
    alpha: float = 3
    beta: float = 2


class FengRed(red.Red):
    """RED whose max_p is scaled when the average comes to the other side of a threshold."""

    def __init__(self, limit: Limit, params: Params, rate_bps: int, uniform: Callable[[], float]) -> None:
        super().__init__(limit, params, rate_bps, uniform)
        self.alpha, self.beta = params.alpha, params.beta
        self.status: Literal["below", "between", "above"] = "below"

    def update_average(self, now_ns: int) -> None:
        """The average, and what follows from it for max_p."""
        super().update_average(now_ns)
        low, high = self.params.min_threshold, self.params.max_threshold
        if low < self.avg < high:
            self.status = "between"
        if self.avg < low and self.status != "below":
            self.status = "below"
            self.max_p = max(LEAST_MAX_P, self.max_p / self.alpha)
        if self.avg > high and self.status != "above":
            self.status = "above"
            self.max_p = min(1.0, self.max_p * self.beta)


def replay(
    arrivals: Sequence[Arrival], rate_bps: int, limit: Limit, params: Params, uniform: Callable[[], float]
) -> list[Fate]:
    """Returns the fate of each packet, in the order of arrival."""
    return serve(FengRed(limit, params, rate_bps, uniform), arrivals, rate_bps)
