"""Runs each case in the kernel and in the simulator, stores the results, and judges the gaps between them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from penstock import store
from penstock.engine import core_fingerprint
from penstock.verify import real, simulated
from penstock.verify.cases import Case
from penstock.verify.digests import digest
from penstock.verify.kernels import Host, Kernel
from penstock.verify.measure import Measures, median

BEGIN_S = 5.0
MEASURED_S = 30.0
# Largest number of attempts of a run in the kernel, which is repeated if the emulator reports that it was disturbed.
ATTEMPTS = 4
# Number of runs in the simulator, which differ in the start times of flows and in the random numbers of the AQM.
SEEDS = 5
# The same on a drawn path, whose losses by chance make runs differ.
DRAWN_SEEDS = 15
# Most runs of the kernel on a drawn path. All that are stored count.
MOST_RUNS = 20
# Largest allowed differences between simulator and kernel in the cases of the table.
GOALS = {"goodput_mbps": 0.02, "queue_mean_ms": 0.10, "period_s": 0.15}
# The bar of drawn paths: goodput within 2 %, mean queueing delay within 10 % or 1 ms, loss within a factor of two.
# Fewer drops than FEW_DROPS are no rate: they need only be so few on both sides.
DRAWN_GOODPUT, DRAWN_QUEUE, DRAWN_QUEUE_MS, DRAWN_LOSS, FEW_DROPS = 0.02, 0.10, 1.0, 2.0, 10
# The RFC's control that runs in the simulator beside the kernel's form of it, on drawn paths.
RFC_CONTROLS = {"reno": "newreno", "cubic": "cubic"}


class Watcher(Protocol):
    """The interface of progress displays."""

    def begin(self, runs: int, reused: int, simulated_s: float) -> None:
        """Called first: `runs` in all, of which `reused` have stored results, and the seconds which the others take."""

    def advanced(self, seconds: float) -> None:
        """Called when `seconds` more are done; negative if a run has to be repeated."""

    def finished(self, label: str, cpu_s: float) -> None:
        """Called when a run is finished."""


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
    kernels: tuple[Measures, ...] = ()
    """The runs of the kernel of which `kernel` is the median."""
    rfc: Measures | None = None
    """The simulator with the RFC's control instead of the kernel's form of it."""
    earlier: bool = False
    """The kernel's numbers are those of an earlier page."""

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

    @property
    def missed(self) -> list[str]:
        """What of the bar of drawn paths is missed: of goodput, queue, loss. Empty if the row passes."""
        there, here = self.kernel, self.simulator
        queue = abs(here.queue_mean_ms - there.queue_mean_ms)
        missed = {
            "goodput": abs(here.goodput_mbps - there.goodput_mbps) > DRAWN_GOODPUT * there.goodput_mbps,
            "queue": queue > max(DRAWN_QUEUE * there.queue_mean_ms, DRAWN_QUEUE_MS),
            "loss": not _losses_agree(there, here),
        }
        return [name for name, is_missed in missed.items() if is_missed]

    @property
    def within_seeds(self) -> list[str]:
        """What is missed by no more than the simulator's seeds differ: the kernel's number lies within their range."""
        names = {"goodput": "goodput_mbps", "queue": "queue_mean_ms", "loss": "loss"}
        return [name for name in self.missed if self._is_within_seeds(names[name])]

    def _is_within_seeds(self, name: str) -> bool:
        seeds: list[float] = [getattr(run, name) for run in self.seeds]
        kernel: float = getattr(self.kernel, name)
        return min(seeds) <= kernel <= max(seeds)

    def to_json(self) -> dict[str, Any]:
        """Returns the row as it is printed and stored."""
        gaps = {name: {"share": gap.share, "goal": gap.goal, "word": gap.word} for name, gap in self.gaps.items()}
        found: dict[str, Any] = {
            "case": self.case.name,
            "kernel": self.kernel.to_json(),
            "simulator": self.simulator.to_json(),
            "seeds": [run.to_json() for run in self.seeds],
            "gaps": gaps,
            "disturbed": self.disturbed,
            "lateness_p99_us": self.lateness_p99_us,
        }
        if not self.case.drawn:
            return found
        verdict = {"passes": not self.missed, "missed": self.missed, "within_seeds": self.within_seeds}
        of_paths = {"path": asdict(self.case), **verdict}
        kernels = [run.to_json() for run in self.kernels]
        return {
            **found,
            **of_paths,
            "earlier": self.earlier,
            "kernels": kernels,
            "rfc": self.rfc.to_json() if self.rfc else None,
        }


