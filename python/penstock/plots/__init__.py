"""Every figure. This is the only package that touches matplotlib."""

from __future__ import annotations

from matplotlib.figure import Figure

from penstock.plots import ern, flow_queueing, hfs, lindrop, pink, tempest
from penstock.plots.bufferbloat import DRAWN_BUFFERBLOAT
from penstock.plots.one_run import single
from penstock.plots.style import COLOURS, LABELS, colour, save, svg
from penstock.plots.sweeps import sweep
from penstock.reproduce.results import Evidence

DRAWN = {
    **pink.DRAWN,
    **DRAWN_BUFFERBLOAT,
    "lindrop": lindrop.drawn,
    "ern": ern.drawn,
    "fq-pie": flow_queueing.figures,
    "fq-minstrel-pie": flow_queueing.figures,
    **tempest.DRAWN,
    **hfs.DRAWN,
}


def reproduction(run: Evidence) -> dict[str, Figure]:
    """The figures of an experiment, by the names that its `figures` uses."""
    return DRAWN.get(run.experiment.name, sweep)(run)


__all__ = ["COLOURS", "LABELS", "colour", "reproduction", "save", "single", "svg"]
