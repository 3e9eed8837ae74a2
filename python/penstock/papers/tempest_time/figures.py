"""The figures of `tempest-time`."""

from __future__ import annotations

from typing import Any

from penstock.papers._shared.tempest_figures import median, report
from penstock.papers.tempest_time.runs import FLOW_SETS
from penstock.plots.kit import INK, LABELS, Drawing, Figure, colour
from penstock.reproduce.results import Evidence


def _bars(run: Evidence, pattern: str) -> Figure:
    """Draws groups of bars: the time of the harness in a light colour, and above it the time of the scheduler."""
    figure = Figure(figsize=(10, 3.4), layout="constrained")
    axis = figure.subplots()
    sets = [name for name in FLOW_SETS if f"{pattern}-{name}" in run.settings]
    width = 0.8 / len(run.aqms)
    for index, alg in enumerate(run.aqms):
        for place, name in enumerate(sets):
            at = place + (index - (len(run.aqms) - 1) / 2) * width
            whole = median(run, alg, f"{pattern}-{name}", report("ns_per_packet")) or 0.0
            bare = min(whole, median(run, alg, f"{pattern}-{name}", report("ns_harness")) or 0.0)
            axis.bar(at, bare, 0.92 * width, color=colour(alg), alpha=0.35)
            label = LABELS.get(alg, alg) if place == 0 else None
            axis.bar(at, whole - bare, 0.92 * width, bare, color=colour(alg), label=label)
            offset: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "fontsize": 7.5, "color": INK}
            axis.annotate(f"{whole:.0f}", (at, whole), (0, 2), **offset)
    axis.set_xticks(range(len(sets)), sets)
    axis.set_ylabel("ns for an enqueue and a dequeue")
    axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def _smooth(run: Evidence) -> Figure:
    return _bars(run, "smooth")


def _bursty(run: Evidence) -> Figure:
    return _bars(run, "bursty")


FIGURES: dict[str, Drawing] = {
    "tempest_smooth": Drawing(
        "Smooth arrivals",
        "Time of an enqueue and a dequeue of one packet, the least of the repetitions. The light part of a "
        "bar is the harness, which takes as long without a scheduler; what is above it is the scheduler. "
        "Times of two machines cannot be compared, their ratios can.",
        _smooth,
    ),
    "tempest_bursty": Drawing(
        "Arrivals in bursts",
        "The same when a flow gets 1 to 2 packets times its weight at once.",
        _bursty,
    ),
}
