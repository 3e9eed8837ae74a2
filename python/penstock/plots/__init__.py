"""Every figure. This is the only package that touches matplotlib."""

from __future__ import annotations

from matplotlib.figure import Figure

from penstock.plots import flow_queueing
from penstock.plots.one_run import single
from penstock.plots.pink import DRAWN
from penstock.plots.style import COLOURS, LABELS, colour, save, svg
from penstock.plots.sweeps import sweep
from penstock.reproduce.results import Evidence

_DRAWN = {**DRAWN, "fq-pie": flow_queueing.figures, "fq-minstrel-pie": flow_queueing.figures}


def reproduction(run: Evidence) -> dict[str, Figure]:
    """The figures of an experiment, by the names that its `figures` uses."""
    return _DRAWN.get(run.experiment.name, sweep)(run)


__all__ = ["COLOURS", "LABELS", "colour", "reproduction", "save", "single", "svg"]
