"""HFS and the modular wireless architecture: document 002 §4.1.2, §4.2.1 and §4.2.4, Figure 4.3.

    a packet arrives:            into the QoS layer; while S < Q: prefetch
    the MAC-SAL sends a packet:  while S < Q: prefetch
    prefetch:                    the next packet of the QoS layer joins the queue of its station

Q is a number of packets or of bytes, and with 0 the QoS layer feeds the link. Both schedulers are readable twins of
their own. The source is silent about the limit of a flow, which holds for both layers together, and about packets
larger than `max_packet`, which count as one of this size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from penstock.reference.ack import Gateway
from penstock.reference.link import Limit, Packet
from penstock.reference.sched import Scheduler

Make = Callable[[Sequence[int], int], Scheduler]  # from weights and the largest packet


@dataclass(frozen=True)
class Params:
    """Makers of the schedulers of QoS layer and MAC-SAL, the weights of flows, and the parameters of the page."""

    qos: Make
    mac: Make
    weights: tuple[int, ...]
    stations: int
    buffer: Limit
    class_limit: Limit
    weighting: str
    max_packet: int = 1700


def weights(policy: str, losses: Sequence[float]) -> list[int]:
    """Returns the weight of each station (§4.2.4.2). The rank of the station that loses most is 1, of the next 2."""
    ranked = sorted(range(len(losses)), key=lambda station: -losses[station])
    rank = {station: place + 1 for place, station in enumerate(ranked)}
    stations = range(len(losses))
    if policy == "analogical":
        return [max(int((1 - losses[station]) * 1000 + 0.5), 1) for station in stations]
    if policy == "exponential":  # a weight has at most 2^20
        return [2 ** max(rank[station] - max(len(losses) - 20, 0), 0) for station in stations]
    return [rank[station] if policy == "linear" else 1 for station in stations]


class Held:
    """Packets and bytes."""

    def __init__(self) -> None:
        self.packets = self.bytes = 0

    def add(self, size: int, count: int = 1) -> None:
        """One packet more, or less."""
        self.packets, self.bytes = self.packets + count, self.bytes + count * size


class Modular(Gateway):
    """The two layers. Packets are known to the schedulers by their numbers."""

    def __init__(self, limit: Limit, params: Params, rate_bps: int) -> None:
        super().__init__(limit)
        self.params = params
        self.rate_bps = rate_bps
        self.began_ns = 0  # when the packet that left last began to be sent
        self.losses = [0.0] * params.stations
        self.qos = params.qos(params.weights, params.max_packet)
        self.mac = params.mac(weights(params.weighting, self.losses), params.max_packet)
        self.waiting: dict[int, Packet] = {}
        self.prefetched = Held()
        self.flows = [Held() for _ in params.weights]

    def counted(self, packet: Packet) -> int:
        """The size for the schedulers."""
        return min(packet.size, self.params.max_packet)

    def flow(self, packet: Packet) -> int:
        """The class of a packet."""
        return packet.flow % len(self.flows)

    def told(self, name: str, index: int, value: int, now_ns: int) -> None:
        """A station loses so many packets of a million: all stations are weighed again."""
        del now_ns
        if name == "channel" and index < len(self.losses):
            self.losses[index] = value / 1e6
            self.mac.weights = weights(self.params.weighting, self.losses)

    def has_room(self, packet: Packet) -> bool:
        """The whole queue and the flow have limits."""
        kind, most = self.params.class_limit
        held, size = self.flows[self.flow(packet)], self.counted(packet)
        fits = held.packets < most if kind == "packets" else held.bytes + size <= most
        kind, most = self.limit
        return fits and (len(self.waiting) < most if kind == "packets" else self.bytes + packet.size <= most)

    def enqueue(self, packet: Packet, now_ns: int) -> None:
        """A packet arrives."""
        if not self.has_room(packet):
            return self.end(packet, "drop_overflow", now_ns)
        self.waiting[packet.id] = packet
        self.bytes += packet.size
        self.flows[self.flow(packet)].add(self.counted(packet))
        sent = self.rate_bps * (now_ns - self.began_ns) // (8 * 10**9)
        if self.direct:
            self.qos.progress(sent)
        self.qos.arrive(self.flow(packet), packet.id, self.counted(packet))
        return self.prefetch(sent)

    @property
    def direct(self) -> bool:
        """With Q = 0 the QoS layer feeds the link."""
        return self.params.buffer[1] == 0

    def prefetch(self, sent: int) -> None:
        """While S < Q; of the packet on the link so many bytes have been sent."""
        kind, most = self.params.buffer
        while (self.prefetched.packets if kind == "packets" else self.prefetched.bytes) < most:
            if (first := self.qos.depart()) is None:
                return
            number, size = first
            self.prefetched.add(size)
            self.mac.progress(sent)
            self.mac.arrive(self.flow(self.waiting[number]) % self.params.stations, number, size)

    def dequeue(self, now_ns: int) -> Packet | None:
        """The link asks."""
        if (first := (self.qos if self.direct else self.mac).depart()) is None:
            return None
        self.began_ns = now_ns
        number, size = first
        packet = self.waiting.pop(number)
        self.bytes -= packet.size
        self.flows[self.flow(packet)].add(size, -1)
        if not self.direct:
            self.prefetched.add(size, -1)
            self.prefetch(0)
        return packet

    def waits(self) -> bool:
        """Returns true if any packet waits."""
        return len(self.waiting) > 0
