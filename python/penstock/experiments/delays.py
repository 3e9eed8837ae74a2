"""Distributions of delays and of what people feel over seeds, which a sweep keeps on request.

That of a run is a sketch: times that are nearly the same are counted together. Sketches are added by adding their
counts, so that the percentiles of all packets of all seeds are known, which no mean of percentiles is.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.experiments.measures import FLOWS, LINK
from penstock.mistake import MistakeError

if TYPE_CHECKING:
    import pyarrow as pa

CALL_DELAYS, CALL_SCORES, PAGE_TIMES, GAPS = "call delay", "call score", "page time", "gap"
FELT = (CALL_DELAYS, CALL_SCORES, PAGE_TIMES, GAPS)  # what people feel of flows


@dataclass(frozen=True)
class Source:
    """The table of a run with a distribution, its columns, and its error.

    The error is the most by which a value differs from those that it stands for, as a part of it:
    `TimeHistogram::distribution` of queues (crates/sim/src/probe.rs), of which a time is the upper end, the digest of
    flows (crates/sim/src/digest.rs), and scores in hundredths.
    """

    table: str
    of: str
    value: str
    count: str
    error: float


SOURCES: Mapping[str, Source] = {
    LINK: Source("queue_delays", "queue", "delay_ms", "packets", 0.01),
    FLOWS: Source("round_trips", "flow", "rtt_ms", "samples", 0.008),
    CALL_DELAYS: Source("call_delays", "flow", "delay_ms", "packets", 0.008),
    CALL_SCORES: Source("call_scores", "flow", "mos", "parts", 0.005),
    PAGE_TIMES: Source("page_times", "flow", "took_ms", "pages", 0.008),
    GAPS: Source("gaps", "flow", "gap_ms", "gaps", 0.008),
}
ERROR: Mapping[str, float] = {part: source.error for part, source in SOURCES.items()}

Kept = list[tuple[str, str, list[float], list[int]]]  # part, name, values (times in ms), how many there are of each


def of_run(summary: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> Kept:
    """Returns the distributions of a run: of the delays of each queue, and of each kind of flows: round trips and
    what people feel.
    """
    if not tables:
        raise MistakeError("a run with `[output] series = false` has no distributions of delays")
    found: Kept = []
    for part, source in SOURCES.items():
        if source.table not in tables:
            continue  # no flow has it
        columns = [tables[source.table][name].to_pylist() for name in (source.of, source.value, source.count)]
        by_name: dict[str, dict[float, int]] = {}
        for number, value, counted in zip(*columns, strict=True):
            sums = by_name.setdefault(_name(summary, part, number), {})
            sums[round(value, 6)] = sums.get(round(value, 6), 0) + counted
        found += [(part, name, sorted(sums), [sums[value] for value in sorted(sums)]) for name, sums in by_name.items()]
    return found


def _name(summary: Mapping[str, Any], part: str, number: int) -> str:
    if part == LINK:
        return str(summary["bottlenecks"][number]["name"])
    flow = summary["flows"][number]
    return f"{flow['kind']} {flow['cc']}".rstrip()


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
    """The times of one queue or one kind of flows at one point, in ms and in order, and how many there are of each.

    Those of `CALL_SCORES` are no times, but mean opinion scores.
    """

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

    def curve(self) -> dict[str, list[float]]:
        """Returns the values and the share of all that is at most each, as a curve is drawn."""
        total = sum(self.counts)
        shares = [round(share / total, 6) for share in itertools.accumulate(self.counts)]
        return {"values": [round(value, 4) for value in self.ms], "shares": shares}


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

    parts = {part: [one for one in found if one.part == part] for part in SOURCES}
    flows = list(dict.fromkeys(one.name for part, of_part in parts.items() if part != LINK for one in of_part))
    tables = {}
    for part, source in SOURCES.items():
        names = [one.name for one in parts[part]] if part == LINK else flows
        columns = {
            source.of: [names.index(one.name) for one in parts[part] for _ in one.ms],
            source.value: [value for one in parts[part] for value in one.ms],
            source.count: [counted for one in parts[part] for counted in one.counts],
        }
        tables[source.table] = pa.table(columns)
    links = [{"name": one.name} for one in parts[LINK]]
    kinds = [dict(zip(("kind", "cc"), f"{name} ".split(" ", 1), strict=True)) for name in flows]
    return Drawn({"name": label, "bottlenecks": links, "flows": kinds}, tables)
