"""What the figures of cooperative control share."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.plots.kit import CYCLE, LIMIT, Axes, Figure
from penstock.reproduce.results import Outcome
from penstock.reproduce.seconds import series_of

RIGHT = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}


def row(panels: int, titles: Sequence[str], height: float = 2.9) -> tuple[Figure, list[Axes]]:
    """Panels beside each other, with their titles."""
    figure = Figure(figsize=(10, height), layout="constrained")
    axes = list(figure.subplots(1, panels, sharey=True, squeeze=False)[0])
    for axis, title in zip(axes, titles, strict=True):
        axis.set_title(title)
    return figure, axes


def goodput(axis: Axes, outcome: Outcome, names: Sequence[str] = (), thick: Sequence[int] = ()) -> None:
    """Each flow's payload over the seconds."""
    for flow, kbps in enumerate(series_of(outcome).flows):
        label = names[flow] if flow < len(names) else None
        tint = LIMIT if flow in thick else CYCLE[flow % len(CYCLE)]
        axis.plot([v / 1e3 for v in kbps], color=tint, linewidth=1.8 if flow in thick else 1.0, label=label)
    axis.set_ylim(0, None)
    axis.set_xlabel("time (s)")
