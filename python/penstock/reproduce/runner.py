"""Runs all cases of an experiment on all cores, and stores each finished run, so that an interrupt loses little."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from penstock import provenance, store, worlds
from penstock.engine import Result, core_fingerprint
from penstock.experiments.processes import Job, cores, run_all
from penstock.reproduce.base import Case, Experiment
from penstock.reproduce.results import FORMAT, RESULTS, Evidence, Outcome, check_digest, digest
from penstock.scenario import Scenario

VARIANT_SEEDS = 1  # variants say why, not whether: each is compared with the published run of its seed


class Watcher(Protocol):
    """The interface of progress displays."""

    def begin(self, runs: int, reused: int, simulated_s: float) -> None:
        """Called first: `runs` in all, of which `reused` have stored results; the others simulate `simulated_s`."""

    def advanced(self, seconds: float) -> None:
        """Called when a run has simulated `seconds` more."""

    def finished(self, label: str, cpu_s: float) -> None:
        """Called when a run is finished, with its CPU time."""


@dataclass(frozen=True)
class _Plan:
    """The experiment to run, in which form, and the directory of its results."""

    experiment: Experiment
    quick: bool
    out: Path
    variants: frozenset[str] | None = None

    def cases(self, seeds: int) -> Iterator[Case]:
        """Yields the published runs, then those of the variants that are wanted."""
        for case in self.experiment.cases(self.quick, seeds):
            if case.cell not in self.experiment.refused:
                yield case
        for case in self.experiment.variant_cases(VARIANT_SEEDS):
            if self.variants is None or case.variant in self.variants:
                yield case

    def kept(self, case: Case) -> Path:
        folder = self.out / "variants" / case.variant if case.variant else self.out / "cases"
        parts = (case.setting, case.aqm, str(case.flows), str(case.seed))
        return folder / ("-".join(part for part in parts if part) + ".json")

    def key(self, scenario: Scenario) -> str:
        """Returns the key of a stored result, which is reused only for an equal scenario, build and own algorithm."""
        own = [one.digest for one in self.experiment.own.values() if one.path in scenario.text]
        world = [worlds.fingerprint(self.experiment.linux)] if self.experiment.linux in worlds.KERNELS else []
        return provenance.sha256("\0".join([scenario.text, core_fingerprint(), *own, *world]))


def reproduce(
    experiment: Experiment,
    out: Path,
    *,
    quick: bool = False,
    seeds: int = 1,
    jobs: int | None = None,
    fresh: bool = False,
    variants: Collection[str] | None = None,
    watcher: Watcher,
) -> tuple[Evidence | None, bool]:
    """Runs the cases without stored results, and stores all results. Returns false as well if Ctrl-C interrupted it.

    `fresh` runs all cases, and `variants` names the variants that are wanted; by default they all are.
    The evidence is `None` if no published run has finished.
    """
    with store.held(out):
        return _reproduce(
            _Plan(experiment, quick, out, None if variants is None else frozenset(variants)),
            seeds,
            jobs,
            fresh,
            watcher,
        )


def _reproduce(
    plan: _Plan, seeds: int, jobs: int | None, fresh: bool, watcher: Watcher
) -> tuple[Evidence | None, bool]:
    experiment, quick = plan.experiment, plan.quick
    results = store.own_file(plan.out / RESULTS)
    cases = list(plan.cases(seeds))
    done = {} if fresh else {case: stored for case in cases if (stored := _reuse(plan, case)) is not None}
    todo = [Job(case, experiment.scenario(case, quick), case.seed) for case in cases if case not in done]
    watcher.begin(len(cases), len(done), sum(experiment.duration_s(job.key, quick) for job in todo))

    def kept(job: Job[Case], outcome: Outcome) -> None:
        _keep(plan, job, outcome)
        done[job.key] = outcome
        watcher.finished(str(job.key), outcome.cpu_s)

    complete = execute(experiment, quick, todo, jobs or cores(), kept, watcher.advanced)
    ordered = [done[case] for case in sorted(done, key=_order(experiment))]
    outcomes = tuple(outcome for outcome in ordered if not outcome.case.variant)
    if not outcomes:
        return None, complete
    variants = tuple(outcome for outcome in ordered if outcome.case.variant)
    evidence = Evidence(experiment, quick, outcomes, provenance.versions(), variants)
    store.write(results, store.dump(evidence.to_json()))
    return evidence, complete


def execute(
    experiment: Experiment,
    quick: bool,
    todo: Sequence[Job[Case]],
    count: int,
    on_outcome: Callable[[Job[Case], Outcome], None],
    on_progress: Callable[[float], None] = lambda _seconds: None,
) -> bool:
    """Executes runs of an experiment on up to `count` processes; returns false if Ctrl-C ended it early."""

    def outcome(job: Job[Case], result: Result) -> Outcome:
        cc, disturbed = experiment.cc_of(job.key, quick), worlds.disturbed_by(result)
        return Outcome(job.key, cc, result.summary, result.cpu_s, experiment.series_of(result), disturbed)

    count = 1 if experiment.one_at_a_time else worlds.at_once(experiment.linux) or count
    return run_all(todo, count, outcome, on_outcome, on_progress=on_progress, run=experiment.run)


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


def _keep(plan: _Plan, job: Job[Case], outcome: Outcome) -> None:
    path = plan.kept(job.key)
    run = outcome.to_store()
    stored = {"format": FORMAT, "key": plan.key(job.scenario), "sha256": digest(run), "run": run}
    store.together({path: store.dump(stored), path.with_suffix(".toml"): job.scenario.text}, alone=True)


def _reuse(plan: _Plan, case: Case) -> Outcome | None:
    path = plan.kept(case)
    store.finish(path, alone=True)
    if not path.exists():
        return None
    try:
        stored: Any = store.read_json(path)
        with store.as_written(path):
            if stored["key"] != plan.key(plan.experiment.scenario(case, plan.quick)):
                return None
            check_digest(stored, stored["run"], path)
            return Outcome.from_json(stored["run"])
    except store.StoreError:
        return None  # the case is run again
