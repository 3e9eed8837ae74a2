"""Intervals over seeds.

A mean has Student's interval, from two seeds on: the means of a run's many packets are close to normally distributed. A
median has the interval between two order statistics whose ranks the binomial distribution gives: it holds for every
distribution, and exists from six seeds on. Both have a probability of at least 95 %.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

LEVEL = 0.95
LEAST_FOR_MEDIAN = 6  # with five values even the smallest and the largest enclose the median with only 93.75 %


@dataclass(frozen=True)
class Interval:
    """An estimate and the ends of its interval; they are NaN if there are too few values."""

    value: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2


@functools.cache
def student(degrees: int) -> float:
    """Returns the quantile of Student's distribution for a two-sided interval, to the last digits of a float."""
    low, high = 0.0, math.pi / 2
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if _within(degrees, middle) < LEVEL else (low, middle)
    return math.sqrt(degrees) * math.tan(high)


def _within(degrees: int, angle: float) -> float:
    """Returns the probability of |t| <= sqrt(degrees) tan(angle): Abramowitz and Stegun, 26.7.3 and 26.7.4."""
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = degrees % 2
    term, terms = (cosine if odd else 1.0), []
    for factor in range(2 if odd else 1, degrees - 1, 2):
        terms.append(term)
        term *= cosine * cosine * factor / (factor + 1)
    if degrees > 1:
        terms.append(term)
    inner = sine * math.fsum(terms)
    return 2 / math.pi * (angle + inner) if odd else inner


@functools.cache
def median_rank(count: int) -> int:
    """Returns k so that the kth smallest and the kth largest of `count` values enclose the median; 0 if none do."""
    if count < LEAST_FOR_MEDIAN:
        return 0
    rank, outside = 0, 1  # of the 2**count outcomes of `count` coins, those with at most `rank` heads
    while 2 * outside / 2**count <= 1 - LEVEL:
        rank += 1
        outside += math.comb(count, rank)
    return rank


def mean(values: Sequence[float]) -> Interval:
    """Returns the mean with Student's interval."""
    count = len(values)
    centre = centre_of(values)
    if count < 2:
        return Interval(centre, math.nan, math.nan)
    half = student(count - 1) * deviation(values) / math.sqrt(count)
    return Interval(centre, centre - half, centre + half)


def centre_of(values: Sequence[float]) -> float:
    """Returns the mean; of equal values exactly that value."""
    return values[0] if min(values) == max(values) else math.fsum(values) / len(values)


def deviation(values: Sequence[float]) -> float:
    """Returns the standard deviation of a sample, with n - 1."""
    if min(values) == max(values):
        return 0.0
    centre = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1))


def median(values: Sequence[float]) -> Interval:
    """Returns the median with its confidence interval, which lies between two order statistics."""
    ordered = sorted(values)
    rank = median_rank(len(ordered))
    middle = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
    if not rank:
        return Interval(middle, math.nan, math.nan)
    return Interval(middle, ordered[rank - 1], ordered[-rank])


def of_rows(values: Any) -> dict[str, Any]:
    """Returns the same of each row of a matrix, as columns: mean, sd, median and the ends of their intervals."""
    import numpy as np

    count = values.shape[1]
    none = np.full(values.shape[0], np.nan)
    centre = values.mean(axis=1)
    spread = values.std(axis=1, ddof=1) if count > 1 else none
    half = student(count - 1) * spread / math.sqrt(count) if count > 1 else none
    ordered = np.sort(values, axis=1)
    rank = median_rank(count)
    return {
        "mean": centre,
        "mean_low": centre - half,
        "mean_high": centre + half,
        "sd": spread,
        "median": (ordered[:, (count - 1) // 2] + ordered[:, count // 2]) / 2,
        "median_low": ordered[:, rank - 1] if rank else none,
        "median_high": ordered[:, -rank] if rank else none,
    }
