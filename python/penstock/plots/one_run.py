"""The figures of a single run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from penstock.plots.style import CYCLE, STYLE

if TYPE_CHECKING:
    import pyarrow as pa


def single(tables: dict[str, pa.Table], queues: Sequence[str]) -> dict[str, Figure]:
    """Draws the figures of one run from its per-second tables and the names of its queues."""
    with mpl.rc_context(STYLE):
        figures = {}
        if "flow_seconds" in tables and tables["flow_seconds"].num_rows:
            figures["goodput"] = _flow_lines(tables["flow_seconds"])
        if "queue_seconds" in tables and tables["queue_seconds"].num_rows:
            figures["queue"] = _queue_lines(tables["queue_seconds"], queues)
        return figures


def _flow_lines(table: pa.Table) -> Figure:
    """Draws goodput over time: a line for each flow if they are few, else their range and their median."""
    import numpy as np

    flows = np.unique(table["flow"].to_numpy())
    figure = Figure(figsize=(10, 3.2), layout="constrained")
    axis = figure.subplots()
    if len(flows) <= len(CYCLE):
        for index, flow in enumerate(flows):
            rows = table["flow"].to_numpy() == flow
            seconds, goodput = table["t_s"].to_numpy()[rows], table["goodput_bps"].to_numpy()[rows] / 1e6
            axis.plot(seconds, goodput, color=CYCLE[index], linewidth=1.3, label=f"flow {flow}")
        axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    else:
        seconds = np.unique(table["t_s"].to_numpy())
        by_second = [table["goodput_bps"].to_numpy()[table["t_s"].to_numpy() == t] / 1e6 for t in seconds]
        low, middle, high = (np.array([np.percentile(v, q) for v in by_second]) for q in (10, 50, 90))
        axis.fill_between(seconds, low, high, color=CYCLE[0], alpha=0.25, lw=0, label="p10 to p90 of flows")
        axis.plot(seconds, middle, color=CYCLE[0], linewidth=1.6, label="median flow")
        axis.legend(loc="upper right")
    axis.set(xlabel="time (s)", ylabel="goodput of a flow (Mbit/s)", ylim=(0, None))
    return figure


def _queue_lines(table: pa.Table, names: Sequence[str]) -> Figure:
    """Draws throughput and queueing delay of each bottleneck over time."""

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    for index, name in enumerate(names):
        rows = table["queue"].to_numpy() == index
        seconds = table["t_s"].to_numpy()[rows]
        style: dict[str, Any] = {"color": CYCLE[index % len(CYCLE)], "linewidth": 1.3, "label": name}
        above.plot(seconds, table["throughput_bps"].to_numpy()[rows] / 1e6, **style)
        below.plot(seconds, table["queue_delay_ms_mean"].to_numpy()[rows], **style)
    above.set(ylabel="throughput (Mbit/s)", ylim=(0, None))
    below.set(xlabel="time (s)", ylabel="time in the queue (ms)", ylim=(0, None))
    below.yaxis.set_major_locator(MaxNLocator(5))
    if len(names) > 1:
        above.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure
