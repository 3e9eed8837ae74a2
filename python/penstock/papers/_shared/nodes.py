"""Measures of runs with nodes that obey and nodes that do not. Those that obey come first in every scenario."""

from __future__ import annotations

import statistics
from typing import Any

from penstock.fairness import jain
from penstock.papers._shared.cooperation import GOOD
from penstock.reproduce.base import Case
from penstock.reproduce.columns import Column
from penstock.reproduce.results import Outcome


def obedient(case: Case) -> int:
    """How many nodes of a run obey, or keep a good channel."""
    kind, _, number = case.setting.partition("-")
    match kind:
        case "one":
            return case.flows - 1
        case "many":
            return case.flows - int(number)
        case "mix" | "cubic":
            return case.flows // 2
        case "five":
            return 4 if number else 5
        case "flood" | "syns" | "stranger":
            return 4
        case "channel" | "attack":
            return GOOD
        case _:
            return case.flows


def good_flows(outcome: Outcome) -> list[dict[str, Any]]:
    """The flows of nodes that obey."""
    flows: list[dict[str, Any]] = outcome.summary["flows"][: obedient(outcome.case)]
    return flows


def _link_bytes(outcome: Outcome, rate_bps: float) -> float:
    return rate_bps / 8 * float(outcome.summary["duration_s"])


def worst_good(outcome: Outcome, rate_bps: float = 20e6) -> float:
    """wcTxData: the least that a good node delivered, as a part of an even share of the link."""
    least = min(int(flow["delivered_bytes"]) for flow in good_flows(outcome))
    return least * outcome.case.flows / _link_bytes(outcome, rate_bps)


def goodput_good_mbps(outcome: Outcome) -> float:
    """Of all good nodes together, over the whole run."""
    total = sum(int(flow["delivered_bytes"]) for flow in good_flows(outcome))
    return total * 8 / float(outcome.summary["duration_s"]) / 1e6


def jain_good(outcome: Outcome) -> float:
    """Jain's index of what good nodes delivered in the whole run."""
    return jain([float(flow["delivered_bytes"]) for flow in good_flows(outcome)])


def rtt_good_ms(outcome: Outcome) -> float:
    """The 99th percentile, of the good node with the largest."""
    return max(float(flow["rtt_ms"]["p99"]) for flow in good_flows(outcome))


def sent_mb(outcome: Outcome) -> float:
    """What the bottleneck carried, with headers."""
    bottleneck = outcome.summary["bottlenecks"][0]
    return float(bottleneck["throughput_bps"]) / 8e6 * float(outcome.summary["duration_s"])


def mean_completion_s(outcome: Outcome) -> float:
    """Of all transfers; one that is not complete counts with the end of the run."""
    duration = float(outcome.summary["duration_s"])
    flows = [flow for flow in outcome.summary["flows"] if flow["kind"] == "transfer"]
    return statistics.fmean(
        float(flow["completion_s"]) if flow["completion_s"] is not None else duration - float(flow["start_s"])
        for flow in flows
    )


COLUMNS = {
    "worst_good": Column("worst share of a good node", "{:.3f}", worst_good),
    "goodput_good": Column("goodput of good nodes Mbit/s", "{:.2f}", goodput_good_mbps),
    "jain_good": Column("Jain of good nodes", "{:.3f}", jain_good),
    "rtt_good": Column("RTT of good nodes ms p99", "{:.0f}", rtt_good_ms),
    "sent_mb": Column("sent MB", "{:.1f}", sent_mb),
}
