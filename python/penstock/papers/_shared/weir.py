"""What the comparisons of WEIR share: testbeds with what people notice, and how it is measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.fairness import jain
from penstock.reproduce.columns import Column, use
from penstock.reproduce.results import Outcome
from penstock.reproduce.settings import Setting

ACCESS_MS = 0.5  # of each side
SEGMENT = 1448  # bytes of payload with the hosts of Linux

Flow = dict[str, Any]


def bulk(count: int = 1, **keys: Any) -> Flow:
    """Transfers without an end, with random starts within a second."""
    return {"kind": "bulk", "count": count, "start_spread": "1s", **keys}


def call(**keys: Any) -> Flow:
    """A call."""
    return {"kind": "voip", "start": "3s", **keys}


def bed(
    name: str,
    label: str,
    flows: list[Flow],
    *,
    link: tuple[str, float, str] = ("10Mbit/s", 49, "250kB"),
    seconds: int = 40,
    warmup: int = 5,
    quick: bool = True,
    more: Mapping[str, Any] | None = None,
) -> Setting:
    """A testbed on a link of a rate, a one-way delay in ms and a queue."""
    rate, delay_ms, limit = link
    change = {
        "duration": f"{seconds}s",
        "warmup": f"{warmup}s",
        "topology.rate": rate,
        "topology.delay": f"{delay_ms}ms",
        "topology.limit": limit,
        "topology.reverse_limit": limit,
        "flows": flows,
        **(more or {}),
    }
    return Setting(name, label, change=change, quick=quick)


def path_ms(setting: Setting) -> float:
    """Returns the one-way delay of the path without a queue."""
    access = str(setting.change.get("topology.access_delay", f"{ACCESS_MS}ms"))
    return float(setting.change["topology.delay"].removesuffix("ms")) + 2 * float(access.removesuffix("ms"))


def called(summary: dict[str, Any], beyond_ms: float) -> float:
    """Returns the 99th percentile of the delay of the worst call beyond that of its path, in ms; NaN without calls."""
    calls = [flow["voip"]["delay_ms"]["p99"] for flow in summary["flows"] if "voip" in flow]
    return float(max(calls)) - beyond_ms if calls and None not in calls else math.nan


def page(percentile: str, outcome: Outcome) -> float:
    """Returns a percentile of the time of a page, in ms; infinity if none was complete, and NaN without pages."""
    for flow in outcome.summary["flows"]:
        if flow["kind"] == "web":
            took = (flow["transfers"]["completion_ms"] or {}).get(percentile)
            return math.inf if took is None else float(took)
    return math.nan


def again(outcome: Outcome) -> float:
    """Returns the part of the segments of TCP and QUIC that their senders sent again."""
    flows = [flow for flow in outcome.summary["flows"] if flow["cc"]]
    segments = sum(flow["delivered_bytes"] for flow in flows) / SEGMENT
    repeated = sum(flow["retransmits"] for flow in flows)
    return float(repeated / max(segments + repeated, 1))


def by_hosts(summary: dict[str, Any], setting: Setting) -> float:
    """Returns Jain's index of the goodputs of the hosts with bulk transfers, where several have some; else NaN."""
    owners = [flow.get("node") for flow in setting.change["flows"] for _ in range(flow.get("count", 1))]
    hosts: dict[str, float] = {}
    for owner, flow in zip(owners, summary["flows"], strict=True):
        if owner and flow["kind"] == "bulk":
            hosts[owner] = hosts.get(owner, 0.0) + float(flow["goodput_bps"] or 0)
    return jain(list(hosts.values())) if len(hosts) > 1 else math.nan


def prague_share(outcome: Outcome) -> float:
    """Returns the goodput of flows with Prague as a part of that of as many with CUBIC; NaN without Prague."""
    got = {"prague": 0.0, "cubic": 0.0}
    for flow in outcome.summary["flows"]:
        if flow.get("cc") in got and flow["kind"] == "bulk":
            got[flow["cc"]] += float(flow["goodput_bps"] or 0)
    return got["prague"] / got["cubic"] if got["prague"] and got["cubic"] else math.nan


def back(summary: dict[str, Any], setting: Setting) -> float:
    """Returns the goodput of the transfers in the other direction together, in Mbit/s; NaN without any."""
    ways = [flow.get("direction") for flow in setting.change["flows"] for _ in range(flow.get("count", 1))]
    pairs = zip(ways, summary["flows"], strict=True)
    found = [float(flow["goodput_bps"] or 0) for way, flow in pairs if way == "reverse"]
    return sum(found) / 1e6 if found else math.nan


def queue_ms(outcome: Outcome) -> float:
    """Returns the 90th percentile of the time in the queue, in ms."""
    value = outcome.summary["bottlenecks"][0]["queue_delay_ms"]["p90"]
    return math.nan if value is None else float(value)


def columns_of(settings: Sequence[Setting]) -> dict[str, Column]:
    """Returns the columns for testbeds on such links, each of which says who owns its flows."""
    known = {setting.name: setting for setting in settings}
    return {
        "call": Column("a call waits ms p99", "{:.1f}", lambda o: called(o.summary, path_ms(known[o.case.setting]))),
        "web": Column("a page ms p50", "{:.0f}", lambda o: page("p50", o)),
        "web99": Column("a page ms p99", "{:,.0f}", lambda o: page("p99", o)),
        "grid_use": Column("link in use", "{:.1%}", use),
        "grid_back": Column("the other direction Mbit/s", "{:.2f}", lambda o: back(o.summary, known[o.case.setting])),
        "again": Column("TCP sends again", "{:.1%}", again),
        "grid_queue": Column("queue ms p90", "{:.0f}", queue_ms),
        "hosts": Column("Jain of hosts", "{:.3f}", lambda o: by_hosts(o.summary, known[o.case.setting])),
        "prague": Column("Prague beside CUBIC", "{:.2f}", prague_share),
    }
