"""What the figures of HFS share: curves over the buffer between its layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from penstock.papers._shared import hfs, schedulers
from penstock.plots.kit import LABELS, MARKERS, Axes, Figure, colour, mark_level
from penstock.reproduce import tempest
from penstock.reproduce.results import Evidence

_LINE = 0.022  # the height of a name on an axis of throughput

Read = Callable[[dict[str, Any]], float | None]


def _value(run: Evidence, alg: str, setting: str, read: Read) -> float | None:
    return run.cell_value((alg, hfs.FLOWS, setting), lambda outcome: read(outcome.summary))


def over_q(axis: Axes, run: Evidence, algs: Sequence[str], read: Read) -> None:
    """Draws a line over Q for each pair of schedulers."""
    for alg in algs:
        points = [(q, _value(run, alg, f"q-{q}", read)) for q in hfs.BUFFERS if f"q-{q}" in run.settings]
        known = [(q, y) for q, y in points if y is not None]
        xs, ys = [q for q, _ in known], [y for _, y in known]
        axis.plot(xs, ys, color=colour(alg), marker=MARKERS.get(alg, "o"), markersize=5, label=LABELS.get(alg, alg))


def levels(axis: Axes, run: Evidence, algs: Sequence[str], read: Read) -> None:
    """Draws a horizontal line for each scheduler without a second layer."""
    for alg in algs:
        level = _value(run, alg, hfs.ALONE, read)
        if level is not None:
            axis.axhline(level, color=colour(alg), linewidth=1.3, linestyle=(0, (6, 2)), label=LABELS.get(alg, alg))


def one(label: str) -> tuple[Figure, Axes]:
    """Creates a figure of one panel, with Q on its horizontal axis."""
    figure = Figure(figsize=(8.6, 3.4), layout="constrained")
    axis = figure.subplots()
    axis.set(xlabel="Q (packets)", ylabel=label)
    return figure, axis


def legend(axis: Axes) -> None:
    """Draws a legend beside the panel."""
    axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))


def report(key: str) -> Read:
    """Reads a number of the report."""
    return lambda summary: tempest.value(summary, key)


def _varied(axis: Axes, run: Evidence, alg: str, read: Read) -> None:
    """Thin lines for what a changed assumption makes of it, named at their ends; lines that meet share a place."""
    ends: dict[float, list[str]] = {}
    for variant in run.experiment.variants:
        runs = [o for o in run.variants if o.case.variant == variant.name and o.case.aqm == alg]
        by_q = {int(o.case.setting.removeprefix("q-")): read(o.summary) for o in runs if o.case.setting != hfs.ALONE}
        known = sorted((q, y) for q, y in by_q.items() if y is not None)
        if known:
            xs, ys = [q for q, _ in known], [y for _, y in known]
            axis.plot(xs, ys, color=colour(alg), linewidth=0.9, alpha=0.6)
            ends.setdefault(round(ys[-1], 2), []).append(variant.name)
    place = 0.0
    for y, names in sorted(ends.items()):
        place = max(y, place + _LINE)
        axis.annotate(", ".join(names), (max(hfs.BUFFERS), place), (4, 0), textcoords="offset points", fontsize=6.5)


def throughput(run: Evidence) -> Figure:
    """The normalized throughput over Q."""
    figure, axis = one("normalized throughput")
    _varied(axis, run, "hfs", report("throughput"))
    over_q(axis, run, [alg for alg in run.aqms if alg in hfs.LAYERS], report("throughput"))
    levels(axis, run, [alg for alg in ("qfq-plus", hfs.KNOWING) if alg in run.aqms], report("throughput"))
    mark_level([axis], schedulers.good_throughput(), "")
    mark_level([axis], schedulers.blind_throughput(), "")
    axis.set_ylim(0.4, 1.02)
    legend(axis)
    return figure
