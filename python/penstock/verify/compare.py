"""Runs both sides of each case, keeps what was run, and judges the gaps."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from penstock import rundir
from penstock.engine import core_fingerprint
from penstock.verify import real, simulated
from penstock.verify.cases import Case
from penstock.verify.measure import Measures, median

BEGIN_S = 5.0
MEASURED_S = 30.0
QUICK_S = 10.0
# A case is run again while the machine was disturbed.
ATTEMPTS = 4
# Runs of the simulator differ in the starts of flows and in an AQM's random numbers.
SEEDS = 5
# By how much the simulator may differ from the kernel.
GOALS = {"goodput_mbps": 0.02, "queue_mean_ms": 0.10, "period_s": 0.15}


class Watcher(Protocol):
    """Hears how far things are."""

    def begin(self, runs: int, reused: int, simulated_s: float) -> None:
        """All is known: how many runs, how many of them were kept, and the seconds to run."""

    def advanced(self, seconds: float) -> None:
        """So many seconds further; fewer than zero when a run has to be repeated."""

    def finished(self, label: str, cpu_s: float) -> None:
        """A run is over."""


def kernel_version() -> str:
    """Without what a distribution adds."""
    return platform.release().split("-")[0]


@dataclass(frozen=True)
class Gap:
    """How far the simulator is from the kernel in one number."""

    share: float
    goal: float
    within_seeds: bool
    """The kernel's number lies among those of the simulator's seeds."""

    @property
    def word(self) -> str:
        """`ok`, `seeds` for a gap that is no larger than what seeds make, or `apart`."""
        return "ok" if abs(self.share) <= self.goal else "seeds" if self.within_seeds else "apart"


@dataclass(frozen=True)
class Row:
    """One case with both sides."""

    case: Case
    kernel: Measures
    simulator: Measures
    seeds: tuple[Measures, ...]
    disturbed: bool
    lateness_p99_us: float

    @property
    def gaps(self) -> dict[str, Gap]:
        """Of each number that has a goal and is known on both sides."""
        return {name: gap for name, goal in GOALS.items() if (gap := self._gap(name, goal))}

    def _gap(self, name: str, goal: float) -> Gap | None:
        kernel, ours = getattr(self.kernel, name), getattr(self.simulator, name)
        if not kernel or not ours:
            return None
        seeds = [value for run in self.seeds if (value := getattr(run, name)) is not None]
        return Gap(ours / kernel - 1, goal, min(seeds) <= kernel <= max(seeds))

    def to_json(self) -> dict[str, Any]:
        """As it is printed and kept."""
        gaps = {name: {"share": gap.share, "goal": gap.goal, "word": gap.word} for name, gap in self.gaps.items()}
        return {
            "case": self.case.name,
            "kernel": self.kernel.to_json(),
            "simulator": self.simulator.to_json(),
            "seeds": [run.to_json() for run in self.seeds],
            "gaps": gaps,
            "disturbed": self.disturbed,
            "lateness_p99_us": self.lateness_p99_us,
        }


@dataclass(frozen=True)
class Plan:
    """What is to be run, and where it is kept."""

    cases: Sequence[Case]
    out: Path
    emulator: Path
    measured_s: float = MEASURED_S
    fresh: bool = False

    @property
    def end_s(self) -> float:
        """Of each run."""
        return BEGIN_S + self.measured_s

    def kernel_key(self) -> dict[str, Any]:
        """A kept run of the kernel counts while this is the same."""
        return {"emulator": _hash(self.emulator), "kernel": kernel_version(), "measured_s": self.measured_s}

    def simulator_key(self, case: Case) -> dict[str, Any]:
        """The same for the simulator."""
        text = simulated.scenario(case, self.end_s).text
        return {"core": core_fingerprint(), "scenario": text, "seeds": SEEDS, "measured_s": self.measured_s}

    def kernel_file(self, case: Case) -> Path:
        """What is kept of the kernel's run."""
        return self.out / f"{case.name}.kernel.json"

    def simulator_file(self, case: Case) -> Path:
        """What is kept of the simulator's runs."""
        return self.out / f"{case.name}.simulator.json"


@cache
def _hash(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def run(plan: Plan, watcher: Watcher) -> bool:
    """Runs what is not kept; false when Ctrl-C ended it early. Each run is on disk before the next begins."""
    plan.out.mkdir(parents=True, exist_ok=True)
    # The simulator first: it must not take the processor from the emulator.
    ours = [case for case in plan.cases if not _kept(plan.simulator_file(case), plan.simulator_key(case), plan.fresh)]
    kernels = [case for case in plan.cases if not _kept(plan.kernel_file(case), plan.kernel_key(), plan.fresh)]
    runs = 2 * len(plan.cases)
    watcher.begin(runs, runs - len(ours) - len(kernels), plan.end_s * len(kernels))
    try:
        for case in ours:
            _simulate(plan, case)
            watcher.finished(f"{case.name}, simulator", 0.0)
        for case in kernels:
            attempt = _kernel(plan, case, watcher)
            watcher.finished(f"{case.name}, kernel{', disturbed' if attempt.disturbed else ''}", 0.0)
    except KeyboardInterrupt:
        return False
    return True


def _simulate(plan: Plan, case: Case) -> None:
    runs = [simulated.run(case, BEGIN_S, plan.end_s, seed).to_json() for seed in range(1, SEEDS + 1)]
    _keep(plan.simulator_file(case), {"key": plan.simulator_key(case), "runs": runs})


def _kernel(plan: Plan, case: Case, watcher: Watcher) -> real.Attempt:
    """The first run that was not disturbed, else the one that was least late."""
    best: real.Attempt | None = None
    for seed in range(1, ATTEMPTS + 1):
        ticks = _Ticks(watcher, plan.end_s)
        attempt = real.run(case, BEGIN_S, plan.end_s, plan.emulator, seed, ticks)
        if best is None or attempt.lateness_p99_us < best.lateness_p99_us:
            best = attempt
        if not attempt.disturbed or seed == ATTEMPTS:
            ticks.fill()
            break
        ticks.take_back()
    assert best is not None
    content = {**asdict(best), "key": plan.kernel_key()}
    _keep(plan.kernel_file(case), content)
    return best


class _Ticks:
    """Tells the watcher of one run's seconds, and no more than there are."""

    def __init__(self, watcher: Watcher, total_s: float) -> None:
        self._watcher, self._left, self._told = watcher, total_s, 0.0

    def __call__(self, seconds: float) -> None:
        seconds = min(seconds, self._left)
        self._left -= seconds
        self._told += seconds
        self._watcher.advanced(seconds)

    def fill(self) -> None:
        """The run is over."""
        self(self._left)

    def take_back(self) -> None:
        """The run does not count."""
        self._watcher.advanced(-self._told)


def _keep(file: Path, content: dict[str, Any]) -> None:
    # Whole or not at all.
    partial = file.with_suffix(".part")
    partial.write_text(rundir.dump(content), encoding="utf-8")
    partial.replace(file)


def _kept(file: Path, key: dict[str, Any], fresh: bool) -> bool:
    if fresh or not file.is_file():
        return False
    content = rundir.read_json(file)
    return bool(content["key"] == key and not content.get("disturbed", False))


def rows(plan: Plan) -> list[Row]:
    """Those of which both sides are kept."""
    return [row for case in plan.cases if (row := _row(plan, case))]


def _row(plan: Plan, case: Case) -> Row | None:
    kernel, ours = plan.kernel_file(case), plan.simulator_file(case)
    if not kernel.is_file() or not ours.is_file():
        return None
    there, here = rundir.read_json(kernel), rundir.read_json(ours)
    if there["key"] != plan.kernel_key() or here["key"] != plan.simulator_key(case):
        return None
    seeds = tuple(Measures(**run) for run in here["runs"])
    return Row(
        case, Measures(**there["measures"]), median(seeds), seeds, bool(there["disturbed"]), there["lateness_p99_us"]
    )
