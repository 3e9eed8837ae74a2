"""How often the intervals that are printed cover a truth that is known.

A queue before one link, which packets reach as a Poisson process, has known laws. Runs of the simulator with different
seeds are cut into tries of as many seeds as a person would take, and each try gets the intervals of a sweep or of a
comparison, from the same functions (`experiments.statistics`, `experiments.until`). No seed is in two tries.

M/D/1       packets of one size: the mean wait is S rho / (2 (1 - rho)) (Pollaczek and Khinchine)
M/M/1       exponential sizes: the wait has P(W > t) = rho exp(-(1 - rho) t / S)
M/M/1/K     the same with room for K packets, of which (1 - rho) rho^K / (1 - rho^(K + 1)) find none
Poisson     the number of packets of a run: its median is the smallest n with P(N <= n) >= 1/2

Two sides of a comparison are equal if they are the same scenario with other seeds. Then only one line in a hundred may
be called better, worse, higher or lower (`experiments.compare.SURE`).

S is the mean time of a packet on the link, rho the load. The wait of M/M/1 above its 90th percentile begins at
S ln(10 rho) / (1 - rho). Exponential sizes are the means of slices of equal probability (`_sizes`).

DIFFERENCE: a run begins with an empty queue, and a percentile of its packets is not quite that of all packets. How far
the mean of all tries is from the truth is told beside it; it is a part of what the intervals are measured by.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from penstock import marked
from penstock.experiments import compare, statistics, until
from penstock.experiments.interrupts import stopping
from penstock.experiments.measures import BY_PART, find
from penstock.experiments.model import Facts, Until
from penstock.experiments.processes import cores
from penstock.experiments.rows import rows
from penstock.experiments.statistics import Interval
from penstock.experiments.work import Task, unpacked
from penstock.experiments.workers import Workers
from penstock.scenario import Scenario, tree

TRIES = 5000
SEEDS = 10  # of a try, as `compare` has them
HEADINGS = ("interval", "of", "truth", "mean", "seeds", "level", "covered")
BOUNDS = (0.93, 0.97)  # within which the coverage of Student's intervals should be
_STEIN = 10  # the tries of `until`, which need many seeds, are so many times fewer
_EQUAL = 25  # the same of comparisons
_SLICES = 400
_WAIT, _TAIL = "link.queue_delay_mean_ms", "link.queue_delay_p90_ms"
_SCENARIO = """\
duration = "{seconds}s"

[topology]
kind = "dumbbell"
rate = "{rate}bit/s"
delay = "1ms"
limit = "{limit}p"
access_rate = "1Tbit/s"
access_delay = "0ms"

[aqm]
name = "droptail"

[[flows]]  # one packet in each on-time, which even a small one outlasts; the times between are exponential
kind = "onoff"
rate = "50Gbit/s"
packet_size = {size}
mean_on = "1ns"
mean_off = "{off_ns}ns"

[output]
series = false
"""
_HEADER = 28  # bytes of IP and UDP
_HOME = """\
duration = "15s"
warmup = "3s"

[topology]
kind = "dumbbell"
rate = "10Mbit/s"
delay = "20ms"
limit = "200p"
access_rate = "100Mbit/s"

[aqm]
name = "codel"

[[flows]]
kind = "bulk"
count = 2
start_spread = "5ms"

[[flows]]
kind = "voip"

[[flows]]
kind = "web"
per_second = 2

