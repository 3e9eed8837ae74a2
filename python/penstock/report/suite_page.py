"""The page of a suite: verdicts, all numbers beside each other, delay over goodput as ellipses, what is not judged."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from penstock import worlds
from penstock.report import kit
from penstock.report.kit.model import Axis, Cell, Chart, Line, Section, Table, Tile
from penstock.suites import results
from penstock.suites.model import MEASURED, NOT_HERE, NOT_JUDGED

_NAMED = 8  # cases that a sentence names
_POINTS = 48  # of an outline from left to right
_CHIPS = ("holds", "fails")
Found = Mapping[str, Any]


def page(found: Found) -> str:
    """Returns the page of what a suite found."""
    suite = results.suite(found["suite"])
    names = [*found["algorithms"], *found["beside"]]
    labels = {name: suite.labels.get(name, name) for name in names}
    words = " ".join(f"'{name}'" if " " in name else name for name in found["algorithms"])
    quick = " --quick" if found["quick"] else ""
    on = found.get("on", worlds.SIM)  # what has none was simulated
    world = "" if on == worlds.SIM else f" --on {on}"
    form = f"{', quick form' if quick else ''}{',' * bool(world)}{world}"
    sections = [
        Section("Verdicts", [_counts(found, labels, suite.words)], found["note"]),
        *_by_section(found, names, labels, suite.words),
        Section("Delay and goodput", [*_charts(found, names, labels)], _READ),
        Section("Not judged", [_unjudged(found)], "Parts of the document that this suite cannot judge, and why."),
    ]
    return kit.page(
        suite.title,
        f"{', '.join(found['algorithms'])} beside {', '.join(labels[name] for name in found['beside'])}; "
        f"{found['seeds']} seeds{form}. A value is the median over the seeds.",
        [one for one in sections if one.parts],
        tiles=_tiles(found, suite.words),
        warnings=[f"{told}."] if (told := one_run(found.get("one_run", ()))) else [],
        command=f"penstock suite {suite.name} {words}{quick}{world}",
        versions=found["versions"],
    )


def one_run(found: Sequence[Found]) -> str:
    """Says in which cases the seeds are one run; nothing if there are none."""
    cases = list(dict.fromkeys(one["case"] for one in found))
    more = f" and {len(cases) - _NAMED} more" if len(cases) > _NAMED else ""
    told = f"Nothing is left to chance in {', '.join(cases[:_NAMED])}{more}: there all seeds are one run"
    return told if cases else ""


_READ = (
    "As RFC 7928 (section 2.7) draws them: the mark is the median of the runs, the outline one standard deviation of "
    "the most likely Gaussian of their means; its slope is the covariance. Up and to the left is better."
)


def _tiles(found: Found, words: Sequence[str]) -> list[Tile]:
    tiles = []
    for name in found["algorithms"][:3]:
        counted = found["counted"][name]
        judged = sum(counted.get(word, 0) for word in words)
        if judged:
            tiles.append(Tile(f"{counted.get(words[0], 0)} of {judged}", f"{words[0]}: {name}"))
    return [*tiles, Tile(str(len(found["not_judged"])), "parts of the document not judged")]


def _counts(found: Found, labels: Mapping[str, str], words: Sequence[str]) -> Table:
    verdicts = [*words, MEASURED, NOT_JUDGED, *[NOT_HERE] * any(NOT_HERE in one for one in found["counted"].values())]
    rows = [
        [labels[name], *(str(found["counted"][name].get(word, 0)) for word in verdicts)] for name in found["algorithms"]
    ]
    return Table("", ["Algorithm", *verdicts], rows)


def _by_section(found: Found, names: Sequence[str], labels: Mapping[str, str], words: Sequence[str]) -> list[Section]:
    """Returns a section of the page for each chapter of the document."""
    chapters: dict[str, list[Found]] = {}
    for finding in found["findings"]:
        chapters.setdefault(finding["section"].split(".")[0], []).append(finding)
    made = []
    for chapter, members in chapters.items():
        columns = ["Section", "What", "Limit, and why", *(labels[name] for name in names)]
        rows = [_row(finding, names, words) for finding in members]
        made.append(Section(f"Section {chapter}", [Table("", columns, rows, 3, most=100)]))
    return made


def _row(finding: Found, names: Sequence[str], words: Sequence[str]) -> list[Cell | str]:
    unit = f" ({finding['unit']})" if finding["unit"] else ""
    cells = [_cell(finding["algorithms"].get(name), words) for name in names]
    first = next((told for told in finding["algorithms"].values() if told["limit"] is not None), None)
    limit = f"{finding['sense']} {number(first['limit'])}. " if first else ""
    return [
        finding["section"],
        Cell(finding["title"] + unit, wide=True),
        Cell(limit + finding["about"], wide=True),
        *cells,
    ]


def _cell(told: Found | None, words: Sequence[str]) -> Cell:
    if told is None or told["value"] is None:
        return Cell(told["verdict"], small=told["reason"]) if told else Cell(NOT_JUDGED)
    chip = _CHIPS[words.index(told["verdict"])] if told["verdict"] in words else ""
    return Cell(number(told["value"]), told["value"], small=told["verdict"], chip=chip)


def number(value: float) -> str:
    """Returns a number as tables show it."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _charts(found: Found, names: Sequence[str], labels: Mapping[str, str]) -> list[Chart]:
    cases: dict[str, list[Found]] = {}
    for one in found["ellipses"]:
        cases.setdefault(one["case"], []).append(one)
    titles = {one["case"]: one["title"] for one in found["ellipses"]}
    return [_chart(titles[case], members, names, labels) for case, members in cases.items()]


