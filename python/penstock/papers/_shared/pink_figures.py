"""What the figures of PINK's further experiments share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.plots.kit import CYCLE, INK, LABELS, Axes, Figure
from penstock.reproduce.results import Evidence, Outcome


def grid(count: int, across: int, height: float, *, sharey: bool = True) -> tuple[Figure, list[Axes]]:
    """Panels in rows of `across`; places that are left over stay empty."""
    down = -(-count // across)
    figure = Figure(figsize=(10, height * down), layout="constrained")
    axes = figure.subplots(down, across, sharex=True, sharey=sharey, squeeze=False)
    flat = [axis for row in axes for axis in row]
    for axis in flat[count:]:
        axis.set_axis_off()
    for axis in flat[max(0, count - across) : count]:
        axis.tick_params(labelbottom=True)
    return figure, flat


def _legend(axes: Sequence[Axes], used: int, **place: Any) -> None:
    """In the first empty panel, or right of the last."""
    handles, labels = axes[0].get_legend_handles_labels()
    if used < len(axes):
        axes[used].legend(handles, labels, loc="center left", **place)
    else:
        axes[used - 1].legend(handles, labels, loc="center left", bbox_to_anchor=(1.0, 0.5), **place)


def _flow_lines(axis: Axes, outcome: Outcome, names: Sequence[str]) -> None:
    """Goodput of each flow over time, and of all together above them."""
    series = outcome.series
    if series is None:
        return
    seconds = range(series.seconds)
    axis.plot(seconds, [v / 1e3 for v in series.total()], color=INK, linewidth=0.9, label="all together")
    for index, (flow, name) in enumerate(zip(series.flows, names, strict=True)):
        active = [k for k in seconds if flow[k] > 0]
        inside = range(active[0], active[-1] + 1) if active else range(0)
        axis.plot(inside, [flow[k] / 1e3 for k in inside], color=CYCLE[index], linewidth=1.2, label=name)


def time_panels(run: Evidence, aqms: Sequence[str], setting: str, names: Sequence[str], across: int) -> Figure:
    """Goodput over time, with a panel for each discipline."""
    figure, axes = grid(len(aqms), across, 2.5)
    for axis, aqm in zip(axes, aqms, strict=False):
        _flow_lines(axis, run.runs(aqm, setting=setting)[0], names)
        axis.set_title(LABELS.get(aqm, aqm), color=INK)
    # In the second in which TCP fills the gap after a loss, it delivers so much that the scale would hide all others.
    axes[0].set_ylim(0, 1.4 * run.experiment.goodput_limit_bps / 1e6)
    _legend(axes, len(aqms))
    figure.supxlabel("time (s)", fontsize=9.5, color=INK)
    figure.supylabel("goodput (Mbit/s)", fontsize=9.5, color=INK)
    return figure
