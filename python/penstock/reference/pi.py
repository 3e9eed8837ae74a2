"""PI as Hollot, Misra, Towsley and Gong wrote it in 2001 (§IV): a controller that samples the queue at a fixed rate.

A sample is taken before all other events of its time. Draws one random number for each arrival whose probability lies
strictly between 0 and 1, none otherwise.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from penstock.reference.link import NOT_ECT, Arrival, Clock, Fate, Fifo, Limit, Packet, serve


@dataclass(frozen=True)
class Params:
    """The coefficients belong to the interval. With `in_bytes` the queue is counted in bytes / `mean_packet`."""

    a: float = 1.822e-5
    b: float = 1.816e-5
    reference: float = 50
    interval_ns: int = 6_250_000
    in_bytes: bool = False
    mean_packet: int = 500
    ecn: bool = False


class Pi(Fifo):
    """The queue and its controller."""

    def __init__(self, limit: Limit, params: Params, uniform: Callable[[], float]) -> None:
        super().__init__(limit)
        self.params = params
        self.uniform = uniform
        self.p = 0.0
        self.q_old = 0.0
        self.clock = Clock(params.interval_ns, params.interval_ns)

    def sample(self) -> None:
        """Takes a sample of the queue, and computes the probability by the control equation of §IV."""
        params = self.params
        q = self.bytes / params.mean_packet if params.in_bytes else float(len(self.queue))
        change = params.a * (q - params.reference) - params.b * (self.q_old - params.reference)
        self.p = min(max(self.p + change, 0.0), 1.0)
        self.q_old = q

    def let_time_pass(self, now_ns: int) -> None:
        """Takes every sample up to now. The queue did not change since the last of them."""
        self.clock.run(self, self.sample, now_ns)

    def judge_arrival(self, packet: Packet, now_ns: int) -> Literal["pass", "mark", "drop"]:
        """Drops or marks with probability p."""
        self.let_time_pass(now_ns)
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
    return serve(Pi(limit, params, uniform), arrivals, rate_bps)
