"""What the claims on how flows share a link under PINK share.

The documents show these results as curves over time. What an eye would read from them is a constant beside the claims.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from penstock.reproduce import sharing
from penstock.reproduce.results import Evidence, Outcome
from penstock.reproduce.seconds import series_of


def mean_mbps(outcome: Outcome, seconds: range) -> float:
    """Payload of all flows together over these seconds."""
    return sharing.mean_total(series_of(outcome), seconds) / 1e3


def limit_mbps(run: Evidence) -> float:
    """The most payload that the bottleneck can carry."""
    return run.experiment.goodput_limit_bps / 1e6


def per_flow_mbps(outcome: Outcome, seconds: range) -> list[float]:
    """Payload of each flow over these seconds."""
    return [sum(flow[k] for k in seconds) / len(seconds) / 1e3 for flow in series_of(outcome).flows]


def listed(values: Sequence[float], digits: int = 2) -> str:
    """Numbers, separated by commas."""
    return ", ".join(f"{value:.{digits}f}" for value in values)


def unsteady(outcome: Outcome, seconds: range) -> float:
    """The standard deviation of the total payload of a second over its mean."""
    totals = [series_of(outcome).total()[k] for k in seconds]
    return statistics.pstdev(totals) / statistics.fmean(totals)
