"""What the comparisons with readable twins share: how many trials there are, and how settings are written."""

from __future__ import annotations

import os
import random

TRACES = int(os.environ.get("PENSTOCK_TWIN_TRACES", "100"))
MS = 1_000_000


def written(**settings: object) -> list[str]:
    """`key=value` as the command line has it."""
    return [f"{key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in settings.items()]


def coin(r: random.Random) -> bool:
    """Yes or no."""
    return r.random() < 0.5
