"""RED as Floyd and Jacobson wrote it in 1993 (§4, §8), with the gentle slope of 2000 and ns-2's `wait`.

Draws one random number for each arrival whose probability lies strictly between 0 and 1, none otherwise.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from penstock.reference.link import NOT_ECT, NS_PER_S, Arrival, Fate, Fifo, Limit, Packet, serve


@dataclass(frozen=True)
class Params:
    """Thresholds are in packets, or in bytes with `in_bytes`."""

    min_threshold: float = 5
    max_threshold: float = 15
    max_p: float = 0.1
    weight: float = 0.002
    mean_packet: int = 1000
    in_bytes: bool = False
    byte_drop: bool = False
    gentle: bool = True
    wait: bool = False
    ecn: bool = False
    over_max: Literal["drop", "mark", "linear"] = "drop"
    least_waiting: int = 0


class Red(Fifo):
    """The queue and its state; `idle_since_ns` is the paper's q_time while the queue is empty."""

    def __init__(self, limit: Limit, params: Params, rate_bps: int, uniform: Callable[[], float]) -> None:
        super().__init__(limit)
        self.params = params
        self.uniform = uniform
        self.max_p = params.max_p
        self.slope_from = 0.0  # where the gentle slope begins, if it is not the current max_p
        self.mean_time_ns = max(1, params.mean_packet * 8 * NS_PER_S // rate_bps)
        self.avg = 0.0
        self.count = -1
        self.idle_since_ns: int | None = 0

    def update_average(self, now_ns: int) -> None:
        """Updates the average at an arrival. An empty queue stays idle while all arrivals are dropped."""
        weight = self.params.weight
        if not self.queue and self.idle_since_ns is not None:
            m = (now_ns - self.idle_since_ns) / self.mean_time_ns
            self.avg *= (1 - weight) ** m
            self.idle_since_ns = now_ns
        else:
            length = self.bytes if self.params.in_bytes else len(self.queue)
            self.avg += weight * (length - self.avg)

    def before_count(self) -> float | None:
        """pb, or None above the hard limit."""
        low, high = self.params.min_threshold, self.params.max_threshold
        if self.avg < high or self.params.over_max == "linear":
            return min(1.0, self.max_p * (self.avg - low) / (high - low))
        if self.params.gentle and self.avg < 2 * high:
            start = self.slope_from or self.max_p
            return start + (1 - start) * (self.avg - high) / high
        return None

    def after_count(self, pb: float) -> float:
        """pa: the probability that makes gaps between drops uniform."""
        x = self.count * pb
        if self.params.wait:
            if x < 1:
                return 0.0
            return pb / (2 - x) if x < 2 else 1.0
        return pb / (1 - x) if x < 1 else 1.0

    def judge_arrival(self, packet: Packet, now_ns: int) -> Literal["pass", "mark", "drop"]:
        """Figure 2 of the paper."""
        self.update_average(now_ns)
        return self.judge(packet)

    def judge(self, packet: Packet) -> Literal["pass", "mark", "drop"]:
        """Judges an arrival by the average, which is up to date."""
        if self.avg < self.params.min_threshold or len(self.queue) < self.params.least_waiting:
            self.count = -1
            return "pass"
        pb = self.before_count()
        markable = self.params.ecn and packet.ecn != NOT_ECT
        if pb is None:
            self.count = 0
            return "mark" if self.params.over_max == "mark" and markable else "drop"
        self.count += 1
        if self.params.byte_drop:
            pb *= packet.size / self.params.mean_packet
        if not self.happens(self.after_count(pb)):
            return "pass"
        self.count = 0
        return "mark" if markable else "drop"

    def happens(self, probability: float) -> bool:
        """Returns true with the given probability."""
        if probability <= 0:
            return False
        return probability >= 1 or self.uniform() < probability

    def overflowed(self) -> None:
        """Restarts the count after a drop for lack of room, as in ns-2."""
        self.count = 0

    def dequeue(self, now_ns: int) -> Packet | None:
        """Returns the head of the queue, and remembers when the queue became empty."""
        packet = self.pop()
        if packet is not None:
            self.idle_since_ns = None if self.queue else now_ns
        return packet


def replay(
    arrivals: Sequence[Arrival], rate_bps: int, limit: Limit, params: Params, uniform: Callable[[], float]
) -> list[Fate]:
    """Returns the fate of each packet, in the order of arrival."""
    return serve(Red(limit, params, rate_bps, uniform), arrivals, rate_bps)
