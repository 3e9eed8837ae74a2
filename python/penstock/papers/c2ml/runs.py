"""The runs of `c2ml`."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from penstock.papers._shared.cooperation import Flow
from penstock.reproduce.settings import Setting

CCS = ("newreno", "cubic", "bic", "highspeed", "hybla", "noordwijk")
NODES = (2, 4, 8, 16)
FRIENDS = ("cubic", "noordwijk", "newreno", "hybla", "highspeed", "bic")
# As in Noordwijk's source: an ACK for each segment, and bursts of 20 segments.
NOORDWIJK: dict[str, Any] = {"tcp.cc": "noordwijk", "tcp.ack_every_segment": True, "tcp.initial_window": 20}
# "Standard" buffers hold the bandwidth-delay product.
BUFFERS = {"large": "4MB", "standard": "75kB"}
USERS, SIZES = (32, 64, 128), {"1.5": 1.5, "5": 5.0, "10": 10.0}
RATES = (1, 2, 4)  # Mbit/s; section 2.2.2.1 has 1 to 4
SHORT_RATE = 4
# Further properties of TCP that section 2.2.4.4 does not give.
TCP_OPTIONS: dict[str, dict[str, Any]] = {
    "window-1": {"tcp.initial_window": 1},
    "threshold-64kB": {"tcp.initial_ssthresh": "65535B"},
    "no-threshold": {"tcp.initial_ssthresh": "1GB"},
    "no-options": {"tcp.timestamps": False, "tcp.limited_transmit": False},
    "buffers-128kB": {"tcp.receive_buffer": "131072B", "tcp.send_buffer": "131072B"},
    "sack": {"tcp.sack": True, "tcp.prr": True},
    "figure-2-13": {"tcp.c2ml": "literal"},
}


def _control(cc: str) -> dict[str, Any]:
    return NOORDWIJK if cc == "noordwijk" else {"tcp.cc": cc}


def _files() -> Iterator[Setting]:
    """Tables 2.1 to 2.6, Figures 2.20 to 2.27."""
    for cc in CCS:
        yield Setting(f"files-{cc}", f"5 MB each, {cc}", ("plain", "c2ml"), _control(cc), NODES, (2, 16))
    for cc in CCS:
        same = {**_control(cc), "tcp.ack_every_segment": True}
        yield Setting(f"same-{cc}", f"5 MB each, {cc}, an ACK for each segment", ("c2ml",), same, NODES, (2, 16))


def _three() -> Iterator[Setting]:
    """Figures 2.14 to 2.17: 1 Mbit/s, standard buffers, a node every 10 s."""
    shared: dict[str, Any] = {"topology.rate": "1Mbit/s", "topology.limit": "75kB", "duration": "200s"}
    step: Flow = {"kind": "transfer", "size": "5MB", "count": 3, "start_step": "10s"}
    for cc in ("newreno", "cubic", "noordwijk"):
        yield Setting(
            f"three-{cc}", f"three nodes, {cc}", ("plain", "c2ml"), {**shared, **_control(cc), "flows": [step]}
        )
    far = [{"kind": "transfer", "size": "5MB", "start": f"{10 * i}s", "access_delay": f"{50 * i}ms"} for i in range(3)]
    yield Setting("three-rtts", "three nodes, RTTs 600 to 800 ms", ("plain", "c2ml"), {**shared, "flows": far})


def _fair() -> Iterator[Setting]:
    """Figures 2.18 and 2.19: five minutes of bulk flows at 1 Mbit/s."""
    yield from _fair_of(("newreno", "cubic", "bic", "noordwijk", "highspeed"))


def _fair_of(ccs: tuple[str, ...]) -> Iterator[Setting]:
    for buffer, limit in BUFFERS.items():
        for cc in ccs:
            change = {
                "topology.rate": "1Mbit/s",
                "topology.limit": limit,
                "duration": "300s",
                "warmup": "10s",
                "flows": [{"kind": "bulk", "count": 2}],
                **_control(cc),
            }
            yield Setting(f"fair-{buffer}-{cc}", f"{buffer} buffers, {cc}", ("plain", "c2ml"), change, NODES, (4,))


def _hybla() -> Iterator[Setting]:
    """The same of Hybla, which the figures leave out."""
    for setting in _fair_of(("hybla",)):
        name = setting.name.removeprefix("fair-").removesuffix("-hybla")
        yield replace(setting, name=f"hybla-{name}")


def _friends() -> Iterator[Setting]:
    """Figures 2.28 and 2.29: six controls, each 3 s after the one before."""
    flows = [
        {"kind": "bulk", "start": f"{3 * i}s", "cc": cc, "tcp": {"ack_every_segment": cc == "noordwijk"}}
        for i, cc in enumerate(FRIENDS)
    ]
    for buffer, limit in {"large": "4MB", "standard": "150kB"}.items():
        change = {"topology.limit": limit, "duration": "120s", "warmup": "20s", "flows": flows}
        yield Setting(f"friends-{buffer}", f"six controls, {buffer} buffers", ("plain", "c2ml"), change)


def short_transfers(users: int, megabytes: float, background: bool) -> list[Flow]:
    """Twice as many connections as users, each of a random user, opened within 30 s.

    Ten bulk flows make transfers 5, 3 and 1 % longer from Table 2.7 to 2.8 (32, 64 and 128 users, 1.5 MB), as one more
    node with a budget would. Ten nodes would make it 36, 18 and 9 %. So they are sockets of one.
    """
    draw = random.Random(f"{users} {megabytes}")
    flows: list[Flow] = [
        {
            "kind": "transfer",
            "size": f"{round(megabytes * 1000)}kB",
            "start": f"{round(draw.uniform(0, 30), 3)}s",
            "node": f"user{draw.randrange(users)}",
        }
        for _ in range(2 * users)
    ]
    return flows + ([{"kind": "bulk", "count": 10, "node": "background"}] if background else [])


def _short_at(rate: int, users: int, megabytes: float, background: bool = False) -> dict[str, Any]:
    """Runs on a link of this many Mbit/s, for six times the time that all transfers take at the full rate."""
    seconds = round(6 * 2 * users * megabytes * 8 * 1.104 / rate) + 60
    shared: dict[str, Any] = {"topology.rate": f"{rate}Mbit/s", "topology.access_rate": f"{rate}Mbit/s"}
    shared["output.series"] = False  # no figure uses them, and they would take most of the storage
    return {**shared, "duration": f"{seconds}s", "flows": short_transfers(users, megabytes, background)}


def _short() -> Iterator[Setting]:
    """Tables 2.7 and 2.8. Their rate is not given; 4 Mbit/s is the highest of section 2.2.2.1."""
    for background in (False, True):
        for users in USERS:
            for name, megabytes in SIZES.items():
                change = _short_at(SHORT_RATE, users, megabytes, background)
                label = f"{users} users, {name} MB{', background' if background else ''}"
                key = f"short-{users}-{name}{'-background' if background else ''}"
                quick = key in ("short-32-1.5", "short-32-1.5-background", "short-128-1.5")
                yield Setting(key, label, ("plain", "c2ml"), change, quick=quick, flows=2 * users)


def _open_ends() -> Iterator[Setting]:
    """32 users and 1.5 MB, with variations of what section 2.2.4.4 does not specify: control, buffer, rate, TCP."""
    ways = ("plain", "c2ml")
    for rate in RATES:
        sizes = {"large": "4MB", "standard": f"{75 * rate}kB"}
        for cc, (buffer, limit) in itertools.product(CCS, sizes.items()):
            change = {**_short_at(rate, 32, 1.5), **_control(cc), "topology.limit": limit}
            label = f"32 users, 1.5 MB, {cc}, {buffer} buffers, {rate} Mbit/s"
            yield Setting(f"open-{cc}-{buffer}-{rate}", label, ways, change, quick=rate == SHORT_RATE, flows=64)
    for name, options in TCP_OPTIONS.items():
        change = {**_short_at(SHORT_RATE, 32, 1.5), **options}
        yield Setting(f"open-{name}", f"32 users, 1.5 MB, {name}", ways, change, quick=False, flows=64)


def _halves() -> Setting:
    """The largest number of connections, whose shares are smallest, with segments of half the size."""
    change = {**_short_at(SHORT_RATE, 128, 1.5), "tcp.mss": "250B"}
    return Setting("half-segments", "128 users, 1.5 MB, segments of 250 B", ("plain", "c2ml"), change, flows=256)


SETTINGS = (*_files(), *_three(), *_fair(), *_hybla(), *_friends(), *_short(), *_open_ends(), _halves())
