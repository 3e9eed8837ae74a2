"""Flow queueing as RFC 8290 §4 writes it, around the twin of any algorithm that judges one queue.

Draws no random number but those of the algorithm, in the order in which its queues are asked. The key of the hash must
be given: it comes from a stream of its own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from penstock.reference import codel
from penstock.reference.link import CE, Arrival, Fate, Fifo, Limit, Packet, serve

U64 = 2**64 - 1
LIMITLESS: Limit = ("packets", 2**63)


@dataclass(frozen=True)
class Params:
    """RFC 8290 §5.2. `make` gives a queue, from the rate of the link and the random numbers."""

    make: Callable[[int, Callable[[], float]], Fifo]
    flows: int = 1024
    ways: int = 1
    quantum: int = 1514
    memory_limit: int = 32 << 20
    fattest: bool = True
    drop_batch: int = 64
    key: int = 0
    linux: bool = False


def mix(x: int) -> int:
    """The finalizer of splitmix64."""
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & U64
    x = (x ^ x >> 27) * 0x94D049BB133111EB & U64
    return x ^ x >> 31


class FlowQueues(Fifo):
    """All flow queues, and the lists of new and old queues by number."""

    def __init__(self, limit: Limit, params: Params, rate_bps: int, uniform: Callable[[], float]) -> None:
        super().__init__(limit)
        self.params = params
        self.rate_bps = rate_bps
        self.uniform = uniform
        self.key = params.key
        self.queues: dict[int, Fifo] = {}
        self.new: list[int] = []
        self.old: list[int] = []
        self.deficit: dict[int, int] = {}
        self.owner: dict[int, int] = {}
        self.shared: set[int] = set()

    def number_of(self, flow: int) -> int:
        """Returns the number of a flow's queue. With several ways, a new flow gets an idle queue if its set has one."""
        ways = self.params.ways
        home = (mix(((flow + 1) * 0x9E3779B97F4A7C15 & U64) ^ self.key) >> 32) * self.params.flows >> 32
        if ways == 1:
            return home
        active = {*self.new, *self.old}
        self.shared &= active
        first = home // ways * ways
        nearest_first = [first + (home - first + i) % ways for i in range(ways)]
        own = [number for number in nearest_first if self.owner.get(number) == flow]
        idle = [number for number in nearest_first if number not in active]
        if own:
            return own[0]
        if home in self.shared:
            return home
        if idle:
            self.owner[idle[0]] = flow
            return idle[0]
        self.shared.add(home)
        return home

    def queue_of(self, number: int) -> Fifo:
        """Returns the queue of this number, which is created at its first use."""
        if number not in self.queues:
            queue = self.params.make(self.rate_bps, self.uniform)
            queue.fates = self.fates
            self.queues[number] = queue
            if isinstance(queue, codel.Linux):
                queue.others = lambda: self.total()[1] - queue.bytes
        return self.queues[number]

    def total(self) -> tuple[int, int]:
        """Returns the packets and the bytes in all queues."""
        queues = self.queues.values()
        return sum(len(queue.queue) for queue in queues), sum(queue.bytes for queue in queues)

    def waits(self) -> bool:
        """Returns true if any packet waits."""
        return self.total()[0] > 0

    def too_much(self, packets: int, size: int) -> bool:
        """Returns true if so many packets or bytes exceed a limit."""
        kind, most = self.limit
        if (packets if kind == "packets" else size) > most:
            return True
        counted_only = self.params.linux and not self.params.fattest
        return size > self.params.memory_limit and not counted_only

    def enqueue(self, packet: Packet, now_ns: int) -> None:
        """Follows §4.1 of the source."""
        number = self.number_of(packet.flow)
        queue = self.queue_of(number)
        verdict = queue.judge_arrival(packet, now_ns)
        packets, size = self.total()
        if verdict == "drop":
            self.end(packet, "drop_early", now_ns)
            return
        if not self.params.fattest and self.too_much(packets + 1, size + packet.size):
            queue.overflowed()
            self.end(packet, "drop_overflow", now_ns)
            return
        if verdict == "mark":
            packet.ecn = CE
        queue.queue.append(packet)
        queue.bytes += packet.size
        if number not in self.new and number not in self.old:
            self.new.append(number)
            self.deficit[number] = self.params.quantum
        while self.too_much(*self.total()):
            self.drop_batch(now_ns)

    def drop_batch(self, now_ns: int) -> None:
        """Drops half of the bytes of the longest queue from its head, but at most `drop_batch` packets."""
        fattest = max(sorted(self.queues), key=lambda number: self.queues[number].bytes)
        queue, dropped = self.queues[fattest], 0
        half = queue.bytes // 2
        for _ in range(self.params.drop_batch):
            queue.shed(now_ns)
            packet = queue.pop()
            if packet is None:
                break
            self.end(packet, "drop_overflow", now_ns)
            dropped += packet.size
            if dropped >= half:
                break

    def dequeue(self, now_ns: int) -> Packet | None:
        """Follows §4.2 of the source."""
        while turn := self.new or self.old:
            number = turn[0]
            if self.deficit[number] <= 0:
                self.deficit[number] += self.params.quantum
                self.old.append(turn.pop(0))
                continue
            packet = self.queues[number].dequeue(now_ns)
            if packet is not None:
                self.deficit[number] -= packet.size
                return packet
            turn.pop(0)
            if turn is self.new and self.old:
                self.old.append(number)
        return None


def replay(
    arrivals: Sequence[Arrival], rate_bps: int, limit: Limit, params: Params, uniform: Callable[[], float]
) -> list[Fate]:
    """Returns the fate of each packet. The number of a flow is hashed."""
    return serve(FlowQueues(limit, params, rate_bps, uniform), arrivals, rate_bps)
