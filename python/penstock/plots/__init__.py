"""All figures. Only this package uses matplotlib."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib as mpl
from matplotlib.figure import Figure

from penstock.mistake import MistakeError
from penstock.plots import sweeps
from penstock.plots.kit import Drawing
from penstock.plots.one_run import single
from penstock.plots.style import COLOURS, LABELS, STYLE, colour, files, pdf, png, save, svg
from penstock.plots.tcp_trace import traced
from penstock.reproduce.base import Experiment
from penstock.reproduce.results import Evidence
from penstock.reproduce.sweep import Sweep


def drawings(experiment: Experiment) -> Mapping[str, Drawing]:
    """Returns the figures that an experiment names, in its order; raises `MistakeError` for an unknown name."""
    kind = sweeps.FIGURES if isinstance(experiment, Sweep) else {}
    known: Mapping[str, Drawing] = {**kind, **experiment.defined("figures", "FIGURES", {})}
    for name in experiment.figures:
        if name not in known:
            raise MistakeError(f"{experiment.name}: no figure {name!r}; there are: {', '.join(known)}")
    return {name: known[name] for name in experiment.figures}


def reproduction(run: Evidence) -> dict[str, Figure]:
    """Draws the figures of an experiment, and returns them by the names in its `figures`."""
    with mpl.rc_context(STYLE):
        return {name: one.draw(run) for name, one in drawings(run.experiment).items()}


__all__ = [
    "COLOURS",
    "LABELS",
    "Drawing",
    "colour",
    "drawings",
    "files",
    "pdf",
    "png",
    "reproduction",
    "save",
    "single",
    "svg",
    "traced",
]
