"""The page of all measures, docs/reference/measures.md, from their table. `tools/measure/measures` writes it."""

from __future__ import annotations

from penstock.experiments.measures import BY_PART, FLOWS, LINK, RUN, Measure

_HEAD = """\
# Measures

`tools/measure/measures` writes this page from the table in `python/penstock/experiments/measures.py`.

These are the numbers of `results.parquet` and `intervals.parquet` of a [sweep](../experiments.md), and the names for
`--measure` of `sweep` and `compare`. A measure of links or of groups of flows is called with its part: `link.drops`,
`flows.mos`. Where a run has several links or groups, each has its own row. "better" says which way is better, for
`compare`; nothing is said where that depends on what is wanted.
"""
_PARTS = {
    RUN: ("The run", "Rows with `part` = `run`: one for each run. Paths begin in `summary.json`."),
    LINK: (
        "Links",
        "Rows with `part` = `link`: one for each measured queue, whose name they have. Paths begin in an entry of "
        "`bottlenecks`.",
    ),
    FLOWS: (
        "Groups of flows",
        "Rows with `part` = `flows`: one for each entry of `[[flows]]` in the scenario, called by its place and kind, "
        "such as `0 bulk`. Paths begin in an entry of `flows`.",
    ),
}


def page() -> str:
    """Returns the whole page."""
    lines = [_HEAD]
    for part, (title, about) in _PARTS.items():
        lines += [
            f"## {title}\n",
            f"{about}\n",
            "| measure | unit | meaning | better | from |",
            "|---|---|---|---|---|",
        ]
        lines += [_row(measure) for measure in BY_PART[part]]
        lines.append("")
    return "\n".join(lines)


def _row(measure: Measure) -> str:
    source = " / ".join(" + ".join(f"`{path}`" for path in term.split("+")) for term in measure.source.split("/"))
    return f"| `{measure.key}` | {measure.unit} | {measure.about} | {measure.better} | {source} |"
