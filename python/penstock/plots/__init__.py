"""Every figure. This is the only package that touches matplotlib."""

from __future__ import annotations

from matplotlib.figure import Figure

from penstock.plots import cooperation, ern, flow_queueing, friendliness, hfs, lindrop, pink, satellite, tempest
from penstock.plots.bufferbloat import DRAWN_BUFFERBLOAT
from penstock.plots.links import link_changes
from penstock.plots.network import drawing
from penstock.plots.one_run import single
from penstock.plots.style import COLOURS, LABELS, colour, png, save, svg
from penstock.plots.sweeps import sweep
from penstock.plots.tcp_trace import traced
from penstock.reproduce.results import Evidence

DRAWN = {
    **pink.DRAWN,
    **DRAWN_BUFFERBLOAT,
    **cooperation.DRAWN,
    "lindrop": lindrop.drawn,
    "ern": ern.drawn,
    "tcp-satellite": satellite.figures,
    "fq-pie": flow_queueing.figures,
    "fq-minstrel-pie": flow_queueing.figures,
    "friendliness": friendliness.figures,
    **tempest.DRAWN,
    **hfs.DRAWN,
}


def reproduction(run: Evidence) -> dict[str, Figure]:
    """The figures of an experiment, by the names that its `figures` uses."""
    return DRAWN.get(run.experiment.name, sweep)(run)


__all__ = [
    "COLOURS",
    "LABELS",
    "colour",
    "drawing",
    "link_changes",
    "png",
    "reproduction",
    "save",
    "single",
    "svg",
    "traced",
]
