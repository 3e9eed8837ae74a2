"""Columns that `minstrel-pie-testbed` shares with few others."""

from __future__ import annotations

from penstock.papers._shared.mixes import COLUMNS

__all__ = ["COLUMNS"]
