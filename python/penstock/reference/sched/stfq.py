"""STFQ by its definition (Goyal, Vin, Cheng 1996): every packet has a start when it comes, the least one leaves."""

from collections.abc import Sequence

from penstock.reference.sched import SHIFT, Scheduler


class Stfq(Scheduler):
    """The scheduler with a start tag and a finish tag for each packet, as in the paper."""

    def __init__(self, weights: Sequence[int], max_packet: int) -> None:
        super().__init__(weights, max_packet)
        self.tags: list[list[int]] = [[] for _ in weights]
        self.finish = [0] * len(weights)
        self.now = 0

    def arrive(self, cls: int, number: int, size: int) -> None:
        """S = max(F of the packet before, V); V is that of the packet in service, or the largest F if none is."""
        start = max(self.finish[cls], self.now)
        self.finish[cls] = start + (size << SHIFT) // self.weights[cls]
        self.tags[cls].append(start)
        super().arrive(cls, number, size)

    def depart(self) -> tuple[int, int] | None:
        """Without packets the link is idle, and the busy period is over."""
        if not any(self.queues):
            self.now = max(self.now, *self.finish)
        return super().depart()

    def begins(self, cls: int) -> None:
        """Does nothing, since every packet gets its tag when it arrives."""

    def choose(self) -> int:
        """Returns the class with the least S; of several, the one with the lowest number."""
        return min(self.backlogged(), key=lambda cls: (self.tags[cls][0], cls))

    def sent(self, cls: int, size: int) -> None:  # noqa: ARG002 - the tags have it
        """V = S of the packet in service."""
        self.now = self.tags[cls].pop(0)
