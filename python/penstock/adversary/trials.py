"""Trials: scenarios of a space that are run and judged, on the processes of sweeps.

A worker has the space and the sentences because it was forked; a trial travels as its settings, in JSON, and comes back
as its judgement. All that is kept of it is a record in `trials/` of the result directory: its settings, what each
sentence says of it, and the CPU time. A trial is known by the hash of all that it is made of, so a search that goes on,
with the same seed, meets its own records and runs only what is new.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock import chance, engine
from penstock.adversary import quantities
from penstock.adversary.quantities import Run
from penstock.adversary.sentence import Judged
from penstock.adversary.space import Settings, Space
from penstock.adversary.standing import Goal
from penstock.engine import ScenarioError, Stopped
from penstock.experiments.interrupts import Stop
from penstock.experiments.processes import cores
from penstock.experiments.work import Task
from penstock.experiments.workers import DiedError, Workers
from penstock.mistake import MistakeError
from penstock.own import Library
from penstock.scenario import Scenario
from penstock.store import segments

FORMAT = 2  # of the records; it is a part of the key, so that another format is run again
DIRECTORY = "trials"
_WRITER = "trials"
_ENDINGS = (KeyboardInterrupt, SystemExit)


@dataclass(frozen=True)
class Trial:
    """What became of one scenario."""

    settings: Settings
    seed: int
    judged: tuple[Judged, ...]  # of each goal
    shown: tuple[float | None, ...]  # the quantity by which each goal is told
    cpu_s: float
    error: str = ""  # why it could not be run, or how it ended
    texts: tuple[str, ...] = ()  # what else a judge says
    mark: str = ""  # which run it was: trials with other seeds that have the same one are one run (`penstock.chance`)

    @property
    def refused(self) -> bool:
        """True if the scenario is none that can be run."""
        return not self.judged

    def packed(self) -> bytes:
        """Returns the trial as a record."""
        told = [[one.true, float(f"{one.margin:.6g}")] for one in self.judged]
        shown = [None if one is None else float(f"{one:.6g}") for one in self.shown]
        kept = [self.settings, self.seed, told, shown, round(self.cpu_s, 6), self.error, self.mark, *self.texts]
        return json.dumps(kept, ensure_ascii=False).encode()

    @classmethod
    def unpacked(cls, data: bytes) -> Trial:
        """Returns the trial of a record."""
        settings, seed, told, shown, cpu_s, error, mark, *texts = json.loads(data)
        judged = tuple(Judged(true, margin) for true, margin in told)
        return cls(settings, seed, judged, tuple(shown), cpu_s, error, tuple(texts), mark)


@dataclass(frozen=True)
class Judge:
    """Runs scenarios of a space, and judges them by the goals."""

    space: Space
    goals: tuple[Goal, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The quantities that the goals need."""
        return tuple(dict.fromkeys(name for goal in self.goals for name in goal.sentence.names))

    def trial(self, settings: Settings, seed: int, stop: Callable[[], bool] = lambda: False) -> Trial:
        """Runs the scenario of these settings."""
        try:
            scenario = self.space.scenario_of(settings)
            summary, raw, cpu_s = engine.measured(scenario, seed, stop)
        except Stopped:
            raise
        except (ScenarioError, MistakeError) as error:
            return Trial(settings, seed, (), (), 0.0, str(error))
        except _ENDINGS:
            raise
        except BaseException as error:  # an algorithm of the user may raise anything, and a panic is no Exception
            return self.failed(settings, seed, str(error) or type(error).__name__)
        run = Run(self.space.tree(settings), self.space.roles(settings), summary, raw)
        return self._judged(settings, seed, quantities.values(run, self.names), cpu_s, chance.mark(summary).hex())

    def failed(self, settings: Settings, seed: int, error: str) -> Trial:
        """Returns the trial of a run that ended with an error."""
        line = error.splitlines()[0]
        return self._judged(settings, seed, quantities.of_failure(self.names), 0.0, line, line)

    def _judged(
        self, settings: Settings, seed: int, values: dict[str, float | None], cpu_s: float, mark: str, error: str = ""
    ) -> Trial:
        judged = tuple(goal.sentence.judge(values) for goal in self.goals)
        shown = tuple(values[goal.shown] for goal in self.goals)
        return Trial(settings, seed, judged, shown, cpu_s, error, mark=mark)

    @property
    def made_of(self) -> str:
        """The hash of everything beside its settings that decides the result of a trial."""
        subject = self.space.subject
        made = [
            FORMAT,
            engine.core_fingerprint(),
            self.space.text({}),
            repr([self.space.parts, [(gene.key, gene.default) for gene in self.space.genes]]),
            [goal.sentence.text for goal in self.goals],
            _own_text(subject.name) if subject else "",
        ]
        return hashlib.sha256(json.dumps(made, ensure_ascii=False).encode()).hexdigest()


