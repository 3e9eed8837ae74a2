"""One run of an experiment: what a worker is given, and what it returns, on this machine or another."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock import engine, stacks, worlds
from penstock.experiments import delays
from penstock.experiments.delays import Kept
from penstock.mistake import MistakeError
from penstock.own import Library
from penstock.scenario import Scenario

FORMAT = 1  # of what a run returns; it is a part of the key, so that another format is run again


@dataclass(frozen=True)
class Task:
    """One run. The key says of what it is made: the scenario, the files it names, the seed, and the compiled part."""

    point: int
    seed: int
    key: bytes
    scenario: Scenario
    delays: bool = False  # keep the distributions of delays as well
    on: str = worlds.SIM  # the world in which it runs


@dataclass(frozen=True)
class Answer:
    """What is kept of one run."""

    summary: dict[str, Any] | None  # None if it failed
    error: str
    cpu_s: float
    delays: Kept | None = None
    disturbed: tuple[str, ...] = ()  # how the machine disturbed a run in real time


@dataclass
class Keys:
    """Makes the keys of runs. A file that several scenarios name is read once."""

    core: str = field(default_factory=engine.core_fingerprint)
    _files: dict[tuple[str, str], str] = field(default_factory=dict)

    def of(
        self, scenario: Scenario, texts: Iterable[str], with_delays: bool = False, world: str = ""
    ) -> Callable[[int], bytes]:
        """Returns the function from a seed to the key of the run of `scenario`, of which `texts` may name files.

        `world` is what tells another world than the simulator.
        """
        library = scenario.library()
        files = {name: found for name in texts if (found := self._hash(library, name))}
        made_of = json.dumps(
            [
                FORMAT,
                scenario.text,
                self.core,
                files,
                *(["delays"] if with_delays else []),
                *([world] if world else []),
                *([programs] if (programs := stacks.fingerprint(scenario.text)) else []),
            ],
            sort_keys=True,
        )
        base = hashlib.sha256(made_of.encode())

        def key(seed: int) -> bytes:
            whole = base.copy()
            whole.update(b"\0%d" % seed)
            return whole.digest()

        return key

    def _hash(self, library: Library, name: str) -> str:
        """Returns the hash of the file that a text of a scenario names; empty if it names none."""
        known = (str(Path(library.file).parent), name)
        if known not in self._files:
            try:
                self._files[known] = hashlib.sha256(
                    library.text(name.partition(".py:")[0] + ".py" * (".py:" in name)).encode()
                ).hexdigest()
            except (MistakeError, ValueError, OSError):
                self._files[known] = ""
        return self._files[known]


def run(
    task: Task, stop: Callable[[], bool] = lambda: False, on_progress: Callable[[float], None] | None = None
) -> bytes:
    """Executes one run; returns what is kept of it. An error of the run is kept as well; a stop raises `Stopped`."""
    try:
        text, cpu_s, tables, disturbed = _summarized(task, stop, on_progress)
        kept = f', "delays": {json.dumps(delays.of_run(json.loads(text), tables))}' if task.delays else ""
        kept += f', "disturbed": {json.dumps(disturbed)}' if disturbed else ""
    except engine.Stopped:
        raise
    except Exception as error:  # an algorithm of the user may raise anything; the other runs go on
        return packed(failed(str(error) or type(error).__name__))
    return packed(f'{{"cpu_s": {cpu_s:.6f}, "summary": {text}{kept}}}')


def _summarized(
    task: Task, stop: Callable[[], bool], on_progress: Callable[[float], None] | None
) -> tuple[str, float, dict[str, Any], tuple[str, ...]]:
    """Returns the summary of a run as JSON, its CPU time in seconds, its tables if distributions are kept, and how the
    machine disturbed it.
    """
    if task.on == worlds.SIM:
        found = engine.summarize(task.scenario, task.seed, stop=stop, on_progress=on_progress, tables=task.delays)
        return *found, ()
    told = on_progress or (lambda _now: None)
    result = worlds.run(task.scenario, task.seed, task.on, on_progress=lambda now, _end: told(now), stop=stop)
    told(result.summary["duration_s"])
    tables = result.tables if task.delays else {}
    return json.dumps(result.summary), result.cpu_s, tables, worlds.disturbed_by(result)


def failed(message: str) -> str:
    """Returns what is kept of a run that failed."""
    return json.dumps({"cpu_s": 0.0, "error": message})


def packed(text: str) -> bytes:
    """Returns a text in the form in which it is kept."""
    return zlib.compress(text.encode(), 1)


def unpacked(data: bytes) -> Answer:
    """Returns what was kept of a run."""
    found = json.loads(zlib.decompress(data))
    disturbed = tuple(found.get("disturbed", ()))
    return Answer(found.get("summary"), found.get("error", ""), found["cpu_s"], found.get("delays"), disturbed)


def batch(tasks: Sequence[Task], core: str) -> list[bytes]:
    """Executes several runs, on a machine whose compiled part must be `core`."""
    if engine.core_fingerprint() != core:
        raise MistakeError("the worker has another build of Penstock; install the same one on all machines")
    return [run(task) for task in tasks]
