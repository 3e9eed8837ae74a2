"""W²F²Q as read in w2f2q.rs (Yi et al., WoWMoM 2000): WF²Q+ that passes over classes whose channel is bad."""

from collections.abc import Sequence
from fractions import Fraction

from penstock.reference.sched import SHIFT
from penstock.reference.sched.wf2q_plus import Wf2qPlus


class W2f2q(Wf2qPlus):
    """The scheduler. A class lags by at most `lag` bytes after a bad channel, and leads by at most `lead`."""

    def __init__(self, weights: Sequence[int], max_packet: int, lag: int, lead: int) -> None:
        super().__init__(weights, max_packet)
        self.lag, self.lead = lag, lead
        self.bad: set[int] = set()

    def channel(self, cls: int, good: bool) -> None:
        """Sets the channel of a class; its lag is limited when the channel becomes good."""
        if good and cls in self.bad and self.queues[cls]:
            self.forget_lag(cls)
        (self.bad.discard if good else self.bad.add)(cls)

    def forget_lag(self, cls: int) -> None:
        """S = max(S, V - lag / weight)."""
        least = self.so_far - (self.lag << SHIFT) // self.weights[cls]
        if self.start[cls] < least:
            self.stamp(cls, least)

    def depart(self) -> tuple[int, int] | None:
        """Moves V up to the least S of all classes with packets. Serves no class if all their channels are bad."""
        self.sent_whole()
        waiting = self.backlogged()
        for cls in self.bad.intersection(waiting):
            self.forget_lag(cls)
        if waiting:
            self.now = max(self.now, Fraction(min(self.start[cls] for cls in waiting)))
            self.sent_whole()
        return super().depart() if not waiting or set(waiting) - self.bad else None

    def choose(self) -> int:
        """Returns the eligible class with the least F; if none is eligible, the leading class with the least S."""
        good = [cls for cls in self.backlogged() if cls not in self.bad]
        if due := [cls for cls in good if self.start[cls] <= self.now]:
            return min(due, key=lambda cls: (self.finish[cls], cls))
        return min(good, key=lambda cls: (self.start[cls], cls))

    def sent(self, cls: int, size: int) -> None:
        """S = min(S, V + lead / weight)."""
        super().sent(cls, size)
        most = int(self.now) + (self.lead << SHIFT) // self.weights[cls]
        if not self.queues[cls]:
            self.finish[cls] = min(self.finish[cls], most)
        elif self.start[cls] > most:
            self.stamp(cls, most)
