"""RED-ERN beside RED that marks and RED that drops: document 003, section IV."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from statistics import NormalDist
from typing import Any

from penstock.reproduce.settings import Setting

THREE = ("red-ern", "red-ecn", "red-drop")
RATES = (5, 10, 20, 30, 40, 50)  # Mbit/s
COUNTS = (50, 100, 200, 400, 800)
OTHERS = (200, 400, 600, 800)  # UDP flows, HTTP sessions
MIXED_RATE = 25
STARVED_RATE, STARVED_FLOWS = 1, 800
TARGET_MS = 14.0
PACKET_BYTES = 576
# Mean and deviation of the delay of an access link, for each class of round trips; cut one deviation from the mean.
CLASSES_MS = ((4, 2), (11, 4), (26, 8), (56, 18), (101, 22))
RIGHT_MS = 2.0  # the delay of all links on the right


def left_delays_ms(levels: int) -> list[list[float]]:
    """For each class the delays on the left: what the sum of two cut normal variables exceeds the right side by."""
    normal = NormalDist()
    low, high = normal.cdf(-1), normal.cdf(1)
    one_side = [normal.inv_cdf(low + (high - low) * (i + 0.5) / 100) for i in range(100)]
    sums = sorted(a + b for a in one_side for b in one_side)
    middles = [sums[int(len(sums) * (i + 0.5) / levels)] for i in range(levels)]
    return [[2 * mean + deviation * z - RIGHT_MS for z in middles] for mean, deviation in CLASSES_MS]


def spread(count: int, flow: dict[str, Any]) -> list[dict[str, Any]]:
    """So many flows, the same number of each class, with up to ten delays in each.

    Those without a start of their own begin so that their SYNs reach the bottleneck within 20 ms, before the first data
    makes a queue: a SYN that RED drops is repeated without ECN (RFC 3168, 6.1.1.1), and its flow never tells a rate.
    """
    levels = min(10, count // len(CLASSES_MS))
    each = count // (len(CLASSES_MS) * levels)
    delays = [delay for group in left_delays_ms(levels) for delay in group]
    return [
        {
            "start": f"{max(delays) - delay:.3f}ms",
            "start_spread": "20ms",
            **flow,
            "count": each,
            "access_delay": f"{delay:.3f}ms",
        }
        for delay in delays
    ]


BULK: dict[str, Any] = {"kind": "bulk"}
# Spread over the time in which the queue is already there, as sessions are.
UDP: dict[str, Any] = {"kind": "cbr", "rate": "64kbit/s", "packet_size": "548B", "start": "1s", "start_spread": "1s"}
HTTP: dict[str, Any] = {"kind": "http", "packets": 30, "idle": "5s", "start": "1s", "start_spread": "5s"}


def thresholds(rate: int) -> dict[str, Any]:
    """Half and one and a half times the packets that the link sends in 14 ms."""
    packets = rate * 1e6 * TARGET_MS / 1e3 / (8 * PACKET_BYTES)
    return {
        "aqm.min_threshold": f"{packets / 2:.0f}p",
        "aqm.max_threshold": f"{packets * 1.5:.0f}p",
        "aqm.mean_packet": f"{PACKET_BYTES}B",
    }


def _setting(name: str, label: str, rate: int, flows: list[dict[str, Any]], number: int, quick: bool) -> Setting:
    change = {"topology.rate": f"{rate}Mbit/s", "flows": flows, **thresholds(rate)}
    return Setting(name, label, THREE, change, quick=quick, flows=number)


def ftp(rate: int, count: int) -> str:
    """The name of a setting with bulk flows only."""
    return f"ftp-{rate}-{count}"


_QUICK = {(30, 50), (30, 200), (30, 800), (5, 200), (50, 200)}


def _settings() -> Iterator[Setting]:
    for rate in RATES:
        for count in COUNTS:
            flows = spread(count, BULK)
            yield _setting(ftp(rate, count), f"{rate} Mbit/s", rate, flows, count, (rate, count) in _QUICK)
    starved = spread(STARVED_FLOWS, BULK)
    yield _setting("starved", f"{STARVED_RATE} Mbit/s", STARVED_RATE, starved, STARVED_FLOWS, True)
    for kind, long_lived, other in (("udp", 50, UDP), ("http", 20, HTTP)):
        for count in OTHERS:
            flows = [*spread(long_lived, BULK), *spread(count, other)]
            label = f"{long_lived} FTP, {count} {kind.upper()}"
            yield _setting(f"{kind}-{count}", label, MIXED_RATE, flows, long_lived + count, count in (200, 800))


SETTINGS = tuple(_settings())
# Those of Figure 5 in which estimated rates are compared with announced ones.
FEW = tuple(replace(setting, aqms=()) for setting in SETTINGS if setting.name in (ftp(30, 50), ftp(30, 200)))