def _losses_agree(there: Measures, here: Measures) -> bool:
    if max(there.drops, here.drops) < FEW_DROPS:
        return True
    return here.loss <= DRAWN_LOSS * there.loss and there.loss <= DRAWN_LOSS * here.loss


@dataclass(frozen=True)
class Plan:
    """The cases to run, and the directory of their results."""

    cases: Sequence[Case]
    out: Path
    emulator: Path
    kernel: Kernel = field(default_factory=Host)
    fresh: bool = False
    repeat: int = 1
    """How often the kernel runs each drawn path."""
    earlier: Path | None = None
    """The .json of an earlier page, whose numbers of the kernel count for paths that it did not run here."""

    def runs(self, case: Case) -> int:
        """How often the kernel runs the case."""
        return self.repeat if case.drawn else 1

    def seeds(self, case: Case) -> int:
        """How many seeds the simulator runs."""
        return DRAWN_SEEDS if case.drawn else SEEDS

    def kernel_key(self, case: Case) -> dict[str, Any]:
        """Returns the key of stored runs of the kernel, which are reused as long as it does not change."""
        programs = {"emulator": digest(self.emulator), "traffic": digest(real.TRAFFIC)}
        return {**programs, "kernel": self.kernel.label, "case": asdict(case)}

    def simulator_key(self, case: Case) -> dict[str, Any]:
        """Returns the key of stored runs of the simulator, which are reused as long as it does not change."""
        text = simulated.scenario(case, case.end_s).text
        seeds = self.seeds(case)
        begin = {"starts_s": case.starts_s(seeds)} if case.drawn else {}
        return {"core": core_fingerprint(), "scenario": text, "seeds": seeds, "measured_s": case.measured_s, **begin}

    def kernel_file(self, case: Case, run: int) -> Path:
        """Returns the file with a stored run of the kernel; runs count from 1."""
        return self.out / f"{case.name}.kernel{'' if run == 1 else f'-{run}'}.json"

    def simulator_file(self, case: Case) -> Path:
        """Returns the file with the stored runs of the simulator."""
        return self.out / f"{case.name}.simulator.json"


def run(plan: Plan, watcher: Watcher) -> bool:
    """Executes all runs that are not stored; returns false if Ctrl-C ended it early. Each run is stored at once."""
    # All runs of the simulator come first, so that they do not take CPU time from the emulator.
    ours = [case for case in plan.cases if not _kept(plan.simulator_file(case), plan.simulator_key(case), plan.fresh)]
    fresh = [case for case in plan.cases if not _of_earlier(plan, case)]
    all_kernels = [(case, number) for case in fresh for number in range(1, plan.runs(case) + 1)]
    kernels = [
        (case, number)
        for case, number in all_kernels
        if not _kept(plan.kernel_file(case, number), plan.kernel_key(case), plan.fresh)
    ]
    runs = len(plan.cases) + len(all_kernels)
    watcher.begin(runs, runs - len(ours) - len(kernels), sum(case.end_s for case, _ in kernels))
    try:
        for case in ours:
            _simulate(plan, case)
            watcher.finished(f"{case.name}, simulator", 0.0)
        for case, number in kernels:
            attempt = _kernel(plan, case, number, watcher)
            watcher.finished(f"{case.name}, kernel{', disturbed' if attempt.disturbed else ''}", 0.0)
    except KeyboardInterrupt:
        return False
    return True


