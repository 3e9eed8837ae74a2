"""Helpers for the figures of experiments, whose files import everything of matplotlib from this module."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from penstock.plots.style import COLOURS, CYCLE, FAINT, INK, LABELS, LIMIT, MARKERS, box, colour, mark_level
from penstock.reproduce.results import Evidence


@dataclass(frozen=True)
class Drawing:
    """A figure of an experiment: its title, its caption, and the function that draws it."""

    title: str
    caption: str  # explains how to read the figure
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
    "FuncFormatter",
    "LinearSegmentedColormap",
    "LogLocator",
    "NullFormatter",
    "box",
    "colour",
    "mark_level",
]
