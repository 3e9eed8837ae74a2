"""The page of a sweep: charts or maps of its measures, all points, and the runs that failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.experiments import measures
from penstock.experiments.measures import RUN
from penstock.experiments.overview import heading, scale
from penstock.experiments.results import Sweep
from penstock.experiments.statistics import LEAST_FOR_MEDIAN
from penstock.experiments.values import shown
from penstock.report import kit, tidy
from penstock.report.kit.model import Section, Table
from penstock.report.tidy import Measure, Tidy, number_of

_SCALED = {"bit/s": "Mbit/s", "B": "kB"}  # units of numbers divided by `scale`
_TITLES = {"run": "Results", "flows": "Groups of flows", "link": "Links"}
NAME = "group or link"


def page(sweep: Sweep) -> str:
    """Returns the page."""
    seeds = len(sweep.experiment.seeds)
    failures = [[one.point, str(one.seed), one.error] for one in sweep.failures]
    sections = [
        Section(_TITLES[one.part], [*tidy.parts(one.table), tidy.table(one.table, "All points")])
        for one in _parts(sweep)
    ]
    told = Table("", ("Point", "Seed", "Error"), failures, 3)
    return kit.page(
        sweep.experiment.title or sweep.experiment.called,
        f"{len(sweep.points)} points over {', '.join(sweep.experiment.paths)}; {seeds} seeds each, or more.",
        [*sections, Section("Failed runs", [told] if failures else [])],
        warnings=[f"{len(failures)} runs failed; they are listed below."] if failures else [],
        command=f"penstock sweep {sweep.experiment.source or sweep.experiment.scenario.file}",
    )


class _Part:
    """What is measured of runs, of groups of flows, or of links."""

    def __init__(self, part: str, table: Tidy) -> None:
        self.part, self.table = part, table


def _parts(sweep: Sweep) -> list[_Part]:
    """Returns a tidy table for each part of which something is measured, that of runs first."""
    chosen = [measures.find(key) for key in (sweep.experiment.measure or measures.DEFAULT)]
    rows = [dict(row) for row in sweep.intervals.to_pylist()]
    many = max((row["seeds"] for row in rows), default=1) >= LEAST_FOR_MEDIAN and sweep.experiment.until is None
    by = "median" if many else "mean"
    found = []
    for part in dict.fromkeys(measure.part for measure in chosen):
        of_part = [measure for measure in chosen if measure.part == part]
        members = [_row(row, sweep.experiment.paths, of_part, by) for row in rows if row["part"] == part]
        found.append(_Part(part, _tidy(members, sweep.experiment.paths, of_part, part, by)))
    return sorted(found, key=lambda one: one.part != RUN)


def _row(row: Mapping[str, Any], paths: Sequence[str], of: Sequence[measures.Measure], by: str) -> dict[str, Any]:
    scales = {measure.name: scale(measure) for measure in of}
    divided = {
        end: None if row[column] is None else row[column] / scales.get(row["measure"], 1.0)
        for end, column in (("value", by), ("low", f"{by}_low"), ("high", f"{by}_high"))
    }
    return {**{path: shown(row[path]) for path in paths}, NAME: row["name"], "measure": row["measure"], **divided}


def _tidy(rows: list[dict[str, Any]], paths: Sequence[str], of: Sequence[measures.Measure], part: str, by: str) -> Tidy:
    """Returns the table; numbers are axes, and the first key with words gives the lines."""
    words = [path for path in paths if any(number_of(row[path]) is None for row in rows)]
    named = len({row[NAME] for row in rows}) > 1 and part != RUN
    group = words[0] if words else NAME if named else ""
    others = [path for path in paths if path != group] or list(paths[:1])
    keys = [*others, *([NAME] if named and group != NAME else [])]
    units = {one.name: _SCALED.get(one.unit, one.unit) for one in of}
    words_of = {one.name: heading(one, "").removesuffix(units[one.name]).strip() for one in of}
    told = [Measure(one.name, words_of[one.name], units[one.name], one.about) for one in of]
    return Tidy(rows, keys, told, group=group, value="value", spread=f"95 % interval of the {by} over seeds")
