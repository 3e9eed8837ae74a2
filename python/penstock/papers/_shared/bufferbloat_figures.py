"""What the figures of `modified-codel` and `minstrel-pie` share."""

from __future__ import annotations

from typing import Any

from penstock.plots.kit import LABELS, Axes, Figure, colour
from penstock.reproduce.results import Outcome


def panels(down: int, across: int, height: float, **shared: Any) -> tuple[Figure, list[list[Axes]]]:
    """A grid of panels, by rows."""
    figure = Figure(figsize=(10, height * down), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False, **shared)
    return figure, [list(row) for row in axes]


def look(aqm: str) -> dict[str, Any]:
    """The colour of a discipline, and its name in the legend."""
    return {"color": colour(aqm), "label": LABELS.get(aqm, aqm)}


def legend_right(axis: Axes) -> None:
    """A legend beside the panel."""
    axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))


def queue_of(outcome: Outcome) -> list[int]:
    """What the bottleneck carried in each second, kbit/s."""
    return [] if outcome.series is None else list(next(iter(outcome.series.queues.values())))
