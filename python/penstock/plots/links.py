"""The figure of links whose rate, delay or loss changes during a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure

from penstock.plots.style import CYCLE, STYLE

if TYPE_CHECKING:
    import pyarrow as pa

QUANTITIES = {"rate_bps": ("rate (Mbit/s)", 1e-6), "delay_s": ("delay (ms)", 1e3), "loss": ("loss", 1.0)}
MOST = 8  # largest number of links in one figure
Way = Mapping[str, Any]  # the columns of one direction of a link, by name
Links = dict[str, dict[str, Way]]  # directions by name of the link and name of the direction


def link_changes(table: pa.Table, links: Sequence[str], duration_s: float) -> Figure | None:
    """Draws those of rate, delay and loss which change, over time, as steps; returns `None` if nothing changes.

    `table` is the table `link_changes` of the run, and `links` are the names of the scenario's links.
    """
    ways = _ways(table, links)
    shown = [key for key in QUANTITIES if any(len(set(way[key])) > 1 for one in ways.values() for way in one.values())]
    if not shown:
        return None
    # The panels of a single link are in a column. Several links have a row each.
    several = min(len(ways), MOST)
    rows, columns = (len(shown), 1) if several == 1 else (several, len(shown))
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(10, 0.7 + 1.7 * rows), layout="constrained")
        panels = figure.subplots(rows, columns, sharex=True, squeeze=False)
        for index, (name, one) in enumerate(list(ways.items())[:MOST]):
            of_link = panels[:, 0] if several == 1 else panels[index]
            of_link[0].set_title(name, loc="left")
            for axis, key in zip(of_link, shown, strict=True):
                _steps(axis, one, key, duration_s)
            of_link[0 if several == 1 else -1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
        for axis in panels[-1]:
            axis.set_xlabel("time (s)")
        if len(ways) > MOST:
            figure.suptitle(f"The first {MOST} of {len(ways)} links", fontsize=9.5)
    return figure


def _steps(axis: Any, link: Mapping[str, Way], key: str, duration_s: float) -> None:
    label, scale = QUANTITIES[key]
    for direction, way in link.items():
        style: dict[str, Any] = (
            {"color": CYCLE[1], "linestyle": "--"} if direction == "reverse" else {"color": CYCLE[0]}
        )
        times, values = [*way["t_s"], duration_s], way[key] * scale
        axis.step(times, [*values, values[-1]], where="post", linewidth=1.3, label=direction, **style)
    axis.set(ylabel=label, xlim=(0, duration_s))
    if key != "delay_s":
        axis.set_ylim(0, None)


def _ways(table: pa.Table, names: Sequence[str]) -> Links:
    """Returns the directions of each link which change. One direction stands for both if they are equal."""
    import numpy as np

    columns = {name: table[name].to_numpy() for name in table.column_names}
    found: Links = {}
    for link in dict.fromkeys(columns["link"].tolist()):
        ways: dict[str, Way] = {}
        for reverse, direction in enumerate(("forward", "reverse")):
            rows = (columns["link"] == link) & (columns["reverse"] == reverse)
            if rows.any():
                ways[direction] = {key: columns[key][rows] for key in ("t_s", *QUANTITIES)}
        first, *others = ways.values()
        if others and all(np.array_equal(first[key], others[0][key]) for key in first):
            ways = {"both": first}
        found[names[link]] = ways
    return found
