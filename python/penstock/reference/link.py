"""A queue in front of a link, and the fates of packets.

If a departure and an arrival have the same time, the departure is first. A packet leaves the queue when its
transmission begins. The link asks for a packet when it becomes free, and when a packet arrives while it is free.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

Limit = tuple[Literal["packets", "bytes"], int]

NOT_ECT, ECT1, ECT0, CE = range(4)
NS_PER_S = 1_000_000_000


class Arrival(NamedTuple):
    """A packet that arrives at the queue. The last three fields are its ERN bits (2 ERC, 1 ENR) and its ERN option."""

    t_ns: int
    flow: int
    size: int
    ecn: int = NOT_ECT
    ern: int = 0
    cwnd: int = 0
    rtt_ms: int = 0


class Fate(NamedTuple):
    """The fate of a packet ("sent", "drop_early", "drop_overflow", "drop_dequeue"), its time and its ECN field."""

    name: str
    t_ns: int
    ecn: int


@dataclass
class Packet:
    """A packet in the queue; `id` is its index among the arrivals."""

    id: int
    size: int
    ecn: int
    since_ns: int
    flow: int = 0


class Fifo:
    """One queue in the order of arrival. An algorithm overrides `judge_arrival`, `overflowed` or `dequeue`."""

    def __init__(self, limit: Limit) -> None:
        self.limit = limit
        self.queue: deque[Packet] = deque()
        self.bytes = 0
        self.fates: dict[int, Fate] = {}

    def judge_arrival(self, packet: Packet, now_ns: int) -> Literal["pass", "mark", "drop"]:
        """Judges every arrival, before the limit of the queue is checked."""
        del packet, now_ns
        return "pass"

    def overflowed(self) -> None:
        """Called when a packet which was accepted is dropped because the queue is full."""

    def shed(self, now_ns: int) -> None:
        """Drops the head of the queue, to make room for packets of other queues."""
        del now_ns
        self.overflowed()

    def waits(self) -> bool:
        """Returns true if any packet waits."""
        return len(self.queue) > 0

    def enqueue(self, packet: Packet, now_ns: int) -> None:
        """Accepts an arriving packet or drops it."""
        verdict = self.judge_arrival(packet, now_ns)
        if verdict == "drop":
            self.end(packet, "drop_early", now_ns)
        elif not self.has_room(packet):
            self.overflowed()
            self.end(packet, "drop_overflow", now_ns)
        else:
            if verdict == "mark":
                packet.ecn = CE
            self.queue.append(packet)
            self.bytes += packet.size

    def has_room(self, packet: Packet) -> bool:
        """Returns true if the limit allows one packet more."""
        kind, most = self.limit
        return len(self.queue) < most if kind == "packets" else self.bytes + packet.size <= most

    def pop(self) -> Packet | None:
        """Removes and returns the head of the queue; `None` if it is empty."""
        if not self.queue:
            return None
        packet = self.queue.popleft()
        self.bytes -= packet.size
        return packet

    def dequeue(self, now_ns: int) -> Packet | None:
        """Returns the packet that the link transmits next; `None` if there is none."""
        del now_ns
        return self.pop()

    def end(self, packet: Packet, name: str, now_ns: int) -> None:
        """Records the fate of a packet."""
        self.fates[packet.id] = Fate(name, now_ns, packet.ecn)


class Clock:
    """A periodic timer, which expires at `next_ns` and every `interval_ns` after it."""

    def __init__(self, first_ns: int, interval_ns: int) -> None:
        self.next_ns = first_ns
        self.interval_ns = interval_ns

    def run(self, owner: Fifo, update: Callable[[], None], now_ns: int) -> None:
        """Calls `update` for every expiry up to now.

        If an update does not change the state of `owner`, the remaining ones would not either and are left out. The
        comparison is slow, so it is made only after 7, 15, 31, ... updates.
        """
        done = 0
        while self.next_ns <= now_ns:
            looks = done >= 7 and done & (done + 1) == 0
            before = numbers(owner) if looks else []
            update()
            done += 1
            self.next_ns += self.interval_ns
            if looks and self.next_ns <= now_ns and numbers(owner) == before:
                self.next_ns += ((now_ns - self.next_ns) // self.interval_ns + 1) * self.interval_ns


def numbers(owner: object) -> list[object]:
    """Returns all numbers in the state of an object."""
    return [
        tuple(v) if isinstance(v, list) else v for v in vars(owner).values() if isinstance(v, (int, float, tuple, list))
    ]


class Link:
    """A link that serves a queue at a rate. Times are whole nanoseconds; remainders of divisions are carried on."""

    def __init__(self, queue: Fifo, rate_bps: int) -> None:
        self.queue = queue
        self.rate_bps = rate_bps
        self.remainder = 0
        self.free_at: int | None = None

    def take(self, now_ns: int) -> None:
        """Starts the transmission of the next packet, if there is one."""
        packet = self.queue.dequeue(now_ns)
        self.free_at = None
        if packet is not None:
            self.queue.end(packet, "sent", now_ns)
            took, self.remainder = divmod(packet.size * 8 * NS_PER_S + self.remainder, self.rate_bps)
            self.free_at = now_ns + took

    def advance_to(self, t_ns: int) -> None:
        """Executes every departure up to `t_ns`."""
        while self.free_at is not None and self.free_at <= t_ns:
            self.take(self.free_at)


def serve(queue: Fifo, arrivals: Iterable[Arrival], rate_bps: int) -> list[Fate]:
    """Gives the arrivals to the queue, drains it through the link, and returns all fates in the order of arrival."""
    link = Link(queue, rate_bps)
    for number, (t_ns, flow, size, ecn, *_) in enumerate(arrivals):
        link.advance_to(t_ns)
        queue.enqueue(Packet(number, size, ecn, t_ns, flow), t_ns)
        if link.free_at is None and queue.waits():
            link.take(t_ns)
    while link.free_at is not None:
        link.take(link.free_at)
    return [queue.fates[number] for number in sorted(queue.fates)]
