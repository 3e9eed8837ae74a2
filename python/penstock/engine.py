"""The simulator for Python. Only this module and its type stubs use the compiled extension."""

from __future__ import annotations

import contextlib
import functools
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, BinaryIO

from penstock import _penstock, tcp_trace
from penstock._penstock import BrokenInvariant, Endpoint, Environments, Orbit, ScenarioError, TraceError, observed
from penstock.citations import cited
from penstock.mistake import MistakeError, lacking
from penstock.own import AlgorithmError, Library
from penstock.scenario import Scenario, Source, to_toml

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd
    import pyarrow as pa

__all__ = [
    "AlgorithmError",
    "BrokenInvariant",
    "Endpoint",
    "Entry",
    "Environments",
    "Orbit",
    "Parameter",
    "Result",
    "ScenarioError",
    "Stopped",
    "TraceError",
    "check",
    "entries",
    "link_from",
    "measured",
    "observed",
    "packets",
    "replay",
    "replay_segments",
    "replay_state",
    "run",
    "schedule",
    "scheduled",
    "schedulers",
    "simulate",
    "solve",
    "summarize",
    "tcp_defaults",
    "tempest",
    "tempest_result",
]

# Number of steps of a run. Between steps the bar is updated and Ctrl-C is noticed; more steps would cost CPU time.
_STEPS = 200
_FEW_STEPS = 20  # the same where thousands of short runs are executed
# The simulator counts nanoseconds, so that a shorter step would be none.
_LEAST_STEP_S = 1e-6

RawTables = Mapping[str, Mapping[str, tuple[str, bytes]]]


class Stopped(Exception):  # noqa: N818 - it is a request, not an error
    """The run was asked to stop before its end."""


@dataclass(frozen=True)
class Parameter:
    """One parameter of an algorithm. A default of `None` means that the value is derived from the link."""

    name: str
    default: Any
    about: str


@dataclass(frozen=True)
class Entry:
    """One algorithm of the registry, with its kind, description, source and parameters."""

    name: str
    kind: str
    about: str
    source: str
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True)
class Watch:
    """The connections that a run samples, by number (none: the first eight), and the time between samples."""

    flows: tuple[int, ...] = ()
    interval: str = "10ms"


@dataclass(frozen=True)
class Result:
    """The results of one run."""

    scenario: Scenario
    resolved: str
    seed: int
    summary: dict[str, Any]
    cpu_s: float
    wall_s: float
    raw_tables: RawTables = field(repr=False)
    watched: tuple[int, ...] = ()  # numbers of the flows in the table `tcp_trace`
    # Texts of the files that the scenario names, such as algorithms in Python, by their paths in the scenario.
    own_files: Mapping[str, str] = field(default_factory=dict)
    # What belongs to a run in real time, for the manifest: kernel, settings, lateness. `None` for a computed run.
    wire: Mapping[str, Any] | None = None

    @functools.cached_property
    def tables(self) -> dict[str, pa.Table]:
        """All tables in Arrow's format, by name; the names of columns contain the units."""
        return _arrow(self.raw_tables)

    def frame(self, name: str) -> pd.DataFrame:
        """Returns one table as a frame of pandas; `tables` has it in Arrow's format."""
        if name not in self.tables:
            held = ", ".join(self.tables) or "none; the scenario has `[output] series = false`"
            raise MistakeError(f"no table {name!r}; there are: {held}")
        return frame_of(self.tables[name])


def _arrow(raw: RawTables) -> dict[str, pa.Table]:
    import numpy as np
    import pyarrow as pa

    found = {
        name: {column: np.frombuffer(data, dtype) for column, (dtype, data) in columns.items()}
        for name, columns in raw.items()
    }
    return {
        name: tcp_trace.arrow(columns, _penstock.TCP_STATES)
        if name == tcp_trace.FLOWS
        # What is missing is null: a delay in a second in which no packet left, the window of a flow that has none.
        else pa.table(
            {
                column: pa.array(values, mask=values == 0 if column == "cwnd_bytes" else None, from_pandas=True)
                for column, values in columns.items()
            }
        )
        for name, columns in found.items()
    }


def frame_of(table: pa.Table) -> pd.DataFrame:
    """Returns a table of Arrow as a frame of pandas."""
    try:
        frame: pd.DataFrame = table.to_pandas()
    except ModuleNotFoundError:
        raise lacking("pandas", "frame()") from None
    return frame


