"""How the links of a run changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure

from penstock.plots.style import CYCLE, STYLE

if TYPE_CHECKING:
    import pyarrow as pa

QUANTITIES = {"rate_bps": ("rate (Mbit/s)", 1e-6), "delay_s": ("delay (ms)", 1e3), "loss": ("loss", 1.0)}
Lines = dict[str, dict[str, Any]]  # by label: the columns of one direction of a link


def link_changes(table: pa.Table, links: Sequence[str], duration_s: float) -> Figure | None:
    """Rate, delay and loss over time, as steps; only what changes. Nothing if nothing does.

    `table` is the run's `link_changes`, `links` are the names of the scenario's links.
    """
    lines = _lines(table, links)
    shown = {key: shape for key, shape in QUANTITIES.items() if any(len(set(one[key])) > 1 for one in lines.values())}
    if not shown:
        return None
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(10, 0.7 + 1.7 * len(shown)), layout="constrained")
        panels = figure.subplots(len(shown), 1, sharex=True, squeeze=False)[:, 0]
        for axis, (key, (label, scale)) in zip(panels, shown.items(), strict=True):
            for colour, (name, one) in zip(CYCLE, lines.items(), strict=False):
                values = one[key] * scale
                times = [*one["t_s"], duration_s]
                axis.step(times, [*values, values[-1]], where="post", color=colour, linewidth=1.3, label=name)
            axis.set(ylabel=label, xlim=(0, duration_s))
            if key != "delay_s":
                axis.set_ylim(0, None)
        panels[-1].set_xlabel("time (s)")
        more = len(lines) - len(CYCLE)
        title = f"{more} more are not shown" if more > 0 else None
        panels[0].legend(loc="center left", bbox_to_anchor=(1.0, 0.5), title=title)
    return figure


def _lines(table: pa.Table, links: Sequence[str]) -> Lines:
    """Each direction that changes; one line for both if they are equal."""
    import numpy as np

    columns = {name: table[name].to_numpy() for name in table.column_names}
    lines: Lines = {}
    for link in dict.fromkeys(columns["link"].tolist()):
        ways = []
        for reverse in (0, 1):
            rows = (columns["link"] == link) & (columns["reverse"] == reverse)
            ways.append({key: columns[key][rows] for key in ("t_s", *QUANTITIES)})
        forward, back = ways
        if all(np.array_equal(forward[key], back[key]) for key in forward):
            ways = [forward]
        names = [links[link], f"{links[link]}, reverse"]
        lines |= {name: way for name, way in zip(names, ways, strict=False) if len(way["t_s"])}
    return lines
