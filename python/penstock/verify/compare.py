"""Runs each case in the kernel and in the simulator, stores the results, and judges the gaps between them."""

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
# Largest number of runs of a case in the kernel. A run is repeated if the emulator reports that it was disturbed.
ATTEMPTS = 4
# Number of runs in the simulator, which differ in the start times of flows and in the random numbers of the AQM.
SEEDS = 5
# Largest allowed differences between simulator and kernel.
GOALS = {"goodput_mbps": 0.02, "queue_mean_ms": 0.10, "period_s": 0.15}


class Watcher(Protocol):
    """The interface of progress displays."""

    def begin(self, runs: int, reused: int, simulated_s: float) -> None:
        """Called first: `runs` in all, of which `reused` have stored results, and the seconds which the others take."""

    def advanced(self, seconds: float) -> None:
        """Called when `seconds` more are done; negative if a run has to be repeated."""

    def finished(self, label: str, cpu_s: float) -> None:
        """Called when a run is finished."""


def kernel_version() -> str:
    """Returns the version of the kernel without the suffix of a distribution."""
    return platform.release().split("-")[0]


@dataclass(frozen=True)
class Gap:
    """The difference between simulator and kernel in one measure."""

    share: float
    goal: float
    within_seeds: bool
    """The kernel's number lies among those of the simulator's seeds."""

    @property
    def word(self) -> str:
        """The judgment: `ok`, `seeds` if the gap is within the spread of the seeds, or `apart`."""
        return "ok" if abs(self.share) <= self.goal else "seeds" if self.within_seeds else "apart"


@dataclass(frozen=True)
class Row:
    """The results of one case in kernel and simulator."""

    case: Case
    kernel: Measures
    simulator: Measures
    seeds: tuple[Measures, ...]
    disturbed: bool
    lateness_p99_us: float

    @property
    def gaps(self) -> dict[str, Gap]:
        """The gaps of those measures which have a limit and which both sides have."""
        return {name: gap for name, goal in GOALS.items() if (gap := self._gap(name, goal))}

    def _gap(self, name: str, goal: float) -> Gap | None:
        kernel, ours = getattr(self.kernel, name), getattr(self.simulator, name)
        if not kernel or not ours:
            return None
        seeds = [value for run in self.seeds if (value := getattr(run, name)) is not None]
        return Gap(ours / kernel - 1, goal, min(seeds) <= kernel <= max(seeds))

    def to_json(self) -> dict[str, Any]:
        """Returns the row as it is printed and stored."""
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
    """The cases to run, and the directory of their results."""

    cases: Sequence[Case]
    out: Path
    emulator: Path
    measured_s: float = MEASURED_S
    fresh: bool = False

    @property
    def end_s(self) -> float:
        """The duration of each run, in seconds."""
        return BEGIN_S + self.measured_s

    def kernel_key(self) -> dict[str, Any]:
        """The key of stored runs of the kernel, which are reused as long as it does not change."""
        return {"emulator": _hash(self.emulator), "kernel": kernel_version(), "measured_s": self.measured_s}

    def simulator_key(self, case: Case) -> dict[str, Any]:
        """Returns the key of stored runs of the simulator, which are reused as long as it does not change."""
        text = simulated.scenario(case, self.end_s).text
        return {"core": core_fingerprint(), "scenario": text, "seeds": SEEDS, "measured_s": self.measured_s}

    def kernel_file(self, case: Case) -> Path:
        """Returns the file with the stored run of the kernel."""
        return self.out / f"{case.name}.kernel.json"

    def simulator_file(self, case: Case) -> Path:
        """Returns the file with the stored runs of the simulator."""
        return self.out / f"{case.name}.simulator.json"


@cache
def _hash(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def run(plan: Plan, watcher: Watcher) -> bool:
    """Executes all runs that are not stored; returns false if Ctrl-C ended it early. Each run is stored at once."""
    plan.out.mkdir(parents=True, exist_ok=True)
    # All runs of the simulator come first, so that they do not take CPU time from the emulator.
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
    """Returns the first run that was not disturbed; if there is none, the run whose packets were least late."""
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
    """Reports the seconds of one run to the watcher, at most as many as the run has."""

    def __init__(self, watcher: Watcher, total_s: float) -> None:
        self._watcher, self._left, self._told = watcher, total_s, 0.0

    def __call__(self, seconds: float) -> None:
        seconds = min(seconds, self._left)
        self._left -= seconds
        self._told += seconds
        self._watcher.advanced(seconds)

    def fill(self) -> None:
        """Reports the remaining seconds of a finished run."""
        self(self._left)

    def take_back(self) -> None:
        """Takes back all reported seconds of a run that is repeated."""
        self._watcher.advanced(-self._told)


def _keep(file: Path, content: dict[str, Any]) -> None:
    # The file is renamed when it is complete, so that an incomplete one is never read.
    partial = file.with_suffix(".part")
    partial.write_text(rundir.dump(content), encoding="utf-8")
    partial.replace(file)


def _kept(file: Path, key: dict[str, Any], fresh: bool) -> bool:
    if fresh or not file.is_file():
        return False
    content = rundir.read_json(file)
    return bool(content["key"] == key and not content.get("disturbed", False))


def rows(plan: Plan) -> list[Row]:
    """Returns the rows of those cases for which both sides are stored."""
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
