"""Processes of this machine that execute runs. Processes, not threads: a run holds the lock of Python at times.

Workers are forked from this process, so that they load nothing. Each gets batches of runs that take about 0.1 s,
of which it has two, so that it never waits; it takes them while it runs, so that both sides may send at once however
much that is. A worker that dies costs the runs that it had not returned: they are
run again, one at a time; the one with which a worker dies again is returned as failed.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import queue
import signal
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.sharedctypes import RawArray
from pathlib import Path
from typing import Any

from penstock.engine import Stopped
from penstock.experiments import work
from penstock.experiments.interrupts import Stop
from penstock.experiments.work import Task
from penstock.scenario import Scenario

BATCH_S = 0.1  # about how long a batch takes
_SEND_S = 0.2  # a worker returns what it has at the latest after this time
_LOOK_S = 0.2  # time between two looks at the progress
_PATIENCE_S = 10.0  # how long an interrupted worker may take to return what it has
_REMEMBERED = 200  # runs whose mean time decides the size of batches
_AHEAD = 2  # batches that a worker has at a time
_FORK = multiprocessing.get_context("fork")


Execute = Callable[[Task, Callable[[], bool], Callable[[float], None]], bytes]


class DiedError(Exception):
    """A worker died with a run, which is returned as failed, and not kept."""


Returned = tuple[Task, bytes | DiedError]


@dataclass
class _Worker:
    """One process, from outside."""

    process: Any
    pipe: Connection
    place: int  # of its simulated time in the shared array
    batches: deque[list[Task]] = field(default_factory=deque)  # those that it has, without what it has returned

    def returned(self, results: list[bytes]) -> Iterator[Returned]:
        """Yields the tasks whose results it has returned, in their order, with these."""
        for data in results:
            batch = self.batches[0]
            task = batch.pop(0)
            if not batch:
                self.batches.popleft()
            yield task, data


class Workers:
    """Executes tasks on `count` processes."""

    def __init__(
        self,
        count: int,
        stop: Stop,
        classes: Mapping[str, type],
        on_progress: Callable[[float], None] = lambda _seconds: None,
        execute: Execute = work.run,
    ) -> None:
        self._stop, self._on_progress = stop, on_progress
        self._classes, self._execute = classes, execute
        self._simulated: Any = RawArray("d", count)
        self._run_s = 0.0  # mean time of a run, of the runs so far
        self._returned = 0
        self._alone: set[bytes] = set()  # keys of tasks that are sent one at a time, since a worker died
        self._workers = [self._begin(place) for place in range(count)]

    def _begin(self, place: int) -> _Worker:
        ours, theirs = _FORK.Pipe()
        process = _FORK.Process(
            target=_serve,
            args=(theirs, _Life(self._stop, self._classes, self._execute, self._simulated, place)),
            daemon=True,
        )
        with warnings.catch_warnings():  # other threads of a notebook hold no lock that a worker needs
            warnings.simplefilter("ignore", DeprecationWarning)
            process.start()
        theirs.close()
        return _Worker(process, ours, place)

    def results(self, tasks: Iterable[Task]) -> Iterator[Returned]:
        """Yields each task with what is kept of it, as they are completed; once `stop` is set, what is finished."""
        waiting = deque(tasks)
        while not self._stop and (waiting or any(worker.batches for worker in self._workers)):
            self._feed(waiting)
            ready = wait([worker.pipe for worker in self._workers], timeout=_LOOK_S)
            self._on_progress(sum(self._simulated))
            for worker in [one for one in self._workers if one.pipe in ready]:
                yield from self._receive(worker, waiting)
        if self._stop:
            yield from self._finished()
        self._on_progress(sum(self._simulated))

    def _feed(self, waiting: deque[Task]) -> None:
        for worker in self._workers:
            while waiting and len(worker.batches) < _AHEAD:
                batch = self._batch(waiting)
                worker.batches.append(batch)
                with contextlib.suppress(OSError):  # it has died, which `_receive` notices
                    worker.pipe.send(
                        [
                            (t.point, t.seed, t.scenario.text, t.scenario.file, t.scenario.kept, t.delays, t.on)
                            for t in batch
                        ]
                    )

    def _batch(self, waiting: deque[Task]) -> list[Task]:
        share = len(waiting) // (2 * len(self._workers)) + 1
        size = min(share, max(1, int(BATCH_S / self._run_s))) if self._run_s else 1
        batch = [waiting.popleft()]
        while waiting and len(batch) < size and not {batch[0].key, waiting[0].key} & self._alone:
            batch.append(waiting.popleft())
        return batch

    def _receive(self, worker: _Worker, waiting: deque[Task]) -> Iterator[Returned]:
        try:
            results, seconds = worker.pipe.recv()
        except (EOFError, OSError):
            yield from self._died(worker, waiting)
            return
        self._returned += len(results)
        if results:
            self._run_s += (seconds - len(results) * self._run_s) / min(self._returned, _REMEMBERED)
        yield from worker.returned(results)

    def _died(self, worker: _Worker, waiting: deque[Task]) -> Iterator[Returned]:
        worker.process.join()
        code = worker.process.exitcode
        lost = [task for batch in worker.batches for task in batch]
        if lost and lost[0].key in self._alone:
            yield lost.pop(0), DiedError(_why(code))
        self._alone |= {task.key for task in lost}
        waiting.extendleft(reversed(lost))
        worker.pipe.close()
        self._workers = [*(one for one in self._workers if one is not worker), self._begin(worker.place)]

    def _finished(self) -> Iterator[Returned]:
        """Yields what the workers have finished when they were told to stop."""
        end = time.monotonic() + _PATIENCE_S
        for worker in self._workers:
            with contextlib.suppress(EOFError, OSError):
                while worker.batches and worker.pipe.poll(max(0.0, end - time.monotonic())):
                    yield from worker.returned(worker.pipe.recv()[0])

    def close(self) -> None:
        """Ends the processes."""
        for worker in self._workers:
            worker.pipe.close()
        for worker in self._workers:
            worker.process.join(1.0)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()


def _why(code: int | None) -> str:
    if code is not None and code < 0:
        name = signal.Signals(-code).name
        hint = "; the memory may not be enough: --jobs 1 needs less" if name == "SIGKILL" else ""
        return f"the process of this run was ended twice, by {name}{hint}"
    return f"the process of this run ended twice, with exit code {code}"


@dataclass(frozen=True)
class _Life:
    """What a worker has from its parent; a forked process needs not be sent it."""

    asked: Stop
    classes: Mapping[str, type]  # of algorithms, by the names in scenarios
    execute: Execute
    simulated: Any  # seconds of all workers
    place: int  # its own place among them


def _serve(pipe: Connection, life: _Life) -> None:
    """The life of a worker: executes batches until the pipe is closed, its parent is gone, or it is told to stop."""
    parent = os.getppid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the parent tells what to do
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _close_all_but(pipe)

    def stop() -> bool:
        return bool(life.asked) or os.getppid() != parent

    given: queue.SimpleQueue[list[Any] | None] = queue.SimpleQueue()
    threading.Thread(target=_take, args=(pipe, given), daemon=True).start()
    with contextlib.suppress(OSError):
        while not stop():
            with contextlib.suppress(queue.Empty):
                batch = given.get(timeout=1.0)
                if batch is None:
                    break
                tasks = [
                    Task(point, seed, b"", Scenario(text, file, life.classes, kept), delays, on)
                    for point, seed, text, file, kept, delays, on in batch
                ]
                _batch(pipe, tasks, life, stop)
    os._exit(0)


def _take(pipe: Connection, given: queue.SimpleQueue[list[Any] | None]) -> None:
    """Takes batches from the pipe as they come. If both sides sent and neither read, both would wait for ever."""
    with contextlib.suppress(EOFError, OSError):
        while True:
            given.put(pipe.recv())
    given.put(None)


def _close_all_but(pipe: Connection) -> None:
    """Closes what was open in the parent: its locks, which would outlive it otherwise, and pipes of other workers."""
    for number in [int(entry.name) for entry in Path("/dev/fd").iterdir()]:
        if number > 2 and number != pipe.fileno():
            with contextlib.suppress(OSError):
                os.close(number)


def _batch(pipe: Connection, tasks: list[Task], life: _Life, stop: Callable[[], bool]) -> None:
    results: list[bytes] = []
    sent, before = time.monotonic(), life.simulated[life.place]

    def on_progress(seconds: float) -> None:
        life.simulated[life.place] = before + seconds

    for task in tasks:
        try:
            results.append(life.execute(task, stop, on_progress))
        except Stopped:
            break
        before = life.simulated[life.place]
        if time.monotonic() - sent > _SEND_S:
            pipe.send((results, time.monotonic() - sent))
            results, sent = [], time.monotonic()
    if results or stop():
        pipe.send((results, time.monotonic() - sent))
