"""What the claims on PINK's parameter c and on its limits share."""

from __future__ import annotations

NEAR_BASE_MS = 5.0
FULL_USE = 0.95  # of c times the rate
