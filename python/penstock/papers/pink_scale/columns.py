"""Columns of the table of results that only `pink-scale` has."""

from __future__ import annotations

from penstock.papers.pink_scale.runs import bound_bytes
from penstock.reproduce.columns import Column
from penstock.reproduce.results import Outcome


def packet_ns(outcome: Outcome) -> float:
    """Returns the processor time of the whole run for each data packet, in ns."""
    return outcome.cpu_s * 1e9 / float(outcome.summary["bottlenecks"][0]["packets_all"])


def bound_used(outcome: Outcome) -> float:
    """Returns the longest queue as a part of the bandwidth-delay product."""
    return float(outcome.summary["bottlenecks"][0]["queue_bytes"]["max"]) / bound_bytes(outcome.case.flows)


def known_flows(outcome: Outcome) -> float | None:
    """Returns the number of flows of which PINK keeps a record; `None` for drop-tail."""
    report = outcome.summary["bottlenecks"][0].get("algorithm", {})
    return float(report["active"]) if "active" in report else None


COLUMNS = {
    "packet_ns": Column("ns per packet, run", "{:.0f}", packet_ns),
    "bound_used": Column("longest queue of b", "{:.1%}", bound_used),
    "known_flows": Column("records", "{:,.0f}", known_flows),
}
