"""The figure of `run --trace tcp`: windows, round trips, pace, states and queues over time, one below the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from penstock.plots.style import CYCLE, FAINT, INK, LIMIT, STYLE
from penstock.tcp_trace import of_flow

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes

STATES = {
    "slow_start": ("slow start", "#56b4e9"),
    "congestion_avoidance": ("congestion avoidance", FAINT),
    "recovery": ("recovery", "#e69f00"),
    "loss": ("after a timeout", "#d55e00"),
}


def traced(flows: pa.Table, queues: pa.Table, names: dict[int, str], bottlenecks: Sequence[str]) -> Figure:
    """Draws the traced flows and queues; `names` has the label of each flow by its number."""
    paced = flows["pacing_bps"].null_count < len(flows)
    heights = [3.0, 1.6, 1.6, *([1.4] if paced else []), 0.35 + 0.22 * len(names), 1.8]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(10, sum(heights) + 0.6), layout="constrained")
        axes = list(figure.subplots(len(heights), 1, sharex=True, height_ratios=heights))
        window, flight, rtt, *rest = axes
        _lines(window, flows, names, "cwnd_bytes", 1e3, "window (kB)")
        _thresholds(window, flows, names)
        _lines(flight, flows, names, "in_flight_bytes", 1e3, "in flight (kB)")
        _lines(rtt, flows, names, "srtt_ms", 1.0, "smoothed RTT (ms)")
        if paced:
            _lines(rest[0], flows, names, "pacing_bps", 1e6, "pace (Mbit/s)")
        _states(axes[-2], flows, names)
        _queues(axes[-1], queues, bottlenecks)
        axes[-1].set_xlabel("time (s)")
        window.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def _open(table: pa.Table, flow: int) -> pa.Table:
    import pyarrow.compute as pc

    rows = of_flow(table, flow)
    return rows.filter(pc.not_equal(rows["state"].cast("string"), "closed"))


def _lines(axis: Axes, flows: pa.Table, names: dict[int, str], column: str, unit: float, label: str) -> None:
    for index, (flow, name) in enumerate(names.items()):
        rows = _open(flows, flow)
        values = rows[column].to_numpy().astype("float64") / unit
        axis.plot(rows["t_s"].to_numpy(), values, color=CYCLE[index % len(CYCLE)], linewidth=1.2, label=name)
    axis.set(ylabel=label)
    axis.set_ylim(bottom=0)


def _thresholds(axis: Axes, flows: pa.Table, names: dict[int, str]) -> None:
    top = axis.get_ylim()[1]
    for index, flow in enumerate(names):
        rows = _open(flows, flow)
        values = rows["ssthresh_bytes"].to_numpy().astype("float64") / 1e3
        look: dict[str, Any] = {"linewidth": 0.9, "linestyle": (0, (2, 2)), "alpha": 0.8}
        axis.plot(rows["t_s"].to_numpy(), values, color=CYCLE[index % len(CYCLE)], **look)
    axis.plot([], [], color=INK, linewidth=0.9, linestyle=(0, (2, 2)), label="ssthresh")
    axis.set_ylim(0, top)


def _states(axis: Axes, flows: pa.Table, names: dict[int, str]) -> None:
    for place, flow in enumerate(names):
        rows = of_flow(flows, flow)
        times, states = rows["t_s"].to_pylist(), rows["state"].to_pylist()
        for begin, end, state in _spells(times, states):
            if state in STATES:
                axis.barh(-place, end - begin, 0.8, begin, color=STATES[state][1], linewidth=0)
    axis.set_yticks([-place for place in range(len(names))], [str(flow) for flow in names])
    axis.set_ylabel("state", rotation=0, ha="right", va="center")
    axis.grid(visible=False)
    handles = [Patch(color=tint, label=text) for text, tint in STATES.values()]
    axis.legend(handles=handles, loc="center left", bbox_to_anchor=(1.0, 0.5))


def _spells(times: Sequence[float], states: Sequence[str]) -> list[tuple[float, float, str]]:
    """Returns start, end and state of each interval of equal samples; the last one ends with its last sample."""
    begins = [i for i in range(len(states)) if i == 0 or states[i] != states[i - 1]]
    ends = [*begins[1:], len(states) - 1]
    return [(times[begin], times[end], states[begin]) for begin, end in zip(begins, ends, strict=True)]


def _queues(axis: Axes, queues: pa.Table, names: Sequence[str]) -> None:
    import numpy as np

    for index, name in enumerate(names):
        mine = queues["queue"].to_numpy() == index
        times = queues["t_s"].to_numpy()[mine]
        tint = INK if index == 0 else CYCLE[(index - 1) % len(CYCLE)]
        axis.plot(times, queues["queue_bytes"].to_numpy()[mine] / 1e3, color=tint, linewidth=0.9, label=name)
        dropped = queues["dropped_packets"].to_numpy()[mine].astype("int64")
        when = times[np.diff(dropped, prepend=0) > 0]
        axis.plot(when, np.zeros_like(when), "|", color=LIMIT, markersize=9, label="drops" if index == 0 else None)
    axis.set(ylabel="queue (kB)")
    axis.set_ylim(bottom=0)
    axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
