"""REM as Athuraliya, Low, Li and Yin wrote it in 2001 (eq. 1 and 2), with the periods of ns-2.

An update is made before all other events of its time. Draws one random number for each packet that is judged while
p > 0: at its departure if it can be marked, else at its arrival.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from penstock.reference.link import CE, NOT_ECT, Arrival, Clock, Fate, Fifo, Limit, Packet, serve


@dataclass(frozen=True)
class Params:
    """`target` is in packets. With `in_bytes` packets are counted in bytes / `mean_packet`."""

    gamma: float = 0.001
    phi: float = 1.001
    alpha: float = 0.1
    target: float = 20
    interval_ns: int = 2_000_000
    weight: float = 1.0
    mean_packet: int = 1000
    in_bytes: bool = False
    ecn: bool = False


class Rem(Fifo):
    """The queue, its price and its probability."""

    def __init__(self, limit: Limit, params: Params, rate_bps: int, uniform: Callable[[], float]) -> None:
        super().__init__(limit)
        self.params = params
        self.uniform = uniform
        self.capacity = params.interval_ns / 1e9 * (rate_bps / (8 * params.mean_packet))
        self.arrived = 0
        self.arrived_bytes = 0
        self.x = 0.0
        self.price = 0.0
        self.p = 0.0
        self.clock = Clock(params.interval_ns, params.interval_ns)

    def measure(self, packets: int, size: int) -> float:
        """Returns the number of packets, or with `in_bytes` the bytes divided by `mean_packet`."""
        return size / self.params.mean_packet if self.params.in_bytes else float(packets)

    def update(self) -> None:
        """Computes the price and the probability of the next period."""
        params = self.params
        n = self.measure(self.arrived, self.arrived_bytes)
        q = self.measure(len(self.queue), self.bytes)
        self.x = (1 - params.weight) * self.x + params.weight * n
        excess = self.x + params.alpha * (q - params.target) - self.capacity
        self.price = max(self.price + params.gamma * excess, 0.0)
        self.p = 1 - params.phi**-self.price
        self.arrived = self.arrived_bytes = 0

    def let_time_pass(self, now_ns: int) -> None:
        """Makes every update up to now. The queue did not change since the last of them."""
        self.clock.run(self, self.update, now_ns)

    def can_be_marked(self, packet: Packet) -> bool:
        """Returns true for a packet that can be marked, which is judged when it leaves the queue."""
        return self.params.ecn and packet.ecn != NOT_ECT

    def happens(self) -> bool:
        """Returns true with probability p."""
        return self.p > 0 and self.uniform() < self.p

    def judge_arrival(self, packet: Packet, now_ns: int) -> Literal["pass", "mark", "drop"]:
        """Judges a packet that cannot be marked. Every arrival counts as input, even if it is dropped."""
        self.let_time_pass(now_ns)
        self.arrived += 1
        self.arrived_bytes += packet.size
        return "drop" if not self.can_be_marked(packet) and self.happens() else "pass"

    def dequeue(self, now_ns: int) -> Packet | None:
        """Returns the head of the queue, which it may mark."""
        self.let_time_pass(now_ns)
        packet = self.pop()
        if packet is not None and self.can_be_marked(packet) and self.happens():
            packet.ecn = CE
        return packet


def replay(
    arrivals: Sequence[Arrival], rate_bps: int, limit: Limit, params: Params, uniform: Callable[[], float]
) -> list[Fate]:
    """Returns the fate of each packet, in the order of arrival."""
    return serve(Rem(limit, params, rate_bps, uniform), arrivals, rate_bps)