def breaking(trials: Iterable[Trial], goal: int) -> tuple[int, int]:
    """Returns how many different runs break a goal, and how many there are. Equal runs with other seeds count once."""
    runs = {trial.mark or trial.seed: trial.judged[goal].true for trial in trials}
    return sum(runs.values()), len(runs)


def _own_text(name: str) -> str:
    """Returns the text of the file of one's own algorithm; empty for a built-in one."""
    return Library().text(name.partition(".py:")[0] + ".py") if ".py:" in name else ""


@dataclass
class Trials:
    """Executes trials on several processes, and keeps them in one table."""

    judge: Judge
    out: Path | None
    stop: Stop
    jobs: int | None = None
    on_progress: Callable[[], None] = lambda: None
    ran: int = 0  # trials that this call has run
    cpu_s: float = 0.0
    _known: dict[bytes, Trial] = field(default_factory=dict)
    _workers: Workers | None = None
    _context: Any = None
    _segment: Any = None

    def __enter__(self) -> Trials:
        if self.out:
            self._known = {key: Trial.unpacked(data) for key, data in segments.records(self.out / DIRECTORY)}
            self._context = segments.appending(self.out / DIRECTORY, _WRITER)
            self._segment = self._context.__enter__()
        self._made_of = self.judge.made_of.encode()
        return self

    def __exit__(self, *error: object) -> None:
        if self._workers:
            self._workers.close()
        if self._context:
            self._context.__exit__(*error)

    @property
    def known(self) -> int:
        """The number of trials that earlier calls have run."""
        return len(self._known) - self.ran

    def run(self, wanted: Sequence[Settings], seeds: Sequence[int] = (1,)) -> list[Trial]:
        """Returns the trials of all settings with all seeds, in this order; those that a stop left out are missing."""
        pairs = [(settings, seed) for settings in wanted for seed in seeds]
        keys = [self._key(settings, seed) for settings, seed in pairs]
        todo: dict[bytes, Task] = {}
        for place, ((settings, seed), key) in enumerate(zip(pairs, keys, strict=True)):
            if key not in self._known and key not in todo:
                todo[key] = Task(place, seed, key, Scenario(json.dumps(settings), "settings"))
        if todo and not self.stop:
            self._keep(self._executed(list(todo.values())))
        return [self._known[key] for key in keys if key in self._known]

    def _key(self, settings: Settings, seed: int) -> bytes:
        text = json.dumps(settings, sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(b"%b\0%b\0%d" % (self._made_of, text.encode(), seed)).digest()

    def _executed(self, tasks: list[Task]) -> Iterator[tuple[bytes, Trial]]:
        if self._workers is None:
            count = self.jobs or cores()
            told: Callable[[float], None] = lambda _seconds: self.on_progress()  # noqa: E731
            self._workers = Workers(count, self.stop, {}, told, _executing(self.judge))
        for task, data in self._workers.results(tasks):
            if isinstance(data, DiedError):
                yield task.key, self.judge.failed(json.loads(task.scenario.text), task.seed, str(data))
            else:
                yield task.key, Trial.unpacked(data)

    def _keep(self, found: Iterable[tuple[bytes, Trial]]) -> None:
        records = []
        for key, trial in found:
            self._known[key] = trial
            self.ran += 1
            self.cpu_s += trial.cpu_s
            records.append((key, trial.packed()))
        if self._segment and records:
            self._segment.append(records)


def _executing(judge: Judge) -> Callable[..., bytes]:
    """Returns what a process does with a trial."""

    def execute(task: Task, stop: Callable[[], bool], on_progress: Callable[[float], None]) -> bytes:
        trial = judge.trial(json.loads(task.scenario.text), task.seed, stop)
        on_progress(1.0)
        return trial.packed()

    return execute
