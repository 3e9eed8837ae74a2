"""The table of a sweep for people: a row for each point, with the chosen measures over the seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.experiments.measures import DEFAULT, LINK, Measure, find
from penstock.experiments.results import Sweep
from penstock.experiments.statistics import LEAST_FOR_MEDIAN, Interval, median_level, with_ends, with_half
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
    known = any(row[f"{by}_low"] is not None for row in rows)
    note = [*([_note(by, seeds, sweep)] if known or seeds == 1 else []), sweep.told_of_chance()]
    return Overview(_title(sweep, seeds), columns, body, len(paths), "\n".join(filter(None, note)))


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
    value, low, high = (math.nan if row[key] is None else row[key] for key in (by, f"{by}_low", f"{by}_high"))
    told = with_half if by == "mean" else with_ends
    return told(Interval(value, low, high), scale(measure))


def _title(sweep: Sweep, seeds: int) -> str:
    points, most = len(sweep.points), "up to " if sweep.experiment.until else ""
    counted = f"{points} point{'s' * (points != 1)}, {most}{seeds} seed{'s' * (seeds != 1)}"
    return f"{sweep.experiment.title or sweep.experiment.called}: {counted}"


def _note(by: str, seeds: int, sweep: Sweep) -> str:
    if seeds == 1:
        return "one seed says nothing about chance: --seeds 10 gives intervals"
    if by == "median":
        counts = sorted({row["seeds"] for row in sweep.intervals.to_pylist() if row["median_low"] is not None})
        levels = ", ".join(f"{median_level(count):.1%}" for count in counts)
        return f"median over seeds [interval between order statistics, which covers the median with {levels}]"
    rule = "Stein's rule" if sweep.experiment.until else "Student's t"
    return f"mean over seeds ± half the 95 % interval ({rule}); medians have intervals from six runs on"
