"""What the figures of experiments are drawn with. Their files take everything of matplotlib from here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse

from penstock.plots.style import COLOURS, CYCLE, FAINT, INK, LABELS, LIMIT, MARKERS, box, colour, mark_level
from penstock.reproduce.results import Evidence


@dataclass(frozen=True)
class Drawing:
    """A figure of an experiment: what stands below it, and how it is drawn."""

    title: str
    caption: str  # how to read it
    draw: Callable[[Evidence], Figure]


__all__ = [
    "COLOURS",
    "CYCLE",
    "FAINT",
    "INK",
    "LABELS",
    "LIMIT",
    "MARKERS",
    "Axes",
    "Drawing",
    "Ellipse",
    "Evidence",
    "Figure",
    "LinearSegmentedColormap",
    "box",
    "colour",
    "mark_level",
]
