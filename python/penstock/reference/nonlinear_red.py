"""Nonlinear RED (Zhou, Yeung and Li, 2006), around the twin of RED.

Draws random numbers as RED does.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from penstock.reference import red
from penstock.reference.link import Arrival, Fate, Limit, serve


@dataclass(frozen=True)
class Params(red.Params):
    """Those of RED; max_p is that of the RED with the same mean probability."""

    gentle: bool = False


class NonlinearRed(red.Red):
    """RED with a square in place of the line."""

    def __init__(self, limit: Limit, params: Params, rate_bps: int, uniform: Callable[[], float]) -> None:
        super().__init__(limit, params, rate_bps, uniform)
        self.max_p = 1.5 * params.max_p

    def before_count(self) -> float | None:
        """pb, or None above the hard limit."""
        low, high = self.params.min_threshold, self.params.max_threshold
        if self.avg < high:
            part = (self.avg - low) / (high - low)
            return self.max_p * part * part
        return super().before_count()


def replay(
    arrivals: Sequence[Arrival], rate_bps: int, limit: Limit, params: Params, uniform: Callable[[], float]
) -> list[Fate]:
    """Returns the fate of each packet, in the order of arrival."""
    return serve(NonlinearRed(limit, params, rate_bps, uniform), arrivals, rate_bps)