def _simulate(plan: Plan, case: Case) -> None:
    seeds = range(1, plan.seeds(case) + 1)
    runs = [simulated.run(case, seed).to_json() for seed in seeds]
    found: dict[str, Any] = {"key": plan.simulator_key(case), "runs": runs}
    if case.drawn and (control := RFC_CONTROLS.get(case.control)):
        found["rfc"] = [simulated.run(case, seed, control).to_json() for seed in seeds]
    _keep(plan.simulator_file(case), found)


def _kernel(plan: Plan, case: Case, number: int, watcher: Watcher) -> real.Attempt:
    """Returns the first attempt that was not disturbed; if there is none, that whose packets were least late."""
    best: real.Attempt | None = None
    for attempt_number in range(1, ATTEMPTS + 1):
        # The attempts of a case of the table are its first seeds; on a drawn path the flows begin as they do in the
        # simulator.
        seed = number if case.drawn else attempt_number
        ticks = _Ticks(watcher, case.end_s)
        attempt = real.run(case, plan.kernel, plan.emulator, seed, case.starts_s(seed), ticks)
        if best is None or attempt.lateness_p99_us < best.lateness_p99_us:
            best = attempt
        if not attempt.disturbed or attempt_number == ATTEMPTS:
            ticks.fill()
            break
        ticks.take_back()
    assert best is not None
    content = {**asdict(best), "key": plan.kernel_key(case)}
    _keep(plan.kernel_file(case, number), content)
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
    store.write(file, store.dump(content))


def _kept(file: Path, key: dict[str, Any], fresh: bool) -> bool:
    if fresh or not file.is_file():
        return False
    content = store.read_json(file)
    return bool(content["key"] == key and not content.get("disturbed", False))


def rows(plan: Plan) -> list[Row]:
    """Returns the rows of those cases for which both sides are stored."""
    return [row for case in plan.cases if (row := _row(plan, case))]


def _row(plan: Plan, case: Case) -> Row | None:
    most = MOST_RUNS if case.drawn else 1
    there = [_stored(plan.kernel_file(case, number)) for number in range(1, most + 1)]
    here = _stored(plan.simulator_file(case))
    kept = [run for run in there if run and run["key"] == plan.kernel_key(case)] or _of_earlier(plan, case)
    if not kept or not here or here["key"] != plan.simulator_key(case):
        return None
    kernels, seeds = (_measures(runs) for runs in ([run["measures"] for run in kept], here["runs"]))
    return Row(
        case,
        median(kernels),
        median(seeds),
        seeds,
        any(run["disturbed"] for run in kept),
        max(run["lateness_p99_us"] for run in kept),
        kernels,
        median(_measures(here["rfc"])) if "rfc" in here else None,
        any("key" not in run for run in kept),
    )


def _of_earlier(plan: Plan, case: Case) -> list[dict[str, Any]]:
    """Returns the kernel's runs of this case in the earlier page, if the same kernel made them on the same path."""
    told: dict[str, Any] = store.read_json(plan.earlier)["drawn"] if plan.earlier else {"rows": [], "about": ""}
    if not told["about"].startswith(plan.kernel.label + ":"):
        return []
    path = json.loads(json.dumps(asdict(case)))
    rows = [row for row in told["rows"] if row["case"] == case.name and row["path"] == path]
    of_row = ("disturbed", "lateness_p99_us")
    return [{"measures": run, **{key: row[key] for key in of_row}} for row in rows for run in row["kernels"]]


def _stored(file: Path) -> dict[str, Any] | None:
    return store.read_json(file) if file.is_file() else None


def _measures(runs: Sequence[dict[str, Any]]) -> tuple[Measures, ...]:
    return tuple(Measures(**run) for run in runs)
