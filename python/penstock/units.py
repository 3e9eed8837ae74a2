"""Rates with their units as numbers, and numbers as texts."""

from __future__ import annotations

import math
import re

from penstock.mistake import MistakeError

RATES = {"bit/s": 1, "kbit/s": 10**3, "Mbit/s": 10**6, "Gbit/s": 10**9, "Tbit/s": 10**12}
_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*([kMGT]?bit/s)")


def rate_bps(text: str) -> float:
    """Returns a rate such as `10Mbit/s` in bits per second."""
    found = _RATE.fullmatch(text.strip())
    if found is None or float(found[1]) <= 0:
        raise MistakeError(f"{text!r} is no rate; write a number with {', '.join(RATES)}, such as 10Mbit/s")
    return float(found[1]) * RATES[found[2]]


def significant(value: float, digits: int = 3) -> str:
    """Returns a number with so many digits as are known, such as 27.3, 129 and 1,290 of three."""
    size = math.floor(math.log10(abs(value))) if value else 0
    places = digits - 1 - size
    return f"{round(value, places):,.{max(0, places)}f}"
