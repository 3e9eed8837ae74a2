"""The table of the comparison with ns-3, for the terminal and for a page of the documentation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from penstock import marked, store
from penstock.verify.peer import DURATION_S, MEASURES, SEEDS, SWITCHES, Row

HEADINGS = ("network", "Mbit/s", "queue ms", "drops", "beyond the seeds")
_DIGITS = {"goodput_mbps": 2, "queue_ms": 1, "drops": 0}
_WORDS = {"goodput_mbps": "goodput", "queue_ms": "queue", "drops": "drops"}


def cells(row: Row) -> list[str]:
    """Returns the cells of one network: the means of both programs, and what removes each difference."""
    numbers = [_both(row, name) for name in MEASURES]
    causes = ", ".join(f"{_WORDS[name]}: {row.cause(name)}" for name in row.plain.apart)
    return [row.network.name, *numbers, causes or "nothing"]


def _both(row: Row, name: str) -> str:
    ours, theirs = row.plain.ours[name].mean, row.plain.theirs[name].mean
    ratio = f" ({ours / theirs:.2f})" if theirs else ""
    return f"{ours:.{_DIGITS[name]}f} / {theirs:.{_DIGITS[name]}f}{ratio}"


def about(version: str, seed: str) -> str:
    """Returns what the table is of."""
    return (
        f"Penstock / ns-3 {version}, means of {SEEDS} seeds of {DURATION_S} s from the first packet on; networks drawn "
        f"with the seed {seed}."
    )


def summary(rows: Sequence[Row]) -> str:
    """Returns how many measures differ by more than the seeds, and what removes them."""
    causes = [row.cause(name) for row in rows for name in row.plain.apart]
    named = ", ".join(f"{name} {causes.count(name)}" for name in sorted(set(causes)))
    return f"{len(causes)} of {len(rows) * len(MEASURES)} measures differ by more than the seeds" + (
        f": removed by {named}" if named else ""
    )


def found(rows: Sequence[Row], version: str, seed: str, complete: bool) -> dict[str, Any]:
    """Returns the comparison as it is printed and stored."""
    switches = {switch.name: switch.about for switch in SWITCHES}
    return {
        "about": about(version, seed),
        "seed": seed,
        "ns3": version,
        "switches": switches,
        "rows": [row.to_json() for row in rows],
        "summary": summary(rows),
        "complete": complete,
    }


def write(page: Path, rows: Sequence[Row], version: str, seed: str) -> None:
    """Replaces the text between the marks of the page by the comparison, and writes the .json beside it."""
    lines = marked.table(HEADINGS, [cells(row) for row in rows])
    store.finish(page)
    text = marked.replaced(page, {"table": "\n".join([about(version, seed), "", *lines, "", summary(rows) + "."])})
    store.together({page: text, page.with_suffix(".json"): store.rows(found(rows, version, seed, True))})
