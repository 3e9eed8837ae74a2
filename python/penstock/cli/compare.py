"""`compare`: which of several is better, and by how much."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING

import typer

from penstock.cli import flent, options, show
from penstock.cli.base import verb
from penstock.cli.layout import Cell, Styled
from penstock.cli.progress import RunsBar
from penstock.cli.sweep import tell_disturbed, varied
from penstock.cli.worlds import OnAny

if TYPE_CHECKING:
    from penstock.experiments.compare import Comparison, Difference, Line
    from penstock.experiments.statistics import Interval
    from penstock.experiments.verdict import Answer

WIDTH = 80
_STYLES = {"better": "green", "worse": "red"}


@verb(
    "compare",
    "penstock compare home.toml home-pie.toml",
    "penstock compare home.toml --vary aqm.name=droptail,codel,pie --seeds 20",
    "penstock compare home.toml runs/home-1a2b3c4d --measure rtt_p90_ms --json",
    "penstock compare measured.flent.gz runs/suites/rrul-fq-codel",
)
def compare(
    items: list[str] = typer.Argument(
        help="Scenarios, experiments, directories of runs or of sweeps; the first is what others are compared with.",
        metavar="A B ...",
    ),
    vary: list[str] = options.VARY,
    settings: list[str] = options.SET,
    by: str = typer.Option("", metavar="KEY", help="Of one item: compare the values of this key; default: the first."),
    own: list[str] = options.WITH,
    seeds: str | None = options.SEEDS,
    measure: list[str] = options.MEASURE,
    on: OnAny = "sim",
    jobs: int | None = options.JOBS,
    dask: str = typer.Option("", metavar="ADDRESS", help="Run on the Dask cluster with this scheduler."),
    json: bool = options.JSON,
) -> None:
    """Run what is not run yet, with the same seeds; tell which is better, by how much, and how sure that is."""
    from penstock.experiments import api, setting
    from penstock.flent import reading

    if any(reading.is_file(item) for item in items):
        flent.compare(items, json)
        return
    with RunsBar("compare", json) as bar:
        try:
            found = api.compare(
                *items,
                vary=varied(vary),
                settings=setting.read(settings),
                seeds=seeds,
                measure=measure,
                by=by,
                own=own,
                jobs=jobs,
                dask=dask,
                on=on,
                watcher=bar,
            )
        except KeyboardInterrupt:
            show.warn("interrupted: what is finished is kept, and the same command goes on")
            raise typer.Exit(130) from None
    if json:
        show.as_json(found.to_json())
    else:
        _print(found)
    for swept in {side.sweep.path: side.sweep for side in found.sides}.values():
        tell_disturbed(swept)


def _print(found: Comparison) -> None:
    first = found.sides[0].label
    several = len(found.sides) > 2
    heads = ["measure", first]
    heads += (
        ["side", "", f"difference from {first}", "", ""] if several else [found.sides[1].label, "difference", "", ""]
    )
    for settings in dict.fromkeys(line.settings for line in found.lines):
        rows = [row for line in found.lines if line.settings == settings for row in _rows(line, several)]
        show.table(", ".join(f"{key}={value}" for key, value in settings), heads, rows, left=1)
        print()
    seeds = max((line.seeds for line in found.lines), default=0)
    rule = " with 95 % intervals (Student's t)" if _has_intervals(found) else ""
    show.line(f"means over {seeds} seeds{rule}; differences seed by seed", "dim")
    if told := found.told_of_chance():
        show.line(told, "dim")
    for answer in found.answers:
        print()
        _tell(answer)
    show.line(f"comparison: {found.path}")


def _tell(answer: Answer) -> None:
    """Prints the answer and why."""
    where = ", ".join(f"{key}={value}" for key, value in answer.settings)
    for text in textwrap.wrap(f"{where}: {answer.sentence}" if where else answer.sentence, WIDTH):
        show.line(text, "bold")
    for reason in answer.because:
        print("\n".join(textwrap.wrap(reason, WIDTH, initial_indent="  ", subsequent_indent="    ")))


def _rows(line: Line, several: bool) -> list[list[Cell]]:
    """Returns the row of a measure; with several sides one for each but the first."""
    from penstock.experiments.overview import heading, scale

    of = scale(line.measure)
    rows: list[list[Cell]] = []
    for place, difference in enumerate(line.differences):
        name = heading(line.measure, line.name) if place == 0 else ""
        base = _interval(line.sides[0], of) if place == 0 else ""
        side = [difference.side] if several else []
        told = [*_difference(difference, of)]
        rows.append([name, base, *side, _interval(line.sides[place + 1], of), *told])
    return rows


def _has_intervals(found: Comparison) -> bool:
    return any(one.known for line in found.lines for one in line.sides)


def _interval(one: Interval, scale: float) -> str:
    from penstock.experiments.statistics import with_half

    return "-" if math.isnan(one.value) else with_half(one, scale)


def _difference(one: Difference, scale: float) -> list[Cell]:
    from penstock.experiments.statistics import with_ends

    if math.isnan(one.interval.value):
        return ["-", "", one.verdict]
    share = "" if one.share is None else f"{one.share:+.1%}"
    return [with_ends(one.interval, scale, "+"), share, Styled(one.verdict, _STYLES.get(one.verdict, ""))]
