"""LINDROP as Brachman and Chrost wrote it in 2010 (§3, Algorithm 1), with the average of the twin of RED.

Draws no random numbers. With `ecn`, a packet that can be marked is marked where it would be dropped.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from penstock.reference import red
from penstock.reference.link import NOT_ECT, Arrival, Fate, Limit, Packet, serve


@dataclass(frozen=True)
class Params:
    """§3 and Table 2; queues in packets. The weight is RED's."""

    avg_min: float = 0
    avg_max: float = 50
    n_pu: float = 0.98
    n_pd: float = 1.05
    dr_init: float = 500_000
    dr_min: float = 5
    dr_max: float = 1_000_000
    weight: float = 0.002
    mean_packet: int = 1000
    ecn: bool = False


class Lindrop(red.Red):
    """A queue that averages as RED does and judges by Algorithm 1."""

    def __init__(self, limit: Limit, params: Params, rate_bps: int, uniform: Callable[[], float]) -> None:
        averaging = red.Params(weight=params.weight, mean_packet=params.mean_packet)
        super().__init__(limit, averaging, rate_bps, uniform)
        self.own = params
        self.f = 0.0
        self.dr = params.dr_init
        self.n_drops = 1

    def dropping_function(self) -> float:
        """Figure 1."""
        low, high = self.own.avg_min, self.own.avg_max
        if self.avg < low:
            return 0.0
        return (self.avg - low) / (high - low) if self.avg < high else 1.0

    def judge_arrival(self, packet: Packet, now_ns: int) -> Literal["pass", "mark", "drop"]:
        """The body of Algorithm 1's loop."""
        self.update_average(now_ns)
        f = self.dropping_function()
        if f - self.f > 0:
            self.dr *= self.own.n_pu
        else:
            self.dr *= self.own.n_pd
        self.f = f
        self.dr = max(self.own.dr_min, min(self.own.dr_max, self.dr))
        if self.n_drops > self.dr:
            self.n_drops = 1
            return "mark" if self.own.ecn and packet.ecn != NOT_ECT else "drop"
        self.n_drops += 1
        return "pass"

    def overflowed(self) -> None:
        """Does nothing: an overflow of the queue does not change the state of LinDrop."""


def replay(
    arrivals: Sequence[Arrival], rate_bps: int, limit: Limit, params: Params, uniform: Callable[[], float]
) -> list[Fate]:
    """Returns the fate of each packet, in the order of arrival."""
    return serve(Lindrop(limit, params, rate_bps, uniform), arrivals, rate_bps)
