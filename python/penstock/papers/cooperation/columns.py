"""Columns that `cooperation` shares with few others."""

from __future__ import annotations

from penstock.papers._shared.nodes import COLUMNS

__all__ = ["COLUMNS"]
