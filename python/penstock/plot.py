"""Figures for papers: `penstock.plot.cdf`, `box`, `time_series`, `ellipse`, `flent`, `heat_map` and `sawtooth`.

>>> import penstock
>>> result = penstock.run("dsl.toml")                               # doctest: +SKIP
>>> penstock.plot.cdf(result, "queue_delay").savefig("delay.pdf")   # doctest: +SKIP
"""

from penstock.plots.flent import flent
from penstock.plots.paper import COLUMN, TEXT, PaperFigure, box, cdf, ellipse, heat_map, sawtooth, time_series

__all__ = ["COLUMN", "TEXT", "PaperFigure", "box", "cdf", "ellipse", "flent", "heat_map", "sawtooth", "time_series"]
