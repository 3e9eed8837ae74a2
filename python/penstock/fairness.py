"""Jain's index, by which everything here tells how equal shares are."""

from __future__ import annotations

import math
from collections.abc import Sequence


def jain(values: Sequence[float]) -> float:
    """Returns Jain's fairness index `(sum x)^2 / (n sum x^2)`.

    NaN, with which every comparison is false, if there are no values or all are 0: of nothing there are no shares.
    """
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else math.nan
