"""One look for every figure: sober, safe for colour-blind readers, the same colour for the same discipline."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from penstock.reproduce.results import (
    Evidence,
    Measure,
    delivered_mbytes,
    dropped_mbytes,
    goodput_mbps,
    rtt_ms,
    worst_jain,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes

# Okabe and Ito's palette: distinct for every common kind of colour blindness.
COLOURS = {
    "droptail": "#6b6b6b",
    "ared": "#d55e00",
    "codel": "#0072b2",
    "green": "#009e73",
    "pink": "#cc79a7",
}
_CYCLE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#6b6b6b", "#b8a600")
_MARKERS = {"droptail": "s", "ared": "^", "codel": "D", "green": "v", "pink": "o"}
LABELS = {"droptail": "DropTail", "ared": "ARED", "codel": "CoDel", "green": "GREEN", "pink": "PINK"}
_INK, _FAINT, _LIMIT = "#222222", "#d9d9d9", "#8c2d04"

STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "axes.edgecolor": "#888888",
    "axes.labelcolor": _INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": "#e8e8e8",
    "grid.linewidth": 0.8,
    "xtick.color": "#444444",
    "ytick.color": "#444444",
    "xtick.major.size": 0,
    "legend.frameon": False,
    "svg.hashsalt": "penstock",  # the same figure is the same file
    "svg.fonttype": "path",
}


def colour(name: str, index: int = 0) -> str:
    """The colour of a discipline, wherever it appears."""
    return COLOURS.get(name, _CYCLE[index % len(_CYCLE)])


def save(figure: Figure, path: Path) -> None:
    """Writes `path.png` and `path.svg`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".png").write_bytes(_render(figure, "png"))
    path.with_suffix(".svg").write_bytes(_render(figure, "svg"))


def svg(figure: Figure) -> bytes:
    """The figure as SVG, for a page."""
    return _render(figure, "svg")


def _render(figure: Figure, kind: str) -> bytes:
    out = io.BytesIO()
    metadata = {"Date": None} if kind == "svg" else {"Software": None}
    with mpl.rc_context(STYLE):
        figure.savefig(out, format=kind, dpi=160, metadata=metadata, facecolor="white")
    return out.getvalue()


def reproduction(run: Evidence) -> dict[str, Figure]:
    """The figures of an experiment, by the names that its `figures` uses."""
    limit = run.experiment.goodput_limit_bps
    payload = run.experiment.payload_share
    with mpl.rc_context(STYLE):
        return {
            "goodput": _boxes(run, goodput_mbps, "goodput per second (Mbit/s)", (limit / 1e6, "limit"), floor=0),
            "rtt": _boxes(run, rtt_ms, "round trip time (ms)", (_smallest_rtt(run), "smallest"), floor=None),
            "fairness": _fairness(run),
            "data": _data(run, dropped_mbytes(payload), limit * run.duration_s / 8e6),
        }


def _smallest_rtt(run: Evidence) -> float:
    return min(run.value(aqm, n, rtt_ms("min")) for aqm in run.aqms for n in run.counts(aqm))


def _panels(run: Evidence, ylabel: str) -> tuple[Figure, list[Axes]]:
    """One panel for each discipline, all with the same axes."""
    figure = Figure(figsize=(10, 3.1), layout="constrained")
    axes = figure.subplots(1, len(run.aqms), sharey=True, squeeze=False)[0]
    for axis, aqm in zip(axes, run.aqms, strict=True):
        counts = run.counts(aqm)
        axis.set_title(LABELS.get(aqm, aqm), color=colour(aqm))
        axis.set_xticks(range(len(counts)), [str(n) for n in counts])
        axis.set_xlim(-0.6, len(counts) - 0.4)
    axes[0].set_ylabel(ylabel)
    figure.supxlabel("number of flows", fontsize=9.5, color=_INK)
    return figure, list(axes)


def _mark_level(axes: Sequence[Axes], level: float, label: str) -> None:
    """A dashed line across all panels, named once."""
    for axis in axes:
        axis.axhline(level, color=_LIMIT, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1.5)
    beside: dict[str, Any] = {"xytext": (4, 0), "textcoords": "offset points", "ha": "left", "va": "center"}
    here = (1.0, level)
    axes[-1].annotate(label, here, xycoords=("axes fraction", "data"), fontsize=8, color=_LIMIT, **beside)


def _boxes(run: Evidence, percentile: Any, ylabel: str, level: tuple[float, str], floor: float | None) -> Figure:
    """Boxes from the 10th to the 90th percentile with a line at the median."""
    figure, axes = _panels(run, ylabel)
    for axis, aqm in zip(axes, run.aqms, strict=True):
        for place, n in enumerate(run.counts(aqm)):
            low, middle, high = (run.value(aqm, n, percentile(p)) for p in ("p10", "p50", "p90"))
            _box(axis, place, low, middle, high, colour(aqm))
    if floor is not None:
        top = max(level[0], axes[0].get_ylim()[1])
        axes[0].set_ylim(floor, top * 1.08)
    else:
        bottom, top = axes[0].get_ylim()
        axes[0].set_ylim(min(bottom, level[0]) - 0.02 * (top - bottom), top)
    _mark_level(axes, *level)
    return figure


