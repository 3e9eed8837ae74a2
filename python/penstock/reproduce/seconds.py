"""Measures of per-second series, for claims and figures."""

from __future__ import annotations

import statistics

from penstock.reproduce import columns
from penstock.reproduce.results import Outcome
from penstock.reproduce.series import Series


def series_of(outcome: Outcome) -> Series:
    """Returns the series of a run; raises `ValueError` if it was stored without."""
    if outcome.series is None:
        raise ValueError(f"{outcome.case} was stored without its series")
    return outcome.series


def delays_ms(outcome: Outcome) -> list[float]:
    """Returns for each second the mean sojourn time at the first bottleneck of the packets that left it, in ms."""
    return [us / 1e3 for us in next(iter(series_of(outcome).waited_us.values()))]


def queue_packets(outcome: Outcome) -> list[float]:
    """Returns for each second the mean queue of the first bottleneck, in packets of the mean size."""
    size = columns.packet_bytes(outcome)
    return [count / size for count in next(iter(series_of(outcome).waiting.values()))]


def after_warmup(outcome: Outcome) -> tuple[list[float], list[float]]:
    """Returns for each second after the warm-up the mean sojourn time in ms, and the goodput of all flows in Mbit/s."""
    warmup = int(outcome.summary["warmup_s"])
    rates = [kbps / 1e3 for kbps in series_of(outcome).total()]
    return delays_ms(outcome)[warmup:], rates[warmup:]


def window_spread(outcome: Outcome) -> float:
    """Returns the variance of the windows at the ends of seconds over the square of their mean; mean over flows."""
    warmup = int(outcome.summary["warmup_s"])
    spreads = []
    for window in series_of(outcome).windows:
        seconds = window[warmup:]
        spreads.append(statistics.pvariance(seconds) / max(1e-9, statistics.fmean(seconds)) ** 2)
    return statistics.fmean(spreads)
