"""The figures of `pink-rtt`."""

from __future__ import annotations

from penstock.papers._shared.pink_figures import time_panels
from penstock.plots.kit import CYCLE, FAINT, INK, LABELS, Drawing, Figure
from penstock.reproduce import columns
from penstock.reproduce.results import Evidence

_RTTS = ("100 ms", "150 ms", "200 ms", "250 ms")


def _ends(run: Evidence) -> Figure:
    """Draws the completion time of each flow under each discipline."""
    figure = Figure(figsize=(10, 0.5 * len(run.aqms) + 1.4), layout="constrained")
    axis = figure.subplots()
    for place, aqm in enumerate(run.aqms):
        outcome = run.runs(aqm)[0]
        axis.axhline(place, color=FAINT, linewidth=1, zorder=1)
        for flow, end in enumerate(columns.ends_s(outcome)):
            late = end is None
            at = run.duration_s if end is None else end
            axis.plot(at, place, "x" if late else "o", color=CYCLE[flow], markersize=8, markeredgewidth=2, zorder=3)
    for flow, name in enumerate(_RTTS):
        axis.plot([], [], "o", color=CYCLE[flow], label=name)
    axis.plot([], [], "x", color=INK, markeredgewidth=2, label="not by the end")
    axis.set_yticks(range(len(run.aqms)), [LABELS.get(aqm, aqm) for aqm in run.aqms])
    axis.set(xlabel="time at which all 80 MB of a flow had arrived (s)", ylim=(len(run.aqms) - 0.5, -0.5))
    axis.grid(False)
    axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


FIGURES: dict[str, Drawing] = {
    "shares": Drawing(
        "Goodput of four flows",
        "80 MB each, begun 25 s apart, the shortest round trip first. Coloured: payload of each flow in "
        "each second; dark: of all together. Equal shares lie on each other, whatever the round trip time. "
        "Seconds above the frame are those in which the gap after a loss is filled.",
        lambda run: time_panels(run, run.aqms, "", _RTTS, 3),
    ),
    "ends": Drawing(
        "When the transfers were complete",
        "Each mark is a flow; a cross is one that was not complete when the run ended. Further left is "
        "better, and so is closer together: 320 MB take 269 s of the link at least.",
        _ends,
    ),
}
