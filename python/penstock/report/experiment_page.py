"""The page of a reproduction: verdicts with their evidence, figures, numbers, variants."""

from __future__ import annotations

import base64
import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from penstock import plots
from penstock.citations import cited
from penstock.claims import Entry, Verdict
from penstock.claims.rows import Comparison
from penstock.report import kit, tidy
from penstock.report.kit.model import Axis, Cell, Chart, Evident, Line, Picture, Section, Table, Tile
from penstock.report.tidy import Measure, Tidy
from penstock.reproduce import columns
from penstock.reproduce.results import Evidence
from penstock.scenario import to_toml

FEW = 4  # so many numbers of a document need no chart
_VERDICTS = ("Verdict", "Where", "Claim", "Document", "Measured")
_VERDICTS_LEAD = (
    "Each verdict is computed from these runs. Claims that do not hold are listed with the measured numbers, too. A "
    "claim holds if all comparisons of its evidence are true, fails if none is, and holds partly otherwise."
)


def page(evidence: Evidence, entries: Sequence[Entry], figures: Mapping[str, bytes], command: str = "") -> str:
    """Returns the page; `figures` are the figures as SVG, by name. `command` made runs that are not judged."""
    experiment = evidence.experiment
    quick = (
        [f"This is the quick form, which leaves out: {experiment.quick}. Its verdicts are preliminary."]
        if evidence.quick and not command
        else []
    )
    disturbed = evidence.disturbed
    warnings = [*quick, *([f"The machine disturbed {len(disturbed)} runs, listed below."] if disturbed else [])]
    listed = Table("", ("Run", "By"), [[str(case), ", ".join(by)] for case, by in disturbed.items()], 2)
    sections = [
        Section("Claims", [_claims(entries, len(evidence.seeds) > 1)], _VERDICTS_LEAD),
        Section("Figures", _figures(evidence, figures)),
        Section("Beside the document", _beside(entries), "Numbers of the document as open marks, beside ours."),
        Section("Numbers", [*tidy.parts(_tidy(evidence)), _numbers(evidence)]),
        Section("Variants", _variants(evidence), _variants_lead(evidence)),
        Section("Disturbed runs", [listed] if disturbed else []),
        Section("Parameters", [_PARAMETERS], code=[("Scenario", to_toml(experiment.template), False)]),
    ]
    empty = {"Beside the document", "Variants", "Claims", "Figures", "Disturbed runs"}
    return kit.page(
        experiment.title,
        f"{'Other runs' if command else 'A reproduction'} of {cited(experiment.source)}: {evidence.scope()}.",
        [section for section in sections if any(section.parts) or section.title not in empty],
        tiles=_tiles(entries),
        warnings=warnings,
        command=command or _command(evidence),
        versions=evidence.versions,
    )


_PARAMETERS = (
    "All runs share this scenario. The discipline, the number of flows, the seed and the settings of the table above "
    "vary. Other parameters of disciplines have their defaults. The directory cases beside this page contains the "
    "scenario of each run."
)


def _tiles(entries: Sequence[Entry]) -> list[Tile]:
    claimed = [entry for entry in entries if entry.judged]
    counted = {verdict.value: sum(entry.verdict == verdict for entry in claimed) for verdict in Verdict}
    return [Tile(str(count), f"claims: {verdict}") for verdict, count in counted.items() if count]


def _command(evidence: Evidence) -> str:
    command = f"penstock reproduce {evidence.experiment.name}"
    command += " --quick" if evidence.quick else ""
    return command + (f" --seeds {len(evidence.seeds)}" if len(evidence.seeds) > 1 else "")


# Claims.


def _claims(entries: Sequence[Entry], with_seeds: bool) -> Table | None:
    if not entries:
        return None
    rows = []
    for entry in entries:
        seeds = f"{entry.seeds} seeds" if with_seeds and entry.seeds else ""
        kind = "" if entry.judged else f" ({entry.kind}, not counted)"
        cause = f"{entry.cause}: {entry.because}" if entry.cause else f"{entry.standing} {entry.condition}".strip()
        cause += f"; nearest: {entry.nearest}" if entry.nearest else ""
        claim = Cell(entry.claim + kind, small=cause, wide=True, more=_evidence(entry))
        where = Cell(f"{entry.section}, {entry.item}")
        cells = [where, claim, Cell(entry.paper, wide=True), Cell(entry.measured, wide=True)]
        rows.append([Cell(entry.verdict, chip=entry.verdict, small=seeds), *cells])
    return Table("", _VERDICTS, rows, len(_VERDICTS), most=200)


def _evidence(entry: Entry) -> Evident | None:
    """Returns the comparisons from which the verdict on a claim follows."""
    if not entry.parts:
        return None
    holding = sum(part.holds for part in entry.parts)
    title = f"Evidence: {holding} of {len(entry.parts)} comparisons"
    return Evident(title, ("Holds", "Comparison", "Ours", "Document"), list(map(_part, entry.parts)), entry.reason)


def _part(part: Comparison) -> list[Cell]:
    holds = Cell("yes" if part.holds else "no", chip="holds" if part.holds else "fails")
    numbers = [Cell("–"), Cell("–")]
    if part.said is not None and part.ours is not None:
        numbers = [Cell(f"{value:,.4g} {part.unit}".strip(), value) for value in (part.ours, part.said)]
    return [holds, Cell(part.text), *numbers]


