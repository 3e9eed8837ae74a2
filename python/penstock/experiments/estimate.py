"""What a sweep will cost: `sweep --dry-run` runs at most three points once, and stores nothing."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock import worlds
from penstock.experiments import results, until, work
from penstock.experiments.processes import cores
from penstock.experiments.runner import How, Plan
from penstock.store import segments

_OVERHEAD_S = 0.001  # CPU time of a run besides its events
_SETUP_S = 2.0  # until a run in real time begins, and after it
_TABLE_BYTES = 300  # of the tables, for each run


@dataclass(frozen=True)
class Estimate:
    """The size of an experiment, and what is left of it."""

    points: int
    runs: int  # with `until`: of the first stage
    finished: int
    cpu_s: float  # of the runs that are left
    wall_s: float
    disk_bytes: int
    jobs: int
    adds_seeds: bool  # true if more runs may follow (`until`)
    error: str = ""  # of a probe

    def to_json(self) -> dict[str, Any]:
        """Returns the estimate as plain values."""
        return vars(self)

    @property
    def end(self) -> str:
        """The time of day at which a sweep that begins now ends."""
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(time.time() + self.wall_s))


def estimate(plan: Plan, out: Path, how: How) -> Estimate:
    """Estimates what is left of an experiment, from runs of the first, the middle and the last point."""
    first = until.first_stage(plan.experiment.until, plan.experiment.seeds)
    tasks = plan.tasks({point.index: first for point in plan.points})
    known = {key for key, _ in segments.records(out / results.RUNS)}
    left = [task for task in tasks if task.key not in known]
    if how.shard:
        left = [task for task in left if how.shard.has(plan.points[task.point])]
    last = len(plan.points) - 1
    probes = [work.run(plan.tasks({index: first[:1]})[0]) for index in sorted({0, last // 2, last})]
    answers = [work.unpacked(probe) for probe in probes]
    cpu_s = (sum(answer.cpu_s for answer in answers) / len(answers) + _OVERHEAD_S) * len(left)
    size = sum(map(len, probes)) // len(probes) + segments.KEY_BYTES + _TABLE_BYTES
    on = plan.experiment.on
    jobs = worlds.at_once(on) or how.jobs or cores()
    busy = max(1, min(jobs, cores(), len(left)))
    wall_s = plan.simulated_s(left) + _SETUP_S * len(left) if on in worlds.REAL_TIME else cpu_s / busy
    error = next((answer.error for answer in answers if answer.error), "")
    counts = (len(plan.points), len(tasks), len(tasks) - len(left))
    return Estimate(*counts, cpu_s, wall_s, size * len(left), jobs, bool(plan.experiment.until), error)
