"""What the figures of packet schedulers in TEMPEST share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from penstock.plots.kit import LABELS, MARKERS, Axes, Figure, colour
from penstock.reproduce import tempest
from penstock.reproduce.results import Evidence

Read = Callable[[dict[str, Any]], float | None]
THEORY: dict[str, Any] = {"linestyle": (0, (4, 3)), "linewidth": 0.9, "zorder": 1.5}


def median(run: Evidence, alg: str, setting: str, read: Read) -> float | None:
    """The median over seeds of a number of one test."""
    flows = run.experiment.test(setting).flows if isinstance(run.experiment, tempest.Tempest) else 0
    return run.cell_value((alg, flows, setting), lambda outcome: read(outcome.summary))


def report(key: str) -> Read:
    """Reads a number of the report."""
    return lambda summary: tempest.value(summary, key)


def over(
    axis: Axes, run: Evidence, algs: Sequence[str], points: Sequence[tuple[float, str]], read: Read
) -> dict[str, tuple[list[float], list[float]]]:
    """A line for each scheduler; what it drew."""
    drawn = {}
    for alg in algs:
        known = [(x, median(run, alg, setting, read)) for x, setting in points if setting in run.settings]
        xs, ys = [x for x, y in known if y is not None], [y for _, y in known if y is not None]
        axis.plot(xs, ys, color=colour(alg), marker=MARKERS.get(alg, "o"), markersize=5, label=LABELS.get(alg, alg))
        drawn[alg] = (xs, ys)
    return drawn


def one(height: float = 3.4) -> tuple[Figure, Axes]:
    """A single panel."""
    figure = Figure(figsize=(8.6, height), layout="constrained")
    return figure, figure.subplots()


def legend(axis: Axes) -> None:
    """A legend beside the panel."""
    axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
