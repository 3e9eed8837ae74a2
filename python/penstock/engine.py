"""The simulator as Python sees it. This is the only module that touches the compiled part."""

from __future__ import annotations

import functools
import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from penstock import _penstock, tcp_trace
from penstock._penstock import BrokenInvariant, Orbit, ScenarioError, TraceError
from penstock.mistake import MistakeError
from penstock.own import AlgorithmError, Library
from penstock.scenario import Scenario, Source

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "AlgorithmError",
    "BrokenInvariant",
    "Entry",
    "Orbit",
    "Parameter",
    "Result",
    "ScenarioError",
    "Stopped",
    "TraceError",
    "entries",
    "replay",
    "run",
    "schedule",
    "schedulers",
    "simulate",
    "tempest",
    "tempest_result",
]

# Fine enough for a smooth bar and a prompt Ctrl-C, coarse enough to cost nothing.
_STEPS = 200

RawTables = Mapping[str, Mapping[str, tuple[str, bytes]]]


class Stopped(Exception):  # noqa: N818 - it is a request, not an error
    """The run was asked to stop before its end."""


@dataclass(frozen=True)
class Parameter:
    """One parameter of an algorithm; a default of `None` is derived from the link."""

    name: str
    default: Any
    about: str


@dataclass(frozen=True)
class Entry:
    """One algorithm of the registry."""

    name: str
    kind: str
    about: str
    source: str
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True)
class Watch:
    """Connections to look at while a run goes on: none for the first eight, and the time between two looks."""

    flows: tuple[int, ...] = ()
    interval: str = "10ms"


@dataclass(frozen=True)
class Result:
    """What a run gave."""

    scenario: Scenario
    resolved: str
    seed: int
    summary: dict[str, Any]
    cpu_s: float
    wall_s: float
    raw_tables: RawTables = field(repr=False)
    watched: tuple[int, ...] = ()  # flows in the table `tcp_trace`
    # Files that the scenario names, such as those of your algorithms, and what is in them.
    own_files: Mapping[str, str] = field(default_factory=dict)

    @functools.cached_property
    def tables(self) -> dict[str, pa.Table]:
        """The tables as Arrow; units are in the names of the columns."""
        import numpy as np
        import pyarrow as pa

        found = {
            name: {column: np.frombuffer(data, dtype) for column, (dtype, data) in columns.items()}
            for name, columns in self.raw_tables.items()
        }
        return {
            name: tcp_trace.arrow(columns, _penstock.TCP_STATES) if name == tcp_trace.FLOWS else pa.table(columns)
            for name, columns in found.items()
        }

    def frame(self, name: str) -> Any:
        """One table as a polars or pandas frame, whichever is installed, else as an Arrow table."""
        table = self.tables[name]
        try:
            import polars
        except ImportError:
            pass
        else:
            return polars.from_arrow(table)
        try:
            return table.to_pandas()
        except ImportError:
            return table


def core_version() -> str:
    """The version of the compiled part."""
    return _penstock.__version__


@functools.cache
def core_fingerprint() -> str:
    """A hash of the compiled part: two builds with the same hash give the same results."""
    return hashlib.sha256(Path(_penstock.__file__).read_bytes()).hexdigest()


def entries() -> list[Entry]:
    """Every algorithm with its parameters."""
    return _entries(_penstock.entries())


def schedulers() -> list[Entry]:
    """Every packet scheduler with its parameters."""
    return _entries(_penstock.schedulers())


def _entries(listed: str) -> list[Entry]:
    return [
        Entry(**{**entry, "parameters": tuple(Parameter(**parameter) for parameter in entry["parameters"])})
        for entry in json.loads(listed)
    ]


def run(source: Source, seed: int | None = None, pcapng: Path | None = None) -> Result:
    """Runs a scenario to its end; `pcapng` is a file for the packets of the bottlenecks.

    Raises `ScenarioError` with the complete diagnosis when the scenario cannot be run, `BrokenInvariant` when an
    invariant it states does not hold, and `AlgorithmError` when an algorithm of yours fails.
    """
    return simulate(Scenario.load(source), seed, pcapng)


