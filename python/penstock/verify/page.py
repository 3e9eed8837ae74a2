"""The table of the comparison, for the terminal and for a page of the documentation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from penstock import marked
from penstock.verify.compare import GOALS, Gap, Row

HEADINGS = ("case", "Mbit/s", "gap", "queue ms", "gap", "p95 ms", "loss %", "period s", "gap")


def cells(row: Row) -> list[str]:
    """Returns the cells of one row: for each measure the numbers of kernel and simulator, then the gap."""
    kernel, ours, gaps = row.kernel, row.simulator, row.gaps

    def both(name: str, digits: int, factor: float = 1.0) -> str:
        pair = (getattr(side, name) for side in (kernel, ours))
        return " / ".join("-" if value is None else f"{value * factor:.{digits}f}" for value in pair)

    return [
        row.case.name + (" (disturbed)" if row.disturbed else ""),
        *(both("goodput_mbps", 2), _gap(gaps.get("goodput_mbps"))),
        *(both("queue_mean_ms", 2), _gap(gaps.get("queue_mean_ms"))),
        both("queue_p95_ms", 1),
        both("loss", 3, 100),
        *(both("period_s", 2), _gap(gaps.get("period_s"))),
    ]


def _gap(gap: Gap | None) -> str:
    if gap is None:
        return "-"
    return f"{gap.share:+.1%}" + ("" if gap.word == "ok" else f" {gap.word}")


def summary(rows: Sequence[Row]) -> str:
    """Returns the number of gaps of each kind, as text."""
    parts = []
    for name, goal in GOALS.items():
        words = [row.gaps[name].word for row in rows if name in row.gaps]
        label = name.rsplit("_", 1)[0].replace("_", " ")
        counts = f"{words.count('ok')} of {len(words)} within {goal:.0%}"
        parts.append(f"{label}: {counts}, {words.count('seeds')} more within the seeds, {words.count('apart')} apart")
    return "; ".join(parts)


def write(page: Path, rows: Sequence[Row], about: str) -> None:
    """Replaces the text between the marks of the page by the comparison."""
    lines = marked.table(HEADINGS, [cells(row) for row in rows], numbers=True)
    marked.replace(page, "\n".join([about, "", *lines, "", summary(rows) + "."]))
