"""Runs on a cluster of Dask: the same runs, the same keys, the same tables. Only this module knows Dask.

A cluster is whatever has a scheduler of Dask: SLURM, Kubernetes, clouds by Dask's deployers, or two processes here. All
its workers must have the same build of Penstock, and see the files that scenarios name (own algorithms, traces).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.engine import core_fingerprint
from penstock.experiments import work
from penstock.experiments.interrupts import Stop
from penstock.experiments.work import Task
from penstock.experiments.workers import DiedError, Returned
from penstock.mistake import MistakeError, lacking

_BATCH = 16  # runs that a worker is given at once, at most
_AHEAD = 4  # batches for each thread of the cluster
_CONNECT_S = 30
_LOOK_S = 0.5
_DONE = frozenset(("finished", "error", "cancelled"))  # the other states of Dask's futures: pending, lost


def results(address: str, tasks: list[Task], stop: Stop) -> Iterator[Returned]:
    """Yields each task with what is kept of it. The scheduler gives the batches of a worker that is lost to others."""
    client = _client(address)
    try:
        yield from _Cluster(client, tasks).results(stop)
    finally:
        client.close()


def _client(address: str) -> Any:
    try:
        from distributed import Client
    except ImportError:
        raise lacking("distributed", "--dask") from None
    try:
        return Client(address, timeout=_CONNECT_S)
    except (OSError, ValueError) as error:
        raise MistakeError(f"--dask {address}: no scheduler of Dask answers there ({error})") from None


class _Cluster:
    """The batches of one call."""

    def __init__(self, client: Any, tasks: list[Task]) -> None:
        threads = sum(client.nthreads().values()) or 1
        size = max(1, min(_BATCH, len(tasks) // (4 * threads)))
        self._client, self._most = client, _AHEAD * threads
        self._left = [tasks[first : first + size] for first in range(0, len(tasks), size)][::-1]
        self._pending: dict[Any, list[Task]] = {}

    def results(self, stop: Stop) -> Iterator[Returned]:
        """Yields the tasks as their batches are completed."""
        from distributed import wait

        while (self._left or self._pending) and not stop:
            while self._left and len(self._pending) < self._most:
                self._submit(self._left.pop())
            try:
                wait(list(self._pending), timeout=_LOOK_S, return_when="FIRST_COMPLETED")
            except TimeoutError:
                continue
            for future in [one for one in self._pending if one.done()]:
                # A worker that is lost meanwhile takes its answers with it; the scheduler has them computed again.
                if (status := future.status) in _DONE:
                    yield from self._completed(future, status, self._pending.pop(future))

    def _submit(self, batch: list[Task]) -> None:
        future = self._client.submit(work.batch, batch, core_fingerprint(), pure=False)
        self._pending[future] = batch

    def _completed(self, future: Any, status: str, batch: list[Task]) -> Iterator[Returned]:
        if status == "finished":
            yield from zip(batch, future.result(), strict=True)
            return
        error = future.exception()
        if isinstance(error, MistakeError):
            raise error
        if len(batch) > 1:  # one of its runs ends the workers: which one?
            self._left += [[task] for task in batch]
            return
        yield batch[0], DiedError(f"the cluster could not finish this run: {type(error).__name__}: {error}")
