"""The figures of experiments of the kind `sweep`, over the number of flows."""

from __future__ import annotations

from typing import Any

from penstock.plots.kit import INK, LABELS, MARKERS, Axes, Drawing, Figure, box, colour, mark_level
from penstock.reproduce.results import (
    Evidence,
    delivered_mbytes,
    dropped_mbytes,
    goodput_mbps,
    rtt_ms,
    worst_jain,
)


def _goodput(run: Evidence) -> Figure:
    limit = (run.experiment.goodput_limit_bps / 1e6, "limit")
    return _boxes(run, goodput_mbps, "goodput per second (Mbit/s)", limit, floor=0)


def _rtt(run: Evidence) -> Figure:
    return _boxes(run, rtt_ms, "round trip time (ms)", (_smallest_rtt(run), "smallest"), floor=None)


def _smallest_rtt(run: Evidence) -> float:
    return min(run.value(aqm, n, rtt_ms("min")) for aqm in run.aqms for n in run.counts(aqm))


def _panels(run: Evidence, ylabel: str) -> tuple[Figure, list[Axes]]:
    """Creates a panel for each discipline; all panels have the same axes."""
    figure = Figure(figsize=(10, 3.1), layout="constrained")
    axes = figure.subplots(1, len(run.aqms), sharey=True, squeeze=False)[0]
    for axis, aqm in zip(axes, run.aqms, strict=True):
        counts = run.counts(aqm)
        axis.set_title(LABELS.get(aqm, aqm), color=colour(aqm))
        axis.set_xticks(range(len(counts)), [str(n) for n in counts])
        axis.set_xlim(-0.6, len(counts) - 0.4)
    axes[0].set_ylabel(ylabel)
    figure.supxlabel("number of flows", fontsize=9.5, color=INK)
    return figure, list(axes)


def _boxes(run: Evidence, percentile: Any, ylabel: str, level: tuple[float, str], floor: float | None) -> Figure:
    """Draws boxes from the 10th to the 90th percentile with a line at the median."""
    figure, axes = _panels(run, ylabel)
    for axis, aqm in zip(axes, run.aqms, strict=True):
        for place, n in enumerate(run.counts(aqm)):
            low, middle, high = (run.value(aqm, n, percentile(p)) for p in ("p10", "p50", "p90"))
            box(axis, place, low, middle, high, colour(aqm))
    if floor is not None:
        top = max(level[0], axes[0].get_ylim()[1])
        axes[0].set_ylim(floor, top * 1.08)
    else:
        bottom, top = axes[0].get_ylim()
        axes[0].set_ylim(min(bottom, level[0]) - 0.02 * (top - bottom), top)
    mark_level(axes, *level)
    return figure


def _fairness(run: Evidence) -> Figure:
    """Draws worst-case fairness as one line for each discipline."""
    figure = Figure(figsize=(10, 3.4), layout="constrained")
    axis = figure.subplots()
    counts = run.counts()
    places = range(len(counts))
    for aqm in run.aqms:
        seeds = [run.values(aqm, n, worst_jain) for n in counts]
        middle = [run.value(aqm, n, worst_jain) for n in counts]
        if len(run.seeds) > 1:
            axis.fill_between(places, list(map(min, seeds)), list(map(max, seeds)), color=colour(aqm), alpha=0.15, lw=0)
        style: dict[str, Any] = {
            "marker": MARKERS.get(aqm, "o"),
            "markersize": 5.5,
            "linewidth": 2.6 if aqm == "pink" else 1.6,
        }
        axis.plot(places, middle, color=colour(aqm), label=LABELS.get(aqm, aqm), **style)
    axis.set_xticks(places, [str(n) for n in counts])
    axis.set_ylim(0, 1.03)
    axis.set_xlabel("number of flows")
    axis.set_ylabel("worst Jain index of any second")
    axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def _data(run: Evidence) -> Figure:
    """Draws the delivered data, and the dropped data above it."""
    dropped = dropped_mbytes(run.experiment.payload_share)
    limit = run.experiment.goodput_limit_bps * run.duration_s / 8e6
    figure, axes = _panels(run, "payload (MB)")
    for axis, aqm in zip(axes, run.aqms, strict=True):
        counts = run.counts(aqm)
        good = [run.value(aqm, n, delivered_mbytes) for n in counts]
        lost = [run.value(aqm, n, dropped) for n in counts]
        axis.bar(range(len(counts)), good, 0.62, color=colour(aqm), alpha=0.55, zorder=2)
        axis.bar(range(len(counts)), lost, 0.62, good, color=INK, zorder=2)
        for place, (arrived, gone) in enumerate(zip(good, lost, strict=True)):
            at = (place, max(arrived + gone, limit))
            label = "–" if not arrived else f"{100 * gone / arrived:.1f}" if gone else "0"
            axis.annotate(label, at, (0, 4), textcoords="offset points", ha="center", fontsize=7.5, color=INK)
    axes[0].set_ylim(0, limit * 1.2)
    mark_level(axes, limit, "limit")
    return figure


FIGURES: dict[str, Drawing] = {
    "goodput": Drawing(
        "Goodput",
        "Payload that reaches all receivers together in each second. A box spans the 10th to the 90th "
        "percentile, the thick line is the median, the dashed line the most that full frames can carry; a "
        "second in which the gap after a loss is filled can deliver more than the link carried in it. "
        "Higher and flatter is better.",
        _goodput,
    ),
    "rtt": Drawing(
        "Round trip time",
        "Every sample of every flow. A box spans the 10th to the 90th percentile, the thick line is the "
        "median; what lies above the dashed line, the smallest sample of all runs, was spent in the queue. "
        "Lower and flatter is better.",
        _rtt,
    ),
    "fairness": Drawing(
        "Fairness",
        "Jain's index of the flows' goodput in each second; shown is the worst second of a run after its "
        "warm-up. 1 means that all flows get the same.",
        _fairness,
    ),
    "data": Drawing(
        "Data carried and dropped",
        "Payload that arrived in the whole run, with the dropped payload in black on top of it. The number "
        "above a bar is the dropped payload in percent of what arrived, the dashed line the most that the "
        "link can carry.",
        _data,
    ),
}
