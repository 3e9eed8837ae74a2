"""Readable twins of packet schedulers: plain and slow, written from their definitions with whole numbers and fractions.

    replay(Wf2qPlus(weights, max_packet), events) -> numbers of packets in the order in which they leave

Events are ("arrive", class, size), ("depart", 0, 0), ("progress", 0, bytes sent so far of the packet that departed
last) and, for schedulers that know channels, ("channel", class, 1 for a good one or 0 for a bad one); packets are
numbered as they arrive. A departure from empty queues gives -1, and the link is idle; after the last event all that
waits departs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Sequence

SHIFT = 36  # Virtual time is counted in units of 2^-36 bytes of a class of weight 1.

Event = tuple[str, int, int]


class Scheduler(ABC):
    """The queues of all classes. Each algorithm overrides `choose`, which selects the class that is served."""

    def __init__(self, weights: Sequence[int], max_packet: int) -> None:
        self.weights = list(weights)
        self.max_packet = max_packet
        self.queues: list[deque[tuple[int, int]]] = [deque() for _ in weights]

    def head(self, cls: int) -> int:
        """Returns the size of the first packet of a class, which must have one."""
        return self.queues[cls][0][1]

    def backlogged(self) -> list[int]:
        """Returns the classes with packets."""
        return [cls for cls, queue in enumerate(self.queues) if queue]

    def arrive(self, cls: int, number: int, size: int) -> None:
        """Appends an arriving packet to the queue of its class."""
        self.queues[cls].append((number, size))
        if len(self.queues[cls]) == 1:
            self.begins(cls)

    def depart(self) -> tuple[int, int] | None:
        """Removes the packet that is served next, and returns its (number, size)."""
        if not any(self.queues):
            return None
        cls = self.choose()
        packet = self.queues[cls].popleft()
        self.sent(cls, packet[1])
        return packet

    def progress(self, sent: int) -> None:
        """Called with how many bytes have been sent of the packet that departed last. Most schedulers ignore it."""
        del sent

    def channel(self, cls: int, good: bool) -> None:
        """Called when the channel of a class changes. Most schedulers ignore it."""
        del cls, good

    @abstractmethod
    def begins(self, cls: int) -> None:
        """Called when a class without packets gets one."""

    @abstractmethod
    def choose(self) -> int:
        """Returns the class to serve. At least one class has packets."""

    @abstractmethod
    def sent(self, cls: int, size: int) -> None:
        """Called when the first packet of the chosen class has left."""


def replay(scheduler: Scheduler, events: Iterable[Event]) -> list[int]:
    """Returns the numbers of the packets in the order of departure."""
    order: list[int] = []
    number = 0
    for kind, cls, size in events:
        if kind == "arrive":
            scheduler.arrive(cls, number, size)
            number += 1
        elif kind == "progress":
            scheduler.progress(size)
        elif kind == "channel":
            scheduler.channel(cls, good=bool(size))
        else:
            packet = scheduler.depart()
            order.append(-1 if packet is None else packet[0])
    while (packet := scheduler.depart()) is not None:
        order.append(packet[0])
    return order
