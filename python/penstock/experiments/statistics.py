"""Intervals over seeds, and how they are written.

A mean has Student's interval, from two runs on: the means of a run's many packets are close to normally distributed.
Its level is 95 %. A median has the interval between two order statistics whose ranks the binomial distribution gives:
it holds for every distribution, and exists from six runs on. Its level is at least 95 %, and is told.

Runs that are equal but for their seeds are one sample (`penstock.chance`). The estimates are those of all seeds, in
which a course that is more frequent has more weight; the number of samples, on which the width and the existence of an
interval depend, is that of different runs. Where all values are equal, there is no interval: chance has had no part.
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
    """An estimate and the ends of its interval; they are NaN if there is none."""

    value: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2

    @property
    def known(self) -> bool:
        """True if there is an interval."""
        return not math.isnan(self.low)

    def to_json(self) -> dict[str, float | None]:
        """Returns mean and ends as plain values; `None` for those that are not known."""
        values = {"mean": self.value, "low": self.low, "high": self.high}
        return {key: None if math.isnan(value) else value for key, value in values.items()}


@functools.cache
def student(degrees: int, level: float = LEVEL) -> float:
    """Returns the quantile of Student's distribution for a two-sided interval, to the last digits of a float."""
    low, high = 0.0, math.pi / 2
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if _within(degrees, middle) < level else (low, middle)
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


@functools.cache
def median_level(count: int) -> float:
    """Returns the probability with which the interval of `count` values covers the median; NaN if there is none."""
    rank = median_rank(count)
    outside = sum(math.comb(count, heads) for heads in range(rank))
    return 1 - 2 * outside / 2**count if rank else math.nan


def mean(values: Sequence[float], samples: int | None = None) -> Interval:
    """Returns the mean with Student's interval. `samples` is the number of different runs; all of them if not given."""
    count = len(values) if samples is None else samples
    centre = centre_of(values)
    spread = deviation(values) if count > 1 else 0.0
    if spread == 0:
        return Interval(centre, math.nan, math.nan)
    half = student(count - 1) * spread / math.sqrt(count)
    return Interval(centre, centre - half, centre + half)


def excludes_zero(interval: Interval, samples: int, level: float) -> bool:
    """Returns whether a mean's interval of 95 % (`LEVEL`) excludes zero also at another level."""
    wider = interval.half_width * student(samples - 1, level) / student(samples - 1)
    return abs(interval.value) > wider


def centre_of(values: Sequence[float]) -> float:
    """Returns the mean; of equal values exactly that value."""
    return values[0] if min(values) == max(values) else math.fsum(values) / len(values)


def deviation(values: Sequence[float]) -> float:
    """Returns the standard deviation of a sample, with n - 1."""
    if min(values) == max(values):
        return 0.0
    centre = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1))


def median(values: Sequence[float], samples: int | None = None) -> Interval:
    """Returns the median with the interval between two order statistics; `samples` is the number of different runs."""
    ordered = sorted(values)
    rank = _rank(len(ordered), len(ordered) if samples is None else samples)
    middle = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
    if not rank or ordered[0] == ordered[-1]:
        return Interval(middle, math.nan, math.nan)
    return Interval(middle, ordered[rank - 1], ordered[-rank])


def _rank(count: int, samples: int) -> int:
    return median_rank(count) if samples >= LEAST_FOR_MEDIAN else 0


def of_rows(values: Any, samples: int) -> dict[str, Any]:
    """Returns the same of each row of a matrix, as columns: mean, sd, median, the ends of their intervals and the level
    of that of the median. `samples` is the number of different runs among the columns of the matrix. A row in which a
    value is missing has none of them: a mean of the others would flatter.
    """
    import numpy as np

    count = values.shape[1]
    none = np.full(values.shape[0], np.nan)
    whole = np.where(np.isnan(values).any(axis=1, keepdims=True), np.nan, values)  # of a part nothing is told
    ordered = np.sort(whole, axis=1)
    equal = ordered[:, 0] == ordered[:, -1]
    centre = np.where(equal, ordered[:, 0], whole.mean(axis=1))
    spread = np.where(equal, 0.0, whole.std(axis=1, ddof=1)) if count > 1 else none
    half = student(samples - 1) * spread / math.sqrt(samples) if samples > 1 else none
    rank = _rank(count, samples)

    def end(found: Any) -> Any:
        return np.where(equal, np.nan, found)

    return {
        "median_level": np.where(np.isnan(ordered[:, 0]), np.nan, end(median_level(count))) if rank else none,
        "mean": centre,
        "mean_low": end(centre - half),
        "mean_high": end(centre + half),
        "sd": spread,
        "median": (ordered[:, (count - 1) // 2] + ordered[:, count // 2]) / 2,
        "median_low": end(ordered[:, rank - 1] if rank else none),
        "median_high": end(ordered[:, -rank] if rank else none),
    }


# How a number is written: two digits of half the width of its interval, and all numbers to the same place.


def places(low: float, high: float) -> int:
    """Returns the number of decimal places at which half the width of an interval has two digits."""
    half = (high - low) / 2
    return min(15, max(0, 1 - math.floor(math.log10(half)))) if half > 0 else 15


def with_half(one: Interval, scale: float = 1.0) -> str:
    """Returns a mean with half the width of its interval, such as `19.23 ±0.45`; the mean alone if it has none."""
    if not one.known:
        return f"{one.value / scale:.4g}"
    low, high = one.low / scale, one.high / scale
    digits = places(low, high)
    return f"{one.value / scale:.{digits}f} ±{(high - low) / 2:.{digits}f}"


def with_ends(one: Interval, scale: float = 1.0, sign: str = "") -> str:
    """Returns a number with the ends of its interval, such as `19.2 [18.9, 19.6]`; `sign` is "+" for a difference."""
    value, low, high = one.value / scale, one.low / scale, one.high / scale
    if not one.known or low == high:
        return f"{value:{sign}.4g}" + (f" [{low:.4g}, {high:.4g}]" if one.known else "")
    digits = places(low, high)
    return f"{value:{sign}.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"
