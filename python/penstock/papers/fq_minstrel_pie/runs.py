"""The runs of `fq-minstrel-pie`."""

from __future__ import annotations

from typing import Any

from penstock.papers._shared import flow_queueing
from penstock.papers._shared.flow_queueing import PHASES_S, Streaming, stream
from penstock.reproduce.settings import Setting

MIXES = (1, 5)


def _mix(count: int) -> dict[str, Any]:
    """Table 4.9; its delays are taken as parts of the round trip, 100 ms together."""
    tcp = {"kind": "bulk", "count": count, "start": "1s"}
    return {
        "duration": "100s",
        "topology.rate": "10Mbit/s",
        "topology.delay": "40ms",
        "topology.limit": "200p",
        "topology.access_rate": "100Mbit/s",
        "topology.access_delay": "5ms",
        "tcp.mss": "948B",  # 1000 B with headers
        "flows": [tcp, stream(*PHASES_S[0], "10Mbit/s", "972B")],
    }


KIND = Streaming
SETTINGS = (
    *(Setting(f"mix-{n}", f"{n} TCP, 1 UDP, 10 Mbit/s", change=_mix(n)) for n in MIXES),
    *flow_queueing.SETTINGS,
)
