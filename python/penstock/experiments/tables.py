"""Makes the tables of a sweep from what its runs returned."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penstock import chance
from penstock.experiments import statistics, until
from penstock.experiments.measures import BY_KEY, BY_PART, COLUMNS, PARTS, RUN
from penstock.experiments.model import Experiment, Point
from penstock.experiments.results import Disturbed, Failure
from penstock.experiments.rows import rows
from penstock.experiments.values import shown
from penstock.experiments.work import Answer

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

RESERVED = (
    "point",
    "seed",
    "part",
    "name",
    "error",
    "measure",
    "ms",
    "count",
    "same_as",
)  # columns of tables, which no key can be called


class Collector:
    """Collects the numbers of runs by columns, which take 8 bytes for each number, and not a list of objects."""

    def __init__(self, points: Sequence[Point]) -> None:
        self._points = points
        self._numbers = {part: [array("d") for _ in BY_PART[part]] for part in PARTS}
        self._about: dict[str, list[tuple[int, int, int, int, str]]] = {part: [] for part in PARTS}
        self.failures: list[tuple[int, int, str]] = []  # point, seed, error
        self._disturbed: list[tuple[int, int, tuple[str, ...]]] = []  # point, seed, causes
        self._marks: dict[tuple[int, int], tuple[int, bytes]] = {}  # by point and place of the seed: seed, mark

    def add(self, point: int, place: int, seed: int, answer: Answer) -> None:
        """Adds a run; `place` is that of its seed among the seeds of the point."""
        if answer.summary is None:
            self.failures.append((point, seed, answer.error))
            nothing: list[float | None] = [None] * len(BY_PART[RUN])
            self._row(RUN, (point, place, 0, seed, ""), nothing)
            return
        if answer.disturbed:
            self._disturbed.append((point, seed, answer.disturbed))
        self._marks[point, place] = seed, chance.mark(answer.summary)
        for order, row in enumerate(rows(answer.summary, self._points[point].facts.groups)):
            self._row(row.part, (point, place, order, seed, row.name), row.values)

    def _row(self, part: str, about: tuple[int, int, int, int, str], values: list[float | None]) -> None:
        self._about[part].append(about)
        for column, value in zip(self._numbers[part], values, strict=True):
            column.append(float("nan") if value is None else value)

    def table(self, experiment: Experiment) -> pa.Table:
        """Returns all rows, in the order of points, seeds and parts."""
        import numpy as np
        import pyarrow as pa

        parts, order = [], []
        for part in PARTS:
            about = self._about[part]
            columns: dict[str, Any] = {
                "point": pa.array([one[0] for one in about], pa.int32()),
                "seed": pa.array([one[3] for one in about], pa.uint64()),
                "part": pa.array([part] * len(about), pa.string()),
                "name": pa.array([one[4] for one in about], pa.string()),
            }
            for measure, numbers in zip(BY_PART[part], self._numbers[part], strict=True):
                columns[measure.name] = pa.array(np.frombuffer(numbers, np.float64), from_pandas=True)
            parts.append(pa.table(columns))
            order += [one[:3] for one in about]
        joined = pa.concat_tables(parts, promote_options="default").select(["point", "seed", "part", "name", *COLUMNS])
        keys = np.array(order, dtype=np.int64).reshape(-1, 3)
        joined = joined.take(np.lexsort((keys[:, 2], keys[:, 1], keys[:, 0])))
        table = _with_settings(joined, experiment, self._points, self._errors(joined))
        return table.append_column("same_as", self._same(joined)).combine_chunks()

    def _same(self, joined: pa.Table) -> pa.Array:
        """Returns for each row the first seed with an equal run, which is its own if no earlier one has; null for a run
        that failed.
        """
        import pyarrow as pa

        first: dict[tuple[int, bytes], int] = {}
        same: dict[tuple[int, int], int] = {}
        for (point, _), (seed, mark) in sorted(self._marks.items()):
            same[point, seed] = first.setdefault((point, mark), seed)
        pairs = zip(joined["point"].to_pylist(), joined["seed"].to_pylist(), strict=True)
        return pa.array([same.get(pair) for pair in pairs], pa.uint64())

    def _errors(self, joined: pa.Table) -> pa.Array:
        import pyarrow as pa

        known = {(point, seed): error for point, seed, error in self.failures}
        if not known:
            return pa.nulls(joined.num_rows, pa.string())
        pairs = zip(joined["point"].to_pylist(), joined["seed"].to_pylist(), strict=True)
        return pa.array([known.get(pair) for pair in pairs], pa.string())

    def failed(self) -> list[Failure]:
        """Returns the runs that failed, in the order of points and seeds."""
        return [Failure(self._points[point].label, seed, error) for point, seed, error in sorted(self.failures)]

    def disturbed(self) -> list[Disturbed]:
        """Returns the runs which the machine disturbed, in the order of points and seeds."""
        return [Disturbed(self._points[point].label, seed, by) for point, seed, by in sorted(self._disturbed)]


def _with_settings(table: pa.Table, experiment: Experiment, points: Sequence[Point], errors: pa.Array) -> pa.Table:
    """Returns the table with the columns of `with_points`, and one for errors."""
    table = with_points(table, experiment, points)
    return table.add_column(4 + len(experiment.paths), "error", errors).combine_chunks()


def with_points(table: pa.Table, experiment: Experiment, points: Sequence[Point]) -> pa.Table:
    """Returns the table with a column for each key that varies, behind the number of the point."""
    for place, path in enumerate(experiment.paths):
        column = _settings([point.settings[path] for point in points]).take(table["point"].combine_chunks())
        table = table.add_column(1 + place, path, column)
    return table.combine_chunks()


def _settings(values: Iterable[Any]) -> pa.Array:
    """Returns a column; a key that does not vary in the setting of a point is null."""
    import pyarrow as pa

    listed = list(values)
    given = [value for value in listed if value is not None]
    if all(isinstance(value, bool) for value in given):
        return pa.array(listed, pa.bool_())
    if all(isinstance(value, int) and not isinstance(value, bool) for value in given):
        return pa.array(listed, pa.int64())
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in given):
        return pa.array([None if value is None else float(value) for value in listed], pa.float64())
    return pa.array([None if value is None else shown(value) for value in listed], pa.string())


def intervals(results: pa.Table, experiment: Experiment, points: Sequence[Point]) -> pa.Table:
    """Returns mean and median over seeds for each point, part, name and measure, with their intervals.

    `samples` is the number of different runs among the seeds of a point, of which one has no interval.
    """
    import numpy as np
    import pyarrow as pa

    cells = _cells(results)
    same = results["same_as"].to_pylist()
    samples = {cell: chance.different(same[row] for row in rows_) for cell, rows_ in cells.items()}
    columns: dict[str, list[Any]] = {}
    for count, runs in sorted({(len(rows_), samples[cell]) for cell, rows_ in cells.items()}):
        chosen = {cell: rows_ for cell, rows_ in cells.items() if (len(rows_), samples[cell]) == (count, runs)}
        for part in PARTS:
            of_part = [(cell, rows_) for cell, rows_ in chosen.items() if cell[1] == part]
            if of_part:
                where = np.array([rows_ for _, rows_ in of_part])
                _of_part(columns, results, part, [cell for cell, _ in of_part], where, runs)
    if not columns:
        return pa.table({})
    table = pa.table({name: pa.concat_arrays(parts) for name, parts in columns.items()})
    table = table.take(_order(table, list(cells)))
    return with_points(_stein(table, results, experiment, cells), experiment, points)


def _cells(results: pa.Table) -> dict[tuple[int, str, str], list[int]]:
    """Returns the rows of each point, part and name; those of a point that failed somewhere have no other part."""
    found: dict[tuple[int, str, str], list[int]] = {}
    columns = (results[name].to_pylist() for name in ("point", "part", "name"))
    for row, cell in enumerate(zip(*columns, strict=True)):
        found.setdefault(cell, []).append(row)
    return found


def _of_part(
    columns: dict[str, list[Any]], results: pa.Table, part: str, cells: list[Any], where: np.ndarray, samples: int
) -> None:
    import numpy as np
    import pyarrow as pa

    for measure in BY_PART[part]:
        values = results[measure.name].to_numpy()[where]
        missing = np.isnan(values).sum(axis=1)
        having = missing < values.shape[1]
        if not having.any():
            continue
        kept = [cell for cell, has in zip(cells, having, strict=True) if has]
        made: dict[str, Any] = {
            "point": pa.array([cell[0] for cell in kept], pa.int32()),
            "part": pa.array([part] * len(kept), pa.string()),
            "name": pa.array([cell[2] for cell in kept], pa.string()),
            "measure": pa.array([measure.name] * len(kept), pa.string()),
            "unit": pa.array([measure.unit] * len(kept), pa.string()),
            "seeds": pa.array([values.shape[1]] * len(kept), pa.int32()),
            "samples": pa.array([samples] * len(kept), pa.int32()),
            "missing": pa.array(missing[having], pa.int32()),
            "rule": pa.array(["student"] * len(kept), pa.string()),
        }
        found = statistics.of_rows(values[having], samples)
        made |= {name: pa.array(column, pa.float64(), from_pandas=True) for name, column in found.items()}
        for name, column in made.items():
            columns.setdefault(name, []).append(column)


def _order(table: pa.Table, cells: list[tuple[int, str, str]]) -> Any:
    import numpy as np

    cell_rank = {cell: rank for rank, cell in enumerate(cells)}
    measure_rank = {name: rank for rank, name in enumerate(COLUMNS)}
    listed = [table[name].to_pylist() for name in ("point", "part", "name")]
    first = [cell_rank[cell] for cell in zip(*listed, strict=True)]
    return np.lexsort(([measure_rank[name] for name in table["measure"].to_pylist()], first))


def _stein(table: pa.Table, results: pa.Table, experiment: Experiment, cells: Mapping[Any, list[int]]) -> pa.Table:
    """Gives the measure that decided the number of seeds the interval of its rule (`until`)."""
    rule = experiment.until
    if rule is None:
        return table
    import pyarrow as pa

    measure = BY_KEY[rule.measure]
    first = len(until.first_stage(rule, experiment.seeds))
    values, same = results[measure.name].to_numpy(), results["same_as"].to_pylist()
    listed = [table[name].to_pylist() for name in ("point", "part", "name", "measure", "rule", "mean_low", "mean_high")]
    changed: list[tuple[Any, Any, Any]] = []
    for point, part, name, of, by, low, high in zip(*listed, strict=True):
        own = [float(values[row]) for row in cells[point, part, name]]
        if (part, of) == (measure.part, measure.name) and len(own) > 1 and not any(value != value for value in own):
            found = until.interval(own, first, chance.different(same[row] for row in cells[point, part, name][:first]))
            low, high = (found.low, found.high) if found.known else (None, None)
            by = "stein"
        changed.append((by, low, high))
    for place, name in enumerate(("rule", "mean_low", "mean_high")):
        kind = pa.string() if name == "rule" else pa.float64()
        table = table.set_column(
            table.schema.get_field_index(name), name, pa.array([row[place] for row in changed], kind)
        )
    return table
