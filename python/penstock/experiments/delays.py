"""Distributions of delays over seeds, which a sweep keeps on request.

That of a run is a sketch: times that are nearly the same are counted together. Sketches are added by adding their
counts, so that the percentiles of all packets of all seeds are known, which no mean of percentiles is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.experiments.measures import FLOWS, LINK
from penstock.mistake import MistakeError

if TYPE_CHECKING:
    import pyarrow as pa

# The most by which a time differs from those that it stands for, as a part of it: TimeHistogram::distribution of queues
# (crates/sim/src/probe.rs), of which the time is the upper end, and the digest of flows (crates/sim/src/digest.rs).
ERROR: Mapping[str, float] = {LINK: 0.011, FLOWS: 0.016}
_TABLES = {LINK: ("queue_delays", "queue", "delay_ms", "packets"), FLOWS: ("round_trips", "flow", "rtt_ms", "samples")}

Kept = list[tuple[str, str, list[float], list[int]]]  # part, name, times in ms, how many there are of each


def of_run(summary: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> Kept:
    """Returns the distributions of a run: of the delays of each queue, and of the round trips of each kind of flows."""
    found: Kept = []
    if not tables:
        raise MistakeError("a run with `[output] series = false` has no distributions of delays")
    for part, (table, key, value, count) in _TABLES.items():
        columns = [tables[table][name].to_pylist() for name in (key, value, count)]
        by_number: dict[int, tuple[list[float], list[int]]] = {}
        for number, ms, counted in zip(*columns, strict=True):
            times, counts = by_number.setdefault(number, ([], []))
            times.append(round(ms, 6))
            counts.append(counted)
        found += [(part, _name(summary, part, number), *lists) for number, lists in by_number.items()]
    return found


def _name(summary: Mapping[str, Any], part: str, number: int) -> str:
    if part == LINK:
        return str(summary["bottlenecks"][number]["name"])
    flow = summary["flows"][number]
    return f"{flow['kind']} {flow['cc']}"


class Merged:
    """Adds the distributions of the runs of each point."""

    def __init__(self) -> None:
        self._counts: dict[tuple[int, str, str], dict[float, int]] = {}

    def add(self, point: int, kept: Kept | None) -> None:
        """Adds those of a run."""
        for part, name, times, counts in kept or []:
            sums = self._counts.setdefault((point, part, name), {})
            for ms, count in zip(times, counts, strict=True):
                sums[ms] = sums.get(ms, 0) + count

    def table(self) -> pa.Table:
        """Returns a row for each time of each distribution, in the order of points, parts, names and times."""
        import pyarrow as pa

        rows = [(*place, ms, sums[ms]) for place, sums in sorted(self._counts.items()) for ms in sorted(sums)]
        point, part, name, ms, count = zip(*rows, strict=True) if rows else ((), (), (), (), ())
        columns = {
            "point": pa.array(point, pa.int32()),
            "part": pa.array(part, pa.string()),
            "name": pa.array(name, pa.string()),
            "ms": pa.array(ms, pa.float64()),
            "count": pa.array(count, pa.int64()),
            "error": pa.array([ERROR[one] for one in part], pa.float64()),
        }
        return pa.table(columns)


@dataclass(frozen=True)
class Distribution:
    """The times of one queue or one kind of flows at one point, in ms and in order, and how many there are of each."""

    point: int
    part: str
    name: str
    ms: Sequence[float]
    counts: Sequence[int]

    def quantile(self, share: float) -> float:
        """Returns the time at or below which this share of all times is, to `ERROR` of it."""
        left = max(1, math.ceil(share * sum(self.counts)))
        for ms, count in zip(self.ms, self.counts, strict=True):
            left -= count
            if left <= 0:
                return ms
        raise ValueError(f"{share} is no share")


def distributions(table: pa.Table) -> Iterator[Distribution]:
    """Yields the distributions of a table of `Merged`."""
    found: dict[tuple[int, str, str], tuple[list[float], list[int]]] = {}
    listed = (table[key].to_pylist() for key in ("point", "part", "name", "ms", "count"))
    for point, part, name, ms, count in zip(*listed, strict=True):
        times, counts = found.setdefault((point, part, name), ([], []))
        times.append(ms)
        counts.append(count)
    for place, lists in found.items():
        yield Distribution(*place, *lists)


@dataclass(frozen=True)
class Drawn:
    """The distributions of a point in the form of a run, as figures take it."""

    summary: Mapping[str, Any]
    tables: Mapping[str, pa.Table]


def as_run(label: str, found: Sequence[Distribution]) -> Drawn:
    """Returns the distributions of a point as figures take those of a run."""
    import pyarrow as pa

    names = {part: [one.name for one in found if one.part == part] for part in _TABLES}
    tables = {}
    for part, (table, key, value, count) in _TABLES.items():
        of_part = [one for one in found if one.part == part]
        columns = {
            key: [number for number, one in enumerate(of_part) for _ in one.ms],
            value: [ms for one in of_part for ms in one.ms],
            count: [counted for one in of_part for counted in one.counts],
        }
        tables[table] = pa.table(columns)
    flows = [dict(zip(("kind", "cc"), name.split(" ", 1), strict=True)) for name in names[FLOWS]]
    return Drawn({"name": label, "bottlenecks": [{"name": name} for name in names[LINK]], "flows": flows}, tables)
