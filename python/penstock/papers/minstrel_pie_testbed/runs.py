"""The runs of `minstrel-pie-testbed`."""

from __future__ import annotations

from typing import Any

from penstock.papers._shared.flow_queueing import PHASES_S, stream
from penstock.reproduce.settings import Setting

PIES = ("pie", "minstrel-pie")
HIGHEST_MS, LOWEST_MS = 15.0, 5.0  # bounds of Minstrel PIE's target
MIXES = (1, 5)  # TCP flows beside a UDP flow
MARKED = "-ecn"


def _alone(name: str, count: int) -> Setting:
    return Setting(name, f"{count} TCP", change={"flows": [{"kind": "bulk", "count": count}]})


def _mixed(count: int, ecn: bool) -> Setting:
    """`tcp_nup` and a UDP flow of the link's rate from 25 to 75 s."""
    tcp = {"kind": "bulk", "count": count, "start": "1s"}
    change: dict[str, Any] = {"flows": [tcp, stream(*PHASES_S[0], "10Mbit/s", "972B")]}
    if ecn:
        change |= {"tcp.ecn": True, "aqm.ecn": True}
    return Setting(f"up-{count}{MARKED * ecn}", f"{count} TCP, 1 UDP{', ECN' * ecn}", change=change)


SETTINGS = (
    _alone("light", 5),
    _alone("heavy", 50),
    *(_mixed(count, ecn) for count in MIXES for ecn in (False, True)),
)
