"""What several of PINK's experiments share."""

from __future__ import annotations

PINK_C = 0.95  # PINK's default
