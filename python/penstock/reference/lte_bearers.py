"""Bearers of an LTE cell: logical channel prioritization (3GPP TS 36.321 §5.4.3.1), with the excess of guarantees last.

    B = rate (t - z), at most rate * bucket

A bearer with B >= 0 is behind the rate that it was promised. It draws no random numbers.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from penstock.reference.link import NS_PER_S, Arrival, Fate, Fifo, Limit, Packet, serve

# QCI: whether it guarantees a rate, and its priority (TS 23.203 Table 6.1.7).
QCIS = {
    1: (True, 2.0),
    2: (True, 4.0),
    3: (True, 3.0),
    4: (True, 5.0),
    65: (True, 0.7),
    66: (True, 2.0),
    67: (True, 1.5),
    5: (False, 1.0),
    6: (False, 6.0),
    7: (False, 7.0),
    8: (False, 8.0),
    9: (False, 9.0),
    69: (False, 0.5),
    70: (False, 5.5),
}


@dataclass(frozen=True)
class Params:
    """`bearers` are QCIs with their rates in bit/s; flow i has bearer i modulo their number."""

    bearers: tuple[tuple[int, int | None], ...]
    bucket_ns: int
    quantum: int


@dataclass
class Bearer:
    """A bearer with its queue."""

    rate: int | None
    allowance: int
    queue: deque[Packet] = field(default_factory=deque)
    z_ns: int = 0
    remainder: int = 0
    deficit: int = 0

    @property
    def bytes(self) -> int:
        """The bytes that wait."""
        return sum(packet.size for packet in self.queue)


@dataclass
class Band:
    """The bearers of one priority: all of them, and the lists of those with packets, of which new ones are first."""

    bearers: list[Bearer] = field(default_factory=list)
    new: list[Bearer] = field(default_factory=list)
    old: list[Bearer] = field(default_factory=list)


class LteBearers(Fifo):
    """The queues of all bearers of a cell."""

    def __init__(self, limit: Limit, params: Params) -> None:
        super().__init__(limit)
        self.params = params
        # The bands in the order of step 2: those without guaranteed rates are first.
        self.bands = {QCIS[qci]: Band() for qci, _ in sorted(params.bearers, key=lambda bearer: QCIS[bearer[0]])}
        self.of_flow: dict[int, tuple[Band, Bearer]] = {}

    def bearer(self, flow: int) -> tuple[Band, Bearer]:
        """Returns the bearer of a flow, which is created when its first packet arrives."""
        if flow not in self.of_flow:
            qci, rate = self.params.bearers[flow % len(self.params.bearers)]
            saved = (rate or 0) * self.params.bucket_ns // (8 * NS_PER_S)
            band, bearer = self.bands[QCIS[qci]], Bearer(rate, max(saved, self.params.quantum))
            band.bearers.append(bearer)
            self.of_flow[flow] = band, bearer
        return self.of_flow[flow]

    def waits(self) -> bool:
        """Returns true if any packet waits."""
        return any(bearer.queue for _, bearer in self.of_flow.values())

    def too_much(self) -> bool:
        """Returns true if all queues together exceed the limit."""
        kind, most = self.limit
        bearers = [bearer for _, bearer in self.of_flow.values()]
        return sum(len(bearer.queue) if kind == "packets" else bearer.bytes for bearer in bearers) > most

    def enqueue(self, packet: Packet, now_ns: int) -> None:
        """Appends the packet to its queue. While all queues together exceed the limit, drops a packet of `payer()`."""
        band, bearer = self.bearer(packet.flow)
        bearer.queue.append(packet)
        if not any(bearer is other for other in band.new + band.old):
            band.new.append(bearer)
            bearer.deficit = self.params.quantum
        while self.too_much():
            self.end(self.payer().queue.popleft(), "drop_overflow", now_ns)

    def payer(self) -> Bearer:
        """Returns the bearer that loses a packet.

        It is in the last band with a bearer whose backlog exceeds its allowance, and there the one that exceeds it
        most; without such a bearer, the one with the largest backlog in the last band with packets.
        """
        last_first = [band.bearers for band in reversed(self.bands.values())]
        beyond: list[Callable[[Bearer], int]] = [lambda b: b.bytes - b.allowance, lambda b: b.bytes]
        for measure in beyond:
            for bearers in last_first:
                if bearers and max(map(measure, bearers)) > 0:
                    return max(reversed(bearers), key=measure)
        raise AssertionError("somebody has packets")

    def dequeue(self, now_ns: int) -> Packet | None:
        """Step 1, then step 2."""
        by_priority = sorted(self.bands.items(), key=lambda item: item[0][1])
        for _, band in by_priority:
            behind = [b for b in band.bearers if b.rate and b.queue and b.z_ns <= now_ns]
            if behind:
                bearer = min(behind, key=lambda b: b.z_ns)
                packet = bearer.queue.popleft()
                took, bearer.remainder = divmod(packet.size * 8 * NS_PER_S + bearer.remainder, bearer.rate or 1)
                bearer.z_ns = max(bearer.z_ns, now_ns - self.params.bucket_ns) + took
                return packet
        for band in self.bands.values():
            packet_in_turn = self.in_turn(band)
            if packet_in_turn is not None:
                return packet_in_turn
        return None

    def in_turn(self, band: Band) -> Packet | None:
        """DRR++, as in RFC 8290 §4.2."""
        while turn := band.new or band.old:
            bearer = turn[0]
            if bearer.deficit <= 0:
                bearer.deficit += self.params.quantum
                band.old.append(turn.pop(0))
            elif bearer.queue:
                packet = bearer.queue.popleft()
                bearer.deficit -= packet.size
                return packet
            else:
                turn.pop(0)
                if turn is band.new and band.old:
                    band.old.append(bearer)
        return None


def replay(
    arrivals: Sequence[Arrival], rate_bps: int, limit: Limit, params: Params, uniform: Callable[[], float]
) -> list[Fate]:
    """Returns the fate of each packet. The number of a flow tells its bearer."""
    del uniform
    return serve(LteBearers(limit, params), arrivals, rate_bps)
