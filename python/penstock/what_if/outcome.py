"""What the simulation of a capture under one discipline has, over its seeds."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

QUANTILES = ("p50", "p90", "p99")
_SEGMENT = 1448  # bytes


@dataclass(frozen=True)
class Range:
    """The median of all seeds, and the least and the largest value."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Range:
        """Returns the range of values."""
        return cls(statistics.median(values), min(values), max(values))


@dataclass(frozen=True)
class Outcome:
    """What the simulation under one discipline has."""

    discipline: str
    goodput_bps: Range
    delay_ms: dict[str, Range]  # of the bottleneck's queue: p50, p90, p99
    drops: Range  # packets
    drop_share: Range  # of the packets that came to the queue
    sent_again: Range  # share of the segments that cross the bottleneck

    @classmethod
    def of(cls, discipline: str, summaries: Sequence[dict[str, Any]], main: Sequence[int]) -> Outcome:
        """Returns the outcome of runs with different seeds; `main` are the TCP flows that cross the bottleneck."""
        runs = [summary["bottlenecks"][0] for summary in summaries]
        drops = [run["drops_overflow"] + run["drops_aqm"] for run in runs]
        came = [max(run["packets_all"] + lost, 1) for run, lost in zip(runs, drops, strict=True)]
        return cls(
            discipline,
            Range.of([run["goodput_bps"] for run in runs]),
            {name: Range.of([run["queue_delay_ms"][name] for run in runs]) for name in QUANTILES},
            Range.of(drops),
            Range.of([lost / all_ for lost, all_ in zip(drops, came, strict=True)]),
            Range.of([_sent_again([summary["flows"][flow] for flow in main]) for summary in summaries]),
        )


def _sent_again(flows: Sequence[dict[str, Any]]) -> float:
    again = sum(flow["retransmits"] for flow in flows)
    new = sum(flow["delivered_bytes"] for flow in flows) / _SEGMENT
    return float(again / max(again + new, 1))
