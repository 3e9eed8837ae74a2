"""Series of results of Flent: values over time, or their distribution."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

from penstock.flent import reading
from penstock.mistake import MistakeError
from penstock.plots.paper import DASHES, PRINT, PaperFigure, Width, legend, new_figure
from penstock.plots.style import CYCLE
from penstock.suggest import did_you_mean


def flent(source: Any, series: str, *, cdf: bool = False, width: Width = "column") -> PaperFigure:
    """Draws a series such as "Ping (ms) ICMP" of files of Flent over time, or with `cdf` its distribution."""
    files = [source] if isinstance(source, str | Path) or not isinstance(source, Iterable) else list(source)
    found = [reading.read(Path(one)) for one in files]
    for one in found:
        if series not in one.series:
            known = list(one.series)
            raise MistakeError(
                f"{one.path}: no series {series!r}; {did_you_mean(series, known)}there are {', '.join(known)}"
            )
    with mpl.rc_context(PRINT):
        figure, (axis,) = new_figure(width, 2.2)
        for index, one in enumerate(found):
            values = np.array([np.nan if value is None else value for value in one.series[series]], float)
            style: Any = {
                "color": CYCLE[index % len(CYCLE)],
                "linestyle": DASHES[index % len(DASHES)],
                "label": one.label,
            }
            there = np.sort(values[~np.isnan(values)])
            if cdf and len(there):
                axis.step(there, np.arange(1, len(there) + 1) / len(there), where="post", **style)
            elif not cdf:
                axis.plot(one.xs, values, **style)
        unit = found[0].unit(series) if found else ""
        told = f"{series} ({unit})" if unit and unit not in series else series
        axis.set(xlabel=told if cdf else "time (s)", ylabel="share" if cdf else told)
        legend(axis, len(found))
    return figure
