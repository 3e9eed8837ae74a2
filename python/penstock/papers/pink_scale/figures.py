"""The figures of `pink-scale`."""

from __future__ import annotations

from penstock.papers.pink_scale.columns import packet_ns
from penstock.plots.kit import Drawing, Figure, colour
from penstock.reproduce.results import Evidence


def _scale(run: Evidence) -> Figure:
    figure = Figure(figsize=(8, 3.2), layout="constrained")
    axis = figure.subplots()
    for aqm in run.aqms:
        cells = [cell for cell in run.cells if cell[0] == aqm]
        values = [run.cell_value(cell, packet_ns) or 0.0 for cell in cells]
        axis.plot([flows for _, flows, _ in cells], values, "o-", color=colour(aqm), label=aqm)
    axis.set(xscale="log", xlabel="flows", ylabel="ns of a run for each packet", ylim=(0, None))
    axis.legend()
    return figure


FIGURES: dict[str, Drawing] = {
    "scale": Drawing(
        "What a packet costs, by the number of flows",
        "Processor time of whole runs for each data packet, TCP and the simulator included; what PINK adds is the "
        "distance to drop-tail.",
        _scale,
    ),
}
