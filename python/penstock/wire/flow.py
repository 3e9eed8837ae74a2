"""A flow of a scenario, as its two hosts on the wire are told of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.wire import network, tcp
from penstock.wire.network import Step

SESSIONS = ("http", "web")


@dataclass(frozen=True)
class Flow:
    """One flow, with all that its two hosts are told."""

    id: int
    kind: str
    forward: bool
    start_s: float
    stop_s: float | None
    extra_s: float  # the delay before its first link, in each direction
    node: str | None
    sends: Mapping[str, Any]
    ends: tuple[str, str]  # the routers of its hosts, on the left and on the right
    path: tuple[Step, ...]  # the links which its data cross
    tcp: tcp.Settings | None = None
    class_: int | None = None  # in --on tc the Diffserv codepoint of its packets in both directions

    @property
    def in_sessions(self) -> bool:
        """True if the flow has transfers over connections that it opens and closes."""
        return self.kind in SESSIONS

    @property
    def from_left(self) -> tuple[Step, ...]:
        """The links from the host on the left to that on the right."""
        return self.path if self.forward else network.back(self.path)
