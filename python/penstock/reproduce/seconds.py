"""What claims and figures read from the seconds of a run."""

from __future__ import annotations

import statistics

from penstock.reproduce.results import Outcome
from penstock.reproduce.series import Series


def series_of(outcome: Outcome) -> Series:
    """The seconds of a run that must have them."""
    if outcome.series is None:
        raise ValueError(f"{outcome.case} was stored without its series")
    return outcome.series


def longest_ms(outcome: Outcome, bps: float) -> list[float]:
    """The longest queue of each second at the first bottleneck, as the time it takes to send."""
    return [8e3 * most / bps for most in next(iter(series_of(outcome).longest.values()))]


def after_warmup(outcome: Outcome, bps: float) -> tuple[list[float], list[float]]:
    """For each second after the warm-up: the longest queue in ms, and the goodput of all flows in Mbit/s."""
    warmup = int(outcome.summary["warmup_s"])
    rates = [kbps / 1e3 for kbps in series_of(outcome).total()]
    return longest_ms(outcome, bps)[warmup:], rates[warmup:]


def rate_spread(outcome: Outcome) -> float:
    """Variance of the flows' goodput in seconds, over the square of its mean, as a mean over flows.

    The rate of a flow is its window per round trip; runs do not keep windows.
    """
    warmup = int(outcome.summary["warmup_s"])
    spreads = []
    for flow in series_of(outcome).flows:
        seconds = flow[warmup:]
        spreads.append(statistics.pvariance(seconds) / max(1e-9, statistics.fmean(seconds)) ** 2)
    return statistics.fmean(spreads)
