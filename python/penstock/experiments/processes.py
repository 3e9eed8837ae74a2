"""Executes runs on processes of this machine, and returns of each what its caller keeps."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from penstock.engine import Result, Stopped, simulate
from penstock.experiments.interrupts import stopping
from penstock.experiments.work import Task
from penstock.experiments.workers import DiedError, Execute, Workers
from penstock.mistake import MistakeError
from penstock.scenario import Scenario

K = TypeVar("K")
R = TypeVar("R")


@dataclass(frozen=True)
class Job(Generic[K]):
    """One run; its `key` identifies it, and is its name in messages."""

    key: K
    scenario: Scenario
    seed: int


def cores() -> int:
    """Returns the number of cores which this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_all(
    jobs: Sequence[Job[K]],
    count: int,
    keep: Callable[[Job[K], Result], R],
    on_kept: Callable[[Job[K], R], None],
    *,
    on_progress: Callable[[float], None] = lambda _seconds: None,
    run: Callable[..., Result] = simulate,
) -> bool:
    """Executes the jobs on `count` processes; returns false if Ctrl-C ended it early, after what is finished.

    `keep` is called in the process of a run, and `on_kept` in this one with what it returned, in the order of
    completion; `on_progress` gets increments of the simulated seconds. The first error of a run ends all others, and is
    raised.
    """
    if not jobs:
        return True
    told = 0.0

    def increments(seconds: float) -> None:
        nonlocal told
        on_progress(seconds - told)
        told = seconds

    tasks = [Task(place, job.seed, b"%d" % place, job.scenario) for place, job in enumerate(jobs)]
    with stopping() as stop:
        workers = Workers(min(count, len(jobs)), stop, {}, increments, _executing(jobs, keep, run))
        try:
            for task, data in workers.results(tasks):
                job = jobs[task.point]
                kept = _received(job, data)
                try:
                    on_kept(job, kept)
                except KeyboardInterrupt:
                    stop.set()
        finally:
            workers.close()
        return not stop


def _executing(jobs: Sequence[Job[K]], keep: Callable[[Job[K], Result], R], run: Callable[..., Result]) -> Execute:
    """Returns what a process does with a task. It has the jobs, with own algorithms, because it was forked."""

    def execute(task: Task, stop: Callable[[], bool], on_progress: Callable[[float], None]) -> bytes:
        job = jobs[task.point]
        try:
            result = run(job.scenario, job.seed, on_progress=lambda now, _end: on_progress(now), stop=stop)
            return pickle.dumps((True, keep(job, result)))
        except Stopped:
            raise
        except Exception as error:
            return pickle.dumps((False, _sent(error)))

    return execute


def _sent(error: Exception) -> Exception:
    """Returns an error that another process can read."""
    try:
        return type(error)(str(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")


def _received(job: Job[Any], data: bytes | DiedError) -> Any:
    if isinstance(data, DiedError):
        raise MistakeError(f"{job.key}: {data}")
    ended, found = pickle.loads(data)
    if not ended:
        raise found
    return found
