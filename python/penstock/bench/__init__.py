"""Measures the CPU time of a simulated packet, here and in ns-3: `penstock verify speed`, docs/results/benchmarks.md.

`cases` reads bench/scenarios, `penstock.ns3` runs them in ns-3, `compare` runs both programs in turn, `instructions`
counts instructions, `costs` measures disciplines and controls alone, `schedulers` packet schedulers, `layers` two
schedulers in a row, `own` algorithms in Python, `gym` decisions of agents, `emulated` the emulator of real packets, and
this module does all of that in turn.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

from penstock import ns3
from penstock.bench import cases, costs, emulated, gym, instructions, layers, own, schedulers
from penstock.bench.compare import Row, measure
from penstock.mistake import MistakeError

__all__ = ["COMPARED", "Found", "run"]

COMPARED = (
    "CPU seconds per TCP segment with payload that the bottleneck sent, the least of the repetitions of each program; "
    "ratio: ns-3's over Penstock's"
)


@dataclass
class Found:
    """All that was measured until the end, or until it was interrupted."""

    missing: str | None = None  # why there is no ns-3
    rows: list[Row] = field(default_factory=list)
    counted: instructions.Count | str = "not reached"
    alone: costs.Costs = costs.NOT_REACHED
    scheduled: schedulers.Costs = schedulers.NOT_REACHED
    layered: list[layers.Cost] = field(default_factory=list)
    python: list[own.Cost] = field(default_factory=list)
    decided: gym.Costs = gym.NOT_REACHED
    real: emulated.Costs = emulated.NOT_REACHED
    interrupted: bool = False

    def to_json(self) -> dict[str, Any]:
        """Returns the measurements as plain values."""
        counted = self.counted
        return {
            "rows": [row.to_json() for row in self.rows],
            "compared": COMPARED,
            "processor": cases.processor(),
            "peer_missing": self.missing,
            "instructions_per_packet": None if isinstance(counted, str) else counted.per_packet,
            "bytes_per_flow": None if isinstance(counted, str) else counted.bytes_per_flow,
            "instructions_missing": counted if isinstance(counted, str) else None,
            **self.alone.to_json(),
            **self.scheduled.to_json(),
            "layers": [cost.to_json() for cost in self.layered],
            "python": [cost.to_json() for cost in self.python],
            **self.decided.to_json(),
            **self.real.to_json(),
            "interrupted": self.interrupted,
        }


def run(*, quick: bool = False, peer: bool = True, repeat: int = 3) -> Found:
    """Measures all there is. After Ctrl-C it returns what is done."""
    if repeat < 1:
        raise MistakeError(f"--repeat {repeat}: must be at least 1")
    found = Found(missing="not asked for (--no-peer)")
    try:
        program, found.missing = ns3.ready() if peer else (None, found.missing)
        if found.missing:
            _say(f"without ns-3: {found.missing}")
        for case in cases.load(quick):
            found.rows.append(measure(case, program, repeat, _say))
        found.counted = instructions.count(_say)
        found.alone = costs.measure(quick, _say)
        found.scheduled = schedulers.measure(quick, _say)
        found.layered = layers.measure(quick, _say)
        found.python = own.measure(quick, repeat, _say)
        found.decided = gym.measure(quick, repeat, _say)
        found.real = emulated.measure(quick, _say)
    except KeyboardInterrupt:
        found.interrupted = True
        _say("interrupted: what is done is shown")
    return found


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