def simulate(
    scenario: Scenario,
    seed: int | None = None,
    pcapng: Path | None = None,
    *,
    on_progress: Callable[[float, float], None] = lambda _now, _end: None,
    stop: Callable[[], bool] = lambda: False,
    watch: Watch | None = None,
) -> Result:
    """Runs a scenario; `on_progress` hears the simulated seconds done and in all, `stop` may end it with `Stopped`.

    With `watch` the result has the tables `tcp_trace` and `queue_trace`.
    """
    wall = time.perf_counter()
    library = Library(scenario.file, scenario.classes, scenario.kept)
    simulation = _open(scenario, seed, pcapng, library)
    watched = _watch(simulation, watch) if watch else ()
    step_s = simulation.duration_s / _STEPS
    # CPU time is that of the events alone: building the network and the summary do not grow with the packets. The run
    # stays on this thread, so its clock counts the compiled part and nothing of other runs.
    cpu_s = 0.0
    finished = False
    while not finished:
        if stop():
            raise Stopped
        before = time.thread_time()
        finished = simulation.advance(step_s)
        cpu_s += time.thread_time() - before
        on_progress(simulation.now_s, simulation.duration_s)
    summary = json.loads(simulation.summary())
    wall_s = time.perf_counter() - wall
    tables = {**simulation.tables(), **simulation.traced()}
    about = (simulation.resolved(), simulation.seed, summary, cpu_s, wall_s)
    return Result(scenario, *about, tables, watched, library.sources)


def _watch(simulation: _penstock.Simulation, watch: Watch) -> tuple[int, ...]:
    try:
        return tuple(simulation.trace(list(watch.flows), watch.interval))
    except ValueError as error:
        raise MistakeError(str(error)) from None


def _open(scenario: Scenario, seed: int | None, pcapng: Path | None, library: Library) -> _penstock.Simulation:
    return _penstock.Simulation(scenario.text, scenario.file, seed, str(pcapng) if pcapng else None, library)


def replay(
    trace: Path,
    aqm: str,
    rate: str,
    limit: str,
    settings: Sequence[str] = (),
    seed: int = 1,
    csv: BinaryIO | None = None,
    nodes: str = "source",
) -> dict[str, Any]:
    """Replays the arrivals of a capture or CSV file through a discipline before a link of `rate`.

    `settings` are parameters of the discipline such as `target=10ms`; with `csv`, every packet is written to it. With
    `nodes` a captured flow belongs to the host at one end of its first packet, "source" or "destination"; with "none",
    and in CSV, each flow is its own. Raises `TraceError` when the trace cannot be read and `ValueError` when another
    argument cannot be.
    """
    summary: dict[str, Any] = json.loads(
        _penstock.replay(str(trace), aqm, rate, limit, list(settings), seed, csv, Library(), nodes)
    )
    return summary


def replay_control(script: Path, cc: str, csv: BinaryIO, settings: Sequence[str] = ()) -> int:
    """Gives a congestion control a script of events (columns t_us,event,segments,rtt_us) and writes each window.

    `settings` are parameters of the control, each `key=value`. Returns the number of events. Raises `TraceError` when
    the script cannot be read and `ValueError` for another `cc` or a parameter that cannot be.
    """
    return _penstock.replay_control(str(script), cc, csv, Library(), list(settings))


def schedule(
    name: str,
    weights: Sequence[int],
    events: Sequence[tuple[str, int, int]],
    max_packet: int = 1500,
    **settings: Any,
) -> list[int]:
    """Gives a packet scheduler events and then takes all that is left.

    Events are ("arrive", class, size), ("depart", 0, 0), ("weight", class, weight) and ("channel", class, 0 or 1).

    Returns the numbers of the packets, in order of arrival, as they leave; -1 where none did. Raises `ValueError` for
    what cannot be.
    """
    return _penstock.schedule(name, list(weights), list(events), max_packet, json.dumps(settings))


def tempest(flags: Mapping[str, str]) -> dict[str, Any]:
    """Tests a packet scheduler; `flags` are those of `penstock tempest` without dashes, such as `alg="drr"`.

    Raises `ValueError` for a flag that cannot be and `RuntimeError` for a scheduler that serves nobody.
    """
    report: dict[str, Any] = json.loads(_penstock.tempest(json.dumps(dict(flags))))
    return report


def tempest_result(scenario: Scenario, flags: Mapping[str, str]) -> Result:
    """The same as a run that experiments keep; its summary is the report."""
    wall, cpu = time.perf_counter(), time.thread_time()
    report = tempest(flags)
    cpu_s, wall_s = time.thread_time() - cpu, time.perf_counter() - wall
    return Result(scenario, scenario.text, report["seed"], report, cpu_s, wall_s, {})
