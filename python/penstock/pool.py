"""Executes many runs at once. Each run uses one core."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Generic, TypeVar

from penstock.engine import Result, Stopped, simulate
from penstock.scenario import Scenario

K = TypeVar("K")


@dataclass(frozen=True)
class Job(Generic[K]):
    """One run; `key` identifies it in all callbacks."""

    key: K
    scenario: Scenario
    seed: int


def cores() -> int:
    """Returns the number of cores which this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_all(
    jobs: Iterable[Job[K]],
    workers: int,
    on_result: Callable[[Job[K], Result], None],
    on_progress: Callable[[K, float], None] = lambda _key, _seconds: None,
    run: Callable[..., Result] = simulate,
) -> bool:
    """Executes the jobs on `workers` threads; returns false if Ctrl-C ended it early.

        `on_result` is called on this thread, in the order of completion. The first error stops all other runs, and is
    raised.
    """
    stop = threading.Event()

    def work(job: Job[K]) -> Result:
        return run(job.scenario, job.seed, on_progress=lambda now, _: on_progress(job.key, now), stop=stop.is_set)

    with ThreadPoolExecutor(max_workers=workers) as executor:
        pending: dict[Future[Result], Job[K]] = {}
        try:
            for job in jobs:
                pending[executor.submit(work, job)] = job
            while pending:
                done, _ = wait(pending, timeout=0.5, return_when=FIRST_COMPLETED)
                for future in done:
                    on_result(pending.pop(future), future.result())
        except KeyboardInterrupt:
            _end(stop, executor)
            for future, job in pending.items():
                if future.done() and not future.cancelled() and future.exception() is None:
                    on_result(job, future.result())
            return False
        except BaseException:
            _end(stop, executor)
            raise
    return True


def _end(stop: threading.Event, executor: ThreadPoolExecutor) -> None:
    stop.set()
    executor.shutdown(wait=True, cancel_futures=True)


__all__ = ["Job", "Stopped", "cores", "run_all"]
