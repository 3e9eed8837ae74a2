"""A run with one connection, driven step by step: its control is read, its path and its application change."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock import engine
from penstock.scenario import Scenario
from penstock.suites.model import Failed
from penstock.suites.networks import MTU, rate
from penstock.suites.qlog import Trace

SEGMENT = 1448  # bytes of payload of a full segment
_ENDLESS = 2**60
_FIELD = re.compile(r"\b([a-z_]+): (?:Some\()?([A-Za-z0-9.+-]+)")
_EXTRA_ACKED = re.compile(r"\bextra_acked_filter: \w+ \{ window: \d+, best: \[\(\d+, ([0-9.e+-]+)\)")
_LISTED = 40  # changes of state that are kept


@dataclass(frozen=True)
class Path:
    """A bottleneck and the round trip time over it."""

    mbit: float
    rtt_ms: float

    @property
    def name(self) -> str:
        """What it is called: `10M-30ms`."""
        value = f"{self.mbit:g}M" if self.mbit >= 1 else f"{self.mbit * 1e3:g}k"
        return f"{value}-{self.rtt_ms:g}ms"

    @property
    def segments(self) -> float:
        """The product of rate and round trip time in segments."""
        return self.mbit * 1e6 * self.rtt_ms / 1e3 / 8 / MTU

    @property
    def bandwidth(self) -> float:
        """The payload that the link carries, in bytes per second."""
        return self.mbit * 1e6 / 8 * SEGMENT / MTU


@dataclass
class Connection:
    """The connection, and what was seen of it."""

    path: Path
    simulation: Any
    seen: dict[str, str] = field(default_factory=dict)
    states: list[tuple[float, str]] = field(default_factory=list)  # when it entered which
    offered: float | None = None  # bytes per second that the application writes; `None`: more than the path carries
    credit: float = 0.0
    trace: Trace | None = None  # of what is seen, if it is wanted

    @classmethod
    def of(cls, scenario: Scenario, seed: int, path: Path, trace: Trace | None = None) -> Connection:
        """Opens a run; raises `Failed` if the control has no state of BBR."""
        found = cls(path, engine.stepped(scenario, seed), trace=trace)
        found.read()
        if "max_bw" not in found.seen or "state" not in found.seen:
            raise Failed("its state has none of BBR's variables")
        return found

    @property
    def now(self) -> float:
        """Simulated seconds."""
        return float(self.simulation.now_s)

    @property
    def step(self) -> float:
        """Seconds between two looks: a tenth of a round trip, or half of the time of a packet if that is longer."""
        return max(self.path.rtt_ms / 1e4, MTU * 8 / (self.path.mbit * 1e6) / 2)

    @property
    def round(self) -> float:
        """Seconds of a round trip of full packets without a queue."""
        return self.path.rtt_ms / 1e3 + MTU * 8 / (self.path.mbit * 1e6)

    @property
    def state(self) -> str:
        """BBR.state."""
        return self.seen["state"]

    def number(self, name: str) -> float:
        """A variable of BBR."""
        return float(self.seen[name])

    def true(self, name: str) -> bool:
        """A variable that is true or false."""
        return self.seen[name] == "true"

    def read(self) -> None:
        """Reads the state of the control."""
        text = self.simulation.control(0) or ""
        found = _FIELD.findall(text)
        self.seen = dict(reversed(found))  # of equal names the first is the control's own
        if largest := _EXTRA_ACKED.search(text):
            self.seen["extra_acked"] = largest[1]
        state = self.seen.get("state", "")
        if state and (not self.states or self.states[-1][1] != state):
            self.states.append((self.now, state))
        if self.trace and state:
            self.trace.note(self.now, self.seen)

    def look(self) -> None:
        """Simulates one step, and reads the state."""
        if self.offered is not None:
            self.credit += self.offered * self.step
            whole = int(self.credit // SEGMENT)
            self.credit -= whole * SEGMENT
            if whole:
                self.simulation.offer(0, whole * SEGMENT)
        self.simulation.advance(self.step)
        self.read()

    def until(self, reached: Callable[[], bool], seconds: float) -> bool:
        """Steps until something is true; false if it is not within `seconds`."""
        end = self.now + seconds
        while not reached():
            if self.now >= end:
                return False
            self.look()
        return True

    def enter(self, states: str, seconds: float = 60.0) -> bool:
        """Steps until the control is in one of these states."""
        wanted = states.split()
        return self.until(lambda: self.state in wanted, seconds)

    def leave(self, seconds: float = 60.0) -> str:
        """Steps until the state changes; returns the next one, or nothing."""
        before = self.state
        return self.state if self.until(lambda: self.state != before, seconds) else ""

    def limit(self, part: float | None) -> None:
        """Lets the application write at a part of the rate of the path; `None`: more than the path carries."""
        self.offered = None if part is None else part * self.path.bandwidth
        self.credit = 0.0
        self.simulation.offer(0, _ENDLESS if part is None else 0)

    def steer(self, mbit: float | None = None, delay_ms: float | None = None, loss: float | None = None) -> None:
        """Changes the bottleneck."""
        changed = None if mbit is None else rate(mbit)
        self.simulation.steer(0, changed, None if delay_ms is None else f"{delay_ms * 1e3:.0f}us", loss)

    def impair(
        self,
        reverse: bool = False,
        police: tuple[float, float] | None = None,
        aggregate_ms: float | None = None,
        reorder: tuple[float, float] | None = None,
    ) -> None:
        """Impairs a direction of the bottleneck from now on, in place of what it did to packets before.

        `police` has Mbit/s and bytes, `reorder` a share and milliseconds.
        """
        self.simulation.impair(
            0,
            reverse,
            None if police is None else (rate(police[0]), f"{police[1]:.0f}B"),
            None if aggregate_ms is None else f"{aggregate_ms * 1e3:.0f}us",
            None if reorder is None else (reorder[0], f"{reorder[1] * 1e3:.0f}us"),
        )

    def bottleneck(self) -> dict[str, Any]:
        """The totals of the bottleneck until now."""
        found: dict[str, Any] = json.loads(self.simulation.summary())["bottlenecks"][0]
        return found

    def retransmits(self) -> int:
        """How many segments were sent again until now."""
        return int(json.loads(self.simulation.summary())["flows"][0]["retransmits"])

    def told(self, checks: Mapping[str, bool], **values: float) -> dict[str, Any]:
        """Returns what is kept: the checks, some numbers and the first changes of state."""
        numbers = {name: value for name, value in values.items() if math.isfinite(value)}
        return {"checks": dict(checks), "values": numbers, "states": self.states[:_LISTED], "path": self.path.name}
