"""The figures of `fq-minstrel-pie`."""

from __future__ import annotations

from penstock.papers._shared import flow_queueing_figures
from penstock.papers._shared.flow_queueing_figures import over_time
from penstock.papers.fq_minstrel_pie.runs import MIXES
from penstock.plots.kit import Drawing, Figure
from penstock.reproduce.results import Evidence


def _mix(run: Evidence) -> Figure:
    return over_time(run, [f"mix-{n}" for n in MIXES if f"mix-{n}" in run.settings])


FIGURES: dict[str, Drawing] = {
    **flow_queueing_figures.FIGURES,
    "fq_mix": Drawing(
        "TCP beside an unresponsive stream, at 10 Mbit/s",
        "Payload of each second: TCP flows thin, all of them together thick; grey: the UDP stream, which is "
        "on where the ground is grey. A second in which the gap after a loss is filled can deliver more "
        "than the link carried.",
        _mix,
    ),
}
