"""The columns of `weir-grid`: what people notice of a link."""

from __future__ import annotations

from penstock.papers._shared.weir import columns_of
from penstock.papers.weir_grid.runs import SETTINGS

COLUMNS = columns_of(SETTINGS)
