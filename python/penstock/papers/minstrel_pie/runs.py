"""The runs of `minstrel-pie`."""

from __future__ import annotations

from typing import Any

from penstock.reproduce.settings import Setting

PIES = ("pie", "minstrel-pie")
HIGHEST_MS, LOWEST_MS = 15.0, 5.0  # bounds of Minstrel PIE's target
BUFFERS = (15, 100, 1000)
# Flows for which 1.22 / sqrt(p) segments each fill the round trip of 100 ms and PIE's 15 ms: 137 segments of 1052 B.
# With p = 0.1 % a flow has 39 of them, with 0.5 % 17, with 1 % 12.
CONGESTION = {"mild": (4, 0.001), "medium": (8, 0.005), "strong": (11, 0.01)}


def _udp(count: int, rate: str) -> dict[str, Any]:
    return {"kind": "cbr", "rate": rate, "packet_size": "972B", "count": count}


def _tcp(count: int) -> dict[str, Any]:
    return {"kind": "bulk", "count": count}


def _load(name: str, label: str, *flows: dict[str, Any], long: bool = False) -> Setting:
    """The runs of the ns-3 suite take 300 s with NewReno, those of ns-2 100 s with Compound TCP."""
    suite = {"duration": "300s", "tcp.cc": "newreno"} if long else {}
    change: dict[str, Any] = {"flows": list(flows), **suite}
    return Setting(name, label, aqms=PIES, change=change)


def _buffer(packets: int, load: str, flows: int) -> Setting:
    change = {"topology.limit": f"{packets}p", "tcp.cc": "cubic", "flows": [_tcp(flows)]}
    label = f"{flows} CUBIC flows, room for {packets} packets"
    return Setting(f"buffer-{packets}-{load}", label, aqms=("droptail", *PIES), change=change)


SETTINGS = (
    _load("light", "5 TCP", _tcp(5)),
    _load("heavy", "50 TCP", _tcp(50)),
    _load("mix", "5 TCP, 2 UDP", _tcp(5), _udp(2, "10Mbit/s")),
    _load("one-each", "1 TCP, 1 UDP", _tcp(1), _udp(1, "10280kbit/s"), long=True),
    _load("udp-alone", "1 UDP", _udp(1, "10280kbit/s"), long=True),
    *(_load(name, f"{name} congestion, {n} TCP", _tcp(n), long=True) for name, (n, _) in CONGESTION.items()),
    *(_buffer(packets, load, n) for load, n in (("light", 5), ("heavy", 50)) for packets in BUFFERS),
)
