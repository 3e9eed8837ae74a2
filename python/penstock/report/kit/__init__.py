"""The page kit: charts, tables, tiles and drawings as one HTML file that needs nothing from outside.

`model` says what a page can have, `page` makes the HTML; `assets` has style and script, with uPlot for the charts.
"""

from penstock.report.kit.model import Axis, Cell, Chart, Heat, Line, Mark, Network, Picture, Section, Strip, Table, Tile
from penstock.report.kit.page import fragment, page

__all__ = [
    "Axis",
    "Cell",
    "Chart",
    "Heat",
    "Line",
    "Mark",
    "Network",
    "Picture",
    "Section",
    "Strip",
    "Table",
    "Tile",
    "fragment",
    "page",
]
