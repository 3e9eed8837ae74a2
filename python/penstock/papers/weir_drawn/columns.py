"""The columns of `weir-grid`, for these scenarios."""

from __future__ import annotations

from penstock.papers._shared.weir import columns_of
from penstock.papers.weir_drawn.runs import SETTINGS

COLUMNS = columns_of(SETTINGS)
