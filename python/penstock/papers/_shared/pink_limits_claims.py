"""What the claims on PINK's parameter c and on its limits share."""

from __future__ import annotations

NEAR_BASE_MS = 5.0
