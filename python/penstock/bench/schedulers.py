"""Measures packet schedulers: times in TEMPEST at three numbers of flows, and instructions counted by callgrind.

Times are compared with those of DRR in the same run of the benchmark, since times of different machines differ.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from penstock import engine
from penstock.bench import cases
from penstock.bench.instructions import total

FLOWS = (1_000, 32_000, 100_000)
PEER = "drr"
LINEAR = ("w2f2q",)  # looks at every class for every packet: only at the least number of flows, or it would take hours
DEPTH = 30  # packets of each flow that wait at most
# Largest allowed times of a packet in ns, with the harness, by scheduler and number of flows.
BARS_NS = {("fifo", 1_000): 28.0, ("drr", 1_000): 32.0, ("drr", 32_000): 40.0}

_COUNTED_FLOWS = 1_000
_COUNTED_EVENTS = (120_000, 240_000)  # two and four turns of both phases
_BUILD = ("build", "--release", "--locked", "--quiet", "--package", "penstock-tempest", "--example", "tempest")


@dataclass(frozen=True)
class Cost:
    """The cost of one scheduler at one number of flows."""

    alg: str
    flows: int
    ns_per_packet: float
    ns_harness: float
    ratio: float  # to DRR's, of whole times
    instructions: float | None  # of the scheduler alone, at 1,000 flows
    bar_ns: float | None

    @property
    def met(self) -> bool | None:
        """True if the cost is within its limit; `None` if it has none."""
        return None if self.bar_ns is None else self.ns_per_packet <= self.bar_ns


@dataclass(frozen=True)
class Costs:
    """The costs of all schedulers, and the reason if instructions were not counted."""

    rows: tuple[Cost, ...]
    instructions_missing: str | None

    def to_json(self) -> dict[str, Any]:
        """Returns the keys of the benchmark's JSON object."""
        rows = [{**asdict(row), "met": row.met} for row in self.rows]
        return {"schedulers": rows, "scheduler_instructions_missing": self.instructions_missing}


NOT_REACHED = Costs((), "not reached")


def measure(quick: bool, say: Callable[[str], None], flows: tuple[int, ...] = FLOWS) -> Costs:
    """Measures every scheduler at every number of flows."""
    names = [entry.name for entry in engine.schedulers()]
    counted = _instructions(names, say)
    missing = counted if isinstance(counted, str) else None
    known = {} if isinstance(counted, str) else counted
    rows = []
    for n in flows:
        say(f"schedulers with {n:,} flows")
        some = [name for name in names if n == min(flows) or name not in LINEAR]
        reports = {name: engine.tempest(_flags(name, n, quick)) for name in some}
        peer = reports[PEER]["ns_per_packet"]
        for name, report in reports.items():
            ns = report["ns_per_packet"]
            count = known.get(name) if n == _COUNTED_FLOWS else None
            rows.append(Cost(name, n, ns, report["ns_harness"], ns / peer, count, BARS_NS.get((name, n))))
    return Costs(tuple(rows), missing)


def _flags(alg: str, flows: int, quick: bool) -> dict[str, str]:
    """Returns the flags of a run which is long enough for two turns of both phases at any number of flows."""
    events = max(1_000_000 if quick else 10_000_000, 4 * DEPTH * flows)
    repeat = "1" if quick else "5"
    given = {"alg": alg, "flows": str(flows), "qmax": f"{DEPTH}n", "n": str(events)}
    return {**given, "measure": "time", "repeat": repeat}


def _instructions(names: list[str], say: Callable[[str], None]) -> dict[str, float] | str:
    """Returns the instructions per packet in each scheduler alone, or the reason why they were not counted."""
    missing = [tool for tool in ("cargo", "valgrind") if shutil.which(tool) is None]
    if missing:
        return f"no {' and no '.join(missing)} in PATH"
    say("schedulers: counting instructions")
    try:
        _run(["cargo", *_BUILD])
        harness = _counted(PEER, "harness")
        return {name: _counted(name, "time") - 2 * harness for name in names}
    except (OSError, subprocess.CalledProcessError, ValueError) as error:
        return f"not counted: {error}"


def _counted(alg: str, what: str) -> float:
    """Returns the instructions per packet, from the difference of two runs of different length."""
    short, long = (_profiled(alg, what, events) for events in _COUNTED_EVENTS)
    return (long - short) / ((_COUNTED_EVENTS[1] - _COUNTED_EVENTS[0]) / 2)


def _profiled(alg: str, what: str, events: int) -> int:
    program = Path(os.environ.get("CARGO_TARGET_DIR", cases.ROOT / "target")) / "release" / "examples" / "tempest"
    with tempfile.TemporaryDirectory() as directory:
        profile = Path(directory, "callgrind.out")
        tool = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={profile}"]
        flags = {"alg": alg, "flows": str(_COUNTED_FLOWS), "n": str(events), "measure": what, "repeat": "1"}
        json.loads(_run([*tool, str(program), *(f"{flag}={value}" for flag, value in flags.items())]))
        return total(profile.read_text(encoding="utf-8", errors="replace"))


def _run(command: list[str]) -> str:
    return subprocess.run(command, cwd=cases.ROOT, capture_output=True, text=True, check=True).stdout


COLUMNS = ("scheduler", "flows", "ns/packet", "harness", "of DRR's", "instructions", "bar", "met")


def cells(costs: Costs) -> list[list[str]]:
    """Returns the rows of the table."""
    return [
        [
            row.alg,
            f"{row.flows:,}",
            f"{row.ns_per_packet:.1f}",
            f"{row.ns_harness:.1f}",
            f"{row.ratio:.2f}",
            "-" if row.instructions is None else f"{row.instructions:.0f}",
            "-" if row.bar_ns is None else f"{row.bar_ns:g}",
            {True: "yes", False: "no", None: "-"}[row.met],
        ]
        for row in costs.rows
    ]