def _box(axis: Axes, place: float, low: float, middle: float, high: float, tint: str) -> None:
    axis.bar(place, high - low, 0.56, low, color=tint, alpha=0.3, edgecolor=tint, linewidth=1.0, zorder=2)
    # An outline keeps a box visible whose ends coincide.
    axis.bar(place, high - low, 0.56, low, fill=False, edgecolor=tint, linewidth=1.0, zorder=2.5)
    axis.hlines(middle, place - 0.28, place + 0.28, color=tint, linewidth=2.2, zorder=3)


def _fairness(run: Evidence) -> Figure:
    """Worst-case fairness as one line for each discipline."""
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
            "marker": _MARKERS.get(aqm, "o"),
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


def _data(run: Evidence, dropped: Measure, limit: float) -> Figure:
    """What arrived and, on top of it, what was dropped."""
    figure, axes = _panels(run, "payload (MB)")
    for axis, aqm in zip(axes, run.aqms, strict=True):
        counts = run.counts(aqm)
        good = [run.value(aqm, n, delivered_mbytes) for n in counts]
        lost = [run.value(aqm, n, dropped) for n in counts]
        axis.bar(range(len(counts)), good, 0.62, color=colour(aqm), alpha=0.55, zorder=2)
        axis.bar(range(len(counts)), lost, 0.62, good, color=_INK, zorder=2)
        for place, (arrived, gone) in enumerate(zip(good, lost, strict=True)):
            share = 100 * gone / arrived if arrived else 0.0
            at = (place, max(arrived + gone, limit))
            label = f"{share:.1f}" if gone else "0"
            axis.annotate(label, at, (0, 4), textcoords="offset points", ha="center", fontsize=7.5, color=_INK)
    axes[0].set_ylim(0, limit * 1.2)
    _mark_level(axes, limit, "limit")
    return figure


def single(tables: dict[str, pa.Table], queues: Sequence[str]) -> dict[str, Figure]:
    """The figures of one run, from its per-second tables and the names of its queues."""
    with mpl.rc_context(STYLE):
        figures = {}
        if "flow_seconds" in tables and tables["flow_seconds"].num_rows:
            figures["goodput"] = _flow_lines(tables["flow_seconds"])
        if "queue_seconds" in tables and tables["queue_seconds"].num_rows:
            figures["queue"] = _queue_lines(tables["queue_seconds"], queues)
        return figures


def _flow_lines(table: pa.Table) -> Figure:
    """Goodput over time: one line for each of a few flows, the range and the median of many."""
    import numpy as np

    flows = np.unique(table["flow"].to_numpy())
    figure = Figure(figsize=(10, 3.2), layout="constrained")
    axis = figure.subplots()
    if len(flows) <= len(_CYCLE):
        for index, flow in enumerate(flows):
            rows = table["flow"].to_numpy() == flow
            seconds, goodput = table["t_s"].to_numpy()[rows], table["goodput_bps"].to_numpy()[rows] / 1e6
            axis.plot(seconds, goodput, color=_CYCLE[index], linewidth=1.3, label=f"flow {flow}")
        axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    else:
        seconds = np.unique(table["t_s"].to_numpy())
        by_second = [table["goodput_bps"].to_numpy()[table["t_s"].to_numpy() == t] / 1e6 for t in seconds]
        low, middle, high = (np.array([np.percentile(v, q) for v in by_second]) for q in (10, 50, 90))
        axis.fill_between(seconds, low, high, color=_CYCLE[0], alpha=0.25, lw=0, label="p10 to p90 of flows")
        axis.plot(seconds, middle, color=_CYCLE[0], linewidth=1.6, label="median flow")
        axis.legend(loc="upper right")
    axis.set(xlabel="time (s)", ylabel="goodput of a flow (Mbit/s)", ylim=(0, None))
    return figure


def _queue_lines(table: pa.Table, names: Sequence[str]) -> Figure:
    """Throughput and queue of each bottleneck over time."""

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    for index, name in enumerate(names):
        rows = table["queue"].to_numpy() == index
        seconds = table["t_s"].to_numpy()[rows]
        style: dict[str, Any] = {"color": _CYCLE[index % len(_CYCLE)], "linewidth": 1.3, "label": name}
        above.plot(seconds, table["throughput_bps"].to_numpy()[rows] / 1e6, **style)
        below.plot(seconds, table["queue_bytes_max"].to_numpy()[rows] / 1e3, **style)
    above.set(ylabel="throughput (Mbit/s)", ylim=(0, None))
    below.set(xlabel="time (s)", ylabel="longest queue (kB)", ylim=(0, None))
    below.yaxis.set_major_locator(MaxNLocator(5))
    if len(names) > 1:
        above.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure
