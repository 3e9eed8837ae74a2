"""The table of a sweep for people: a row for each point, with the chosen measures over the seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.experiments.measures import DEFAULT, LINK, Measure, find, shown
from penstock.experiments.results import Sweep
from penstock.experiments.statistics import LEAST_FOR_MEDIAN
from penstock.experiments.values import shown as setting

_SCALES = {"bit/s": ("Mbit/s", 1e6), "B": ("kB", 1e3)}  # units in which numbers are short


@dataclass(frozen=True)
class Overview:
    """A table with its title and a note about its numbers."""

    title: str
    columns: list[str]
    rows: list[list[str]]
    left: int  # columns of text
    note: str


Cells = Mapping[tuple[int, str, str, str], Mapping[str, Any]]


def overview(sweep: Sweep) -> Overview:
    """Returns the table of a sweep."""
    rows = sweep.intervals.to_pylist()
    cells: Cells = {(row["point"], row["part"], row["name"], row["measure"]): row for row in rows}
    seeds = max((row["seeds"] for row in rows), default=1)
    by = "median" if seeds >= LEAST_FOR_MEDIAN and sweep.experiment.until is None else "mean"
    chosen = [
        (measure, name)
        for key in (sweep.experiment.measure or DEFAULT)
        for measure in [find(key)]
        for name in _names(rows, measure)
    ]
    paths = sweep.experiment.paths
    columns = [*paths, *(_heading(measure, name, chosen) for measure, name in chosen)]
    body = []
    for point in sweep.points:
        told = [_cell(cells.get((point.index, m.part, name, m.name)), m, by) for m, name in chosen]
        body.append([*(setting(point.settings[path]) for path in paths), *told])
    return Overview(_title(sweep, seeds), columns, body, len(paths), _note(by, seeds))


def _names(rows: Sequence[Mapping[str, Any]], measure: Measure) -> list[str]:
    """Returns the groups or links that have a measure, in the order of the table."""
    pair = (measure.part, measure.name)
    return list(dict.fromkeys(row["name"] for row in rows if (row["part"], row["measure"]) == pair))


def _heading(measure: Measure, name: str, chosen: Sequence[tuple[Measure, str]]) -> str:
    alone = sum(other == measure for other, _ in chosen) == 1 and measure.part == LINK
    return heading(measure, "" if alone else name)


def heading(measure: Measure, name: str) -> str:
    """Returns the words and the unit of a measure of a group or link."""
    unit = _SCALES.get(measure.unit, (measure.unit, 1))[0]
    words = measure.name.removesuffix("_bps").removesuffix("_ms").removesuffix("_bytes").removesuffix("_s")
    return " ".join(part for part in (name, words.replace("_", " "), unit) if part)


def scale(measure: Measure) -> float:
    """Returns by what a number of a measure is divided for the unit of its heading."""
    return _SCALES.get(measure.unit, ("", 1.0))[1]


def _cell(row: Mapping[str, Any] | None, measure: Measure, by: str) -> str:
    if row is None or row[by] is None:
        return "-"
    unit = scale(measure)
    value, low, high = (None if row[key] is None else row[key] / unit for key in (by, f"{by}_low", f"{by}_high"))
    if low is None or high is None:
        return shown(value, "")
    if by == "mean":
        return f"{value:.4g} ±{(high - low) / 2:.2g}"
    return f"{value:.4g} [{low:.3g}, {high:.3g}]"


def _title(sweep: Sweep, seeds: int) -> str:
    points, most = len(sweep.points), "up to " if sweep.experiment.until else ""
    counted = f"{points} point{'s' * (points != 1)}, {most}{seeds} seed{'s' * (seeds != 1)}"
    return f"{sweep.experiment.title or sweep.experiment.called}: {counted}"


def _note(by: str, seeds: int) -> str:
    if seeds == 1:
        return "one seed says nothing about chance: --seeds 10 gives intervals"
    if by == "median":
        return "median over seeds [95 % interval between order statistics]"
    return "mean over seeds ± half the 95 % interval (Student's t); medians have intervals from six seeds on"