def _chart(title: str, members: Sequence[Found], names: Sequence[str], labels: Mapping[str, str]) -> Chart:
    lines = []
    for one in members:
        colour = names.index(one["algorithm"])
        label = labels[one["algorithm"]]
        outline = ellipse(one["points"])
        if outline:
            xs, low, high = outline
            middle = [(a + b) / 2 for a, b in zip(low, high, strict=True)]
            lines.append(Line(f"{label}: deviation", middle, colour, xs, low, high, style="band"))
        lines.append(Line(label, [one["median"][1]], colour, [one["median"][0]], style="points"))
    x = Axis("mean queueing delay", "ms", low=0.0, zero=True)
    return Chart(title[:1].upper() + title[1:], "", x, Axis("goodput", "Mbit/s"), lines)


def ellipse(points: Sequence[Sequence[float]]) -> tuple[list[float], list[float], list[float]] | None:
    """Returns the outline at one standard deviation: places from left to right, and its lower and upper ends there.

    `None` for fewer than two points, or if all have the same delay.
    """
    count = len(points)
    mx, my = (math.fsum(p[axis] for p in points) / max(1, count) for axis in (0, 1))
    xx, xy, yy = (
        math.fsum((p[a] - (mx, my)[a]) * (p[b] - (mx, my)[b]) for p in points) / max(1, count)
        for a, b in ((0, 0), (0, 1), (1, 1))
    )
    if count < 2 or xx <= 1e-12:
        return None
    rest = max(0.0, yy - xy * xy / xx)  # variance of the goodput at a given delay
    turns = [-math.cos(math.pi * n / (_POINTS - 1)) for n in range(_POINTS)]
    xs = [mx + turn * math.sqrt(xx) for turn in turns]
    middle = [my + xy / xx * (x - mx) for x in xs]
    half = [math.sqrt(max(0.0, rest * (1 - turn * turn))) for turn in turns]
    low, high = ([m + sign * h for m, h in zip(middle, half, strict=True)] for sign in (-1, 1))
    return xs, low, high


def _unjudged(found: Found) -> Table:
    rows = [[one["section"], Cell(one["title"], wide=True), Cell(one["why"], wide=True)] for one in found["not_judged"]]
    return Table("", ("Section", "What", "Why"), rows, 3)
