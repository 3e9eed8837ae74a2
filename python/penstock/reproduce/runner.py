"""Runs an experiment: all its cases on all cores, keeping what is done when it is interrupted."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from penstock import pool, provenance, rundir
from penstock.engine import Result, core_fingerprint
from penstock.reproduce.base import Case, Experiment
from penstock.reproduce.results import RESULTS, Evidence, Outcome
from penstock.reproduce.series import Series
from penstock.scenario import Scenario


class Watcher(Protocol):
    """Is told how far things are; calls come from several threads, one at a time."""

    def begin(self, runs: int, reused: int, simulated_s: float) -> None:
        """All is known: how many runs, how many of them were kept from before."""

    def advanced(self, seconds: float) -> None:
        """Some run got so many simulated seconds further."""

    def finished(self, label: str, cpu_s: float) -> None:
        """A run is over."""


@dataclass(frozen=True)
class _Plan:
    """What to run and where to keep it."""

    experiment: Experiment
    quick: bool
    out: Path

    def kept(self, case: Case) -> Path:
        folder = self.out / "variants" / case.variant if case.variant else self.out / "cases"
        parts = (case.setting, case.aqm, str(case.flows), str(case.seed))
        return folder / ("-".join(part for part in parts if part) + ".json")

    def key(self, scenario: Scenario) -> str:
        """Results of another scenario or another build are never reused."""
        return provenance.sha256(f"{scenario.text}\0{core_fingerprint()}")


def reproduce(
    experiment: Experiment,
    out: Path,
    *,
    quick: bool = False,
    seeds: int = 1,
    jobs: int | None = None,
    fresh: bool = False,
    watcher: Watcher,
) -> tuple[Evidence | None, bool]:
    """Runs what is not there yet and stores all results; the flag is false when Ctrl-C cut it short."""
    plan = _Plan(experiment, quick, out)
    cases = [*experiment.cases(quick, seeds), *experiment.variant_cases(seeds)]
    done = {} if fresh else {case: kept for case in cases if (kept := _reuse(plan, case)) is not None}
    todo = [pool.Job(case, experiment.scenario(case, quick), case.seed) for case in cases if case not in done]
    watcher.begin(len(cases), len(done), sum(experiment.duration_s(job.key, quick) for job in todo))

    def keep(job: pool.Job[Case], result: Result) -> None:
        series = Series.of(result) if experiment.keeps_series and result.tables else None
        outcome = Outcome(job.key, experiment.cc_of(job.key, quick), result.summary, result.cpu_s, series)
        _keep(plan, job, outcome)
        done[job.key] = outcome
        watcher.finished(str(job.key), result.cpu_s)

    workers = 1 if experiment.one_at_a_time else jobs or pool.cores()
    complete = pool.run_all(todo, workers, keep, _increments(watcher.advanced), experiment.run)
    if not complete:  # Ctrl-C may have come between writing a run and noting it
        done = {case: kept for case in cases if (kept := done.get(case) or _reuse(plan, case)) is not None}
    ordered = [done[case] for case in sorted(done, key=_order(experiment))]
    outcomes = tuple(outcome for outcome in ordered if not outcome.case.variant)
    if not outcomes:
        return None, complete
    variants = tuple(outcome for outcome in ordered if outcome.case.variant)
    evidence = Evidence(experiment, quick, outcomes, provenance.versions(), variants)
    (out / RESULTS).write_text(rundir.dump(evidence.to_json()), encoding="utf-8")
    return evidence, complete


def _order(experiment: Experiment) -> Callable[[Case], tuple[int, ...]]:
    names = ["", *(variant.name for variant in experiment.variants)]
    settings = experiment.settings_in_order
    return lambda c: (
        names.index(c.variant),
        settings.index(c.setting),
        experiment.aqms.index(c.aqm),
        c.flows,
        c.seed,
    )


def _increments(tell: Callable[[float], None]) -> Callable[[Case, float], None]:
    """Turns each run's own clock into steps that can be added up."""
    seen: dict[Case, float] = {}
    lock = threading.Lock()

    def on_progress(case: Case, seconds: float) -> None:
        with lock:
            tell(seconds - seen.get(case, 0.0))
            seen[case] = seconds

    return on_progress


def _keep(plan: _Plan, job: pool.Job[Case], outcome: Outcome) -> None:
    path = plan.kept(job.key)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".toml").write_text(job.scenario.text, encoding="utf-8")
    part = path.with_suffix(".part")
    part.write_text(rundir.dump({"key": plan.key(job.scenario), "run": outcome.to_store()}), encoding="utf-8")
    part.replace(path)


def _reuse(plan: _Plan, case: Case) -> Outcome | None:
    path = plan.kept(case)
    if not path.is_file():
        return None
    try:
        stored: Any = rundir.read_json(path)
        if stored["key"] == plan.key(plan.experiment.scenario(case, plan.quick)):
            return Outcome.from_json(stored["run"])
    except (rundir.RunDirError, KeyError, TypeError):
        pass  # cut short while it was written: run it again
    return None
