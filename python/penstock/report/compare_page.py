"""The page of a comparison: the answer and its rule, differences with their intervals, each run, all measures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from penstock.experiments import statistics
from penstock.experiments.measures import HIGHER, find
from penstock.experiments.overview import heading, scale
from penstock.experiments.statistics import Interval, with_ends, with_half
from penstock.experiments.verdict import BY_KEY, QUANTITIES, Quantity
from penstock.report import kit
from penstock.report.kit.model import Cell, Chart, Line, Mark, Section, Strip, Table
from penstock.report.run_charts import FELT, SHARE

Told = Mapping[str, Any]
_CHIPS = {"better": "holds", "worse": "fails"}
_LEVELS = ("what people feel", "goodput", "queues", "drops")
_RULE = (
    "Sides are compared seed by seed, in the order of this table. In one quantity a side is better if the interval of "
    "99 % of the differences excludes zero and the means differ by more than the margin; of more than two sides, the "
    "1 % is divided among all pairs. Sides are alike if the means differ by no more than the margin, and the interval "
    "of 95 % reaches no further than twice of it. Else the runs leave it open. On a level a side is better if it is "
    "better in a quantity and worse in none. The first level on which two sides are not alike decides between them, "
    "also if it leaves it open. Those serve best that no other beats. With one seed, or with seeds that are one run, "
    "the runs cannot tell."
)


def page(told: Told, felt: Sequence[Told] = ()) -> str:
    """Returns the page of a comparison, as `compare.json` and `felt.json` have it."""
    labels = [side["label"] for side in told["sides"]]
    answers = told.get("answers", [])
    seeds = max((line["seeds"] for line in told["lines"]), default=0)
    sections: list[Section] = []
    for answer, judged in zip(answers, told.get("judged", []), strict=True):
        where = _where(answer["settings"])
        sections.append(Section(f"Answer{where}", [answer["sentence"], *answer["because"]]))
        sections.append(Section(f"Beside {labels[0]}{where}", list(_differences(judged, labels)), _READ_DIFFERENCES))
        charts = list(_felt([one for one in felt if one["settings"] == answer["settings"]], labels))
        sections.append(Section(f"What people feel{where}", charts, _READ_FELT if charts else ""))
        sections.append(Section(f"Each run{where}", list(_runs(judged, labels)), _READ_RUNS))
    sections += [Section(f"All measures{_where(settings)}", [table]) for settings, table in _tables(told, labels)]
    sections.append(Section("The rule", [_RULE, _rule()]))
    disturbed = sum(side["disturbed"] for side in told["sides"])
    warnings = [f"{_capital(told['chance'])}."] if told.get("chance") else []
    warnings += [f"The machine disturbed {disturbed} runs."] if disturbed else []
    return kit.page(
        " or ".join(labels) + "?",
        _lead(answers),
        sections,
        warnings=[*warnings, *([] if seeds > 1 else ["One seed says nothing about chance."])],
        command=told.get("command", ""),
    )


def _lead(answers: Sequence[Told]) -> str:
    """Returns the answer; of several settings their number, and nothing of a comparison of an earlier release."""
    if len(answers) > 1:
        return f"{len(answers)} settings, each with its own answer."
    return str(answers[0]["sentence"]) if answers else ""


_READ_DIFFERENCES = (
    "The mean of the differences seed by seed, with its interval of 95 %. The line is no difference; within the grey "
    "range nobody notices."
)
_READ_FELT = "All packets, pages and calls of all seeds together: the share up to each value. Values are known to 1 %."
_READ_RUNS = "Each open circle is a run, the full one their mean, the bar the interval of the mean (95 %)."


def _where(settings: Mapping[str, str]) -> str:
    told = ", ".join(f"{key} = {value}" for key, value in settings.items())
    return f": {told}" if told else ""


def _differences(judged: Told, labels: Sequence[str]) -> Iterator[Strip]:
    for one in judged["quantities"]:
        quantity = BY_KEY[one["key"]]
        rows = [
            _difference(quantity, label, place, difference)
            for place, (label, difference) in enumerate(zip(labels[1:], one["differences"], strict=True), 1)
            if difference and difference["mean"] is not None
        ]
        if rows:
            margin = quantity.margin(_best(one["values"], quantity))
            read = f"{_capital(quantity.about)}; {quantity.better} is better. Counts from {quantity.told}."
            head = f"difference from {labels[0]}"
            yield Strip(_capital(quantity.words), read, head, rows, _signed(quantity), zero=0.0, band=(-margin, margin))


def _difference(quantity: Quantity, label: str, place: int, told: Told) -> Mark:
    relation = told["relation"]
    value, low, high = (told[end] for end in ("mean", "low", "high"))
    text = quantity.apart(_interval(told))
    return Mark(label, place, text, value, low, high, chip=_CHIPS.get(relation, "not-run"), chip_text=relation)


def _runs(judged: Told, labels: Sequence[str]) -> Iterator[Strip]:
    for one in judged["quantities"]:
        quantity = BY_KEY[one["key"]]
        rows = [
            _of_runs(quantity, label, place, values, runs)
            for place, (label, values, runs) in enumerate(zip(labels, one["values"], judged["runs"], strict=True))
        ]
        yield Strip(_capital(quantity.words), "", "mean", rows, quantity.form)


def _of_runs(quantity: Quantity, label: str, place: int, values: Sequence[float | None], runs: int) -> Mark:
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return Mark(label, place, f"in {len(known)} of {len(values)} runs", dots=known)
    mean = statistics.mean(known, runs)
    ends = mean.to_json()
    return Mark(label, place, quantity.form(mean.value), mean.value, ends["low"], ends["high"], known)


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _felt(felt: Sequence[Told], labels: Sequence[str]) -> Iterator[Chart]:
    """Yields a chart for each quantity and kind of flows, with a line for each side."""
    for part, name in dict.fromkeys((one["part"], one["name"]) for one in felt):
        title, what, axis = FELT[part]
        lines = [
            Line(one["side"], one["shares"], labels.index(one["side"]), one["values"], style="step")
            for one in felt
            if (one["part"], one["name"]) == (part, name)
        ]
        yield Chart(f"{title} ({name})", f"The share of {what}.", axis, SHARE, lines)


def _best(values: Sequence[Sequence[float | None]], quantity: Quantity) -> float:
    """Returns the best mean of the sides, of which the margin may be a part."""
    columns = [[value for value in column if value is not None] for column in values]
    means = [math.fsum(column) / len(column) for column in columns if column]
    return max(means) if quantity.better == HIGHER else min(means)


def _signed(quantity: Quantity) -> Callable[[float], str]:
    return lambda value: f"{'+' if value > 0 else ''}{quantity.form(value)}".replace("MOS ", "")


def _tables(told: Told, labels: Sequence[str]) -> Iterator[tuple[Mapping[str, str], Table]]:
    """Yields for each setting the table of all measures, with a row for each side but the first."""
    by_settings: dict[tuple[tuple[str, str], ...], list[Told]] = {}
    for line in told["lines"]:
        by_settings.setdefault(tuple(line["settings"].items()), []).append(line)
    heads = ("Measure", "Side", "Mean", labels[0], "Difference", "Part", "Verdict")
    for settings, lines in by_settings.items():
        rows = [row for line in lines for row in _rows(line)]
        note = "± is half the 95 % interval of a mean; a difference has the ends of its own."
        yield dict(settings), Table("", heads, rows, 2, note)


def _rows(line: Told) -> Iterator[list[Cell | str]]:
    measure = find(line["measure"] if line["part"] == "run" else f"{line['part']}.{line['measure']}")
    of = scale(measure)
    for difference, side in zip(line["differences"], line["sides"][1:], strict=True):
        apart = _interval(difference)
        share = difference["share"]
        told = [
            Cell(heading(measure, line["name"])),
            Cell(difference["side"]),
            _mean(side, of),
            _mean(line["sides"][0], of),
            Cell("–") if math.isnan(apart.value) else Cell(with_ends(apart, of, "+"), apart.value),
            Cell("–") if share is None else Cell(f"{share:+.1%}", share),
            Cell(difference["verdict"], chip=_CHIPS.get(difference["verdict"], "not-run")),
        ]
        yield list(told)


def _mean(side: Told, of: float) -> Cell:
    one = _interval(side)
    return Cell("–") if math.isnan(one.value) else Cell(with_half(one, of), one.value)


def _interval(of: Told) -> Interval:
    return Interval(*(math.nan if of[end] is None else of[end] for end in ("mean", "low", "high")))


def _rule() -> Table:
    rows = [
        [str(one.level + 1), one.words, f"{one.better} is better", one.told, one.about, _LEVELS[one.level]]
        for one in QUANTITIES
    ]
    return Table(
        "Quantities and margins", ("Level", "Quantity", "Way", "Margin", "What it is", "Level is about"), rows, 6
    )
