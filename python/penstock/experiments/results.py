"""The directory of a sweep.

sweep.json          the experiment, the versions, how many runs failed
results.parquet     a row for each run, for each group of its flows, and for each link, with all measures
intervals.parquet   for each point and measure: mean and median over seeds, with their 95 % intervals
timing.json         CPU time and wall time, which differ from time to time
runs/               what each run returned, in the order of completion; a sweep that goes on, or grows, begins here

The first three have the same bytes whenever the same runs were made, however often the sweep was interrupted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock import chance, columns, provenance, rundir, store, worlds
from penstock.engine import frame_of
from penstock.experiments import delays as sketches
from penstock.experiments import reading
from penstock.experiments.measures import RUN, find
from penstock.experiments.model import Experiment, Point
from penstock.mistake import MistakeError
from penstock.suggest import did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = 1
SWEEP, RESULTS, INTERVALS, TIMING, RUNS = "sweep.json", "results.parquet", "intervals.parquet", "timing.json", "runs"
DELAYS = "delays.parquet"
FILES = {"results": RESULTS, "intervals": INTERVALS, "delays": DELAYS}
FRAMES = tuple(FILES)
_RUN_OF = ("point", "seed", "same_as")


@dataclass(frozen=True)
class Failure:
    """A run that failed."""

    point: str
    seed: int
    error: str


@dataclass(frozen=True)
class Disturbed:
    """A run in real time that the machine disturbed, and how. Its numbers count, and may be those of the machine."""

    point: str
    seed: int
    by: tuple[str, ...]


@dataclass(frozen=True)
class Sweep:
    """The results of an experiment, all of whose runs are finished."""

    path: Path
    experiment: Experiment
    failures: tuple[Failure, ...] = ()
    disturbed: tuple[Disturbed, ...] = ()

    @cached_property
    def points(self) -> tuple[Point, ...]:
        """The points, in the order of their numbers."""
        return tuple(self.experiment.points())

    @cached_property
    def results(self) -> pa.Table:
        """A row for each run, for each group of its flows, and for each link."""
        return _table(self.path / RESULTS)

    @cached_property
    def intervals(self) -> pa.Table:
        """For each point and measure: mean and median over seeds, with their intervals."""
        return _table(self.path / INTERVALS)

    @cached_property
    def delays(self) -> pa.Table:
        """The distributions of delays, added over seeds; only of a sweep that was asked to keep them."""
        if not self.experiment.delays:
            raise MistakeError(f"{self.path}: keeps no distributions; run the sweep with --delays, or delays=True")
        return _table(self.path / DELAYS)

    def distributions(self) -> list[sketches.Drawn]:
        """Returns the distributions of delays of each point in the form that figures take."""
        found = list(sketches.distributions(self.delays))
        return [
            sketches.as_run(point.label or self.experiment.called, [one for one in found if one.point == point.index])
            for point in self.points
        ]

    def quantiles(self, share: float) -> pa.Table:
        """Returns the quantile of all delays of all seeds for each point, queue and kind of flows, and its error."""
        import pyarrow as pa

        labels = [point.label for point in self.points]
        rows = [
            {
                "point": one.point,
                "settings": labels[one.point],
                "part": one.part,
                "name": one.name,
                "samples": sum(one.counts),
                "ms": one.quantile(share),
                "error": sketches.ERROR[one.part],
            }
            for one in sketches.distributions(self.delays)
        ]
        return pa.Table.from_pylist(rows)

    def frame(self, name: str = "results") -> Any:
        """Returns "results", "intervals" or "delays" as a frame of pandas."""
        if name not in FRAMES:
            raise MistakeError(f"there is no {name!r}; {did_you_mean(name, FRAMES)}there is {', '.join(FRAMES)}")
        return frame_of(getattr(self, name))

    def values(self, measure: str) -> dict[str, dict[int, dict[int, float | None]]]:
        """Returns a measure by name of the group or link ("" for the run), by point and by seed."""
        found: dict[str, dict[int, dict[int, float | None]]] = {}
        wanted = find(measure)
        columns = (self.results[name].to_pylist() for name in ("part", "name", "point", "seed", wanted.name))
        for part, name, point, seed, value in zip(*columns, strict=True):
            if part == wanted.part:
                found.setdefault(name, {}).setdefault(point, {})[seed] = value
        return found

    @cached_property
    def _same(self) -> dict[int, dict[int, int | None]]:
        """For each point and seed, the first seed with an equal run; older tables do not have it."""
        if "same_as" not in self.results.column_names:
            return {}
        found: dict[int, dict[int, int | None]] = {}
        for point, seed, same in zip(*(self.results[name].to_pylist() for name in _RUN_OF), strict=True):
            found.setdefault(point, {})[seed] = same
        return found

    def samples(self, point: int, seeds: Iterable[int]) -> int:
        """Returns the number of different runs of a point among some of its seeds; one that failed is like no other."""
        same = self._same.get(point, {})
        return chance.different(seed if (first := same.get(seed)) is None else first for seed in seeds)

    @property
    def without_chance(self) -> list[Point]:
        """The points whose seeds, of which there are several, have one run."""
        found = []
        for point in self.points:
            seeds = self._same.get(point.index, {})
            if len(seeds) > 1 and None not in seeds.values() and self.samples(point.index, seeds) == 1:
                found.append(point)
        return found

    def told_of_chance(self) -> str:
        """Says, if it is so, that seeds had no influence, and which key would give them one; else nothing."""
        found = self.without_chance
        if not found:
            return ""
        seeds = len(self._same[found[0].index])
        of = "" if len(found) == len(self.points) else f"in {len(found)} of {len(self.points)} points"
        return chance.none_told(seeds, of, self.experiment.on)

    def to_json(self) -> dict[str, Any]:
        """Returns what `sweep --json` prints."""
        return {
            "path": str(self.path),
            **described(self.experiment),
            "failures": [vars(one) for one in self.failures],
            "disturbed": [vars(one) for one in self.disturbed],
            **({"chance": told} if (told := self.told_of_chance()) else {}),
            "points": [{"point": one.index, "settings": dict(one.settings)} for one in self.points],
            "intervals": [
                {key: value for key, value in row.items() if key not in self.experiment.paths}
                for row in self.intervals.to_pylist()
            ],
        }


def described(experiment: Experiment) -> dict[str, Any]:
    """Returns the experiment without the text of its scenario."""
    found = experiment.described()
    del found["listed"]
    return {**found, "scenario": found["scenario"]["file"]}


def default_path(experiment: Experiment, root: Path = Path("runs/sweeps")) -> Path:
    """Returns `runs/sweeps/NAME-HASH`: the same for the same scenario and keys, so that a sweep grows in its place."""
    name = store.file_name(experiment.called) or "sweep"
    world = [] if experiment.on == worlds.SIM else [experiment.on]
    made_of = store.dump([experiment.scenario.text, list(experiment.paths), *world])
    return root / f"{name}-{store.sha256(made_of.encode())[:8]}"


def write(
    path: Path,
    experiment: Experiment,
    tables: Mapping[str, pa.Table],
    timing: Any,
    failures: Iterable[Failure] = (),
    disturbed: Iterable[Disturbed] = (),
) -> Sweep:
    """Stores the tables of a sweep; all of them are replaced, or none."""
    made = Sweep(path, experiment, tuple(failures), tuple(disturbed))
    data = {FILES[name]: rundir.table_bytes(name, table) for name, table in tables.items()}
    sweep = {
        "format": FORMAT,
        "experiment": experiment.described(),
        "runs": tables["results"].num_rows and _runs(tables["results"]),
        "failures": [vars(one) for one in made.failures],
        **({"disturbed": [vars(one) for one in made.disturbed]} if made.disturbed else {}),
        "versions": provenance.versions(),
        "files": {name: store.sha256(content) for name, content in data.items()},
    }
    named: dict[str, store.Content] = {SWEEP: store.dump(sweep), **data, TIMING: store.dump(timing)}
    store.together({path / name: content for name, content in named.items()})
    return made


def _runs(results: pa.Table) -> int:
    import pyarrow.compute as pc

    return int(pc.sum(pc.equal(results["part"], RUN)).as_py())


def is_sweep(path: Path) -> bool:
    """Returns true for the directory of a sweep that was finished once."""
    return (path / SWEEP).is_file()


def load(path: Path) -> Sweep:
    """Reads the directory of a sweep; raises `StoreError` if it is none, or if its files are not those of the sweep."""
    store.finish(path / SWEEP)
    file = path / SWEEP
    stored = store.read_json(file)
    with store.as_written(file):
        store.newer(file, stored["format"], FORMAT)
        for name, hashed in stored["files"].items():
            if store.sha256(store.read(path / name)) != hashed:
                raise store.StoreError(
                    f"{path / name}: was changed after the sweep: its hash (SHA-256) is not that in {SWEEP}"
                )
        failures = tuple(Failure(**one) for one in stored["failures"])
        disturbed = tuple(Disturbed(**{**one, "by": tuple(one["by"])}) for one in stored.get("disturbed", ()))
        return Sweep(path, reading.from_json(stored["experiment"]), failures, disturbed)


def _table(path: Path) -> pa.Table:
    with store.as_written(path):
        return columns.from_parquet(store.read(path))
