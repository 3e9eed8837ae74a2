"""WF²Q+ by its definition (Bennett and Zhang 1997, §IV): a set of eligible classes, and the least finish among them."""

from collections.abc import Sequence
from fractions import Fraction

from penstock.reference.sched import SHIFT, Scheduler


class Wf2qPlus(Scheduler):
    """S and F are whole units, V is exact."""

    def __init__(self, weights: Sequence[int], max_packet: int) -> None:
        super().__init__(weights, max_packet)
        self.start = [0] * len(weights)
        self.finish = [0] * len(weights)
        self.now = Fraction(0)

    def stamp(self, cls: int, start: int) -> None:
        """F = S + size / weight."""
        self.start[cls] = start
        self.finish[cls] = start + (self.head(cls) << SHIFT) // self.weights[cls]

    def begins(self, cls: int) -> None:
        """S = max(F, V). A busy period that ended is forgotten: V has caught up with all."""
        if self.backlogged() == [cls]:
            self.now = max(self.now, Fraction(max(self.finish)))
        self.stamp(cls, max(self.finish[cls], int(self.now)))

    def choose(self) -> int:
        """V goes on to the least S if need be."""
        waiting = self.backlogged()
        self.now = max(self.now, Fraction(min(self.start[cls] for cls in waiting)))
        eligible = [cls for cls in waiting if self.start[cls] <= self.now]
        return min(eligible, key=lambda cls: (self.finish[cls], cls))

    def sent(self, cls: int, size: int) -> None:
        """V += size / sum of weights; the next packet begins where this one finished."""
        self.now += Fraction(size << SHIFT, sum(self.weights))
        if self.queues[cls]:
            self.stamp(cls, self.finish[cls])
