"""DRR as Shreedhar and Varghese 1996 write it: a round of classes, each with a deficit; `linux`: as sch_drr.c."""

from collections import deque
from collections.abc import Sequence

from penstock.reference.sched import Scheduler


class Drr(Scheduler):
    """`quantum` bytes per turn for each unit of weight; 0 is the largest packet.

    `linux`: a class leaves the round when its last packet begins to be sent, not when it has been sent.
    """

    def __init__(self, weights: Sequence[int], max_packet: int, quantum: int = 0, *, linux: bool = False) -> None:
        super().__init__(weights, max_packet)
        self.linux = linux
        self.quantum = quantum or max_packet
        self.round: deque[int] = deque()
        self.deficit = [0] * len(weights)

    def begins(self, cls: int) -> None:
        """Appends the class to the round. Its first turn begins with one quantum."""
        if cls not in self.round:
            self.round.append(cls)
            self.deficit[cls] = self.quantum * self.weights[cls]

    def depart(self) -> tuple[int, int] | None:
        """The packet before has been sent; if it was the last of its class, the class leaves."""
        if self.round and not self.queues[self.round[0]]:
            self.round.popleft()
        return super().depart()

    def choose(self) -> int:
        """Returns the first class of the round whose deficit suffices for its first packet."""
        while self.head(self.round[0]) > self.deficit[self.round[0]]:
            self.deficit[self.round[0]] += self.quantum * self.weights[self.round[0]]
            self.round.rotate(-1)
        return self.round[0]

    def sent(self, cls: int, size: int) -> None:
        """A class without packets leaves; one whose deficit is too small waits for its next turn."""
        self.deficit[cls] -= size
        if self.linux and not self.queues[cls]:
            self.round.popleft()