[output]
series = false
"""


@dataclass(frozen=True)
class System:
    """A queue: packets of `size` bytes in the mean, one in each millisecond / `rho` in the mean."""

    rho: float
    seconds: float
    limit: int = 100_000
    size: float = 1250.0
    is_exponential: bool = False
    faster: float = 1.0  # by which the link is faster than 1 ms for each packet

    @property
    def scenario(self) -> Scenario:
        """The system as a scenario."""
        sizes = _sizes(self.size) if self.is_exponential else [round(self.size)]
        own = sum(sizes) / len(sizes) * 8 / 50  # ns of a packet at the rate of on-times
        return Scenario.load(
            _SCENARIO.format(
                seconds=f"{self.seconds:g}",
                rate=round(self.size * 8 * 1e3 * self.faster),
                limit=self.limit,
                size="[" + ", ".join(f'"{size - _HEADER}B"' for size in sizes) + "]",
                off_ns=round(1e6 / self.rho - own),
            )
        )


def _sizes(mean: float) -> list[int]:
    """Returns the means of slices of equal probability of an exponential distribution, in bytes."""

    def above(place: int) -> float:
        """The part of the mean that is in all slices from this one on: the integral of t exp(-t)."""
        left = 1 - place / _SLICES
        return left * (1 - math.log(left)) if left else 0.0

    parts = [(above(place) - above(place + 1)) * _SLICES for place in range(_SLICES)]
    return [max(_HEADER + 1, round(mean * part)) for part in parts]


@dataclass(frozen=True)
class Case:
    """One kind of interval over one system, or over two with the same seeds."""

    interval: str
    of: str
    truth: float
    measure: str
    systems: tuple[System, ...]
    made: Callable[[Sequence[float]], Interval]
    level: float = statistics.LEVEL
    seeds: int = SEEDS
    rule: Until | None = None


@dataclass(frozen=True)
class Covered:
    """What the tries of a case came to."""

    interval: str
    of: str
    truth: float | None
    mean: float | None  # of all tries
    seeds: float  # of a try, in the mean
    level: float
    tries: int
    covered: int

    @property
    def share(self) -> float:
        """The part of the tries whose interval covers the truth."""
        return self.covered / self.tries

    @property
    def holds(self) -> bool:
        """True if the share is what was promised: that of Student within `BOUNDS`, that of ranks at least its level.

        Chance of three standard deviations is allowed.
        """
        slack = 3 * math.sqrt(self.level * (1 - self.level) / self.tries)
        if self.interval == EQUAL:  # lines of one comparison are not independent
            return self.share >= statistics.LEVEL
        if self.interval == RANKS:
            return self.share >= self.level - slack
        low, high = BOUNDS
        return min(low, self.level - slack) <= self.share <= max(high, self.level + slack)

    def to_json(self) -> dict[str, Any]:
        """Returns it as plain values."""
        return {**asdict(self), "share": self.share, "holds": self.holds}


MEAN, PAIRS, RANKS, STEIN = "mean (Student)", "paired differences (Student)", "median (ranks)", "until (Stein)"
EQUAL = "lines of `compare` without a word"
HALF = System(0.5, 10)
LIGHT = System(0.5, 10, faster=1.25)
EXPONENTIAL = System(0.5, 20, size=6000, is_exponential=True)
FULL = System(0.8, 10, limit=5, size=6000, is_exponential=True)


def _loss(rho: float, room: int) -> float:
    return (1 - rho) * rho**room / (1 - rho ** (room + 1))


def _wait(rho: float, service_ms: float = 1.0) -> float:
    return service_ms * rho / (2 * (1 - rho))


def _median_of_poisson(mean: float) -> int:
    """Returns the smallest n with P(N <= n) >= 1/2."""
    total, n = math.exp(-mean), 0
    while total < 0.5:
        n += 1
        total += math.exp(n * math.log(mean) - mean - math.lgamma(n + 1))
    return n


def cases() -> list[Case]:
    """Returns all cases."""
    tail = math.log(10 * EXPONENTIAL.rho) / (1 - EXPONENTIAL.rho)
    count = _median_of_poisson(1e3 * HALF.rho * 0.5)
    short = System(0.5, 0.5)
    ranks = statistics.median_level(SEEDS)
    return [
        Case(MEAN, "M/D/1, mean wait (ms), load 0.5", _wait(0.5), _WAIT, (HALF,), statistics.mean),
        Case(MEAN, "the same, of 5 seeds", _wait(0.5), _WAIT, (HALF,), statistics.mean, seeds=5),
        Case(MEAN, "M/M/1/6, share of drops, load 0.8", _loss(0.8, 6), "link.drop_share", (FULL,), statistics.mean),
        Case(MEAN, "M/M/1, 90th percentile of the wait (ms), load 0.5", tail, _TAIL, (EXPONENTIAL,), statistics.mean),
        Case(PAIRS, "M/D/1, mean wait, a link of 1.25 times the rate", _wait(0.4, 0.8) - _wait(0.5), _WAIT,
             (HALF, LIGHT), statistics.mean),
        Case(RANKS, "M/M/1, 90th percentile of the wait (ms), load 0.5", tail, _TAIL, (EXPONENTIAL,),
             statistics.median, ranks),
        Case(RANKS, "Poisson, packets of 0.5 s, 500 per second", count, "link.packets", (short,), statistics.median,
             ranks),
        Case(RANKS, "the same, of 6 seeds", count, "link.packets", (short,), statistics.median,
             statistics.median_level(6), seeds=6),
        *(
            Case(STEIN, f"M/D/1, mean wait (ms), load {rho:g}, {seconds} s, to {part:.0%}", _wait(rho), _WAIT,
                 (System(rho, seconds),), statistics.mean, rule=Until(part, _WAIT))
            for rho, seconds, part in ((0.5, 20, 0.02), (0.5, 5, 0.02), (0.8, 20, 0.05), (0.8, 5, 0.1))
        ),
    ]  # fmt: skip


def measure(tries: int = TRIES, jobs: int | None = None) -> Iterator[Covered]:
    """Yields what each case came to; ends early at Ctrl-C."""
    with stopping() as stop:
        runs = _Runs(Workers(jobs or cores(), stop, {}))
        try:
            for case in cases():
                yield _stein(case, max(1, tries // _STEIN), runs) if case.rule else _fixed(case, tries, runs)
            yield _equal_sides(max(2, tries // _EQUAL), runs)
        except KeyboardInterrupt:
            return
        finally:
            runs.workers.close()


def _fixed(case: Case, tries: int, runs: _Runs) -> Covered:
    """Measures a case whose tries have a number of seeds that is known before."""
    wanted = range(tries * case.seeds)
    columns = [runs.values(system, case.measure, wanted) for system in case.systems]
    values = [one[-1] - one[0] if len(one) > 1 else one[0] for one in zip(*columns, strict=True)]
    cut = [values[first : first + case.seeds] for first in range(0, len(values) - case.seeds + 1, case.seeds)]
    return _covered(case, [case.made(one) for one in cut], case.seeds, math.fsum(values) / len(values))


def _stein(case: Case, tries: int, runs: _Runs) -> Covered:
    """Measures a case whose number of seeds follows from the first ones."""
    assert case.rule is not None
    [system], rule = case.systems, case.rule
    step = rule.most + 1  # seeds that belong to one try
    firsts = runs.values(system, case.measure, [t * step + n for t in range(tries) for n in range(rule.least)])
    cut = [firsts[n : n + rule.least] for n in range(0, len(firsts) - rule.least + 1, rule.least)]
    counts = [until.needed(rule, one) for one in cut]
    more = [t * step + n for t, count in enumerate(counts) for n in range(rule.least, count)]
    rest = iter(runs.values(system, case.measure, more))
    samples = [[*one, *(next(rest) for _ in range(count - rule.least))] for one, count in zip(cut, counts, strict=True)]
    found = [until.interval(one, rule.least) for one in samples]
    return _covered(case, found, sum(counts) / tries, math.fsum(one.value for one in found) / tries)


def _equal_sides(tries: int, runs: _Runs) -> Covered:
    """Compares a home with itself, in seeds of its own on each side, by all measures of which `compare` tells."""
    scenario, seeds = Scenario.load(_HOME), range(2 * tries * SEEDS)
    summaries = runs.summaries(scenario, seeds)
    groups = Facts.of(tree(scenario.text)).groups
    by_line: dict[tuple[str, str], list[float | None]] = {}
    for summary in summaries:
        for row in rows(summary, groups):
            for measure, value in zip(BY_PART[row.part], row.values, strict=True):
                if measure.key in compare.COMPARED:
                    by_line.setdefault((measure.key, row.name), []).append(value)
    quiet = lines = 0
    for (key, _), values in by_line.items():
        sides = [values[first : first + SEEDS] for first in range(0, len(values), SEEDS)]
        for first, other in zip(sides[::2], sides[1::2], strict=True):
            if None not in (*first, *other):
                lines += 1
                quiet += compare.difference("", find(key), first, other, SEEDS).verdict not in compare.WORDS
    known = sum(any(value is not None for value in values) for values in by_line.values())
    told = f"{known} measures of a home in {tries} comparisons of equal sides"
    return Covered(EQUAL, told, None, None, SEEDS, compare.SURE, lines, quiet)


def _covered(case: Case, found: Sequence[Interval], seeds: float, mean: float) -> Covered:
    covered = sum(one.low <= case.truth <= one.high for one in found)
    return Covered(case.interval, case.of, case.truth, mean, seeds, case.level, len(found), covered)


@dataclass
class _Runs:
    """Runs of systems, of which each is made once."""

    workers: Workers
    _known: dict[tuple[System, str], dict[int, float]] = field(default_factory=dict)

    def values(self, system: System, key: str, seeds: Sequence[int]) -> list[float]:
        """Returns a measure of runs with these seeds, in their order."""
        scenario, measure = system.scenario, find(key)
        place = BY_PART[measure.part].index(measure)
        groups = Facts.of(tree(scenario.text)).groups
        known = self._known.setdefault((system, key), {})
        missing = [seed for seed in seeds if seed not in known]
        for seed, summary in zip(missing, self.summaries(scenario, missing), strict=True):
            values = (row.values[place] for row in rows(summary, groups) if row.part == measure.part)
            known[seed] = next(value for value in values if value is not None)
        return [known[seed] for seed in seeds]

    def summaries(self, scenario: Scenario, seeds: Sequence[int]) -> Iterator[dict[str, Any]]:
        """Yields the summaries of runs with these seeds, in their order; raises `KeyboardInterrupt` after Ctrl-C."""
        found: dict[int, bytes] = {}
        for task, data in self.workers.results([Task(0, seed, b"%d" % seed, scenario) for seed in seeds]):
            assert isinstance(data, bytes), data
            found[task.seed] = data
        if len(found) < len(seeds):
            raise KeyboardInterrupt
        for seed in seeds:
            summary = unpacked(found.pop(seed)).summary
            assert summary is not None, "the run failed"
            yield summary


def write(page: Path, found: Sequence[Covered]) -> None:
    """Writes the table into its part of a page."""
    marked.replace(page, "\n".join(marked.table(HEADINGS, map(cells, found))), "coverage")


def cells(found: Covered) -> list[str]:
    """Returns the row of a table."""
    return [
        found.interval,
        found.of,
        "–" if found.truth is None else f"{found.truth:.5g}",
        "–" if found.mean is None else f"{found.mean:.5g}",
        f"{found.seeds:.1f}".removesuffix(".0"),
        f"{found.level:.1%}",
        f"{found.covered:,} of {found.tries:,} ({found.share:.1%})" + ("" if found.holds else ", **open**"),
    ]
