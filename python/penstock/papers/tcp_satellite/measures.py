"""Shares of transfers on a link while all of them are active."""

from __future__ import annotations

import statistics

from penstock.fairness import jain
from penstock.papers.tcp_satellite.runs import SIX_SETTING
from penstock.reproduce.results import Outcome
from penstock.reproduce.seconds import series_of


def together(outcome: Outcome) -> range:
    """Returns the seconds in which all flows are active."""
    flows = outcome.summary["flows"]
    ends = [flow["start_s"] + flow["completion_s"] for flow in flows if flow["completion_s"] is not None]
    return range(round(max(flow["start_s"] for flow in flows)), int(min([*ends, outcome.summary["duration_s"]])))


def rates_kbps(outcome: Outcome, seconds: range) -> list[float]:
    """Mean payload of each flow."""
    return [statistics.fmean(flow[k] for k in seconds) for flow in series_of(outcome).flows]


def jain_together(outcome: Outcome) -> float:
    """Jain's index of the flows while all of them are active."""
    return jain(rates_kbps(outcome, together(outcome)))


def goodput_limit_kbps(outcome: Outcome) -> float:
    """Largest payload that the link can carry: 500 B of each 552 B."""
    rate = 2e3 if outcome.case.setting == SIX_SETTING else 1e3
    return rate * 500 / 552