def core_version() -> str:
    """Returns the version of the compiled extension."""
    return _penstock.__version__


@functools.cache
def core_fingerprint() -> str:
    """Returns the SHA-256 hash of the compiled extension. Two builds with equal hashes give equal results."""
    import hashlib

    return hashlib.sha256(Path(_penstock.__file__).read_bytes()).hexdigest()


def entries() -> list[Entry]:
    """Lists every algorithm with its parameters."""
    return _entries(_penstock.entries())


def schedulers() -> list[Entry]:
    """Lists every packet scheduler with its parameters."""
    return _entries(_penstock.schedulers())


@functools.cache
def tcp_defaults() -> Mapping[str, Any]:
    """Returns the keys of `[tcp]` in scenarios with their defaults."""
    found: dict[str, Any] = json.loads(_penstock.tcp_defaults())
    return found


def scenario_schema() -> dict[str, Any]:
    """Returns the JSON Schema of scenario files."""
    found: dict[str, Any] = json.loads(_penstock.scenario_schema())
    return found


def summary_schema() -> dict[str, Any]:
    """Returns the JSON Schema of the summaries of runs."""
    found: dict[str, Any] = json.loads(_penstock.summary_schema())
    return found


def link_from(files: Sequence[tuple[str, bytes]]) -> dict[str, Any]:
    """Reads files of other tools, each a name and its bytes, as the link of a scenario.

    The result has what was recognised ("format"), the tables of the link ("text"), and what has no counterpart
    ("listed"). Raises `ScenarioError` with the line that cannot be read.
    """
    found: dict[str, Any] = json.loads(_penstock.link_from(list(files)))
    return found


def _entries(listed: str) -> list[Entry]:
    return [
        Entry(**{**entry, "parameters": tuple(Parameter(**parameter) for parameter in entry["parameters"])})
        for entry in json.loads(cited(listed))
    ]


