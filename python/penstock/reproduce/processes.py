"""Executes runs of published experiments on the processes of the engine (`penstock.experiments.workers`)."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any

from penstock.engine import Stopped
from penstock.experiments.interrupts import stopping
from penstock.experiments.work import Task
from penstock.experiments.workers import DiedError, Workers
from penstock.mistake import MistakeError
from penstock.reproduce.base import Case, Experiment
from penstock.reproduce.results import Outcome
from penstock.reproduce.series import Series
from penstock.scenario import Scenario

Job = tuple[Case, Scenario]


def run_all(
    experiment: Experiment,
    quick: bool,
    jobs: Sequence[Job],
    count: int,
    on_outcome: Callable[[Job, Outcome], None],
    on_progress: Callable[[float], None],
) -> bool:
    """Executes the runs on `count` processes; returns false if Ctrl-C ended it early, after what is finished.

    `on_outcome` is called in the order of completion, `on_progress` with increments of the simulated seconds. The first
    error of a run ends all others, and is raised.
    """
    if not jobs:
        return True
    told = 0.0

    def increments(seconds: float) -> None:
        nonlocal told
        on_progress(seconds - told)
        told = seconds

    tasks = [Task(place, case.seed, b"%d" % place, scenario) for place, (case, scenario) in enumerate(jobs)]
    with stopping() as stop:
        workers = Workers(min(count, len(jobs)), stop, {}, increments, _executing(experiment, quick, jobs))
        try:
            for task, data in workers.results(tasks):
                outcome = _outcome(jobs[task.point][0], data)
                try:
                    on_outcome(jobs[task.point], outcome)
                except KeyboardInterrupt:
                    stop.set()
        finally:
            workers.close()
        return not stop


def _executing(experiment: Experiment, quick: bool, jobs: Sequence[Job]) -> Callable[..., bytes]:
    """Returns what a process does with a task. It has the experiment and the cases because it was forked."""

    def execute(task: Task, stop: Callable[[], bool], on_progress: Callable[[float], None]) -> bytes:
        case = jobs[task.point][0]
        try:
            result = experiment.run(task.scenario, task.seed, on_progress=lambda now, _end: on_progress(now), stop=stop)
            series = Series.of(result) if experiment.keeps_series and result.tables else None
            cc = experiment.cc_of(case, quick)
            return pickle.dumps(Outcome(case, cc, result.summary, result.cpu_s, series))
        except Stopped:
            raise
        except Exception as error:
            return pickle.dumps(_sent(error))

    return execute


def _sent(error: Exception) -> Exception:
    """Returns an error that another process can read."""
    try:
        return type(error)(str(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")


def _outcome(case: Case, data: bytes | DiedError) -> Outcome:
    if isinstance(data, DiedError):
        raise MistakeError(f"{case}: {data}")
    found: Any = pickle.loads(data)
    if isinstance(found, Exception):
        raise found
    assert isinstance(found, Outcome)
    return found
