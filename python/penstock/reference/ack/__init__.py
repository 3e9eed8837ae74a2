"""Readable twins of elements that see the TCP segments of both directions at a gateway.

    replay(Green(limit, params, rate_bps, uniform), steps, rate_bps) -> what became of each segment

A step is a `Segment`, or a fact (time in ns, name, index, value) as the compiled part is told them:
("owner", flow, node), ("budget", node, bit/s or 0 for none), ("rest", 0, bit/s), ("rate", 0, bit/s), which need not be
that of the link, ("gone", node, 0) and ("flow-gone", flow, 0).

An outbound segment is shown to the element, and then arrives at the queue before the link; an inbound one comes from
the far side and carries the ACKs of that traffic.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from penstock.reference.link import Fate, Fifo, Link, Packet

FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10


class Segment(NamedTuple):
    """A TCP segment that passes the gateway. `scale`, `mss` and `timestamps` (TSval, TSecr) may be missing."""

    t_ns: int
    inbound: bool
    flow: int
    flags: int
    seq: int
    ack: int
    payload: int
    window: int
    scale: int | None = None
    mss: int | None = None
    timestamps: tuple[int, int] | None = None
    size: int = 40
    ecn: int = 0


Fact = tuple[int, str, int, int]
Step = Segment | Fact
Answer = tuple[int, Fate | None]  # the window field that leaves, and the fate of an outbound segment


def before(a: int, b: int) -> bool:
    """Compares two numbers of 32 bits that wrap around (RFC 9293 §3.4, RFC 7323 §5.2)."""
    return (a - b) % 2**32 >= 2**31


class Gateway(Fifo):
    """A queue whose element sees both directions. An element overrides what it needs."""

    def inbound(self, segment: Segment) -> int:
        """Shows a segment from the far side. Returns the window field with which it goes on."""
        return segment.window

    def outbound(self, segment: Segment) -> int:
        """Shows a segment that will arrive at the queue next. Returns the window field with which it goes on."""
        return segment.window

    def told(self, name: str, index: int, value: int, now_ns: int) -> None:
        """Takes a fact."""

    def report(self) -> dict[str, int]:
        """Returns the numbers in which twin and compiled part are compared at the end."""
        return {}


class Player:
    """Plays steps one after another."""

    def __init__(self, gateway: Gateway, rate_bps: int) -> None:
        self.gateway = gateway
        self.link = Link(gateway, rate_bps)
        self.windows: list[tuple[int, int | None]] = []  # with the number of an outbound packet
        self.packets = 0

    def step(self, step: Step) -> int | None:
        """Plays one step, and returns the window of a segment."""
        self.link.advance_to(step[0])
        if not isinstance(step, Segment):
            t_ns, name, index, value = step
            self.gateway.told(name, index, value, t_ns)
            return None
        if step.inbound:
            window, number = self.gateway.inbound(step), None
        else:
            window, number = self.gateway.outbound(step), self.packets
            self.packets += 1
            self.gateway.enqueue(Packet(number, step.size, step.ecn, step.t_ns, step.flow), step.t_ns)
            if self.link.free_at is None and self.gateway.waits():
                self.link.take(step.t_ns)
        self.windows.append((window, number))
        return window

    def answers(self) -> list[Answer]:
        """Drains the queue, and returns what became of each segment."""
        while self.link.free_at is not None:
            self.link.take(self.link.free_at)
        fates = self.gateway.fates
        return [(window, None if number is None else fates[number]) for window, number in self.windows]


def replay(gateway: Gateway, steps: Iterable[Step], rate_bps: int) -> list[Answer]:
    """Returns what became of each segment."""
    player = Player(gateway, rate_bps)
    for step in steps:
        player.step(step)
    return player.answers()
