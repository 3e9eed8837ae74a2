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
    """What the simulation under one discipline has; the asked direction is that whose queue has the discipline."""

    discipline: str
    goodput_bps: Range  # of the asked direction
    delay_ms: dict[str, Range]  # of its queue: p50, p90, p99
    drops: Range  # packets
    drop_share: Range  # of the packets that came to the queue
    sent_again: Range  # share of the segments that cross the bottleneck in the asked direction
    back_goodput_bps: Range  # of the other direction
    back_delay_ms: dict[str, Range]
    carried: Range  # the goodputs of both directions, each as a share of its rate, together
    worse_ms: Range  # the longer of both p90 delays

    @classmethod
    def of(
        cls, discipline: str, summaries: Sequence[dict[str, Any]], main: Sequence[int], rates_bps: tuple[float, float]
    ) -> Outcome:
        """Returns the outcome of runs with different seeds.

        `main` are the TCP flows that cross the bottleneck in the asked direction, `rates_bps` the rates of both
        directions, that of the asked one first.
        """
        runs = [summary["bottlenecks"][0] for summary in summaries]
        backs = [summary["bottlenecks"][1] for summary in summaries]
        drops = [run["drops_overflow"] + run["drops_aqm"] for run in runs]
        came = [max(run["packets_all"] + lost, 1) for run, lost in zip(runs, drops, strict=True)]
        both = list(zip(runs, backs, strict=True))
        return cls(
            discipline,
            Range.of([run["goodput_bps"] for run in runs]),
            {name: Range.of([run["queue_delay_ms"][name] for run in runs]) for name in QUANTILES},
            Range.of(drops),
            Range.of([lost / all_ for lost, all_ in zip(drops, came, strict=True)]),
            Range.of([_sent_again([summary["flows"][flow] for flow in main]) for summary in summaries]),
            Range.of([back["goodput_bps"] for back in backs]),
            {name: Range.of([back["queue_delay_ms"][name] for back in backs]) for name in QUANTILES},
            Range.of(
                [sum(one["goodput_bps"] / bps for one, bps in zip(pair, rates_bps, strict=True)) for pair in both]
            ),
            Range.of([max(one["queue_delay_ms"]["p90"] for one in pair) for pair in both]),
        )


def _sent_again(flows: Sequence[dict[str, Any]]) -> float:
    again = sum(flow["retransmits"] for flow in flows)
    new = sum(flow["delivered_bytes"] for flow in flows) / _SEGMENT
    return float(again / max(again + new, 1))
