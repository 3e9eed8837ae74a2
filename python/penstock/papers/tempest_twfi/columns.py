"""Columns that `tempest-twfi` shares with few others."""

from __future__ import annotations

from penstock.papers._shared.schedulers import COLUMNS

__all__ = ["COLUMNS"]