def run(source: Source, seed: int | None = None, pcapng: Path | None = None) -> Result:
    """Runs a scenario to its end; `pcapng` is a file into which the packets of the bottlenecks are written.

    A file that ends in .csv or .parquet gets a table of them. Raises `ScenarioError` with the complete diagnosis when
    the scenario cannot be run, `BrokenInvariant` when an invariant of the scenario does not hold, and `AlgorithmError`
    when an algorithm written in Python fails.
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
    """Runs a scenario to its end, or until `stop` returns true, and then raises `Stopped`.

    `on_progress` is called with the simulated seconds that are done, and those in all. With `watch` the result has the
    tables `tcp_trace` and `queue_trace`.
    """
    if pcapng is not None:
        from penstock import store  # a run without files needs no locks

        with store.receiving(pcapng) as written, _as_csv(written) as file:
            return _simulate(scenario, seed, file, on_progress, stop, watch)
    return _simulate(scenario, seed, None, on_progress, stop, watch)


@contextlib.contextmanager
def _as_csv(file: Path) -> Iterator[Path]:
    """Yields where the simulator writes packets; those for a Parquet file are written as CSV first."""
    if file.suffix != ".parquet":
        yield file
        return
    with TemporaryDirectory(dir=file.parent) as folder:
        rows = Path(folder) / "packets.csv"
        yield rows
        _to_parquet(rows, file)


def _to_parquet(rows: Path, file: Path) -> None:
    """Copies a table from CSV in pieces, however long it is."""
    import pyarrow as pa
    import pyarrow.csv as pc
    import pyarrow.parquet as pq

    words = pa.dictionary(pa.int32(), pa.string())
    options = pc.ConvertOptions(column_types={"queue": words, "fate": words})
    with (
        pc.open_csv(rows, convert_options=options) as pieces,
        pq.ParquetWriter(file, pieces.schema, compression="zstd") as out,
    ):
        for piece in pieces:
            out.write_batch(piece)


def _simulate(
    scenario: Scenario,
    seed: int | None,
    pcapng: Path | None,
    on_progress: Callable[[float, float], None],
    stop: Callable[[], bool],
    watch: Watch | None,
) -> Result:
    wall = time.perf_counter()
    library = scenario.library()
    simulation = _open(scenario, seed, pcapng, library)
    watched = _watch(simulation, watch) if watch else ()
    duration_s = simulation.duration_s
    cpu_s = _advance(simulation, duration_s / _STEPS, stop, lambda now_s: on_progress(now_s, duration_s))
    summary = json.loads(simulation.summary())
    wall_s = time.perf_counter() - wall
    tables = {**simulation.tables(), **simulation.traced()}
    about = (simulation.resolved(), simulation.seed, summary, cpu_s, wall_s)
    return Result(scenario, *about, tables, watched, library.sources)


def solve(scenario: Scenario, seed: int | None = None) -> Result:
    """Solves the equations of a scenario, `--on fluid`, to its end; `events` of the summary are steps.

    The result has the keys and tables of a simulated run, and the table `fluid_state`. Raises `ScenarioError` with the
    line of what the equations cannot say.
    """
    wall, cpu = time.perf_counter(), time.thread_time()
    library = scenario.library()
    resolved, used, summary, tables = _penstock.fluid(scenario.text, scenario.file, seed, library)
    cpu_s, wall_s = time.thread_time() - cpu, time.perf_counter() - wall
    return Result(scenario, resolved, used, json.loads(summary), cpu_s, wall_s, tables, (), library.sources)


@dataclass(frozen=True)
class Before:
    """A run before its first event. Starts, paths and transfers are those of the simulator with the same seed."""

    resolved: str
    seed: int
    summary: dict[str, Any]
    paths: list[list[tuple[int, bool]]]  # of each flow: indexes of links, and whether it crosses them in reverse
    transfers: list[list[tuple[float, int]]]  # of each flow: the wait before a transfer in seconds, and its bytes


def before(scenario: Scenario, seed: int | None = None) -> Before:
    """Returns a run before its first event."""
    run = _open(scenario, seed, None, scenario.library())
    return Before(run.resolved(), run.seed, json.loads(run.summary()), run.paths(), run.transfers_ahead())


def link_changes(scenario: Scenario, seed: int) -> pa.Table | None:
    """Returns the table `link_changes` of a run without its traffic, on which changes of links do not depend.

    Returns `None` if rate, delay and loss of no link change.
    """
    import tomllib

    tree = tomllib.loads(_open(scenario, seed, None, scenario.library()).resolved())
    ends = {key: tree["flows"][0][key] for key in ("from", "to") if key in tree["flows"][0]}
    alone = {**tree, "flows": [{"kind": "cbr", "rate": "1kbit/s", "packet_size": "100B", **ends}]}
    alone |= {"aqm": {"name": "droptail"}} if tree["topology"]["kind"] == "dumbbell" else {}
    alone.pop("cooperation", None)  # it may name nodes
    simulation, _ = _finished(replace(scenario, text=to_toml(alone), classes={}), seed, lambda: False)
    return _arrow(simulation.tables()).get("link_changes")


def summarize(
    scenario: Scenario,
    seed: int,
    *,
    stop: Callable[[], bool] = lambda: False,
    on_progress: Callable[[float], None] | None = None,
    tables: bool = False,
) -> tuple[str, float, dict[str, pa.Table]]:
    """Runs a scenario to its end; returns the JSON text of the summary and the CPU time of the events, in seconds.

    It costs less than `simulate`, for experiments of thousands of short runs. `stop` and `on_progress`, which is told
    the simulated seconds, are called a few times in each run. The tables are returned on request only.
    """
    simulation, cpu_s = _finished(scenario, seed, stop, on_progress)
    return simulation.summary(), cpu_s, _arrow(simulation.tables()) if tables else {}


def measured(
    scenario: Scenario, seed: int, stop: Callable[[], bool] = lambda: False
) -> tuple[dict[str, Any], RawTables, float]:
    """Runs a scenario to its end; returns the summary, the tables as columns of bytes, and the CPU time of the events.

    It is as cheap as `summarize`, for thousands of short runs of which more is asked than the summary says.
    """
    simulation, cpu_s = _finished(scenario, seed, stop)
    return json.loads(simulation.summary()), simulation.tables(), cpu_s


def stepped(scenario: Scenario, seed: int) -> _penstock.Simulation:
    """Opens a run that the caller advances, reads and changes while it goes on."""
    return _open(scenario, seed, None, scenario.library())


def _finished(
    scenario: Scenario, seed: int, stop: Callable[[], bool], on_progress: Callable[[float], None] | None = None
) -> tuple[_penstock.Simulation, float]:
    """Returns a simulation at its end and the CPU time of its events; `stop` is asked a few times in between."""
    simulation = _open(scenario, seed, None, scenario.library())
    return simulation, _advance(simulation, simulation.duration_s / _FEW_STEPS, stop, on_progress)


def _advance(
    simulation: _penstock.Simulation,
    step_s: float,
    stop: Callable[[], bool],
    on_progress: Callable[[float], None] | None,
) -> float:
    """Runs a simulation to its end in steps of simulated time; returns the CPU time of its events.

    Building the network and the summary does not count, since it does not depend on the number of packets. The run
    stays on this thread, whose clock counts the compiled code and no other run.
    """
    cpu_s, finished = 0.0, False
    while not finished:
        if stop():
            raise Stopped
        before = time.thread_time()
        finished = simulation.advance(max(step_s, _LEAST_STEP_S))
        cpu_s += time.thread_time() - before
        if on_progress:
            on_progress(simulation.now_s)
    return cpu_s


def check(scenario: Scenario, shown_as: str = "") -> float:
    """Builds the network of a scenario without running it; returns its simulated time in seconds.

    Raises `ScenarioError` as a run does; messages call its file `shown_as`.
    """
    library = scenario.library()
    return _penstock.Simulation(scenario.text, shown_as or scenario.file, None, None, library).duration_s


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
    *,
    clock_offset: str = "0s",
    draws: str | None = None,
    keep: bytes | None = None,
    layer: Sequence[str] = (),
    cutting: bytes | None = None,
) -> dict[str, Any]:
    """Replays the arrivals of a capture or CSV file through a discipline before a link of `rate`.

    `settings` are parameters of the discipline such as `target=10ms`. Every packet is written to `csv` if it is given.
    `nodes` tells which host of a captured flow's first packet is the node that owns the flow: its "source" or its
    "destination". With "none", and for a CSV file, each flow is a node of its own. `clock_offset` is what the
    discipline's clock shows at the beginning of the trace. `draws` is a file with one number of 64 bits per line, or
    "splitmix64:STATE", from which the discipline draws. `keep` has a byte for each record of the trace, zero for
    those that are left out. `cutting` says how joined frames are split, see `penstock.joined`. `layer` says what the
    link adds to each packet: `overhead=44`, `mpu=84`, `framing=atm`, `link_layer=pppoe-ptm`. Raises `TraceError` if
    the trace is no trace or the draws run out, and `ValueError` if
    another argument is invalid.
    """
    summary: dict[str, Any] = json.loads(
        _penstock.replay(
            str(trace),
            aqm,
            rate,
            limit,
            list(settings),
            seed,
            csv,
            Library(),
            nodes,
            clock_offset,
            draws,
            keep,
            list(layer),
            cutting,
        )
    )
    return summary


def on_wire(layer: Sequence[str], size: int) -> int:
    """Returns what a packet of `size` bytes takes of a link that adds what `layer` says, as `replay` takes it.

    Raises `ValueError` if `layer` is not right.
    """
    return _penstock.on_wire(list(layer), size)


def packets(
    trace: Path, cutting: bytes | None = None
) -> tuple[dict[str, npt.NDArray[Any]], list[dict[str, Any]], dict[str, Any]]:
    """Reads the headers of all packets of a trace.

    Returns columns by name, each with a number for every packet; the flows by number; and what was left out.
    `crates/trace/src/packets.rs` describes the columns; `cutting` says how joined frames are split, see
    `penstock.joined`. Raises `TraceError` if the trace cannot be read.
    """
    import numpy as np

    columns, flows, notes = _penstock.packets(str(trace), cutting)
    arrays = {name: np.frombuffer(data, dtype) for name, (dtype, data) in columns.items()}
    return arrays, json.loads(flows), json.loads(notes)


def replay_state(
    trace: Path, aqm: str, rate: str, limit: str, last: int, at_ns: int, settings: Sequence[str] = (), seed: int = 1
) -> str:
    """Returns the state of a discipline in a replay at a time, for people to read.

    Packet `last` of the trace and all before it have arrived then, and what the link does at that time has happened.
    The other arguments, and what is raised, are those of `replay`.
    """
    return _penstock.replay_state(str(trace), aqm, rate, limit, last, at_ns, list(settings), seed, Library())


def replay_segments(
    steps: Sequence[_penstock.Segment | _penstock.Fact],
    aqm: str,
    rate: str,
    limit: str,
    settings: Sequence[str] = (),
    seed: int = 1,
) -> tuple[list[tuple[int, tuple[str, int, int] | None]], dict[str, Any]]:
    """Plays TCP segments of both directions, in the order of time, through a discipline before a link of `rate`.

    The discipline sees every segment, as at a gateway, and an outbound segment then arrives at its queue. Segments
    are any objects with the attributes of `Segment` in `_penstock.pyi`, which describes facts as well. Returns for
    each segment the window field with which it left, and for an outbound one its fate with time in ns and ECN field;
    and the discipline's own report. Raises `ValueError` if an argument is invalid.
    """
    answers, report = _penstock.replay_segments(steps, aqm, rate, limit, list(settings), seed, Library())
    return answers, json.loads(report or "{}")


def replay_control(script: Path, cc: str, csv: BinaryIO, settings: Sequence[str] = (), *, state: bool = False) -> int:
    """Gives a congestion control events (columns t_us,event,segments,rtt_us) and writes each window to `csv`.

    `settings` are parameters of the control or of its endpoint (`mss` in bytes, `initial_window` and
    `initial_ssthresh` in segments, `min_rto`, `paced`, `c2ml`, `headers` in bytes), each `key=value`. With `state`
    each row has the control's own state. Returns the number of events. Raises `TraceError` when the script cannot be
    read, and `ValueError` for an unknown control or an invalid parameter.
    """
    return _penstock.replay_control(str(script), cc, csv, Library(), list(settings), state)


def replay_rounds(
    cc: str, rtt_us: int, rounds: Sequence[tuple[int, int, str]], settings: Sequence[str] = ()
) -> list[tuple[float, float | None]]:
    """Gives a congestion control rounds of ACKs: begin in microseconds, number of ACKs, event at the end or "-".

    The ACKs of a round are evenly spaced, the last one at its end. `settings` are those of `replay_control`. Returns
    window and threshold (or None) at the end of each round, in segments.
    """
    return _penstock.replay_rounds(cc, rtt_us, list(rounds), Library(), list(settings))


def schedule(
    name: str,
    weights: Sequence[int],
    events: Sequence[tuple[str, int, int]],
    max_packet: int = 1500,
    **settings: Any,
) -> list[int]:
    """Gives events to a packet scheduler, then removes all packets that are left.

    Events are ("arrive", class, size), ("depart", 0, 0), ("progress", 0, bytes sent so far of the packet that departed
    last), ("weight", class, weight) and ("channel", class, 0 or 1).

    Packets are numbered in the order of arrival. Returns their numbers in the order of departure, with -1 for each
    departure from empty queues. Raises `ValueError` for invalid arguments.
    """
    return _penstock.schedule(name, list(weights), list(events), max_packet, json.dumps(settings), Library())[0]


def scheduled(
    name: str, weights: Sequence[int], events: Sequence[tuple[str, int, int]], max_packet: int = 1500
) -> tuple[list[int], str]:
    """Gives events to a scheduler as `schedule` does, but leaves what waits; returns its state at the end as well."""
    return _penstock.schedule(name, list(weights), list(events), max_packet, "{}", Library(), drain=False)


def tempest(flags: Mapping[str, str]) -> dict[str, Any]:
    """Tests a packet scheduler. `flags` are those of `penstock tempest` without dashes, such as `alg="drr"`.

    Raises `ValueError` for an invalid flag, and `RuntimeError` for a scheduler which serves no packet.
    """
    report: dict[str, Any] = json.loads(_penstock.tempest(json.dumps(dict(flags)), Library()))
    return report


def tempest_result(scenario: Scenario, flags: Mapping[str, str]) -> Result:
    """Tests a packet scheduler, and returns the report as the summary of a run, which experiments can store."""
    wall, cpu = time.perf_counter(), time.thread_time()
    report = tempest(flags)
    cpu_s, wall_s = time.thread_time() - cpu, time.perf_counter() - wall
    return Result(scenario, scenario.text, report["seed"], report, cpu_s, wall_s, {})
