"""Readiness of descriptors: `epoll` with level and edge triggers, and one shot."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Epoll"]

_ALWAYS = {"EPOLLERR", "EPOLLHUP"}


@dataclass
class Interest:
    """What an application wants to hear of one descriptor."""

    events: set[str]
    woken: bool = True
    spent: bool = False


@dataclass
class Epoll:
    """The interests of one `epoll` descriptor."""

    interests: dict[int, Interest] = field(default_factory=dict)

    def control(self, operation: object, descriptor: int, events: set[str]) -> None:
        """Adds, changes or removes an interest; one that is added or changed is looked at anew."""
        if operation == "EPOLL_CTL_DEL":
            self.interests.pop(descriptor, None)
        else:
            self.interests[descriptor] = Interest(events)

    def wake(self, descriptor: int) -> None:
        """Tells that something happened at a descriptor."""
        if descriptor in self.interests:
            self.interests[descriptor].woken = True

    def ready(self, descriptor: int, state: set[str]) -> set[str]:
        """Returns the events to tell of a descriptor that is in this state."""
        interest = self.interests.get(descriptor)
        if interest is None or interest.spent:
            return set()
        told = state & (interest.events | _ALWAYS)
        if not told or ("EPOLLET" in interest.events and not interest.woken):
            return set()
        interest.woken = False
        interest.spent = "EPOLLONESHOT" in interest.events
        return told
