"""QFQ+ by its rules (Valente 2014): aggregates of classes of one weight, QFQ among them, DRR inside."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from penstock.reference.sched import Scheduler
from penstock.reference.sched.qfq import Groups


class Aggregate:
    """Classes of one weight that share a budget."""

    def __init__(self, groups: Groups, weight: int, classes: list[int], largest: int) -> None:
        self.largest_budget = len(classes) * largest
        self.entity = groups.entity(largest, weight)
        self.entity.inverse = groups.entity(largest, weight * len(classes)).inverse
        self.round: deque[int] = deque()
        self.budget = 0

    def recharge(self) -> None:
        """Sets a full budget, and the finish time for a budget that is used completely."""
        self.budget = self.largest_budget
        self.entity.finish = self.entity.start + self.budget * self.entity.inverse


class QfqPlus(Scheduler):
    """The scheduler QFQ+, with at most `most` classes in an aggregate."""

    def __init__(self, weights: Sequence[int], max_packet: int, most: int = 8) -> None:
        super().__init__(weights, max_packet)
        self.groups = Groups(max_packet)
        self.inverse = self.groups.entity(1, sum(weights)).inverse
        self.deficit = [0] * len(weights)
        self.aggregates: list[Aggregate] = []
        self.of: dict[int, Aggregate] = {}
        for weight in sorted(set(weights)):
            same = [cls for cls, other in enumerate(weights) if other == weight]
            for first in range(0, len(same), most):
                classes = same[first : first + most]
                self.aggregates.append(Aggregate(self.groups, weight, classes, max_packet))
                self.of |= dict.fromkeys(classes, self.aggregates[-1])
        self.serving: Aggregate | None = None

    def put(self, aggregate: Aggregate) -> None:
        """Adds an aggregate to those which wait for service."""
        self.groups.put(self.aggregates.index(aggregate), aggregate.entity)

    def begins(self, cls: int) -> None:
        """Adds a class with a new packet to its aggregate. An aggregate that was idle is started again."""
        aggregate = self.of[cls]
        self.deficit[cls] = self.max_packet
        aggregate.round.append(cls)
        if len(aggregate.round) > 1 or aggregate is self.serving:
            return
        self.groups.restart(aggregate.entity)
        aggregate.recharge()
        if self.serving is None:
            self.serving = aggregate
            self.groups.now = aggregate.entity.start
        else:
            self.put(aggregate)

    def depart(self) -> tuple[int, int] | None:
        """Without packets, nobody is in service any more."""
        if any(self.queues):
            return super().depart()
        if self.serving is not None:
            self.end_service(self.serving)
            self.serving = None
        return None

    def end_service(self, aggregate: Aggregate) -> None:
        """Ends the service of an aggregate, which is charged for the bytes that it sent."""
        entity = aggregate.entity
        entity.finish = entity.start + (aggregate.largest_budget - aggregate.budget) * entity.inverse
        if aggregate.round:
            entity.start = entity.finish
            aggregate.recharge()
            self.put(aggregate)

    def choose(self) -> int:
        """Returns the next class of the aggregate in service; of the next aggregate when its budget is used up."""
        serving = self.serving
        assert serving is not None, "with packets there is one in service"
        if not serving.round or self.head(serving.round[0]) > serving.budget:
            self.end_service(serving)
            self.groups.catch_up()
            group = self.groups.best()
            assert group is not None, "another waits"
            serving = self.serving = self.aggregates[self.groups.take(group)]
        return serving.round[0]

    def sent(self, cls: int, size: int) -> None:
        """DRR with a quantum of the largest packet."""
        aggregate = self.of[cls]
        self.groups.now += size * self.inverse
        aggregate.budget -= size
        self.deficit[cls] -= size
        if not self.queues[cls]:
            aggregate.round.popleft()
        elif self.head(cls) > self.deficit[cls]:
            self.deficit[cls] += self.max_packet
            aggregate.round.rotate(-1)
