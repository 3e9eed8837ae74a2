"""Networks and flows that the cases of several suites share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.units import quantity

MTU = 1500  # bytes of a full packet
_ACCESS_MS = 1.0  # one way, on each side of the bottleneck
# Hosts as they are, with the control that a document names: it speaks of queues or of controls, and not of hosts.
HOSTS = {"profile": "linux"}

Tables = dict[str, Any]


def bdp_bytes(rate_mbit: float, rtt_ms: float) -> float:
    """Returns the product of a rate and a round trip time, in bytes."""
    return rate_mbit * 1e6 * rtt_ms / 1e3 / 8


def dumbbell(
    rate_mbit: float, rtt_ms: float, buffer_bytes: float, flows: Sequence[Mapping[str, Any]], **more: Any
) -> Tables:
    """Returns the tables of a dumbbell whose flows have this base round trip time if they say nothing else.

    `seconds` of `more` is the duration, `hosts` the keys of hosts to which those of `tcp` are added, by default hosts
    as they are; its other keys replace tables or are added to them.
    """
    seconds = more.pop("seconds", 60)
    topology = {
        "kind": "dumbbell",
        "rate": rate(rate_mbit),
        "delay": ms(max(0.01, rtt_ms / 2 - 2 * _ACCESS_MS)) if rtt_ms >= 8 else ms(rtt_ms / 4),
        "limit": f"{max(round(buffer_bytes), 2 * MTU)}B",
        "access_rate": rate(max(1000.0, 10 * rate_mbit)),
        "access_delay": ms(_ACCESS_MS) if rtt_ms >= 8 else ms(rtt_ms / 8),
        **more.pop("topology", {}),
    }
    tcp = {**more.pop("hosts", HOSTS), **more.pop("tcp", {})}
    found = {"duration": f"{seconds}s", "warmup": f"{min(10, seconds // 4)}s", "topology": topology, "tcp": tcp}
    return {**found, "flows": list(flows), **more}


def in_packets(value: Any) -> Any:
    """Returns tables whose limits in bytes are packets of the MTU, as most disciplines of Linux count."""

    def limit(text: str) -> str:
        given = quantity(text)
        return f"{max(2, round(given[0] / MTU))}p" if given and given[1] == "B" else text

    if isinstance(value, Mapping):
        return {key: limit(one) if key in ("limit", "reverse_limit") else in_packets(one) for key, one in value.items()}
    return [in_packets(one) for one in value] if isinstance(value, list) else value


def rate(mbit: float) -> str:
    """Returns a rate as a scenario has it."""
    return f"{round(mbit * 1e6)}bit/s"


def ms(milliseconds: float) -> str:
    """Returns a time as a scenario has it."""
    return f"{milliseconds * 1e3:.0f}us"


def step(at_s: float, **values: Any) -> Tables:
    """Returns a change of the bottleneck."""
    return {"link": "bottleneck", "at": f"{at_s:g}s", **values}


def bulk(role: str = "bulk", count: int = 1, **more: Any) -> Tables:
    """Returns flows that always have data."""
    return {"role": role, "kind": "bulk", "count": count, "start_spread": "1s", **more}


def udp(role: str, mbit: float, **more: Any) -> Tables:
    """Returns a stream of datagrams at a constant rate."""
    return {"role": role, "kind": "cbr", "rate": rate(mbit), **more}


def call(role: str = "call", **more: Any) -> Tables:
    """Returns a call."""
    return {"role": role, "kind": "voip", "start_spread": "1s", **more}


def video(role: str, mbit: float, **more: Any) -> Tables:
    """Returns a video, whose frames are bursts."""
    return {"role": role, "kind": "video", "rate": rate(mbit), **more}


def web(role: str, per_second: float, **more: Any) -> Tables:
    """Returns transfers of 50 kB in the mean, which begin as a Poisson process; 1 MB is the largest."""
    return {"role": role, "kind": "web", "per_second": per_second, "max_size": "1MB", **more}
