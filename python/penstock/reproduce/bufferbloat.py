"""Experiments of the thesis on bufferbloat (document 004): Modified CoDel (chapter 3), Minstrel PIE (chapter 4)."""

from __future__ import annotations

from typing import Any

from penstock.reproduce.settings import Listed, Setting
from penstock.reproduce.variants import Variant

CODELS = ("codel", "modified-codel", "cobalt", "pie")  # the thesis has the first two
COUNTS = (1, 3, 10, 30, 100, 300, 1000)
QUICK_COUNTS = (1, 10, 100)
TARGETS_MS = (5, 10, 15, 20)
SLOW_BPS, FAST_BPS = 0.5e6, 10e6
TESTBED = {"slow": SLOW_BPS, "fast": FAST_BPS}
TARGET_KB = 6.25  # what 5 ms of 10 Mbit/s carry
UDP_ON_S = range(27, 75)  # whole seconds with the UDP flow of section 3.3, of 26 to 75 s


def _background() -> list[dict[str, Any]]:
    """What Table 3.1 has besides the flows whose number changes."""
    stream = {"kind": "cbr", "rate": "640kbit/s", "packet_size": "812B", "count": 5, "start_spread": "1s"}
    return [
        {"kind": "bulk", "direction": "reverse", "count": 5, "start_spread": "1s"},
        {**stream, "direction": "reverse"},
        {"kind": "web", "per_second": 15, "mean_size": "10kB"},
        {"kind": "voip", "count": 5, "talk_spurts": True},
    ]


def _streaming() -> list[dict[str, Any]]:
    """As the template, with the streams first, for their number is varied."""
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
            "tcp.cc": "newreno",  # the law of the fluid model
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
        change={**change, "output.series": False},  # of a thousand flows, they would be all there is to store
        counts=COUNTS,
        quick_counts=QUICK_COUNTS,
    )


DEPARTURES = {"estimator": "departure-rate"}
# The senders of older simulators.
PLAIN = "senders without SACK and PRR, a first window of 1 and a timeout floor of 1 s"
PLAIN_TCP = {"sack": False, "prr": False, "initial_window": 1, "min_rto": "1s"}
# The two halves of the modification, each alone: cases 1 and 2 of section 3.2.2.
CASE_1 = Variant("interval-30ms", "CoDel's interval of 30 ms and its own law", ("codel",), aqm={"interval": "30ms"})
CASE_2 = Variant("law-alone", "the modified law and CoDel's interval", ("modified-codel",), aqm={"interval": "100ms"})

MODIFIED_CODEL = Listed(
    name="modified-codel",
    title="CoDel with a modified control law",
    source="document 004, chapter 3",
    figures={
        "queue_counts": "004, Figures 3.4(a) and 3.5(a)",
        "use_counts": "004, Figures 3.4(b) and 3.5(b)",
        "window_spread": "004, Table 3.2 and Figure 3.9",
        "use_time": "004, Figure 3.10",
        "udp_comes": "004, Figures 3.11 and 3.12",
    },
    columns=("use", "queue_mean", "delay_mean", "delay_50", "delay_90", "drops"),
    aqms=CODELS,
    quick="3, 30, 300 and 1000 flows",
    variants=(
        CASE_1,
        CASE_2,
        Variant("newreno", "NewReno senders", CODELS, tcp={"cc": "newreno"}),
        Variant("cubic", "CUBIC senders", CODELS, tcp={"cc": "cubic"}),
        Variant("plain-tcp", PLAIN, CODELS, tcp=PLAIN_TCP),
        Variant("window-20", "windows of 20 segments, ns-2's default", CODELS, tcp={"receive_buffer": "20000B"}),
        # At 0.5 Mbit/s a packet takes 16.8 ms, more than most targets: CoDel spares the last one.
        Variant("no-last-packet", "CoDel's rule for the last packet off", CODELS[:2], aqm={"mtu": "1B"}),
        # A departure tells how long the queue was when the packet came, backlog and rate tell how long it is now.
        Variant("departure-rate", "PIE's delay estimated from departures", CODELS[3:], aqm=DEPARTURES),
        Variant("pie-linux", "PIE as in Linux", CODELS[3:], aqm={"compat": "linux"}),
        # With drop-tail the ACKs wait behind the reverse flows for as long as 1600 packets take.
        Variant("codel-back", "CoDel on the way back", CODELS, topology={"reverse_aqm": {"name": "codel"}}),
    ),
    keeps_series=True,
    settings=(
        _changing("tcp", "more TCP flows, 10 Mbit/s", {}),
        _changing("udp", "more streams, 10 Mbit/s", {"flows": _streaming()}),
        *(_five_flows(target) for target in TARGETS_MS),
        _testbed("slow", "0.5Mbit/s"),
        _testbed("fast", "10Mbit/s"),
    ),
)

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


MINSTREL_PIE = Listed(
    name="minstrel-pie",
    title="PIE with a target that moves",
    source="document 004, chapter 4",
    figures={
        "delay_cdf": "004, Figures 4.2 and 4.3",
        "delay_time": "004, Figures 4.4, 4.6 and 4.8",
        "link_time": "004, Figures 4.5, 4.7 and 4.9",
        "ellipses": "004, Figure 4.10",
        "ellipses_udp": "004, Figure 4.11",
        "ellipses_congestion": "004, Figure 4.12",
        "buffers": "004, Figures 4.19 and 4.20",
    },
    columns=("use", "goodput_all", "jain_all", "delay_mean", "delay_50", "delay_90", "rtt", "drops", "drop_share"),
    aqms=("droptail", *PIES),
    quick="nothing",
    variants=(
        Variant(
            "departure-rate",
            "the delay estimated from departures, as the thesis does",
            PIES,
            aqm=DEPARTURES,
        ),
        Variant("cubic", "CUBIC senders", ("droptail", *PIES), tcp={"cc": "cubic"}),
        Variant("newreno", "NewReno senders", PIES, tcp={"cc": "newreno"}, settings=("light", "heavy", "mix")),
        Variant(
            "one-way-delays",
            "the delays of Table 4.1 one-way on each link",
            ("droptail", *PIES),
            topology={"delay": "80ms", "access_delay": "20ms"},
        ),
        Variant("independent-drops", "drops that are independent of each other", PIES, aqm={"derandomize": False}),
        Variant("plain-tcp", PLAIN, ("droptail", *PIES), tcp=PLAIN_TCP),
        Variant("segment-536", "segments of 536 B, ns-3's default", ("droptail", *PIES), tcp={"mss": "536B"}),
        # What is left of Minstrel PIE's lead over a PIE whose target stands at the lower bound.
        Variant("pie-5ms", "PIE's target of 5 ms", ("pie",), aqm={"target": "5ms"}),
    ),
    keeps_series=True,
    settings=(
        _load("light", "5 TCP", _tcp(5)),
        _load("heavy", "50 TCP", _tcp(50)),
        _load("mix", "5 TCP, 2 UDP", _tcp(5), _udp(2, "10Mbit/s")),
        _load("one-each", "1 TCP, 1 UDP", _tcp(1), _udp(1, "10280kbit/s"), long=True),
        _load("udp-alone", "1 UDP", _udp(1, "10280kbit/s"), long=True),
        *(_load(name, f"{name} congestion, {n} TCP", _tcp(n), long=True) for name, (n, _) in CONGESTION.items()),
        *(_buffer(packets, load, n) for load, n in (("light", 5), ("heavy", 50)) for packets in BUFFERS),
    ),
)

ALL_BUFFERBLOAT = (MODIFIED_CODEL, MINSTREL_PIE)
