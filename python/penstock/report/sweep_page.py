"""The page of a sweep: charts or maps of its measures, all points, and the runs that failed."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.experiments import measures, reading
from penstock.experiments.measures import RUN
from penstock.experiments.model import Experiment
from penstock.experiments.overview import heading, scale
from penstock.experiments.results import Sweep
from penstock.experiments.statistics import LEAST_FOR_MEDIAN, median_level
from penstock.experiments.values import shown, typed
from penstock.mistake import MistakeError
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
    disturbed = [[one.point, str(one.seed), ", ".join(one.by)] for one in sweep.disturbed]
    sections = [
        Section(_TITLES[one.part], [*tidy.parts(one.table), tidy.table(one.table, "All points")])
        for one in _parts(sweep)
    ]
    told = Table("", ("Point", "Seed", "Error"), failures, 3)
    return kit.page(
        sweep.experiment.title or sweep.experiment.called,
        _lead(sweep, seeds),
        [
            *sections,
            Section("Failed runs", [told] if failures else []),
            Section("Disturbed runs", [Table("", ("Point", "Seed", "By"), disturbed, 3)] if disturbed else []),
        ],
        warnings=[
            *([f"{equal[0].upper()}{equal[1:]}."] if (equal := sweep.told_of_chance()) else []),
            *([f"{len(failures)} runs failed; they are listed below."] if failures else []),
            *([f"The machine disturbed {len(disturbed)} runs; they are listed below."] if disturbed else []),
        ],
        command=command(sweep.experiment),
    )


def _lead(sweep: Sweep, seeds: int) -> str:
    """Returns what a sweep has: what varies, and what was given one value."""
    points, one = sweep.points, dict[str, str]()
    for path in sweep.experiment.paths:
        values = {shown(point.settings[path]) for point in points}
        if len(values) == 1:
            one[path] = values.pop()
    several = [path for path in sweep.experiment.paths if path not in one]
    over = f" over {', '.join(several)}" if several else ""
    given = f"; {', '.join(f'{path} = {value}' for path, value in one.items())}" if one and several else ""
    seeded = f"{seeds} seed{'s' * (seeds != 1)} each{', or more' if sweep.experiment.until else ''}"
    return f"{len(points)} point{'s' * (len(points) != 1)}{over}; {seeded}{given}."


def command(experiment: Experiment) -> str:
    """Returns the command that runs the same points again; empty if no command can name them."""
    file = str(experiment.source or experiment.scenario.file)
    try:
        given = reading.load(file)
    except MistakeError:
        return ""
    if experiment.listed or _rules(experiment) != _rules(given):
        return ""
    words = ["penstock", "sweep", file]
    for dimension in experiment.dimensions:
        if dimension not in given.dimensions:
            for place, path in enumerate(dimension.paths):
                words += ["--vary", f"{path}={typed([step[place] for step in dimension.steps])}"]
            words += ["--zip", ",".join(dimension.paths)] if len(dimension.paths) > 1 else []
    if experiment.seeds != given.seeds:
        words += ["--seeds", _seeds(experiment.seeds)]
    if experiment.until and experiment.until != given.until:
        words += ["--until", f"{100 * experiment.until.part:g}%"]
    if experiment.on != "sim":
        words += ["--on", experiment.on]
    return shlex.join(words)


def _rules(experiment: Experiment) -> dict[str, Any]:
    return {name: (dict(one.change), one.rules) for name, one in experiment.situations.items()}


def _seeds(seeds: Sequence[int]) -> str:
    if len(seeds) == 1:
        return f"{seeds[0]}..{seeds[0]}"
    return str(len(seeds)) if tuple(seeds) == tuple(range(1, len(seeds) + 1)) else ",".join(map(str, seeds))


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
    found, spread = [], _spread(rows, by)
    for part in dict.fromkeys(measure.part for measure in chosen):
        of_part = [measure for measure in chosen if measure.part == part]
        members = [_row(row, sweep.experiment.paths, of_part, by) for row in rows if row["part"] == part]
        found.append(_Part(part, _tidy(members, sweep.experiment.paths, of_part, part, spread)))
    return sorted(found, key=lambda one: one.part != RUN)


def _row(row: Mapping[str, Any], paths: Sequence[str], of: Sequence[measures.Measure], by: str) -> dict[str, Any]:
    scales = {measure.name: scale(measure) for measure in of}
    divided = {
        end: None if row[column] is None else row[column] / scales.get(row["measure"], 1.0)
        for end, column in (("value", by), ("low", f"{by}_low"), ("high", f"{by}_high"))
    }
    return {**{path: shown(row[path]) for path in paths}, NAME: row["name"], "measure": row["measure"], **divided}


def _spread(rows: Sequence[Mapping[str, Any]], by: str) -> str:
    """Returns what the interval of a number is, with its level."""
    if by == "mean":
        return "95 % interval of the mean over seeds"
    levels = sorted({median_level(row["seeds"]) for row in rows if row["median_low"] is not None})
    told = " or ".join(f"{level:.1%}" for level in levels)
    return f"interval between order statistics, which covers the median over seeds with {told}"


def _tidy(
    rows: list[dict[str, Any]], paths: Sequence[str], of: Sequence[measures.Measure], part: str, spread: str
) -> Tidy:
    """Returns the table; numbers are axes, and the first key with words gives the lines."""
    several = [path for path in paths if len({row[path] for row in rows}) > 1]
    paths = several or list(paths[:1])
    words = [path for path in paths if any(number_of(row[path]) is None for row in rows)]
    named = len({row[NAME] for row in rows}) > 1 and part != RUN
    group = words[0] if words else NAME if named else ""
    others = [path for path in paths if path != group] or list(paths[:1])
    keys = [*others, *([NAME] if named and group != NAME else [])]
    units = {one.name: _SCALED.get(one.unit, one.unit) for one in of}
    words_of = {one.name: heading(one, "").removesuffix(units[one.name]).strip() for one in of}
    told = [Measure(one.name, words_of[one.name], units[one.name], one.about) for one in of]
    return Tidy(rows, keys, told, group=group, value="value", spread=spread)
