"""The picture of `weir-grid`: a line for each testbed, and what people notice first."""

from __future__ import annotations

import math
from collections.abc import Callable

from penstock.papers.weir_grid.columns import COLUMNS
from penstock.papers.weir_grid.runs import QUICK
from penstock.plots.kit import (
    FAINT,
    LABELS,
    MARKERS,
    Axes,
    Drawing,
    Figure,
    FuncFormatter,
    LogLocator,
    NullFormatter,
    colour,
)
from penstock.reproduce.results import Evidence, Outcome

LEAST_MS = 0.1  # what a logarithmic axis shows of a wait of nothing
PANELS = (
    ("call", "a call waits, ms (p99)", 1.0),
    ("web", "a page takes, ms (median)", 1.0),
    ("grid_use", "of the link is used, %", 100.0),
    ("again", "of TCP is sent again, %", 100.0),
)


def _grid(run: Evidence) -> Figure:
    """Four panels with a line for each testbed."""
    figure = Figure(figsize=(13, 1.6 + 0.33 * len(run.settings)), layout="constrained")
    axes = figure.subplots(1, len(PANELS), sharey=True)
    names = run.settings[::-1]
    for axis, (column, title, factor) in zip(axes, PANELS, strict=True):
        _panel(axis, run, names, COLUMNS[column].measure, factor)
        axis.set_title(title, fontsize=10)
        if factor == 1.0:
            axis.set_xscale("log")
            axis.xaxis.set_major_locator(LogLocator(subs=(1,) if column == "call" else (1, 2, 5)))
            axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axis.xaxis.set_minor_formatter(NullFormatter())
    axes[0].set_yticks(range(len(names)), [run.experiment.label(name) for name in names])
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper left", ncols=len(QUICK), frameon=False)
    return figure


def _panel(axis: Axes, run: Evidence, names: list[str], measure: Callable[[Outcome], float | None], by: float) -> None:
    for place in range(len(names)):
        axis.axhline(place, color=FAINT, linewidth=0.5, alpha=0.4, zorder=0)
    for aqm in reversed(QUICK):  # WEIR above the others
        found = [run.median(aqm, name, measure) if run.has(aqm, setting=name) else None for name in names]
        values = [math.nan if value is None else max(value * by, LEAST_MS if by == 1.0 else 0.0) for value in found]
        size = 8 if aqm == QUICK[0] else 6
        axis.plot(
            values,
            range(len(names)),
            MARKERS.get(aqm, "o"),
            color=colour(aqm),
            label=LABELS.get(aqm, aqm),
            markersize=size,
        )


FIGURES: dict[str, Drawing] = {
    "weir_grid": Drawing(
        "What people notice of a link",
        "A line for each testbed: by how much a call is delayed beyond its path (of a hundred packets, the slowest but "
        "one), the median time of a page where there are pages, how much of the link is used, and how much TCP had to "
        "send again.",
        _grid,
    ),
}
