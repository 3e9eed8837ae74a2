"""The page of a search: what broke, when, drawn as windows and queue over time, what mends it, and the map of ways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from penstock import rundir, store
from penstock.adversary import breaking, shrink
from penstock.report import groups, kit, network, run_charts
from penstock.report.kit.model import Axis, Cell, Chart, Heat, Line, Section, Table, Tile
from penstock.scenario import tree

_NOTHING = {"value": None, "keys": 0, "breaks_with": 0, "of_seeds": 0}
_WORD = {True: "breaks", False: "holds"}


def page(path: Path) -> str:
    """Returns the page of a directory that `verify break` wrote."""
    found, timing = store.read_json(path / breaking.FOUND), store.read_json(path / breaking.TIMING)
    with store.as_written(path / breaking.FOUND):
        store.newer(path / breaking.FOUND, found["format"], breaking.FORMAT)
        findings = found["findings"]
        broken = [one for one in findings if one["broken"]]
        sections = [
            Section("Goals", [_goals(findings)]),
            *(_breach(path, one, place) for one in broken for place in range(len(one["breaches"]))),
            Section("Ways to break", [*_map(findings)], lead=_MAP),
            Section("Search", [_curves(findings)]),
        ]
        return kit.page(
            f"{found['algorithm']}: the worst that was found",
            f"{found['trials']:,} scenarios, seed {found['seed']}; {len(broken)} of {len(findings)} goals break.",
            sections,
            tiles=_tiles(found, timing, broken),
            warnings=["The search was interrupted; the same command goes on."] if found["interrupted"] else [],
            command=f"penstock verify break {found['algorithm']!r} --seed {found['seed']} --trials {found['trials']}",
            versions=found["versions"],
        )


_MAP = (
    "The margin of the worst scenario with each part, with one seed: above zero it breaks, and the larger the worse. A "
    "way that is not the worst one stays visible here."
)


def _tiles(found: Mapping[str, Any], timing: Mapping[str, Any], broken: Sequence[Any]) -> list[Tile]:
    return [
        Tile(f"{len(broken)} of {len(found['findings'])}", "goals break"),
        Tile(f"{found['trials']:,}", "trials"),
        Tile(f"{timing['cpu_s']:.1f} s", "CPU time"),
    ]


def _goals(findings: Sequence[Mapping[str, Any]]) -> Table:
    rows = []
    for one in findings:
        worst = one["breaches"][0] if one["breaches"] else one["worst"] or _NOTHING
        rows.append(
            [
                one["goal"],
                one["sentence"],
                Cell(_WORD[one["broken"]], chip="fails" if one["broken"] else "holds"),
                f"{one['measure']} = {_number(worst['value'])}",
                f"{worst['breaks_with']} of {worst['of_seeds']}",
                str(worst["keys"]),
                "–" if one["first_trial"] is None else f"{one['first_trial']:,}",
            ]
        )
    columns = ("Goal", "Broken if", "Verdict", "Worst", "Runs", "Keys", "First trial")
    note = (
        "Worst: the median over seeds. Runs: the different ones in which it is true; equal runs are one. "
        "Keys: those that are not at the defaults of the space, after shrinking."
    )
    return Table("", columns, rows, 4, note)


def _breach(path: Path, one: Mapping[str, Any], place: int) -> Section:
    worst = one["breaches"][place]
    rows = [[key, str(value)] for key, value in worst["settings"].items()]
    parts: list[Any] = [Table("What differs from the defaults", ("Key", "Value"), rows, 2)] if rows else []
    kept = rundir.read(path / worst["directory"], tables=True)
    drawn = network.drawing(tree(kept.text(rundir.SCENARIO)))
    full = tree(kept.text(rundir.RESOLVED))
    summary = {**kept.summary, "flows": groups.directed(kept.summary["flows"], full)}
    names = [link["name"] for link in full.get("topology", {}).get("links", [])] or ["bottleneck"]
    parts += [drawn] if drawn else []
    parts += run_charts.over_time(kept.tables, summary, names)
    if worst["mends"]:
        cells = [
            [m["key"], str(m["before"]), "left out" if m["after"] is None else str(m["after"]), _number(m["value"])]
            for m in worst["mends"]
        ]
        columns = ("Key", "From", "To", one["measure"])
        parts.append(Table("What mends it", columns, cells, 3, "Each change alone, the median over the seeds."))
    lead = (
        f"{one['measure']} is {_number(worst['value'])}; true in "
        f"{shrink.in_words(worst['breaks_with'], worst['of_seeds'])}."
    )
    code = [("The scenario, for penstock run", worst["scenario"], True)]
    title = one["goal"] + (f", way {place + 1}" if place else "")
    return Section(title, parts, f"{one['sentence']}: {lead}", code)


def _map(findings: Sequence[Mapping[str, Any]]) -> list[Any]:
    names = list(
        dict.fromkeys(part for one in findings for way in one["ways"] for part in (way["cell"][1:] or ["none"]))
    )
    if not names:
        return []
    rows = []
    for one in findings:
        best: dict[str, float] = {}
        for way in one["ways"]:
            for part in way["cell"][1:] or ["none"]:
                best[part] = max(best.get(part, -1.0), way["margin"])
        rows.append((one["goal"], [best.get(name) for name in names]))
    read = "Rows are goals, columns the parts that are there; several: more than two."
    return [Heat("Margins", read, "part", "goal", names, rows, "{:.2f}")]


def _curves(findings: Sequence[Mapping[str, Any]]) -> Chart:
    lines = []
    for place, one in enumerate(findings):
        xs = [point[0] for point in one["curve"]]
        lines.append(Line(one["goal"], [point[1] for point in one["curve"]], place, xs, style="step"))
    read = "The worst margin so far over the trials; above zero the goal is broken with one seed."
    return Chart("Worst so far", read, Axis("trials"), Axis("margin", low=-1.0, high=1.0), lines)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"
