"""Columns that `hfs-mac` shares with few others."""

from __future__ import annotations

from penstock.papers._shared.hfs import COLUMNS

__all__ = ["COLUMNS"]
