"""AN-AQM (Sun and Zukerman, 2007; inputs from Brachman and Chrost, 2010): a neuron that learns by Hebb's rule.

`crates/core/src/aqm/an_aqm.rs` explains how the constants are derived. A sample is taken before all other events of its
time. Draws one random number for each arrival whose probability lies strictly between 0 and 1.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from penstock.reference.link import NOT_ECT, Arrival, Clock, Fate, Fifo, Limit, Packet, serve

MOST_WEIGHT = 5.0


@dataclass(frozen=True)
class Params:
    """`a` and `b` are those of the PI controller as which the neuron begins."""

    target_ratio: float = 0.3
    interval_ns: int = 6_250_000
    a: float = 1.822e-5
    b: float = 1.816e-5
    learning: float = 0.1
    mean_packet: int = 1000
    ecn: bool = False


class AnAqm(Fifo):
    """The queue, the neuron and the two errors of the last two samples, newest first."""

    def __init__(self, limit: Limit, params: Params, rate_bps: int, uniform: Callable[[], float]) -> None:
        super().__init__(limit)
        self.params = params
        self.uniform = uniform
        kind, most = limit
        self.in_bytes = kind == "bytes"
        self.target = params.target_ratio * (most / params.mean_packet if self.in_bytes else most)
        self.capacity = rate_bps / 8 * (params.interval_ns / 1e9)
        self.begin_as_pi(self.capacity / params.mean_packet)
        self.p = 0.0
        self.e = (-self.target, -self.target)
        self.y = (-1.0, -1.0)
        self.arrived = 0
        self.clock = Clock(params.interval_ns, params.interval_ns)

    def begin_as_pi(self, packets_per_sample: float) -> None:
        """K, the first weights, their scales and the learning rates."""
        integral, half = self.params.a - self.params.b, self.params.b / 2
        rate = packets_per_sample * half
        self.k = integral + half + rate
        self.scales = [gain / self.k for gain in (integral, half, half, rate, rate, rate)]
        self.w = [self.scales[0], self.scales[1], 0.0, self.scales[3], 0.0, 0.0]
        queue, flow = self.params.learning / (self.target * self.target), self.params.learning / self.target
        self.d = [scale * unit for scale, unit in zip(self.scales, [queue] * 3 + [flow] * 3, strict=True)]

    def sample(self) -> None:
        """One step of the controller and of its learning."""
        q = self.bytes / self.params.mean_packet if self.in_bytes else len(self.queue)
        e = q - self.target
        y = self.arrived / self.capacity - 1
        e1, e2 = self.e
        y1, y2 = self.y
        x = [e, e - e1, e - 2 * e1 + e2, y, y - y1, y - 2 * y1 + y2]
        weighed = total = 0.0
        for w_i, x_i in zip(self.w, x, strict=True):
            weighed += w_i * x_i
            total += w_i
        self.p = min(1.0, max(0.0, self.p + self.k * weighed / total))
        for i in range(6):
            learnt = self.w[i] + self.d[i] * e * self.p * x[i]
            self.w[i] = min(MOST_WEIGHT * self.scales[i], max(0.0, learnt))
        self.e, self.y = (e, e1), (y, y1)
        self.arrived = 0

    def let_time_pass(self, now_ns: int) -> None:
        """Takes every sample up to now. The queue did not change since the last of them."""
        self.clock.run(self, self.sample, now_ns)

    def judge_arrival(self, packet: Packet, now_ns: int) -> Literal["pass", "mark", "drop"]:
        """Drops or marks with probability p."""
        self.let_time_pass(now_ns)
        self.arrived += packet.size
        if self.p <= 0 or (self.p < 1 and self.uniform() >= self.p):
            return "pass"
        return "mark" if self.params.ecn and packet.ecn != NOT_ECT else "drop"

    def dequeue(self, now_ns: int) -> Packet | None:
        """Returns the head of the queue."""
        self.let_time_pass(now_ns)
        return self.pop()


def replay(
    arrivals: Sequence[Arrival], rate_bps: int, limit: Limit, params: Params, uniform: Callable[[], float]
) -> list[Fate]:
    """Returns the fate of each packet, in the order of arrival."""
    return serve(AnAqm(limit, params, rate_bps, uniform), arrivals, rate_bps)
