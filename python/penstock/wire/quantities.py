"""Numbers of a resolved scenario, which writes each with a unit."""

from __future__ import annotations

import re

_UNITS = {
    "ns": 1e-9,
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "min": 60.0,
    "h": 3600.0,
    "B": 1.0,
    "kB": 1e3,
    "MB": 1e6,
    "GB": 1e9,
    "bit/s": 1.0,
    "kbit/s": 1e3,
    "Mbit/s": 1e6,
    "Gbit/s": 1e9,
    "Tbit/s": 1e12,
}
_QUANTITY = re.compile(r"([0-9.]+)\s*([A-Za-z/]+)")


def number(text: str) -> float:
    """Returns a time in seconds, a size in bytes or a rate in bits per second."""
    found = _QUANTITY.fullmatch(text)
    if found is None or found[2] not in _UNITS:
        raise ValueError(f"{text!r} is no quantity of a resolved scenario")
    return float(found[1]) * _UNITS[found[2]]
