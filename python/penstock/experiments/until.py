"""How many seeds a point needs: Stein's rule of two stages.

Charles Stein, "A two-sample test for a linear hypothesis whose power is independent of the variance", Annals of
Mathematical Statistics 16 (1945), 243-258. The first stage has n0 seeds, with mean m and standard deviation s. The
number of seeds is the smallest n with t s / sqrt(n) <= part |m|, where t is Student's quantile of n0 - 1 degrees. The
interval is the mean of all seeds +- t s / sqrt(n), with the s of the first stage. A rule that looks again and again,
and stops when the interval happens to be narrow enough, covers the mean too seldom. This one looks once, and its s
does not depend on when it stopped. (The width is a part of the mean, for which that of the first stage is taken: this
is the one approximation.) Equal runs of the first stage count once, and a first stage of one run asks for no more
seeds, however many it has.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from penstock.experiments.model import Until
from penstock.experiments.statistics import Interval, centre_of, deviation, mean, student


def needed(rule: Until, first: Sequence[float], samples: int | None = None) -> int:
    """Returns the number of seeds that a point needs, from the values of its first stage; at most `rule.most`.

    `samples` is the number of different runs in the first stage; all of them if not given.
    """
    aim = rule.part * abs(math.fsum(first) / len(first))
    spread = _spread(first, samples)
    if spread == 0:
        return len(first)
    if aim == 0:
        return rule.most
    return min(rule.most, max(len(first), math.ceil((spread / aim) ** 2)))


def _spread(first: Sequence[float], samples: int | None) -> float:
    """Returns t s of the first stage; zero if it has one run only."""
    count = len(first) if samples is None else samples
    return student(count - 1) * deviation(first) if count > 1 else 0.0


def interval(values: Sequence[float], first: int, samples: int | None = None) -> Interval:
    """Returns the interval of the mean of all values; `first` of them are of the first stage, in `samples` runs."""
    if len(values) < first or first < 2:
        return mean(values, samples)
    centre = centre_of(values)
    spread = _spread(values[:first], samples)
    if spread == 0:
        return Interval(centre, math.nan, math.nan)
    half = spread / math.sqrt(len(values))
    return Interval(centre, centre - half, centre + half)


def first_stage(rule: Until | None, seeds: Sequence[int]) -> tuple[int, ...]:
    """Returns the seeds with which a point begins: those of the experiment, and at least as many as the rule wants."""
    return more(seeds, rule.least) if rule else tuple(seeds)


def more(seeds: Sequence[int], count: int) -> tuple[int, ...]:
    """Returns `count` seeds: the given ones, then whole numbers that follow the largest of them."""
    following = range(max(seeds) + 1, max(seeds) + 1 + max(0, count - len(seeds)))
    return (*seeds, *following)
