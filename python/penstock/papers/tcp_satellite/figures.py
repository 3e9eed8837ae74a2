"""Figures of TCP over a satellite link."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.papers.tcp_satellite.measures import goodput_limit_kbps
from penstock.papers.tcp_satellite.runs import NAMES, SIX, SIX_SETTING, THREE
from penstock.plots.kit import CYCLE, INK, Axes, Drawing, Figure, mark_level
from penstock.reproduce.results import Evidence, Outcome
from penstock.reproduce.seconds import series_of


def _lines(axis: Axes, outcome: Outcome, names: Sequence[str]) -> None:
    """Each flow from its start to its end."""
    rates = series_of(outcome).flows
    for index, (flow, name) in enumerate(zip(rates, names, strict=True)):
        busy = [k for k, rate in enumerate(flow) if rate > 0]
        seconds = range(busy[0], busy[-1] + 1) if busy else range(0)
        axis.plot(seconds, [flow[k] / 1e3 for k in seconds], color=CYCLE[index], linewidth=1.0, label=name)
    axis.set_ylim(0, 1.5 * goodput_limit_kbps(outcome) / 1e3)


def _three(run: Evidence) -> Figure:
    """A row for each buffer, a column for each control."""
    figure = Figure(figsize=(10, 4.8), layout="constrained")
    axes = figure.subplots(2, len(THREE), sharex=True, sharey=True)
    for row, buffer in zip(axes, ("large", "standard"), strict=True):
        for axis, cc in zip(row, THREE, strict=True):
            outcome = run.runs("droptail", setting=f"{cc}-{buffer}")[0]
            _lines(axis, outcome, ("from 0 s", "from 10 s", "from 20 s"))
            axis.set_title(f"{NAMES[cc]}, {buffer} buffer", color=INK)
        mark_level(row, goodput_limit_kbps(outcome) / 1e3, "all of the link")
    axes[0][-1].legend(loc="center left", bbox_to_anchor=(1.0, 0.3))
    figure.supxlabel("time (s)", fontsize=9.5, color=INK)
    figure.supylabel("goodput (Mbit/s)", fontsize=9.5, color=INK)
    return figure


def _six(run: Evidence) -> Figure:
    figure = Figure(figsize=(10, 3.2), layout="constrained")
    axis = figure.subplots()
    outcome = run.runs("droptail", setting=SIX_SETTING)[0]
    _lines(axis, outcome, [NAMES[cc] for cc in SIX])
    mark_level([axis], goodput_limit_kbps(outcome) / 1e3, "all of the link")
    axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.3))
    axis.set_xlabel("time (s)")
    axis.set_ylabel("goodput (Mbit/s)")
    return figure


FIGURES: dict[str, Drawing] = {
    "sat_three": Drawing(
        "Three transfers of 5 MB",
        "Payload of each second. A large buffer holds 4 MB, a standard one the bandwidth-delay product of 75 kB.",
        _three,
    ),
    "sat_six": Drawing(
        "Six controls, each with a transfer of 5 MB",
        "Payload of each second; the flows begin 3 s apart, in the order of the legend. 2 Mbit/s, a buffer of 4 MB.",
        _six,
    ),
}
