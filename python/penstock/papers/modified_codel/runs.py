"""The runs of `modified-codel`."""

from __future__ import annotations

from typing import Any

from penstock.reproduce.settings import Setting

CODELS = ("codel", "modified-codel", "cobalt", "pie")  # the thesis has the first two
COUNTS = (1, 3, 10, 30, 100, 300, 1000)
QUICK_COUNTS = (1, 10, 100)
TARGETS_MS = (5, 10, 15, 20)
SLOW_BPS, FAST_BPS = 0.5e6, 10e6
TESTBED = {"slow": SLOW_BPS, "fast": FAST_BPS}
TARGET_KB = 6.25  # 10 Mbit/s times 5 ms
UDP_ON_S = range(27, 75)  # whole seconds with the UDP flow of section 3.3, of 26 to 75 s


def _background() -> list[dict[str, Any]]:
    """The flows of Table 3.1 whose number does not vary."""
    stream = {"kind": "cbr", "rate": "640kbit/s", "packet_size": "812B", "count": 5, "start_spread": "1s"}
    return [
        {"kind": "bulk", "direction": "reverse", "count": 5, "start_spread": "1s"},
        {**stream, "direction": "reverse"},
        {"kind": "web", "per_second": 15, "mean_size": "10kB"},
        {"kind": "voip", "count": 5, "talk_spurts": True},
    ]


def _streaming() -> list[dict[str, Any]]:
    """The template with the streams first, since their number is varied."""
    stream = {"kind": "cbr", "rate": "640kbit/s", "packet_size": "812B", "count": 1, "start_spread": "1s"}
    return [stream, {"kind": "bulk", "count": 5, "start_spread": "1s"}, *_background()]


def _five_flows(target_ms: int) -> Setting:
    """Figure 3.2: five long flows through 0.5 Mbit/s for 200 s."""
    return Setting(
        f"five-{target_ms}ms",
        f"5 TCP flows, 0.5 Mbit/s, target {target_ms} ms",
        aqms=CODELS,
        change={
            "duration": "200s",
            "topology.rate": "0.5Mbit/s",
            "topology.delay": "50ms",
            "tcp.cc": "newreno",  # the control of the fluid model
            "flows": [{"kind": "bulk", "count": 5}],
            "aqm.target": f"{target_ms}ms",
        },
    )


def _testbed(name: str, rate: str) -> Setting:
    """Section 3.3: five flows, and UDP at the rate of the link for half of the time."""
    return Setting(
        f"udp-{name}",
        f"5 TCP flows and UDP from 26 to 75 s, {rate}",
        aqms=CODELS,
        change={
            "topology.rate": rate,
            "topology.delay": "50ms",
            "topology.limit": "1000p",
            "topology.access_rate": "100Mbit/s",
            "tcp.mss": "1448B",
            "flows": [
                {"kind": "bulk", "count": 5},
                {"kind": "cbr", "rate": rate, "packet_size": "1472B", "start": "26s", "stop": "75s"},
            ],
        },
    )


def _changing(name: str, label: str, change: dict[str, Any]) -> Setting:
    return Setting(
        name,
        label,
        aqms=CODELS,
        change={**change, "output.series": False},  # series of a thousand flows would take most of the storage
        counts=COUNTS,
        quick_counts=QUICK_COUNTS,
    )


SETTINGS = (
    _changing("tcp", "more TCP flows, 10 Mbit/s", {}),
    _changing("udp", "more streams, 10 Mbit/s", {"flows": _streaming()}),
    *(_five_flows(target) for target in TARGETS_MS),
    _testbed("slow", "0.5Mbit/s"),
    _testbed("fast", "10Mbit/s"),
)
