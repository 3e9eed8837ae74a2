"""QFQ by its definition (Checconi, Rizzo, Valente 2013), without bitmaps.

The group with the least finish time is served, among those which the definition allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.reference.sched import SHIFT, Scheduler

LAST_GROUP = 24


@dataclass
class Entity:
    """A member of a group: a class in QFQ, an aggregate in QFQ+."""

    group: int
    inverse: int
    start: int = 0
    finish: int = 0


@dataclass
class Group:
    """A group of entities, sorted into slots by their start times."""

    shift: int
    slots: dict[int, list[int]] = field(default_factory=dict)

    @property
    def slot(self) -> int:
        """The length of a slot: sigma in the source."""
        return 1 << self.shift

    def round(self, at: int) -> int:
        """Returns a time rounded down to whole slots."""
        return at // self.slot * self.slot

    @property
    def start(self) -> int:
        """S of a group which is not empty: the beginning of its first slot."""
        return min(self.slots)

    @property
    def finish(self) -> int:
        """F of the group: its start plus two slots."""
        return self.start + 2 * self.slot


class Groups:
    """All groups, and the virtual time."""

    def __init__(self, max_packet: int) -> None:
        least = SHIFT + (max_packet - 1).bit_length() - LAST_GROUP
        self.groups = [Group(least + i) for i in range(LAST_GROUP + 1)]
        self.now = 0

    def entity(self, largest: int, weight: int) -> Entity:
        """Creates an entity in the first group whose slot is long enough for its largest packet."""
        inverse = (1 << SHIFT) // weight
        return Entity(next(i for i, g in enumerate(self.groups) if g.slot >= largest * inverse), inverse)

    def eligible(self) -> list[int]:
        """Returns the groups whose service a fluid system would have begun."""
        return [i for i, group in enumerate(self.groups) if group.slots and group.start <= self.now]

    def ready(self) -> list[int]:
        """Returns the eligible groups before which no eligible group of a higher index finishes."""
        finish = {i: self.groups[i].finish for i in self.eligible()}
        return [i for i in finish if all(finish[j] >= finish[i] for j in finish if j > i)]

    def best(self) -> Group | None:
        """Returns the ready group with the least finish time; of several, that with the lowest index."""
        eligible = self.eligible()
        return self.groups[min(eligible, key=lambda i: (self.groups[i].finish, i))] if eligible else None

    def catch_up(self) -> None:
        """Moves the virtual time to the earliest start of a group if no group is eligible."""
        waiting = [group.start for group in self.groups if group.slots]
        if waiting and not self.eligible():
            self.now = min(waiting)

    def restart(self, entity: Entity) -> None:
        """Sets S and F of an entity which was idle."""
        group = self.groups[entity.group]
        finish, limit = group.round(entity.finish), group.round(self.now) + group.slot
        if entity.finish > self.now and finish <= limit:
            entity.start = entity.finish
            return
        entity.start = self.now
        blocking = [self.groups[i].finish for i in self.ready() if i >= entity.group]
        if blocking and finish > blocking[0]:
            entity.start = min(blocking[0], limit)

    def put(self, number: int, entity: Entity) -> None:
        """Appends an entity to its slot."""
        group = self.groups[entity.group]
        group.slots.setdefault(group.round(entity.start), []).append(number)

    def take(self, group: Group) -> int:
        """Removes and returns the first entity of the first slot of a group."""
        start = group.start
        number = group.slots[start].pop(0)
        if not group.slots[start]:
            del group.slots[start]
        return number


class Qfq(Scheduler):
    """The scheduler QFQ, whose entities are classes."""

    def __init__(self, weights: Sequence[int], max_packet: int) -> None:
        super().__init__(weights, max_packet)
        self.groups = Groups(max_packet)
        self.classes = [self.groups.entity(max_packet, weight) for weight in weights]
        self.inverse = (1 << SHIFT) // sum(weights)

    def begins(self, cls: int) -> None:
        """If it is alone, time does not stay behind it."""
        alone = self.backlogged() == [cls]
        entity = self.classes[cls]
        self.groups.restart(entity)
        entity.finish = entity.start + self.head(cls) * entity.inverse
        if alone:
            self.groups.now = max(self.groups.now, self.groups.groups[entity.group].round(entity.start))
        self.groups.put(cls, entity)

    def choose(self) -> int:
        """The first class of the best group."""
        group = self.groups.best()
        assert group is not None, "some group is always eligible"
        return group.slots[group.start][0]

    def sent(self, cls: int, size: int) -> None:
        """A class that stays in its slot stays in front."""
        self.groups.now += size * self.inverse
        entity = self.classes[cls]
        group = self.groups.groups[entity.group]
        entity.start = entity.finish
        if self.queues[cls]:
            entity.finish = entity.start + self.head(cls) * entity.inverse
        if not self.queues[cls] or group.round(entity.start) != group.start:
            self.groups.take(group)
            if self.queues[cls]:
                self.groups.put(cls, entity)
        self.groups.catch_up()
