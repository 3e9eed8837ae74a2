"""BLUE as Feng, Shin, Kandlur and Saha wrote it in 2002 (§III): losses raise the probability, idleness lowers it.

A link that stays idle is idle again after each freeze time. Draws one random number for each arrival whose probability
lies strictly between 0 and 1, none otherwise.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from penstock.reference.link import NOT_ECT, NS_PER_S, Arrival, Fate, Fifo, Limit, Packet, serve


@dataclass(frozen=True)
class Params:
    """`threshold` is in packets, or in bytes with `in_bytes`; None: only a full queue loses packets."""

    increment: float = 0.0025
    decrement: float = 0.00025
    freeze_ns: int = 100_000_000
    threshold: int | None = None
    in_bytes: bool = False
    ecn: bool = False


class Blue(Fifo):
    """The queue and its probability `pm`."""

    def __init__(self, limit: Limit, params: Params, rate_bps: int, uniform: Callable[[], float]) -> None:
        super().__init__(limit)
        self.params = params
        self.rate_bps = rate_bps
        self.uniform = uniform
        self.pm = 0.0
        self.thaws_ns = 0
        self.idle_from_ns = 0
        self.now_ns = 0

    def lost(self, now_ns: int) -> None:
        """Raises the probability after a loss, or after an arrival above the threshold, once in each freeze time."""
        if now_ns >= self.thaws_ns:
            self.pm = min(self.pm + self.params.increment, 1.0)
            self.thaws_ns = now_ns + self.params.freeze_ns

    def was_idle(self, now_ns: int) -> None:
        """Lowers the probability for the time in which the link was idle until now, once in each freeze time."""
        if self.idle_from_ns >= now_ns:
            return
        times = 0
        while self.pm > 0 and max(self.idle_from_ns, self.thaws_ns) <= now_ns:
            times += 1
            self.thaws_ns = max(self.idle_from_ns, self.thaws_ns) + self.params.freeze_ns
        # A single product replaces repeated subtractions, whose rounding errors would accumulate.
        self.pm = max(self.pm - times * self.params.decrement, 0.0)

    def judge_arrival(self, packet: Packet, now_ns: int) -> Literal["pass", "mark", "drop"]:
        """Drops or marks with probability pm."""
        self.now_ns = now_ns
        length = self.bytes if self.params.in_bytes else len(self.queue)
        if not self.queue:
            self.was_idle(now_ns)
        elif self.params.threshold is not None and length > self.params.threshold:
            self.lost(now_ns)
        if self.pm <= 0 or (self.pm < 1 and self.uniform() >= self.pm):
            return "pass"
        return "mark" if self.params.ecn and packet.ecn != NOT_ECT else "drop"

    def overflowed(self) -> None:
        """Counts the packet that was just judged as lost, since the queue is full."""
        self.lost(self.now_ns)

    def dequeue(self, now_ns: int) -> Packet | None:
        """Returns the head of the queue. After the last packet, the link is idle from the end of its transmission."""
        packet = self.pop()
        if packet is not None and not self.queue:
            self.idle_from_ns = now_ns + packet.size * 8 * NS_PER_S // self.rate_bps
        return packet


def replay(
    arrivals: Sequence[Arrival], rate_bps: int, limit: Limit, params: Params, uniform: Callable[[], float]
) -> list[Fate]:
    """Returns the fate of each packet, in the order of arrival."""
    return serve(Blue(limit, params, rate_bps, uniform), arrivals, rate_bps)
