"""`compare`: which of several is better, and by how much."""

from __future__ import annotations

import math
import shlex
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from penstock import worlds
from penstock.cli import flent, layout, options, show
from penstock.cli.base import verb
from penstock.cli.progress import RunsBar
from penstock.cli.sweep import tell_disturbed, tell_failures, varied
from penstock.cli.worlds import OnAny
from penstock.mistake import MistakeError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.experiments.compare import Comparison, Line
    from penstock.experiments.statistics import Interval

WIDTH = 80
_NARROWEST = 8  # columns of the name of a side
_GAPS = (2, 2, 1, 2)  # before the columns of a table
_STYLES = {"better": "green", "worse": "red"}
# Longer verdicts, as the terminal has room for them; compare.json and the page have them in full.
_WORDS = {
    "the same in every seed": "the same",
    "no difference shown": "not shown",
    "more seeds may tell": "more seeds?",
    "one seed cannot tell": "one seed",
    "one run cannot tell": "one run",
    "differs alike in every seed": "all alike",
    "a value is missing": "missing",
}


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
    stack: list[str] = options.STACK,
    by: str = typer.Option("", metavar="KEY", help="Of one item: compare the values of this key; default: the first."),
    own: list[str] = options.WITH,
    seeds: str | None = options.SEEDS,
    measure: list[str] = options.MEASURE,
    on: OnAny = "sim",
    jobs: int | None = options.JOBS,
    dask: str = typer.Option("", metavar="ADDRESS", help="Run on the Dask cluster with this scheduler."),
    out: Path | None = typer.Option(
        None, "-o", "--out", help="Directory of the comparison; default runs/compare/A-vs-B-HASH."
    ),
    json: bool = options.JSON,
    browse: bool = options.OPEN,
) -> None:
    """Run what is not run yet, with the same seeds; tell which serves best, by how much, and how sure that is."""
    from penstock import report
    from penstock.experiments import api, setting
    from penstock.flent import reading

    options.hosting(stack)
    if any(reading.is_file(item) for item in items):
        _compare_flent(items, json, writes=bool(out or browse))
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
                out=out,
                watcher=bar,
                command=_command(items, vary, settings, own, measure, by, seeds, on),
            )
        except KeyboardInterrupt:
            show.warn("interrupted: what is finished is kept, and the same command goes on")
            raise typer.Exit(130) from None
    page = report.write_compare(found.path)
    show.warn(found.replaced)
    if json:
        show.as_json(found.to_json())
    else:
        _print(found)
        show.line(f"report: {page}")
    options.opened(page, browse)
    _warn(found)


def _compare_flent(items: list[str], json: bool, *, writes: bool) -> None:
    if writes:
        raise MistakeError("results of Flent are compared on the terminal: leave --out and --open away")
    flent.compare(items, json)


def _warn(found: Comparison) -> None:
    """Warns of runs which the machine disturbed, and of those that failed."""
    sweeps = {side.sweep.path: side.sweep for side in found.sides}.values()
    for swept in sweeps:
        tell_disturbed(swept)
    for swept in sweeps:
        tell_failures(swept)


def _command(
    items: list[str],
    vary: list[str],
    settings: list[str],
    own: list[str],
    measure: list[str],
    by: str,
    seeds: str | None,
    on: str,
) -> str:
    """Returns the command that compares the same."""
    given = [("--vary", vary), ("--set", settings), ("--with", own), ("--measure", measure)]
    words = [word for option, values in given for value in values for word in (option, value)]
    words += ["--by", by] if by else []
    words += ["--seeds", seeds] if seeds else []
    words += ["--on", on] if on != worlds.SIM else []
    return shlex.join(["penstock", "compare", *items, *words])


def _print(found: Comparison) -> None:
    for settings in dict.fromkeys(line.settings for line in found.lines):
        told = ", ".join(f"{key}={value}" for key, value in settings)
        lines = [line for line in found.lines if line.settings == settings]
        for text in ([told] if told else []) + list(_table(lines, [side.label for side in found.sides])):
            print(text)
        print()
    seeds = max((line.seeds for line in found.lines), default=0)
    over = "one seed" if seeds == 1 else f"{seeds} seeds"
    rule = " with 95 % intervals (Student's t)" if _has_intervals(found) else ""
    _wrapped(f"means over {over}{rule}; differences seed by seed, from {found.sides[0].label}", "dim")
    _wrapped(found.told_of_chance(), "dim")
    for answer in found.answers:
        print()
        where = ", ".join(f"{key}={value}" for key, value in answer.settings)
        _wrapped(f"{where}: {answer.sentence}" if where else answer.sentence, "bold")
        for reason in answer.because:
            _wrapped(reason, "", "  ")


def _wrapped(text: str, style: str, indent: str = "") -> None:
    further = indent + "  " if indent else ""
    for line in textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=further, break_long_words=False):
        show.line(line, style)


def _table(lines: list[Line], labels: list[str]) -> Iterator[str]:
    """Yields the measures, each with a row for each side; words that do not fit are cut in the middle."""
    from penstock.experiments.overview import heading, scale

    blocks = [(heading(line.measure, line.name), _rows(line, scale(line.measure))) for line in lines]
    widths = [max(len(row[column]) for _, rows in blocks for row in rows) for column in range(len(_GAPS))]
    room = max(WIDTH - sum(widths) - sum(_GAPS) - 2, _NARROWEST)
    names = [_cut(label, room) for label in labels]
    first = max(map(len, names))
    for title, rows in blocks:
        yield title
        for name, cells in zip(names, rows, strict=True):
            style = _STYLES.get(cells[-1], "")
            told = [" " * gap + cell.rjust(width) for gap, cell, width in zip(_GAPS, cells, widths, strict=True)]
            told[-1] = "  " + layout.styled(cells[-1], style)
            yield f"  {name.ljust(first)}{''.join(told)}".rstrip()


def _cut(label: str, room: int) -> str:
    half = (room - 1) // 2
    return label if len(label) <= room else f"{label[: room - 1 - half]}…{label[len(label) - half :]}"


def _rows(line: Line, of: float) -> list[list[str]]:
    """Returns the cells of each side: mean, difference from the first, its part of that, and a word."""
    rows = [[_interval(line.sides[0], of), "", "", ""]]
    for difference, side in zip(line.differences, line.sides[1:], strict=True):
        one = difference.interval
        apart = "-" if math.isnan(one.value) else _short(one, of, "+")
        share = "" if difference.share is None else f"{difference.share:+.1%}"
        rows.append([_interval(side, of), apart, share, _WORDS.get(difference.verdict, difference.verdict)])
    return rows


def _has_intervals(found: Comparison) -> bool:
    return any(one.known for line in found.lines for one in line.sides)


def _interval(one: Interval, of: float) -> str:
    if math.isnan(one.value):
        return "-"
    value, digits = one.value / of, _digits(one, of)
    return f"{value:.{digits}f} ±{one.half_width / of:.{digits}f}" if one.known else f"{value:.4g}"


def _short(one: Interval, of: float, sign: str) -> str:
    value, low, high, digits = one.value / of, one.low / of, one.high / of, _digits(one, of)
    return f"{value:{sign}.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]" if one.known else f"{value:{sign}.4g}"


def _digits(one: Interval, of: float) -> int:
    """Returns the decimals at which the interval has two digits, at most four: the page has all."""
    from penstock.experiments.statistics import places

    return min(4, places(one.low / of, one.high / of)) if one.known else 0
