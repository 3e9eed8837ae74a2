"""What claims and figures read from the seconds of a run."""

from __future__ import annotations

import statistics

from penstock.reproduce import columns
from penstock.reproduce.results import Outcome
from penstock.reproduce.series import Series


def series_of(outcome: Outcome) -> Series:
    """The seconds of a run that must have them."""
    if outcome.series is None:
        raise ValueError(f"{outcome.case} was stored without its series")
    return outcome.series


def delays_ms(outcome: Outcome) -> list[float]:
    """The mean time in the first bottleneck's queue of the packets that left it in each second."""
    return [us / 1e3 for us in next(iter(series_of(outcome).waited_us.values()))]


def queue_packets(outcome: Outcome) -> list[float]:
    """The mean queue of each second at the first bottleneck, in packets of the mean size."""
    size = columns.packet_bytes(outcome)
    return [count / size for count in next(iter(series_of(outcome).waiting.values()))]


def after_warmup(outcome: Outcome) -> tuple[list[float], list[float]]:
    """For each second after the warm-up: the mean time in the queue in ms, and the goodput of all flows in Mbit/s."""
    warmup = int(outcome.summary["warmup_s"])
    rates = [kbps / 1e3 for kbps in series_of(outcome).total()]
    return delays_ms(outcome)[warmup:], rates[warmup:]


def window_spread(outcome: Outcome) -> float:
    """Variance of a flow's congestion window, at the ends of seconds, over the square of its mean; mean over flows."""
    warmup = int(outcome.summary["warmup_s"])
    spreads = []
    for window in series_of(outcome).windows:
        seconds = window[warmup:]
        spreads.append(statistics.pvariance(seconds) / max(1e-9, statistics.fmean(seconds)) ** 2)
    return statistics.fmean(spreads)
