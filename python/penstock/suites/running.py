"""Runs the cases of a suite on the processes of sweeps. What is finished is kept, so that the same call goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock import engine, worlds
from penstock.adversary.subject import Subject
from penstock.engine import Stopped
from penstock.experiments.interrupts import stopping
from penstock.experiments.model import Facts
from penstock.experiments.processes import cores
from penstock.experiments.runner import Quiet, Watcher
from penstock.experiments.work import Keys, Task
from penstock.experiments.workers import DiedError, Workers
from penstock.scenario import Scenario, to_toml, tree
from penstock.store import segments
from penstock.suites import hosted
from penstock.suites.kept import Kept
from penstock.suites.model import Case, Runs
from penstock.suites.networks import in_packets

DIRECTORY = "runs"
_WRITER = "suite"
_FORMAT = b"2"  # of the records; a part of their keys, so that another format is run again


@dataclass(frozen=True)
class Wanted:
    """A case with an algorithm: what it is called, and its scenario."""

    case: Case
    name: str
    scenario: Scenario

    @classmethod
    def of(cls, case: Case, name: str, subject: Subject, on: str = worlds.SIM) -> Wanted:
        """Makes the scenario of a case. Where the queues are those of a kernel, their limits are in packets."""
        case = hosted.case_of(case, subject)
        tables = case.scenario(subject)
        text = to_toml(in_packets(tables) if on in worlds.KERNEL_QUEUES else tables)
        return cls(case, name, Scenario(text, subject.file or "suite.toml", subject.classes))


class InterruptedSuiteError(KeyboardInterrupt):
    """A suite was interrupted. What is finished is kept: the same call goes on."""


def run(
    wanted: Sequence[Wanted],
    seeds: int,
    out: Path,
    jobs: int | None = None,
    watcher: Watcher | None = None,
    on: str = worlds.SIM,
) -> Runs:
    """Runs each case in a world with the seeds 1 to `seeds`.

    A run that fails is kept with its error, unless a kernel is part of it: there another try may succeed.
    """
    tasks, facts = _tasks(wanted, seeds, on)
    known = {key: Kept.unpacked(data) for key, data in segments.records(out / DIRECTORY)}
    todo = [task for task in tasks if task.key not in known]
    shown = watcher or Quiet()
    shown.begin(len(tasks), len(tasks) - len(todo), sum(facts[task.point].duration_s for task in todo))
    with stopping() as stop, segments.appending(out / DIRECTORY, _WRITER) as segment:
        classes = {name: one for each in wanted for name, one in each.scenario.classes.items()}
        count = worlds.at_once(on) or jobs or cores()
        workers = Workers(count, stop, classes, shown.simulated, _executing(wanted)) if todo else None
        try:
            for task, data in workers.results(todo) if workers else ():
                kept = Kept(error=str(data)) if isinstance(data, DiedError) else Kept.unpacked(data)
                known[task.key] = kept
                shown.finished(bool(kept.error))
                if not isinstance(data, DiedError) and not (kept.error and on in worlds.KERNELS):
                    segment.append([(task.key, data)])
        finally:
            if workers:
                workers.close()
        if stop:
            raise InterruptedSuiteError
    return Runs(dict(_by_case(wanted, tasks, known)))


def _tasks(wanted: Sequence[Wanted], seeds: int, on: str) -> tuple[list[Task], list[Facts]]:
    """Returns the runs with their keys. The first case of each algorithm is checked: a misspelt parameter is told."""
    keys, tasks, facts, checked = Keys(), [], [], set()
    world = worlds.fingerprint(on)
    for place, one in enumerate(wanted):
        if one.name not in checked:
            engine.check(one.scenario, f"the case {one.case.name} with {one.name}")
            checked.add(one.name)
        facts.append(Facts.of(tree(one.scenario.text)))
        key = keys.of(one.scenario, facts[-1].texts, world=world)
        tasks += [Task(place, seed, _kept(key(seed), one.case), one.scenario, on=on) for seed in range(1, seeds + 1)]
    return tasks, facts


def _kept(key: bytes, case: Case) -> bytes:
    import hashlib

    return hashlib.sha256(b"\0".join([_FORMAT, key, repr(case.roles).encode()])).digest()


def _executing(wanted: Sequence[Wanted]) -> Callable[..., bytes]:
    """Returns what a process does with a task. It has the cases because it was forked."""

    def execute(task: Task, stop: Callable[[], bool], on_progress: Callable[[float], None]) -> bytes:
        one = wanted[task.point]
        try:
            if one.case.driven:
                return one.case.driven(one.scenario, task.seed).packed()
            if task.on == worlds.SIM:
                summary, raw, cpu_s = engine.measured(one.scenario, task.seed, stop)
                on_progress(summary["duration_s"])
                return Kept.of(summary, raw, one.case.roles, cpu_s).packed()
            result = worlds.run(
                one.scenario, task.seed, task.on, on_progress=lambda now, _end: on_progress(now), stop=stop
            )
            about = (one.case.roles, result.cpu_s, worlds.disturbed_by(result))
            return Kept.of(result.summary, result.raw_tables, *about).packed()
        except Stopped:
            raise
        except Exception as error:  # an algorithm of the user may raise anything; the other runs go on
            return Kept(error=str(error) or type(error).__name__).packed()

    return execute


def _by_case(
    wanted: Sequence[Wanted], tasks: Sequence[Task], known: Mapping[bytes, Kept]
) -> Iterator[tuple[tuple[str, str], list[Kept]]]:
    found: dict[int, list[Kept]] = {}
    for task in tasks:
        found.setdefault(task.point, []).append(known[task.key])
    for place, runs in found.items():
        yield (wanted[place].case.name, wanted[place].name), runs
