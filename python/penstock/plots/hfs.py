"""Figures of HFS over the buffer between its layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure

from penstock.plots.style import LABELS, MARKERS, STYLE, colour, mark_level
from penstock.reproduce import hfs, tempest
from penstock.reproduce.results import Evidence

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LINE = 0.022  # the height of a name on an axis of throughput

Read = Callable[[dict[str, Any]], float | None]


def _value(run: Evidence, alg: str, setting: str, read: Read) -> float | None:
    return run.cell_value((alg, hfs.FLOWS, setting), lambda outcome: read(outcome.summary))


def _over_q(axis: Axes, run: Evidence, algs: Sequence[str], read: Read) -> None:
    """A line for each pair of schedulers, over Q."""
    for alg in algs:
        points = [(q, _value(run, alg, f"q-{q}", read)) for q in hfs.BUFFERS if f"q-{q}" in run.settings]
        known = [(q, y) for q, y in points if y is not None]
        xs, ys = [q for q, _ in known], [y for _, y in known]
        axis.plot(xs, ys, color=colour(alg), marker=MARKERS.get(alg, "o"), markersize=5, label=LABELS.get(alg, alg))


def _levels(axis: Axes, run: Evidence, algs: Sequence[str], read: Read) -> None:
    """A level line for each scheduler without a second layer."""
    for alg in algs:
        level = _value(run, alg, hfs.ALONE, read)
        if level is not None:
            axis.axhline(level, color=colour(alg), linewidth=1.3, linestyle=(0, (6, 2)), label=LABELS.get(alg, alg))


def _one(label: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(8.6, 3.4), layout="constrained")
    axis = figure.subplots()
    axis.set(xlabel="Q (packets)", ylabel=label)
    return figure, axis


def _legend(axis: Axes) -> None:
    axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))


def _report(key: str) -> Read:
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


def _throughput(run: Evidence) -> Figure:
    figure, axis = _one("normalized throughput")
    _varied(axis, run, "hfs", _report("throughput"))
    _over_q(axis, run, [alg for alg in run.aqms if alg in hfs.LAYERS], _report("throughput"))
    _levels(axis, run, [alg for alg in ("qfq-plus", hfs.KNOWING) if alg in run.aqms], _report("throughput"))
    mark_level([axis], tempest.good_throughput(), "")
    mark_level([axis], tempest.blind_throughput(), "")
    axis.set_ylim(0.4, 1.02)
    _legend(axis)
    return figure


def _guarantees(run: Evidence) -> Figure:
    figure, axis = _one("T-WFI in good condition (ms)")
    _over_q(axis, run, ["hfs"], hfs.good_twfi_ms)
    _levels(axis, run, ["drr", "wf2q-plus"], hfs.good_twfi_ms)
    axis.set_yscale("symlog", linthresh=1)
    _legend(axis)
    return figure


def _delay(run: Evidence) -> Figure:
    figure, axis = _one("longest wait (departures)")
    _over_q(axis, run, run.aqms, hfs.best_delay)
    axis.set_ylim(0, None)
    _legend(axis)
    return figure


def _time(run: Evidence) -> Figure:
    figure, axis = _one("ns of the schedulers alone")
    _over_q(axis, run, [alg for alg in run.aqms if alg in hfs.LAYERS], _report("ns_scheduler"))
    _levels(axis, run, ["drr", "wf2q-plus"], _report("ns_scheduler"))
    axis.set_ylim(0, None)
    _legend(axis)
    return figure


_DRAWERS: dict[str, Callable[[Evidence], Figure]] = {
    "hfs_throughput": _throughput,
    "hfs_guarantees": _guarantees,
    "hfs_mac_throughput": _throughput,
    "hfs_mac_delay": _delay,
    "hfs_time": _time,
}


def drawn(run: Evidence) -> dict[str, Figure]:
    """The figures that the experiment names."""
    with mpl.rc_context(STYLE):
        return {name: _DRAWERS[name](run) for name in run.experiment.figures}


DRAWN = {experiment.name: drawn for experiment in hfs.ALL_HFS}
