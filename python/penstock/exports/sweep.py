"""The tables of a sweep in other formats."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from penstock.experiments import results
from penstock.experiments.overview import overview
from penstock.exports import tables
from penstock.mistake import MistakeError

USUAL = ("csv", "latex")


def files(path: Path, kinds: Collection[str]) -> dict[str, str | bytes]:
    """Returns the contents of files by their names: tables of all runs and of all intervals, and one for a paper."""
    if unknown := set(kinds) - set(USUAL):
        raise MistakeError(
            f"{path}: a sweep is exported as CSV and LaTeX, and not as {', '.join(sorted(unknown))}; "
            "penstock.plot draws figures of its tables (penstock docs plots)"
        )
    sweep = results.load(path)
    made: dict[str, str | bytes] = {}
    if not kinds or "csv" in kinds:
        made |= {"results.csv": tables.csv_of(sweep.results), "intervals.csv": tables.csv_of(sweep.intervals)}
    if not kinds or "latex" in kinds:
        shown = overview(sweep)
        made["points.tex"] = tables.latex_of(shown.columns, shown.rows, shown.left)
    return made
