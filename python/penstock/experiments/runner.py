"""Runs an experiment: what is not finished yet, on processes of this machine or on a cluster; then writes the tables.

The list of work is the set of keys (`work.Task`): what is stored under a key is never run again, whoever ran it.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from penstock import chance, engine, store, worlds
from penstock.experiments import delays, results, tables, until, work
from penstock.experiments.interrupts import Stop, stopping
from penstock.experiments.measures import BY_KEY, BY_PART
from penstock.experiments.model import Experiment, Point
from penstock.experiments.processes import cores
from penstock.experiments.results import Sweep
from penstock.experiments.rows import rows
from penstock.experiments.work import Task
from penstock.experiments.workers import DiedError, Returned, Workers
from penstock.mistake import MistakeError
from penstock.store import segments

SYNC_S = 1.0  # what was finished in the last second may be lost if the machine (not the command) stops
_WRITE_S = 0.05  # results of this time are written in one step
_WRITER = "all"


class Watcher(Protocol):
    """The interface of progress displays."""

    def begin(self, runs: int, reused: int, simulated_s: float) -> None:
        """Called first: `runs` in all, of which `reused` are finished; the others simulate `simulated_s`."""

    def more(self, runs: int, simulated_s: float) -> None:
        """Called when seeds are added (`until`)."""

    def simulated(self, seconds: float) -> None:
        """Called now and then with the seconds that were simulated up to now."""

    def finished(self, failed: bool) -> None:
        """Called for each finished run."""


class Quiet:
    """A watcher that shows nothing."""

    def begin(self, runs: int, reused: int, simulated_s: float) -> None:
        """Shows nothing."""

    def more(self, runs: int, simulated_s: float) -> None:
        """Shows nothing."""

    def simulated(self, seconds: float) -> None:
        """Shows nothing."""

    def finished(self, failed: bool) -> None:
        """Shows nothing."""


@dataclass(frozen=True)
class Shard:
    """The points whose number leaves the rest `number - 1` when divided by `of`: a part that one job runs."""

    number: int
    of: int

    def has(self, point: Point) -> bool:
        """Returns true for the points of this part."""
        return point.index % self.of == self.number - 1


@dataclass(frozen=True)
class How:
    """Where and in which part an experiment is run. It changes no result."""

    jobs: int | None = None  # number of processes; None: one for each core
    shard: Shard | None = None
    dask: str = ""  # address of a scheduler of Dask; empty: this machine
    reuse: tuple[Path, ...] = ()  # directories of other sweeps, whose runs are taken over where they are the same
    had: Mapping[int, bytes] = field(default_factory=dict)  # runs that an experiment of one point has already, by seed


ONE_MACHINE = How()


@dataclass(frozen=True)
class Done:
    """What a call of `run` came to."""

    path: Path
    runs: int  # in the whole experiment, as far as is known
    finished: int  # of these, also by earlier calls and other shards
    ran: int  # in this call
    interrupted: bool
    sweep: Sweep | None  # None if runs are missing
    died: tuple[str, ...] = ()  # what is to be said of runs with which a worker died


@dataclass
class Plan:
    """An experiment with its points and the keys of its runs."""

    experiment: Experiment
    points: list[Point] = field(init=False)
    known: Set[bytes] = frozenset()  # keys of what is stored
    _keys: list[Callable[[int], bytes]] = field(init=False)
    _richer: list[Callable[[int], bytes]] = field(init=False)

    def __post_init__(self) -> None:
        keys, experiment = work.Keys(), self.experiment
        world = worlds.fingerprint(experiment.on)
        self.points = list(experiment.points())
        self._keys, self._richer = (
            [keys.of(point.scenario, point.facts.texts, delays, world) for point in self.points]
            for delays in (experiment.delays, True)
        )

    def tasks(self, seeds: Mapping[int, Sequence[int]]) -> list[Task]:
        """Returns the runs of each point with its seeds."""
        experiment = self.experiment
        return [
            Task(index, seed, self._key(index, seed), self.points[index].scenario, experiment.delays, experiment.on)
            for index, wanted in seeds.items()
            for seed in wanted
        ]

    def _key(self, index: int, seed: int) -> bytes:
        """Returns the key of a run; a stored one that has distributions as well does for one without."""
        richer = self._richer[index](seed)
        return richer if richer in self.known else self._keys[index](seed)

    def simulated_s(self, tasks: Sequence[Task]) -> float:
        """Returns the simulated time of some runs."""
        return sum(self.points[task.point].facts.duration_s for task in tasks)

    def check(self) -> None:
        """Raises the diagnosis of the first point if no point can be run: a key is misspelt, or a value is wrong."""
        first: Exception | None = None
        for point in self.points:
            told = f" with {point.label}" if point.settings else ""
            try:
                engine.check(point.scenario, point.scenario.file + told)
                if self.experiment.on in worlds.KERNELS:
                    worlds.check(point.scenario, self.experiment.seeds[0], self.experiment.on)
                return
            except Exception as error:  # a file of the user may raise anything
                first = first or error
        if first:
            raise first


def run(experiment: Experiment, out: Path, how: How = ONE_MACHINE, watcher: Watcher | None = None) -> Done:
    """Runs what is not finished, and writes the tables when all is. A second call goes on where the first ended."""
    plan = Plan(experiment)
    plan.check()
    writer = f"shard-{how.shard.number}-of-{how.shard.of}" if how.shard else _WRITER
    with segments.appending(out / results.RUNS, writer) as segment, stopping() as stop:
        return _Call(plan, out, how, watcher or Quiet(), segment, stop).run()


def is_stored(experiment: Experiment, out: Path) -> bool:
    """Returns whether all runs of an experiment are stored in a directory already."""
    plan = Plan(experiment)
    plan.known = {key for key, _ in segments.records(out / results.RUNS)}
    seeds = {point.index: experiment.seeds for point in plan.points}
    return all(task.key in plan.known for task in plan.tasks(seeds))


@dataclass
class _Call:
    """One call of `run`."""

    plan: Plan
    out: Path
    how: How
    watcher: Watcher
    segment: segments.Segment
    stop: Stop
    known: set[bytes] = field(init=False)
    ran: int = 0
    cpu_s: float = 0.0
    died: dict[bytes, str] = field(default_factory=dict)

    def run(self) -> Done:
        begin, cpu = time.monotonic(), time.process_time()
        self.known = {key for key, _ in segments.records(self.out / results.RUNS)}
        self.plan.known = self.known
        experiment = self.plan.experiment
        first = until.first_stage(experiment.until, experiment.seeds)
        seeds: dict[int, Sequence[int]] = {point.index: first for point in self.plan.points}
        tasks = self.plan.tasks(seeds)
        self._take_over(tasks)
        mine = [task for task in tasks if self._is_mine(task)]
        todo = self._todo(mine)
        self.watcher.begin(len(mine), len(mine) - len(todo), self.plan.simulated_s(todo))
        self._execute(todo)
        if experiment.until and not self.stop:
            seeds = self._stages(seeds)
            tasks = self.plan.tasks(seeds)
            todo = self._todo(tasks)
            self.watcher.more(len(todo), self.plan.simulated_s(todo))
            self._execute(todo)
        finished = sum(task.key in self.known or task.key in self.died for task in tasks)
        sweep = None
        if finished == len(tasks) and not self.stop:
            timing = {"wall_s": time.monotonic() - begin, "cpu_s": time.process_time() - cpu, "runs": self.ran}
            sweep = self._write(tasks, timing)
        return Done(self.out, len(tasks), finished, self.ran, bool(self.stop), sweep, tuple(self.died.values()))

    def _todo(self, tasks: Sequence[Task]) -> list[Task]:
        return [task for task in tasks if task.key not in self.known and self._is_mine(task)]

    def _is_mine(self, task: Task) -> bool:
        return self.how.shard is None or self.how.shard.has(self.plan.points[task.point])

    def _take_over(self, tasks: Sequence[Task]) -> None:
        wanted = {task.key for task in tasks} - self.known
        had = [(task.key, self.how.had[task.seed]) for task in tasks if task.seed in self.how.had]
        other = (
            record for path in (self.how.reuse if wanted else ()) for record in segments.records(path / results.RUNS)
        )
        for key, data in itertools.chain(had, other):
            if key in wanted and key not in self.known:
                self.segment.append([(key, data)])
                self.known.add(key)

    def _execute(self, todo: list[Task]) -> None:
        if not todo or self.stop:
            return
        kept: list[tuple[bytes, bytes]] = []
        written = synced = time.monotonic()
        try:
            for task, data in self._results(todo):
                if isinstance(data, DiedError):
                    self.died[task.key] = str(data)
                    self.watcher.finished(True)
                    continue
                kept.append((task.key, data))
                self.known.add(task.key)
                self.ran += 1
                self.watcher.finished(False)
                now = time.monotonic()
                if now - written > _WRITE_S:
                    self._append(kept)
                    written = now
                if now - synced > SYNC_S:
                    self.segment.sync()
                    synced = now
        finally:
            self._append(kept)

    def _append(self, kept: list[tuple[bytes, bytes]]) -> None:
        if kept:
            self.segment.append(kept)
            kept.clear()

    def _results(self, todo: list[Task]) -> Iterator[Returned]:
        on = self.plan.experiment.on
        if self.how.dask:
            if on in worlds.KERNELS:
                raise MistakeError(f"--on {on} runs on this machine: leave --dask out")
            from penstock.experiments import cluster

            yield from cluster.results(self.how.dask, todo, self.stop)
            return
        count = min(worlds.at_once(on) or self.how.jobs or cores(), len(todo))
        workers = Workers(count, self.stop, self.plan.experiment.scenario.classes, self.watcher.simulated)
        try:
            yield from workers.results(todo)
        finally:
            workers.close()

    def _stages(self, seeds: Mapping[int, Sequence[int]]) -> dict[int, Sequence[int]]:
        """Returns the seeds of each point with those that its rule (`until`) adds after the first stage."""
        rule = self.plan.experiment.until
        assert rule is not None
        tasks = {task.key: task for task in self.plan.tasks(seeds)}
        measure = BY_KEY[rule.measure]
        found: dict[int, dict[str, dict[int, float | None]]] = {}
        marks: dict[int, set[bytes]] = {}
        for task, answer in self._answers(tasks):
            by_name = found.setdefault(task.point, {})
            if answer.summary is None:
                by_name.setdefault("", {})[task.seed] = None
                continue
            marks.setdefault(task.point, set()).add(chance.mark(answer.summary))
            for row in rows(answer.summary, self.plan.points[task.point].facts.groups):
                if row.part == measure.part:
                    place = BY_PART[row.part].index(measure)
                    by_name.setdefault(row.name, {})[task.seed] = row.values[place]
        return {
            point: self._more(rule, given, found.get(point, {}), len(marks.get(point, ())))
            for point, given in seeds.items()
        }

    @staticmethod
    def _more(
        rule: Any, given: Sequence[int], found: Mapping[str, Mapping[int, float | None]], samples: int
    ) -> Sequence[int]:
        """Returns the seeds of a point that has these values of the first stage, in `samples` different runs; a value
        that is missing adds none.
        """
        counts = [len(given)]
        for by_seed in found.values():
            listed = [by_seed.get(seed) for seed in given]
            known = [value for value in listed if value is not None]
            if len(known) == len(given):
                counts.append(until.needed(rule, known, samples))
        return until.more(given, max(counts))

    def _answers(self, tasks: Mapping[bytes, Task]) -> Iterator[tuple[Task, work.Answer]]:
        """Yields the stored runs among these tasks, each once."""
        seen: set[bytes] = set()
        for key, data in segments.records(self.out / results.RUNS):
            if key in tasks and key not in seen:
                seen.add(key)
                with store.as_written(self.out / results.RUNS):
                    yield tasks[key], work.unpacked(data)

    def _write(self, tasks: Sequence[Task], timing: dict[str, Any]) -> Sweep:
        by_key: dict[bytes, Task] = {}
        places: dict[bytes, int] = {}
        counted: dict[int, int] = {}
        for task in tasks:
            by_key[task.key] = task
            places[task.key] = counted[task.point] = counted.get(task.point, -1) + 1
        collector, merged = tables.Collector(self.plan.points), delays.Merged()
        for task, answer in self._answers(by_key):
            collector.add(task.point, places[task.key], task.seed, answer)
            merged.add(task.point, answer.delays)
            self.cpu_s += answer.cpu_s
        for key, message in self.died.items():
            collector.add(by_key[key].point, places[key], by_key[key].seed, work.Answer(None, message, 0.0))
        experiment = self.plan.experiment
        table = collector.table(experiment)
        made = {"results": table, "intervals": tables.intervals(table, experiment, self.plan.points)}
        if experiment.delays:
            made["delays"] = tables.with_points(merged.table(), experiment, self.plan.points)
        timing = {**timing, "simulation_cpu_s": self.cpu_s}
        return results.write(self.out, experiment, made, timing, collector.failed(), collector.disturbed())
