"""Numbers with their units, and numbers as texts."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from penstock.mistake import MistakeError

RATES = {"bit/s": 1, "kbit/s": 10**3, "Mbit/s": 10**6, "Gbit/s": 10**9, "Tbit/s": 10**12}
_NUMBER = r"[+-]?(?:\d+(?:_\d+)*)(?:\.\d+)?(?:[eE][+-]?\d+)?"
_WITH_UNIT = re.compile(rf"\s*({_NUMBER})\s*([A-Za-zµ%][A-Za-z/%]*)?\s*")
# Units whose values can be converted into each other, with their sizes: those of docs/reference/scenarios.md.
_UNITS: tuple[Mapping[str, float], ...] = (
    RATES,
    {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600},
    {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30},
    {"p": 1},
    {"%": 0.01},
)
# Those in which `with_unit` writes values.
_WRITTEN = {"bit/s", "kbit/s", "Mbit/s", "Gbit/s", "us", "ms", "s", "B", "kB", "MB", "GB", "p"}
_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*([kMGT]?bit/s)")


def rate_bps(text: str) -> float:
    """Returns a rate such as `10Mbit/s` in bits per second."""
    found = _RATE.fullmatch(text.strip())
    if found is None or float(found[1]) <= 0:
        raise MistakeError(f"{text!r} is no rate; write a number with {', '.join(RATES)}, such as 10Mbit/s")
    return float(found[1]) * RATES[found[2]]


def number(value: Any) -> float:
    """Returns a number in the unit of its kind (bit/s, s, B), as `base` does; raises `ValueError` for anything else."""
    found = base(value)
    if found is None or not base_unit(value):
        raise ValueError(f"{value!r} has no unit of time, size or rate")
    return found


def sizes_with(unit: str) -> Mapping[str, float]:
    """Returns the units that a unit can be converted into, each with its size; none if the unit is unknown."""
    return next((sizes for sizes in _UNITS if unit in sizes), {})


def quantity(value: Any) -> tuple[float, str] | None:
    """Returns a number and its unit ("" if it has none): of 4 or "10Mbit/s"; `None` for what is no number."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, int | float):
        return float(value), ""
    found = _WITH_UNIT.fullmatch(value)
    return (float(found[1]), found[2] or "") if found else None


def base(value: Any) -> float | None:
    """Returns a number in the unit of its kind (bit/s, s, B), so that "500kbit/s" and "1Mbit/s" have an order."""
    found = quantity(value)
    if found is None:
        return None
    return found[0] * sizes_with(found[1]).get(found[1], 1)


def base_unit(value: Any) -> str:
    """Returns the unit in which `base` gives a value; empty if it has none."""
    found = quantity(value)
    sizes = sizes_with(found[1]) if found else {}
    return next((unit for unit, size in sizes.items() if size == 1), "")


def with_unit(number: float, unit: str, digits: int = 2) -> Any:
    """Returns a number in a unit of `base_unit` as a person would write it: few digits, and a unit that suits it."""
    rounded = float(f"{number:.{digits - 1}e}")
    if not unit:
        return rounded
    if not rounded:
        return f"0{unit}"
    suits = sorted((size, name) for name, size in sizes_with(unit).items() if name in _WRITTEN)
    size, name = next((one for one in reversed(suits) if abs(rounded) >= one[0]), suits[0])
    return f"{rounded / size:.10g}{name}"


def significant(value: float, digits: int = 3) -> str:
    """Returns a number with so many digits as are known, such as 27.3, 129 and 1,290 of three."""
    size = math.floor(math.log10(abs(value))) if value else 0
    places = digits - 1 - size
    return f"{round(value, places):,.{max(0, places)}f}"
