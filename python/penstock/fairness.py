"""Jain's index, by which everything here tells how equal shares are."""

from __future__ import annotations

from collections.abc import Sequence


def jain(values: Sequence[float]) -> float:
    """Returns Jain's fairness index `(sum x)^2 / (n sum x^2)`; 1 if all values are 0."""
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 1.0
