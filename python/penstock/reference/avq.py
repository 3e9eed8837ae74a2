"""AVQ as Kunniyur and Srikant wrote it in 2001 (§3): a token bucket. Draws no random numbers.

If `adapt_on_drop` is false, as in ns-2, a dropped arrival does not change the virtual capacity and its clock.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from penstock.reference.link import NOT_ECT, Arrival, Fate, Fifo, Limit, Packet, serve


@dataclass(frozen=True)
class Params:
    """`initial` is the first virtual capacity as a share of the link's."""

    alpha: float = 0.15
    gamma: float = 0.98
    initial: float = 0.8
    mean_packet: int = 1000
    adapt_on_drop: bool = True
    ecn: bool = False


class Avq(Fifo):
    """The queue, and beside it the virtual one: C and `c_virtual` (the paper's C with a tilde) in bytes per second."""

    def __init__(self, limit: Limit, params: Params, rate_bps: int) -> None:
        super().__init__(limit)
        self.params = params
        kind, most = limit
        self.buffer = most * params.mean_packet if kind == "packets" else most
        self.c = rate_bps / 8
        self.c_virtual = params.initial * self.c
        self.vq = 0.0
        self.last_arrival_ns: int | None = None
        self.last_adapted_ns = 0

    def judge_arrival(self, packet: Packet, now_ns: int) -> Literal["pass", "mark", "drop"]:
        """Judges an arrival by the algorithm of the paper (§3)."""
        alpha, gamma = self.params.alpha, self.params.gamma
        if self.last_arrival_ns is None:
            self.last_arrival_ns = self.last_adapted_ns = now_ns
        self.vq = max(self.vq - self.c_virtual * ((now_ns - self.last_arrival_ns) / 1e9), 0.0)
        self.last_arrival_ns = now_ns
        verdict = self.fill(packet)
        if verdict != "drop" or self.params.adapt_on_drop:
            earned = alpha * gamma * self.c * ((now_ns - self.last_adapted_ns) / 1e9)
            self.c_virtual = max(min(self.c_virtual + earned, self.c) - alpha * packet.size, 0.0)
            self.last_adapted_ns = now_ns
        return verdict

    def fill(self, packet: Packet) -> Literal["pass", "mark", "drop"]:
        """Puts a packet into the virtual queue if it fits."""
        if self.vq + packet.size <= self.buffer:
            self.vq += packet.size
            return "pass"
        return "mark" if self.params.ecn and packet.ecn != NOT_ECT else "drop"


def replay(
    arrivals: Sequence[Arrival], rate_bps: int, limit: Limit, params: Params, uniform: Callable[[], float]
) -> list[Fate]:
    """Returns the fate of each packet, in the order of arrival."""
    del uniform
    return serve(Avq(limit, params, rate_bps), arrivals, rate_bps)
