"""The scenarios of bench/scenarios, in full or with a shorter duration."""

from __future__ import annotations

import platform
import re
import tomllib
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from penstock.mistake import MistakeError
from penstock.ns3 import ROOT, time_ns

__all__ = ["ROOT", "Case", "load", "processor", "shorter", "time_ns", "tree"]

SCENARIOS = ROOT / "bench" / "scenarios"

# Scenarios in the order of the table. Those that show how the cost depends on the number of flows do not run in ns-3.
_WITH_PEER = ("dsl-4", "dsl-64", "sat-64", "gigabit-codel", "thousand-red")
_ALONE = ("growth-4", "growth-100", "growth-1000", "growth-10000", "crowd-10000")

# The shortest duration, which is longer than the second in which the flows start.
_QUICK_SHARE = Decimal("0.2")
_QUICK_LEAST_S = Decimal(2)


@dataclass(frozen=True)
class Case:
    """One scenario as a plain object, and whether ns-3 runs it as well."""

    name: str
    tree: dict[str, Any]
    with_peer: bool

    @property
    def duration_s(self) -> float:
        """The simulated time, in seconds."""
        return time_ns(self.tree["duration"]) / 1e9


def load(quick: bool) -> list[Case]:
    """Reads all scenarios; `quick` shortens them."""
    if not SCENARIOS.is_dir():
        raise MistakeError(f"{SCENARIOS}: not found: `penstock verify speed` needs the source tree")
    names = [(name, True) for name in _WITH_PEER] + [(name, False) for name in _ALONE]
    return [Case(name, _tree(name, quick), with_peer) for name, with_peer in names]


def tree(name: str) -> dict[str, Any]:
    """Reads one scenario from its file."""
    return tomllib.loads((SCENARIOS / f"{name}.toml").read_text(encoding="utf-8"))


def _tree(name: str, quick: bool) -> dict[str, Any]:
    scenario = tree(name)
    return {**scenario, "duration": shorter(scenario["duration"])} if quick else scenario


def shorter(duration: str) -> str:
    """Returns a fifth of a duration, but at least two seconds."""
    seconds = Decimal(time_ns(duration)) / 1_000_000_000
    return f"{max(seconds * _QUICK_SHARE, _QUICK_LEAST_S).normalize():f}s"


def processor() -> str:
    """Returns the name of the processor."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        text = ""
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1].strip() if found else platform.machine()