def _beside(entries: Sequence[Entry]) -> list[Chart]:
    """Returns a chart of each claim on several numbers of the document: theirs as open marks beside ours."""
    charts = []
    for entry in entries:
        parts = [part for part in entry.parts if part.said is not None and part.ours is not None]
        if len(parts) < FEW or len({part.unit for part in parts}) > 1:
            continue
        ours, said = [part.ours for part in parts], [part.said for part in parts]
        xs = list(range(len(parts)))
        values = [value for value in (*ours, *said) if value is not None]
        low, high = min(values), max(values)
        value = Axis("value", parts[0].unit, log=low > 0 and high > 50 * low, zero=0 <= low < 0.5 * high)
        lines = [Line("ours", ours, 0, style="points"), Line("document", said, 1, style="points", open=True)]
        read = f"{entry.claim} An open mark is the number of the document, a filled one ours. Verdict: {entry.verdict}."
        places = Axis("number of the document", names=tuple(part.place for part in parts))
        charts.append(Chart(f"{entry.section}: {entry.claim}", read, places, value, lines, xs, item=entry.item))
    return charts


# Figures and numbers.


def _figures(evidence: Evidence, figures: Mapping[str, bytes]) -> list[Picture]:
    items = evidence.experiment.figures
    drawn = plots.drawings(evidence.experiment)
    return [Picture(one.title, one.caption, _src(figures[name]), items[name]) for name, one in drawn.items()]


def _src(svg: bytes) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"


def _tidy(evidence: Evidence) -> Tidy:
    """Returns the columns of the experiment as a tidy table, with the range over seeds as interval."""
    chosen = columns.of(evidence.experiment)
    rows: list[dict[str, Any]] = []
    for aqm, flows, setting in evidence.cells:
        for index, column in enumerate(chosen):
            values = [column.measure(outcome) for outcome in evidence.runs(aqm, flows, setting)]
            known = [value for value in values if value is not None and not math.isnan(value)]
            if known and len(known) == len(values):
                row = {"flows": flows, "setting": evidence.experiment.label(setting), "aqm": aqm, "measure": str(index)}
                rows.append({**row, "median": statistics.median(known), "low": min(known), "high": max(known)})
    settings = len({row["setting"] for row in rows}) > 1
    # Where each setting has one number of flows, the setting says it.
    numbers = len({row["flows"] for row in rows}) > 1
    numbers = numbers and len({(row["setting"], row["flows"]) for row in rows}) > len({row["setting"] for row in rows})
    keys = ["flows"] if numbers or not settings else []
    measures = [Measure(str(index), column.heading) for index, column in enumerate(chosen)]
    places = {aqm: index for index, aqm in enumerate(evidence.aqms)}
    return Tidy(
        rows,
        [*keys, *(["setting"] if settings else [])],
        measures,
        group="aqm",
        labels={**plots.LABELS, "flows": "number of flows"},
        colours=places if not (settings and keys) else {},
        spread="range over seeds",
    )


def _numbers(evidence: Evidence) -> Table:
    settings = any(evidence.settings)
    rows: list[list[Cell | str]] = [[*_key(evidence, row, settings), *row.cells] for row in columns.rows(evidence)]
    heads = [*(["Setting"] if settings else []), "Flows", "Discipline", *map(_heading, columns.headings(evidence))]
    return Table("All runs", heads, rows, 2 + settings, most=120)


def _heading(text: str) -> str:
    return text[:1].upper() + text[1:]


def _key(evidence: Evidence, row: columns.Row, settings: bool) -> list[Cell]:
    name = plots.LABELS.get(row.aqm, row.aqm)
    setting = [Cell(evidence.experiment.label(row.setting))] if settings else []
    return [*setting, Cell(str(row.flows), row.flows), Cell(name, colour=plots.COLOURS.get(row.aqm, "#666"))]


# Variants.


def _variants_lead(run: Evidence) -> str:
    chance = (
        " With one seed, chance may decide a close comparison; use --seeds 5 to check it."
        if len(run.seeds) == 1
        else ""
    )
    return (
        "These are the same runs with one assumption changed. They do not change a verdict; they show which "
        f"assumptions it depends on.{chance} Each cell shows the value as published → the value with the change."
    )


def _variants(run: Evidence) -> list[Table]:
    """Returns each variant with its rows of results, each beside the row of the published runs."""
    published = {(row.aqm, row.flows, row.setting): row for row in columns.rows(run)}
    settings = any(run.settings)
    heads = [*(["Setting"] if settings else []), "Flows", "Discipline", *map(_heading, columns.headings(run))]
    tables = []
    for variant in run.experiment.variants:
        if variant.name not in run.varied:
            continue
        rows = []
        for now in columns.rows(run.varied[variant.name], run):
            if now.aqm in variant.aqms:
                before = published[now.aqm, now.flows, now.setting]
                rows.append([*_key(run, now, settings), *map(_changed, before.cells, now.cells)])
        tables.append(Table(variant.name, heads, rows, 2 + settings, f"Changed: {variant.change}.", 30))
    return tables


def _changed(before: str, now: str) -> Cell:
    return Cell(now if before == now else f"{before} → {now}")
