"""Figures of packet schedulers in TEMPEST."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure

from penstock.plots.style import INK, LABELS, LIMIT, MARKERS, STYLE, colour, mark_level
from penstock.reproduce import tempest
from penstock.reproduce.results import Evidence

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Read = Callable[[dict[str, Any]], float | None]
_THEORY: dict[str, Any] = {"linestyle": (0, (4, 3)), "linewidth": 0.9, "zorder": 1.5}


def _median(run: Evidence, alg: str, setting: str, read: Read) -> float | None:
    flows = run.experiment.test(setting).flows if isinstance(run.experiment, tempest.Tempest) else 0
    return run.cell_value((alg, flows, setting), lambda outcome: read(outcome.summary))


def _report(key: str) -> Read:
    return lambda summary: tempest.value(summary, key)


def _top(key: str) -> Read:
    return lambda summary: tempest.top(summary, key)


def _good_t_wfi(summary: dict[str, Any]) -> float | None:
    return tempest.good(summary, "t_wfi_ms")


def _bars(run: Evidence, pattern: str) -> Figure:
    """Groups of bars; the harness light, the scheduler on top."""
    figure = Figure(figsize=(10, 3.4), layout="constrained")
    axis = figure.subplots()
    sets = [name for name in tempest.FLOW_SETS if f"{pattern}-{name}" in run.settings]
    width = 0.8 / len(run.aqms)
    for index, alg in enumerate(run.aqms):
        for place, name in enumerate(sets):
            at = place + (index - (len(run.aqms) - 1) / 2) * width
            whole = _median(run, alg, f"{pattern}-{name}", _report("ns_per_packet")) or 0.0
            bare = min(whole, _median(run, alg, f"{pattern}-{name}", _report("ns_harness")) or 0.0)
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


def _over(
    axis: Axes, run: Evidence, algs: Sequence[str], points: Sequence[tuple[float, str]], read: Read
) -> dict[str, tuple[list[float], list[float]]]:
    """A line for each scheduler; what it drew."""
    drawn = {}
    for alg in algs:
        known = [(x, _median(run, alg, setting, read)) for x, setting in points if setting in run.settings]
        xs, ys = [x for x, y in known if y is not None], [y for _, y in known if y is not None]
        axis.plot(xs, ys, color=colour(alg), marker=MARKERS.get(alg, "o"), markersize=5, label=LABELS.get(alg, alg))
        drawn[alg] = (xs, ys)
    return drawn


def _one(height: float = 3.4) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(8.6, height), layout="constrained")
    return figure, figure.subplots()


def _legend(axis: Axes) -> None:
    axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))


def fitted(xs: Sequence[float], ys: Sequence[float]) -> tuple[float, float]:
    """a and b of a + b log2(x) with the least squares."""
    logs = [math.log2(x) for x in xs]
    mean_x, mean_y = sum(logs) / len(logs), sum(ys) / len(ys)
    spread = sum((x - mean_x) ** 2 for x in logs)
    b = sum((x - mean_x) * (y - mean_y) for x, y in zip(logs, ys, strict=True)) / spread if spread else 0.0
    return mean_y - b * mean_x, b


def _growth(run: Evidence) -> Figure:
    figure, axis = _one()
    points = [(float(n), f"n-{n}") for n in tempest.COUNTS]
    drawn = _over(axis, run, run.aqms, points, _report("ns_scheduler"))
    xs, ys = drawn["wf2q-plus"]
    if len(xs) > 1:
        a, b = fitted(xs, ys)
        axis.plot(xs, [a + b * math.log2(x) for x in xs], color=LIMIT, label="a + b log₂ n", **_THEORY)
    axis.set_xscale("log")
    axis.set(xlabel="number of flows", ylabel="ns of the scheduler alone", ylim=(0, None))
    _legend(axis)
    return figure


def _weights(run: Evidence, read: Read, label: str) -> tuple[Figure, Axes]:
    figure, axis = _one()
    _over(axis, run, run.aqms, [(float(w), f"w-{w}") for w in tempest.WEIGHTS], read)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set(xlabel="weight of the heavy flow beside 100 of weight 1", ylabel=label)
    return figure, axis


def _bwfi(run: Evidence) -> Figure:
    figure, axis = _weights(run, _top("b_wfi_packets"), "B-WFI of the heavy flow (packets)")
    for alg in run.aqms:
        bounds = [tempest.b_wfi_bound(alg, w) for w in tempest.WEIGHTS]
        known = [bound for bound in bounds if bound is not None]
        if len(known) == len(tempest.WEIGHTS):
            axis.plot(tempest.WEIGHTS, known, color=colour(alg), label=f"bound, {LABELS.get(alg, alg)}", **_THEORY)
    _legend(axis)
    return figure


def _delay(run: Evidence) -> Figure:
    figure, axis = _weights(run, _top("max_delay_dequeues"), "longest wait (departures)")
    _legend(axis)
    return figure


def _twfi(run: Evidence) -> Figure:
    figure, axis = _one()
    _over(axis, run, ["hfs"], [(float(q), f"q-{q}") for q in tempest.BUFFERS], _good_t_wfi)
    for alg in ("drr", "wf2q-plus"):
        level = _median(run, alg, tempest.WIRED, _good_t_wfi)
        if level is not None:
            axis.axhline(level, color=colour(alg), linewidth=1.3, label=LABELS[alg])
            bound = tempest.t_wfi_bound_ms(alg, 20)
            axis.axhline(bound, color=colour(alg), label=f"bound, {LABELS[alg]}", **_THEORY)
    axis.set_yscale("symlog", linthresh=10)  # a packet that is early has less than 0
    axis.set(xlabel="Q (packets)", ylabel="T-WFI of weight 20, good stations (ms)")
    _legend(axis)
    return figure


def _throughput(run: Evidence) -> Figure:
    figure, axis = _one()
    algs = [alg for alg in run.aqms if alg in tempest.DOUBLE]
    _over(axis, run, algs, [(float(q), f"q-{q}") for q in tempest.BUFFERS], _report("throughput"))
    if "steps" in run.varied:
        points = [(float(q), f"q-{q}") for q in tempest.BUFFERS]
        _over(axis, run.varied["steps"], ["hfs"], points, _report("throughput"))
        axis.lines[-1].set(linestyle=":", marker="", label="HFS, losses in equal steps")
    level = _median(run, "w2f2q", "integrated", _report("throughput"))
    if level is not None:
        axis.axhline(level, color=colour("w2f2q"), linewidth=1.3, label=LABELS["w2f2q"])
    mark_level([axis], tempest.good_throughput(), "")
    mark_level([axis], tempest.blind_throughput(), "")
    axis.set(xlabel="Q (packets)", ylabel="normalized throughput", ylim=(0.4, 1.02))
    _legend(axis)
    return figure


_DRAWERS: dict[str, Callable[[Evidence], Figure]] = {
    "tempest_smooth": _smooth,
    "tempest_bursty": _bursty,
    "tempest_growth": _growth,
    "tempest_bwfi": _bwfi,
    "tempest_delay": _delay,
    "tempest_twfi": _twfi,
    "tempest_throughput": _throughput,
}


def drawn(run: Evidence) -> dict[str, Figure]:
    """The figures that the experiment names."""
    with mpl.rc_context(STYLE):
        return {name: _DRAWERS[name](run) for name in run.experiment.figures}


DRAWN = {experiment.name: drawn for experiment in tempest.ALL_TEMPEST}
