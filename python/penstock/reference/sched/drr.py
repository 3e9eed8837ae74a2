"""DRR as Shreedhar and Varghese 1996 write it: a round of classes, each with a deficit; `linux`: as sch_drr.c."""

from collections import deque
from collections.abc import Sequence

from penstock.reference.sched import Scheduler


class Drr(Scheduler):
    """`quantum` bytes per turn for each unit of weight; 0 is the largest packet. `linux`: turns end at a look."""

    def __init__(self, weights: Sequence[int], max_packet: int, quantum: int = 0, *, linux: bool = False) -> None:
        super().__init__(weights, max_packet)
        self.linux = linux
        self.quantum = quantum or max_packet
        self.round: deque[int] = deque()
        self.deficit = [0] * len(weights)

    def begins(self, cls: int) -> None:
        """Appends the class to the round. Its first turn begins with one quantum."""
        self.round.append(cls)
        self.deficit[cls] = self.quantum * self.weights[cls]

    def next_turn(self, cls: int) -> None:
        """Ends the turn of a class, which moves to the end of the round."""
        self.round.rotate(-1)
        self.deficit[cls] += self.quantum * self.weights[cls]

    def choose(self) -> int:
        """Returns the first class of the round whose deficit suffices for its first packet."""
        while self.head(self.round[0]) > self.deficit[self.round[0]]:
            self.next_turn(self.round[0])
        return self.round[0]

    def sent(self, cls: int, size: int) -> None:
        """A class without packets leaves; one whose deficit is too small waits for its next turn."""
        self.deficit[cls] -= size
        if not self.queues[cls]:
            self.round.popleft()
        elif self.head(cls) > self.deficit[cls] and not self.linux:
            self.next_turn(cls)
