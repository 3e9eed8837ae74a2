"""WF²Q+ by its definition (Bennett and Zhang 1997, §IV): a set of eligible classes, and the least finish among them."""

from collections.abc import Sequence
from fractions import Fraction

from penstock.reference.sched import SHIFT, Scheduler


class Wf2qPlus(Scheduler):
    """S and F are whole units, V is exact.

    A packet in service moves V as it is sent; with `at_once` it does so when its service begins.
    """

    def __init__(self, weights: Sequence[int], max_packet: int, *, at_once: bool = False) -> None:
        super().__init__(weights, max_packet)
        self.at_once = at_once
        self.start = [0] * len(weights)
        self.finish = [0] * len(weights)
        self.now = Fraction(0)  # V when the packet in service has been sent
        self.so_far = 0  # V, as far as the service of that packet is known
        self.served = Fraction(0), 0  # V at the begin of the service, and the size of the packet
        self.serving: int | None = None  # its class

    def stamp(self, cls: int, start: int) -> None:
        """F = S + size / weight."""
        self.start[cls] = start
        self.finish[cls] = start + (self.head(cls) << SHIFT) // self.weights[cls]

    def progress(self, sent: int) -> None:
        """V goes on with the packet in service."""
        began, size = self.served
        self.so_far = max(self.so_far, int(began) + (min(sent, size) << SHIFT) // sum(self.weights))

    def begins(self, cls: int) -> None:
        """S = max(F, V); S = F while the last packet of the class is in service."""
        if self.at_once and self.backlogged() == [cls]:
            self.forget()
        self.stamp(cls, self.finish[cls] if cls == self.serving else max(self.finish[cls], self.so_far))

    def forget(self) -> None:
        """A busy period is over: V has caught up with all."""
        self.now = max(self.now, Fraction(max(self.finish)))
        self.so_far = int(self.now)

    def sent_whole(self) -> None:
        """The packet in service has been sent."""
        self.so_far, self.served, self.serving = int(self.now), (self.now, 0), None

    def depart(self) -> tuple[int, int] | None:
        """The link is free. Without packets it is idle."""
        self.sent_whole()
        if not any(self.queues):
            self.forget()
        return super().depart()

    def choose(self) -> int:
        """V goes on to the least S if need be."""
        waiting = self.backlogged()
        self.now = max(self.now, Fraction(min(self.start[cls] for cls in waiting)))
        eligible = [cls for cls in waiting if self.start[cls] <= self.now]
        return min(eligible, key=lambda cls: (self.finish[cls], cls))

    def sent(self, cls: int, size: int) -> None:
        """V += size / sum of weights; the next packet begins where this one finished."""
        self.served, self.serving, self.so_far = (self.now, size), cls, int(self.now)
        self.now += Fraction(size << SHIFT, sum(self.weights))
        if self.at_once:
            self.sent_whole()
        if self.queues[cls]:
            self.stamp(cls, self.finish[cls])
